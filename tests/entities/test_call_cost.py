"""What one call on entities costs has a bound: queries times entities times changes."""

from itertools import count

import pytest

from holdfast.entities import StoreEntities
from holdfast.entities.messages import Change, Filter, Get, Update
from holdfast.entities.updates import check_changes
from holdfast.errors import BatchTooLong, RequestTooLarge

TABLE = "test.Plain"
ALL = [Filter("id", "ALL")]


@pytest.fixture(autouse=True)
def _written(entities: StoreEntities) -> None:
    entities.put_raw(TABLE, [{"id": f"e{each}", "text": "x" * 50} for each in range(4)])


def test_changes_that_take_long_together_are_refused(
    entities: StoreEntities, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.call_time.thread_time", count(0, 1_000).__next__)

    with pytest.raises(BatchTooLong, match="the update took more than"):
        entities.update_raw(TABLE, ALL, [Change("INCR", "n", 1)] * 11)
    with pytest.raises(BatchTooLong):
        entities.update_raw(TABLE, [Filter("id", "=", ["e1"])], [Change("SADD", "s", ["a"])] * 2)

    assert entities.update_raw(TABLE, ALL, [Change("INCR", "n", 1)] * 10).num == 4
    assert [each.properties["n"] for each in entities.get_raw(TABLE, ["e0", "e1"])] == [10, 10]


def test_queries_that_take_long_together_are_refused(
    entities: StoreEntities, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.call_time.thread_time", count(0, 1_000).__next__)

    with pytest.raises(BatchTooLong, match="the queries took more than"):
        entities.execute([Get(TABLE, ALL), Get(TABLE, ALL)])


def test_a_call_reads_no_more_entities_than_it_may_change(
    entities: StoreEntities, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.entities.selections.MAX_CHANGED_ENTITIES", 3)

    with pytest.raises(RequestTooLarge, match="more than 3 entities would change"):
        entities.update_raw(TABLE, ALL, [Change("INCR", "n", 1)])
    with pytest.raises(RequestTooLarge, match="more than 3 entities would change"):
        entities.delete_raw(TABLE, [Filter("id", "IN", [f"e{each}" for each in range(4)])])


def test_the_bytes_of_the_entities_that_a_call_changes_are_limited(
    entities: StoreEntities, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.entities.selections.MAX_CHANGED_BYTES", 150)

    with pytest.raises(RequestTooLarge, match="to change have more than 150 bytes"):
        entities.update_raw(TABLE, ALL, [Change("INCR", "n", 1)])


def test_the_bytes_that_a_call_writes_are_limited(
    entities: StoreEntities, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.entities.entity_writer.MAX_CHANGED_BYTES", 3_000)
    change = Change("SET", "text", "x" * 1_000)

    with pytest.raises(RequestTooLarge, match="would write more than 3000 bytes"):
        entities.execute([Update(TABLE, ALL, [change])])


def test_the_keys_to_take_from_a_map_are_a_set() -> None:
    [(_, _, keys)] = check_changes([Change("MDEL", "map", ["a", "b", "a"])])

    assert keys == frozenset({"a", "b"})  # a list of 20,000 took 15 s to search for 20,000 entries


def test_many_names_of_properties_are_looked_up_among_few(entities: StoreEntities) -> None:
    entities.put_raw(TABLE, [{"id": "p", "b": 1, "a": 2, "c": 3}])
    names = ["z", "a", "y", "b", "a", *(f"n{each}" for each in range(50))]

    [found] = entities.get_raw(TABLE, ["p"], properties=names)

    assert list(found.properties.items()) == [("a", 2), ("b", 1)]
