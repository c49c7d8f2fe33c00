"""The names of properties are stored once with their table, as long as they are few."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.entities import StoreEntities, answer_meters
from holdfast.entities.layout import keys_of
from holdfast.entities.messages import Change, Filter, PutEntity
from holdfast.entities.name_lists import NameLists, read_head
from holdfast.entities.records import StoredTable, read_table, write_entity, write_table
from holdfast.entities.schema import Table
from holdfast.entities.values import keep_properties
from holdfast.errors import AnswerTooLarge, UnsupportedFormat
from holdfast.limits import MAX_NAME_LIST_BYTES, MAX_NAME_LISTS
from holdfast.store import Store
from holdfast.transactions import Tx
from tests.entities.conftest import SCHEMA
from tests.entities.older_form import make_older, name_lists, stored_entities
from tests.stores import Stores, problems_of

USERS = "test.Users"
ANN = {"name": "ann", "lastName": "lee", "age": 30}
BOB = {"name": "bob", "lastName": "ray", "age": 40}

# What the version before name lists has written.
OLD_ENTITY = bytes.fromhex("93070083a46e616d65a3616e6ea86c6173744e616d65a36c6565a36167651e")
values = st.sampled_from([None, True, -1, 2**63, 1.5, "á", b"x", [1], {"k": {2}}, {1, "a"}])
moments = st.just(datetime(2020, 1, 1, tzinfo=UTC))
names = st.sampled_from(["a", "b", "class", "_c", "__init__", "first name", "é", "self"])


def found(entities: StoreEntities, id: str) -> Any:
    [entity] = entities.get_raw(USERS, [id])
    return entity.properties


# --- bytes ----------------------------------------------------------------------------------------


def test_an_entity_does_not_repeat_the_names_of_its_properties(
    store: Store, entities: StoreEntities
) -> None:
    entities.put_raw(USERS, [ANN, BOB])

    assert name_lists(store, USERS) == (tuple(ANN),)
    for stored in stored_entities(store, USERS):
        assert b"lastName" not in stored
        assert len(stored) < 16


def test_the_bytes_of_both_forms_stay_as_they_are() -> None:
    lists = NameLists([("x",), tuple(ANN)])

    new = lists.write(7, 0, ANN)

    assert new == bytes.fromhex("9401070093a3616e6ea36c65651e")
    assert write_entity(7, 0, ANN) == OLD_ENTITY
    for stored in (new, OLD_ENTITY):
        entity = lists.plain.one(stored)
        assert (entity.version, entity.expires, entity.properties) == (7, 0, ANN)
        assert (read_head(stored).version, read_head(stored).expires) == (7, 0)


def test_a_table_without_name_lists_is_stored_as_before() -> None:
    table = StoredTable(number=3, table=Table(schema="test", name="Users"))

    assert write_table(table) == msgspec.msgpack.encode(table)
    assert read_table(write_table(table)) == table


def test_a_table_of_a_later_layout_is_refused() -> None:
    with pytest.raises(UnsupportedFormat, match="layout 2"):
        read_table(msgspec.msgpack.encode((2, {"anything": 1})))


def test_a_version_without_name_lists_can_not_read_such_a_table() -> None:
    table = StoredTable(
        number=3, table=Table(schema="test", name="Users"), name_lists=(("a", "b"),)
    )

    with pytest.raises(msgspec.ValidationError):
        msgspec.msgpack.decode(write_table(table), type=StoredTable)


@given(
    lists=st.lists(st.lists(names, unique=True).map(tuple), unique_by=frozenset, max_size=4),
    properties=st.dictionaries(names, values | moments, max_size=4),
    version=st.sampled_from([1, 127, 128, 2**40]),
    expires=st.sampled_from([0, 1, 2**62]),
)
def test_every_entity_is_read_as_it_was_written(
    lists: list[tuple[str, ...]], properties: dict[str, Any], version: int, expires: int
) -> None:
    own = NameLists([])
    for each in lists:
        own = NameLists(own.with_list_of(dict.fromkeys(each)) or own.lists)
    kept = keep_properties(properties)

    stored = own.write(version, expires, kept) or write_entity(version, expires, kept)

    entity = own.plain.one(stored)
    assert (entity.version, entity.expires, entity.properties) == (version, expires, properties)
    assert own.kept.one(stored).properties == kept
    assert (read_head(stored).version, read_head(stored).expires) == (version, expires)


@given(
    each=st.lists(st.dictionaries(names, values, max_size=3), max_size=20),
    expires=st.sampled_from([0, 1, 2**62]),
)
def test_many_entities_of_both_forms_are_read_as_one_by_one(
    each: list[dict[str, Any]], expires: int
) -> None:
    own = NameLists([("a",), ("a", "b"), ("class", "self")])
    kept = [keep_properties(properties) for properties in each]

    stored = [
        own.write(version, expires, properties) or write_entity(version, expires, properties)
        for version, properties in enumerate(kept)
    ]

    for readers in (own.plain, own.kept):
        together = [(e.version, e.expires, e.properties) for e in readers.many(stored)]
        one_by_one = [(e.version, e.expires, e.properties) for e in map(readers.one, stored)]
        assert together == one_by_one


def test_a_damaged_entity_among_many_is_not_taken_for_another() -> None:
    own = NameLists([("a", "b")])
    whole = own.write(1, 0, {"a": 1, "b": 2})
    assert whole is not None

    for stored in ([whole, whole[:-1], whole], [whole[:-1], whole + b"\x02"], [whole, b""]):
        with pytest.raises(msgspec.MsgspecError):
            own.plain.many(stored)


# --- names ----------------------------------------------------------------------------------------


def test_properties_in_another_order_share_a_list(store: Store, entities: StoreEntities) -> None:
    turned = dict(reversed(BOB.items()))

    ids = entities.put_raw(USERS, [ANN, turned])

    assert name_lists(store, USERS) == (tuple(ANN),)
    assert [found(entities, id) for id in ids] == [ANN, BOB]


def test_an_update_that_adds_a_property_makes_a_list(store: Store, entities: StoreEntities) -> None:
    [id] = entities.put_raw(USERS, [ANN])

    entities.update_raw(USERS, [Filter("id", "=", [id])], [Change("SET", "city", "york")])

    assert name_lists(store, USERS) == (tuple(ANN), (*ANN, "city"))
    assert found(entities, id) == {**ANN, "city": "york"}


@pytest.mark.parametrize("name", ["first name", "é", "__init__", "a-b", "1"])
def test_names_that_no_field_can_have_stay_with_their_entity(
    store: Store, entities: StoreEntities, name: str
) -> None:
    [id] = entities.put_raw(USERS, [{"name": "ann", name: 1}])

    assert name_lists(store, USERS) == ()
    assert found(entities, id) == {"name": "ann", name: 1}


def test_a_table_has_few_lists_however_many_names_there_are(
    store: Store, entities: StoreEntities
) -> None:
    many = [{"name": "ann", f"property{n}": n} for n in range(300)]

    ids = entities.put_raw(USERS, many)

    assert len(name_lists(store, USERS)) == MAX_NAME_LISTS
    assert [e.properties for e in entities.get_raw(USERS, ids)] == many
    assert problems_of(store) == []


def test_names_count_in_an_answer_that_is_too_large(
    entities: StoreEntities, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answer_meters, "MAX_ANSWER_BYTES", 5_000)
    entities.put_raw(USERS, [{"n" * 1_000: n, "city": "york"} for n in range(6)])

    with pytest.raises(AnswerTooLarge):
        entities.select_raw(USERS, [Filter("city", "=", ["york"])])
    with pytest.raises(AnswerTooLarge):
        entities.select_raw(USERS, [Filter("id", "ALL")])
    assert len(entities.select_raw(USERS, [Filter("city", "=", ["york"])], limit=4)) == 4


def test_long_names_make_no_list(store: Store, entities: StoreEntities) -> None:
    long = {"n" * MAX_NAME_LIST_BYTES: 1, "name": "ann"}

    ids = entities.put_raw(USERS, [long, ANN])

    assert name_lists(store, USERS) == (tuple(ANN),)
    assert [e.properties for e in entities.get_raw(USERS, ids)] == [long, ANN]


# --- transactions ---------------------------------------------------------------------------------


@pytest.mark.every_engine
def test_a_list_of_a_transaction_that_is_undone_is_undone(
    store: Store, entities: StoreEntities
) -> None:
    def fail(tx: Tx) -> None:
        [id] = tx.entities.put_raw(USERS, [ANN])
        [entity] = tx.entities.get_raw(USERS, [id])
        assert entity.properties == ANN
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        store.transact(fail)
    [id] = entities.put_raw(USERS, [{"city": "york", "age": 1}])

    assert name_lists(store, USERS) == (("city", "age"),)
    assert found(entities, id) == {"city": "york", "age": 1}


@pytest.mark.every_engine
def test_writers_add_their_lists_side_by_side(store: Store, entities: StoreEntities) -> None:
    def put(n: int) -> str:
        [id] = entities.put_raw(USERS, [{"name": "ann", f"own{n % 6}": n}])
        return id

    with ThreadPoolExecutor(6) as pool:
        ids = list(pool.map(put, range(24)))

    got = [e.properties for e in entities.get_raw(USERS, ids)]
    assert got == [{"name": "ann", f"own{n % 6}": n} for n in range(24)]
    assert sorted(name_lists(store, USERS)) == [("name", f"own{n}") for n in range(6)]
    assert problems_of(store) == []


@pytest.mark.every_engine
def test_one_put_may_make_several_lists_and_meet_its_own_entities(
    store: Store, entities: StoreEntities
) -> None:
    puts = [PutEntity({f"own{n % 4}": n, "age": n % 7}, f"id{n % 50}") for n in range(1200)]

    entities.put_raw(USERS, puts)

    expected: dict[str, dict[str, Any]] = {}
    for each in puts:
        expected.setdefault(str(each.id), {}).update(each.properties)
    page = entities.select_raw(USERS, [Filter("id", "ALL")], limit=-1)
    assert {e.id: e.properties for e in page} == expected
    assert problems_of(store) == []


# --- old stores -----------------------------------------------------------------------------------


@pytest.mark.every_engine
@pytest.mark.parametrize("keep_lists", [False, True])
def test_entities_of_an_older_store_are_read_changed_and_found(
    store: Store, entities: StoreEntities, keep_lists: bool
) -> None:
    ann, bob = entities.put_raw(USERS, [ANN, BOB])
    make_older(store, USERS, keep_lists=keep_lists)
    assert all(stored[:1] == b"\x93" for stored in stored_entities(store, USERS))

    assert [found(entities, id) for id in (ann, bob)] == [ANN, BOB]
    entities.update_raw(USERS, [Filter("id", "=", [ann])], [Change("INCR", "age", 1)])
    entities.put_raw(USERS, [PutEntity({"city": "york"}, bob)])

    assert all(stored[:1] == b"\x94" for stored in stored_entities(store, USERS))
    assert found(entities, ann) == {**ANN, "age": 31}
    assert found(entities, bob) == {**BOB, "city": "york"}
    assert entities.select_raw(USERS, [Filter("age", "=", [31])]).entities[0].id == ann
    assert problems_of(store) == []


def test_both_forms_are_indexed_dumped_and_repaired_alike(
    store: Store, entities: StoreEntities, stores: Stores
) -> None:
    entities.put_raw(USERS, [PutEntity(ANN, "ann")])
    make_older(store, USERS, keep_lists=True)
    entities.put_raw(USERS, [PutEntity(BOB, "bob", ttl=10**12)])
    more = SCHEMA.replace("columns: [city, age]}", "columns: [lastName]}")

    entities.deploy(more, prune=True)

    assert entities.select_raw(USERS, [Filter("lastName", "=", ["ray"])]).entities[0].id == "bob"
    assert entities.repair(USERS).added == 0
    assert problems_of(store) == []
    dumped = list(entities.dump(USERS))
    with stores.open() as other:
        other.entities.deploy(more)
        assert other.entities.load(USERS, dumped) == 2
        assert [found(other.entities, id) for id in ("ann", "bob")] == [ANN, BOB]


def test_a_deploy_keeps_the_lists_and_a_drop_ends_them(
    store: Store, entities: StoreEntities
) -> None:
    [id] = entities.put_raw(USERS, [ANN])
    entities.deploy(
        SCHEMA.replace("city: {type: Text}", "city: {type: Text}\n      town: {type: Text}")
    )
    assert name_lists(store, USERS) == (tuple(ANN),)
    assert found(entities, id) == ANN

    entities.drop(USERS)

    assert name_lists(store, USERS) == ()
    [id] = entities.put_raw(USERS, [BOB])
    assert found(entities, id) == BOB


def test_a_list_is_read_by_who_opened_the_table_before(
    store: Store, entities: StoreEntities
) -> None:
    with store.view() as view:
        before = view.raw.get(keys_of(view.raw.space).table(USERS))
        entities.put_raw(USERS, [PutEntity(ANN, "ann")])
        assert view.raw.get(keys_of(view.raw.space).table(USERS)) == before
        assert view.entities.get_raw(USERS, ["ann"]) == []

    assert found(entities, "ann") == ANN
