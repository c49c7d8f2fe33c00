"""Quantiles within a relative accuracy, merged over buckets and entities."""

import random
from typing import Any

import pytest

from holdfast.errors import BadInput, BadMetricSpec, MetricOverflow
from holdfast.metrics import sketches
from holdfast.store import Store
from holdfast.testing import Clock


@pytest.fixture(autouse=True)
def _defined(store: Store, clock: Clock) -> None:
    clock.set(1000)
    sequences = [{"timeStep": 10, "expiry": 60}]
    store.metrics.define(
        {
            "wait": {"type": "distribution", "sequences": sequences},
            "rough": {"type": "distribution", "relative_accuracy": 0.1, "max_bins": 8},
        }
    )


def _write(store: Store, values: Any, entity: Any = None, at: float = 1000) -> None:
    writes = [
        {"metric": "wait", "op": "record", "value": value, "entity": entity, "at": at}
        for value in values
    ]
    store.metrics.write(writes)


def test_the_worked_quantiles_of_one_to_a_hundred(store: Store) -> None:
    _write(store, range(1, 101))

    found = store.metrics.distribution("wait", latest=60, quantiles=[0.5, 0.9, 0.95, 0.99, 0, 1])

    assert (found.count, found.sum, found.min, found.max, found.mean) == (100, 5050, 1, 100, 50.5)
    assert {name: round(value or 0, 3) for name, value in found.quantiles.items()} == {
        "0.5": 49.903,
        "0.9": 89.130,
        "0.95": 94.642,
        "0.99": 98.505,
        "0": 1,
        "1": 100,
    }
    assert [sketches.bin_of(value, 0.01) for value in (50, 90, 95, 99)] == [196, 225, 228, 230]


def test_the_worked_quantiles_with_zeros_and_negatives(store: Store) -> None:
    _write(store, [-5, -1, 0, 0, 3, 12, 250])

    found = store.metrics.distribution("wait", latest=60, quantiles=[0.25, 0.5, 0.75])

    assert [round(value or 0, 3) for value in found.quantiles.values()] == [-0.990, 0, 2.974]


def test_buckets_and_entities_merge_without_loss(store: Store) -> None:
    _write(store, range(1, 51), ["a"], at=1000)
    _write(store, range(51, 91), ["a"], at=1020)
    _write(store, range(91, 101), ["b"], at=1045)

    merged = store.metrics.distribution("wait", entities=[["a"], ["b"]], latest=60, at=1050)

    assert (merged.count, merged.sum) == (100, 5050)
    assert round(merged.quantiles["0.5"] or 0, 3) == 49.903
    assert store.metrics.distribution("wait", ["a"], latest=60, at=1050).count == 90
    assert store.metrics.distribution("wait", ["a"], latest=35, at=1050).count == 40
    assert store.metrics.distribution("wait", ["a"], start=1015, end=1020, at=1050).count == 0


def test_an_empty_distribution_has_a_count_of_zero_and_nothing_else(store: Store) -> None:
    found = store.metrics.distribution("wait", latest=60)

    assert (found.count, found.sum, found.min, found.max, found.mean) == (0, *[None] * 4)
    assert found.quantiles == {"0.5": None, "0.9": None, "0.99": None}


def test_a_value_may_occur_several_times(store: Store) -> None:
    store.metrics.record("wait", None, 2, 99)
    store.metrics.record("wait", None, 1000)

    found = store.metrics.distribution("wait", latest=60)

    assert (found.count, found.sum) == (100, 1198)
    assert found.quantiles["0.9"] == pytest.approx(2, 0.01)


def test_beyond_max_bins_the_lowest_are_merged_upward(store: Store) -> None:
    for exponent in range(40):
        store.metrics.record("rough", None, 2.0**exponent)

    found = store.metrics.distribution("rough", latest=3600, quantiles=[0, 0.1, 1, 0.99])

    assert found.count == 40
    assert found.quantiles["1"] == 2.0**39
    assert found.quantiles["0.99"] == pytest.approx(2.0**38, rel=0.1)
    assert (found.quantiles["0.1"] or 0) > 2.0**30


@pytest.mark.parametrize("accuracy", [0.005, 0.01, 0.1])
@pytest.mark.parametrize("seed", range(5))
def test_every_quantile_is_within_the_accuracy_of_the_value_at_its_rank(
    accuracy: float, seed: int
) -> None:
    chance = random.Random(seed)
    values = [chance.choice([-1, 1, 1]) * chance.lognormvariate(0, 4) for _ in range(300)]
    values += [0.0] * 10
    cell = sketches.EMPTY
    for value in values:
        cell = sketches.with_value(cell, value, 1, accuracy, 4096)
    values.sort()

    for q in (0, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.999, 1):
        exact = values[int(q * (len(values) - 1))]
        assert sketches.quantile(cell, q, accuracy) == pytest.approx(exact, rel=accuracy * 1.0001)


def test_merging_is_the_same_as_recording_in_one(store: Store) -> None:
    chance = random.Random(1)
    parts = [[chance.gauss(0, 10) for _ in range(50)] for _ in range(5)]
    cells = []
    for part in parts:
        cell = sketches.EMPTY
        for value in part:
            cell = sketches.with_value(cell, value, 1, 0.01, 2048)
        cells.append(cell)
    whole = sketches.EMPTY
    for value in [value for part in parts for value in part]:
        whole = sketches.with_value(whole, value, 1, 0.01, 2048)

    merged = sketches.merged(cells, 2048)

    assert (merged.positive, merged.negative) == (whole.positive, whole.negative)
    assert merged.sum == pytest.approx(whole.sum)


def test_the_largest_doubles_have_quantiles_too(store: Store) -> None:
    store.metrics.define({"t": {"type": "distribution"}})
    for value in (1.5e308, 1.6e308, 1.79e308):
        store.metrics.record("t", None, value)

    reading = store.metrics.distribution("t", latest=60, quantiles=[0, 0.5, 1])

    assert reading.quantiles["0"] == 1.5e308
    assert reading.quantiles["0.5"] == pytest.approx(1.6e308, rel=0.01)
    assert reading.quantiles["1"] == 1.79e308


@pytest.mark.parametrize("count", [2**53 + 1, 2**70])
def test_a_value_occurs_at_most_so_often_in_one_call(store: Store, count: int) -> None:
    store.metrics.define({"t": {"type": "distribution"}})

    with pytest.raises(MetricOverflow):
        store.metrics.record("t", None, 1.0, count)


def test_a_count_ends_with_the_64_bits_that_are_stored(store: Store) -> None:
    store.metrics.define({"t": {"type": "distribution"}})
    write: Any = {"metric": "t", "op": "record", "value": 1.0, "count": 2**53}
    store.metrics.write([write] * 1_023)

    with pytest.raises(MetricOverflow):
        store.metrics.write([write] * 2)

    assert store.metrics.distribution("t", latest=60).count == 1_023 * 2**53


@pytest.mark.parametrize("accuracy", [0, 1, -0.5, 1e-17])
def test_an_accuracy_that_no_double_can_keep_is_refused(store: Store, accuracy: float) -> None:
    with pytest.raises(BadMetricSpec):
        store.metrics.define({"t": {"type": "distribution", "relative_accuracy": accuracy}})


def test_quantiles_are_a_list(store: Store) -> None:
    store.metrics.define({"t": {"type": "distribution"}})
    alone: Any = 0.5

    with pytest.raises(BadInput):
        store.metrics.distribution("t", latest=60, quantiles=alone)
