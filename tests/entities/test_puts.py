"""PUT merges, replaces or inserts, and keeps indexes in step."""

from typing import Any

import pytest

from holdfast.entities import StoreEntities, answer_meters, entity_writer
from holdfast.entities.messages import Filter, Get, Ping, PutEntity
from holdfast.errors import (
    AnswerTooLarge,
    BadQuery,
    BadValue,
    DuplicateKey,
    RequestTooLarge,
    VersionMismatch,
)
from holdfast.limits import MAX_QUERIES
from holdfast.store import Store, Tx
from holdfast.testing import Clock

_HALF: Any = 1.5  # nanoseconds, of which there are no halves


def by_age(entities: StoreEntities, age: int) -> list[str]:
    return [entity.id for entity in entities.select_raw("test.Users", [Filter("age", "=", [age])])]


def test_a_put_merges_into_what_is_there(entities: StoreEntities) -> None:
    entities.put_raw("test.Users", [{"id": "u", "age": 1, "city": "x"}])

    entities.put_raw("test.Users", [{"id": "u", "age": 2, "name": None}])

    [user] = entities.get_raw("test.Users", ["u"])
    assert user.properties == {"age": 2, "city": "x", "name": None}
    assert (by_age(entities, 1), by_age(entities, 2)) == ([], ["u"])


def test_replace_makes_the_message_the_whole_entity(entities: StoreEntities, clock: Clock) -> None:
    entities.put_raw("test.Users", [PutEntity({"age": 1, "city": "x"}, "u", ttl=10**9)])

    entities.put_raw("test.Users", [{"id": "u", "age": 2}], mode="replace")

    clock.advance(seconds=2)
    assert entities.get_raw("test.Users", ["u"])[0].properties == {"age": 2}


def test_insert_refuses_an_id_that_exists(entities: StoreEntities) -> None:
    entities.put_raw("test.Users", [{"id": "u", "age": 1}], mode="insert")

    with pytest.raises(DuplicateKey) as caught:
        entities.put_raw("test.Users", [{"id": "v"}, {"id": "u"}], mode="insert")

    assert caught.value.message == "Duplicate Key"
    assert entities.count_raw("test.Users") == 1


def test_ids_come_in_the_order_sent_and_one_may_come_twice(entities: StoreEntities) -> None:
    ids = entities.put_raw(
        "test.Users", [{"id": "u", "age": 1}, {"id": "v"}, {"id": "u", "city": "x", "age": 2}]
    )

    assert ids == ["u", "v", "u"]
    assert entities.get_raw("test.Users", ["u"])[0].properties == {"age": 2, "city": "x"}
    assert (by_age(entities, 1), by_age(entities, 2)) == ([], ["u"])
    assert entities.count_raw("test.Users") == 2


def test_an_entity_without_properties_exists(entities: StoreEntities) -> None:
    [id] = entities.put_raw("test.Plain", [{}])

    assert entities.get_raw("test.Plain", [id])[0].properties == {}


def test_one_bad_entity_refuses_all(entities: StoreEntities) -> None:
    with pytest.raises(BadValue):
        entities.put_raw("test.Users", [{"id": "good", "age": 1}, {"age": object()}])

    assert entities.count_raw("test.Users") == 0
    assert by_age(entities, 1) == []


@pytest.mark.parametrize(
    ("entity", "error", "text"),
    [
        (5, BadQuery, "an entity must be a dict of its properties or a PutEntity, not 5"),
        (PutEntity({}, ttl=_HALF), BadValue, "Invalid value for TTL: 1.5"),
        ({"a\0b": 1}, BadValue, "is not a name for a property"),
        ({"a": 10**400}, BadValue, "beyond 64 bits"),
    ],
)
def test_what_is_no_entity_is_refused_in_words(
    entities: StoreEntities, entity: Any, error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        entities.put_raw("test.Plain", [{"id": "good"}, entity])
    assert entities.get_raw("test.Plain", ["good"]) == []


def test_ten_thousand_entities_fit_one_put(entities: StoreEntities) -> None:
    ids = entities.put_raw("test.Users", [{"age": n % 7} for n in range(10_000)])

    assert len(set(ids)) == 10_000
    assert entities.count_raw("test.Users", [Filter("age", "=", [3])]) == 1429


def test_a_writer_who_has_seen_another_version_is_refused(entities: StoreEntities) -> None:
    entities.put_raw("test.Users", [{"id": "u", "age": 1}])
    [seen] = entities.get_raw("test.Users", ["u"])
    entities.put_raw("test.Users", [PutEntity({"age": 2}, "u", if_version=seen.version)])

    with pytest.raises(VersionMismatch):
        entities.put_raw("test.Users", [PutEntity({"age": 3}, "u", if_version=seen.version)])

    [now] = entities.get_raw("test.Users", ["u"])
    assert (now.properties["age"], now.version) == (2, seen.version + 1)


def test_version_0_is_for_an_entity_that_must_not_exist(entities: StoreEntities) -> None:
    entities.put_raw("test.Users", [PutEntity({"age": 1}, "u", if_version=0)])

    with pytest.raises(VersionMismatch):
        entities.put_raw("test.Users", [PutEntity({"age": 2}, "u", if_version=0)])
    with pytest.raises(VersionMismatch):
        entities.put_raw("test.Users", [PutEntity({"age": 2}, "v", if_version=1)])


def test_several_tables_are_written_in_one_transaction(
    store: Store, entities: StoreEntities
) -> None:
    def work(tx: Tx) -> None:
        tx.entities.put_raw("test.Users", [{"id": "u", "age": 1}])
        tx.entities.put_raw("test.Plain", [{"id": "p"}])
        raise RuntimeError

    with pytest.raises(RuntimeError):
        store.transact(work)

    assert entities.count_raw("test.Users") == entities.count_raw("test.Plain") == 0


def test_one_call_changes_a_bounded_number_of_entities(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entity_writer, "MAX_CHANGED_ENTITIES", 10)
    schema = "schema: s\ntables: {T: {primary: {type: random}, columns: {n: {type: Int}}}}"
    store.entities.deploy(schema)
    ids = store.entities.put_raw("s.T", [PutEntity({"n": n}) for n in range(10)])
    ids += store.entities.put_raw("s.T", [PutEntity({"n": 10})])

    with pytest.raises(RequestTooLarge):
        store.entities.put_raw("s.T", [PutEntity({"n": n}) for n in range(11)])
    with pytest.raises(RequestTooLarge):
        store.entities.delete_raw("s.T", [Filter("id", "IN", ids)])

    assert store.entities.count_raw("s.T") == 11


def test_a_bounded_number_of_queries_is_executed_at_once(store: Store) -> None:
    with pytest.raises(RequestTooLarge):
        store.entities.execute([Ping()] * (MAX_QUERIES + 1))


def test_the_answers_of_several_queries_have_one_bound(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answer_meters, "MAX_ANSWER_BYTES", 5_000)
    store.entities.deploy("schema: s\ntables: {T: {primary: {type: random}, columns: {}}}")
    store.entities.put_raw("s.T", [PutEntity({"text": "x" * 1_000}, "a")])
    get = Get("s.T", [Filter("id", "=", ["a"])])

    assert len(store.entities.execute([get] * 4)) == 4
    with pytest.raises(AnswerTooLarge):
        store.entities.execute([get] * 6)
