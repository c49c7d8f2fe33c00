"""Adding an index to a full table, in bounded steps while writes go on."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.errors import IndexBuilding, IndexNotFound, InvalidTableSchema
from holdfast.store import Store
from holdfast.tables import index_build
from holdfast.testing import Clock
from tests.stores import Stores
from tests.tables.schemas import example, hash_on, proj_of, range_on, simple, version
from tests.tables.test_indexes import entries_as_stored, entries_by_recomputation


def fill(store: Store, count: int) -> None:
    store.tables.create(simple())
    rows = [{"key": "a", "place": place, "value": f"v{place % 3}"} for place in range(count)]
    store.tables.batch([{"op": "put", "table": "simple", "attributes": row} for row in rows])


def test_an_index_is_built_and_then_answers(store: Store, clock: Clock) -> None:
    fill(store, 900)
    clock.advance(seconds=1)
    store.tables.add_index("simple", "by_value", [hash_on("value"), proj_of("place")])

    with pytest.raises(IndexBuilding) as caught:
        store.tables.get("simple", {"value": "v1"}, index="by_value")
    progress = store.tables.index_progress("simple", "by_value")
    assert (progress.complete, progress.rows, progress.total) == (False, 500, 900)
    assert (caught.value.type, caught.value.status) == ("index_building", 503)
    assert caught.value.message.endswith("is being built: 500 of 900 rows are done")
    with pytest.raises(IndexBuilding, match="500 of 900"):
        store.tables.get_by_url("simple", ["v1"], index="by_value")

    assert store.tables.build_index("simple", "by_value").complete

    assert store.tables.get("simple", {"value": "v1"}, index="by_value").count == 300
    assert store.tables.facts("simple").entries == 900
    assert store.tables.schema("simple")["version"] == 2
    assert store.tables.schema("simple")["secondaryIndexes"]["by_value"] == [
        hash_on("value"),
        proj_of("place"),
    ]


def test_it_is_built_along_with_later_writes(store: Store, clock: Clock) -> None:
    fill(store, 900)
    clock.advance(seconds=1)
    store.tables.add_index("simple", "by_value", [hash_on("value")])
    clock.advance(seconds=5)
    store.tables.put("simple", {"key": "b", "place": 1, "value": "v1"})

    assert store.tables.index_progress("simple", "by_value").complete
    assert store.tables.get("simple", {"value": "v1"}, index="by_value").count == 301


def test_a_value_too_long_for_the_index_is_reported(store: Store) -> None:
    store.tables.create(simple())
    store.tables.put("simple", {"key": "a", "place": 1, "value": "x" * 5_000})
    store.tables.add_index("simple", "by_place", [hash_on("place"), range_on("value")])

    progress = store.tables.build_index("simple", "by_place")

    assert not progress.complete
    assert "5000 bytes" in progress.problem
    with pytest.raises(IndexBuilding, match=r"can't be built: .*5000 bytes"):
        store.tables.get("simple", {"place": 1}, index="by_place")
    store.tables.create(simple(version=3))
    assert "secondaryIndexes" not in store.tables.schema("simple")


def test_a_bad_index_is_refused(store: Store) -> None:
    store.tables.create(simple(secondaryIndexes={"i": [hash_on("value")]}))

    with pytest.raises(InvalidTableSchema, match="already"):
        store.tables.add_index("simple", "i", [hash_on("place")])
    with pytest.raises(InvalidTableSchema, match="is not in attributes"):
        store.tables.add_index("simple", "j", [hash_on("missing")])
    with pytest.raises(InvalidTableSchema, match="Invalid name"):
        store.tables.add_index("simple", "a/b", [hash_on("value")])
    elements: Any = 5
    with pytest.raises(InvalidTableSchema, match="Must have at least one entry"):
        store.tables.add_index("simple", "k", elements)
    with pytest.raises(IndexNotFound):
        store.tables.index_progress("simple", elements)
    with pytest.raises(IndexNotFound):
        store.tables.index_progress("simple", "missing")
    with pytest.raises(IndexNotFound):
        store.tables.build_index("simple", "missing")


WRITES = st.lists(
    st.tuples(
        st.booleans(), st.sampled_from("abc"), st.integers(1, 4), st.sampled_from(["x", "y", None])
    ),
    max_size=12,
)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(before=WRITES, during=WRITES, after=WRITES)
def test_writes_during_the_building_are_not_lost(
    stores: Stores, before: Any, during: Any, after: Any
) -> None:
    with pytest.MonkeyPatch.context() as patch, stores.open() as store:
        patch.setattr(index_build, "ROWS_PER_BUILD_STEP", 3)
        patch.setattr(index_build, "BUILD_STEP_BYTES", 30)  # some steps are shorter
        store.tables.create(example())

        def write(writes: Any) -> None:
            for is_put, name, second, value in writes:
                key = {"name": name, "property": "p", "tid": version(second)}
                if is_put:
                    store.tables.put("example", {**key, "value": value})
                else:
                    store.tables.delete("example", key)

        write(before)
        store.tables.add_index("example", "by_value", [hash_on("value")])
        store.tables.add_index("example", "by_tid", [hash_on("tid"), proj_of("value")])
        write(during)
        store.tables.build_index("example", "by_tid")
        write(after)
        store.tables.build_index("example", "by_value")

        assert entries_as_stored(store) == entries_by_recomputation(store)
        assert store.tables.facts("example").entries == len(entries_as_stored(store))
