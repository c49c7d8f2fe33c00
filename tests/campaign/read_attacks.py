"""Slow readers of every kind of large answer: pages, exports, backups, streams of notices.

Like those of `attacks.py`, of which this is a part: importing it adds them to the list.
"""

import contextlib
import json
import socket
import threading
from collections.abc import Iterable
from typing import Final
from urllib.parse import quote

from tests.campaign.attacks import MEGABYTE, Attacker, attack
from tests.server.running import command

_TABLE: Final = {
    "table": "pages",
    "attributes": {"title": "string", "rev": "int", "text": "string"},
    "index": [
        {"attribute": "title", "type": "hash"},
        {"attribute": "rev", "type": "range", "order": "desc"},
    ],
}
_SCHEMA: Final = (
    "schema: read\ntables: {T: {primary: {type: random}, "
    "columns: {c: {type: Int}, t: {type: Text}}, indexes: [{type: simple, columns: [c]}]}}"
)
_BACKUP: Final = "download-campaign"


@attack
def slow_readers_of_pages(by: Attacker) -> None:
    """Large entities and rows as answers of operations, paths of RESTBase and pages."""
    _put_rows(by)
    _put_entities(by)
    select = {
        "table": "read.T",
        "filters": [{"property": "c", "op": ">=", "values": [0]}],
        "limit": 100,
    }
    asked = [
        _get(path)
        for path in (
            "/default/sys/table/pages/many?limit=100",
            "/ui/default/tables/pages",
            "/ui/default/tables/pages?format=json",
            "/ui/default/tables/pages?format=csv",
            "/ui/default/entities/read.T",
            "/ui/default/entities/read.T?format=json",
            "/ui/default/entities/read.T?format=csv",
        )
    ]
    asked.append(_post("/default/entities/select", select))
    asked.append(_post("/default/tables/get", {"table": "pages", "attributes": {"title": "many"}}))
    readers = [_asked_http(by, each) for _ in range(by.times(3)) for each in asked]
    for _ in range(by.times(3)):
        readers.append(by.resp())
        by.push(readers[-1], command("ENTITIES.SELECT", json.dumps(select)) * 3, wait=5)
    _read_slowly(by, readers)


@attack
def slow_readers_of_exports(by: Attacker) -> None:
    _put_rows(by)
    paths = [f"/ui/default/tables/pages/export?as={form}" for form in ("csv", "ndjson")]
    readers = [_asked_http(by, _get(path)) for _ in range(by.times(10)) for path in paths]
    _read_slowly(by, readers)


@attack
def slow_readers_of_backups(by: Attacker) -> None:
    _put_rows(by)
    if _BACKUP not in [each["name"] for each in by.server.call("admin.backups").result]:
        assert by.server.call("admin.backup", target=_BACKUP).status == 200
    arguments = {"name": _BACKUP}
    readers = []
    for _ in range(by.times(20)):
        readers.append(_asked_http(by, _post("/default/admin/backup_read", arguments) * 3))
        readers.append(by.resp())
        by.push(readers[-1], command("ADMIN.BACKUP_READ", json.dumps(arguments)) * 3, wait=5)
    _read_slowly(by, readers)


@attack
def slow_readers_of_notices(by: Attacker) -> None:
    """They hear large notices by every kind of stream, and read a little of them."""
    readers = []
    for _ in range(by.times(20)):
        readers.append(_asked_http(by, _get("/default/notices")))
        for words in (("SUBSCRIBE", "x"), ("PSUBSCRIBE", "x*"), ("NOTICES", "")):
            readers.append(by.resp())
            by.push(readers[-1], command(*words))
    speaker = by.resp()
    speaker.settimeout(5)
    with contextlib.suppress(OSError):
        for _ in range(by.times(20)):
            speaker.sendall(command("PUBLISH", "x", b"y" * MEGABYTE))
            speaker.recv(100)
            _read_slowly(by, readers, times=1)


def _put_rows(by: Attacker) -> None:
    """Once for each server."""
    if "pages" in json.dumps(by.server.call("tables.names").result):
        return
    assert by.server.call("tables.create", schema=_TABLE).status == 200
    text = "<é>" * by.times(300_000)
    for number in range(by.times(12)):
        row = {"title": "many", "rev": number, "text": f"{number} {text}"}
        assert by.server.call("tables.put", table="pages", attributes=row).status == 200


def _put_entities(by: Attacker) -> None:
    """Once for each server."""
    if "read" in json.dumps(by.server.call("entities.schemas").result):
        return
    assert by.server.call("entities.deploy", schemas=[_SCHEMA]).status == 200
    text = "<é>" * by.times(100_000)
    for number in range(by.times(20)):
        entities = [{"properties": {"c": number, "t": text}}]
        assert by.server.call("entities.put", table="read.T", entities=entities).status == 200


def _get(path: str) -> bytes:
    return f"GET {quote(path, safe='/?&=')} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()


def _post(path: str, arguments: object) -> bytes:
    body = json.dumps(arguments)
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
    return (head + body).encode()


def _asked_http(by: Attacker, request: bytes) -> socket.socket:
    opened = by.http()
    by.push(opened, request, wait=5)
    return opened


def _read_slowly(by: Attacker, readers: Iterable[socket.socket], times: int | None = None) -> None:
    """Reads a little from each of them in turn, again and again."""
    for _ in range(by.times(20) if times is None else times):
        for reader in readers:
            with contextlib.suppress(OSError):
                reader.recv(4_096, socket.MSG_DONTWAIT)
        threading.Event().wait(0.05)
