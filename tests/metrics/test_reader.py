"""Promises that are fetched together, as of one moment."""

import math
from contextlib import AbstractContextManager
from typing import Any

import pytest

from holdfast.engine.contract import Reader as EngineReader
from holdfast.errors import BadInput, BadRange, StoreBusy, UnknownMetric, WrongMetricType
from holdfast.metrics.entity import as_prefix
from holdfast.metrics.reader import Reader
from holdfast.metrics.scope import NAMESPACE, PREFIX
from holdfast.store import Store
from holdfast.testing import Clock

SPECS: Any = {
    "a": {"sequences": [{"timeStep": 10, "expiry": 100}, {"timeStep": 60, "expiry": 3600}]},
    "b": {"resolution": 0.5},
    "load": {"type": "gauge"},
}


def test_a_promise_fetches_nothing_until_it_is_resolved(store: Store, clock: Clock) -> None:
    reader = store.metrics.reader(SPECS)
    promise = reader.get_rate("a", None, reader.latest(60))
    store.metrics.incr("a")

    assert promise.total() == 1

    store.metrics.incr("a")
    assert promise.total() == 1


def test_the_first_promise_fetches_all_that_was_asked_for_in_one_view(store: Store) -> None:
    reader = store.metrics.reader(SPECS)
    one = reader.get_rate("a", None, reader.latest(60))
    other = reader.get_rate("b", ["x"], reader.latest(60))
    assert (one.total(), other.total()) == (0, 0.0)

    store.metrics.incr("a")
    store.metrics.incr("b", ["x"])

    assert other.total() == 0.0


def test_promises_whose_view_could_not_be_opened_are_fetched_by_the_next_one(store: Store) -> None:
    metrics = store.metrics.define(SPECS)
    store.metrics.incr("a", None, 3)
    failures = [StoreBusy("too many open views")]

    def view() -> AbstractContextManager[EngineReader]:
        if failures:
            raise failures.pop()
        return store._runner.view()

    reader = Reader(
        view, metrics, prefix=as_prefix(PREFIX), namespace=NAMESPACE, clock=store.read_clock
    )
    promise = reader.get_rate("a", None, reader.latest(60))
    with pytest.raises(StoreBusy):
        promise.total()

    assert promise.total() == 3


def test_what_was_found_stays_and_what_was_not_is_asked_for_again(
    store: Store, clock: Clock
) -> None:
    clock.set(1005)
    store.metrics.define(SPECS)
    store.metrics.incr("a", at=1001)
    reader = store.metrics.reader(SPECS)
    assert reader.get_rate("a", None, reader.latest(50)).total() == 1

    store.metrics.incr("a", at=1002)  # into a bucket that was found
    store.metrics.incr("a", at=991)  # into one that was not

    assert reader.get_rate("a", None, reader.latest(60)).total() == 2
    fresh = store.metrics.reader(SPECS)
    assert fresh.get_rate("a", None, fresh.latest(60)).total() == 3


def test_a_reader_keeps_its_time_until_it_is_told_otherwise(store: Store, clock: Clock) -> None:
    clock.set(1000)
    reader = store.metrics.reader(SPECS)
    assert reader.latest(10) == (990, 1000)

    clock.advance(seconds=5)
    assert reader.latest(10) == (990, 1000)

    reader.reset_current_time()
    assert reader.latest(10) == (995, 1005)


def test_a_promise_speaks_of_the_time_at_which_it_was_made(store: Store) -> None:
    store.metrics.define(SPECS)
    store.metrics.incr("a", None, 5, at=1_000)
    reader = store.metrics.reader(SPECS)
    reader.set_current_time(1_010)
    promise = reader.get_rate("a", None, reader.latest(60))

    reader.set_current_time(1_000_000)  # by then the bucket has expired

    assert promise.total() == 5


def test_rates_are_given_for_four_lengths_of_time(store: Store, clock: Clock) -> None:
    store.metrics.define(SPECS)
    store.metrics.incr("b", value=3)
    reader = store.metrics.reader(SPECS)
    promise = reader.get_rate("b", None, reader.latest(1200))

    assert promise.total() == 3.0
    assert promise.per_second() == 0.0025
    assert promise.per_minute() == 0.15
    assert promise.per_hour() == 9.0
    assert promise.per_day() == 216.0
    assert (promise.sequence, promise.exact) == ("", True)


def test_lists_and_maps_of_promises_are_resolved_with_their_keys(store: Store) -> None:
    store.metrics.define(SPECS)
    store.metrics.incr("a", ["x"], 6)
    reader = store.metrics.reader(SPECS)
    rates = reader.get_rates(["a", "b"], ["x"], reader.latest(60))

    assert reader.total(rates) == {"a": 6, "b": 0.0}
    assert reader.per_second(rates) == {"a": 0.1, "b": 0.0}
    assert reader.per_minute(list(rates.values())) == [6.0, 0.0]
    assert reader.per_hour(rates) == {"a": 360.0, "b": 0.0}
    assert reader.per_day([rates["a"]]) == [8640.0]


def test_an_unknown_metric_is_refused_when_it_is_asked_for(store: Store) -> None:
    reader = store.metrics.reader(SPECS)

    with pytest.raises(UnknownMetric):
        reader.get_rate("c", None, reader.latest(60))
    with pytest.raises(WrongMetricType):
        reader.get_rate("load", None, reader.latest(60))


def test_a_reader_in_a_transaction_sees_its_writes(store: Store) -> None:
    with store.transaction() as tx:
        tx.metrics.define(SPECS)
        tx.metrics.incr("a")
        reader = tx.metrics.reader(SPECS)

        assert reader.get_rate("a", None, reader.latest(60)).total() == 1


def test_a_reader_may_extrapolate(store: Store) -> None:
    store.metrics.define(SPECS)
    store.metrics.incr("a", at=1000, value=2)
    reader = store.metrics.reader(SPECS, future="extrapolate")
    reader.set_current_time(1002)

    assert reader.get_rate("a", None, reader.time_range(1000, 1009)).total() == 9


def test_many_rates_are_one_snapshot_with_the_arguments_of_rate(store: Store) -> None:
    store.metrics.define(SPECS)
    store.metrics.incr("a", ["x"])
    queries = [{"metric": "a", "entity": ["x"], "latest": 60}, {"metric": "b", "latest": 60}]

    assert [rate.total for rate in store.metrics.rates(queries)] == [1, 0.0]
    for bad in ({"metric": "a", "latst": 3}, {"latest": 3}, "a"):
        with pytest.raises(BadInput):
            store.metrics.rates([bad])  # type: ignore[list-item]  # on purpose


@pytest.mark.parametrize("at", [math.nan, math.inf, -1, 253_402_300_800, "now", True])
def test_a_time_that_is_none_is_refused(store: Store, at: Any) -> None:
    reader = store.metrics.reader({"edits": {}})

    with pytest.raises(BadRange):
        reader.set_current_time(at)
