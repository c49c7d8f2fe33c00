"""Metrics on a store: one transaction per call; its writers, readers and limiters can be kept."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

from holdfast.binding import Runner, per_call
from holdfast.declarations import operation
from holdfast.engine.contract import Transaction
from holdfast.metrics import admission, registry
from holdfast.metrics.conditions import BUCKET_COUNT, Algorithm, Conditions, make_plan
from holdfast.metrics.entity import Prefix
from holdfast.metrics.layer import Metrics
from holdfast.metrics.layout import keys_of
from holdfast.metrics.limiter import Limiter, Sleep
from holdfast.metrics.limiter_fast_path import SingleHits
from holdfast.metrics.limits_package_windows import LimitsPackageWindows
from holdfast.metrics.reader import Reader
from holdfast.metrics.records import BatchResult, Metric
from holdfast.metrics.registry import OnConflict
from holdfast.metrics.scope import NAMESPACE, PREFIX, UNSCOPED, MetricsScope
from holdfast.metrics.specs import Specs, normalize
from holdfast.metrics.totals import Future
from holdfast.metrics.writer import Writer

if TYPE_CHECKING:
    _PerCall = Metrics
else:
    _PerCall = per_call(Metrics)


class StoreMetrics(_PerCall):
    """Counters in time sequences, gauges, distributions, and rate limits."""

    _runner: Runner
    _make: Callable[[Transaction], Metrics]
    _scope: MetricsScope

    def __init__(self, runner: Runner) -> None:
        super().__init__(runner)  # type: ignore[arg-type]  # the base is `per_call` of the layer
        self._scope = UNSCOPED

    @operation(local=True)
    def scoped(self, *, prefix: Prefix = PREFIX, namespace: str = NAMESPACE) -> Self:
        """Returns these metrics with a prefix, a namespace or both bound for every call.

        >>> visits = store.metrics.scoped(namespace="shop")
        >>> _ = visits.define({"visits": {}})
        >>> visits.incr("visits", ["ann"])
        >>> visits.rate("visits", ["ann"], latest=3600).total
        1

        A prefix or namespace that is given to a call takes precedence. Writers, readers and
        limiters made from the result have its scope too. Reads and writes nothing.
        """
        scoped = type(self)(self._runner)
        scoped._scope = scope = (self._scope or UNSCOPED).narrowed(prefix, namespace)
        scoped._make = lambda tx: Metrics(tx).scoped(**scope._asdict())
        return scoped

    @operation(local=True)
    def writer(
        self,
        specs: Specs,
        prefix: Prefix = PREFIX,
        *,
        namespace: str = NAMESPACE,
        on_conflict: OnConflict = "refuse",
    ) -> Writer:
        """Returns a writer that buffers in memory; every flush is one transaction."""
        return Writer(
            self,
            self._defined(specs, prefix, on_conflict),
            **self._bound(prefix, namespace),
        )

    @operation(local=True)
    def reader(
        self,
        specs: Specs,
        prefix: Prefix = PREFIX,
        *,
        namespace: str = NAMESPACE,
        future: Future = "clamp",
        on_conflict: OnConflict = "refuse",
    ) -> Reader:
        """Returns a reader; all its open promises are fetched in one view."""
        return Reader(
            self._runner.view,
            self._defined(specs, prefix, on_conflict),
            **self._bound(prefix, namespace),
            future=future,
        )

    @operation(local=True)
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
        """Returns a limiter whose calls are transactions. `sleep` is how `acquire` waits."""
        plan = make_plan(conditions, bucket_count, algorithm)
        bound = self._bound(prefix, namespace)
        with self._runner.view() as view:
            keys = keys_of(view.space, bound["prefix"])
            are_stored = admission.has_all_specs(view, keys, plan)
        if not are_stored:
            self._runner.transact(lambda tx: admission.store_all_specs(tx, keys, plan, on_conflict))
        hits = SingleHits(self._runner.transact, keys, plan, bound["namespace"])
        return Limiter(
            _StoreBackend(self, self._runner), plan, **bound, sleep=sleep, try_one=hits.try_incr
        )

    def _bound(self, prefix: Prefix, namespace: str) -> dict[str, Any]:
        """Returns the arguments that writers, readers and limiters have in common."""
        found = self._scope.arguments(prefix, namespace)
        return {**found, "clock": self._runner.read_clock}

    def _defined(self, specs: Specs, prefix: Prefix, on_conflict: OnConflict) -> dict[str, Metric]:
        """Returns the metrics of `specs`; if all are stored, it takes a view, not a transaction."""
        metrics = normalize(specs)
        named = self._bound(prefix, NAMESPACE)["prefix"]
        with self._runner.view() as view:
            keys = keys_of(view.space, named)
            are_stored = registry.are_stored(view, keys, metrics, on_conflict)
        if not are_stored:
            self.define(specs, on_conflict, prefix=named)
        return metrics


class _StoreBackend:
    """Runs a limiter's operations on a store; its plan is compiled and its prefix checked."""

    def __init__(self, metrics: StoreMetrics, runner: Runner) -> None:
        self._runner = runner
        self.peek = metrics.peek
        self.limit_incr = metrics.limit_incr

    def try_incr(
        self, operations: list[Any], conditions: Any, *, prefix: Any, namespace: str
    ) -> BatchResult:
        # Operations are read before the transaction, so that other writers wait less.
        asked = admission.read_operations(conditions, operations)

        def work(tx: Transaction) -> BatchResult:
            where = keys_of(tx.space, prefix), namespace, tx.now
            return admission.try_incr(tx, conditions, asked, where)

        return self._runner.transact(work)


def foreign_windows(metrics: StoreMetrics) -> LimitsPackageWindows:
    """Returns the windows of the package `limits` in a store; see `holdfast.limits_storage`."""
    return LimitsPackageWindows(metrics._runner)
