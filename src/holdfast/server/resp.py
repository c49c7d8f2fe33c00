"""One connection of the RESP server: any Redis client in any language.

A connection is a queue of commands. Reads are answered at once; successive writes go to the next
group together, and replies keep the order of the commands. What a command does is in `commands.py`
and in `compat/`; this file has packets, order and limits.
"""

import asyncio
import time
from collections import deque
from collections.abc import Iterator
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, cast

from holdfast import wire
from holdfast.compat.meduza import resp as meduza
from holdfast.compat.qless import resp as qless  # noqa: F401  # registers commands
from holdfast.compat.qless import resp_keys  # noqa: F401  # registers commands
from holdfast.engine.contract import Outcome
from holdfast.errors import HoldfastError
from holdfast.limits import (
    COMMANDS_PER_TURN,
    LARGE_PIECE_BYTES,
    MAX_BYTES_BEFORE_LOGIN,
    MAX_DELAYED_REPLY_BYTES,
    MAX_GROUP_TRANSACTIONS,
    MAX_PIPELINED_BYTES,
    MAX_SMALL_REQUEST_BYTES,
    MAX_UNDELAYED_BYTES,
    PARSED_PER_TURN_BYTES,
    SMALL_REQUESTS_BYTES,
)
from holdfast.server import connection_commands, pubsub, word_commands  # noqa: F401  # register commands
from holdfast.server.commands import plan_of
from holdfast.server.resp_session import Change, Later, Plan, Read, RespSession, Steps, Write
from holdfast.server.slow_clients import SlowClientWatch
from holdfast.server.write_groups import Answer

if TYPE_CHECKING:
    from holdfast.server.resp_server import RespServer


