"""Increments that add up in memory and are stored together."""

import math
import signal
import threading
from typing import Any

import pytest

import holdfast
from holdfast.errors import (
    BadMetricValue,
    MetricOverflow,
    StoreClosed,
    UnknownMetric,
    WrongMetricType,
)
from holdfast.metrics import GlobalEntityKey, LocalEntityKey, Writer
from holdfast.metrics.entity import as_prefix
from holdfast.metrics.records import Written
from holdfast.metrics.scope import NAMESPACE, PREFIX
from holdfast.metrics.writer import _edges
from holdfast.store import Store, Tx
from holdfast.testing import Clock
from tests.stores import Stores

SPECS: Any = {
    "edits": {"sequences": [{"timeStep": 10, "expiry": 600}, {"timeStep": 60, "expiry": 3600}]},
    "bytes": {"resolution": 0.01, "sequences": [{"timeStep": 10, "expiry": 600}]},
    "load": {"type": "gauge"},
    "wait": {"type": "distribution"},
}
USER = LocalEntityKey(["user_id", 1])


@pytest.fixture
def writer(store: Store) -> Writer:
    return store.metrics.writer(SPECS)


def _buckets(store: Store) -> dict[str, int]:
    return store.metrics.buckets().buckets


def test_nothing_is_visible_before_the_flush_and_all_after_it(
    store: Store, clock: Clock, writer: Writer
) -> None:
    clock.set(1000)
    writer.incr("edits", USER)
    writer.incr("edits", USER, 2)
    writer.incr("edits", GlobalEntityKey(["user_id", 1]))
    assert _buckets(store) == {}

    writer.flush()

    assert _buckets(store) == {
        "global:WRStats:edits::100:user_id:1": 1,
        "local:WRStats:edits::100:user_id:1": 3,
        "global:WRStats:edits:s1:16:user_id:1": 1,
        "local:WRStats:edits:s1:16:user_id:1": 3,
    }


def test_an_increment_lands_in_the_bucket_of_its_own_time_however_late_the_flush(
    store: Store, clock: Clock, writer: Writer
) -> None:
    for at in (1000, 1009.999, 1010, 1060, 1005):
        clock.set(at)
        writer.incr("edits")
    clock.set(1100)
    writer.flush()

    assert _buckets(store) == {
        "local:WRStats:edits::100": 3,
        "local:WRStats:edits::101": 1,
        "local:WRStats:edits::106": 1,
        "local:WRStats:edits:s1:16": 4,
        "local:WRStats:edits:s1:17": 1,
    }


def test_each_call_is_rounded_by_itself(store: Store, writer: Writer) -> None:
    for _ in range(10):
        writer.incr("bytes", value=0.004)
    writer.incr("bytes", value=0.04)
    writer.flush()

    assert list(_buckets(store).values()) == [4]


def test_a_block_flushes_when_it_ends_and_also_when_it_raises(store: Store) -> None:
    with store.metrics.writer(SPECS) as writer:
        writer.incr("edits")
    assert store.metrics.rate("edits", latest=600).total == 1

    def fail() -> None:
        with store.metrics.writer(SPECS) as writer:
            writer.incr("edits")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert store.metrics.rate("edits", latest=600).total == 2


def test_discard_empties_the_buffer(store: Store, writer: Writer) -> None:
    writer.incr("edits")
    writer.discard()
    writer.flush()

    assert _buckets(store) == {}


def test_a_flush_with_nothing_to_write_does_nothing(store: Store, writer: Writer) -> None:
    writer.incr("edits", value=0)
    writer.flush()
    writer.flush()

    assert _buckets(store) == {}


def test_reset_all_empties_the_buffer_and_deletes_the_buckets_of_the_entities_given(
    store: Store, clock: Clock, writer: Writer
) -> None:
    for entity in (None, USER, ["other"]):
        writer.incr("edits", entity)
    writer.set_current_time(clock() + 5000)  # dated into the future
    writer.incr("edits")
    writer.reset_current_time()
    writer.flush()
    writer.incr("edits", ["other"])

    writer.reset_all([])
    assert len(_buckets(store)) == 8
    writer.reset_all()
    assert len(_buckets(store)) == 4
    writer.reset_all([USER])
    writer.flush()

    assert [key.split(":", 5)[5] for key in _buckets(store)] == ["other", "other"]


def test_a_frozen_clock_runs_again(store: Store, clock: Clock, writer: Writer) -> None:
    writer.set_current_time(1000)
    writer.incr("bytes")
    writer.reset_current_time()
    clock.set(1050)
    writer.incr("bytes")
    writer.flush()

    assert list(_buckets(store)) == ["local:WRStats:bytes::100", "local:WRStats:bytes::105"]


def test_bad_input_is_refused_before_anything_happens(store: Store, writer: Writer) -> None:
    for error, metric, value in (
        (UnknownMetric, "edit", 1),
        (BadMetricValue, "edits", -1),
        (BadMetricValue, "edits", "1"),
        (MetricOverflow, "edits", 2**54),
        (WrongMetricType, "load", 1),
    ):
        with pytest.raises(error):
            writer.incr(metric, None, value)  # type: ignore[arg-type]  # on purpose
    with pytest.raises(WrongMetricType):
        writer.set("edits", None, 3)
    with pytest.raises(WrongMetricType):
        writer.record("load", None, 3)
    writer.incr("edits")
    with pytest.raises(BadMetricValue):
        writer.incr("edits", None, -1)
    writer.flush()

    assert store.metrics.rate("edits", latest=600).total == 1


