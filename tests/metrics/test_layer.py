"""Operations on a transaction: counting, flushing, and what they refuse."""

import inspect
from typing import Any, get_type_hints

import pytest

from holdfast.errors import (
    BadInput,
    BadMetricKey,
    BadMetricValue,
    BadRange,
    EmptyPrefix,
    HoldfastError,
    KeyTooLong,
    MetricOverflow,
    UnknownMetric,
    WrongMetricType,
)
from holdfast.metrics import Metrics, StoreMetrics, Write
from holdfast.store import Store, Tx
from holdfast.testing import Clock

SPECS: Any = {
    "edits": {"sequences": [{"timeStep": 10, "expiry": 600}, {"timeStep": 60, "expiry": 3600}]},
    "load": {"type": "gauge"},
    "wait": {"type": "distribution"},
    "sold": {"lifetime": True, "resolution": 0.5},
}


@pytest.fixture(autouse=True)
def _defined(store: Store) -> None:
    store.metrics.define(SPECS)


def test_an_increment_is_counted_once_in_every_sequence(store: Store) -> None:
    store.metrics.incr("edits", ["user_id", 1], 3, at=1000)

    assert store.metrics.buckets(at=1000).buckets == {
        "local:WRStats:edits::100:user_id:1": 3,
        "local:WRStats:edits:s1:16:user_id:1": 3,
    }


def test_keys_read_as_the_specification_shows_them(store: Store) -> None:
    spec = {"sequences": [{"timeStep": 10}, {"timeStep": 100}]}
    store.metrics.define({"a": spec})
    store.metrics.incr("a", {"global": True, "components": ["user_id", 1]}, at=1000)
    store.metrics.define({"a:b": {"sequences": [{"timeStep": 10}]}}, prefix=["app", "web"])
    store.metrics.incr("a:b", prefix=["app", "web"], namespace="enwiki", at=1000)

    assert "global:WRStats:a:s1:10:user_id:1" in store.metrics.buckets("a", at=1000).buckets
    listed = store.metrics.buckets(prefix=["app", "web"], at=1000).buckets
    assert listed == {"enwiki:app:web:a%3Ab::100": 1}


def test_namespaces_share_global_entities_and_nothing_else(store: Store) -> None:
    one: Any = {"namespace": "one"}
    two: Any = {"namespace": "two"}
    shared = {"global": True, "components": ["x"]}
    store.metrics.incr("edits", ["x"], **one)
    store.metrics.incr("edits", shared, **one)

    assert store.metrics.rate("edits", ["x"], latest=60, **two).total == 0
    assert store.metrics.rate("edits", shared, latest=60, **two).total == 1
    assert store.metrics.rate("edits", ["x"], latest=60, namespace="global").total == 0


def test_a_flush_is_all_or_nothing(store: Store) -> None:
    good = {"metric": "edits", "value": 2}
    refused: list[tuple[Any, type[HoldfastError]]] = [
        ({"metric": "edit"}, UnknownMetric),
        ({"metric": "edits", "value": -1}, BadMetricValue),
        ({"metric": "edits", "op": "set", "value": 1}, WrongMetricType),
        ({"metric": "edits", "op": "decr"}, BadInput),
        ({"metric": "edits", "valeu": 1}, BadInput),
        ({"metric": "edits", "at": -1}, BadRange),
        ({"metric": "wait", "op": "record", "value": 1, "count": 0}, BadMetricValue),
        ({"metric": "wait", "op": "record", "value": float("nan")}, BadMetricValue),
        ({"entity": ["x"]}, BadInput),
        ("edits", BadInput),
    ]
    for bad, error in refused:
        with pytest.raises(error), store.transaction() as tx:
            tx.metrics.write([good, bad])
    assert store.metrics.rate("edits", latest=60).total == 0

    written = store.metrics.write([good, Write(metric="edits", entity=["x"])])

    assert written.written == 2
    assert store.metrics.rate("edits", latest=60).total == 2


def test_a_refused_flush_changes_nothing_even_if_its_transaction_goes_on(store: Store) -> None:
    with store.transaction() as tx:
        with pytest.raises(BadMetricValue):
            tx.metrics.write([{"metric": "edits"}, {"metric": "edits", "value": -1}])
        tx.metrics.incr("edits", ["x"])

    assert store.metrics.rate("edits", latest=60).total == 0
    assert store.metrics.rate("edits", ["x"], latest=60).total == 1


def test_every_write_of_a_flush_may_have_its_own_time(store: Store, clock: Clock) -> None:
    clock.set(1500)
    writes = [{"metric": "edits", "at": 1000 + number} for number in range(0, 30, 5)]
    store.metrics.write(writes, at=1500)
    store.metrics.write([{"metric": "edits"}], at=1500)

    values = [value for key, value in store.metrics.buckets("edits").buckets.items() if "::" in key]
    assert values == [2, 2, 2, 1]


