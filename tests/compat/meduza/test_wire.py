"""Meduza's messages, byte for byte."""

import struct
from datetime import UTC, datetime
from typing import Any

import bson
import pytest
from bson.binary import Binary
from bson.code import Code
from bson.int64 import Int64
from bson.objectid import ObjectId

from holdfast.compat.meduza import wire
from holdfast.entities import StoreEntities
from holdfast.entities.messages import Get, Ping, Put, PutEntity
from holdfast.errors import HoldfastError, InvalidTable
from holdfast.store import Store

PUT = bytes.fromhex(
    "6f 00 00 00 02 74 61 62 6c 65 00 0b 00 00 00 74 65 73 74 2e 55 73 65 72 73 00 04 65 6e 74 "
    "69 74 69 65 73 00 4a 00 00 00 03 30 00 42 00 00 00 0a 69 64 00 03 70 72 6f 70 65 72 74 69 "
    "65 73 00 20 00 00 00 02 6e 61 6d 65 00 04 00 00 00 42 6f 62 00 12 61 67 65 00 07 00 00 00 "
    "00 00 00 00 00 12 74 74 6c 00 00 00 00 00 00 00 00 00 00 00 00"
)
RPUT = bytes.fromhex(
    "46 00 00 00 03 52 65 73 70 6f 6e 73 65 00 1a 00 00 00 12 74 69 6d 65 00 40 e2 01 00 00 00 "
    "00 00 0a 65 72 72 6f 72 00 00 04 69 64 73 00 18 00 00 00 02 30 00 0c 00 00 00 6b 45 72 35 "
    "5a 71 30 63 51 76 45 00 00 00"
)
PONG = bytes.fromhex(
    "29 00 00 00 03 52 65 73 70 6f 6e 73 65 00 1a 00 00 00 12 74 69 6d 65 00 00 00 00 00 00 00 "
    "00 00 0a 65 72 72 6f 72 00 00 00"
)
RGET_ERROR = bytes.fromhex(
    "59 00 00 00 03 52 65 73 70 6f 6e 73 65 00 2c 00 00 00 12 74 69 6d 65 00 00 00 00 00 00 00 "
    "00 00 02 65 72 72 6f 72 00 0e 00 00 00 49 6e 76 61 6c 69 64 20 54 61 62 6c 65 00 00 04 65 "
    "6e 74 69 74 69 65 73 00 05 00 00 00 00 12 74 6f 74 61 6c 00 00 00 00 00 00 00 00 00 00"
)


