"""Delete: slices, statics, conditions."""

from typing import Any

import pytest

from holdfast.errors import InvalidTableQuery, InvalidTableRequest, RequestTooLarge
from holdfast.store import Store
from holdfast.testing import Clock
from tests.tables.schemas import example, hash_on, range_on, simple, static_on, version

pytestmark = pytest.mark.every_engine


@pytest.fixture
def rows(store: Store) -> Store:
    store.tables.create(
        simple(
            attributes={"key": "string", "place": "int", "value": "string", "note": "string"},
            index=[hash_on("key"), static_on("note"), range_on("place")],
        )
    )
    for key in "ab":
        for place in range(4):
            store.tables.put("simple", {"key": key, "place": place, "note": f"of {key}"})
    return store


def left(store: Store) -> list[str]:
    return [f"{item['key']}{item['place']}" for item in store.tables.get("simple").items]


def test_a_slice_is_deleted(rows: Store) -> None:
    result = rows.tables.delete("simple", {"key": "a", "place": {"ge": 1, "lt": 3}})

    assert (result.applied, result.count) == (True, 2)
    assert left(rows) == ["a0", "a3", "b0", "b1", "b2", "b3"]


def test_deleting_what_is_not_there_is_no_error(rows: Store) -> None:
    assert rows.tables.delete("simple", {"key": "z"}).count == 0


def test_statics_go_with_the_hash_key_only(rows: Store) -> None:
    rows.tables.delete("simple", {"key": "a", "place": {"ge": 0}})
    rows.tables.delete("simple", {"key": "b"})
    for key in "ab":
        rows.tables.put("simple", {"key": key, "place": 9})

    notes = {item["key"]: item["note"] for item in rows.tables.get("simple").items}
    assert notes == {"a": "of a", "b": None}


@pytest.mark.parametrize("attributes", [{}, None, {"place": 1}])
def test_a_table_is_not_emptied_by_an_empty_predicate(rows: Store, attributes: Any) -> None:
    with pytest.raises(InvalidTableQuery):
        rows.tables.delete("simple", attributes)

    assert len(left(rows)) == 8


def test_rows_with_an_expiry_are_deleted_too(store: Store, clock: Clock) -> None:
    store.tables.create(simple())
    store.tables.put("simple", {"key": "a", "place": 1, "_ttl": 50})
    store.tables.put("simple", {"key": "a", "place": 2, "_ttl": 1})
    clock.advance(seconds=2)

    assert store.tables.delete("simple", {"key": "a"}).count == 1
    assert store.tables.facts("simple").rows == 0
    assert store.tables.facts("simple").expiring == 0


def test_other_spaces_are_not_touched(store: Store) -> None:
    spaces = [store.space("one"), store.space("two")]
    for space in spaces:
        space.tables.create(simple())
        space.tables.put("simple", {"key": "a", "place": 1})

    spaces[0].tables.delete("simple", {"key": "a"})

    assert [space.tables.get("simple").count for space in spaces] == [0, 1]


def test_a_delete_may_have_a_condition(rows: Store) -> None:
    key = {"key": "a", "place": 1}
    rows.tables.put("simple", {**key, "value": "x"})

    assert not rows.tables.delete("simple", key, if_={"value": "y"}).applied
    assert not rows.tables.delete("simple", {**key, "place": 99}, if_="exists").applied
    assert not rows.tables.delete("simple", {"key": "a"}, if_={"note": "of b"}).applied
    assert len(left(rows)) == 8
    assert rows.tables.delete("simple", key, if_={"value": "x"}).applied
    assert rows.tables.delete("simple", {"key": "b"}, if_={"note": "of b"}).applied
    assert left(rows) == ["a0", "a2", "a3"]


def test_a_condition_on_a_row_needs_its_whole_key(rows: Store) -> None:
    with pytest.raises(InvalidTableRequest):
        rows.tables.delete("simple", {"key": "a"}, if_={"value": "x"})
    with pytest.raises(InvalidTableRequest):
        rows.tables.delete("simple", {"key": "a"}, if_="exists")


def test_the_next_older_revision_becomes_current(store: Store) -> None:
    store.tables.create(example(secondaryIndexes={"by_value": [hash_on("value")]}))
    for second in (1, 2):
        store.tables.put(
            "example",
            {"name": "a", "property": "p", "tid": version(second), "value": f"v{second}"},
        )

    store.tables.delete("example", {"name": "a", "property": "p", "tid": version(2)})

    assert store.tables.get("example", {"value": "v2"}, index="by_value").count == 0
    [item] = store.tables.get("example", {"value": "v1"}, index="by_value").items
    assert item["tid"] == version(1)


def test_a_delete_of_too_many_rows_is_refused_as_a_whole(
    rows: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.tables.deletes.MAX_DELETED_KEYS", 5)
    a, b = ({"op": "delete", "table": "simple", "attributes": {"key": key}} for key in "ab")

    with pytest.raises(RequestTooLarge, match="more than 5 rows and index entries"):
        rows.tables.batch([a, b])
    assert len(left(rows)) == 8
    assert rows.tables.delete("simple", {"key": "a"}).count == 4

    monkeypatch.setattr("holdfast.tables.deletes.MAX_DELETED_BYTES", 15)
    with pytest.raises(RequestTooLarge, match="more than rows of 15 bytes"):
        rows.tables.delete("simple", {"key": "b"})
    assert rows.tables.delete("simple", {"key": "b", "place": {"lt": 2}}).count == 2