def test_gauges_and_distributions_are_buffered_too(store: Store, writer: Writer) -> None:
    writer.set("load", None, 3)
    writer.add("load", None, 2)
    writer.record("wait", None, 0.25, 3)
    assert store.metrics.gauge("load", latest=600).last is None

    writer.flush()

    assert store.metrics.gauge("load", latest=600).last == 5
    assert store.metrics.distribution("wait", latest=600).count == 3


def test_threads_share_a_writer_and_nothing_is_lost(store: Store, writer: Writer) -> None:
    def work() -> None:
        for number in range(500):
            writer.incr("edits", [number % 5])
            if number % 100 == 0:
                writer.flush()

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    writer.flush()

    totals = [store.metrics.rate("edits", [number], latest=600).total for number in range(5)]
    assert totals == [800] * 5


def test_a_writer_flushes_by_itself_when_it_holds_ten_thousand_keys(
    store: Store, writer: Writer
) -> None:
    for number in range(4_999):
        writer.incr("edits", [number])
    assert _buckets(store) == {}

    writer.incr("edits", ["last"])

    assert len(store.metrics.buckets(limit=10_000).buckets) == 10_000


def test_a_writer_that_is_dropped_full_warns_and_flushes(store: Store) -> None:
    writer = store.metrics.writer(SPECS)
    writer.incr("edits")

    with pytest.warns(ResourceWarning, match="2 keys"):
        del writer

    assert store.metrics.rate("edits", latest=600).total == 1


def test_a_failed_flush_keeps_the_buffer(stores: Stores, clock: Clock) -> None:
    first = holdfast.open(stores.url(), durability="interval", clock=clock)
    writer = first.metrics.writer(SPECS)
    writer.incr("edits")
    first.close()

    with pytest.raises(StoreClosed):
        writer.flush()

    assert writer._keys == 2
    writer.discard()


def test_a_writer_in_a_transaction_is_undone_with_it(store: Store) -> None:
    def fail(tx: Tx) -> None:
        with tx.metrics.writer(SPECS) as writer:
            writer.incr("edits")
        assert tx.metrics.rate("edits", latest=600).total == 1
        raise RuntimeError

    with pytest.raises(RuntimeError):
        store.transact(fail)

    store.metrics.define(SPECS)
    assert store.metrics.rate("edits", latest=600).total == 0


@pytest.mark.parametrize("step", [0.1, 0.3, 7.5, 10, 1 / 3, 60 / 7])
def test_the_edges_of_a_bucket_agree_with_the_division_that_names_it(step: float) -> None:
    for number in range(2_000):
        for at in (number * step, 1e9 + number * 0.137, 1.7e9 + number * step):
            first, behind = _edges(step, at)
            bucket = int(at / step)
            assert first <= at < behind
            assert int(first / step) == bucket == int(math.nextafter(behind, 0) / step)


def test_what_no_flush_could_store_is_refused_at_once(writer: Writer) -> None:
    with pytest.raises(UnknownMetric):
        writer.incr(["a"])  # type: ignore[arg-type]  # on purpose
    for count in (0, -1, 1.5, True):
        with pytest.raises(BadMetricValue):
            writer.record("wait", None, 1.0, count)  # type: ignore[arg-type]  # on purpose


def test_very_many_units_of_a_fraction_are_stored_to_the_last_one(store: Store) -> None:
    specs = {"m": {"resolution": 0.01}}
    values = [61_234_567_890_123.47, 9_999_999_999_999.99, 0.01, 31_000_000_000_000.07]

    with store.metrics.writer(specs) as writer:
        writer.set_current_time(1_000)
        for value in values:
            writer.incr("m", None, value)

    for value in values:
        store.metrics.incr("m", ["one by one"], value, at=1_000)
    buffered, direct = store.metrics.buckets(at=1_000).buckets.values()
    assert buffered == direct


def test_a_flush_that_was_interrupted_is_not_stored_twice(store: Store) -> None:
    class Interrupted:
        """The metrics of a store, with a Ctrl-C as soon as the first commit is over."""

        def __init__(self) -> None:
            self.reset = store.metrics.reset
            self.signals = [signal.SIGINT]

        def write(self, writes: list[Any], **where: Any) -> Written:
            written = store.metrics.write(writes, **where)
            while self.signals:
                signal.raise_signal(self.signals.pop())
            return written

    metrics = store.metrics.define(SPECS)
    writer = Writer(
        Interrupted(),
        metrics,
        prefix=as_prefix(PREFIX),
        namespace=NAMESPACE,
        clock=store.read_clock,
    )
    writer.incr("edits")
    with pytest.raises(KeyboardInterrupt):
        writer.flush()

    writer.flush()

    assert store.metrics.rate("edits", latest=60).total == 1
