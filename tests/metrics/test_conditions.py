"""How many, in which window, in which notation."""

import math
from typing import Any

import pytest

from holdfast.errors import BadLimit, BadWindow, KeyTooLong, UnknownCondition
from holdfast.limits import MAX_KEY_BYTES
from holdfast.metrics import LimitCondition
from holdfast.metrics.conditions import check_amount, make_plan


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("10/minute", LimitCondition(10, 60)),
        ("10 per minute", LimitCondition(10, 60)),
        ("5 per 2 seconds", LimitCondition(5, 2)),
        ("1/s", LimitCondition(1, 1)),
        ("3/hour", LimitCondition(3, 3600)),
        ("3/Day", LimitCondition(3, 86400)),
        ("4/0.5s", LimitCondition(4, 0.5)),
        ("7 / 15 min", LimitCondition(7, 900)),
        ("1000/s burst 2000", LimitCondition(1000, 1, 2000)),
    ],
)
def test_conditions_are_read_as_people_write_them(text: str, expected: LimitCondition) -> None:
    assert LimitCondition.parse(text) == expected


@pytest.mark.parametrize(
    "text", ["", "10", "/minute", "10/", "10/fortnight", "-1/s", "ten/minute", "1/s burst", 10]
)
def test_what_is_no_condition_is_refused(text: Any) -> None:
    with pytest.raises(BadLimit):
        LimitCondition.parse(text)


def test_the_fraction_of_a_limit_is_dropped_and_text_is_read() -> None:
    limits: list[Any] = [4.9, "8", "8.7", 0, 0.5]

    assert [LimitCondition(limit, 60).limit for limit in limits] == [4, 8, 8, 0, 0]


@pytest.mark.parametrize("limit", [-1, -0.5, math.nan, math.inf, 2**63, "many", None, True, [1]])
def test_a_limit_is_a_number_from_zero_on(limit: Any) -> None:
    with pytest.raises(BadLimit):
        LimitCondition(limit, 60)


@pytest.mark.parametrize("window", [0, -1, math.nan, math.inf, 1e12, 1e308, "60", None, True])
def test_a_window_is_a_length_of_time(window: Any) -> None:
    with pytest.raises(BadWindow):
        LimitCondition(1, window)
    with pytest.raises(BadWindow):
        make_plan({"c": {"limit": 1, "window": window}})


def test_conditions_are_compared_by_what_they_allow_in_a_second() -> None:
    assert LimitCondition(90, 60).per_second() == 1.5


@pytest.mark.parametrize(
    ("conditions", "options"),
    [
        ({"c": "1/s"}, {"bucket_count": 0}),
        ({"c": "1/s"}, {"bucket_count": 10_001}),
        ({"c": "1/s"}, {"bucket_count": 2.5}),
        ({"c": "1/s"}, {"bucket_count": True}),
        ({"c": "1/s"}, {"bucket_count": 1_001}),
        ({"c": "1/s"}, {"algorithm": "gcr"}),
        ({"c": "10001/s"}, {"algorithm": "log"}),
        ({"c": "1/s burst 2"}, {}),
        ({"c": LimitCondition(1, 1, 2)}, {"algorithm": "strict"}),
        ({"c": {"limit": 1, "window": 1, "burst": 0}}, {"algorithm": "gcra"}),
        ({"c": {"limit": 0, "window": 1, "burst": 3}}, {"algorithm": "gcra"}),
        ({"c": {"limit": 1, "window": 1, "windw": 1}}, {}),
        ({"c": {"window": 1}}, {}),
        ({"c": 5}, {}),
        ({"": "1/s"}, {}),
        ([], {}),
    ],
)
def test_a_limiter_that_makes_no_sense_is_refused(conditions: Any, options: Any) -> None:
    with pytest.raises(BadLimit):
        make_plan(conditions, **options)


@pytest.mark.parametrize("amount", [-1, 1.0, "1", None, True])
def test_an_amount_is_an_integer_from_zero_on(amount: Any) -> None:
    with pytest.raises(BadLimit):
        check_amount(amount)


def test_an_unknown_condition_is_answered_with_the_nearest_one() -> None:
    with pytest.raises(UnknownCondition, match="did you mean 'by_user'"):
        make_plan({"by_user": "1/s"}).find("by_usr")


def test_a_condition_is_a_metric_with_one_unnamed_sequence() -> None:
    condition = make_plan({"c": "10/minute"}).find("c")

    [sequence] = condition.metric.sequences
    assert (sequence.name, sequence.time_step, sequence.soft_expiry) == ("", 2.0, 60)
    assert (sequence.hard_expiry, condition.metric.resolution) == (62, 1)


def test_a_name_that_no_key_can_hold_is_refused_before_keys_are_made() -> None:
    with pytest.raises(KeyTooLong, match="a condition's name has 131073 characters"):
        make_plan({"x" * (MAX_KEY_BYTES + 1): "1/s"})
