"""A space of a server for programs that `await`.

Made by `make client` from holdfast.client.client.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from holdfast.client.async_pool import AsyncPool
from holdfast.client.async_subscriptions import AsyncSubscription
from holdfast.client.batches import Batch, Pipeline
from holdfast.client.calls import Call
from holdfast.client.client import T, call_seconds

if TYPE_CHECKING:
    from holdfast.client.async_metrics import AsyncMetrics
    from holdfast.client.generated.admin import AwaitedAdmin
    from holdfast.client.generated.async_entities import AsyncEntities
    from holdfast.client.generated.async_events import AsyncEvents
    from holdfast.client.generated.async_jobs import AsyncJobs
    from holdfast.client.tables import AsyncTables
ELSEWHERE: Final = {
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

    def __repr__(self) -> str:
        return f"<holdfast.client.{type(self).__name__} {self._pool.target.place}/{self.name}>"

    if not TYPE_CHECKING:  # otherwise every attribute would type-check

        def __getattr__(self, name: str) -> Any:
            from holdfast.error_text import no_attribute

            raise no_attribute(self, name, ELSEWHERE)

    # --- layers: one attribute each, loaded when it is first used ---------------------------------

    @cached_property
    def admin(self) -> "AwaitedAdmin":
        from holdfast.client.generated.admin import AwaitedAdmin

        return AwaitedAdmin(self)

    @cached_property
    def entities(self) -> "AsyncEntities":
        from holdfast.client.generated.async_entities import AsyncEntities

        return AsyncEntities(self)

    @cached_property
    def events(self) -> "AsyncEvents":
        from holdfast.client.generated.async_events import AsyncEvents

        return AsyncEvents(self)

    @cached_property
    def jobs(self) -> "AsyncJobs":
        from holdfast.client.generated.async_jobs import AsyncJobs

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
        """Calls one operation and returns its result."""
        is_quick = call.kind in ("read", "write")
        timeout = self._timeout if is_quick else call_seconds(self._pool.target, call, values)
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

        All of them are applied, or none: the error that undid them names its `position`. If the
        block itself raises, nothing is sent. Each operation returns a handle, whose `result()` is
        available after the block.
        """
        recording = Batch()
        yield recording
        if not recording:
            return
        request = recording._request()
        try:
            replies = await self._exchange(
                request,
                self.name,
                timeout=self._timeout,
                only_reads=recording._only_reads,
                replies=len(recording) + 2,
            )
        except BaseException as error:
            recording._refuse(error)
            raise
        recording._settle(replies)

    @asynccontextmanager
    async def pipeline(self) -> AsyncIterator[Pipeline]:
        """Records operations, and sends them together when the block ends, each for itself.

        One wait for the network serves them all. A failed operation raises when its result is
        requested; nothing is sent twice.
        """
        recording = Pipeline()
        yield recording
        if recording:
            await self._pool.send_pipeline(recording, self.name, timeout=self._timeout)

    def subscribe(self, topic_prefix: str = "") -> AsyncSubscription:
        """Returns the notices of this space from now on; use it in `async with`."""
        return AsyncSubscription(self._pool, self.name, topic_prefix)
