"""Redis commands that read the keys of Qless, and those that erase them."""

from collections.abc import Callable
from typing import Any, Final

import msgspec

from holdfast import wire
from holdfast.compat.qless.virtual_keys import VirtualKeys, is_ordered, kind_of_name
from holdfast.errors import Forbidden
from holdfast.limits import CLEARED_PER_STEP, MAX_KEYS_ON_LOOP
from holdfast.server.commands import command, wrong_arguments
from holdfast.server.globs import compile_glob
from holdfast.server.resp_session import Later, Plan, Read, RespSession

_NO_INTEGER: Final = wire.error("ERR value is not an integer or out of range")
_PAUSED: Final = b"ql:paused_queues"  # finding its members reads all queues
_DIGITS: Final = 21  # more than an integer of 64 bits can have
_SYNTAX: Final = wire.error("ERR syntax error")
_WRONG_KIND: Final = wire.error("WRONGTYPE Operation against a key holding the wrong kind of value")


def _read_at_once(
    session: RespSession, work: Callable[[VirtualKeys], Any], encode: Callable[[Any], bytes]
) -> Plan:
    """Plans a read of a few keys, which is answered at once."""
    session.who().require("read", space=session.space.name, layer="jobs")
    return Read(session.space, lambda view: work(VirtualKeys(view.raw)), encode)


def _read_key_of_kind(
    session: RespSession,
    key: str,
    kind: str,
    work: Callable[[VirtualKeys], Any],
    encode: Callable[[Any], bytes],
    *,
    is_short: bool = True,
) -> Plan:
    """Plans a read of a key of one kind; a command that may read many pairs runs in a thread."""
    read = _read_at_once if is_short else _read_in_thread
    if kind_of_name(key) == kind:
        return read(session, work, encode)

    return read(
        session,
        lambda virtual: work(virtual) if virtual.kind(key) == "none" else _WRONG_KIND,
        lambda found: found if found is _WRONG_KIND else encode(found),
    )


def _read_in_thread(
    session: RespSession, work: Callable[[VirtualKeys], Any], encode: Callable[[Any], bytes]
) -> Plan:
    """Plans a read in a thread, so that no other client waits for it."""
    session.who().require("read", space=session.space.name, layer="jobs")
    space = session.space

    def search() -> Any:
        with space.view() as view:
            return work(VirtualKeys(view.raw))

    return Later(lambda: session.dispatcher.in_thread(search), encode)


def _texts(values: Any) -> bytes:
    return wire.array(wire.bulk(_bytes(value)) for value in values)


def _bytes(value: Any) -> bytes:
    if isinstance(value, str):
        return value.encode("utf-8", "surrogateescape")
    return msgspec.json.encode(value)


def _text(word: bytes) -> str:
    return word.decode("utf-8", "surrogateescape")


@command("KEYS")
def keys(session: RespSession, words: wire.Command) -> Plan:
    if len(words) != 2:
        return wrong_arguments("keys")
    matches = compile_glob(words[1]).fullmatch
    return _read_in_thread(
        session, lambda virtual: [key for key in virtual.names() if matches(_bytes(key))], _texts
    )


@command("DBSIZE")
def dbsize(session: RespSession, words: wire.Command) -> Plan:
    return _read_in_thread(session, lambda virtual: sum(1 for _ in virtual.names()), wire.integer)


@command("EXISTS")
def exists(session: RespSession, words: wire.Command) -> Plan:
    if len(words) < 2:
        return wrong_arguments("exists")
    read = (
        _read_at_once
        if len(words) <= MAX_KEYS_ON_LOOP and _PAUSED not in words
        else _read_in_thread
    )
    return read(
        session, lambda virtual: sum(virtual.has(_text(word)) for word in words[1:]), wire.integer
    )


@command("TYPE")
def type_(session: RespSession, words: wire.Command) -> Plan:
    if len(words) != 2:
        return wrong_arguments("type")
    read = _read_in_thread if words[1] == _PAUSED else _read_at_once
    return read(session, lambda virtual: virtual.kind(_text(words[1])), wire.simple)


@command("ZCARD")
def zcard(session: RespSession, words: wire.Command) -> Plan:
    if len(words) != 2:
        return wrong_arguments("zcard")
    key = _text(words[1])
    return _read_key_of_kind(
        session,
        key,
        "zset",
        lambda virtual: virtual.size(key),
        wire.integer,
        is_short=is_ordered(key),
    )


