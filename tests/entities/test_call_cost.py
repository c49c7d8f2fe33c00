"""What one call on entities costs has a bound: queries times entities times changes."""

from itertools import count
from typing import Any

import pytest

from holdfast.entities import StoreEntities
from holdfast.entities.messages import Change, Filter, Get, Paging, Update
from holdfast.entities.updates import check_changes
from holdfast.errors import AnswerTooLarge, BadFilter, BadValue, BatchTooLong, RequestTooLarge

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
    monkeypatch.setattr("holdfast.entities.answer_meters.MAX_CHANGED_ENTITIES", 3)

    with pytest.raises(RequestTooLarge, match="more than 3 entities would change"):
        entities.update_raw(TABLE, ALL, [Change("INCR", "n", 1)])
    with pytest.raises(RequestTooLarge, match="more than 3 entities would change"):
        entities.delete_raw(TABLE, [Filter("id", "IN", [f"e{each}" for each in range(4)])])


def test_the_bytes_of_the_entities_that_a_call_changes_are_limited(
    entities: StoreEntities, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.entities.answer_meters.MAX_CHANGED_BYTES", 150)

    with pytest.raises(RequestTooLarge, match="to change have more than 150 bytes"):
        entities.update_raw(TABLE, ALL, [Change("INCR", "n", 1)])


def test_the_bytes_that_a_call_writes_are_limited(
    entities: StoreEntities, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.entities.entity_writer.MAX_CHANGED_BYTES", 3_000)
    change = Change("SET", "text", "x" * 1_000)

    with pytest.raises(RequestTooLarge, match="would write more than 3000 bytes"):
        entities.execute([Update(TABLE, ALL, [change])])


def test_all_of_a_table_that_holds_too_much_is_refused_before_it_is_read(
    entities: StoreEntities, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(value: bytes) -> None:
        raise AssertionError("read")

    monkeypatch.setattr("holdfast.entities.answer_meters.MAX_ANSWER_ENTITIES", 3)
    monkeypatch.setattr("holdfast.entities.selections.MAX_ANSWER_ENTITIES", 3)
    assert len(entities.select_raw(TABLE, ALL, limit=-1, offset=1)) == 3
    monkeypatch.setattr("holdfast.entities.selections.read_head", read)

    for limit in (-1, 4):
        with pytest.raises(AnswerTooLarge):
            entities.select_raw(TABLE, ALL, limit=limit)


def test_the_keys_to_take_from_a_map_are_a_set() -> None:
    [(_, _, keys)] = check_changes([Change("MDEL", "map", ["a", "b", "a"])])

    assert keys == frozenset({"a", "b"})  # a list of 20,000 took 15 s to search for 20,000 entries


def test_many_names_of_properties_are_looked_up_among_few(entities: StoreEntities) -> None:
    entities.put_raw(TABLE, [{"id": "p", "b": 1, "a": 2, "c": 3}])
    names = ["z", "a", "y", "b", "a", *(f"n{each}" for each in range(50))]

    [found] = entities.get_raw(TABLE, ["p"], properties=names)

    assert list(found.properties.items()) == [("a", 2), ("b", 1)]


def test_an_answer_has_a_bounded_number_of_entities_and_says_how_to_page(
    entities: StoreEntities, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.entities.answer_meters.MAX_ANSWER_ENTITIES", 3)
    monkeypatch.setattr("holdfast.entities.selections.MAX_ANSWER_ENTITIES", 3)
    entities.put_raw("test.Users", [{"id": f"u{each}", "age": 7} for each in range(40)])
    of_age = [Filter("age", "=", [7])]

    for table, filters in ((TABLE, ALL), ("test.Users", of_age)):
        for limit in (-1, 40):
            with pytest.raises(AnswerTooLarge, match="more than 3 entities") as refused:
                entities.select_raw(table, filters, limit=limit)
            assert "A page has a limit of at most" in (refused.value.hint or "")
    with pytest.raises(AnswerTooLarge, match="more than 3 entities"):
        entities.get_raw(TABLE, ["e0"] * 4)
    with pytest.raises(AnswerTooLarge, match="more than 3 entities"):
        entities.execute([Get(TABLE, ALL, paging=Paging(0, 2))] * 2)

    assert len(entities.select_raw("test.Users", of_age, limit=3, offset=36).entities) == 3
    assert entities.select_raw("test.Users", of_age, limit=3).total == 40
    assert len(entities.select_raw(TABLE, [Filter("id", "<", ["e3"])], limit=-1).entities) == 3


def test_a_filter_has_a_bounded_number_of_values(
    entities: StoreEntities, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.entities.query_checks.MAX_ANSWER_ENTITIES", 3)

    with pytest.raises(BadFilter, match="has 4 values, at most 3 are allowed"):
        entities.select_raw(TABLE, [Filter("id", "IN", ["e1"] * 4)], limit=1)


def test_entities_that_are_only_compared_have_a_bound_in_bytes(
    entities: StoreEntities, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.entities.answer_meters.MAX_COMPARED_BYTES", 250)
    entities.put_raw(
        "test.Keyed", [{"name": f"n{n}", "lastName": "x", "text": "x" * 50} for n in range(6)]
    )
    names = [f"n{n}" for n in range(6)]
    one_id = [Filter("id", "IN", ["e1"] * 50)]

    with pytest.raises(RequestTooLarge, match="to compare have more than 250 bytes"):
        entities.count_raw(
            "test.Keyed", [Filter("name", "IN", names), Filter("lastName", "=", ["x"])]
        )
    assert len(entities.select_raw(TABLE, one_id, offset=1, limit=2).entities) == 2


def test_a_walk_that_takes_long_is_refused(
    entities: StoreEntities, monkeypatch: pytest.MonkeyPatch
) -> None:
    entities.put_raw("test.Users", [{"id": f"u{n:04}", "age": n % 2} for n in range(1_200)])
    monkeypatch.setattr("holdfast.call_time.thread_time", count(0, 1_000).__next__)

    with pytest.raises(BatchTooLong, match="the selection took more than 10 seconds"):
        entities.count_raw("test.Users", [Filter("id", ">", ["a"])])
    with pytest.raises(BatchTooLong):
        entities.select_raw("test.Users", ALL, offset=1_000, limit=1)
    with pytest.raises(BatchTooLong):
        entities.select_raw("test.Users", [Filter("age", "IN", [0, 1])], offset=500, limit=1)
    with pytest.raises(BatchTooLong):
        entities.count_raw("test.Users", [Filter("age", "IN", [0, 1])])

    assert entities.count_raw("test.Users") == 1_200


@pytest.mark.parametrize(
    ("value", "change"),
    [
        ({1, 2, 3}, Change("SADD", "held", [3, 4])),
        ([1, 2, 3], Change("LADD", "held", 4)),
        ({"a": 1, "b": 2, "c": 3}, Change("MSET", "held", {"d": 4})),
    ],
)
def test_a_collection_has_a_bounded_number_of_items(
    entities: StoreEntities, monkeypatch: pytest.MonkeyPatch, value: Any, change: Change
) -> None:
    monkeypatch.setattr("holdfast.entities.values.MAX_COLLECTION_ITEMS", 3)
    entities.put_raw(TABLE, [{"id": "e1", "held": value}])
    one = [Filter("id", "=", ["e1"])]

    with pytest.raises(BadValue, match="of 4 items is not allowed for entities, at most 3 fit"):
        entities.update_raw(TABLE, one, [change])
    with pytest.raises(BadValue, match="of 4 items"):
        entities.put_raw(TABLE, [{"id": "e2", "held": [0, 0, 0, 0]}])
    with pytest.raises(BadValue, match="of 4 items"):
        entities.put_raw(TABLE, [{"id": "e2", "held": {0, 1, 2, 3}}])

    assert entities.update_raw(TABLE, one, [Change("SADD", "other", [1, 2, 3])]).num == 1
    assert entities.update_raw(TABLE, one, [Change("SADD", "other", [1, 2])]).num == 1


@pytest.mark.parametrize("op", ["SADD", "SDEL"])
@pytest.mark.parametrize("size", [4, 20, 70_000])
def test_a_larger_set_of_an_older_store_is_refused_before_it_is_copied(
    entities: StoreEntities, monkeypatch: pytest.MonkeyPatch, op: str, size: int
) -> None:
    entities.put_raw(TABLE, [{"id": "e1", "held": set(range(size))}])
    monkeypatch.setattr("holdfast.entities.values.MAX_COLLECTION_ITEMS", 3)

    with pytest.raises(BadValue, match=f"a Set of {size} items"):
        entities.update_raw(TABLE, [Filter("id", "=", ["e1"])], [Change(op, "held", [1])])
    assert len(entities.get_raw(TABLE, ["e1"])[0].properties["held"]) == size


def test_index_entries_count_among_what_a_call_changes(
    entities: StoreEntities, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.entities.entity_writer.MAX_CHANGED_KEYS", 11)

    entities.put_raw("test.Users", [{}] * 2)
    with pytest.raises(RequestTooLarge, match="more than 11 entities and index entries"):
        entities.put_raw("test.Users", [{}] * 3)


def test_a_page_of_a_dump_and_a_step_of_a_build_have_a_bound_in_bytes(
    entities: StoreEntities, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.entities.dumps.DUMPED_BYTES_PER_PAGE", 150)
    monkeypatch.setattr("holdfast.entities.index_builds.BUILD_STEP_BYTES", 100)

    page = entities.dump_some(TABLE)
    rest = entities.dump_some(TABLE, after=page.next)
    assert (page.entities, rest.entities, rest.next) == (2, 2, None)

    indexed = "schema: test\ntables: {Plain: {columns: {text: {type: Text}}, indexes: ["
    entities.deploy(indexed + "{type: simple, columns: [text]}]}}", wait=False)
    assert entities.build(most=1) == 1
    assert entities.stats()[TABLE].indexes["test.Plain__text_simple"].state == "pending"
    entities.build()
    assert entities.count_raw(TABLE, [Filter("text", "=", ["x" * 50])]) == 4
