"""The state of a RESP client: its protocol, space, open batch and subscriptions.

A session turns each command into a *plan*, without running it: bytes that are the reply already, a
`Read` for a view, a `Write` for the next group, a `Later` for what takes time, a `Change` of
the session itself, or `Steps` for several turns of the loop. The connection runs plans in order;
`MULTI` collects them, and `EXEC` makes one transaction of all.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from holdfast import errors, wire
from holdfast.compat.qless import Dialect
from holdfast.engine.contract import Notice, Outcome, TooLong
from holdfast.errors import (
    BatchTooLong,
    HoldfastError,
    NotAuthenticated,
    RequestTooLarge,
    UnknownSpace,
)
from holdfast.limits import (
    LARGE_READ_SECONDS,
    MAX_ANSWER_ON_LOOP_BYTES,
    MAX_BATCH_COMMANDS,
    MAX_BATCH_READS_ON_LOOP,
    MAX_CHANNEL_BYTES,
    MAX_PATTERN_BYTES,
    MAX_PATTERNS,
    MAX_SUBSCRIPTIONS,
)
from holdfast.operations import OPERATIONS, Operation, refuse_in_batch
from holdfast.server.auth import Identity
from holdfast.server.batch_limits import BatchMeter
from holdfast.server.call_tracing import TracedCall
from holdfast.server.dispatcher import Dispatcher
from holdfast.server.subscribers import Kind, SpaceSubscriptions, layer_of
from holdfast.store import Space, Tx, View

_clock: Final = time.monotonic
SHORTER_NAME: Final = "Use a shorter name; what it is about belongs in the message."
_PLAN_BYTES: Final = 512  # memory of a queued command besides its words
Encode: TypeAlias = Callable[[Any], bytes]


class Read(NamedTuple):
    """A read that runs on a view, or inside a batch."""

    space: Space
    work: Callable[[View], Any]
    encode: Encode
    fail: Callable[[HoldfastError], bytes] | None = (
        None  # for commands whose errors have a form of their own
    )
    kind: str = ""  # of operation; see large_reads.py
    is_large: bool = False  # on the loop it would hold up everyone else
    traced: TracedCall | None = None


class Write(NamedTuple):
    """One transaction for the next group."""

    space: Space
    work: Callable[[Tx], Any]
    encode: Encode
    fail: Callable[[HoldfastError], bytes] | None = None
    traced: TracedCall | None = None


class Later(NamedTuple):
    """Something that takes time, but holds neither a transaction nor the loop."""

    start: Callable[[], asyncio.Future[Any]]
    encode: "Callable[[Any], Plan]"  # most return bytes
    fail: Callable[[HoldfastError], bytes] | None = None
    traced: TracedCall | None = None
    is_decoding: bool = False  # a large request is decoded in a thread; `encode` returns its plan


class Change(NamedTuple):
    """A change of the session, made when its turn comes: earlier commands are not affected."""

    make: Callable[[], bytes]


class Steps(NamedTuple):
    """Work for several turns of the loop, before a plan or for many replies to one command.

    Each step yields a part of the reply, or nothing yet; the last one may yield another plan.
    """

    parts: "Iterator[Plan | None]"


Plan: TypeAlias = bytes | Read | Write | Later | Change | Steps


class RespSession:
    """One client's state."""

    def __init__(
        self, dispatcher: Dispatcher, send: Callable[[bytes], None], address: str = ""
    ) -> None:
        self.dispatcher = dispatcher
        self.send = send
        self.address = address  # of the peer
        self.protocol = 2
        self.id = dispatcher.next_session_id()
        self.began = time.time()
        self.space: Space = dispatcher.store
        self.space_name = dispatcher.store.name
        self.database = 0
        self.name = b""
        self.is_exact = False  # see `exact` in connection_commands.py
        self.integers_as_text = False  # see `bigint` there
        self.identity = dispatcher.authenticator.anonymous()
        self.users_version = dispatcher.authenticator.version  # to which `identity` belongs
        self.quits = False
        self.batch: list[Plan] | None = None
        self.batch_failed = False
        self._batch_bytes = 0
        self._batch_words = 0  # commands in the batch
        # Most values are the client's listener in the space: an object for each subscription would
        # burden the garbage collector. The others are functions that end the subscription.
        self.subscriptions: dict[tuple[Kind, bytes], SpaceSubscriptions | Callable[[], None]] = {}
        self._by_space: dict[bytes, SpaceSubscriptions] = {}  # by the prefix of the space
        self.permitted: set[str] = (
            set()
        )  # operations that were checked, until identity or space changes
        self.scripts: dict[bytes, Dialect] = {}  # of Qless, that this client has loaded
        self.has_flushed_scripts = False  # then it knows no scripts of others either
        self.trace_context: dict[str, str] = {}  # of the next call; see `trace`

    @property
    def subscribed(self) -> bool:
        return bool(self.subscriptions)

    def who(self) -> Identity:
        """Returns the client's identity; raises `NotAuthenticated` if it must log in first."""
        authenticator = self.dispatcher.authenticator
        if self.users_version != authenticator.version:
            self.log_in(authenticator.current_identity(self.identity))
            self.users_version = authenticator.version
        if self.identity is None:
            raise authenticator.refusal("Authentication required")
        return self.identity

    def log_in(self, identity: Identity | None) -> None:
        """Runs all further commands as `identity`; None is a client that has to log in."""
        if identity != self.identity:
            self.fail_batch(b"")  # what it has collected was checked for the former one
        self.identity = identity
        self.permitted.clear()

    def require(self, operation: Operation) -> None:
        """Raises `Forbidden` unless this client may call the operation in its space."""
        self.who().require_operation(operation, self.space.name)
        self.permitted.add(operation.full_name)

    def may_enter(self, space: str) -> bool:
        """Returns whether this client has any grant in that space."""
        return any(grant.space in ("*", space) for grant in self.who().grants)

    def enter(self, space: Space, name: str, database: int) -> None:
        """Runs all further commands in `space`."""
        self.space, self.space_name, self.database = space, name, database
        self.permitted.clear()

    def reset(self) -> None:
        """Returns the session to its initial state."""
        for _ in self.leave_all():
            pass
        self.protocol, self.name, self.batch, self.batch_failed = 2, b"", None, False
        self.is_exact = self.integers_as_text = False
        self.log_in(self.dispatcher.authenticator.anonymous())
        self.enter(self.dispatcher.store, self.dispatcher.store.name, 0)

    def flush_scripts(self) -> None:
        """Makes this client forget the scripts that it or others have loaded."""
        self.scripts.clear()
        self.has_flushed_scripts = True

    def leave_all(self) -> Iterator[None]:
        """Ends all subscriptions, in steps: the client may be gone."""
        left, self.subscriptions, self._by_space = self.subscriptions, {}, {}
        for (kind, channel), held in left.items():
            self._leave(kind, channel, held)
            yield

    def release(self, commands: deque[wire.Command]) -> Iterator[None]:
        """Releases the session of a client that is gone, and its waiting commands, in steps."""
        while commands:
            commands.pop()
            yield
        self.send = _discard_message
        yield from self.leave_all()
        while self.batch:
            self.batch.pop()
            yield
        self.batch = None

    # --- subscriptions ---------------------------------------------------------------------------

    def channels(self, kind: Kind) -> list[bytes]:
        return [channel for known, channel in self.subscriptions if known == kind]

    def refuse_too_many(self, kind: Kind, channels: Collection[bytes]) -> None:
        """Raises if the client would have more subscriptions than allowed."""
        most = MAX_SUBSCRIPTIONS if kind == "subscribe" else MAX_PATTERNS
        if len(self.subscriptions) + len(channels) > most and (
            len({*self.channels(kind), *channels}) > most
        ):
            raise RequestTooLarge(
                f"a connection may have {most} subscriptions of this kind",
                hint="Use fewer patterns, or several connections.",
            )
        longest = MAX_PATTERN_BYTES if kind == "psubscribe" else MAX_CHANNEL_BYTES
        if any(len(channel) > longest for channel in channels):
            raise RequestTooLarge(
                f"a channel may have {MAX_CHANNEL_BYTES} bytes, a pattern {MAX_PATTERN_BYTES}",
                hint=SHORTER_NAME,
            )

    def subscribe(self, kind: Kind, channel: bytes) -> None:
        if (kind, channel) in self.subscriptions:
            return
        if self.space.exists():
            listener = self._subscriptions_in(self.space.prefix, self.space.name)
            self.dispatcher.subscribers.join(listener, kind, channel)
            self.subscriptions[kind, channel] = listener
            return
        space = self.space

        def begin(prefix: bytes) -> Callable[[], None]:
            listener, subscribers = (
                self._subscriptions_in(prefix, space.name),
                self.dispatcher.subscribers,
            )
            subscribers.join(listener, kind, channel)
            return lambda: subscribers.leave(listener, kind, channel)

        self.subscriptions[kind, channel] = self.dispatcher.listen(space, begin)

    def _subscriptions_in(self, prefix: bytes, space: str) -> SpaceSubscriptions:
        """Returns this client's entry among the listeners of a space."""
        if (listener := self._by_space.get(prefix)) is None:
            listener = self._by_space[prefix] = SpaceSubscriptions(self, space, prefix)
        return listener

    def listen(self, topic: bytes) -> None:
        """Sends the notices of this space whose topics begin with `topic`, as they are."""
        if ("notices", topic) in self.subscriptions:
            return
        space = self.space.name

        def on_notice(notice: Notice) -> None:
            if self.may_receive(space, layer_of(b"", notice.topic)):
                words = [b"notice", wire.bytes_of(notice.topic), notice.payload]
                self.send(wire.push(map(wire.bulk, words), self.protocol))

        listen, topic_prefix = self.dispatcher.notice_feed.listen, wire.text_of(topic)
        self.subscriptions["notices", topic] = self.dispatcher.listen(
            self.space, lambda prefix: listen(on_notice, space=prefix, topic_prefix=topic_prefix)
        )

    def unsubscribe(self, kind: Kind, channel: bytes) -> None:
        held = self.subscriptions.pop((kind, channel), None)
        if held is not None:
            self._leave(kind, channel, held)

    def _leave(
        self, kind: Kind, channel: bytes, held: SpaceSubscriptions | Callable[[], None]
    ) -> None:
        if isinstance(held, SpaceSubscriptions):
            self.dispatcher.subscribers.leave(held, kind, channel)
        else:
            held()

    def may_receive(self, space: str, layer: str) -> bool:
        """Returns whether notices of a layer may be sent to this client."""
        try:
            return self.who().may("read", space=space, layer=layer)
        except NotAuthenticated:
            return False

    # --- replies ---------------------------------------------------------------------------------

    def run(self, read: Read) -> bytes | Later:
        """Runs a read at once; one that is too large for the loop is planned for a thread."""
        space, work, encode, _, kind, _, _ = read
        begin = _clock()
        try:
            reply = encode(work(self.dispatcher.turn_view.of(space)))
        except TooLong:
            self.dispatcher.large_reads.remember(kind)
            return self.read_later(read)
        except Exception as error:
            reply = self.failure(read, error)
        seconds = _clock() - begin
        if seconds > LARGE_READ_SECONDS:
            self.dispatcher.large_reads.note_duration(kind, seconds)
        if len(reply) > MAX_ANSWER_ON_LOOP_BYTES:
            self.dispatcher.large_reads.answered(kind, len(reply))
        return reply

    def read_later(self, read: Read) -> Later:
        """Plans a read that waits for the network, or is large, for a thread."""

        def start() -> asyncio.Future[bytes]:
            return self.dispatcher.read_whole(
                read.space, lambda view: read.encode(read.work(view)), read.kind
            )

        return Later(start, bytes, read.fail, read.traced)

    def change(self, change: Change) -> bytes:
        """Applies a change of the session."""
        try:
            return change.make()
        except HoldfastError as error:
            return self.error(error)

    def reply(self, write: Write, outcome: Outcome[Any]) -> bytes:
        """Returns the reply to a committed write."""
        if outcome.error is not None:
            return self.failure(write, outcome.error)
        try:
            return write.encode(outcome.result)
        except Exception as error:
            return self.failure(write, error)

    def result_of(self, later: Later, done: asyncio.Future[Any]) -> Plan:
        """Returns the reply of a `Later`, or the plan of a request that has been decoded."""
        # An error raised here would refer to this frame, and the frame to the future with it:
        # a cycle for the garbage collector with every refused login and every bad request.
        if (failed := done.exception()) is not None:
            return self.failure(later, failed)
        try:
            return later.encode(done.result())
        except Exception as error:
            return self.failure(later, error)

    def failure(self, plan: Read | Write | Later, error: BaseException) -> bytes:
        if isinstance(error, UnknownSpace):
            self.dispatcher.forget_space(self.space.name)
        if plan.traced is not None:
            plan.traced.end(error)
        if plan.fail is not None and isinstance(error, HoldfastError):
            return plan.fail(error)
        return self.error(error, plan.traced)

    def error(self, error: BaseException, call: TracedCall | None = None) -> bytes:
        """Returns an error as a reply: its code, what happened, what to do."""
        self.dispatcher.recorder.protocols["resp errors"] += 1
        ids: dict[str, str | int] = {"connection": self.id}
        if call is not None:
            ids.update(call.ids)
        known = self.dispatcher.as_known_error(error, ids)
        if self.is_exact:
            return self._exact_error(error, known)
        where = "".join(f" ({note})" for note in getattr(error, "__notes__", ()))
        return wire.error(f"{known.code.upper()} {known}{where}")

    def _exact_error(self, error: BaseException, known: HoldfastError) -> bytes:
        """Returns an error as an object, from which a client recreates the same error."""
        facts = errors.facts_of(known)
        facts["position"] = getattr(error, "position", None)
        return wire.error(f"{known.code.upper()} {msgspec.json.encode(facts).decode()}")

    # --- batches ---------------------------------------------------------------------------------

    def begin_batch(self) -> None:
        self.batch, self.batch_failed = [], False
        self._batch_bytes = self._batch_words = 0

    @property
    def held_bytes(self) -> int:
        """Returns the memory that a batch takes until `EXEC` is answered."""
        return self._batch_bytes and self._batch_bytes + _PLAN_BYTES * self._batch_words

    def release_batch(self) -> None:
        """Releases the memory of a batch."""
        if self.batch is None:
            self._batch_bytes = self._batch_words = 0

    def collect(self, words: wire.Command, plan: Plan) -> bytes:
        """Keeps a plan for `EXEC`."""
        assert self.batch is not None
        name = words[0].upper()
        if self.batch_failed:
            return wire.simple("QUEUED")  # as Redis replies, although the batch has failed
        most = self.dispatcher.bounds.request_bytes
        self._batch_bytes += sum(map(len, words))
        if isinstance(plan, bytes):
            self._batch_bytes += len(plan)  # a reply that is kept until `EXEC`
        self._batch_words += 1
        if self._batch_bytes > most:
            refused = RequestTooLarge(
                f"the commands of a batch have more than {most} bytes", hint=BatchTooLong.hint
            )
            return self.fail_batch(self.error(refused))
        if isinstance(plan, Later | Change | Steps):
            return self.fail_batch(self._not_in_batch(name.decode(errors="replace")))
        if isinstance(plan, bytes) and plan[:1] == b"-":
            return self.fail_batch(plan)
        if len(self.batch) == MAX_BATCH_COMMANDS:
            return self.fail_batch(
                wire.error(f"ERR a batch may have {MAX_BATCH_COMMANDS} commands")
            )
        self.batch.append(plan)
        return wire.simple("QUEUED")

    def _not_in_batch(self, name: str) -> bytes:
        try:
            if (operation := OPERATIONS.get(name.lower())) is not None:
                refuse_in_batch(operation)
        except HoldfastError as error:
            return self.error(error)
        return wire.error(f"ERR {name} can't be part of a batch: send it before MULTI")

    def fail_batch(self, reply: bytes) -> bytes:
        """Marks an open batch as failed after a refused command: `EXEC` will do nothing."""
        if self.batch is not None:
            self.batch_failed = True
            self.batch.clear()  # it will not run
            self._batch_bytes = self._batch_words = 0
        return reply

    def execute(self) -> Plan:
        """Runs the batch as one transaction: all of it, or nothing."""
        plans, self.batch = self.batch or [], None
        if self.batch_failed:
            return wire.error("EXECABORT Transaction discarded because of previous errors.")

        def work(tx: View) -> bytes:
            replies = []
            meter = BatchMeter()
            for position, plan in enumerate(plans):
                try:
                    replies.append(_run_in_batch(plan, tx))
                    meter.note_answer(len(replies[-1]))
                except Exception as error:
                    errors.at_position(error, position)
                    raise
            return wire.array(replies)  # here: joining many bytes takes time

        if any(isinstance(plan, Write) for plan in plans):
            return self.traced("batch", Write(self.space, work, bytes))
        large = any(isinstance(plan, Read) and plan.is_large for plan in plans)
        is_large = large or len(plans) > MAX_BATCH_READS_ON_LOOP
        return self.traced("batch", Read(self.space, work, bytes, is_large=is_large))

    def traced_unless_batched(self, name: str, plan: Read | Write | Later) -> Plan:
        """Returns the plan of a traced call; a batch is traced only as a whole."""
        if self.dispatcher.tracer is None or self.batch is not None:
            return plan
        return self.traced(name, plan)

    def traced(self, name: str, plan: Read | Write | Later) -> Plan:
        """Returns a plan that the server's tracer follows, if there is one."""
        tracer = self.dispatcher.tracer
        if tracer is None:
            return plan
        carrier, self.trace_context = self.trace_context, {}
        call = tracer.begin(name, self.space.name, "resp", carrier)
        encode: Callable[[Any], Any] = plan.encode

        def end_and_encode(result: Any) -> Any:
            encoded = encode(result)  # if this fails, `failure` ends the call
            call.end(None)
            return encoded

        if isinstance(plan, Write):
            return plan._replace(work=call.around(plan.work), encode=end_and_encode, traced=call)
        return plan._replace(encode=end_and_encode, traced=call)


def _discard_message(data: bytes) -> None:
    """Drops messages to a client that is gone."""


def _run_in_batch(plan: Plan, tx: View) -> bytes:
    if isinstance(plan, bytes):
        return plan
    assert isinstance(plan, Read | Write)  # `collect` refuses everything else
    return plan.encode(plan.work(tx))  # type: ignore[arg-type]  # with a `Write`, it is a `Tx`
