"""Commands about the connection itself: HELLO, CLIENT, COMMAND, INFO, SELECT, SPACE."""

import asyncio
import os
import re
import time
from collections.abc import Callable
from functools import cache
from typing import Final

from holdfast import wire
from holdfast.errors import (
    BadInput,
    Forbidden,
    HoldfastError,
    NotAuthenticated,
    RequestTooLarge,
)
from holdfast.limits import MAX_CONFIG_PATTERNS, MAX_TRACE_BYTES
from holdfast.operations import OPERATIONS, Operation
from holdfast.server import command_docs
from holdfast.server.auth import Identity
from holdfast.server.commands import command, wrong_arguments
from holdfast.server.dispatcher import Dispatcher
from holdfast.server.globs import compile_glob
from holdfast.server.resp_session import Change, Later, Plan, RespSession
from holdfast.store import Space
from holdfast.version import VERSION

REDIS_VERSION: Final = "7.2.4"  # the version whose behaviour clients may expect
DATABASES: Final = 16
_NAME: Final = re.compile(rb"[!-~]*")
_NO_NAME: Final = wire.error(
    "ERR Client names cannot contain spaces, newlines or special characters."
)


@command("HELLO")
def hello(session: RespSession, words: wire.Command) -> Plan:
    """`HELLO [protocol [AUTH user password] [SETNAME name]]`: returns the server's description."""
    protocol, name, credentials = session.protocol, session.name, None
    if len(words) > 1:
        if words[1] not in (b"2", b"3"):
            return wire.error("NOPROTO unsupported protocol version")
        protocol = int(words[1])
    options = words[2:]
    while options:
        match [options[0].upper(), *options[1:]]:
            case [b"AUTH", user, password, *options]:
                credentials = (user, password)
            case [b"SETNAME", name, *options]:
                if not _NAME.fullmatch(name):
                    return _NO_NAME
            case _:
                return wire.error("ERR Syntax error in HELLO")

    def greet(_: object = None) -> bytes:
        session.who()
        session.protocol, session.name = protocol, name
        return _facts(session)

    return Change(greet) if credentials is None else _log_in(session, *credentials, greet)


def _facts(session: RespSession) -> bytes:
    facts: list[tuple[str, bytes]] = [
        ("server", wire.bulk(b"redis")),
        ("version", wire.bulk(REDIS_VERSION.encode())),
        ("proto", wire.integer(session.protocol)),
        ("id", wire.integer(session.id)),
        ("mode", wire.bulk(b"standalone")),
        ("role", wire.bulk(b"master")),
        ("modules", wire.array([])),
    ]
    pairs = [(wire.bulk(name.encode()), value) for name, value in facts]
    return wire.mapping(pairs, session.protocol)


@command("AUTH")
def auth(session: RespSession, words: wire.Command) -> Plan:
    """`AUTH [user] password`."""
    if len(words) not in (2, 3):
        return wrong_arguments("auth")
    user = words[1] if len(words) == 3 else b"default"
    return _log_in(session, user, words[-1], lambda: wire.OK)


def _log_in(
    session: RespSession, user: bytes, password: bytes, reply: Callable[[], bytes]
) -> Later:
    """Logs in with a token, which is found at once, or with a password, which takes a while."""
    name, secret = user.decode(errors="replace"), password.decode(errors="replace")
    password_checks, address = session.dispatcher.password_checks, session.address

    def entered(identity: Identity) -> bytes:
        session.log_in(identity)
        return reply()

    def refused(error: HoldfastError) -> bytes:
        if isinstance(error, NotAuthenticated):
            return wire.error(f"WRONGPASS {error.message}")
        return session.error(error)

    return Later(lambda: password_checks.check(address, name, secret), entered, refused)


@command("RESET")
def reset(session: RespSession, words: wire.Command) -> Plan:
    """Returns the connection to its initial state."""

    def make() -> bytes:
        session.reset()
        return wire.simple("RESET")

    return Change(make)