def test_the_lifetime_counter_outlives_all_buckets(store: Store, clock: Clock) -> None:
    store.metrics.incr("sold", ["x"], 1.5)
    clock.advance(seconds=1e6)
    store.sweep()
    store.metrics.incr("sold", ["x"], 2)

    assert store.metrics.lifetime("sold", ["x"]) == 3.5
    assert store.metrics.lifetime("sold") == 0.0
    for metric in ("edits", "load"):
        with pytest.raises(WrongMetricType):
            store.metrics.lifetime(metric)


@pytest.mark.parametrize(
    ("call", "arguments", "code"),
    [
        ("incr", {"metric": "edit"}, "unknown_metric"),
        ("incr", {"metric": None}, "unknown_metric"),
        ("incr", {"metric": "load"}, "wrong_type"),
        ("set", {"metric": "edits", "value": 1}, "wrong_type"),
        ("record", {"metric": "edits", "value": 1}, "wrong_type"),
        ("rate", {"metric": "load", "latest": 60}, "wrong_type"),
        ("gauge", {"metric": "edits", "latest": 60}, "wrong_type"),
        ("distribution", {"metric": "edits", "latest": 60}, "wrong_type"),
        ("incr", {"metric": "edits", "prefix": []}, "empty_prefix"),
        ("incr", {"metric": "edits", "prefix": [1]}, "bad_key"),
        ("incr", {"metric": "edits", "namespace": ""}, "bad_key"),
        ("incr", {"metric": "edits", "entity": [1.5]}, "bad_key"),
        ("incr", {"metric": "edits", "value": "1"}, "bad_value"),
        ("incr", {"metric": "edits", "value": 2**53 + 1}, "overflow"),
        ("incr", {"metric": "edits", "at": float("nan")}, "bad_range"),
        ("rate", {"metric": "edits", "start": 2, "end": 1}, "bad_range"),
        ("rate", {"metric": "edits", "latest": 60, "future": "guess"}, "bad_range"),
        ("top", {"metric": "edits", "latest": 60, "n": 0}, "bad_range"),
        ("top", {"metric": "edits", "latest": 60, "scope": "all"}, "bad_range"),
        ("distribution", {"metric": "wait", "latest": 60, "quantiles": [1.5]}, "bad_range"),
        ("record", {"metric": "wait", "value": float("inf")}, "bad_value"),
        ("record", {"metric": "wait", "value": 1, "count": 0}, "bad_value"),
        ("buckets", {"limit": 0}, "bad_range"),
        ("write", {"writes": None}, "bad_input"),
        ("rates", {"queries": 7}, "bad_input"),
        ("reset", {"entities": 7}, "bad_input"),
        ("peek", {"operations": "c", "conditions": {"c": "1/s"}}, "bad_input"),
    ],
)
def test_bad_input_has_a_code_of_its_own(
    store: Store, call: str, arguments: dict[str, Any], code: str
) -> None:
    with pytest.raises(HoldfastError) as caught:
        getattr(store.metrics, call)(**arguments)

    assert caught.value.code == code


def test_zero_is_accepted_and_writes_nothing(store: Store) -> None:
    store.metrics.incr("edits", value=0)

    assert store.metrics.buckets().buckets == {}


def test_a_counter_that_would_pass_its_64_bits_is_refused(store: Store) -> None:
    for _ in range(1023):
        store.metrics.incr("sold", ["x"], 2**52)
    store.metrics.write([{"metric": "sold", "entity": ["x"], "value": (2**53 - 1) / 2}])

    with pytest.raises(MetricOverflow):
        store.metrics.incr("sold", ["x"], 1)


def test_the_bounds_of_keys_are_the_stores_own(store: Store) -> None:
    with pytest.raises(KeyTooLong):
        store.metrics.incr("edits", ["x" * 140_000])
    store.metrics.incr("edits", ["x" * 5_000])
    assert store.metrics.rate("edits", ["x" * 5_000], latest=60).total == 1


def test_a_prefix_is_checked_wherever_it_is_taken(store: Store) -> None:
    for make in (store.metrics.writer, store.metrics.reader):
        with pytest.raises(EmptyPrefix):
            make(SPECS, prefix=[])
        with pytest.raises(BadMetricKey):
            make(SPECS, namespace="")
    with pytest.raises(EmptyPrefix):
        store.metrics.limiter({"c": "1/s"}, prefix=[])


def test_a_count_commits_with_everything_else_or_not_at_all(store: Store) -> None:
    def fail(tx: Tx) -> None:
        tx.metrics.incr("edits")
        raise RuntimeError

    with pytest.raises(RuntimeError):
        store.transact(fail)
    assert store.metrics.rate("edits", latest=60).total == 0

    store.transact(lambda tx: tx.metrics.incr("edits"))
    with store.view() as view:
        assert view.metrics.rate("edits", latest=60).total == 1


def test_every_operation_declares_its_types_for_the_protocols() -> None:
    for layer in (Metrics, StoreMetrics):
        for name in dir(layer):
            if not name.startswith("_"):
                hints = get_type_hints(inspect.unwrap(getattr(layer, name)))
                assert "return" in hints, name
