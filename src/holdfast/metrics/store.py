"""The layer on a store: each call a transaction, and writers, readers and limiters that last."""

import time
from typing import TYPE_CHECKING, Any

from holdfast.binding import Runner, per_call
from holdfast.declarations import operation
from holdfast.engine.contract import Transaction
from holdfast.metrics import admission, registry
from holdfast.metrics.conditions import BUCKET_COUNT, Algorithm, Conditions, make_plan
from holdfast.metrics.entity import Prefix, as_namespace, as_prefix
from holdfast.metrics.layer import NAMESPACE, PREFIX, Metrics
from holdfast.metrics.layout import keys_of
from holdfast.metrics.limiter import Limiter, Sleep
from holdfast.metrics.limiter_fast_path import SingleHits
from holdfast.metrics.limits_package_windows import LimitsPackageWindows
from holdfast.metrics.reader import Reader
from holdfast.metrics.records import BatchResult, Metric
from holdfast.metrics.registry import OnConflict
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

    def __init__(self, runner: Runner) -> None:
        super().__init__(runner)  # type: ignore[arg-type]  # the base is `per_call` of the layer

    @operation(local=True)
    def writer(
        self,
        specs: Specs,
        prefix: Prefix = PREFIX,
        *,
        namespace: str = NAMESPACE,
        on_conflict: OnConflict = "refuse",
    ) -> Writer:
        """A writer that buffers in memory; every flush is one transaction."""
        return Writer(
            self,
            self._settled(specs, prefix, on_conflict),
            prefix=as_prefix(prefix),
            namespace=as_namespace(namespace),
            clock=self._runner.read_clock,
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
        """A reader; what is asked for together is fetched in one view."""
        return Reader(
            self._runner.view,
            self._settled(specs, prefix, on_conflict),
            prefix=as_prefix(prefix),
            namespace=as_namespace(namespace),
            clock=self._runner.read_clock,
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
        """A limiter, each call of which is one transaction. `sleep` is how `acquire` waits."""
        plan = make_plan(conditions, bucket_count, algorithm)
        named = as_prefix(prefix)
        with self._runner.view() as view:
            keys = keys_of(view.space, named)
            settled = admission.has_all_specs(view, keys, plan)
        if not settled:
            self._runner.transact(lambda tx: admission.store_all_specs(tx, keys, plan, on_conflict))
        return Limiter(
            _StoreLimits(self, self._runner),
            plan,
            prefix=named,
            namespace=as_namespace(namespace),
            clock=self._runner.read_clock,
            sleep=sleep,
            try_one=SingleHits(self._runner.transact, keys, plan, as_namespace(namespace)).try_incr,
        )

    def _settled(self, specs: Specs, prefix: Prefix, on_conflict: OnConflict) -> dict[str, Metric]:
        """The metrics of `specs`; what is stored already costs a view and no transaction."""
        metrics = normalize(specs)
        named = as_prefix(prefix)
        with self._runner.view() as view:
            keys = keys_of(view.space, named)
            is_settled = registry.is_settled(view, keys, metrics, on_conflict)
        if not is_settled:
            self.define(specs, on_conflict, prefix=named)
        return metrics


class _StoreLimits:
    """The store as a limiter uses it, whose plan is made and whose prefix is checked already."""

    def __init__(self, metrics: StoreMetrics, runner: Runner) -> None:
        self._runner = runner
        self.peek = metrics.peek
        self.limit_incr = metrics.limit_incr

    def try_incr(
        self, operations: list[Any], conditions: Any, *, prefix: Any, namespace: str
    ) -> BatchResult:
        # Operations are read before the transaction, so that all who wait to write wait less.
        asked = admission.read_operations(conditions, operations)

        def work(tx: Transaction) -> BatchResult:
            where = keys_of(tx.space, prefix), namespace, tx.now
            return admission.try_incr(tx, conditions, asked, where)

        return self._runner.transact(work)


def foreign_windows(metrics: StoreMetrics) -> LimitsPackageWindows:
    """The windows of the package `limits` in a store; see `holdfast.limits_storage`."""
    return LimitsPackageWindows(metrics._runner)
