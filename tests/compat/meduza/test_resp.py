"""Meduza clients work unchanged: BSON messages over a plain socket."""

import json
from typing import Any

import bson
import hiredis
import pytest

from tests.compat.meduza.test_wire import PONG
from tests.server.running import RawClient, command

SCHEMA = """
schema: shop
tables:
  Users:
    engines: [redis]
    primary: {type: random}
    columns:
      name: {type: Text}
      age: {type: Int}
    indexes:
      - {type: compound, columns: [name]}
"""


@pytest.fixture
def users(client: RawClient) -> RawClient:
    """A client in a space where the table `shop.Users` is deployed."""
    deployed = client.ask("ENTITIES.DEPLOY", json.dumps({"schemas": [SCHEMA]}))
    assert isinstance(deployed, bytes), deployed
    return client


def _ask(client: RawClient, kind: str, body: dict[str, Any]) -> tuple[bytes, dict[str, Any]]:
    name, reply = client.ask(kind, bson.encode(body))
    return name, bson.decode(reply)


def _named(name: str) -> dict[str, Any]:
    return {"name": {"property": "name", "op": "=", "values": [name]}}


def test_entities_are_put_found_changed_and_deleted(users: RawClient) -> None:
    table = {"table": "shop.Users"}
    ann = {"id": None, "properties": {"name": "Ann", "age": 7}, "ttl": 0}

    kind, put = _ask(users, "PUT", {**table, "entities": [ann]})
    assert (kind, put["Response"]["error"], len(put["ids"])) == (b"RPUT", None, 1)
    kind, found = _ask(users, "GET", {**table, "filters": _named("Ann")})
    assert (kind, found["total"]) == (b"RGET", 1)
    assert found["entities"] == [
        {"id": put["ids"][0], "properties": {"name": "Ann", "age": 7}, "ttl": 0}
    ]
    changes = [{"property": "age", "op": "INCR", "value": 1}]
    kind, changed = _ask(users, "update", {**table, "filters": _named("Ann"), "changes": changes})
    assert (kind, changed["num"]) == (b"RUPDATE", 1)
    kind, deleted = _ask(users, "DEL", {**table, "filters": _named("Ann")})
    assert (kind, deleted["num"]) == (b"RDEL", 1)


def test_the_same_messages_have_long_names(users: RawClient) -> None:
    ann = {"properties": {"name": "Ann"}}
    kind, _ = _ask(users, "ENTITY.PUT", {"table": "shop.Users", "entities": [ann]})
    assert kind == b"RPUT"
    kind, found = _ask(users, "entity.get", {"table": "shop.Users", "filters": _named("Ann")})
    assert (kind, found["total"]) == (b"RGET", 1)


def test_ping_with_a_document_is_answered_with_one(client: RawClient) -> None:
    for name in ("PING", "ENTITY.PING", "ping"):
        client.says(
            command(name, bson.encode({})),
            b"*2\r\n$4\r\nPONG\r\n$%d\r\n%b\r\n" % (len(PONG), PONG),
        )
    client.says(command("PING"), b"+PONG\r\n")
    client.says(command("PING", "hello"), b"$5\r\nhello\r\n")
    client.says(command("PING", b"\x06\0\0\0x\0"), b"$6\r\n\x06\0\0\0x\0\r\n")


def test_a_query_that_fails_is_answered_in_its_own_form(users: RawClient) -> None:
    kind, reply = _ask(users, "GET", {"table": "no.Table", "filters": _named("x")})

    assert kind == b"RGET"
    assert reply["Response"]["error"].startswith("Invalid Table")
    assert (reply["entities"], reply["total"]) == ([], 0)
    assert users.ask("PING") == b"PONG"


@pytest.mark.parametrize("body", [b"", b"hello", bson.encode({})[:-1], b"\xff" * 40])
def test_a_body_that_is_no_document_is_answered_in_the_same_form(
    users: RawClient, body: bytes
) -> None:
    kind, reply = users.ask("PUT", body)

    assert kind == b"RPUT"
    document = bson.decode(reply)
    assert document["Response"]["error"]
    assert document["ids"] == []


def test_a_message_without_a_body_is_answered_too(users: RawClient) -> None:
    kind, reply = users.ask("GET")

    assert (kind, bson.decode(reply)["entities"]) == (b"RGET", [])


def test_messages_may_be_pipelined_and_a_read_sees_the_writes_before_it(users: RawClient) -> None:
    for number in range(10):
        entity = {"properties": {"name": "Ann", "age": number}}
        users.send("PUT", bson.encode({"table": "shop.Users", "entities": [entity]}))
        users.send("GET", bson.encode({"table": "shop.Users", "filters": _named("Ann")}))

    for number in range(10):
        assert users.receive()[0] == b"RPUT"
        assert bson.decode(users.receive()[1])["total"] == number + 1


@pytest.mark.parametrize(
    "body",
    [
        b"junk",
        bson.encode({"table": "shop.Users", "entities": "none"}),
        bson.encode({"table": "shop.Nobody", "entities": [{"properties": {}}]}),
    ],
)
def test_a_message_that_fails_in_a_batch_leaves_nothing_of_it(
    users: RawClient, body: bytes
) -> None:
    ann = {"properties": {"name": "Ann"}}
    users.ask("MULTI")
    users.ask("PUT", bson.encode({"table": "shop.Users", "entities": [ann]}))
    users.ask("PUT", body)

    assert isinstance(users.ask("EXEC"), hiredis.ReplyError)
    _, found = _ask(users, "GET", {"table": "shop.Users", "filters": _named("Ann")})
    assert found["total"] == 0


def test_replies_look_the_same_in_protocol_3(users: RawClient) -> None:
    users.ask("HELLO", "3")

    kind, reply = _ask(users, "GET", {"table": "shop.Users", "filters": _named("Ann")})
    assert (kind, reply["total"]) == (b"RGET", 0)
