"""Metrics of a server: the operations, and client-side writers, readers and limiters.

A writer buffers in the client, and its flush is one `write`; a reader's fetch is one `rates`. Both
use this machine's clock.
"""

import time
from collections.abc import Callable
from copy import copy
from functools import partial
from typing import Any, Self, TypeVar

from holdfast.client.batches import Handle
from holdfast.client.calls import Call
from holdfast.client.generated.metrics import CalledMetrics, RecordedMetrics
from holdfast.errors import BadInput
from holdfast.metrics.conditions import (
    BUCKET_COUNT,
    WITH_BURST,
    Algorithm,
    Conditions,
    LimiterPlan,
    make_plan,
)
from holdfast.metrics.counters import total_of
from holdfast.metrics.entity import EntityLike, Prefix, as_entity
from holdfast.metrics.limiter import Limiter, Sleep
from holdfast.metrics.reader import RatePromise, Reader
from holdfast.metrics.records import BatchResult, LimitResult, Metric, Operation, Rate
from holdfast.metrics.registry import OnConflict
from holdfast.metrics.scope import NAMESPACE, PREFIX, UNSCOPED, MetricsScope
from holdfast.metrics.specs import Specs
from holdfast.metrics.totals import Future, TimeRange
from holdfast.metrics.writer import Writer

T = TypeVar("T")


class ScopedMetrics:
    """Metrics whose calls may have a prefix and a namespace bound, whatever a call returns."""

    _call: Any
    _scope = UNSCOPED

    def scoped(self, *, prefix: Prefix = PREFIX, namespace: str = NAMESPACE) -> Self:
        """Returns these metrics with a prefix, a namespace or both bound for every call.

        A prefix or namespace that is given to a call takes precedence. Writers, readers and
        limiters made from the result have its scope too. Sends nothing.
        """
        scoped = copy(self)
        scoped._scope = self._scope.narrowed(prefix, namespace)
        scoped._call = partial(_call_in_scope, scoped._scope, self._call)
        return scoped


def _call_in_scope(scope: MetricsScope, make_call: Any, call: Call[T], *values: Any) -> T:
    """Calls with the scope's prefix and namespace unless the caller names its own."""
    given = dict(zip(call.names, values, strict=True))
    prefix, namespace = given.get("prefix"), given.get("namespace", NAMESPACE)
    filled = scope.fill(PREFIX if prefix is None else prefix, namespace)
    for name, value in zip(("prefix", "namespace"), filled, strict=True):
        # A prefix of None means all prefixes, unless one is bound.
        if name in given and not (given[name] is None and value == PREFIX):
            given[name] = value
    result: T = make_call(call, *given.values())
    return result


class ClientMetrics(ScopedMetrics, CalledMetrics):
    """Counters in time sequences, gauges, distributions, and rate limits."""

    def writer(
        self,
        specs: Specs,
        prefix: Prefix = PREFIX,
        *,
        namespace: str = NAMESPACE,
        on_conflict: OnConflict = "refuse",
    ) -> Writer:
        """Returns a writer that buffers in memory; every flush is one transaction.

        If a flush gets no answer, it raises `OutcomeUnknown` and drops its content, so that nothing
        is counted twice.
        """
        return Writer(
            self,
            self.define(specs, on_conflict, prefix=prefix),
            **self._scope.arguments(prefix, namespace),
            clock=time.time,
        )

    def reader(
        self,
        specs: Specs,
        prefix: Prefix = PREFIX,
        *,
        namespace: str = NAMESPACE,
        future: Future = "clamp",
        on_conflict: OnConflict = "refuse",
    ) -> "ClientReader":
        """Returns a reader; what is requested together is fetched in one call."""
        return ClientReader(
            self.rates,
            self.define(specs, on_conflict, prefix=prefix),
            **self._scope.arguments(prefix, namespace),
            future=future,
        )

    def limiter(
        self,
        conditions: Conditions,
        prefix: Prefix = PREFIX,
        *,
        namespace: str = NAMESPACE,
        bucket_count: int = BUCKET_COUNT,
        algorithm: Algorithm = "estimate",
        on_conflict: OnConflict = "refuse",
        sleep: Sleep = time.sleep,
    ) -> Limiter:
        """Returns a limiter; each call is one transaction. `sleep` is how `acquire` waits.

        With `on_conflict="discard"` it begins with a call that deletes what other windows or other
        numbers of buckets have counted under these names; otherwise such conditions are refused
        when they are first used.
        """
        plan = make_plan(conditions, bucket_count, algorithm)
        if on_conflict != "refuse":
            self.define_limits(*plan_arguments(plan), on_conflict, prefix=prefix)
        return Limiter(
            _ServerBackend(self),
            plan,
            **self._scope.arguments(prefix, namespace),
            clock=time.time,
            sleep=sleep,
        )


class BatchMetrics(ScopedMetrics, RecordedMetrics):
    """Operations on metrics that are recorded to be sent together; also with a limiter."""

    def limiter(
        self,
        conditions: Conditions,
        prefix: Prefix = PREFIX,
        *,
        namespace: str = NAMESPACE,
        bucket_count: int = BUCKET_COUNT,
        algorithm: Algorithm = "estimate",
    ) -> "BatchLimiter":
        """Returns a limiter whose calls are part of the batch."""
        plan = make_plan(conditions, bucket_count, algorithm)
        return BatchLimiter(self, plan, self._scope.arguments(prefix, namespace))


