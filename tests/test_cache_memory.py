"""What caches keep is bounded in bytes, and what they keep for a space goes with it."""

import gc
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from holdfast import Store
from holdfast.bounded_cache import BoundedCache, BoundedDict, SharedBound
from holdfast.errors import InvalidEventSchema
from holdfast.events.deployment import _known
from holdfast.events.times import Calendar, labels
from holdfast.jobs.space_keys import keys_of
from holdfast.keys import pack
from holdfast.limits import MAX_CACHED_BYTES, MAX_NAMES_KEPT_PACKED

MINUTE_MS = 60_000
SOME_BYTES = 64 * 1024  # that Python itself may keep: a dict that has grown, lists of free objects


def kept_bytes(work: Callable[[int], object], times: int) -> int:
    """Returns the memory that is in use after work of which nothing is needed any more."""
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for number in range(times):
            work(number)
        gc.collect()
        return tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()


def test_labels_of_more_minutes_than_a_day_has_are_not_kept() -> None:
    def read(number: int) -> None:
        labels(number * MINUTE_MS, Calendar())

    assert kept_bytes(read, 1_500) < 1024 * 1024


def test_names_of_all_spaces_share_a_bound() -> None:
    def ask(number: int) -> None:
        keys = keys_of(pack(10**6 + number // 30))
        keys.queue(f"queue {number}")
        keys.worker(f"worker {number}")

    assert kept_bytes(ask, 2 * MAX_NAMES_KEPT_PACKED) < 2 * MAX_CACHED_BYTES


def test_nothing_is_kept_for_a_space_that_was_dropped(store: Store) -> None:
    def use(number: int) -> None:
        space = store.space("tenant")
        space.jobs.put("mill", id="only")
        space.metrics.define({"own": {"sequences": [{"timeStep": 1, "expiry": 60}]}})
        space.metrics.incr("own")
        space.metrics.limiter({"hits": "5/second"}).try_incr("hits", ["ann"])
        space.tables.create(TABLE)
        space.tables.put("pages", {"title": "home"})
        space.entities.deploy(SCHEMA)
        space.events.deploy({"seen": [{"targets": ["[mark]"], "add": "value"}]})
        space.events.send({"name": "seen", "attributes": {"mark": "a", "value": "b"}})
        store.drop_space("tenant")

    kept_bytes(use, 2)
    few, many = kept_bytes(use, 2), kept_bytes(use, 20)

    assert many - few < SOME_BYTES


TABLE = {
    "table": "pages",
    "attributes": {"title": "string"},
    "index": [{"attribute": "title", "type": "hash"}],
}
SCHEMA = "schema: shop\ntables: {T: {primary: {type: random}, columns: {c: {type: Text}}}}\n"


def deploy_large(space: Any, number: int) -> None:
    """Deploys a schema of almost the largest size that fits."""
    name = f"{number}" + "x" * 500
    space.events.deploy({f"{name}.{each}": [] for each in range(1_900)}, f"schema {number}")


def test_schemas_of_many_spaces_are_not_kept_without_end(store: Store) -> None:
    for number in range(8):
        space = store.space(f"tenant {number}")
        deploy_large(space, number)
        space.events.send({"name": "seen"})

    assert 0 < len(_known) <= 4


def test_handlers_are_compiled_for_the_events_that_come(store: Store) -> None:
    handler = {"targets": ["[mark]"], "add": "value"}
    store.events.deploy({f"seen {number}": [handler] for number in range(1_000)})

    store.events.send({"name": "seen 7", "attributes": {"mark": "a", "value": "b"}})

    [(compiled, _)] = [known for known in _known.values() if len(known[0]._by_prefix) == 1_000]
    assert list(compiled._compiled) == ["seen 7"]


def test_all_schemas_of_a_space_share_a_bound(store: Store) -> None:
    for number in range(4):
        deploy_large(store, number)

    with pytest.raises(InvalidEventSchema, match="all schemas would have"):
        deploy_large(store, 4)
    store.events.withdraw("schema 0")
    deploy_large(store, 4)


def test_the_latest_is_kept_however_large_it_is() -> None:
    kept: BoundedDict[str, int] = BoundedDict(entries=10, most_bytes=100)

    kept.keep("a", 1, 60)
    kept.keep("b", 2, 60)
    kept.keep("c", 3, 1_000)

    assert kept == {"c": 3}


def test_caches_that_share_a_bound_are_dropped_together() -> None:
    caches: list[BoundedCache[str, int]] = []

    def drop() -> None:
        for each in caches:
            each.clear()

    bound = SharedBound(3, drop)
    caches += [BoundedCache(len, entries=10, shared=bound) for _ in range(2)]

    for key in ("a", "b"):
        for cache in caches:
            cache[key]

    assert [dict(each) for each in caches] == [{}, {"b": 1}]
