"""Secondary indexes: exact after every operation."""

import math
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.errors import RowKeyTooLong
from holdfast.keys import prefix_range
from holdfast.store import Store
from holdfast.tables import catalogue, row_codec
from holdfast.tables.layout import keys_of
from holdfast.testing import Clock
from tests.repetitions import repeated
from tests.stores import Stores
from tests.tables.schemas import (
    Schema,
    example,
    hash_on,
    proj_of,
    range_on,
    simple,
    static_on,
    version,
)  # fmt: skip

INDEXED = example(
    secondaryIndexes={
        "by_tid": [hash_on("tid"), proj_of("length")],
        "by_value": [hash_on("value"), range_on("length"), proj_of("property")],
    }
)


def names(store: Store, value: str, **query: Any) -> list[str]:
    items = store.tables.get("example", {"value": value}, index="by_value", **query).items
    return [item["name"] for item in items]


def put(store: Store, name: str, second: float, value: str | None, length: int | None = 0) -> None:
    store.tables.put(
        "example",
        {"name": name, "property": "p", "tid": version(second), "value": value, "length": length},
    )


def test_an_index_query_finds_rows_in_its_own_order(store: Store) -> None:
    store.tables.create(INDEXED)
    for name, length in (("a", 3), ("b", 1), ("c", 2), ("d", 1)):
        put(store, name, 1, "x", length)

    assert names(store, "x") == ["d", "b", "c", "a"]  # the implicit `name` is descending
    by_length = {"value": "x", "length": {"ge": "2"}}
    found = store.tables.get("example", by_length, index="by_value").items
    assert [item["name"] for item in found] == ["c", "a"]
    assert names(store, "x", order={"length": "desc"}) == ["a", "c", "b", "d"]


def test_items_have_the_attributes_of_the_index(store: Store) -> None:
    store.tables.create(INDEXED)
    put(store, "a", 1, "x", 3)

    assert store.tables.get("example", {"value": "x"}, index="by_value").items == [
        {"value": "x", "length": 3, "name": "a", "property": "p", "tid": version(1)}
    ]
    assert store.tables.get("example", {"tid": version(1)}, index="by_tid").items == [
        {"tid": version(1), "name": "a", "property": "p", "length": 3}
    ]


def test_a_projection_may_reach_beyond_the_index(store: Store) -> None:
    schema = example(
        attributes={**example()["attributes"], "note": "string", "more": "blob"},
        index=[hash_on("name"), static_on("note"), range_on("property"), range_on("tid", "desc")],
        secondaryIndexes={"by_value": [hash_on("value")]},
    )
    store.tables.create(schema)
    row = {"name": "a", "property": "p", "tid": version(1), "value": "x", "more": b"m"}
    store.tables.put("example", {**row, "note": "static"})

    def found(*proj: str) -> list[Any]:
        query = {"index": "by_value", "proj": list(proj), "form": "json"}
        return store.tables.get("example", {"value": "x"}, **query).items  # type: ignore[arg-type]

    assert found("name", "value") == [{"name": "a", "value": "x"}]
    assert found("more", "name") == [{"more": "bQ==", "name": "a"}]
    assert found("note") == [{"note": "static"}]
    assert found("note", "more") == [{"note": "static", "more": "bQ=="}]


def test_a_record_is_found_by_what_it_is_now(store: Store) -> None:
    store.tables.create(INDEXED)
    put(store, "a", 1, "old")
    put(store, "a", 2, "new")

    assert names(store, "old") == []
    assert names(store, "new") == ["a"]


def test_a_late_old_revision_changes_nothing(store: Store) -> None:
    store.tables.create(INDEXED)
    put(store, "a", 2, "new")
    put(store, "a", 1, "old")

    assert names(store, "old") == []
    assert names(store, "new") == ["a"]
    assert store.tables.get("example", {"tid": version(1)}, index="by_tid").count == 1


def test_an_index_is_sparse(store: Store) -> None:
    store.tables.create(INDEXED)
    put(store, "a", 1, "x", 5)
    put(store, "b", 1, None, 5)
    put(store, "c", 1, "x", None)
    put(store, "a", 2, "x", None)

    assert store.tables.get("example", index="by_value").count == 0


def test_an_unversioned_table_indexes_every_row(store: Store) -> None:
    store.tables.create(simple(secondaryIndexes={"by_value": [hash_on("value")]}))
    for place in (1, 2, 3):
        store.tables.put("simple", {"key": "a", "place": place, "value": "x"})
    store.tables.put("simple", {"key": "a", "place": 2, "value": "y"})

    found = store.tables.get("simple", {"value": "x"}, index="by_value").items
    assert [item["place"] for item in found] == [3, 1]


def test_a_whole_index_can_be_listed(store: Store) -> None:
    store.tables.create(INDEXED)
    for name in "abc":
        put(store, name, 1, name)

    assert store.tables.get("example", index="by_value", limit=2).count == 2
    found = store.tables.get("example", index="by_value", order={"length": "desc"}).items
    assert sorted(item["name"] for item in found) == ["a", "b", "c"]


def test_a_value_too_long_for_an_index_makes_the_put_fail(store: Store) -> None:
    store.tables.create(
        simple(secondaryIndexes={"by_value": [hash_on("place"), range_on("value")]})
    )

    with pytest.raises(RowKeyTooLong) as caught:
        store.tables.put("simple", {"key": "a", "place": 1, "value": "x" * 4097})
    with pytest.raises(RowKeyTooLong):  # `key` is an implicit range there
        store.tables.put("simple", {"key": "a" * 4097, "place": 1, "value": "x"})

    assert caught.value.attribute == "value"
    assert store.tables.get("simple").count == 0
    store.tables.put("simple", {"key": "a" * 4096, "place": 1, "value": "x" * 4096})
    assert store.tables.get("simple", {"place": 1}, index="by_value").count == 1


