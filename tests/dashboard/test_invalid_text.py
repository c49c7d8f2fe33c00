"""Bytes over RESP that are no UTF-8: refused as text, and shown as harmless text where they fit."""

import json
from typing import Any

import bson
import hiredis
import msgspec
import pytest

from holdfast.client.client import Client
from tests.dashboard.data_seeding import SHOP_YAML
from tests.dashboard.visitor import Visitor
from tests.server.running import RawClient
from tests.server.serving import Server

TEXT = "|NO UTF-8|"
INVALID = b"\xff\xfe\xc3(\xed\xa0\x80\xf8\x80\xc0"  # as long: a BOM, a surrogate, cut and overlong
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("JOBS.PUT", {"queue": TEXT}),
    ("JOBS.PUT", {"queue": "q", "id": TEXT}),
    ("JOBS.PUT", {"queue": "q", "klass": TEXT}),
    ("JOBS.PUT", {"queue": "q", "data": {"a": [TEXT]}}),
    ("JOBS.PUT", {"queue": "q", "data": {TEXT: 1}}),
    ("JOBS.PUT", {"queue": "q", "tags": [TEXT]}),
    ("JOBS.FAIL", {"id": "one", "worker": "w", "group": TEXT, "message": TEXT}),
    ("JOBS.RECUR", {"queue": "q", "id": TEXT, "interval": 60}),
    ("EVENTS.DEPLOY", {"schema": {TEXT: []}}),
    ("EVENTS.SEND", {"event": {"name": TEXT}}),
    ("EVENTS.SEND", {"event": {"name": "e", "attributes": {"who": TEXT}}}),
    ("EVENTS.SEND", {"event": {"name": "e", "attributes": {TEXT: "who"}}}),
    ("TABLES.CREATE", {"schema": {"table": TEXT, "attributes": {}, "index": []}}),
    ("TABLES.PUT", {"table": "t", "attributes": {"id": TEXT}}),
    ("ENTITIES.PUT_RAW", {"table": "shop.Users", "entities": [{"id": TEXT}]}),
    ("ENTITIES.PUT_RAW", {"table": "shop.Users", "entities": [{"id": "a", TEXT: 1}]}),
    ("METRICS.INCR", {"metric": TEXT}),
    ("METRICS.INCR", {"metric": "visits", "entity": [TEXT]}),
]
PAGES = ("", "queues", "failures", "schedules", "entities", "tables", "events", "metrics", "slow")


@pytest.fixture(scope="module")
def space(client: Client) -> str:
    client.space("invalid").entities.deploy(SHOP_YAML)
    return "invalid"


def spoiled(encoded: bytes) -> bytes:
    """Returns a message whose text `TEXT` is replaced by bytes that are no text."""
    assert TEXT.encode() in encoded
    return encoded.replace(TEXT.encode(), INVALID)


def test_text_that_is_no_utf8_is_refused_and_no_page_has_it(
    server: Server, space: str, visitor: Visitor
) -> None:
    with RawClient(server.resp_port) as raw:
        assert raw.ask("SPACE", space) == b"OK"
        for name, arguments in CALLS:
            for encode in (msgspec.json.encode, msgspec.msgpack.encode):
                reply = raw.ask(name, spoiled(encode(arguments)))
                assert isinstance(reply, hiredis.ReplyError), (name, arguments, reply)
                assert "UTF-8" in str(reply), (name, arguments, reply)
        for words in (("SPACE", INVALID), ("EVENTS.TOP", INVALID)):
            assert "UTF-8" in str(raw.ask(*words))

    for path in PAGES:
        assert "�" not in visitor.get(f"/ui/{space}/{path}"), path


def test_words_of_the_originals_that_are_no_utf8_are_refused_too(
    server: Server, space: str, visitor: Visitor
) -> None:
    entity = {"id": None, "properties": {"name": TEXT}, "ttl": 0}
    message = spoiled(bson.encode({"table": "shop.Users", "entities": [entity]}))
    with RawClient(server.resp_port) as raw:
        raw.ask("SPACE", space)
        for queue, id, klass, data in (
            (INVALID, b"id", b"klass", b"{}"),
            (b"q", INVALID, b"klass", b"{}"),
            (b"q", b"id", INVALID, b"{}"),
            (b"q", b"id", b"klass", spoiled(json.dumps({"a": TEXT}).encode())),
        ):
            reply = raw.ask("QLESS", "put", "1", queue, id, klass, data, "0")
            assert isinstance(reply, hiredis.ReplyError), reply
        kind, reply = raw.ask("PUT", message)

    assert kind == b"RPUT"
    assert bson.decode(reply)["Response"]["error"]
    for path in PAGES:
        assert "�" not in visitor.get(f"/ui/{space}/{path}"), path


def test_bytes_are_shown_as_harmless_text(server: Server, space: str, visitor: Visitor) -> None:
    script = INVALID + b"<script>alert(1)</script>"
    blob = {
        "table": "blobs",
        "attributes": {"id": "blob", "body": "blob"},
        "index": [{"attribute": "id", "type": "hash"}],
    }
    calls: list[tuple[str, dict[str, Any]]] = [
        ("ENTITIES.PUT_RAW", {"table": "shop.Users", "entities": [{"id": "raw", "raw": script}]}),
        ("TABLES.CREATE", {"schema": blob}),
        ("TABLES.PUT", {"table": "blobs", "attributes": {"id": script, "body": script}}),
    ]
    with RawClient(server.resp_port) as raw:
        raw.ask("SPACE", space)
        job = msgspec.msgpack.encode({"queue": "q", "data": script})
        refused = raw.ask("JOBS.PUT", job)  # a job's data is JSON, which has no bytes
        accepted = [
            name
            for name, arguments in calls
            if not isinstance(raw.ask(name, msgspec.msgpack.encode(arguments)), hiredis.ReplyError)
        ]

    assert isinstance(refused, hiredis.ReplyError)
    assert accepted == [name for name, _ in calls]
    users = "entities/shop.Users"
    for path in (users, f"{users}/ids/raw", "tables/blobs", f"spaces/{space}"):
        assert "<script>alert" not in visitor.get(f"/ui/{space}/{path}"), path


def test_addresses_that_are_no_utf8_are_not_found(
    server: Server, space: str, visitor: Visitor
) -> None:
    names = ("jobs/{}", "queues/{}", "failures/{}", "workers/{}", "schedules/{}", "bulk/{}",
             "tables/{}", "entities/{}", "entities/shop.Users/ids/{}", "events/keys/{}",
             "events/schemas/{}", "metrics/{}", "search?q={}", "limits?condition={}")  # fmt: skip

    answers = {path: visitor.read(f"/ui/{space}/{path.format('%ff%fe')}") for path in names}
    answers["space"] = visitor.read("/ui/%ff%fe/queues")

    for path, answer in answers.items():
        assert answer.status in (200, 400, 404), (path, answer.status, answer.body[-500:])
        answer.body.decode()
