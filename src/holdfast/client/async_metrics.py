"""Metrics of a server for programs that `await`: writers, readers and limiters."""

import asyncio
import functools
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, ParamSpec, Self, TypeVar, cast

from holdfast.client.generated.async_limiter import AsyncSleep, AwaitedLimiter
from holdfast.client.generated.async_rates import AsyncPromiseReads
from holdfast.client.generated.metrics import AwaitedMetrics
from holdfast.client.metrics import ClientReader, Promise, ScopedMetrics, plan_arguments
from holdfast.errors import OutcomeUnknown
from holdfast.metrics.conditions import BUCKET_COUNT, Algorithm, Conditions, LimiterPlan, make_plan
from holdfast.metrics.entity import EntityLike, Prefix
from holdfast.metrics.records import BatchResult, Deleted, Number, Written
from holdfast.metrics.registry import OnConflict
from holdfast.metrics.scope import NAMESPACE, PREFIX
from holdfast.metrics.specs import Specs
from holdfast.metrics.totals import Future, TimeRange
from holdfast.metrics.writer import Writer

P = ParamSpec("P")
R = TypeVar("R")


class AsyncMetrics(ScopedMetrics, AwaitedMetrics):
    """Counters in time sequences, gauges, distributions, and rate limits."""

    def _clock(self) -> float:
        """Returns the clock of writers, readers and limiters."""
        return time.time()

    async def writer(
        self,
        specs: Specs,
        prefix: Prefix = PREFIX,
        *,
        namespace: str = NAMESPACE,
        on_conflict: OnConflict = "refuse",
    ) -> "AsyncWriter":
        """Returns a writer that buffers in memory; every flush is one transaction."""
        outbox = _Outbox()
        writer = Writer(
            outbox,
            await self.define(specs, on_conflict, prefix=prefix),
            **self._scope.arguments(prefix, namespace),
            clock=self._clock,
        )
        return AsyncWriter(self, writer, outbox)

    async def reader(
        self,
        specs: Specs,
        prefix: Prefix = PREFIX,
        *,
        namespace: str = NAMESPACE,
        future: Future = "clamp",
        on_conflict: OnConflict = "refuse",
    ) -> "AsyncReader":
        """Returns a reader; what is requested together is fetched in one call."""
        metrics = await self.define(specs, on_conflict, prefix=prefix)
        named = self._scope.arguments(prefix, namespace)
        inner = ClientReader(_refuse_fetch, metrics, **named, future=future, clock=self._clock)
        return AsyncReader(self, inner, named)

    def limiter(
        self,
        conditions: Conditions,
        prefix: Prefix = PREFIX,
        *,
        namespace: str = NAMESPACE,
        bucket_count: int = BUCKET_COUNT,
        algorithm: Algorithm = "estimate",
        on_conflict: OnConflict = "refuse",
        sleep: AsyncSleep = asyncio.sleep,
    ) -> "AsyncLimiter":
        """Returns a limiter; each call is one transaction. `sleep` is how `acquire` waits.

        With `on_conflict="discard"` its first call deletes, before anything else, what other
        windows or other numbers of buckets have counted under these names.
        """
        return AsyncLimiter(
            _ServerBackend(self, on_conflict),
            make_plan(conditions, bucket_count, algorithm),
            **self._scope.arguments(prefix, namespace),
            clock=self._clock,
            sleep=sleep,
        )


# --- writing -------------------------------------------------------------------------------------


class _Outbox:
    """Holds the writes of each flush until they are sent."""

    def __init__(self) -> None:
        self.flushes: deque[list[Any]] = deque()

    def write(self, writes: list[Any], *, prefix: Any, namespace: str) -> Written:
        self.flushes.append(writes)
        return Written(written=len(writes))

    def reset(
        self, entities: list[Any], metrics: list[str] | None, *, prefix: Any, namespace: str
    ) -> Deleted:
        raise NotImplementedError  # `AsyncWriter.reset_all` does it


