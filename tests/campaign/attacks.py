"""Attacks on a server by strangers and users, each as a function of its own.

An attack gets connections from an `Attacker`, which closes all of them when it leaves.
`resources.py` runs them and looks at what they do to the server.
"""

import base64
import contextlib
import json
import random
import socket
import struct
import threading
from collections.abc import Callable
from typing import Final

import msgspec

import holdfast
from tests.server.running import command
from tests.server.serving import Server
from tests.servers import await_true

MEGABYTE: Final = 1024 * 1024


class Attacker:
    """The connections of one attack."""

    def __init__(self, server: Server, random: random.Random, scale: float) -> None:
        self.server = server
        self.random = random
        self.scale = scale
        self._open: list[socket.socket] = []

    def times(self, most: int) -> int:
        """A number that the scale of the run makes smaller."""
        return max(1, int(most * self.scale))

    def resp(self) -> socket.socket:
        return self._connect(self.server.resp_port)

    def http(self) -> socket.socket:
        return self._connect(self.server.http_port)

    def _connect(self, port: int) -> socket.socket:
        opened = socket.socket()
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        opened.settimeout(2)
        opened.connect((self.server.host, port))
        self._open.append(opened)
        return opened

    def push(self, opened: socket.socket, data: bytes, times: int = 1, wait: float = 0.3) -> None:
        """Sends as much as the server takes, and reads nothing."""
        opened.settimeout(wait)
        with contextlib.suppress(OSError):
            for _ in range(times):
                opened.sendall(data)

    def leave(self) -> None:
        for opened in self._open:
            opened.close()


Attack = Callable[[Attacker], None]
ATTACKS: Final[dict[str, Attack]] = {}


def attack(function: Attack) -> Attack:
    ATTACKS[function.__name__.replace("_", " ")] = function
    return function


# --- lengths that lie ----------------------------------------------------------------------------


@attack
def headers_of_large_aggregates(by: Attacker) -> None:
    for kind in b"*%~>|$=!":
        for before in (b"", b"*1\r\n", b"*2\r\n$4\r\nECHO\r\n", b"*2\r\n$1\r\naXX"):
            by.push(by.resp(), before + bytes([kind]) + b"1000000000\r\n")


@attack
def announced_and_never_sent(by: Attacker) -> None:
    for _ in range(by.times(200)):
        by.push(by.resp(), b"*1000000\r\n$80000000\r\nx")
        by.push(by.http(), b"POST /default/jobs/put HTTP/1.1\r\nContent-Length: 80000000\r\n\r\n{")


@attack
def many_empty_words(by: Attacker) -> None:
    for _ in range(by.times(20)):
        by.push(by.resp(), b"*1000000\r\n" + b"$2\r\naa\r\n" * 200_000)


@attack
def lines_without_end(by: Attacker) -> None:
    for _ in range(by.times(50)):
        by.push(by.resp(), b"PING " + b"x" * 500_000)


# --- heads and bodies ----------------------------------------------------------------------------


@attack
def heads_that_come_slowly(by: Attacker) -> None:
    for _ in range(by.times(1_000)):
        by.push(by.http(), b"GET /livez HTTP/1.1\r\nX-A: ")


@attack
def large_heads(by: Attacker) -> None:
    for _ in range(by.times(50)):
        by.push(by.http(), b"GET /livez HTTP/1.1\r\nX: " + b"a" * 70_000 + b"\r\n\r\n")
        by.push(by.http(), b"GET /livez HTTP/1.1\r\n" + b"X: a\r\n" * 7_000 + b"\r\n")
        by.push(by.http(), b"GET /" + b"a" * 60_000 + b" HTTP/1.1\r\n\r\n")


@attack
def chunks_of_one_byte(by: Attacker) -> None:
    head = b"POST /default/jobs/put HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
    for _ in range(by.times(5)):
        by.push(by.http(), head + b"1\r\n \r\n" * 200_000)


@attack
def compressed_bodies(by: Attacker) -> None:
    head = b"POST /default/jobs/put HTTP/1.1\r\nContent-Encoding: gzip\r\nContent-Length: 100000"
    for _ in range(by.times(20)):
        by.push(by.http(), head + b"\r\n\r\n" + b"\x1f\x8b" * 50_000)


@attack
def half_bodies(by: Attacker) -> None:
    head = b"POST /default/jobs/put HTTP/1.1\r\nContent-Length: 10000000\r\n\r\n"
    for _ in range(by.times(60)):
        by.push(by.http(), head + b" " * 5 * MEGABYTE)