class Wire:
    """A client of the messages: sends a query and decodes the reply."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __call__(self, kind: str, body: Any) -> Any:
        raw = body if isinstance(body, bytes) else bson.encode(body)
        try:
            query = wire.read_query(kind, raw)
            if wire.is_read(query):
                with self._store._runner.view() as reader:
                    result = wire.execute(reader, query)  # type: ignore[arg-type]  # a view will do
            else:
                result = self._store._runner.transact(lambda tx: wire.execute(tx, query))
        except HoldfastError as error:
            return bson.decode(wire.write_error(kind, error))
        return bson.decode(wire.write_reply(query, result))


@pytest.fixture
def send(store: Store, entities: StoreEntities) -> Wire:
    return Wire(store)


def filters(**properties: Any) -> dict[str, Any]:
    return {n: {"property": n, "op": "=", "values": [v]} for n, v in properties.items()}


ALL = {"id": {"property": "id", "op": "ALL", "values": []}}
NONSENSE = {"a": {"property": "a", "op": "?", "values": []}}


# --- vectors ----------------------------------------------------------------------------------


def test_the_put_of_the_specification_is_read() -> None:
    assert len(PUT) == 111

    assert wire.read_query("PUT", PUT) == Put("test.Users", [PutEntity({"name": "Bob", "age": 7})])


def test_the_reply_to_it_has_the_bytes_of_the_specification() -> None:
    query = wire.read_query("PUT", PUT)

    reply = wire.write_reply(query, ["kEr5Zq0cQvE"], time_ns=123456)

    assert len(reply) == 70
    assert reply == RPUT


def test_pong_has_the_bytes_of_the_specification() -> None:
    assert wire.write_reply(wire.read_query("PING", b"\x05\0\0\0\0"), None) == PONG
    assert wire.read_query("ping", b"anything at all") == Ping()


def test_an_error_has_the_fields_of_the_specification_and_a_code() -> None:
    body = bson.decode(wire.write_error("GET", InvalidTable("Invalid Table")))

    code = body["Response"].pop("code")
    assert code == "invalid_table"
    assert bson.encode(body, codec_options=bson.CodecOptions()) == RGET_ERROR


def test_types_of_replies() -> None:
    replies = [wire.reply_type(kind) for kind in ("PUT", "get", "Update", "DEL", "PING", "TX")]

    assert replies == ["RPUT", "RGET", "RUPDATE", "RDEL", "PONG", "RTX"]


# --- queries ----------------------------------------------------------------------------------


def test_entities_come_back_as_they_were_put(send: Wire) -> None:
    moment = datetime(2020, 1, 2, 3, 4, 5, 678_000, tzinfo=UTC)
    properties = {
        "name": "Bob",
        "age": Int64(7),
        "when": moment,
        "bytes": Binary(b"\x00\xff", 128),
        "set": ["__MDZS__", "b", "a", "a", 1, 1.0],
        "list": [1, ["__MDZL__", 2], ["__MDZS__"]],
        "empty": [],
        "map": {"k": [True, None]},
        "id": "dropped",
    }

    reply = send("PUT", {"table": "test.Users", "entities": [{"properties": properties}]})
    assert reply["Response"] == {"time": 0, "error": None}
    [id] = reply["ids"]

    reply = send("GET", {"table": "test.Users", "filters": filters(id=id)})
    assert list(reply) == ["Response", "entities", "total"]
    assert reply["total"] == 1
    [entity] = reply["entities"]
    assert list(entity) == ["id", "properties", "ttl"]
    assert (entity["id"], entity["ttl"]) == (id, 0)
    assert entity["properties"] == {
        "name": "Bob",
        "age": 7,
        "when": moment.replace(tzinfo=None),
        "bytes": b"\x00\xff",
        "set": ["__MDZS__", 1, "a", "b"],
        "list": ["__MDZL__", 1, ["__MDZL__", 2], ["__MDZS__"]],
        "empty": ["__MDZL__"],
        "map": {"k": ["__MDZL__", True, None]},
    }
    assert type(entity["properties"]["age"]) is Int64


def test_true_and_1_are_two_elements(send: Wire) -> None:
    one = {"id": "x", "properties": {"s": ["__MDZS__", 1, True, "A", "a"]}}
    send("PUT", {"table": "test.Plain", "entities": [one]})

    reply = send("GET", {"table": "test.Plain", "filters": ALL})

    assert repr(reply["entities"][0]["properties"]["s"]) == "['__MDZS__', True, 1, 'A', 'a']"


@pytest.mark.parametrize(
    "element",
    [
        b"\x10age\0" + struct.pack("<i", -3),
        b"\x12age\0" + struct.pack("<q", -3),
        b"\x01age\0" + struct.pack("<d", -3.0),
    ],
)
def test_numbers_of_every_width_match_by_value(send: Wire, element: bytes) -> None:
    inner = struct.pack("<i", len(element) + 5) + element + b"\0"
    entity = b"\x02id\0\x02\0\0\0x\0\x03properties\0" + inner
    entity = struct.pack("<i", len(entity) + 5) + entity + b"\0"
    array = b"\x030\0" + entity
    array = struct.pack("<i", len(array) + 5) + array + b"\0"
    body = b"\x02table\0\x0b\0\0\0test.Users\0\x04entities\0" + array

    send("PUT", struct.pack("<i", len(body) + 5) + body + b"\0")

    reply = send("GET", {"table": "test.Users", "filters": filters(age=-3)})
    assert reply["total"] == 1


def test_an_unsigned_number_above_2_63_leaves_as_it_came(store: Store, send: Wire) -> None:
    store.entities.put_raw("test.Plain", [{"id": "x", "n": 2**64 - 1}])
    query = wire.read_query("GET", bson.encode({"table": "test.Plain", "filters": ALL}))

    with store._runner.view() as reader:
        reply = wire.write_reply(query, wire.execute(reader, query))  # type: ignore[arg-type]  # a view will do

    assert b"\x3fn\0" + b"\xff" * 8 in reply


def test_an_answer_with_too_many_entities_is_refused_with_advice(
    send: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.entities.answer_meters.MAX_ANSWER_ENTITIES", 2)
    entities = [{"id": f"{n}", "properties": {}} for n in range(3)]
    send("PUT", {"table": "test.Users", "entities": entities})

    reply = send("GET", {"table": "test.Users", "filters": ALL, "paging": {"limit": -1}})

    assert reply["Response"]["code"] == "answer_too_large"
    assert "more than 2 entities in one answer: ask for them in pages" in reply["Response"]["error"]
    assert reply["entities"] == []


def test_paging_takes_integers_of_any_width_and_defaults_to_100(send: Wire) -> None:
    many = [{"id": f"{n:03}", "properties": {}} for n in range(150)]
    send("PUT", {"table": "test.Plain", "entities": many})
    get = {"table": "test.Plain", "filters": ALL}

    assert len(send("GET", get)["entities"]) == 100
    assert len(send("GET", {**get, "paging": {"offset": 140, "limit": 20.0}})["entities"]) == 10
    assert len(send("GET", {**get, "paging": {"limit": -1}})["entities"]) == 150
    assert send("GET", {**get, "count": False})["total"] == -1
    assert send("GET", {**get, "paging": None, "order": None})["entities"][0]["id"] == "000"
    down = {**get, "order": {"by": "id", "asc": False}}
    assert send("GET", down)["entities"][0]["id"] == "149"
    assert send("GET", {**get, "order": {"by": "id"}})["entities"][0]["id"] == "000"
    assert send("GET", {**get, "order": {"by": "", "asc": False}})["entities"][0]["id"] == "000"


def test_ids_may_be_binary(send: Wire) -> None:
    entity = {"id": Binary("ü".encode()), "properties": {"a": 1}}
    assert send("PUT", {"table": "test.Plain", "entities": [entity]})["ids"] == ["ü"]

    by_id = {"table": "test.Plain", "filters": filters(id=Binary("ü".encode()))}
    assert send("GET", by_id)["total"] == 1
    assert send("DEL", by_id)["num"] == 1


def test_a_projection_and_versions(send: Wire) -> None:
    entity = {"id": "x", "properties": {"a": 1, "b": 2}}
    send("PUT", {"table": "test.Plain", "entities": [entity]})

    get = {"table": "test.Plain", "filters": ALL, "properties": ["b", "id"], "versions": True}
    assert send("GET", get)["entities"] == [
        {"id": "x", "properties": {"b": 2}, "ttl": 0, "version": 1}
    ]
    stale = {**entity, "if_version": 7}
    reply = send("PUT", {"table": "test.Plain", "entities": [stale]})
    assert reply["Response"]["code"] == "conflict"
    assert reply["ids"] == []


def test_update_and_del(send: Wire) -> None:
    entities = [{"id": id, "properties": {"name": "a", "age": 1}} for id in "xyz"]
    send("PUT", {"table": "test.Users", "entities": entities})
    changes = [
        {"property": "age", "op": "INCR", "value": 2},
        {"property": "name", "op": "INCR", "value": 1},
        {"property": "tags", "op": "SADD", "value": ["__MDZS__", "t"]},
    ]

    reply = send("UPDATE", {"table": "test.Users", "filters": filters(age=1), "changes": changes})
    assert (reply["num"], reply["skipped"]) == (3, 3)
    reply = send("GET", {"table": "test.Users", "filters": filters(id="x")})
    assert reply["entities"][0]["properties"] == {
        "name": "a",
        "age": 3,
        "tags": ["__MDZS__", "t"],
    }

    assert send("DEL", {"table": "test.Users", "filters": filters(id="x")})["num"] == 1
    expire = [{"property": "", "op": "EXP", "value": Int64(0)}]
    reply = send("UPDATE", {"table": "test.Users", "filters": filters(id="y"), "changes": expire})
    assert reply == {"Response": {"time": 0, "error": None}, "num": 1}
    assert send("DEL", {"table": "test.Users", "filters": ALL})["num"] == 1


def test_the_mode_of_a_put(send: Wire) -> None:
    put = {"table": "test.Plain", "entities": [{"id": "x", "properties": {"a": 1}}]}
    send("PUT", put)

    reply = send("PUT", {**put, "mode": "insert"})
    assert reply["Response"]["error"] == "Duplicate Key"
    assert reply["Response"]["code"] == "duplicate_key"
    more = {"table": "test.Plain", "entities": [{"id": "x", "properties": {"b": 1}}]}
    send("PUT", {**more, "mode": "replace"})
    reply = send("GET", {"table": "test.Plain", "filters": ALL})
    assert reply["entities"][0]["properties"] == {"b": 1}


def test_several_queries_in_one_transaction(send: Wire) -> None:
    put = {"table": "test.Plain", "entities": [{"id": "x", "properties": {}}]}
    get = {"table": "test.Plain", "filters": ALL}
    queries = [{"type": "PUT", "body": put}, {"type": "get", "body": get}]

    reply = send("TX", {"queries": queries})
    assert reply["replies"][0]["ids"] == ["x"]
    assert reply["replies"][1]["total"] == 1

    bad = {"type": "PUT", "body": {**put, "table": "none"}}
    more = {"type": "PUT", "body": {"table": "test.Plain", "entities": [{"properties": {}}]}}
    reply = send("TX", {"queries": [more, bad]})
    assert (reply["Response"]["error"], reply["replies"]) == ("Invalid Table", [])
    assert send("GET", get)["total"] == 1


def test_a_partial_answer_says_so(store: Store, send: Wire) -> None:
    table = "schema: p\ntables:\n  T:\n    columns: {a: {type: Int}}\n"
    store.entities.deploy(table)
    store.entities.put_raw("p.T", [{"a": 1} for _ in range(700)])
    store.entities.deploy(table + "    indexes: [{type: simple, columns: [a]}]", wait=False)
    get = {"table": "p.T", "filters": filters(a=1)}

    assert send("GET", get)["partial"] is True
    store.entities.build()
    assert "partial" not in send("GET", get)


# --- bad input --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["GET", "PUT", "UPDATE", "DEL"])
@pytest.mark.parametrize("body", [b"", b"\x05", b"nonsense", b"\x10\0\0\0\0"])
def test_a_body_that_is_no_bson_is_malformed(send: Wire, kind: str, body: bytes) -> None:
    reply = send(kind, body)

    assert reply["Response"]["error"].startswith("Malformed message: ")
    assert reply["Response"]["code"] == "malformed"


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("GET", {"table": 5, "filters": ALL}),
        ("GET", {"table": "test.Users", "filters": [1]}),
        ("GET", {"table": "test.Users", "filters": {"a": 1}}),
        ("GET", {"table": "test.Users", "filters": ALL, "order": "name"}),
        ("GET", {"table": "test.Users", "filters": ALL, "order": {"by": "id", "asc": 1}}),
        ("GET", {"table": "test.Users", "filters": ALL, "paging": [1]}),
        ("GET", {"table": "test.Users", "filters": ALL, "paging": {"limit": "1"}}),
        ("GET", {"table": "test.Users", "filters": ALL, "properties": [1]}),
        ("PUT", {"table": "test.Users", "entities": "x"}),
        ("PUT", {"table": "test.Users", "entities": ["x"]}),
        ("PUT", {"table": "test.Users", "entities": [{"id": 5}]}),
        ("PUT", {"table": "test.Users", "entities": [{"id": Binary(b"\xff")}]}),
        ("PUT", {"table": "test.Users", "entities": [{"id": Code("x")}]}),
        ("PUT", {"table": "test.Users", "entities": [{"ttl": "x"}]}),
        ("PUT", {"table": "test.Users", "entities": [{"properties": []}]}),
        ("UPDATE", {"table": "test.Users", "filters": ALL, "changes": {"a": 1}}),
        ("UPDATE", {"table": "test.Users", "filters": ALL, "changes": [{"op": 1}]}),
        ("TX", {"queries": [{"type": "PUT"}]}),
        ("TX", {"queries": 5}),
    ],
)
def test_a_field_of_the_wrong_type_is_malformed(send: Wire, kind: str, body: Any) -> None:
    assert send(kind, body)["Response"]["code"] == "malformed"


@pytest.mark.parametrize(
    ("kind", "body", "text", "code"),
    [
        ("GET", {"filters": ALL}, "No table for GET query", "bad_query"),
        ("GET", {}, "No table for GET query", "bad_query"),
        ("PUT", {"entities": [{}]}, "No table for PUT query", "bad_query"),
        ("UPDATE", {"filters": ALL}, "No table for UPDATE query", "bad_query"),
        ("DEL", {"filters": ALL}, "DelQuery has no table", "bad_query"),
        ("GET", {"filters": NONSENSE}, "No table for GET query", "bad_query"),
        ("PUT", {"table": "a.b"}, "PUT query does not contain entities", "bad_query"),
        ("GET", {"table": "a.b", "filters": NONSENSE}, "Unsupported operator: '?'", "bad_filter"),
        ("DEL", {"table": "a.b", "filters": NONSENSE}, "Unsupported operator: '?'", "bad_filter"),
        (
            "UPDATE",
            {"table": "a.b", "filters": NONSENSE, "changes": [{"op": "DEL"}]},
            "Unsupported operator: '?'",
            "bad_filter",
        ),
        ("GET", {"table": "a.b", "filters": ALL}, "Invalid Table", "invalid_table"),
        ("GET", {"table": "test.Users"}, "No filters for GET query", "bad_query"),
        ("DEL", {"table": "test.Users"}, "No index matches the filter", "no_index"),
        ("PUT", {"table": "test.Users"}, "PUT query does not contain entities", "bad_query"),
        (
            "PUT",
            {"table": "test.Users", "entities": [{"properties": {"": 1}}]},
            "Empty properties not allowed in entities",
            "bad_query",
        ),
        (
            "PUT",
            {"table": "test.Users", "entities": [{"properties": {"a": ObjectId()}}]},
            "Type ObjectId not allowed for entities",
            "bad_value",
        ),
        (
            "PUT",
            {"table": "test.Users", "entities": [{"properties": {"a": ["__MDZS__", [1]]}}]},
            "container",
            "bad_value",
        ),
        (
            "GET",
            {"table": "test.Users", "filters": {"a": {"property": "b", "op": "="}}},
            "'a'",
            "bad_filter",
        ),
        (
            "GET",
            {"table": "test.Users", "filters": {"age": {"op": "=", "values": [1]}}},
            "No property given for filter",
            "bad_filter",
        ),
        (
            "GET",
            {"table": "test.Users", "filters": filters(age=[1])},
            "container",
            "bad_filter",
        ),
        (
            "GET",
            {"table": "test.Users", "filters": ALL, "paging": {"limit": 1.5}},
            "Invalid paging parameters: offset: 0, limit: 1.5",
            "bad_paging",
        ),
        (
            "GET",
            {"table": "test.Users", "filters": ALL, "paging": {"limit": 0}},
            "Invalid paging parameters: offset: 0, limit: 0",
            "bad_paging",
        ),
        (
            "PUT",
            {"table": "test.Keyed", "entities": [{"properties": {"name": "x"}}]},
            "Cannot index entity with missing/nil value for lastName",
            "bad_key",
        ),
        (
            "UPDATE",
            {"table": "test.Users", "filters": ALL, "changes": [{"op": "NOOP", "property": "a"}]},
            "Change Op NOOP still not supported",
            "bad_change",
        ),
    ],
)
def test_what_is_refused_has_its_text_and_code(
    send: Wire, kind: str, body: Any, text: str, code: str
) -> None:
    reply = send(kind, body)

    assert text in reply["Response"]["error"]
    assert reply["Response"]["code"] == code
    nothing: dict[str, Any] = {"GET": ("entities", []), "PUT": ("ids", [])}
    name, value = nothing.get(kind, ("num", 0))
    assert reply[name] == value


def test_unknown_fields_are_skipped_and_null_is_the_default() -> None:
    body = {"table": "t.T", "filters": ALL, "surprise": {"a": 1}, "properties": None, "paging": {}}

    query = wire.read_query("GET", bson.encode(body))

    assert isinstance(query, Get)
    assert (query.properties, query.paging.limit, query.order) == ([], 100, None)
