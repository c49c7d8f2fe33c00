"""Sequences, ranges and the arithmetic of totals, by the worked numbers of the specification."""

import math
from typing import Any

import pytest

from holdfast.errors import BadRange
from holdfast.metrics.specs import normalize
from holdfast.metrics.totals import check_time, choose_sequence, first_visible, time_range
from holdfast.store import Store

WORKED = [
    # now, start, end, future, total at resolution 1, total at resolution 0.01
    (1027, 1000, 1020, "clamp", 10, 10.0),
    (1027, 1003.5, 1027, "clamp", 11, 10.6),
    (1027, 1000, 1023.5, "clamp", 11, 11.0),
    (1027, 1000, 1016, "clamp", 8, 7.6),
    (1027, 1005, 1025, "clamp", 9, 9.43),
    (1027, 1012, 1017, "clamp", 3, 3.0),
    (1027, 1021, 1024, "clamp", 1, 0.86),
    (1030, 1020, 1030, "clamp", 2, 2.0),
    (1022, 1000, 1029, "clamp", 12, 12.0),
    (1022, 1000, 1029, "extrapolate", 19, 19.0),
    (1022, 1021, 1029, "clamp", 1, 1.0),
    (1022, 1021, 1029, "extrapolate", 8, 8.0),
    (1022, 1021, 1035, "clamp", 1, 1.0),
    (1022, 1021, 1035, "extrapolate", 2, 1.8),
    (1022, 1000, 1035, "clamp", 12, 12.0),
    (1022, 1000, 1035, "extrapolate", 12, 12.0),
]


@pytest.mark.parametrize(("now", "start", "end", "future", "whole", "fine"), WORKED)
def test_the_worked_example(
    store: Store, now: float, start: float, end: float, future: Any, whole: int, fine: float
) -> None:
    sequences = [{"timeStep": 10, "expiry": 3600}]
    store.metrics.define(
        {"whole": {"sequences": sequences}, "fine": {"sequences": sequences, "resolution": 0.01}}
    )
    for metric in ("whole", "fine"):
        for at, value in ((1001, 4), (1015, 6), (1020.5, 2)):
            store.metrics.incr(metric, value=value, at=at)

    one = store.metrics.rate("whole", start=start, end=end, future=future, at=now)
    other = store.metrics.rate("fine", start=start, end=end, future=future, at=now)

    assert (one.total, type(one.total)) == (whole, int)
    assert other.total == pytest.approx(fine)
    assert type(other.total) is float
    assert one.per_second == pytest.approx(whole / (end - start))


def test_the_example_of_the_description(store: Store) -> None:
    store.metrics.define(
        {
            "a": {"sequences": [{"timeStep": 10, "expiry": 3600}]},
            "b": {"resolution": 0.01, "sequences": [{"timeStep": 1, "expiry": 60}]},
        }
    )
    store.metrics.incr("a", ["user_id", 1], at=1000)
    store.metrics.incr("b", ["user_id", 1], 25, at=1000)

    assert store.metrics.buckets(at=1003.5).buckets == {
        "local:WRStats:a::100:user_id:1": 1,
        "local:WRStats:b::1000:user_id:1": 2500,
    }
    edits = store.metrics.rate("a", {"user_id": 1}, latest=60, at=1003.5)
    sent = store.metrics.rate("b", ["user_id", 1], latest=120, at=1003.5)
    assert (edits.total, edits.per_second) == (1, 0.016666666666666666)
    assert (sent.total, sent.per_minute) == (25.0, 12.5)


@pytest.mark.parametrize(
    ("latest", "name"), [(60, ""), (60.5, "s1"), (3600, "s1"), (3601, "day"), (90000, "day")]
)
def test_the_first_sequence_that_reaches_back_serves_the_range(latest: float, name: str) -> None:
    sequences = [
        {"timeStep": 1, "expiry": 60},
        {"timeStep": 60, "expiry": 3600},
        {"timeStep": 3600, "expiry": 86400, "name": "day"},
    ]
    metric = normalize({"m": {"sequences": sequences}})["m"]

    assert choose_sequence(metric, 100030 - latest, 100030).name == name


