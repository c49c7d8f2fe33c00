"""Listing, resetting, and dropping whole buckets when they expire."""

from typing import Any

import pytest

from holdfast.errors import BadInput, UnknownMetric
from holdfast.limits import SWEPT_BUCKET_KEYS
from holdfast.store import Store
from holdfast.testing import Clock

pytestmark = pytest.mark.every_engine

SPECS: Any = {
    "a": {"sequences": [{"timeStep": 10, "expiry": 60}, {"timeStep": 100, "expiry": 600}]},
    "b": {"sequences": [{"timeStep": 10, "expiry": 60}]},
}


@pytest.fixture(autouse=True)
def _defined(store: Store, clock: Clock) -> None:
    clock.set(1000)
    store.metrics.define(SPECS)


def _stored(store: Store) -> int:
    """All keys of the store, seen or unseen."""
    with store.engine.view() as view:
        return sum(1 for _ in view.scan(b"", b"\xff" * 9))


def test_buckets_are_listed_a_page_at_a_time(store: Store) -> None:
    for number in range(7):
        store.metrics.incr("a", [number])
        store.metrics.incr("b", {"global": True, "components": [number]})
    everything = store.metrics.buckets()
    assert (len(everything.buckets), everything.next) == (21, None)

    pages, after = [], None
    while True:
        page = store.metrics.buckets(limit=4, after=after)
        pages.append(page.buckets)
        after = page.next
        if after is None:
            break

    assert [len(page) for page in pages] == [4, 4, 4, 4, 4, 1]
    assert [key for page in pages for key in page] == list(everything.buckets)
    assert len(store.metrics.buckets("b").buckets) == 7
    with pytest.raises(UnknownMetric):
        store.metrics.buckets("c")
    with pytest.raises(BadInput):
        store.metrics.buckets(after="not a page")


def test_a_bucket_is_invisible_the_moment_it_expires(store: Store) -> None:
    store.metrics.incr("b", ["x"])  # bucket 100, gone at 1010 + 70
    asked: Any = {"start": 1000, "end": 1010}

    assert store.metrics.rate("b", ["x"], **asked, at=1079.999).total == 1
    assert store.metrics.rate("b", ["x"], **asked, at=1080).total == 0
    assert len(store.metrics.buckets("b", at=1079.999).buckets) == 1
    assert store.metrics.buckets("b", at=1080).buckets == {}


def test_expiry_drops_whole_buckets_with_all_their_entities(store: Store, clock: Clock) -> None:
    before = _stored(store)
    for number in range(50):
        store.metrics.incr("b", [number])
    clock.advance(seconds=79.9)
    store.sweep()
    assert _stored(store) == before + 50

    clock.advance(seconds=0.2)
    store.sweep()

    assert _stored(store) == before


def test_each_sequence_expires_by_itself(store: Store, clock: Clock) -> None:
    store.metrics.incr("a")
    clock.advance(seconds=85)
    store.sweep()
    assert list(store.metrics.buckets("a").buckets) == ["local:WRStats:a:s1:10"]

    clock.advance(seconds=5000)
    store.sweep()
    assert store.metrics.buckets("a").buckets == {}


def test_much_is_removed_in_bounded_steps(store: Store, clock: Clock) -> None:
    before = _stored(store)
    count = 2 * SWEPT_BUCKET_KEYS + 100
    writes = [{"metric": "b", "entity": [number]} for number in range(count)]
    store.metrics.write(writes)
    clock.advance(seconds=100)

    left = []
    for _ in range(4):
        store.sweep()
        left.append(_stored(store) - before)
        clock.advance(seconds=2)

    assert left == [count - SWEPT_BUCKET_KEYS, count - 2 * SWEPT_BUCKET_KEYS, 0, 0]


def test_writes_go_on_expiring_for_ever(store: Store, clock: Clock) -> None:
    counts = []
    for _ in range(60):
        store.metrics.incr("b", ["x"])
        store.metrics.incr("b", ["y"])
        clock.advance(seconds=10)
        counts.append(_stored(store))

    assert max(counts[20:40]) == max(counts[40:])


def test_late_writes_are_taken_and_disappear_with_their_bucket(store: Store, clock: Clock) -> None:
    store.metrics.incr("b", at=930)
    store.metrics.incr("b", at=900)

    assert list(store.metrics.buckets("b").buckets) == ["local:WRStats:b::93"]
    before = _stored(store)
    clock.advance(seconds=500)
    store.sweep()
    assert _stored(store) == before - 2


def test_reset_deletes_all_buckets_of_the_entities_given(store: Store, clock: Clock) -> None:
    for at in (1000, 1015, 9999):
        store.metrics.incr("a", ["x"], at=at)
        store.metrics.incr("a", ["y"], at=at)
        store.metrics.incr("b", ["x"], at=at)
        store.metrics.incr("a", {"global": True, "components": ["x"]}, at=at)

    assert store.metrics.reset([]).deleted == 0
    assert store.metrics.reset().deleted == store.metrics.reset(None).deleted == 0
    assert store.metrics.reset([["x"]], metrics=["b"]).deleted == 3
    assert store.metrics.reset([["x"]]).deleted == 5
    assert store.metrics.reset([["x"]], namespace="other").deleted == 0
    assert {key.rsplit(":", 1)[1] for key in store.metrics.buckets("a").buckets} == {"x", "y"}
    assert store.metrics.reset([["y"], {"global": True, "components": ["x"]}]).deleted == 10
    with pytest.raises(UnknownMetric):
        store.metrics.reset(metrics=["c"])


def test_a_reset_leaves_throttles_alone(store: Store) -> None:
    store.metrics.throttle("x", 0, 1, 60)

    assert store.metrics.reset([["x"]]).deleted == 0
    assert store.metrics.throttle("x", 0, 1, 60)[0] == 1


def test_a_namespace_that_is_called_global_is_another_scope(store: Store) -> None:
    store.metrics.incr("b", ["x"], namespace="global")
    store.metrics.incr("b", {"global": True, "components": ["x"]}, 5)

    assert store.metrics.rate("b", ["x"], latest=60, namespace="global").total == 1
    shared = {"global": True, "components": ["x"]}
    assert store.metrics.rate("b", shared, latest=60, namespace="global").total == 5
