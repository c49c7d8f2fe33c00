"""One connection of the async client: many calls at once, answered in order."""

import asyncio
import select
import ssl
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast

from holdfast.client import calls
from holdfast.client.addresses import look_up
from holdfast.client.calls import ConnectionBroken
from holdfast.client.connection import (
    broken_reason,
    check_greeting,
    greeting,
    not_resp_reason,
    timeout_reason,
    unreachable,
)
from holdfast.client.replies import ProtocolError, ReplyReader
from holdfast.client.urls import ServerTarget
from holdfast.defaults import DEFAULT_SPACE
from holdfast.errors import Unreachable
from holdfast.keepalive import keep_alive


class _PendingCommands:
    """Commands that were sent together, and the waiter for their replies."""

    __slots__ = ("count", "deadline", "future", "replies")

    def __init__(self, future: asyncio.Future[Any], count: int, deadline: float) -> None:
        self.future = future
        self.count = count
        self.deadline = deadline
        self.replies: list[Any] = []


class AsyncConnection(asyncio.Protocol):
    """A connection to a server. Calls of one turn of the loop share a packet."""

    def __init__(self, target: ServerTarget) -> None:
        self._target = target
        self._loop = asyncio.get_running_loop()
        self._reader = ReplyReader()
        self._pending: deque[_PendingCommands] = deque()  # sent, and not answered yet
        # Sent at the end of this turn of the loop.
        self._unsent: list[tuple[bytes, _PendingCommands]] = []
        self._timer: asyncio.TimerHandle | None = None
        self._on_reply: Callable[[Any], None] | None = None
        self._is_late = False
        self._reason = ""  # why this side has closed it
        self._reads = True
        self._is_greeted = False  # before the greeting, TLS may send data that nobody asked for
        self._users = 0  # those who go on using it after their replies
        self.is_open = False
        self.space = DEFAULT_SPACE

    @property
    def is_in_use(self) -> bool:
        """Returns whether anyone waits for a reply, or goes on using it."""
        return bool(self._pending or self._unsent or self._users)

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Marks it as used while the block runs."""
        self._users += 1
        try:
            yield
        finally:
            self._users -= 1

    @classmethod
    async def open(cls, target: ServerTarget, tls: ssl.SSLContext | None) -> "AsyncConnection":
        """Returns a connection that is logged in; raises `Unreachable` if there is no server."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(target.connect_timeout):
                connection = await cls._connected(loop, target, tls)
        except (OSError, UnicodeError) as error:  # TimeoutError and ssl.SSLError are OSErrors
            raise unreachable(target, error) from None
        try:
            await connection._greet()
        except BaseException:
            connection.close()
            raise
        return connection

    @classmethod
    async def _connected(
        cls, loop: asyncio.AbstractEventLoop, target: ServerTarget, tls: ssl.SSLContext | None
    ) -> "AsyncConnection":
        """Tries the addresses of the host in order; the tries share the time."""
        end = loop.time() + target.connect_timeout
        # Not the loop's own look-up: a program could not end before its thread does.
        addresses = await asyncio.wrap_future(look_up(target.host, target.port))
        failure: OSError | None = None
        for position, (family, _, _, _, address) in enumerate(addresses):
            try:
                async with asyncio.timeout((end - loop.time()) / (len(addresses) - position)):
                    _, connection = await loop.create_connection(
                        lambda: cls(target),
                        address[0],
                        address[1],
                        family=family,
                        ssl=tls,
                        server_hostname=target.host if tls else None,
                    )
                    return connection
            except OSError as error:
                failure = error
        raise failure or OSError("the name has no address")

    async def _greet(self) -> None:
        commands = greeting(self._target)
        answers = [self.ask(each, 1, self._target.connect_timeout) for each in commands]
        replies = await asyncio.gather(*answers, return_exceptions=True)
        check_greeting([reply for reply in replies if not isinstance(reply, ConnectionBroken)])
        for reply in replies:
            if isinstance(reply, ConnectionBroken):
                raise Unreachable(reply.reason)
        self._is_greeted = True

    async def enter(self, space: str) -> None:
        """Runs all further commands in `space`."""
        reply = await self.ask(calls.words("SPACE", space), 1, self._target.connect_timeout)
        if reply != b"OK":
            raise calls.failure(reply)
        self.space = space

    def ask(self, data: bytes, count: int, timeout: float) -> asyncio.Future[Any]:
        """Sends commands; the future gets their replies: one as it is, several as a list.

        It gets `ConnectionBroken` if that happens or the time runs out before the last reply.
        """
        future: asyncio.Future[Any] = self._loop.create_future()
        if not self.is_open:
            future.set_exception(
                ConnectionBroken(broken_reason(self._target, None), was_sent=False)
            )
            return future
        asked = _PendingCommands(future, count, self._loop.time() + timeout)
        if not self._unsent:
            self._loop.call_soon(self._flush)
        self._unsent.append((data, asked))
        return future

    def listen(self, on_reply: Callable[[Any], None]) -> None:
        """Passes everything that answers no command from now on to a function."""
        self._on_reply = on_reply

    def set_reading(self, wanted: bool) -> None:
        """Resumes or pauses reading; while it is paused, the server has to wait."""
        if wanted == self._reads or not self.is_open:
            return
        self._reads = wanted
        if wanted:
            self._transport.resume_reading()
        else:
            self._transport.pause_reading()

    def send_only(self, data: bytes) -> None:
        """Sends a command whose reply arrives among other messages."""
        self._transport.write(data)

    def close(self) -> None:
        if self.is_open:
            self._transport.abort()

    def _flush(self) -> None:
        kept, self._unsent = self._unsent, []
        if self._is_greeted and not self._pending and self._watch.poll(0):
            # Data arrived unasked: the server has closed, and can't have seen these commands.
            _fail([asked for _, asked in kept], broken_reason(self._target, None), was_sent=False)
            self._transport.abort()
            return
        self._pending.extend([asked for _, asked in kept])
        if len(kept) == 1:
            self._transport.write(kept[0][0])
        else:
            self._transport.write(b"".join([data for data, _ in kept]))
        self._set_timer()

    def _set_timer(self) -> None:
        """Sets the one timer of all calls; it fires when the oldest is late, or earlier."""
        deadline = self._pending[0].deadline
        if self._timer is not None:
            if self._timer.when() <= deadline:
                return
            self._timer.cancel()
        self._timer = self._loop.call_at(deadline, self._check_deadline)

    def _check_deadline(self) -> None:
        """Checks the oldest command: replies keep their order, so it is the first to be late."""
        self._timer = None
        if not self._pending:
            return
        if self._pending[0].deadline <= self._loop.time():
            self._is_late = True
            self._transport.abort()
        else:
            self._set_timer()

    # --- asyncio's side ---------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        opened = transport.get_extra_info("socket")
        keep_alive(opened)
        self._watch = select.poll()
        self._watch.register(opened.fileno(), select.POLLIN)
        self.is_open = True

    def data_received(self, data: bytes) -> None:
        reader = self._reader
        try:
            reply = reader.take(data)
            while reply is not False:
                if self._on_reply is None or self._pending:
                    self._answer(reply)
                else:
                    self._on_reply(reply)
                reply = reader.gets()
        except ProtocolError as error:
            self._reason = not_resp_reason(self._target, error)
            self._transport.abort()

    def _answer(self, reply: Any) -> None:
        if not self._pending:
            self._transport.abort()  # a reply without a command: nothing after it can be trusted
            return
        asked = self._pending[0]
        if asked.count > 1:
            asked.replies.append(reply)
            if len(asked.replies) < asked.count:
                return
            reply = asked.replies
        self._pending.popleft()
        if not asked.future.done():  # its caller may have been cancelled
            asked.future.set_result(reply)

    def connection_lost(self, error: Exception | None) -> None:
        self.is_open = False
        if self._timer is not None:
            self._timer.cancel()
        asked, self._pending = list(self._pending), deque()
        if self._is_late and asked:
            _fail(asked[:1], timeout_reason(self._target), was_sent=True, is_late=True)
        reason = self._reason or broken_reason(self._target, error)
        _fail(asked, reason, was_sent=True)
        _fail([each for _, each in self._unsent], reason, was_sent=False)
        self._unsent = []
        if self._on_reply is not None:
            self._on_reply(None)


def _fail(
    asked: list[_PendingCommands], reason: str, *, was_sent: bool, is_late: bool = False
) -> None:
    for each in asked:
        if not each.future.done():
            each.future.set_exception(ConnectionBroken(reason, was_sent=was_sent, is_late=is_late))
