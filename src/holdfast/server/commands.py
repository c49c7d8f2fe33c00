"""The RESP commands: `LAYER.OPERATION payload` for every operation, and those that every connection
needs, such as `MULTI` and `PING`.

The payload is an object of the operation's arguments, as JSON (it begins with `{`) or as msgpack;
the reply is one bulk string in the payload's own encoding. `word_commands.py` reads commands as
people type them.
"""

import time
from collections.abc import Callable
from functools import partial
from typing import Any, Final, Protocol, TypeAlias, TypeVar

from holdfast import wire
from holdfast.error_text import nearest
from holdfast.errors import HoldfastError, RequestTooLarge
from holdfast.limits import DECODED_ON_LOOP_BYTES, MAX_ECHO_BYTES, MAX_READ_ON_LOOP
from holdfast.operations import OPERATIONS, OPERATIONS_BY_METHOD, Operation
from holdfast.server import large_reads, payloads, redis_hints, word_commands
from holdfast.server.client_address import address_events
from holdfast.server.decoding_limits import refuse_long_decoding, refuse_long_text
from holdfast.server.resp_session import Change, Encode, Later, Plan, Read, RespSession, Write

T = TypeVar("T")
Handler: TypeAlias = Callable[[RespSession, wire.Command], Plan]


class Planner(Protocol):
    """Makes a plan for a call; with `is_short`, its arguments are too short to ask for much."""

    def __call__(
        self, session: RespSession, arguments: Any, encode: Encode, is_short: bool = False
    ) -> Plan: ...


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
    """Returns the plan for one command. Never raises: an error is the plan's reply."""
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
            return session.fail_batch(_unknown(words))
        if session.subscriptions and session.protocol == 2 and name not in WHILE_SUBSCRIBED:
            return _only_listens(name)
        plan = handler(session, words)
    except Exception as error:
        return session.fail_batch(session.error(error))
    if session.batch is not None and name not in IN_BATCH_AT_ONCE:
        is_decoding = type(plan) is Later and plan.is_decoding  # it is collected once it is decoded
        return plan if is_decoding else session.collect(words, plan)
    return plan


def _unknown(words: wire.Command) -> bytes:
    name = words[0][:128].decode(errors="replace")
    arguments = " ".join(f"'{word[:32].decode(errors='replace')}'" for word in words[1:4])
    said = f"ERR unknown command '{name}', with args beginning with: {arguments}"
    if advice := redis_hints.advice_for(name):
        return wire.error(f"{said}. {advice}")
    names = [known.decode().lower() for known in COMMANDS]
    near = nearest(name, names)
    meant = f"Did you mean {near.upper()}?" if near else "HELP lists all operations."
    return wire.error(f"{said}. {meant}")


def _only_listens(name: bytes) -> bytes:
    return wire.error(
        f"ERR Can't execute '{name[:128].decode(errors='replace').lower()}': only (P)SUBSCRIBE / "
        "(P)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context"
    )


# --- operations ----------------------------------------------------------------------------------


def _serve(operation: Operation) -> Handler:
    json_encoder = _bulk(payloads.encoder(operation, is_json=True))
    text_encoder = _bulk(payloads.encoder(operation, is_json=True, integers_as_text=True))
    msgpack_encoder = _bulk(payloads.encoder(operation, is_json=False))
    exact_encoder = _bulk(payloads.exact_encoder(operation))
    read_exact = payloads.exact_decoder(operation)
    plan, read_arguments = planner(operation), payloads.read_arguments
    counts_only_lists = large_reads.counts_only_lists(operation.arguments)
    is_read = operation.kind == "read"

    def handle(session: RespSession, words: wire.Command) -> Plan:
        payload = words[-1]
        if (
            len(words) == 2
            and payload[:1] == b"{"
            and len(payload) <= DECODED_ON_LOOP_BYTES
            and not session.integers_as_text
        ):  # the usual case
            arguments = read_arguments(operation, payload, is_json=True)
            if not is_read:
                return plan(session, arguments, json_encoder)
            is_short = counts_only_lists and payload.count(b",") < MAX_READ_ON_LOOP
            return plan(session, arguments, json_encoder, is_short)
        if is_large(words):
            decode = partial(read_large, session, words)
            return decoded_in_thread(session, words, decode, plan_decoded)
        return plan(session, *read(session, words))

    def plan_decoded(session: RespSession, decoded: tuple[Any, Encode]) -> Plan:
        return plan(session, *decoded)

    def read_large(session: RespSession, words: wire.Command) -> tuple[Any, Encode]:
        for word in words[1:]:
            if len(words) == 2 and word_commands.form_of(word) == "msgpack":
                refuse_long_decoding(word, "msgpack")
            elif word.lstrip()[:1] in (b"{", b"["):
                refuse_long_decoding(word, "json")
            else:
                refuse_long_text(word)  # a text is one value
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
    """Returns the plan of a large command, which is decoded in a thread and planned afterwards."""

    def planned(decoded: T) -> Plan:
        session.who()  # raises if the user was removed meanwhile
        found = plan(session, decoded)
        if isinstance(found, Read):
            found = found._replace(is_large=True)  # comparing a long text takes time, too
        return found if session.batch is None else session.collect(words, found)

    def failed(error: HoldfastError) -> bytes:
        reply = session.error(error) if fail is None or session.batch is not None else fail(error)
        return session.fail_batch(reply)

    start = partial(session.dispatcher.decode_in_thread, decode)
    return Later(start, planned, failed, is_decoding=True)