@attack
def bodies_of_many_values(by: Attacker) -> None:
    """One has too many of them, the others as many as are allowed."""
    many: tuple[list[object], ...] = (
        [1] * by.times(1_000_000),
        [1] * by.times(240_000),
        [[]] * by.times(120_000),
    )
    bodies = [{"queue": "q", "data": data} for data in many]
    for _ in range(by.times(7)):
        for body in bodies:
            _post(by, "/default/jobs/put", json.dumps(body))
            by.push(by.resp(), command("JOBS.PUT", json.dumps(body)), wait=5)
            by.push(by.resp(), command("JOBS.PUT", msgspec.msgpack.encode(body)), wait=5)


@attack
def long_texts(by: Attacker) -> None:
    """Each is decoded in one call, and the last letter makes it wide; the longer ones are refused,
    except for those of other letters."""
    for megabytes, last in ((8, "\U0001f600"), (16, "\u4e2d"), (16, "\U0001f600"), (70, "x")):
        body = {"queue": "q", "data": "x" * by.times(megabytes * MEGABYTE) + last}
        _post(by, "/default/jobs/put", json.dumps(body, ensure_ascii=False))
        _post(by, "/default/jobs/put", json.dumps(body))
        by.push(by.resp(), command("JOBS.PUT", msgspec.msgpack.encode(body)), wait=5)


@attack
def long_names(by: Attacker) -> None:
    """Names that are too long are refused, and no cache or message keeps them."""
    for number in range(by.times(8)):
        name = f"{number}" + "x" * by.times(4 * MEGABYTE)
        event: dict[str, object] = {"name": name}
        for path, body in {
            "jobs/length": {"queue": name},
            "jobs/put": {"queue": "q", "unique": "u", "unique_mode": name},
            "jobs/get": {name: 1},
            "entities/get": {"table": name, "ids": ["a"]},
            "events/send": {"event": event},
            "events/forget": {"key": name},
            "metrics/incr": {"metric": name},
            "metrics/try_incr": {"operations": [{"condition": name}], "conditions": {name: "1/s"}},
            "tables/get": {"table": name},
        }.items():
            _post(by, f"/default/{path}", json.dumps(body))
    for number in range(by.times(300)):
        names = [f"{number} {each}" for each in range(1_000)]
        by.push(by.resp(), command("COMMAND", "INFO", *names))


@attack
def many_accents(by: Attacker) -> None:
    """An index compares texts without their accents; to sort those of one letter takes a time that
    grows with the square of their number."""
    text = "schema: a\ntables: {T: {primary: {type: random}, columns: {c: {type: Text}}, " + (
        "indexes: [{type: simple, columns: [c]}]}}"
    )
    assert by.server.call("entities.deploy", schemas=[text]).status == 200
    for accents in ("\u0301\u0316", "\u0f73\u0f75", "\U0001d16d\U0001d165", "\u00e9"):
        text = "a" + accents * by.times(200_000)
        entities = [{"properties": {"c": text}}]
        _post(by, "/default/entities/put", json.dumps({"table": "a.T", "entities": entities}))
        filters = [{"property": "c", "op": "=", "values": [text]}]
        _post(by, "/default/entities/select", json.dumps({"table": "a.T", "filters": filters}))


