"""Half away from zero, on 15 significant digits."""

import math

import pytest

from holdfast.errors import BadMetricValue, MetricOverflow
from holdfast.metrics.rounding import round15, scaled, units_of


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (2.5, 3),
        (-2.5, -3),
        (2.4999, 2),
        (127.49999999999999, 128),
        (28.499999999999996, 29),
        (0.5, 1),
        (0.49999999999999994, 1),  # 0.5 is added to it in double arithmetic, and that rounds up
        (0.0, 0),
        (-0.4, 0),
        (1e15 + 0.5, 10**15),
        (123456789012345.5, 123456789012346),
        (1e300, int(1e300)),
        (7, 7),
    ],
)
def test_a_half_goes_away_from_zero_even_if_its_double_misses_it(
    number: float, expected: int
) -> None:
    assert round15(number) == expected


def test_values_become_units_as_a_person_expects() -> None:
    assert units_of(0.285, 0.01) == 29
    assert units_of(25, 0.01) == 2500
    assert units_of(14, 10) == 1
    assert units_of(15, 10) == 2
    assert units_of(0.004, 0.01) == 0
    assert units_of(-1.5, 0.5, signed=True) == -3


@pytest.mark.parametrize(
    "value", [-1, -0.001, math.nan, math.inf, -math.inf, "5", None, True, [1], b"1"]
)
def test_a_counter_takes_only_numbers_from_zero_on(value: object) -> None:
    with pytest.raises(BadMetricValue):
        units_of(value, 1)


@pytest.mark.parametrize("value", [2**53 + 1, 2**60, 1e300, 10**400])
def test_more_units_than_a_double_tells_apart_are_refused(value: float) -> None:
    with pytest.raises(MetricOverflow):
        units_of(value, 1)
    with pytest.raises(MetricOverflow):
        units_of(value, 0.5)


def test_a_total_is_whole_exactly_if_the_resolution_was_written_so() -> None:
    assert (scaled(943, 0.01), type(scaled(943, 0.01))) == (9.43, float)
    assert (scaled(3, 10), type(scaled(3, 10))) == (30, int)
    assert (scaled(3, 1.0), type(scaled(3, 1.0))) == (3.0, float)
