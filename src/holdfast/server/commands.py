"""The RESP commands: `LAYER.OPERATION payload` for every operation, and those that every connection
needs, such as `MULTI` and `PING`.

The payload is an object of the operation's arguments, as JSON (it begins with `{`) or as msgpack;
the reply is one bulk string in the payload's own encoding. Words as people type them are read by
`word_commands.py`.
"""

import difflib
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Final, TypeAlias, TypeVar

from holdfast import wire
from holdfast.errors import HoldfastError
from holdfast.limits import DECODED_ON_LOOP_BYTES
from holdfast.operations import OPERATIONS, OPERATIONS_BY_METHOD, Operation
from holdfast.server import payloads, redis_hints, word_commands
from holdfast.server.client_address import address_events
from holdfast.server.resp_session import Change, Encode, Later, Plan, Read, RespSession, Write
from holdfast.server.value_counts import refuse_long_decoding, refuse_long_text

T = TypeVar("T")
Handler: TypeAlias = Callable[[RespSession, wire.Command], Plan]

COMMANDS: Final[dict[bytes, Handler]] = {}
BEFORE_LOGIN: Final = frozenset({b"AUTH", b"HELLO", b"QUIT", b"RESET"})
IN_BATCH_AT_ONCE: Final = frozenset({b"EXEC", b"DISCARD", b"MULTI", b"QUIT", b"RESET"})
WHILE_SUBSCRIBED: Final = frozenset(
    {b"SUBSCRIBE", b"PSUBSCRIBE", b"UNSUBSCRIBE", b"PUNSUBSCRIBE", b"NOTICES"}
    | {b"PING", b"QUIT", b"RESET"}
)


def command(name: str) -> Callable[[Handler], Handler]:
    """Serves the command `name` with a function."""

    def add(handler: Handler) -> Handler:
        COMMANDS[name.encode()] = handler
        return handler

    return add


def wrong_arguments(name: str) -> bytes:
    return wire.error(f"ERR wrong number of arguments for '{name}' command")


def plan_of(session: RespSession, words: wire.Command) -> Plan:
    """Returns the plan for one command. Never raises: a mistake is its reply."""
    dispatcher = session.dispatcher
    dispatcher.recorder.protocols["resp"] += 1
    name = words[0]
    handler = COMMANDS.get(name)
    if handler is None:
        name = name.upper()
        handler = COMMANDS.get(name)
    try:
        users_version = dispatcher.authenticator.version
        if (
            session.users_version != users_version or session.identity is None
        ) and name not in BEFORE_LOGIN:
            session.who()
        if handler is None:
            return session.spoil(_unknown(words))
        if session.subscriptions and session.protocol == 2 and name not in WHILE_SUBSCRIBED:
            return _only_listens(name)
        plan = handler(session, words)
    except Exception as error:
        return session.spoil(session.error(error))
    if session.batch is not None and name not in IN_BATCH_AT_ONCE:
        is_decoding = type(plan) is Later and plan.is_decoding  # which is collected afterwards
        return plan if is_decoding else session.collect(words, plan)
    return plan


def _unknown(words: wire.Command) -> bytes:
    name = words[0][:128].decode(errors="replace")
    arguments = " ".join(f"'{word[:32].decode(errors='replace')}'" for word in words[1:4])
    said = f"ERR unknown command '{name}', with args beginning with: {arguments}"
    if advice := redis_hints.advice_for(name):
        return wire.error(f"{said}. {advice}")
    names = [known.decode().lower() for known in COMMANDS]
    near = difflib.get_close_matches(name.lower(), names, 1)
    meant = f"Did you mean {near[0].upper()}?" if near else "HELP lists all operations."
    return wire.error(f"{said}. {meant}")


def _only_listens(name: bytes) -> bytes:
    return wire.error(
        f"ERR Can't execute '{name.decode(errors='replace').lower()}': only (P)SUBSCRIBE / "
        "(P)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context"
    )


# --- operations ----------------------------------------------------------------------------------


def _serve(operation: Operation) -> Handler:
    json_encoder = _bulk(payloads.encoder(operation, is_json=True))
    text_encoder = _bulk(payloads.encoder(operation, is_json=True, integers_as_text=True))
    msgpack_encoder = _bulk(payloads.encoder(operation, is_json=False))
    exact_encoder = _bulk(payloads.exact_encoder(operation))
    read_exact = payloads.exact_decoder(operation)

    def handle(session: RespSession, words: wire.Command) -> Plan:
        if is_large(words):
            return decoded_in_thread(session, words, lambda: read_large(session, words), plan)
        if len(words) == 2 and words[1][:1] == b"{" and not session.integers_as_text:
            # As most are.
            arguments = payloads.read_arguments(operation, words[1], is_json=True)
            return plan_operation(session, operation, arguments, json_encoder)
        return plan(session, read(session, words))

    def plan(session: RespSession, decoded: tuple[Any, Encode]) -> Plan:
        return plan_operation(session, operation, *decoded)

    def read_large(session: RespSession, words: wire.Command) -> tuple[Any, Encode]:
        for word in words[1:]:
            if len(words) == 2 and word_commands.form_of(word) == "msgpack":
                refuse_long_decoding(word, "msgpack")
            elif word.lstrip()[:1] in (b"{", b"["):
                refuse_long_decoding(word, "json")
            else:
                refuse_long_text(word)  # it is one value
        return read(session, words)

    def read(session: RespSession, words: wire.Command) -> tuple[Any, Encode]:
        payload = words[1] if len(words) > 1 else b"{}"
        as_text = session.integers_as_text
        form = "words" if len(words) > 2 else word_commands.form_of(payload)
        if form == "msgpack" and session.is_exact:
            return read_exact(payload), exact_encoder
        if form == "words":
            arguments = word_commands.read_words(operation, words[1:])
        else:
            arguments = payloads.read_arguments(
                operation, payload, is_json=form == "json", integers_as_text=as_text
            )
        if form == "msgpack":
            return arguments, msgpack_encoder
        return arguments, text_encoder if as_text else json_encoder

    return handle


