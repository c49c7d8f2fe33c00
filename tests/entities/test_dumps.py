"""A dump holds every live entity, and loading it gives them back."""

import json
from datetime import UTC, datetime

import bson
import pytest

from holdfast.entities import StoreEntities
from holdfast.entities.messages import Change, DumpFormat, Filter, PutEntity
from holdfast.entities.values import Instant
from holdfast.errors import BadDump
from holdfast.testing import Clock

EVERYTHING = {
    "int": 5,
    "uint": 2**64 - 1,
    "float": float("inf"),
    "small": -0.5,
    "text": 'a "quoted" ü \0',
    "bool": True,
    "null": None,
    "when": datetime(1960, 1, 2, 3, 4, 5, 678_000, tzinfo=UTC),
    "beyond": Instant(2**60),
    "bytes": b"\x00\xff",
    "set": {"b", 1, b"x"},
    "list": [1, [2.5, {"k": {1}}]],
    "map": {"$set": [1], "a": {"b": None}},
    "$date": "a name like any other",
}
FORMATS: list[DumpFormat] = ["bson", "jsonl"]


@pytest.mark.parametrize("format", FORMATS)
def test_a_dump_loaded_into_an_empty_table_gives_back_the_same(
    entities: StoreEntities, format: DumpFormat, clock: Clock
) -> None:
    entities.put_raw("test.Users", [{"id": f"{n:04}", "age": n % 5} for n in range(600)])
    entities.put_raw("test.Users", [PutEntity(EVERYTHING, "all", ttl=5 * 10**9)])
    before = entities.select_raw("test.Users", [Filter("id", "ALL")], limit=-1).entities
    clock.advance(seconds=2)
    dump = list(entities.dump("test.Users", format=format))

    entities.drop("test.Users")
    assert entities.load("test.Users", dump) == 601

    after = entities.select_raw("test.Users", [Filter("id", "ALL")], limit=-1).entities
    assert [(e.id, e.properties) for e in after] == [(e.id, e.properties) for e in before]
    assert entities.count_raw("test.Users", [Filter("age", "=", [3])]) == 120
    clock.advance(seconds=3)
    assert entities.count_raw("test.Users") == 600
    assert entities.check("test.Users").added == 0


def test_a_bson_dump_is_documents_in_the_order_of_ids(
    entities: StoreEntities, clock: Clock
) -> None:
    entities.put_raw("test.Users", [{"id": "b", "age": 1}, PutEntity({"l": [1]}, "a", 10**9)])

    documents = [bson.decode(document) for document in entities.dump("test.Users")]

    assert documents == [
        {"id": "a", "properties": {"l": ["__MDZL__", 1]}, "ttl": 10**9},
        {"id": "b", "properties": {"age": 1}, "ttl": 0},
    ]


def test_a_json_dump_is_extended_json(entities: StoreEntities) -> None:
    entities.put_raw("test.Users", [{"id": "a", "n": 1, "f": 1.5, "s": {1}, "u": 2**63}])

    [line] = entities.dump("test.Users", format="jsonl")

    assert json.loads(line) == {
        "id": "a",
        "properties": {
            "n": {"$numberLong": "1"},
            "f": {"$numberDouble": "1.5"},
            "s": {"$set": [{"$numberLong": "1"}]},
            "u": {"$uint": str(2**63)},
        },
        "ttl": {"$numberLong": "0"},
    }


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("size", [1, 7, 1000])
def test_a_dump_may_come_in_pieces_of_any_size(
    entities: StoreEntities, format: DumpFormat, size: int
) -> None:
    entities.put_raw("test.Plain", [{"id": f"{n}", "text": "x" * n} for n in range(80, 130)])
    whole = b"".join(entities.dump("test.Plain", format=format))
    entities.drop("test.Plain")

    pieces = [whole[at : at + size] for at in range(0, len(whole), size)]

    assert entities.load("test.Plain", pieces) == 50
    assert entities.load("test.Plain", b"".join(pieces)) == 50


def test_load_keeps_ids_and_replaces_what_is_there(entities: StoreEntities) -> None:
    entities.put_raw("test.Keyed", [{"name": "John", "lastName": "Doe", "score": 1}])
    john = [Filter("id", "=", ["john|doe|"])]
    entities.update_raw("test.Keyed", john, [Change("SET", "name", "Jim")])
    dump = list(entities.dump("test.Keyed"))
    entities.update_raw("test.Keyed", john, [Change("SET", "extra", 1), Change("SET", "score", 2)])
    entities.put_raw("test.Keyed", [{"name": "Stays", "lastName": "Here"}])

    entities.load("test.Keyed", dump)

    [john_doe] = entities.get_raw("test.Keyed", ["john|doe|"])
    assert john_doe.properties == {"name": "Jim", "lastName": "Doe", "score": 1}
    assert entities.count_raw("test.Keyed") == 2