class RespConnection(asyncio.Protocol):
    """One client."""

    def __init__(self, server: "RespServer") -> None:
        self._server = server
        self._bounds = server.dispatcher.bounds
        self._reads_in_threads = server.dispatcher.reads_in_threads
        self._turns = server.dispatcher.turns
        self.reader = wire.CommandReader(meduza.ARGUMENT_BYTES)
        self._commands: deque[wire.Command] = deque()
        self._unparsed = b""  # data that arrived, parsed once the others have had their turn
        self._parses_later = False
        self._awaits_login = False  # before it parses
        self._received = 0  # bytes that arrived and are not answered yet
        self._taken = 0  # bytes of the memory budget that all clients share
        self._planned: Plan | None = None  # already planned, waiting for the writes before it
        self._waits = False  # for a commit, a thread or a notice
        self._awaited: asyncio.Future[Any] | None = None
        self._continues_later = False  # others have their turn first
        self._pauses = False  # the client sends faster than it is answered
        self._stalled = False  # the client does not read
        self._closing = False
        self._is_clear = False  # nothing is held or about to close; at most one single write waits
        self._delayed = b""  # a reply that is sent at the end of this turn
        self.last_received = time.monotonic()
        self.command_began = 0.0  # when the incomplete command began; 0 if there is none

    # --- asyncio's side ---------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(self._bounds.pause_unsent_bytes)
        peer = transport.get_extra_info("peername") or ("",)
        self.session = RespSession(self._server.dispatcher, self._send, str(peer[0]))
        self._slow_client_watch = SlowClientWatch(self._server.loop, self._bounds, self)
        if not self._server.admit(self):
            self._answer_and_close(wire.error("ERR max number of clients reached"))
        else:
            self._is_clear = True

    def connection_lost(self, error: Exception | None) -> None:
        self._closing = True
        self._is_clear = False
        self._delayed = b""
        self._turns.forget_soon(self._forget)

    def _forget(self) -> None:
        self._server.dispatcher.back_pressure.remove(self)
        self._unparsed = b""
        self._slow_client_watch.end()
        if self._awaited is not None:
            self._awaited.cancel()
        # In steps: the collector would release all that the client has sent at once.
        self._planned = None
        self._turns.run_steps(chain(self.reader.release(), self.session.release(self._commands)))
        self._server.dispatcher.memory_budget.give_back(self._taken)
        self._taken = 0
        self._server.forget(self)

    def data_received(self, data: bytes) -> None:
        if (
            self._is_clear
            and not self._waits
            and len(data) <= MAX_UNDELAYED_BYTES
            and self._answer_only(data)
        ):
            return
        if self._closing:
            return
        self._is_clear = False
        self.last_received = time.monotonic()
        if self._parses_later:
            self._unparsed += data
            return
        if self._may_log_in() or (len(data) > MAX_UNDELAYED_BYTES and self._turns.is_over()):
            self._parse_later(data)
            self._pause_if_queue_is_full()
            return
        self._limit_request_bytes()
        whole = None if len(data) <= PARSED_PER_TURN_BYTES else self.reader.feed_whole(data)
        if whole is None:
            self._parse(data)
        else:
            self._take(whole, len(data))

    def _answer_only(self, data: bytes) -> bool:
        """Answers the single command in `data`, if nothing before it waits. Returns False, without
        having done anything, if it is anything else, or has to wait for its turn. Most packets are
        like this, and can't reach any limit of a queue of commands."""
        session, turns = self.session, self._turns
        if session.batch is not None or turns.is_over():
            return False
        words = wire.read_single_command(data)
        if words is None:
            return False
        self.last_received = turns.now
        plan = plan_of(session, words)
        if type(plan) is Read and not plan.is_large and not self._reads_in_threads:
            plan = session.run(plan)
        if type(plan) is bytes:
            self._send_soon(plan)
        elif type(plan) is Write:
            self._waits = True
            self._received = len(data)
            self._add_to_group([plan], partial(self._answer_single, plan))
        else:
            self._is_clear = False
            self._received = len(data)
            self._planned = self._moved_to_thread(plan)
            self._continue()
        return True

    def _send_soon(self, reply: bytes) -> None:
        """Sends a small reply at the end of this turn, together with those of other clients: waking
        a sleeping client costs more than most requests, and this way most are still awake."""
        if self._delayed or len(reply) > MAX_DELAYED_REPLY_BYTES:
            self._write([reply])
        else:
            self._delayed = reply
            delayed = self._server.delayed
            if not delayed:
                self._server.send_soon()
            delayed.append(self)

    def send_delayed(self) -> None:
        """Sends the reply that was delayed to the end of the turn."""
        if reply := self._delayed:
            self._delayed = b""
            self._transport.write(reply)

    def _parse(self, data: bytes) -> None:
        """Parses what has arrived into commands; if it is large, in several turns."""
        most = max(PARSED_PER_TURN_BYTES, self.reader.awaited)
        commands = self.reader.feed(data[:most])
        if (len(data) > most or self.reader.has_stopped) and self.reader.error is None:
            self._parse_later(data[most:])  # after an error nothing can follow
        self._take(commands, min(len(data), most))

    def _parse_later(self, data: bytes) -> None:
        self._unparsed = data
        self._parses_later = True
        self._turns.put(self._parse_on, self.session.address)

    def _take(self, commands: list[wire.Command], size: int) -> None:
        """Answers the commands that have arrived, as far as it is their turn."""
        if commands:
            self._commands.extend(commands)
            self.command_began = 0.0
        self._received += size
        if not (self._waits or self._continues_later or self._stalled):
            if self._turns.is_over():
                self._continue_later()
            else:
                self._continue()
        self._pause_if_queue_is_full()
        if self._taken or self._received + self.session.held_bytes > SMALL_REQUESTS_BYTES:
            self._pause_if_memory_is_short()

    def _parse_on(self) -> None:
        if self._may_log_in():
            self._awaits_login = True
            return
        self._parses_later = False
        data, self._unparsed = self._unparsed, b""
        if not self._transport.is_closing():
            self._limit_request_bytes()  # the client may have logged in meanwhile
            self._parse(data)
        self._pause_if_queue_is_full()

    def eof_received(self) -> bool:
        """Answers what the client sent before it closed; waits are cancelled."""
        self._begin_to_close()
        unanswered = self.is_busy or bool(self._commands) or self._parses_later
        if unanswered and self._awaited is None:
            return True
        return self._turns.defer_close(self._transport.close)

    def pause_writing(self) -> None:
        self._stalled = True  # the client gets no further answers until it reads, or is dropped
        self._is_clear = False
        self._server.dispatcher.back_pressure.add(self)

    def resume_writing(self) -> None:
        self._stalled = False
        self._server.dispatcher.back_pressure.remove(self)
        if not self.is_busy:
            self._continue()

    def unsent_bytes(self) -> int:
        return self._transport.get_write_buffer_size()

    def drop(self) -> None:
        self._transport.abort()

    def finish(self) -> None:
        """Answers what has arrived, and closes."""
        self._begin_to_close()
        self._transport.pause_reading()
        if not self.is_busy and not self._commands and not self._parses_later:
            self._transport.close()

    # --- commands ---------------------------------------------------------------------------------

    @property
    def is_busy(self) -> bool:
        return self._waits or self._continues_later or self._stalled

    def _continue_later(self) -> None:
        self._continues_later = True
        self._turns.put(self._take_turn, self.session.address)

    def _take_turn(self) -> None:
        self._continues_later = False
        if not (self._transport.is_closing() or self.is_busy):
            self._continue()

    def _continue(self) -> None:
        """Answers commands until one has to wait, or until other connections get their turn."""
        session = self.session
        replies: list[bytes] = []
        size = 0
        for _ in range(COMMANDS_PER_TURN):
            plan = self._next_plan()
            if type(plan) is Read:
                plan = session.run(plan)
            if type(plan) is bytes:
                reply = plan
            elif type(plan) is Change:
                reply = session.change(plan)
            elif type(plan) is Steps:
                reply = self._step(plan)
            elif type(plan) is Write or type(plan) is Later:
                self._write(replies)  # not held back by a slow command
                self._begin(plan)
                return
            else:
                break
            replies.append(reply)
            size += len(reply)
            if session.quits or size > self._bounds.pause_unsent_bytes or self._turns.is_over():
                break
        self._write(replies)
        if session.quits:
            self._answer_and_close(b"")
        elif not self.is_busy:
            self._after_a_turn()

    def _write(self, replies: list[bytes]) -> None:
        if replies:
            if self._delayed:
                self.send_delayed()
            if (size := sum(map(len, replies))) <= LARGE_PIECE_BYTES:
                self._transport.write(b"".join(replies))
            else:
                for reply in replies:  # not copied; `writelines` never pauses in Python 3.12.1
                    self._transport.write(reply)
                self._turns.note_sent(size)

    def _after_a_turn(self) -> None:
        if self._commands or self._planned is not None:
            self._continue_later()
        elif self._parses_later:  # more data is about to be parsed
            if self._awaits_login:
                self._awaits_login = False
                self._turns.put(self._parse_on, self.session.address)
        elif self.reader.error is not None:
            self._answer_and_close(wire.closing_reply(self.reader.error))
        elif self._closing:
            self._transport.close()
        else:
            self._received = self.reader.held
            if self.reader.is_between_commands:
                self.command_began = 0.0
            elif not self.command_began:
                self.command_began = self.last_received
        self._pause_if_queue_is_full()
        if self._taken:
            self._pause_if_memory_is_short()
        self._is_clear = (
            self.reader.is_between_commands
            and not (self._planned is not None or self._taken or self._pauses or self._closing)
            and not (self._commands or self.is_busy or self._parses_later)
        )

    def _next_plan(self) -> Plan | None:
        if self._planned is not None:
            plan, self._planned = self._planned, None
            return plan
        if not self._commands:
            return None
        return self._moved_to_thread(plan_of(self.session, self._commands.popleft()))

    def _moved_to_thread(self, plan: Plan) -> Plan:
        if isinstance(plan, Read) and (plan.is_large or self._reads_in_threads):
            return self.session.read_later(plan)
        return plan

    def _step(self, steps: Steps) -> bytes:
        """Takes one step; the next ones follow, perhaps in another turn."""
        try:
            part = next(steps.parts)
        except StopIteration:
            return b""
        except Exception as error:
            return self.session.error(error)
        if part is None or type(part) is bytes:
            self._planned = steps
            return part or b""
        self._planned = self._moved_to_thread(part)
        return b""

    def _begin(self, plan: Write | Later) -> None:
        self._waits = True
        try:
            if isinstance(plan, Write):
                self._commit(plan)
            else:
                self._wait_for(plan)
        except HoldfastError as error:
            self._server.loop.call_soon(self._resume, [self.session.failure(plan, error)])

    def _commit(self, first: Write) -> None:
        """Passes the write, and those that directly follow it, to the next group."""
        if not self._commands:  # the usual case: most clients wait for each answer
            self._add_to_group([first], partial(self._answer_single, first))
            return
        writes = [first]
        while len(writes) < MAX_GROUP_TRANSACTIONS and (plan := self._next_plan()) is not None:
            if not isinstance(plan, Write):
                self._planned = plan  # it may read what these writes change, so it waits
                break
            writes.append(plan)
        self._add_to_group(
            writes, lambda outcomes: self._turns.run_steps(self._replies(writes, outcomes))
        )

    def _answer_single(self, write: Write, outcomes: list[Outcome[Any]]) -> None:
        reply = self.session.reply(write, outcomes[0])
        if self._is_clear and not (self._delayed or self._transport.is_closing()):
            self._waits = False  # and nothing has arrived since
            self._received = 0
            self._transport.write(reply)
            if len(reply) > LARGE_PIECE_BYTES:
                self._turns.note_sent(len(reply))
        else:
            self._resume([reply])

    def _replies(self, writes: list[Write], outcomes: list[Outcome[Any]]) -> Iterator[None]:
        """Replies to many writes, each of which may take time."""
        replies = []
        for write, outcome in zip(writes, outcomes, strict=True):
            replies.append(self.session.reply(write, outcome))
            yield
        self._resume(replies)

    def _add_to_group(self, writes: list[Write], answered: Answer) -> None:
        try:
            # A write is made even if its client did not wait for the answer.
            is_small = self._received + self.session.held_bytes <= MAX_SMALL_REQUEST_BYTES
            self._server.dispatcher.write_groups.put(writes, answered, is_small=is_small)
        except HoldfastError as error:
            refused = [self.session.failure(write, error) for write in writes]
            self._server.loop.call_soon(self._resume, refused)

    def _wait_for(self, later: Later) -> None:
        def answered(done: asyncio.Future[Any]) -> None:
            if not done.cancelled():
                self._turns.run_or_defer(lambda: answer(done), self.session.address)

        def answer(done: asyncio.Future[Any]) -> None:
            self._planned = self._moved_to_thread(self.session.result_of(later, done))
            self._resume([])

        begun = later.start()
        begun.add_done_callback(answered)
        self._awaited = None if later.is_decoding else begun

    def _resume(self, replies: list[bytes]) -> None:
        self._waits = False
        self._awaited = None
        if self._transport.is_closing():
            return
        self._write(replies)
        if self._is_clear:  # nothing has arrived since
            self._received = 0
        elif not self.is_busy:
            if self._commands or self._planned is not None:
                self._continue()
            else:
                self._after_a_turn()
        if self._taken:
            self._pause_if_memory_is_short()

    # --- limits -----------------------------------------------------------------------------------

    def _limit_request_bytes(self) -> None:
        no_login = self.reader.stops_early = self.session.identity is None
        self.reader.max_bytes = MAX_BYTES_BEFORE_LOGIN if no_login else self._bounds.request_bytes

    def _may_log_in(self) -> bool:
        """Returns whether a waiting command may log in; then what follows it may be larger."""
        return self.session.identity is None and (self._waits or bool(self._commands))

    def _pause_if_queue_is_full(self) -> None:
        """Stops reading while the client has as many commands in progress as it may."""
        full = (
            len(self._commands) > self._bounds.pipelined
            or (self._received > MAX_PIPELINED_BYTES and bool(self._commands))
            or self.reader.error is not None
            or self._parses_later
        )
        if full != self._pauses and not self._transport.is_closing() and not self._closing:
            self._pauses = full
            if full:
                self._transport.pause_reading()
            else:
                self._transport.resume_reading()

    def _pause_if_memory_is_short(self) -> None:
        """Counts large requests, and the commands of an open batch, towards the memory budget that
        all clients share."""
        if not self.is_busy:
            self.session.release_batch()
        held = self._received + self.session.held_bytes
        counts = held > SMALL_REQUESTS_BYTES and not self._transport.is_closing()
        wanted = held if counts else 0
        if wanted != self._taken:
            try:
                self._server.dispatcher.memory_budget.take(wanted - self._taken)
                self._taken = wanted
            except HoldfastError as error:
                self._answer_and_close(self.session.error(error))

    def _send(self, data: bytes) -> None:
        """Sends messages of subscriptions."""
        if self._transport.is_closing():
            return
        self.send_delayed()
        self._transport.write(data)
        self._turns.note_sent(len(data))
        if not self._stalled:
            return
        if self._transport.get_write_buffer_size() > self._bounds.unsent_bytes:
            self._transport.abort()
        else:
            self._server.dispatcher.back_pressure.note_written(self, len(data))

    def _answer_and_close(self, reply: bytes) -> None:
        self._begin_to_close()
        self._commands.clear()
        self._transport.write(reply)
        self._transport.close()

    def _begin_to_close(self) -> None:
        self._closing = True
        self._is_clear = False
        self.send_delayed()