@command("CLIENT")
def client(session: RespSession, words: wire.Command) -> Plan:
    match [word.upper() for word in words[1:2]]:
        case [b"SETNAME"] if len(words) == 3:
            if not _NAME.fullmatch(words[2]):
                return _NO_NAME
            session.name = words[2]
            return wire.OK
        case [b"GETNAME"]:
            return wire.bulk(session.name) if session.name else wire.null(session.protocol)
        case [b"ID"]:
            return wire.integer(session.id)
        case [b"SETINFO"] | [b"NO-EVICT"] | [b"NO-TOUCH"]:
            return wire.OK
        case [b"INFO"] | [b"LIST"]:
            return wire.bulk(_client_line(session))
        case [b"MAINT_NOTIFICATIONS"] | [b"TRACKING"] | [b"CACHING"]:
            return wire.error("ERR this server has no such notifications")
    name = words[1].decode(errors="replace") if len(words) > 1 else ""
    return wire.error(f"ERR unknown subcommand '{name}'. Try CLIENT ID, SETNAME, GETNAME, SETINFO.")


def _client_line(session: RespSession) -> bytes:
    """Returns this client in Redis' format; libraries look for its fields, even those unknown
    here."""
    kinds = [kind for kind, _ in session.subscriptions]
    batch = -1 if session.batch is None else len(session.batch)
    facts: dict[str, object] = {
        "id": session.id,
        "name": session.name.decode(errors="replace"),
        "age": int(time.time() - session.began),
        "idle": 0,
        "flags": "P" if kinds else "N",
        "db": session.database,
        "sub": kinds.count("subscribe"),
        "psub": kinds.count("psubscribe"),
        "multi": batch,
        **dict.fromkeys(("qbuf", "qbuf-free", "argv-mem", "obl", "oll", "omem", "tot-mem"), 0),
        "events": "r",
        "cmd": "client",
        "user": "" if session.identity is None else session.identity.name,
        "resp": session.protocol,
    }
    return (" ".join(f"{name}={fact}" for name, fact in facts.items()) + "\n").encode()


@command("COMMAND")
def commands(session: RespSession, words: wire.Command) -> Plan:
    """`COMMAND`, `COMMAND COUNT`, `COMMAND DOCS [name ...]`, `COMMAND INFO [name ...]`."""
    return command_docs.reply_to(words, session.protocol)


@command("HELP")
def help_(session: RespSession, words: wire.Command) -> Plan:
    """`HELP [layer or operation]`: a line for each operation."""
    wanted = words[1].decode(errors="replace").lower() if len(words) > 1 else ""
    lines = [line for name, line in _help_lines() if name.startswith(wanted)]
    if not lines:
        raise BadInput(f"nothing begins with {wanted!r:.100}", hint="HELP alone lists everything.")
    return wire.array(lines)


@cache
def _help_lines() -> list[tuple[str, bytes]]:
    """Returns a line for each operation by its name, as it is sent."""
    lines = {
        operation.full_name: (
            f"{operation.full_name.upper()} {_arguments(operation)}: {operation.summary}"
        )
        for operation in OPERATIONS.values()
    }
    return [(name, wire.bulk(line.encode())) for name, line in lines.items()]


def _arguments(operation: Operation) -> str:
    return "{" + ", ".join(operation.arguments.__struct_encode_fields__) + "}"


@command("INFO")
def info(session: RespSession, words: wire.Command) -> Plan:
    """`INFO [section...]`."""
    wanted = {wire.text_of(word).lower() for word in words[1:]} - {"all", "default", "everything"}
    dispatcher = session.dispatcher

    def info_reply(figures: dict[str, int]) -> bytes:
        return _info_sections(dispatcher, figures, wanted)

    if dispatcher.reads_in_threads:
        return Later(lambda: dispatcher.read_in_thread(dispatcher.store.stats), info_reply)
    return info_reply(dispatcher.store.stats())


def _info_sections(dispatcher: Dispatcher, figures: dict[str, int], wanted: set[str]) -> bytes:
    sections: dict[str, dict[str, object]] = {
        "Server": {
            "redis_version": REDIS_VERSION,
            "holdfast_version": VERSION,
            "redis_mode": "standalone",
            "process_id": os.getpid(),
            "uptime_in_seconds": int(time.time() - dispatcher.started),
        },
        "Clients": {"connected_clients": dispatcher.connections.total},
        "Replication": {"role": "master", "connected_slaves": 0},
        "Store": {**figures, **dispatcher.figures()},
        "Keyspace": {},
    }
    lines = []
    for title, facts in sections.items():
        if not wanted or title.lower() in wanted:
            lines += [f"# {title}", *(f"{name}:{fact}" for name, fact in facts.items()), ""]
    return wire.bulk("".join(f"{line}\r\n" for line in lines).encode())