@pytest.mark.parametrize("format", FORMATS)
def test_a_damaged_dump_is_loaded_up_to_the_damage(
    entities: StoreEntities, format: DumpFormat
) -> None:
    entities.put_raw("test.Plain", [{"id": f"{n}", "n": n} for n in range(5)])
    dump = list(entities.dump("test.Plain", format=format))
    entities.drop("test.Plain")

    with pytest.raises(BadDump, match=r"\. 3 entities were loaded before it"):
        entities.load("test.Plain", [*dump[:3], dump[3][:-4]])

    assert entities.count_raw("test.Plain") == 3


@pytest.mark.parametrize(
    "damaged",
    [
        b"\x05\x00\x00\x00\x00",
        bson.encode({"id": 5, "properties": {}}),
        bson.encode({"id": "x"}),
        bson.encode({"id": "x", "properties": {}, "ttl": "soon"}),
        b"\xff\xff\xff\xff",
        b'{"id": "x", "properties": {"a": {"$date": 5}}}\n',
        b'{"properties": {}}\n',
        b'{"id": "x"',
    ],
)
def test_a_document_that_is_no_entity_is_refused(entities: StoreEntities, damaged: bytes) -> None:
    with pytest.raises(BadDump, match="0 entities were loaded before it"):
        entities.load("test.Plain", [damaged])


def test_a_ttl_may_be_a_whole_float_as_any_integer_on_the_wire(
    entities: StoreEntities, clock: Clock
) -> None:
    entities.load("test.Plain", [bson.encode({"id": "x", "properties": {}, "ttl": 1e9})])

    assert entities.count_raw("test.Plain") == 1
    clock.advance(seconds=1)
    assert entities.count_raw("test.Plain") == 0


@pytest.mark.parametrize("text", ["2026-11-16T12:00:00Z", "2026-11-16T13:00:00+01:00"])
def test_a_moment_may_be_written_in_the_relaxed_form(entities: StoreEntities, text: str) -> None:
    entities.load(
        "test.Plain", [b'{"id": "x", "properties": {"a": {"$date": "%s"}}}' % text.encode()]
    )

    [entity] = entities.get_raw("test.Plain", ["x"])
    assert entity is not None
    assert entity.properties["a"] == datetime(2026, 11, 16, 12, tzinfo=UTC)


def test_an_empty_dump_loads_nothing(entities: StoreEntities) -> None:
    assert entities.load("test.Plain", []) == 0
    assert entities.load("test.Plain", [b"", b"\n"]) == 0


def test_an_unknown_format_is_refused(entities: StoreEntities) -> None:
    with pytest.raises(BadDump, match="gob"):
        list(entities.dump("test.Plain", format="gob"))  # type: ignore[arg-type]  # that is the point


@pytest.mark.parametrize(
    "document",
    [
        b'{"id": "b", "properties": {"a\\u0000b": 1}}',
        b'{"id": "b", "properties": {"a": 100000000000000000000}}',
        b'{"id": "b", "properties": {"a": {"$date": {"$numberLong": "100000000000000000000"}}}}',
        b'{"id": "b", "properties": {"a": ' + b"[" * 101 + b"]" * 101 + b"}}",
        b'{"id": "b", "properties": {}, "ttl": 100000000000000000000000000}',
        b'{"id": "' + b"b" * 1025 + b'", "properties": {}}',
        b'{"id": "b", "properties": {"key": "TAKEN"}}',
        b'{"id": "b", "properties": {"size": "not an Int"}}',
    ],
)
def test_a_document_that_the_table_refuses_ends_the_load_as_a_damaged_one_does(
    entities: StoreEntities, document: bytes
) -> None:
    entities.deploy(
        "schema: d\n"
        "tables:\n"
        "  T:\n"
        "    strict: true\n"
        "    columns: {key: {type: Text}, size: {type: Int}, a: {type: List}}\n"
        "    indexes: [{type: simple, columns: [key], options: {unique: true}}]\n"
    )
    good = [b'{"id": "g0", "properties": {"key": "Taken"}}', b'{"id": "g1", "properties": {}}']

    with pytest.raises(BadDump, match=r"^.+\. 2 entities were loaded before"):
        entities.load("d.T", [b"\n".join([*good, document, b'{"id": "c", "properties": {}}'])])

    assert [entity.id for entity in entities.select_raw("d.T", [Filter("id", "ALL")])] == [
        "g0",
        "g1",
    ]
    assert entities.check("d.T").added == 0


def test_a_property_called_id_is_not_loaded(entities: StoreEntities) -> None:
    entities.load("test.Plain", [b'{"id": "x", "properties": {"id": "y", "a": 1}}'])

    assert entities.get_raw("test.Plain", ["x"])[0].properties == {"a": 1}
