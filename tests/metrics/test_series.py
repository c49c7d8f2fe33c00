"""Series for plots."""

from typing import Any

import pytest

from holdfast.errors import BadRange, WrongMetricType
from holdfast.store import Store

STEP: Any = [{"timeStep": 10, "expiry": 3600}]


@pytest.fixture(autouse=True)
def _written(store: Store) -> None:
    store.metrics.define(
        {
            "whole": {"sequences": STEP},
            "fine": {"sequences": STEP, "resolution": 0.01},
            "load": {"sequences": STEP, "type": "gauge"},
            "wait": {"sequences": STEP, "type": "distribution"},
        }
    )
    for at, value in ((1001, 4), (1015, 6), (1020.5, 2)):
        store.metrics.incr("whole", value=value, at=at)
        store.metrics.incr("fine", value=value, at=at)
        store.metrics.set("load", None, value, at=at)
        store.metrics.record("wait", None, value, at=at)


def test_the_worked_series(store: Store) -> None:
    found = store.metrics.series("whole", None, 1000, 1040, 10, at=1027)
    assert (found.start, found.step, found.sequence) == (1000, 10, "")
    assert found.values == [4, 6, 2, None]
    assert found.partial == [False, False, True, False]

    found = store.metrics.series("whole", None, 1000, 1040, 20, at=1027)
    assert (found.values, found.partial) == ([10, 2], [False, True])

    found = store.metrics.series("fine", None, 1000, 1040, 5, at=1027)
    assert found.values == [2, 2, 3, 3, pytest.approx(1.43), pytest.approx(0.57), None, None]


def test_the_step_defaults_to_that_of_the_sequence_and_points_are_aligned(store: Store) -> None:
    found = store.metrics.series("whole", start=1003, end=1021, at=1027)

    assert (found.start, found.step, found.values) == (1000, 10, [4, 6, 2])


def test_with_whole_buckets_the_values_add_up_to_the_rate(store: Store) -> None:
    found = store.metrics.series("whole", None, 960, 1060, 20, at=2000)

    total = store.metrics.rate("whole", start=960, end=1060, at=2000).total
    assert sum(value or 0 for value in found.values) == total == 12


def test_zero_is_nothing_happened_and_null_is_not_known(store: Store) -> None:
    found = store.metrics.series("whole", None, 980, 1020, at=4611)

    assert found.values == [None, None, None, 6]  # now - hard expiry is 1001
    assert store.metrics.series("whole", None, 1030, 1040, at=1050).values == [0]


def test_rates_instead_of_totals(store: Store) -> None:
    found = store.metrics.series("whole", None, 1000, 1020, value="per_second", at=1027)

    assert found.values == [0.4, 0.6]


def test_gauges_carry_their_last_value_on(store: Store) -> None:
    def series(value: str) -> Any:
        return store.metrics.series("load", None, 990, 1050, value=value, at=1045).values

    assert series("last") == [None, 4, 6, 2, 2, 2]
    assert series("max") == [None, 4, 6, 2, None, None]
    assert series("count") == [0, 1, 1, 1, 0, 0]
    assert store.metrics.series("load", None, 1030, 1050, value="last", at=1045).values == [2, 2]


def test_distributions_give_percentiles_and_counts(store: Store) -> None:
    def series(value: str) -> Any:
        return store.metrics.series("wait", None, 1000, 1040, 20, value, at=1045).values

    assert series("count") == [2, 1]
    assert series("p100") == [6, 2]
    assert series("p99.9") == [pytest.approx(4, rel=0.01), 2]
    assert series("mean") == [5, 2]


@pytest.mark.parametrize(
    ("metric", "value"),
    [("whole", "last"), ("load", "total"), ("wait", "pp"), ("whole", "p50"), ("wait", "last")],
)
def test_a_value_that_the_type_does_not_have_is_refused(
    store: Store, metric: str, value: str
) -> None:
    with pytest.raises(WrongMetricType):
        store.metrics.series(metric, None, 1000, 1040, value=value, at=1045)


def test_a_series_has_at_most_ten_thousand_points(store: Store) -> None:
    assert len(store.metrics.series("whole", None, 0, 10_000, 1, at=1027).values) == 10_000
    refused: Any = [(0, 10_001, 1), (0, 10, 0), (0, 10, 1e-300), (0, 10, -1), (10, 0, 1)]
    for arguments in [*refused, (None, 10, 1)]:
        with pytest.raises(BadRange):
            store.metrics.series("whole", None, *arguments, at=1027)
    with pytest.raises(BadRange):
        store.metrics.series("wait", None, 1000, 1040, value="p101", at=1045)