@command("CONFIG")
def config(session: RespSession, words: wire.Command) -> Plan:
    """`CONFIG GET pattern...`: the options that benchmarks and clients ask for; nothing can be
    set."""
    if len(words) < 3 or words[1].upper() != b"GET":
        return wire.error("ERR only CONFIG GET is supported; see holdfast serve --help")
    answers = {
        b"save": b"",
        b"appendonly": b"yes",
        b"databases": b"%d" % DATABASES,
        b"maxclients": b"%d" % session.dispatcher.bounds.connections,
    }
    if len(words) > 2 + MAX_CONFIG_PATTERNS:
        raise BadInput(f"CONFIG GET takes up to {MAX_CONFIG_PATTERNS} patterns")
    patterns = [compile_glob(word.lower()) for word in words[2:]]
    pairs = [
        (wire.bulk(name), wire.bulk(value))
        for name, value in answers.items()
        if any(pattern.fullmatch(name) for pattern in patterns)
    ]
    return wire.mapping(pairs, session.protocol)


@command("EXACT")
def exact(session: RespSession, words: wire.Command) -> Plan:
    """Makes msgpack carry every Python value exactly, and errors objects in JSON, from now on.

    Our own clients need both: they return the very values and errors of the store.
    """

    def begin() -> bytes:
        session.is_exact = True
        return wire.OK

    return Change(begin)


@command("BIGINT")
def bigint(session: RespSession, words: wire.Command) -> Plan:
    """`BIGINT STRING` or `BIGINT NUMBER`: how JSON replies hold integers beyond 2^53."""
    form = words[1].upper() if len(words) == 2 else b""
    if form not in (b"STRING", b"NUMBER"):
        return wire.error("ERR BIGINT takes STRING or NUMBER")

    def begin() -> bytes:
        session.integers_as_text = form == b"STRING"
        return wire.OK

    return Change(begin)


@command("TRACE")
def trace(session: RespSession, words: wire.Command) -> Plan:
    """`TRACE name value...`: sets the trace context of the next call or batch, as HTTP headers do.

    A server without a tracer answers the same, and stores nothing.
    """
    if len(words) < 3 or len(words) % 2 == 0:
        return wrong_arguments("trace")
    if sum(map(len, words)) > MAX_TRACE_BYTES:
        raise RequestTooLarge(
            f"a trace context has at most {MAX_TRACE_BYTES} bytes",
            hint="`traceparent` and `tracestate` are enough; leave `baggage` out.",
        )
    if session.dispatcher.tracer is not None:
        texts = [word.decode("latin-1") for word in words[1:]]
        names = [name.lower() for name in texts[::2]]
        session.trace_context = dict(zip(names, texts[1::2], strict=True))
    return wire.OK


# --- spaces --------------------------------------------------------------------------------------


@command("SPACE")
def space(session: RespSession, words: wire.Command) -> Plan:
    """`SPACE [name]`: sets the space of this connection, or returns it."""
    if len(words) == 1:
        return wire.bulk(session.space_name.encode())
    if len(words) > 2:
        return wrong_arguments("space")
    try:
        name = words[1].decode()
    except UnicodeDecodeError:
        raise BadInput("the name of a space is UTF-8") from None
    return _enter(session, name, 0)


@command("SELECT")
def select(session: RespSession, words: wire.Command) -> Plan:
    """`SELECT 0..15`: each database is a space of its own, derived from the connection's space."""
    if len(words) != 2:
        return wrong_arguments("select")
    number = words[1]
    if not number.isdigit() or len(number) > 2 or int(number) >= DATABASES:
        return wire.error("ERR DB index is out of range")
    return _enter(session, session.space_name, int(number))


def _enter(session: RespSession, name: str, database: int) -> Plan:
    full_name = name if database == 0 else f"{name}/{database}"
    if not session.may_enter(full_name):
        raise Forbidden(f"{session.who().name} has no grant for the space {full_name!r}")

    def entered(space: Space) -> bytes:
        session.enter(space, name, database)
        return wire.OK

    known = session.dispatcher.known_space(full_name)
    if known is not None:
        return Change(lambda: entered(known))
    return Later(lambda: asyncio.ensure_future(session.dispatcher.space(full_name)), entered)