@command("ZSCORE")
def zscore(session: RespSession, words: wire.Command) -> Plan:
    if len(words) != 3:
        return wrong_arguments("zscore")
    protocol = session.protocol

    def encode(score: float | None) -> bytes:
        return wire.null(protocol) if score is None else wire.double(score, protocol)

    key, member = _text(words[1]), _text(words[2])
    return _read_key_of_kind(
        session, key, "zset", lambda virtual: virtual.score(key, member), encode
    )


@command("ZRANGE")
def zrange(session: RespSession, words: wire.Command) -> Plan:
    """`ZRANGE key start stop [WITHSCORES]`."""
    if len(words) < 4:
        return wrong_arguments("zrange")
    ranks = _ranks(words[2], words[3])
    if ranks is None:
        return _NO_INTEGER
    with_scores = [word.upper() for word in words[4:]] == [b"WITHSCORES"]
    if len(words) > 4 and not with_scores:
        return _SYNTAX
    protocol = session.protocol

    def encode(members: list[tuple[str, float]]) -> bytes:
        if not with_scores:
            return _texts(name for name, _ in members)
        pairs = [(wire.bulk(_bytes(name)), wire.double(score, protocol)) for name, score in members]
        if protocol == 3:
            return wire.array(wire.array(pair) for pair in pairs)
        return wire.array(each for pair in pairs for each in pair)

    key = _text(words[1])
    return _read_key_of_kind(
        session,
        key,
        "zset",
        lambda virtual: virtual.range(key, *ranks),
        encode,
        is_short=is_ordered(key) and _are_few(*ranks),
    )


@command("HGETALL")
def hgetall(session: RespSession, words: wire.Command) -> Plan:
    if len(words) != 2:
        return wrong_arguments("hgetall")
    protocol = session.protocol

    def encode(fields: dict[str, Any]) -> bytes:
        pairs = ((wire.bulk(_bytes(n)), wire.bulk(_bytes(v))) for n, v in fields.items())
        return wire.mapping(pairs, protocol)

    key = _text(words[1])
    return _read_key_of_kind(session, key, "hash", lambda virtual: virtual.fields(key), encode)


@command("SMEMBERS")
def smembers(session: RespSession, words: wire.Command) -> Plan:
    if len(words) != 2:
        return wrong_arguments("smembers")
    protocol = session.protocol

    def encode(members: Any) -> bytes:
        written = _texts(members)
        return b"~" + written[1:] if protocol == 3 else written

    key = _text(words[1])
    return _read_key_of_kind(
        session, key, "set", lambda virtual: virtual.members(key), encode, is_short=False
    )


@command("LRANGE")
def lrange(session: RespSession, words: wire.Command) -> Plan:
    if len(words) != 4:
        return wrong_arguments("lrange")
    ranks = _ranks(words[2], words[3])
    if ranks is None:
        return _NO_INTEGER
    key = _text(words[1])
    return _read_key_of_kind(
        session,
        key,
        "list",
        lambda virtual: virtual.items(key, *ranks),
        _texts,
        is_short=_are_few(*ranks),
    )


def _ranks(start: bytes, stop: bytes) -> tuple[int, int] | None:
    """Returns the first and the last rank, as given; None if they are not integers of 64 bits."""
    try:
        first, last = int(start[:_DIGITS]), int(stop[:_DIGITS])
    except ValueError:
        return None
    return None if max(abs(first), abs(last)) >= 2**63 else (first, last)


def _are_few(first: int, last: int) -> bool:
    """Returns whether both ranks are near the same end, however many members there are."""
    return -MAX_KEYS_ON_LOOP <= first <= last < 0 or 0 <= first <= last < MAX_KEYS_ON_LOOP


# --- erasing -------------------------------------------------------------------------------------


@command("FLUSHDB")
def flushdb(session: RespSession, words: wire.Command) -> Plan:
    """Erases the jobs of the selected database, and nothing else, in bounded steps."""
    if [word.upper() for word in words[1:]] not in ([], [b"ASYNC"], [b"SYNC"]):
        return _SYNTAX
    session.who().require("admin", space=session.space.name, layer="jobs")
    if not session.dispatcher.allows_flush:
        raise Forbidden(
            "this server does not erase jobs on request",
            hint="Start it with --allow-flush if it should.",
        )
    space = session.space

    def erase() -> None:
        while space.transact(lambda tx: tx.jobs.erase_some(CLEARED_PER_STEP)):
            pass

    return Later(lambda: session.dispatcher.in_thread(erase), lambda _: wire.OK)


@command("FLUSHALL")
def flushall(session: RespSession, words: wire.Command) -> Plan:
    """Does the same as `FLUSHDB`: other databases are other spaces, which it does not erase."""
    return flushdb(session, words)
