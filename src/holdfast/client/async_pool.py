"""The connections of the async client. The rules for retries are those of `pool.py`.

Calls that are answered at once share one connection for each space and follow each other closely;
calls that wait or take long have a connection of their own.
"""

import asyncio
from typing import Any
from weakref import WeakValueDictionary

from holdfast.client.async_connection import AsyncConnection
from holdfast.client.batches import Pipeline
from holdfast.client.calls import INTERRUPTED, ConnectionBroken, is_busy, is_dropped_space
from holdfast.client.connection import timeout_reason
from holdfast.client.pool import PIPELINE_STEP, retry_pause
from holdfast.client.replies import ReplyError
from holdfast.client.urls import ServerTarget
from holdfast.errors import ServerBusy, StoreClosed, Unreachable


class AsyncPool:
    """The connections of one client. Lives on one event loop."""

    def __init__(self, target: ServerTarget) -> None:
        self.target = target
        self._tls = target.tls()
        self._shared: dict[str, AsyncConnection] = {}
        self._making: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._idle: dict[str, list[AsyncConnection]] = {}
        # Limits the calls that have a connection of their own.
        self._own_connections = asyncio.Semaphore(target.connections)
        self._in_use: set[AsyncConnection] = set()
        self._closed = False

    async def exchange(
        self,
        data: bytes,
        space: str,
        *,
        timeout: float,
        only_reads: bool,
        replies: int = 1,
        apart: bool = False,
    ) -> Any:
        """Sends commands at once and returns the reply, or the replies.

        `timeout` covers everything, retries included; `only_reads` means that it may be sent again,
        `apart` that others should not have to wait for it.
        """
        end = asyncio.get_running_loop().time() + timeout
        tries = 0
        while True:
            tries += 1
            try:
                if apart:
                    reply = await self._ask_on_own_connection(data, space, replies, end)
                else:
                    connection = self._shared.get(space)
                    if connection is None or not connection.is_open:
                        connection = await self.shared(space, end)
                    reply = await connection.ask(data, replies, self._left(timeout, tries, end))
            except Unreachable:
                if not await self._may_retry(tries, end):
                    raise
                continue
            except ConnectionBroken as broken:
                is_safe = only_reads or not broken.was_sent
                if broken.is_late or not is_safe or not await self._may_retry(tries, end):
                    raise broken.error(only_reads=only_reads) from None
                continue
            last = reply if replies == 1 else reply[-1]
            if type(last) is ReplyError:
                if is_dropped_space(last):
                    self.forget(space)
                elif is_busy(last) and await self._may_retry(tries, end):
                    continue
            return reply

    async def shared(self, space: str, end: float) -> AsyncConnection:
        """Returns the connection of a space that all calls share, except those that wait."""
        connection = self._shared.get(space)
        if connection is None or not connection.is_open:
            connection = await self._connect_shared(space, end)
        return connection

    def _left(self, timeout: float, tries: int, end: float) -> float:
        return timeout if tries == 1 else max(0.001, end - asyncio.get_running_loop().time())

    async def _may_retry(self, tries: int, end: float) -> bool:
        pause = retry_pause(tries)
        now = asyncio.get_running_loop().time()
        if tries > self.target.retries or now + pause >= end:
            return False
        await asyncio.sleep(pause)
        return True

    async def send_pipeline(
        self, recording: Pipeline, space: str, *, timeout: float, before: bytes = b""
    ) -> None:
        """Sends what was recorded, step by step, and settles every handle.

        `before` is a command that is sent before each of them; its replies are dropped.
        """
        commands = recording._take_commands()
        loop = asyncio.get_running_loop()
        end = loop.time() + timeout
        connection = await self.shared(space, end)
        for begin in range(0, len(commands), PIPELINE_STEP):
            # Sent within one turn of the loop, they share packets.
            left = max(0.001, end - loop.time())
            step = commands[begin : begin + PIPELINE_STEP]
            each = 2 if before else 1  # replies
            answers = [connection.ask(before + command, each, left) for command in step]
            try:
                replies = await asyncio.gather(*answers, return_exceptions=True)
            except BaseException:
                recording._refuse_rest(begin, begin + len(step), INTERRUPTED)
                raise
            if before:
                replies = [reply[1] if isinstance(reply, list) else reply for reply in replies]
            for position, reply in enumerate(replies, begin):
                recording._settle_one(position, reply)
            if any(map(is_dropped_space, replies)):
                self.forget(space)

    # --- connections -----------------------------------------------------------------------------

    async def _connect_shared(self, space: str, end: float) -> AsyncConnection:
        try:
            async with asyncio.timeout_at(end), self._making.setdefault(space, asyncio.Lock()):
                connection = self._shared.get(space)
                if connection is None or not connection.is_open:
                    connection = await self.open(space)
                    self._shared.pop(space, None)  # so that the newest is the last
                    self._shared[space] = connection
                    self._close_unused_shared()
        except TimeoutError:
            raise Unreachable(timeout_reason(self.target)) from None
        return connection

    def _close_unused_shared(self) -> None:
        """Closes connections of spaces that are not in use at the moment, the oldest first, while
        there are too many. The newest, whose caller has not used it yet, is kept."""
        surplus = len(self._shared) - self.target.connections
        for space, connection in list(self._shared.items())[:-1]:
            if surplus > 0 and not connection.is_in_use:
                del self._shared[space]
                connection.close()
                surplus -= 1

    async def open(self, space: str) -> AsyncConnection:
        """Returns a new connection in that space."""
        if self._closed:
            hint = "Connect again with `holdfast.aio.connect`."
            raise StoreClosed("the client was closed", hint=hint)
        try:
            async with asyncio.timeout(self.target.connect_timeout):
                return await self._open(space)
        except TimeoutError:
            raise Unreachable(timeout_reason(self.target)) from None

    async def _open(self, space: str) -> AsyncConnection:
        connection = await AsyncConnection.open(self.target, self._tls)
        try:
            if connection.space != space:
                await connection.enter(space)
        except ConnectionBroken as broken:
            raise Unreachable(broken.reason) from None
        except BaseException:
            connection.close()
            raise
        return connection

    async def _ask_on_own_connection(
        self, data: bytes, space: str, replies: int, end: float
    ) -> Any:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout_at(end):
                await self._own_connections.acquire()
        except TimeoutError:
            raise ServerBusy(
                f"all {self.target.connections} connections of this client are in use",
                hint="Allow it more with `connections`, or more time with `timeout`.",
            ) from None
        try:
            connection = self._idle_in(space) or await self._open_own_connection(space, end)
            self._in_use.add(connection)
            try:
                reply = await connection.ask(data, replies, end - loop.time())
            except BaseException:
                # Its reply may still arrive; and a cancelled wait must not pop a job.
                connection.close()
                raise
            finally:
                self._in_use.discard(connection)
            self._keep_idle(space, connection)
            return reply
        finally:
            self._own_connections.release()

    async def _open_own_connection(self, space: str, end: float) -> AsyncConnection:
        try:
            async with asyncio.timeout_at(end):
                return await self.open(space)
        except TimeoutError:
            raise Unreachable(timeout_reason(self.target)) from None

    def _idle_in(self, space: str) -> AsyncConnection | None:
        idle = self._idle.pop(space, [])
        while idle:
            connection = idle.pop()
            if idle:
                self._idle[space] = idle
            if connection.is_open:
                return connection
        return None

    def _keep_idle(self, space: str, connection: AsyncConnection) -> None:
        """Keeps a connection for the next call; closes the oldest ones if there are too many."""
        self._idle.setdefault(space, []).append(connection)
        surplus = sum(map(len, self._idle.values())) + len(self._in_use) - self.target.connections
        if self._closed:
            self._close_all()
        elif surplus > 0 and (oldest := self._idle_in(next(iter(self._idle)))):
            oldest.close()

    def forget(self, space: str) -> None:
        """Forgets a dropped space: a new one of the same name is a different space."""
        shared = self._shared.pop(space, None)
        for connection in [*self._idle.pop(space, []), *([shared] if shared else [])]:
            connection.close()

    def close(self) -> None:
        """Closes all connections; waiting calls get no answer."""
        self._closed = True
        self._close_all()

    def _close_all(self) -> None:
        idle = [each for some in self._idle.values() for each in some]
        for connection in [*self._shared.values(), *idle, *self._in_use]:
            connection.close()
        self._shared.clear()
        self._idle.clear()