class BatchLimiter:
    """Rate limits whose calls are recorded to be sent together, and return handles.

    With `require`, a limit that refuses undoes the whole batch.
    """

    def __init__(self, metrics: BatchMetrics, plan: LimiterPlan, where: dict[str, Any]) -> None:
        self.plan = plan
        self._metrics = metrics
        self._asked = plan_arguments(plan)
        self._where = where

    def require(
        self, condition: str, entity: EntityLike = None, amount: int = 1
    ) -> Handle[LimitResult]:
        """Counts `amount`; if it is not allowed, the batch raises `LimitExceeded`."""
        return self._one(self._metrics.require, condition, entity, amount)

    def try_incr(
        self, condition: str, entity: EntityLike = None, amount: int = 1
    ) -> Handle[LimitResult]:
        """Counts `amount` if it is allowed; the rest of the batch is applied either way."""
        return self._one(self._metrics.try_incr, condition, entity, amount)

    def peek(
        self, condition: str, entity: EntityLike = None, amount: int = 1
    ) -> Handle[LimitResult]:
        """Decides as `try_incr` would at this point of the batch, and counts nothing."""
        return self._one(self._metrics.peek, condition, entity, amount)

    def incr(self, condition: str, entity: EntityLike = None, amount: int = 1) -> Handle[None]:
        """Counts `amount` without checking the limit."""
        operation = Operation(condition=condition, entity=entity, amount=amount)
        return self._metrics.limit_incr([operation], *self._asked, **self._where)

    charge = incr

    def _one(
        self,
        decide: Callable[..., Handle[BatchResult]],
        condition: str,
        entity: EntityLike,
        amount: int,
    ) -> Handle[LimitResult]:
        self.plan.find(condition)
        operation = Operation(condition=condition, entity=entity, amount=amount)
        handle = decide([operation], *self._asked, **self._where)
        return handle._map(lambda found: found.results[0])


class _ServerBackend:
    """Passes a limiter's operations to a server, with its plan as plain arguments."""

    def __init__(self, metrics: ClientMetrics) -> None:
        self._metrics = metrics

    def try_incr(
        self, operations: list[Any], conditions: Any, *, prefix: Any, namespace: str
    ) -> BatchResult:
        where = {"prefix": prefix, "namespace": namespace}
        return self._metrics.try_incr(operations, *plan_arguments(conditions), **where)

    def peek(
        self, operations: list[Any], conditions: Any, *, prefix: Any, namespace: str
    ) -> BatchResult:
        where = {"prefix": prefix, "namespace": namespace}
        return self._metrics.peek(operations, *plan_arguments(conditions), **where)

    def limit_incr(
        self, operations: list[Any], conditions: Any, *, prefix: Any, namespace: str
    ) -> None:
        where = {"prefix": prefix, "namespace": namespace}
        self._metrics.limit_incr(operations, *plan_arguments(conditions), **where)


def plan_arguments(plan: LimiterPlan) -> tuple[dict[str, Any], int, str]:
    """Returns a plan as plain arguments: conditions, number of buckets, algorithm."""
    conditions = {}
    for name, condition in plan.conditions.items():
        conditions[name] = {"limit": condition.limit, "window": condition.window}
        if plan.algorithm in WITH_BURST and condition.capacity != condition.limit:
            conditions[name]["burst"] = condition.capacity
    return conditions, plan.bucket_count, plan.algorithm


class Promise(RatePromise[Any]):
    """A total and its rates, as a server computes them."""

    def __init__(self, reader: "Reader", name: str, entity: Any, asked: TimeRange) -> None:
        super().__init__(reader, name, entity, asked)
        self.query = {
            "metric": name,
            "entity": entity,
            "start": asked.start,
            "end": asked.end,
            "future": reader.future,
        }
        if asked.start == asked.end:
            self._total, self._exact = total_of(self._metric, {}, self._span, self._now)

    @property
    def is_open(self) -> bool:
        """Returns whether it was not fetched yet."""
        return self._total is None

    @property
    def now(self) -> float:
        """The time at which it is read."""
        return self._now

    def fill(self, rate: Rate) -> None:
        self._total, self._exact = rate.total, rate.exact

    def total(self) -> Any:
        """Returns an integer if the resolution is an integer, otherwise a float."""
        if self._total is None:
            self._reader.fetch()
        return self._total


class ClientReader(Reader):
    """A reader whose fetch is one call to a server."""

    def __init__(
        self,
        rates: Callable[..., list[Rate]],
        metrics: dict[str, Metric],
        *,
        prefix: tuple[str, ...],
        namespace: str,
        future: Future,
        clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(
            _no_view, metrics, prefix=prefix, namespace=namespace, clock=clock, future=future
        )
        self._rates = rates
        self._promises: list[Promise] = []

    def get_rate(self, metric: str, entity: EntityLike, asked: TimeRange) -> RatePromise[Any]:
        """Returns a promise of the rate over a range. Reads nothing yet."""
        promise = Promise(self, metric, as_entity(entity), asked)
        if promise.is_open:
            self._promises.append(promise)
        return promise

    def fetch(self) -> None:
        """Reads everything that was requested and not fetched yet, in one call."""
        for now, promises in self.unfetched():
            queries = [promise.query for promise in promises]
            found = self._rates(queries, prefix=self._prefix, namespace=self._namespace, at=now)
            for promise, rate in zip(promises, found, strict=True):
                promise.fill(rate)

    def unfetched(self) -> list[tuple[float, list[Promise]]]:
        """Returns the promises to fetch, by their time; usually there is one.

        Those whose fetch fails are part of the next one.
        """
        self._promises = [promise for promise in self._promises if promise.is_open]
        by_time: dict[float, list[Promise]] = {}
        for promise in self._promises:
            by_time.setdefault(promise.now, []).append(promise)
        return list(by_time.items())


def _no_view() -> Any:
    raise BadInput("a client's reader has no view")  # it fetches by calls