class AsyncWriter:
    """Buffers writes until `await flush()`, which stores all of them in one transaction.

    It flushes when its `async with` block ends, even after an exception, and by itself when it
    holds `MAX_WRITER_KEYS` keys. If a flush gets no answer, it raises `OutcomeUnknown` and drops
    what was sent, so that nothing is counted twice. If a flush is cancelled, what it has begun to
    send is sent all the same, and the next flush waits for it.
    """

    def __init__(self, metrics: AsyncMetrics, writer: Writer, outbox: _Outbox) -> None:
        self._metrics = metrics
        self._writer = writer
        self._outbox = outbox
        self._sending: asyncio.Task[None] | None = None  # it sends one flush
        self._lost: OutcomeUnknown | None = None  # why one was dropped; the next flush raises it

    def incr(self, metric: str, entity: EntityLike = None, value: Number = 1) -> None:
        """Adds `value` to a counter. The value of each call is rounded to the resolution."""
        self._writer.incr(metric, entity, value)
        self._send_flushed()

    def set(self, metric: str, entity: EntityLike = None, value: Number = 0) -> None:
        """Records a sample of a gauge."""
        self._writer.set(metric, entity, value)
        self._send_flushed()

    def add(self, metric: str, entity: EntityLike = None, delta: Number = 1) -> None:
        """Records a sample of a gauge that is `delta` above the last one at the time of the
        flush."""
        self._writer.add(metric, entity, delta)
        self._send_flushed()

    def record(
        self, metric: str, entity: EntityLike = None, value: Number = 0, count: int = 1
    ) -> None:
        """Records that a value of a distribution occurred `count` times."""
        self._writer.record(metric, entity, value, count)
        self._send_flushed()

    async def flush(self) -> None:
        """Stores the buffer in one transaction; if that fails, it stays buffered."""
        self._writer.flush()
        while self._sending is not None or self._outbox.flushes:
            # Shielded, because the writes of a cancelled call may have been stored.
            await asyncio.shield(self._sending or self._begin_sending())
        lost, self._lost = self._lost, None
        if lost is not None:
            raise lost

    def discard(self) -> None:
        """Empties the buffer."""
        self._writer.discard()
        self._outbox.flushes.clear()

    async def reset_all(self, entities: Iterable[EntityLike] = (None,)) -> None:
        """Empties the buffer and deletes all stored buckets of `entities`, in all metrics."""
        self.discard()
        if self._sending is not None:
            await asyncio.wait([self._sending])
            self.discard()  # it may have failed
        wanted = list(entities)
        if wanted:
            await self._metrics.reset(wanted, self._writer.names, **self._writer.where)

    def set_current_time(self, at: float) -> None:
        """Freezes the writer's clock."""
        self._writer.set_current_time(at)

    def reset_current_time(self) -> None:
        """Lets the writer's clock run again."""
        self._writer.reset_current_time()

    async def close(self) -> None:
        """Flushes. A closed writer can be used again."""
        await self.flush()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    def _send_flushed(self) -> None:
        if self._outbox.flushes and self._sending is None:
            self._begin_sending()

    def _begin_sending(self) -> asyncio.Task[None]:
        self._sending = asyncio.ensure_future(self._send())
        self._sending.add_done_callback(self._end_sending)
        return self._sending

    def _end_sending(self, sent: asyncio.Task[None]) -> None:
        self._sending = None
        # After an error the next flush tries again, and raises its own.
        if not sent.cancelled() and sent.exception() is None:
            self._send_flushed()

    async def _send(self) -> None:
        writes = self._outbox.flushes.popleft()
        try:
            await self._metrics.write(writes, **self._writer.where)
        except OutcomeUnknown as error:
            self._lost = error  # storing them twice would be worse than losing them
        except Exception:
            self._outbox.flushes.appendleft(writes)
            raise


# --- reading -------------------------------------------------------------------------------------


class AsyncRatePromise:
    """A total and its rates, fetched when one of them is first requested."""

    def __init__(self, reader: "AsyncReader", promise: Promise) -> None:
        self._reader = reader
        self._promise = promise

    async def total(self) -> Any:
        """Returns an integer if the resolution is an integer, otherwise a float."""
        return (await self._fetched()).total()

    async def per_second(self) -> float:
        return (await self._fetched()).per_second()

    async def per_minute(self) -> float:
        return (await self._fetched()).per_minute()

    async def per_hour(self) -> float:
        return (await self._fetched()).per_hour()

    async def per_day(self) -> float:
        return (await self._fetched()).per_day()

    async def exact(self) -> bool:
        """Returns whether no bucket with a value was counted partially."""
        return (await self._fetched()).exact

    @property
    def sequence(self) -> str:
        """The name of the sequence that serves the range."""
        return self._promise.sequence

    @property
    def buckets(self) -> tuple[int, int]:
        """The first and the last bucket of the range."""
        return self._promise.buckets

    async def _fetched(self) -> Promise:
        if self._promise.is_open:
            await self._reader.fetch()
        return self._promise