def test_a_put_that_changes_nothing_indexed_writes_no_entry(store: Store) -> None:
    store.tables.create(INDEXED)
    put(store, "a", 1, "x", 3)

    def work(tx: Any) -> list[str]:
        writes: list[str] = []
        inner = tx._tx

        class Counting:
            def __getattr__(self, name: str) -> Any:
                if name in ("put", "delete", "add"):
                    writes.append(name)
                return getattr(inner, name)

        tx._tx = Counting()
        put = {"name": "a", "property": "p", "tid": version(1), "length": 3}
        tx.tables.put("example", put)
        return writes

    assert store.transact(work) == ["put"]


def test_strong_and_eventual_are_the_same(store: Store) -> None:
    """There is no eventual consistency: the entry is there with the row, in one transaction."""
    store.tables.create(INDEXED)

    def work(tx: Any) -> int:
        tx.tables.put("example", {"name": "a", "property": "p", "value": "x", "length": 1})
        return int(tx.tables.get("example", {"value": "x"}, index="by_value").count)

    assert store.transact(work) == 1


# --- random histories ----------------------------------------------------------------------------

SCHEMAS = st.sampled_from(
    [
        INDEXED,
        {**INDEXED, "revisionRetentionPolicy": {"type": "latest", "count": 1, "grace_ttl": 2}},
        {**INDEXED, "revisionRetentionPolicy": {"type": "latest", "count": 2, "grace_ttl": 0}},
        {**INDEXED, "revisionRetentionPolicy": {"type": "ttl", "ttl": 3}},
    ]
)
STEPS = st.lists(
    st.tuples(
        st.just("put"),
        st.sampled_from("ab"),
        st.integers(1, 5),
        st.sampled_from(["x", "y", None]),
        st.sampled_from([1, 2, None]),
        st.sampled_from([0, 0, 2]),
    )
    | st.tuples(st.just("delete"), st.sampled_from("ab"), st.integers(1, 5))
    | st.tuples(st.just("delete"), st.sampled_from("ab"), st.just(0))
    | st.tuples(st.just("wait"), st.sampled_from([0.5, 1.0, 2.0]))
    | st.tuples(st.just("sweep")),
    max_size=25,
)


def entries_by_recomputation(store: Store) -> dict[bytes, tuple[int, Any]]:
    """Returns the entries that the stored rows ask for: key of each to expiry and values.

    An index of current revisions has the newest row of a record, and each older one that outlives
    all newer ones: where they share an entry, it has the newest values and the last expiry.
    """
    with store._runner.view() as reader:
        plan = catalogue.find(reader, "example")
        keys = keys_of(reader.space)
        expected: dict[bytes, tuple[int, Any]] = {}
        longest: dict[bytes, float] = {}  # the latest expiry among the newer rows of a record
        for key, value in reader.scan(*prefix_range(keys.rows_of(plan.number))):
            row, record = row_codec.decode(value), key[:-17]
            ends = row.expires_ms or math.inf
            is_current = ends > longest.get(record, -1)
            longest[record] = max(ends, longest.get(record, -1))
            for index in plan.indexes.values():
                entry = index.entry(plan.values(row.body))
                if entry is not None and (index.per_row or is_current):
                    where = keys.entries_of(plan.number) + entry[0]
                    _, body = expected.get(where, (0, entry[1]))
                    expected[where] = (row.expires_ms, body)
        return expected


def entries_as_stored(store: Store) -> dict[bytes, tuple[int, Any]]:
    with store._runner.view() as reader:
        plan = catalogue.find(reader, "example")
        prefix = keys_of(reader.space).entries_of(plan.number)
        found = {key: row_codec.decode(value) for key, value in reader.scan(*prefix_range(prefix))}
        return {key: (entry.expires_ms, entry.body) for key, entry in found.items()}


def run(store: Store, clock: Clock, schema: Schema, step: tuple[Any, ...]) -> None:
    if step[0] == "put":
        _, name, second, value, length, ttl = step
        row = {"name": name, "property": "p", "tid": version(second)}
        row |= {"value": value, "length": length}
        if ttl and "revisionRetentionPolicy" not in schema:
            row["_ttl"] = ttl
        store.tables.put("example", row)
    elif step[0] == "delete":
        _, name, second = step
        key = {"name": name, "property": "p", "tid": version(second)}
        store.tables.delete("example", key if second else {"name": name})
    elif step[0] == "wait":
        clock.advance(seconds=step[1])
    else:
        store.sweep()


@settings(
    max_examples=repeated(30, full=60), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
@given(schema=SCHEMAS, steps=STEPS)
def test_indexes_equal_a_recomputation_from_the_rows(
    stores: Stores, schema: Schema, steps: list[tuple[Any, ...]]
) -> None:
    clock = Clock(1_000_000.0)
    with stores.open(clock=clock) as store:
        store.tables.create(schema)
        for step in steps:
            run(store, clock, schema, step)
            stored_entries = entries_as_stored(store)
            assert stored_entries == entries_by_recomputation(store)
            assert store.tables.facts("example").entries == len(stored_entries)
        while store.sweep():
            pass
        live = store.tables.get("example").items
        current = {item["name"]: item for item in reversed(live)}
        indexed = store.tables.get("example", index="by_value").items
        assert {item["name"] for item in indexed} == {
            name
            for name, item in current.items()
            if item["value"] is not None and item["length"] is not None
        }
        assert store.tables.facts("example").rows == len(live)
