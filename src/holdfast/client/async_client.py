"""The async client: the calls of `Client`, each a coroutine."""

import asyncio
from collections.abc import AsyncIterator, Generator
from contextlib import asynccontextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

from holdfast.client import calls
from holdfast.client.async_pool import AsyncPool
from holdfast.client.async_subscriptions import AsyncSubscription
from holdfast.client.batches import Batch, Pipeline
from holdfast.client.calls import Call
from holdfast.client.client import PIPELINE_STEP, patience
from holdfast.client.urls import Target

if TYPE_CHECKING:
    from holdfast.client.async_metrics import AsyncMetrics
    from holdfast.client.entities import AsyncEntities
    from holdfast.client.events import AsyncEvents
    from holdfast.client.generated.admin import AwaitedAdmin
    from holdfast.client.jobs import AsyncJobs
    from holdfast.client.tables import AsyncTables

T = TypeVar("T")


# What a store has and a client has otherwise.
_ELSEWHERE: Final = {
    **dict.fromkeys(
        ("transact", "transaction", "view"),
        "Your function can't run where the store is: record operations with "
        "`async with client.batch() as batch:`, which is one transaction.",
    ),
    "backup": "A server makes backups by `client.admin.backup(name)`, or `holdfast backup`.",
    "spaces": "`client.admin.spaces()` lists them, `client.space(name)` is one of them.",
}


class AsyncSpace:
    """An isolated set of everything, and the unit of atomicity: a batch stays within one."""

    def __init__(self, pool: AsyncPool, name: str) -> None:
        self.name = name
        self._pool = pool
        self._exchange = pool.exchange
        self._timeout = pool.target.timeout

    if not TYPE_CHECKING:  # or every name would be one

        def __getattr__(self, name: str) -> Any:
            from holdfast.error_text import no_attribute

            raise no_attribute(self, name, _ELSEWHERE)

    # --- layers: one attribute each, loaded when it is first used ---------------------------------

    @cached_property
    def admin(self) -> "AwaitedAdmin":
        from holdfast.client.generated.admin import AwaitedAdmin

        return AwaitedAdmin(self)

    @cached_property
    def entities(self) -> "AsyncEntities":
        from holdfast.client.entities import AsyncEntities

        return AsyncEntities(self)

    @cached_property
    def events(self) -> "AsyncEvents":
        from holdfast.client.events import AsyncEvents

        return AsyncEvents(self)

    @cached_property
    def jobs(self) -> "AsyncJobs":
        from holdfast.client.jobs import AsyncJobs

        return AsyncJobs(self)

    @cached_property
    def metrics(self) -> "AsyncMetrics":
        from holdfast.client.async_metrics import AsyncMetrics

        return AsyncMetrics(self)

    @cached_property
    def tables(self) -> "AsyncTables":
        from holdfast.client.tables import AsyncTables

        return AsyncTables(self)

    # --- calls ------------------------------------------------------------------------------------

    async def call(self, call: Call[T], *values: Any) -> T:
        """Calls one operation and returns its result.

        Calls that are made at the same time follow each other on one connection, closely.
        """
        is_quick = call.kind in ("read", "write")
        timeout = self._timeout if is_quick else patience(self._pool.target, call, values)
        reply = await self._exchange(
            call.command(values),
            self.name,
            timeout=timeout,
            only_reads=call.only_reads,
            apart=not is_quick,
        )
        return call.result(reply)

    @asynccontextmanager
    async def batch(self) -> AsyncIterator[Batch]:
        """Records operations, and sends them as one transaction when the block ends.

        All of them are done, or none: the error that undid them says at which `position`. If the
        block itself raises, nothing is sent. Each operation returns a handle, without `await`,
        whose `result()` is there behind the block.
        """
        recording = Batch()
        yield recording
        if not recording:
            return
        replies = await self._exchange(
            recording._request(),
            self.name,
            timeout=self._timeout,
            only_reads=recording._only_reads,
            replies=len(recording) + 2,
        )
        recording._settle(replies)

    @asynccontextmanager
    async def pipeline(self) -> AsyncIterator[Pipeline]:
        """Records operations, and sends them together when the block ends, each for itself.

        One wait for the network serves them all. An operation that failed raises when its result
        is asked for; nothing is sent twice.
        """
        recording = Pipeline()
        yield recording
        if recording:
            await self._send_pipeline(recording)

    async def _send_pipeline(self, recording: Pipeline) -> None:
        commands = recording._taken()
        loop = asyncio.get_running_loop()
        end = loop.time() + self._timeout
        connection = await self._pool.shared(self.name, end)
        for begin in range(0, len(commands), PIPELINE_STEP):
            # Asked within one turn of the loop, they travel in one packet.
            left = max(0.001, end - loop.time())
            step = commands[begin : begin + PIPELINE_STEP]
            answers = [connection.ask(command, 1, left) for command in step]
            replies = await asyncio.gather(*answers, return_exceptions=True)
            for position, reply in enumerate(replies, begin):
                recording._settle_one(position, reply)
            if any(map(calls.is_dropped_space, replies)):
                self._pool.forget(self.name)

    def subscribe(self, topic_prefix: str = "") -> AsyncSubscription:
        """The notices of this space from now on: `async with client.subscribe() as notices`."""
        return AsyncSubscription(self._pool, self.name, topic_prefix)


class AsyncClient(AsyncSpace):
    """A connection to a server: the space of its URL, and the way to all others.

    `await` it, or enter it with `async with`, and it is connected.
    """

    def __init__(self, target: Target) -> None:
        super().__init__(AsyncPool(target), target.space)

    def space(self, name: str) -> AsyncSpace:
        """The space of that name, created if there is none when it is first used."""
        calls.refuse_no_text(name, "the name of a space")
        return AsyncSpace(self._pool, name)

    async def ping(self) -> None:
        """Returns if the server answers."""
        reply = await self._exchange(calls.PING, self.name, timeout=self._timeout, only_reads=True)
        if reply != b"PONG":
            raise calls.failure(reply)

    async def close(self) -> None:
        """Closes all connections. A second call does nothing."""
        self._pool.close()

    async def _connected(self) -> Self:
        try:
            await self.ping()
        except BaseException:
            self._pool.close()
            raise
        return self

    def __await__(self) -> Generator[Any, None, Self]:
        return self._connected().__await__()

    async def __aenter__(self) -> Self:
        return await self._connected()

    async def __aexit__(self, *exc: object) -> None:
        await self.close()