class AsyncReader(AsyncPromiseReads):
    """Reads rates as of one moment, which it takes at its first use; see `Reader`."""

    def __init__(self, metrics: AsyncMetrics, reader: ClientReader, where: dict[str, Any]) -> None:
        self._metrics = metrics
        self._reader = reader
        self._where = where
        self._turn = asyncio.Lock()  # one task fetches, others wait for what it gets

    def now(self) -> float:
        """Returns the time of all reads."""
        return self._reader.now()

    def set_current_time(self, at: float) -> None:
        """Makes all further reads use the time `at`."""
        self._reader.set_current_time(at)

    def reset_current_time(self) -> None:
        """Takes the time again at the next read."""
        self._reader.reset_current_time()

    def latest(self, seconds: float) -> TimeRange:
        """Returns the range of the last `seconds` until now."""
        return self._reader.latest(seconds)

    def time_range(self, start: float, end: float) -> TimeRange:
        return self._reader.time_range(start, end)

    def get_rate(self, metric: str, entity: EntityLike, asked: TimeRange) -> AsyncRatePromise:
        """Returns a promise of the rate over a range. Reads nothing yet."""
        return AsyncRatePromise(self, cast(Promise, self._reader.get_rate(metric, entity, asked)))

    def get_rates(
        self, metrics: Iterable[str], entity: EntityLike, asked: TimeRange
    ) -> dict[str, AsyncRatePromise]:
        """Like `get_rate`, for several metrics; returns the promises by name."""
        return {metric: self.get_rate(metric, entity, asked) for metric in metrics}

    async def fetch(self) -> None:
        """Reads everything that was requested and not fetched yet, in one call."""
        async with self._turn:
            for now, promises in self._reader.unfetched():
                queries: list[Any] = [promise.query for promise in promises]
                found = await self._metrics.rates(queries, **self._where, at=now)
                for promise, rate in zip(promises, found, strict=True):
                    promise.fill(rate)


def _refuse_fetch(*args: Any, **options: Any) -> Any:
    raise NotImplementedError  # `AsyncReader.fetch` does it


# --- limiting ------------------------------------------------------------------------------------


class AsyncLimiter(AwaitedLimiter):
    """Rate limits on entities; each call is one transaction."""

    def limit(
        self, condition: str, *, entity: Any = None, amount: int = 1
    ) -> Callable[[Callable[P, Awaitable[R]]], Callable[P, Awaitable[R]]]:
        """Decorates a coroutine function: if the limit is exceeded, it raises `LimitExceeded`."""

        def decorate(function: Callable[P, Awaitable[R]]) -> Callable[P, Awaitable[R]]:
            @functools.wraps(function)
            async def limited(*args: P.args, **kwargs: P.kwargs) -> R:
                found = entity(*args, **kwargs) if callable(entity) else entity
                await self.require(condition, found, amount)
                return await function(*args, **kwargs)

            return limited

        return decorate


class _ServerBackend:
    """Passes a limiter's operations to a server; the first call may discard old counts."""

    def __init__(self, metrics: AsyncMetrics, on_conflict: OnConflict) -> None:
        self._metrics = metrics
        self._on_conflict = on_conflict

    async def try_incr(
        self, operations: list[Any], conditions: Any, *, prefix: Any, namespace: str
    ) -> BatchResult:
        plan = await self._arguments_of(conditions, prefix)
        where = {"prefix": prefix, "namespace": namespace}
        return await self._metrics.try_incr(operations, *plan, **where)

    async def peek(
        self, operations: list[Any], conditions: Any, *, prefix: Any, namespace: str
    ) -> BatchResult:
        plan = await self._arguments_of(conditions, prefix)
        return await self._metrics.peek(operations, *plan, prefix=prefix, namespace=namespace)

    async def limit_incr(
        self, operations: list[Any], conditions: Any, *, prefix: Any, namespace: str
    ) -> None:
        plan = await self._arguments_of(conditions, prefix)
        await self._metrics.limit_incr(operations, *plan, prefix=prefix, namespace=namespace)

    async def _arguments_of(self, conditions: LimiterPlan, prefix: Any) -> tuple[Any, ...]:
        """Returns the plan as arguments, after conflicting counts were discarded."""
        plan = plan_arguments(conditions)
        if self._on_conflict != "refuse":
            await self._metrics.define_limits(*plan, self._on_conflict, prefix=prefix)
            self._on_conflict = "refuse"
        return plan
