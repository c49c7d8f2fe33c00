"""Meduza's messages over RESP, for its existing clients.

`GET`, `PUT`, `UPDATE`, `DEL`, `PING` and `TX` have a BSON body each. The answer is an array of two
bulk strings: the reply's type and its body. A failed query is answered in the same form.
"""

import time
from collections.abc import Callable
from typing import Any, Final

from holdfast import wire as resp
from holdfast.compat.meduza import wire
from holdfast.declarations import Role
from holdfast.entities import bson_codec
from holdfast.entities.messages import Get, Ping
from holdfast.errors import HoldfastError, Malformed
from holdfast.limits import DECODED_ON_LOOP_BYTES, MAX_MESSAGE_BYTES
from holdfast.server import redis_hints
from holdfast.server.commands import COMMANDS, Handler, command, decoded_in_thread, is_large
from holdfast.server.commands import ping as plain_ping
from holdfast.server.decoding_limits import refuse_long_decoding
from holdfast.server.resp_session import Plan, Read, RespSession, Write

KINDS: Final = ("PUT", "GET", "UPDATE", "DEL", "TX")
REDIS_KINDS: Final = (b"GET", b"DEL")  # also commands of Redis, with other arguments
ARGUMENT_BYTES: Final = {
    name.encode(): MAX_MESSAGE_BYTES
    for kind in (*KINDS, "PING")
    for name in (kind, f"ENTITY.{kind}")
}


def _serve(kind: str) -> Handler:
    def handle(session: RespSession, words: resp.Command) -> Plan:
        if words[0].upper() in REDIS_KINDS and len(words) > 1 and _is_text(words[1]):
            return _redis_error(kind)
        begin = time.perf_counter_ns()
        role: Role = "read" if kind == "GET" else "write"
        session.who().require(role, space=session.space.name, layer="entities")

        def failed(error: HoldfastError) -> bytes:
            return _framed(kind, wire.write_error(kind, error, time_ns=_since(begin)))

        def plan(session: RespSession, query: wire.WireQuery) -> Plan:
            return _plan(session, kind, query, begin, failed)

        if is_large(words):
            return decoded_in_thread(session, words, lambda: _read(kind, words), plan, failed)
        try:
            return plan(session, _read(kind, words))
        except HoldfastError as error:
            if session.batch is not None:
                raise  # MULTI refuses the whole batch, as for any other command
            return failed(error)

    return handle


def _read(kind: str, words: resp.Command) -> wire.WireQuery:
    if len(words) < 2:
        raise Malformed(f"Malformed message: {kind} needs a BSON body")
    refuse_long_decoding(words[1], "bson")
    return wire.read_query(kind, words[1])


def _plan(
    session: RespSession,
    kind: str,
    query: wire.WireQuery,
    begin: int,
    failed: Callable[[HoldfastError], bytes],
) -> Plan:
    def succeeded(result: Any) -> bytes:
        return _framed(kind, wire.write_reply(query, result, time_ns=_since(begin)))

    space, name = session.space, f"meduza.{kind.lower()}"
    if not wire.is_read(query):
        write = Write(space, lambda tx: wire.execute(tx.raw, query), succeeded, failed)
        return session.traced_unless_batched(name, write)
    paging = query.paging if isinstance(query, Get) else None
    read = Read(
        space,
        lambda view: wire.execute(view.raw, query),
        succeeded,
        failed,
        kind="meduza",
        is_large=session.dispatcher.large_reads.expects("meduza", paging),
    )
    return session.traced_unless_batched(name, read)


def _is_text(word: bytes) -> bool:
    """Returns whether a word comes from a Redis client: every BSON document contains a NUL."""
    try:
        return word.decode().isprintable()
    except UnicodeDecodeError:
        return False


def _redis_error(kind: str) -> bytes:
    """Returns the error for a client that means the Redis command of the same name."""
    message = f"ERR {kind} is Meduza's here and takes one BSON document"
    return resp.error(f"{message}. {redis_hints.advice_for(kind) or 'HELP lists all operations.'}")


COMMANDS.update((name.encode(), _serve(name)) for name in KINDS)
COMMANDS.update((f"ENTITY.{name}".encode(), _serve(name)) for name in KINDS)


@command("ENTITY.PING")
def entity_ping(session: RespSession, words: resp.Command) -> Plan:
    return _pong()


@command("PING")
def ping(session: RespSession, words: resp.Command) -> Plan:
    """Answers Meduza's PING, which has a BSON body, or that of a Redis client."""
    if len(words) > 1 and is_bson(words[1]):
        return _pong()
    return plain_ping(session, words)


def is_bson(body: bytes) -> bool:
    """Returns whether `body` is a BSON document: it begins with its own length, and decodes."""
    if int.from_bytes(body[:4], "little") != len(body) or len(body) > DECODED_ON_LOOP_BYTES:
        return False
    try:
        bson_codec.decode(body)
    except HoldfastError:
        return False
    return True


def _pong() -> bytes:
    return _framed("PING", wire.write_reply(Ping(), None))


def _framed(kind: str, body: bytes) -> bytes:
    return resp.array([resp.bulk(wire.reply_type(kind).encode()), resp.bulk(body)])


def _since(begin: int) -> int:
    return time.perf_counter_ns() - begin
