"""Metrics of a server for programs that `await`: writers, readers and limiters."""

import asyncio
import functools
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, ParamSpec, Self, TypeVar, cast, overload

from holdfast.client.generated.metrics import AwaitedMetrics
from holdfast.client.metrics import ClientReader, Promise, ScopedMetrics, asked
from holdfast.errors import OutcomeUnknown
from holdfast.limits import ACQUIRE_SECONDS
from holdfast.metrics.conditions import BUCKET_COUNT, Algorithm, Conditions, LimiterPlan, make_plan
from holdfast.metrics.entity import Components, EntityLike, Prefix
from holdfast.metrics.exceeded import exceeded
from holdfast.metrics.limiter import Batch, Limiter
from holdfast.metrics.records import (
    BatchResult,
    Deleted,
    LimitResult,
    NamedBatchResult,
    Number,
    Operation,
    Written,
)
from holdfast.metrics.registry import OnConflict
from holdfast.metrics.scope import NAMESPACE, PREFIX
from holdfast.metrics.specs import Specs
from holdfast.metrics.totals import Future, TimeRange
from holdfast.metrics.writer import Writer

P = ParamSpec("P")
R = TypeVar("R")
K = TypeVar("K")


class AsyncMetrics(ScopedMetrics, AwaitedMetrics):
    """Counters in time sequences, gauges, distributions, and rate limits."""

    async def writer(
        self,
        specs: Specs,
        prefix: Prefix = PREFIX,
        *,
        namespace: str = NAMESPACE,
        on_conflict: OnConflict = "refuse",
    ) -> "AsyncWriter":
        """A writer that buffers in memory; every flush is one transaction."""
        outbox = _Outbox()
        writer = Writer(
            outbox,
            await self.define(specs, on_conflict, prefix=prefix),
            **self._scope.arguments(prefix, namespace),
            clock=time.time,
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
        """A reader; what is asked for together is fetched in one call."""
        metrics = await self.define(specs, on_conflict, prefix=prefix)
        named = self._scope.arguments(prefix, namespace)
        inner = ClientReader(_not_here, metrics, **named, future=future)
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
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> "AsyncLimiter":
        """A limiter, each call of which is one transaction. `sleep` is how `acquire` waits.

        With `on_conflict="discard"` its first call deletes, before anything else, what other
        windows or other numbers of buckets have counted under these names.
        """
        plan = make_plan(conditions, bucket_count, algorithm)
        where = self._scope.arguments(prefix, namespace)
        return AsyncLimiter(self, plan, where, sleep, on_conflict)


# --- writing -------------------------------------------------------------------------------------


class _Outbox:
    """The writes that a writer has flushed and that are still to be sent."""

    def __init__(self) -> None:
        self.writes: list[Any] = []

    def write(self, writes: list[Any], *, prefix: Any, namespace: str) -> Written:
        self.writes += writes
        return Written(written=len(writes))

    def reset(
        self, entities: list[Any], metrics: list[str] | None, *, prefix: Any, namespace: str
    ) -> Deleted:
        raise NotImplementedError  # `AsyncWriter.reset_all` does it


class AsyncWriter:
    """Buffers writes until `await flush()`, which stores all of them in one transaction.

    It flushes when its `async with` block ends, also by an exception, and by itself when it holds
    `MAX_WRITER_KEYS` keys. If no answer to a flush comes, `OutcomeUnknown` is raised and what was
    sent is not kept: nothing is counted twice.
    """

    def __init__(self, metrics: AsyncMetrics, writer: Writer, outbox: _Outbox) -> None:
        self._metrics = metrics
        self._writer = writer
        self._outbox = outbox
        self._flushing: asyncio.Task[None] | None = None

    def incr(self, metric: str, entity: EntityLike = None, value: Number = 1) -> None:
        """Counts `value`. Each call is rounded to the resolution by itself."""
        self._writer.incr(metric, entity, value)
        self._send_if_full()

    def set(self, metric: str, entity: EntityLike = None, value: Number = 0) -> None:
        """Takes a sample of a gauge."""
        self._writer.set(metric, entity, value)
        self._send_if_full()

    def add(self, metric: str, entity: EntityLike = None, delta: Number = 1) -> None:
        """Takes a sample of a gauge that is `delta` above the last one when it is flushed."""
        self._writer.add(metric, entity, delta)
        self._send_if_full()

    def record(
        self, metric: str, entity: EntityLike = None, value: Number = 0, count: int = 1
    ) -> None:
        """Notes that a value of a distribution occurred `count` times."""
        self._writer.record(metric, entity, value, count)
        self._send_if_full()

    async def flush(self) -> None:
        """Stores all that is buffered in one transaction; if that fails, it stays buffered."""
        if self._flushing is not None:
            task, self._flushing = self._flushing, None
            await task
        self._writer.flush()
        await self._send()

    def discard(self) -> None:
        """Empties the buffer."""
        self._writer.discard()
        self._outbox.writes = []

    async def reset_all(self, entities: Iterable[EntityLike] = (None,)) -> None:
        """Empties the buffer and deletes all stored buckets of `entities`, in all metrics."""
        self.discard()
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

    def _send_if_full(self) -> None:
        if self._outbox.writes and self._flushing is None:
            self._flushing = asyncio.ensure_future(self._send())

    async def _send(self) -> None:
        writes, self._outbox.writes = self._outbox.writes, []
        if not writes:
            return
        try:
            await self._metrics.write(writes, **self._writer.where)
        except OutcomeUnknown:
            raise  # they may be stored: to store them twice would be worse than to lose them
        except BaseException:
            self._outbox.writes = writes + self._outbox.writes
            raise


# --- reading -------------------------------------------------------------------------------------


class AsyncRatePromise:
    """A total and its rates, fetched when one of them is first asked for."""

    def __init__(self, reader: "AsyncReader", promise: Promise) -> None:
        self._reader = reader
        self._promise = promise

    async def total(self) -> Any:
        """An integer if the resolution is one, else a float."""
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
        """Whether no bucket that holds something was counted in part."""
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


class AsyncReader:
    """Reads rates as of one moment, which it takes at its first use; see `Reader`."""

    def __init__(self, metrics: AsyncMetrics, reader: ClientReader, where: dict[str, Any]) -> None:
        self._metrics = metrics
        self._reader = reader
        self._where = where

    def now(self) -> float:
        """The time that all reads speak of."""
        return self._reader.now()

    def set_current_time(self, at: float) -> None:
        """Has all reads from now on speak of `at`."""
        self._reader.set_current_time(at)

    def reset_current_time(self) -> None:
        """Takes the time again at the next use."""
        self._reader.reset_current_time()

    def latest(self, seconds: float) -> TimeRange:
        """The last `seconds` until now."""
        return self._reader.latest(seconds)

    def time_range(self, start: float, end: float) -> TimeRange:
        return self._reader.time_range(start, end)

    def get_rate(self, metric: str, entity: EntityLike, asked: TimeRange) -> AsyncRatePromise:
        """A promise of the rate over a range. Reads nothing yet."""
        return AsyncRatePromise(self, cast(Promise, self._reader.get_rate(metric, entity, asked)))

    def get_rates(
        self, metrics: Iterable[str], entity: EntityLike, asked: TimeRange
    ) -> dict[str, AsyncRatePromise]:
        """Like `get_rate`, for several metrics; returns the promises by name."""
        return {metric: self.get_rate(metric, entity, asked) for metric in metrics}

    async def fetch(self) -> None:
        """Reads all that has been asked for and not found, in one call."""
        for now, promises in self._reader.wanted():
            queries: list[Any] = [promise.query for promise in promises]
            found = await self._metrics.rates(queries, **self._where, at=now)
            for promise, rate in zip(promises, found, strict=True):
                promise.fill(rate)

    @overload
    async def total(self, promises: Mapping[K, AsyncRatePromise]) -> dict[K, Number]: ...
    @overload
    async def total(self, promises: list[AsyncRatePromise]) -> list[Number]: ...
    async def total(self, promises: Any) -> Any:
        """The totals of a list or a map of promises, with its keys."""
        return await _resolved(promises, "total")

    @overload
    async def per_second(self, promises: Mapping[K, AsyncRatePromise]) -> dict[K, float]: ...
    @overload
    async def per_second(self, promises: list[AsyncRatePromise]) -> list[float]: ...
    async def per_second(self, promises: Any) -> Any:
        return await _resolved(promises, "per_second")

    @overload
    async def per_minute(self, promises: Mapping[K, AsyncRatePromise]) -> dict[K, float]: ...
    @overload
    async def per_minute(self, promises: list[AsyncRatePromise]) -> list[float]: ...
    async def per_minute(self, promises: Any) -> Any:
        return await _resolved(promises, "per_minute")

    @overload
    async def per_hour(self, promises: Mapping[K, AsyncRatePromise]) -> dict[K, float]: ...
    @overload
    async def per_hour(self, promises: list[AsyncRatePromise]) -> list[float]: ...
    async def per_hour(self, promises: Any) -> Any:
        return await _resolved(promises, "per_hour")

    @overload
    async def per_day(self, promises: Mapping[K, AsyncRatePromise]) -> dict[K, float]: ...
    @overload
    async def per_day(self, promises: list[AsyncRatePromise]) -> list[float]: ...
    async def per_day(self, promises: Any) -> Any:
        return await _resolved(promises, "per_day")


async def _resolved(promises: Any, name: str) -> Any:
    if isinstance(promises, Mapping):
        return {key: await getattr(promise, name)() for key, promise in promises.items()}
    return [await getattr(promise, name)() for promise in promises]


def _not_here(*args: Any, **options: Any) -> Any:
    raise NotImplementedError  # `AsyncReader.fetch` does it


# --- limiting ------------------------------------------------------------------------------------


class AsyncLimiter:
    """Rate limits on entities; each call is one transaction."""

    def __init__(
        self,
        metrics: AsyncMetrics,
        plan: LimiterPlan,
        where: dict[str, Any],
        sleep: Callable[[float], Awaitable[None]],
        on_conflict: OnConflict,
    ) -> None:
        self.plan = plan
        self._metrics = metrics
        self._asked = asked(plan)
        self._where = where
        self._sleep = sleep
        self._on_conflict = on_conflict

    async def try_incr(
        self, condition: str, entity: EntityLike = None, amount: int = 1
    ) -> LimitResult:
        """Counts `amount` if it is allowed. A denied attempt is not counted."""
        return (await self.try_all([_operation(condition, entity, amount)])).results[0]

    async def peek(self, condition: str, entity: EntityLike = None, amount: int = 1) -> LimitResult:
        """Returns what `try_incr` would return. `amount=0` asks whether the limit is passed."""
        return (await self.peek_all([_operation(condition, entity, amount)])).results[0]

    async def incr(self, condition: str, entity: EntityLike = None, amount: int = 1) -> None:
        """Counts `amount` without asking."""
        await self.incr_all([_operation(condition, entity, amount)])

    charge = incr

    async def require(
        self, condition: str, entity: EntityLike = None, amount: int = 1
    ) -> LimitResult:
        """`try_incr` that raises `LimitExceeded` when it is denied."""
        result = await self.try_incr(condition, entity, amount)
        if not result.allowed:
            raise exceeded(result, [result])
        return result

    def batch(self, default_amount: int = 1) -> "AsyncLimitBatch":
        """Operations that are allowed all together or not at all, with results by condition."""
        return AsyncLimitBatch(self, default_amount)

    async def try_all(self, operations: Iterable[Operation | dict[str, Any]]) -> BatchResult:
        """Counts all operations if all are allowed. Entities are used as they are."""
        await self._settle()
        return await self._metrics.try_incr(list(operations), *self._asked, **self._where)

    async def peek_all(self, operations: Iterable[Operation | dict[str, Any]]) -> BatchResult:
        await self._settle()
        return await self._metrics.peek(list(operations), *self._asked, **self._where)

    async def incr_all(self, operations: Iterable[Operation | dict[str, Any]]) -> None:
        await self._settle()
        await self._metrics.limit_incr(list(operations), *self._asked, **self._where)

    async def _settle(self) -> None:
        """Discards what contradicts the conditions, once, if that was asked for."""
        if self._on_conflict != "refuse":
            where = {"prefix": self._where["prefix"]}
            await self._metrics.define_limits(*self._asked, self._on_conflict, **where)
            self._on_conflict = "refuse"

    async def acquire(
        self,
        condition: str,
        entity: EntityLike = None,
        amount: int = 1,
        timeout: float = ACQUIRE_SECONDS,
    ) -> LimitResult:
        """Waits until `amount` is allowed, for at most `timeout` seconds.

        It returns the last denied result as soon as the next try would come too late.
        """
        deadline = time.time() + timeout
        while True:
            result = await self.try_incr(condition, entity, amount)
            wait = result.retry_after
            if result.allowed or wait is None or time.time() + wait > deadline:
                return result
            await self._sleep(wait)

    def limit(
        self, condition: str, *, entity: Any = None, amount: int = 1
    ) -> Callable[[Callable[P, Awaitable[R]]], Callable[P, Awaitable[R]]]:
        """Decorates a coroutine function: it runs if it is allowed, else `LimitExceeded`."""

        def decorate(function: Callable[P, Awaitable[R]]) -> Callable[P, Awaitable[R]]:
            @functools.wraps(function)
            async def limited(*args: P.args, **kwargs: P.kwargs) -> R:
                found = entity(*args, **kwargs) if callable(entity) else entity
                await self.require(condition, found, amount)
                return await function(*args, **kwargs)

            return limited

        return decorate


class AsyncLimitBatch:
    """Operations under different conditions, then `try_incr`, `peek` or `incr` for all of them."""

    def __init__(self, limiter: AsyncLimiter, default_amount: int) -> None:
        self._limiter = limiter
        unused = Limiter(_not_here, limiter.plan, prefix=(), namespace="", clock=time.time)  # type: ignore[arg-type]  # it collects, and decides nothing
        self._batch: Batch = unused.batch(default_amount)

    def local_op(
        self, condition: str, components: Components | int = (), amount: int | None = None
    ) -> Self:
        """Adds an operation on a local entity."""
        self._batch.local_op(condition, components, amount)
        return self

    def global_op(
        self, condition: str, components: Components | int = (), amount: int | None = None
    ) -> Self:
        """Adds an operation on a global entity."""
        self._batch.global_op(condition, components, amount)
        return self

    async def try_incr(self) -> NamedBatchResult:
        """Counts all operations if all are allowed, none otherwise."""
        return self._batch.by_name(await self._limiter.try_all(self._batch.operations))

    async def peek(self) -> NamedBatchResult:
        """Returns what `try_incr` would return."""
        return self._batch.by_name(await self._limiter.peek_all(self._batch.operations))

    async def incr(self) -> None:
        """Counts all operations without asking."""
        await self._limiter.incr_all(self._batch.operations)

    async def require(self) -> NamedBatchResult:
        """`try_incr` that raises `LimitExceeded` when it is denied."""
        result = await self.try_incr()
        if not result.allowed:
            raise exceeded(result, result.failed.values())
        return result


def _operation(condition: str, entity: Any, amount: int) -> Operation:
    return Operation(condition=condition, entity=entity, amount=amount)