def planner(operation: Operation) -> Planner:
    """Returns the function that makes plans for calls with decoded arguments."""
    name, is_read = operation.full_name, operation.kind == "read"
    takes_time = operation.kind in ("long", "wait")
    may_take_time = takes_time or operation.layer == "tables"
    is_addressed = bool(operation.declaration.addressed)
    has_many_records = payloads.has_many_records(operation)

    def plan(session: RespSession, arguments: Any, encode: Encode, is_short: bool = False) -> Plan:
        if name not in session.permitted:
            session.require(operation)
        space, dispatcher = session.space, session.dispatcher
        plan: Read | Write | Later
        if is_addressed:
            address_events(operation, arguments, session.address)
        if may_take_time and (takes_time or dispatcher.is_for_all_domains(space, operation)):
            recheck = partial(session.require, operation)
            start = partial(dispatcher.start, space, operation, arguments, encode, recheck)
            plan = Later(start, bytes)
        elif is_read:
            work = partial(dispatcher.recorder.works[name], arguments)
            large_reads = dispatcher.large_reads
            is_large = (large_reads.remembers or not is_short) and (
                large_reads.expects(name, None if is_short else arguments)
            )
            plan = Read(space, work, encode, None, name, is_large)
        else:
            work = partial(dispatcher.recorder.works[name], arguments)
            if has_many_records:
                plan = Write(space, partial(_encoded, encode, work), bytes)
            else:
                plan = Write(space, work, encode)
        return plan if dispatcher.tracer is None else session.traced_unless_batched(name, plan)

    return plan


def _encoded(encode: Encode, work: Callable[[Any], Any], tx: Any) -> bytes:
    """Runs a write, and encodes its result in the thread that runs it."""
    return encode(work(tx))


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


_THROTTLE: Final = OPERATIONS["metrics.throttle"]
_plan_throttle: Final = planner(_THROTTLE)


@command("CL.THROTTLE")
def throttle(session: RespSession, words: wire.Command) -> Plan:
    """`CL.THROTTLE key max_burst count period [quantity]`: redis-cell's reply of five integers."""
    if not 5 <= len(words) <= 6:
        return wrong_arguments("cl.throttle")
    arguments = word_commands.read_words(_THROTTLE, words[1:])
    return _plan_throttle(
        session, arguments, lambda numbers: wire.array(map(wire.integer, numbers))
    )


# --- what all connections need -------------------------------------------------------------------


@command("PING")
def ping(session: RespSession, words: wire.Command) -> Plan:
    if len(words) > 2:
        return wrong_arguments("ping")
    if session.subscriptions and session.protocol == 2:
        return wire.array([wire.bulk(b"pong"), _echoed(words[1] if len(words) > 1 else b"")])
    return _echoed(words[1]) if len(words) > 1 else wire.PONG


@command("ECHO")
def echo(session: RespSession, words: wire.Command) -> Plan:
    return _echoed(words[1]) if len(words) == 2 else wrong_arguments("echo")


def _echoed(text: bytes) -> bytes:
    if len(text) > MAX_ECHO_BYTES:
        raise RequestTooLarge(
            f"the text has {len(text)} bytes, at most {MAX_ECHO_BYTES} are sent back"
        )
    return wire.bulk(text)


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
