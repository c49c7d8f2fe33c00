"""Notices of commits, for programs that `await`."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, Self

from holdfast import wire
from holdfast.client import calls
from holdfast.client.calls import ConnectionBroken
from holdfast.client.pool import retry_pause
from holdfast.engine.contract import Notice
from holdfast.errors import BadInput, NoAnswer, Unreachable
from holdfast.events.layout import CHANGED
from holdfast.limits import MAX_QUEUED_NOTICES

if TYPE_CHECKING:
    from holdfast.client.async_connection import AsyncConnection
    from holdfast.client.async_pool import AsyncPool


class AsyncSubscription:
    """The notices of one space whose topics have a common prefix, on a connection of its own.

    It listens from `async with` on. When the connection breaks, it connects again, and `missed`
    grows by one. Notices in between are lost, so read again what you follow.
    """

    def __init__(self, pool: "AsyncPool", space: str, topic_prefix: str) -> None:
        calls.require_text(topic_prefix, "a topic")
        self._pool = pool
        self._space = space
        self._topic = topic_prefix
        self._queue: deque[Notice] = deque()
        self._arrived = asyncio.Event()
        self._missed = 0
        self._is_broken = False  # the connection broke: connect again
        self._pongs = 0
        self._polls = False  # `poll` wants everything, however much it is
        self._connection: AsyncConnection | None = None
        self._closed = False
        self._turn = asyncio.Lock()  # one task connects, others wait for it

    @property
    def missed(self) -> int:
        """Returns how often the connection broke; each time, notices may have been missed."""
        return self._missed

    async def get(self, timeout: float | None = None) -> Notice | None:
        """Returns the next notice, or None after `timeout` seconds (None waits for ever) or when
        closed."""
        try:
            async with asyncio.timeout(timeout):
                while not self._queue and not self._closed:
                    self._arrived.clear()  # before checking, so that nothing is missed
                    await self._listening()
                    await self._arrived.wait()
        except TimeoutError:
            return None
        notice = self._queue.popleft() if self._queue else None
        self._pause_if_queue_is_full()
        return notice

    async def poll(self) -> list[Notice]:
        """Returns all notices of finished commits that were not returned yet."""
        connection = await self._listening()
        connection.set_reading(True)
        pongs, self._polls = self._pongs, True
        connection.send_only(calls.PING)
        try:
            async with asyncio.timeout(self._pool.target.timeout):
                while self._pongs == pongs and connection.is_open:
                    self._arrived.clear()
                    await self._arrived.wait()
        except TimeoutError:
            connection.close()
            raise NoAnswer(f"{self._pool.target.place} did not answer in time") from None
        finally:
            self._polls = False
        notices = list(self._queue)
        self._queue.clear()
        return notices

    async def close(self) -> None:
        """Ends the subscription. A waiting `get` returns None."""
        self._closed = True
        if self._connection is not None:
            self._connection.close()
        self._arrived.set()

    async def __aenter__(self) -> Self:
        self._connection = await self._connect()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    async def __aiter__(self) -> AsyncIterator[Notice]:
        while (notice := await self.get()) is not None:
            yield notice

    # --- the connection --------------------------------------------------------------------------

    def _on_reply(self, reply: Any) -> None:
        if type(reply) is list and reply[:1] == [b"notice"]:
            self._queue.append(Notice(wire.text_of(reply[1]), reply[2]))
            self._pause_if_queue_is_full()
        elif type(reply) is list:
            self._pongs += 1
        self._arrived.set()

    def _pause_if_queue_is_full(self) -> None:
        """Stops reading while too much is queued, so that the server notices a slow subscriber."""
        if self._connection is not None and not self._polls:
            self._connection.set_reading(len(self._queue) < MAX_QUEUED_NOTICES)

    async def _listening(self) -> "AsyncConnection":
        """Returns the connection, a new one if the last has broken."""
        if self._connection is None:
            raise BadInput(
                "the subscription is not open yet", hint="Begin with `async with ... as notices`."
            )
        if not self._connection.is_open:
            async with self._turn:
                if not self._connection.is_open and not self._closed:
                    await self._connect_again()
        return self._connection

    async def _connect_again(self) -> None:
        self._missed += not self._is_broken
        self._is_broken = True
        for tries in range(1, self._pool.target.retries + 2):
            try:
                connection = await self._connect()
            except Unreachable:
                if tries > self._pool.target.retries:
                    raise
                await asyncio.sleep(retry_pause(tries))
            else:
                self._connection, self._is_broken = connection, False
                if self._closed:
                    connection.close()
                break

    async def _connect(self) -> "AsyncConnection":
        connection = await self._pool.open(self._space)
        # Before the reply: a notice can arrive together with it.
        connection.listen(self._on_reply)
        command = calls.words("NOTICES", wire.bytes_of(self._topic))
        try:
            reply = await connection.ask(command, 1, self._pool.target.connect_timeout)
            if type(reply) is not list:
                raise calls.failure(reply)
        except ConnectionBroken as broken:
            raise Unreachable(broken.reason) from None
        except BaseException:
            connection.close()
            raise
        return connection


class AsyncKeySubscription:
    """The keys of events that commits have changed, in commit order."""

    def __init__(self, notices: AsyncSubscription, key: str | None) -> None:
        self._notices = notices
        self._key = key

    async def get(self, timeout: float | None = None) -> str | None:
        """Returns the next changed key, or None after `timeout` seconds of silence or when
        closed."""
        while (notice := await self._notices.get(timeout)) is not None:
            changed = notice.topic.removeprefix(CHANGED)
            if self._key in (None, changed):
                return changed
        return None

    async def poll(self) -> list[str]:
        """Returns all keys changed by finished commits that were not returned yet."""
        changed = [notice.topic.removeprefix(CHANGED) for notice in await self._notices.poll()]
        return [key for key in changed if self._key in (None, key)]

    async def __aenter__(self) -> Self:
        await self._notices.__aenter__()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._notices.close()