def test_a_range_is_given_in_one_of_two_ways() -> None:
    assert time_range(1000.0, latest=60) == (940, 1000)
    assert time_range(10.0, latest=60) == (0, 10)
    assert time_range(1000.0, start=5, end=7) == (5, 7)
    bad: list[dict[str, Any]] = [
        {},
        {"latest": 1, "start": 0},
        {"start": 1},
        {"end": 1},
        {"start": 2, "end": 1},
        {"start": -1, "end": 1},
        {"start": math.nan, "end": 1},
        {"start": 0, "end": math.inf},
        {"start": 0, "end": 1e308},
        {"start": "0", "end": 1},
        {"latest": -1},
        {"latest": math.nan},
        {"latest": math.inf},
        {"latest": "60"},
        {"latest": True},
    ]
    for arguments in bad:
        with pytest.raises(BadRange):
            time_range(1000.0, **arguments)


def test_a_range_of_no_length_has_a_total_and_no_rate(store: Store) -> None:
    reader = store.metrics.reader({"m": {}})
    promise = reader.get_rate("m", None, reader.latest(0))

    assert promise.total() == 0
    with pytest.raises(BadRange):
        promise.per_second()
    with pytest.raises(BadRange):
        store.metrics.rate("m", latest=0)


def test_a_range_that_begins_now_or_later_is_empty(store: Store) -> None:
    store.metrics.define({"m": {"sequences": [{"timeStep": 10}]}})
    store.metrics.incr("m", at=1000)

    rate = store.metrics.rate("m", start=1000, end=1010, at=1000)

    assert (rate.total, rate.per_second, rate.first_bucket, rate.last_bucket) == (0, 0, 100, 100)


def test_what_was_counted_at_this_very_instant_counts(store: Store) -> None:
    store.metrics.define({"m": {"sequences": [{"timeStep": 10}]}})
    store.metrics.incr("m", at=1000)

    assert store.metrics.rate("m", latest=60, at=1000).total == 1


def test_a_rate_says_whether_a_bucket_was_thinned(store: Store) -> None:
    store.metrics.define({"m": {"sequences": [{"timeStep": 10}]}})
    for at in (1001, 1015, 1020.5):
        store.metrics.incr("m", at=at)

    def exact(start: float, end: float) -> bool:
        return store.metrics.rate("m", start=start, end=end, at=1027).exact

    assert [exact(1000, 1020), exact(1000, 1027), exact(995, 1020)] == [True, True, True]
    assert [exact(1005, 1020), exact(1000, 1025), exact(1011, 1012)] == [False, False, False]


def test_at_most_a_hundred_thousand_buckets_are_read_at_once(store: Store) -> None:
    store.metrics.define({"m": {"sequences": [{"timeStep": 1, "expiry": 60}]}})

    store.metrics.rate("m", start=0, end=99_999.5, at=100_000)
    with pytest.raises(BadRange):
        store.metrics.rate("m", start=0, end=100_000, at=100_000)
    store.metrics.rate("m", start=99_999, end=1e12, at=100_000)  # clamped, it is short


@pytest.mark.parametrize("at", [math.nan, math.inf, -1, 253_402_300_801, "now", True])
def test_a_time_is_between_1970_and_the_year_9999(at: Any) -> None:
    with pytest.raises(BadRange):
        check_time(at)


def test_a_bucket_is_visible_until_its_hard_expiry_has_passed_after_its_end() -> None:
    [sequence] = normalize({"m": {"sequences": [{"timeStep": 10, "expiry": 60}]}})["m"].sequences

    assert first_visible(sequence, 1000 + 10 + 70 - 0.001) == 100
    assert first_visible(sequence, 1000 + 10 + 70) == 101
    assert first_visible(sequence, 5) == 0
