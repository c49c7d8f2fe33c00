"""One call reads a bounded number of buckets, however many queries or entities it names."""

from collections.abc import Callable
from typing import Any

import pytest

from holdfast.errors import BadRange
from holdfast.store import Store
from holdfast.testing import Clock

MOST = 40
RANGE: Any = {"start": 900, "end": 999}  # 10 buckets


@pytest.fixture(autouse=True)
def _written(store: Store, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("totals", "top"):
        monkeypatch.setattr(f"holdfast.metrics.{module}.MAX_BUCKETS_PER_CALL", MOST)
    clock.set(1000)
    sequences = [{"timeStep": 10, "expiry": 600}]
    store.metrics.define({"hits": {"sequences": sequences}})
    store.metrics.define({"times": {"type": "distribution", "sequences": sequences}})
    for at in range(900, 1000, 10):
        for entity in range(4):
            store.metrics.incr("hits", [entity], at=at)


def rates(store: Store, count: int) -> object:
    return store.metrics.rates([{"metric": "hits", "entity": [0], **RANGE}] * count)


def distribution(store: Store, count: int) -> object:
    return store.metrics.distribution("times", entities=[[each] for each in range(count)], **RANGE)


def reset(store: Store, count: int) -> object:
    return store.metrics.reset([[each] for each in range(count)], ["hits"])


def top(store: Store, count: int) -> object:
    if count == 5:
        store.metrics.incr("hits", [5], at=999)
    return store.metrics.top("hits", **RANGE)


@pytest.mark.parametrize("call", [rates, distribution, reset, top])
def test_a_call_that_would_read_too_many_buckets_is_refused(
    store: Store, call: Callable[[Store, int], object]
) -> None:
    with pytest.raises(BadRange, match=f"more than {MOST} buckets"):
        call(store, 5)


@pytest.mark.parametrize("call", [rates, distribution, reset, top])
def test_a_call_may_read_that_many(store: Store, call: Callable[[Store, int], object]) -> None:
    assert call(store, 4)


def test_a_refused_reset_deletes_nothing(store: Store) -> None:
    with pytest.raises(BadRange):
        reset(store, 5)

    assert store.metrics.rate("hits", [0], **RANGE).total > 0


def test_a_reset_of_metrics_without_buckets_is_bounded_too(store: Store) -> None:
    names = [f"empty{each}" for each in range(3)]
    store.metrics.define({name: {} for name in names})

    with pytest.raises(BadRange, match=f"more than {MOST} buckets"):
        store.metrics.reset([[each] for each in range(14)], names)


def test_a_reset_counts_an_entity_and_a_metric_once(store: Store) -> None:
    assert store.metrics.reset([[0], [0], ["0"]] * 100, ["hits"] * 100).deleted == 10