@attack
def deep_nesting(by: Attacker) -> None:
    deep = [b"[" * 500_000, b'{"a":' * 200_000, b"\x91" * 500_000, b"\x81\xa1a" * 200_000]
    for body in deep:
        kind = b"json" if body[0] in b"[{" else b"msgpack"
        head = b"POST /default/jobs/put HTTP/1.1\r\nContent-Type: application/%b\r\n" % kind
        by.push(by.http(), head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        by.push(by.resp(), command("JOBS.PUT", body))
        by.push(by.resp(), command("ENTITIES.PUT", body))
    document = b""
    for _ in range(2_000):
        document = _bson_within(document)
    by.push(by.resp(), command("PUT", document))


def _bson_within(inner: bytes) -> bytes:
    body = b"\x03a\x00" + inner + b"\x00" if inner else b"\x00"
    return (len(body) + 4).to_bytes(4, "little") + body


# --- answers that nobody reads -------------------------------------------------------------------


@attack
def pipelined_http_requests(by: Attacker) -> None:
    for _ in range(by.times(10)):
        by.push(by.http(), b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n" * 5_000, times=100)


@attack
def pipelined_commands(by: Attacker) -> None:
    for _ in range(by.times(20)):
        by.push(by.resp(), command("PING") * 5_000, times=100)
        by.push(by.resp(), command("ECHO", b"x" * 60_000) * 10, times=100)


@attack
def large_answers(by: Attacker) -> None:
    _put_large(by)
    body = b'{"id":"large"}'
    ask = b"POST /default/jobs/get HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    for _ in range(by.times(60)):
        by.push(by.resp(), command("JOBS.GET", body) * 20)
        by.push(by.http(), ask * 20)


@attack
def slow_readers(by: Attacker) -> None:
    """All that is large, by both protocols, read in small pieces by clients that take turns."""
    _put_large(by)
    _put_many(by)
    large, ids = {"id": "large"}, [f"many {number}" for number in range(by.times(10_000))]
    step = {"operation": "jobs.get", "arguments": large}
    get = command("JOBS.GET", json.dumps(large))
    readers = []
    for _ in range(by.times(20)):
        for words in (get * 3, command("MULTI") + get * 3 + command("EXEC")):
            readers.append(by.resp())
            by.push(readers[-1], words, wait=5)
        for path, body in {
            "/default/jobs/get": large,
            "/default/jobs/multiget": {"ids": ids},
            "/default/batch": [step] * 3,
        }.items():
            readers.append(_post(by, path, json.dumps(body)))
    for _ in range(by.times(20)):
        for reader in readers:
            with contextlib.suppress(OSError):
                reader.recv(4_096, socket.MSG_DONTWAIT)
        threading.Event().wait(0.05)


@attack
def subscribers(by: Attacker) -> None:
    for _ in range(by.times(60)):
        by.push(by.resp(), command("SUBSCRIBE", "x"))
        by.push(by.http(), b"GET /default/notices HTTP/1.1\r\n\r\n")
    speaker = by.resp()
    speaker.settimeout(5)
    with contextlib.suppress(OSError):
        for _ in range(by.times(40)):
            speaker.sendall(command("PUBLISH", "x", b"y" * MEGABYTE))
            speaker.recv(100)


@attack
def subscriptions_without_number(by: Attacker) -> None:
    for _ in range(by.times(20)):
        channels = [f"channel {number}" for number in range(by.times(10_000))]
        by.push(by.resp(), command("SUBSCRIBE", *channels), wait=5)
        patterns = [f"pattern {number}*" for number in range(by.times(1_000))]
        by.push(by.resp(), command("PSUBSCRIBE", *patterns), wait=5)
    by.push(by.resp(), command("PUBLISH", "channel 1", "hello") * by.times(1_000))


# --- batches -------------------------------------------------------------------------------------


@attack
def open_batches(by: Attacker) -> None:
    for _ in range(by.times(50)):
        by.push(by.resp(), command("MULTI") + command("ECHO", b"x" * MEGABYTE) * 60)
    for _ in range(by.times(50)):
        by.push(by.resp(), command("MULTI") + command("PING") * 10_000)


@attack
def batches_of_large_reads(by: Attacker) -> None:
    _put_large(by)
    reads = command("JOBS.GET", '{"id":"large"}') * 150
    for _ in range(by.times(5)):
        by.push(by.resp(), command("MULTI") + reads + command("EXEC"))
        steps = [{"operation": "jobs.get", "arguments": {"id": "large"}}] * 150
        _post(by, "/default/batch", json.dumps(steps))


@attack
def batches_of_many_steps(by: Attacker) -> None:
    steps = [{"operation": "jobs.put", "arguments": {"queue": "q"}}] * by.times(200_000)
    _post(by, "/default/batch", json.dumps(steps))


@attack
def lists_of_large_jobs(by: Attacker) -> None:
    _put_large(by)
    _post(by, "/default/jobs/multiget", json.dumps({"ids": ["large"] * 200}))
    by.push(by.resp(), command("JOBS.MULTIGET", json.dumps({"ids": ["large"] * 200})))


@attack
def writes_of_all_at_once(by: Attacker) -> None:
    put = command("JOBS.PUT", '{"queue": "flood"}')
    for _ in range(by.times(50)):
        by.push(by.resp(), put * 1_000)


@attack
def changes_of_many_entities(by: Attacker) -> None:
    """Each is allowed by itself; all of them together are one group of writes."""
    text = (
        "schema: many\ntables: {T: {primary: {type: random}, columns: {c: {type: Int}}, "
        "indexes: [{type: simple, columns: [c]}]}}"
    )
    assert by.server.call("entities.deploy", schemas=[text]).status == 200
    entities = [{"properties": {"c": number}} for number in range(by.times(20_000))]
    assert by.server.call("entities.put", table="many.T", entities=entities).status == 200
    change = {
        "type": "UPDATE",
        "table": "many.T",
        "filters": [{"property": "c", "op": ">=", "values": [0]}],
        "changes": [{"property": "d", "op": "INCR", "value": 1}],
    }
    several = command("ENTITIES.EXECUTE", json.dumps({"queries": [change]}))
    by.push(by.resp(), several * 20)


# --- what is made to be slow ----------------------------------------------------------------------


@attack
def reads_of_very_much(by: Attacker) -> None:
    _put_many(by)
    ids = [f"many {number}" for number in range(by.times(10_000))]
    steps = [{"operation": "jobs.get", "arguments": {"id": each}} for each in ids]
    several = command("JOBS.MULTIGET", json.dumps({"ids": ids[:3_000]}))
    for _ in range(by.times(5)):
        _post(by, "/default/jobs/multiget", json.dumps({"ids": ids}))
        _post(by, "/default/batch", json.dumps(steps))
        by.push(by.resp(), command("MULTI") + several * 20 + command("EXEC"), wait=5)


@attack
def descriptions_of_everything(by: Attacker) -> None:
    by.push(by.resp(), command("MULTI") + command("COMMAND", "DOCS") * by.times(5_000), wait=5)
    by.push(by.resp(), command("COMMAND", "DOCS", *["get"] * by.times(500_000)), wait=5)
    by.push(by.resp(), command("HELP") * by.times(5_000))


@attack
def hostile_patterns(by: Attacker) -> None:
    _put_many(by)
    for pattern in (b"*" + b"?" * 1_000, b"*a" * 500, b"[" * 1_000, b"*" * 600_000):
        by.push(by.resp(), command("KEYS", pattern))
        by.push(by.resp(), command("CONFIG", "GET", pattern))
        by.push(by.resp(), command("PSUBSCRIBE", pattern))
        by.push(by.resp(), command("COMMAND", "LIST", "FILTERBY", "PATTERN", pattern))
    by.push(by.resp(), command("ZRANGE", "ql:q:many-work", "0", "0") * 100)
    by.push(by.resp(), command("ZRANGE", "ql:q:many-work", "0", "-1") * 10)


@attack
def hostile_schemas(by: Attacker) -> None:
    bomb = "a: &a0 {x: 1}\n" + "".join(
        f"a{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}]}}\n" for n in range(1, 25)
    )
    strict = (
        "schema: s\ntables:\n  T:\n    strict: true\n    primary: {type: random}\n"
        '    columns: {c: {type: Text, options: {must_match: "(a+)+b"}}}\n'
    )
    blanks = f"schema: s{' ' * 40_000}x\ntables: {{}}\n"
    for text in (bomb, blanks, strict, "[" * 100_000, "a: 0b" + "1" * 100_000):
        _post(by, "/default/entities/deploy", json.dumps({"schemas": [text]}))
        _post(by, "/default/events/deploy", json.dumps({"schema": text}))
    entities = [{"properties": {"c": "a" * 20_000}}] * by.times(20)
    _post(by, "/default/entities/put", json.dumps({"table": "s.T", "entities": entities}))


@attack
def wrong_passwords(by: Attacker) -> None:
    """The users are gone again afterwards: the other attacks need none."""
    by.server.call("admin.add_user", name="ann", grants=["admin"], password="a long password")
    assert by.server.call("admin.spaces").status == 401
    for number in range(by.times(400)):
        by.push(by.resp(), command("AUTH", "ann", f"guess {number}") * 5)
        by.push(by.resp(), command("HELLO", "3", "AUTH", f"nobody {number}", "guess") * 5)
        told = base64.b64encode(b"ann:guess %d" % number).decode()
        head = f"GET /metrics HTTP/1.1\r\nHost: localhost\r\nAuthorization: Basic {told}\r\n\r\n"
        by.push(by.http(), head.encode())
    with holdfast.open(by.server.data, durability="interval") as store:
        store.admin.remove_user("ann")
    await_true(lambda: by.server.call("admin.spaces").status == 200, seconds=30, what="no users")


# --- connections ---------------------------------------------------------------------------------


@attack
def many_connections(by: Attacker) -> None:
    for _ in range(by.times(3_000)):
        with contextlib.suppress(OSError):
            by.push(by.resp(), b"*1\r\n")
        with contextlib.suppress(OSError):
            by.http()


@attack
def connections_that_are_reset(by: Attacker) -> None:
    for _ in range(by.times(1_000)):
        for opened in (by.resp(), by.http()):
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


@attack
def random_bytes(by: Attacker) -> None:
    for _ in range(by.times(200)):
        data = by.random.randbytes(by.random.randrange(1, 20_000))
        by.push(by.resp(), data)
        by.push(by.http(), data)


def _put_large(by: Attacker) -> None:
    by.server.call("jobs.put", queue="large", id="large", data="x" * 8 * MEGABYTE)


def _put_many(by: Attacker) -> None:
    """Once for each server; a job that is there is put again."""
    if by.server.call("jobs.length", queue="many").result:
        return
    for first in range(0, by.times(10_000), 1_000):
        jobs = [
            {"queue": "many", "id": f"many {number}", "data": "x" * 1_000}
            for number in range(first, first + 1_000)
        ]
        by.server.call("jobs.put_many", jobs=jobs)


def _post(by: Attacker, path: str, body: str) -> socket.socket:
    """Asks and reads nothing; returns where the answer can be read."""
    sent, opened = body.encode(), by.http()
    head = f"POST {path} HTTP/1.1\r\nContent-Length: {len(sent)}\r\n\r\n"
    by.push(opened, head.encode() + sent, wait=5)
    return opened