def is_large(words: wire.Command) -> bool:
    """Returns whether the words of a command take long to decode."""
    return max(map(len, words)) > DECODED_ON_LOOP_BYTES


def decoded_in_thread(
    session: RespSession,
    words: wire.Command,
    decode: Callable[[], T],
    plan: Callable[[RespSession, T], Plan],
    fail: Callable[[HoldfastError], bytes] | None = None,
) -> Later:
    """Returns the plan of a large command: it is decoded in a thread, and planned then."""

    def planned(decoded: T) -> Plan:
        found = plan(session, decoded)
        return found if session.batch is None else session.collect(words, found)

    def failed(error: HoldfastError) -> bytes:
        reply = session.error(error) if fail is None or session.batch is not None else fail(error)
        return session.spoil(reply)

    start = partial(session.dispatcher.decode_in_thread, decode)
    return Later(start, planned, failed, is_decoding=True)


def plan_operation(
    session: RespSession,
    operation: Operation,
    arguments: Any,
    encode: Callable[[Any], bytes],
) -> Plan:
    """Returns the plan of an operation with decoded arguments."""
    space, dispatcher = session.space, session.dispatcher
    kind, name = operation.kind, operation.full_name
    session.require(operation)
    if operation.declaration.addressed:
        address_events(operation, arguments, session.address)
    plan: Read | Write | Later
    if kind == "long" or kind == "wait" or dispatcher.is_everywhere(space, operation):
        plan = Later(lambda: dispatcher.start(space, operation, arguments), encode)
    elif kind == "read":
        work = dispatcher.recorder.work_of(operation, arguments)
        is_large = dispatcher.large_reads.expects(name, arguments)
        plan = Read(space, work, encode, None, name, is_large)
    else:
        plan = Write(space, dispatcher.recorder.work_of(operation, arguments), encode)
    return plan if dispatcher.tracer is None else session.followed(name, plan)


def _bulk(encode: Callable[[Any], bytes]) -> Callable[[Any], bytes]:
    def encode_bulk(result: Any) -> bytes:
        encoded = encode(result)
        return b"$%d\r\n%b\r\n" % (len(encoded), encoded)  # `wire.bulk`, without a call

    return encode_bulk


COMMANDS.update(
    (operation.full_name.upper().encode(), _serve(operation)) for operation in OPERATIONS.values()
)
COMMANDS.update(
    (name.upper().encode(), COMMANDS[operation.full_name.upper().encode()])
    for name, operation in OPERATIONS_BY_METHOD.items()
)


@command("CL.THROTTLE")
def throttle(session: RespSession, words: wire.Command) -> Plan:
    """`CL.THROTTLE key max_burst count period [quantity]`: redis-cell's reply of five integers."""
    if not 5 <= len(words) <= 6:
        return wrong_arguments("cl.throttle")
    operation = OPERATIONS["metrics.throttle"]
    arguments = word_commands.read_words(operation, words[1:])
    return plan_operation(
        session, operation, arguments, lambda numbers: wire.array(map(wire.integer, numbers))
    )


# --- what all connections need -------------------------------------------------------------------


@command("PING")
def ping(session: RespSession, words: wire.Command) -> Plan:
    if len(words) > 2:
        return wrong_arguments("ping")
    if session.subscriptions and session.protocol == 2:
        return wire.array([wire.bulk(b"pong"), wire.bulk(words[1] if len(words) > 1 else b"")])
    return wire.bulk(words[1]) if len(words) > 1 else wire.PONG


@command("ECHO")
def echo(session: RespSession, words: wire.Command) -> Plan:
    return wire.bulk(words[1]) if len(words) == 2 else wrong_arguments("echo")


@command("QUIT")
def quit(session: RespSession, words: wire.Command) -> Plan:
    def leave() -> bytes:
        session.quits = True
        return wire.OK

    return Change(leave)


@command("TIME")
def time_(session: RespSession, words: wire.Command) -> Plan:
    seconds, microseconds = divmod(time.time_ns() // 1_000, 1_000_000)
    return wire.array([wire.bulk(b"%d" % seconds), wire.bulk(b"%d" % microseconds)])


# --- batches -------------------------------------------------------------------------------------


@command("MULTI")
def multi(session: RespSession, words: wire.Command) -> Plan:
    if session.batch is not None:
        return wire.error("ERR MULTI calls can not be nested")
    session.begin_batch()
    return wire.OK


@command("EXEC")
def execute(session: RespSession, words: wire.Command) -> Plan:
    if session.batch is None:
        return wire.error("ERR EXEC without MULTI")
    return session.execute()


@command("DISCARD")
def discard(session: RespSession, words: wire.Command) -> Plan:
    if session.batch is None:
        return wire.error("ERR DISCARD without MULTI")
    session.batch = None
    return wire.OK
