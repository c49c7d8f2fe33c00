"""The operations of metrics, for a client. Made by `make client` from operations.py."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from holdfast.client.calls import Call
from holdfast.client.layers import AwaitedLayer, CalledLayer, RecordedLayer, awaited, recorded
from holdfast.metrics import distributions
from holdfast.metrics.conditions import BUCKET_COUNT, Algorithm, Conditions
from holdfast.metrics.entity import EntityLike, Prefix
from holdfast.metrics.records import (
    BatchResult,
    BucketPage,
    Deleted,
    DistributionReading,
    GaugeReading,
    Metric,
    Number,
    Operation,
    Rate,
    RateQuery,
    Series,
    TopEntity,
    Write,
    Written,
)
from holdfast.metrics.registry import OnConflict
from holdfast.metrics.scope import NAMESPACE, PREFIX
from holdfast.metrics.specs import Specs
from holdfast.metrics.totals import Future


class CalledMetrics(CalledLayer):
    """The operations of `Metrics`, called."""

    def add(
        self,
        metric: str,
        entity: EntityLike = None,
        delta: Number = 1,
        *,
        prefix: Prefix = PREFIX,
        namespace: str = NAMESPACE,
        at: float | None = None,
    ) -> None:
        """Changes the gauge of an entity by `delta`, from its last value or from 0."""
        return self._call(_ADD, metric, entity, delta, prefix, namespace, at)

    def buckets(
        self,
        metric: str | None = None,
        limit: int = 1000,
        after: str | None = None,
        *,
        prefix: Prefix = PREFIX,
        namespace: str = NAMESPACE,
        at: float | None = None,
    ) -> BucketPage:
        """Returns a page of the stored counters, of one metric or of all, by their readable
        keys.
        """
        return self._call(_BUCKETS, metric, limit, after, prefix, namespace, at)

    def define(
        self,
        specs: Specs,
        on_conflict: OnConflict = "refuse",
        *,
        prefix: Prefix = PREFIX,
        namespace: str = NAMESPACE,
        at: float | None = None,
    ) -> dict[str, Metric]:
        """Stores the specs of metrics and returns them normalised, sequences in search order."""
        return self._call(_DEFINE, specs, on_conflict, prefix, namespace, at)

    def define_limits(
        self,
        conditions: Conditions,
        bucket_count: int = BUCKET_COUNT,
        algorithm: Algorithm | str = "estimate",
        on_conflict: OnConflict = "refuse",
        *,
        prefix: Prefix = PREFIX,
    ) -> None:
        """Stores the conditions of a limiter, as `define` stores the specs of metrics."""
        return self._call(_DEFINE_LIMITS, conditions, bucket_count, algorithm, on_conflict, prefix)

    def defined(
        self,
        after: str | None = None,
        limit: int = 100,
        *,
        names: Sequence[str] | None = None,
        prefix: Prefix = PREFIX,
        namespace: str = NAMESPACE,
    ) -> dict[str, Metric]:
        """Returns the specs of the metrics under a prefix by name, beginning after `after`."""
        return self._call(_DEFINED, after, limit, names, prefix, namespace)

    def distribution(
        self,
        metric: str,
        entity: EntityLike = None,
        latest: float | None = None,
        start: float | None = None,
        end: float | None = None,
        quantiles: Sequence[float] = distributions.QUANTILES,
        entities: Iterable[EntityLike] | None = None,
        *,
        prefix: Prefix = PREFIX,
        namespace: str = NAMESPACE,
        at: float | None = None,
    ) -> DistributionReading:
        """Returns `quantiles` of a distribution: of the `latest` seconds, or from `start` to
        `end`.
        """
        return self._call(
            _DISTRIBUTION,
            metric,
            entity,
            latest,
            start,
            end,
            quantiles,
            entities,
            prefix,
            namespace,
            at,
        )

    def gauge(
        self,
        metric: str,
        entity: EntityLike = None,
        latest: float | None = None,
        start: float | None = None,
        end: float | None = None,
        *,
        prefix: Prefix = PREFIX,
        namespace: str = NAMESPACE,
        at: float | None = None,
    ) -> GaugeReading:
        """Returns last, min, max, mean and count of a gauge: of the `latest` seconds, or from
        `start` to `end`.
        """
        return self._call(_GAUGE, metric, entity, latest, start, end, prefix, namespace, at)

    def incr(
        self,
        metric: str,
        entity: EntityLike = None,
        value: Number = 1,
        *,
        prefix: Prefix = PREFIX,
        namespace: str = NAMESPACE,
        at: float | None = None,
    ) -> None:
        """Adds `value` to the counter of an entity, now or at the time `at`."""
        return self._call(_INCR, metric, entity, value, prefix, namespace, at)

    def lifetime(
        self,
        metric: str,
        entity: EntityLike = None,
        *,
        prefix: Prefix = PREFIX,
        namespace: str = NAMESPACE,
        at: float | None = None,
    ) -> Number:
        """Returns the lifetime total of a metric whose spec has `lifetime`. Reads 2 keys."""
        return self._call(_LIFETIME, metric, entity, prefix, namespace, at)

    def limit_incr(
        self,
        operations: Sequence[Operation | dict[str, Any]],
        conditions: Conditions,
        bucket_count: int = BUCKET_COUNT,
        algorithm: Algorithm | str = "estimate",
        *,
        prefix: Prefix = PREFIX,
        namespace: str = NAMESPACE,
        at: float | None = None,
    ) -> None:
        """Counts operations without checking their limits."""
        return self._call(
            _LIMIT_INCR, operations, conditions, bucket_count, algorithm, prefix, namespace, at
        )

    def peek(
        self,
        operations: Sequence[Operation | dict[str, Any]],
        conditions: Conditions,
        bucket_count: int = BUCKET_COUNT,
        algorithm: Algorithm | str = "estimate",
        *,
        prefix: Prefix = PREFIX,
        namespace: str = NAMESPACE,
        at: float | None = None,
    ) -> BatchResult:
        """Returns the result that `try_incr` would have. Reads the same keys, writes nothing."""
        return self._call(
            _PEEK, operations, conditions, bucket_count, algorithm, prefix, namespace, at
        )

    def prometheus(
        self,
        openmetrics: bool = False,
        *,
        prefix: Prefix | None = None,
        namespace: str = NAMESPACE,
        at: float | None = None,
    ) -> str:
        """Returns the metrics whose spec has `expose`, of one prefix or of all, as Prometheus
        text.
        """
        return self._call(_PROMETHEUS, openmetrics, prefix, namespace, at)

    def rate(
        self,
        metric: str,
        entity: EntityLike = None,
        latest: float | None = None,
        start: float | None = None,
        end: float | None = None,
        future: Future = "clamp",
        *,
        prefix: Prefix = PREFIX,
        namespace: str = NAMESPACE,
        at: float | None = None,
    ) -> Rate:
        """Returns total and rates of a counter: of the `latest` seconds, or from `start` to
        `end`.
        """
        return self._call(_RATE, metric, entity, latest, start, end, future, prefix, namespace, at)

    def rates(
        self,
        queries: Sequence[RateQuery | dict[str, Any]],
        *,
        prefix: Prefix = PREFIX,
        namespace: str = NAMESPACE,
        at: float | None = None,
    ) -> list[Rate]:
        """Returns several rates from one snapshot. Reads what `rate` does for each."""
        return self._call(_RATES, queries, prefix, namespace, at)

    def record(
        self,
        metric: str,
        entity: EntityLike = None,
        value: Number = 0,
        count: int = 1,
        *,
        prefix: Prefix = PREFIX,
        namespace: str = NAMESPACE,
        at: float | None = None,
    ) -> None:
        """Records that `value` occurred, `count` times, in the distribution of an entity."""
        return self._call(_RECORD, metric, entity, value, count, prefix, namespace, at)

    def require(
        self,
        operations: Sequence[Operation | dict[str, Any]],
        conditions: Conditions,
        bucket_count: int = BUCKET_COUNT,
        algorithm: Algorithm | str = "estimate",
        *,
        prefix: Prefix = PREFIX,
        namespace: str = NAMESPACE,
        at: float | None = None,
    ) -> BatchResult:
        """Counts all operations, or raises `LimitExceeded`, which undoes the whole
        transaction.
        """
        return self._call(
            _REQUIRE, operations, conditions, bucket_count, algorithm, prefix, namespace, at
        )

    def reset(
        self,
        entities: Sequence[EntityLike] | None = None,
        metrics: Sequence[str] | None = None,
        *,
        prefix: Prefix = PREFIX,
        namespace: str = NAMESPACE,
        at: float | None = None,
    ) -> Deleted:
        """Deletes everything stored about `entities`, in `metrics` or in all under the prefix."""
        return self._call(_RESET, entities, metrics, prefix, namespace, at)

    def series(
        self,
        metric: str,
        entity: EntityLike = None,
        start: float | None = None,
        end: float | None = None,
        step: float | None = None,
        value: str = "total",
        *,
        prefix: Prefix = PREFIX,
        namespace: str = NAMESPACE,
        at: float | None = None,
    ) -> Series:
        """Returns values for a plot, one for each `step` from `start` to `end`."""
        return self._call(_SERIES, metric, entity, start, end, step, value, prefix, namespace, at)

    def set(
        self,
        metric: str,
        entity: EntityLike = None,
        value: Number = 0,
        *,
        prefix: Prefix = PREFIX,
        namespace: str = NAMESPACE,
        at: float | None = None,
    ) -> None:
        """Sets the gauge of an entity to `value`, now or at the time `at`."""
        return self._call(_SET, metric, entity, value, prefix, namespace, at)

    def throttle(
        self,
        key: str,
        max_burst: int,
        count: int,
        period: int,
        quantity: int = 1,
        *,
        prefix: Prefix = PREFIX,
        namespace: str = NAMESPACE,
        at: float | None = None,
    ) -> list[int]:
        """Applies GCRA as redis-cell does, `count` in `period` seconds, and returns five
        integers.
        """
        return self._call(_THROTTLE, key, max_burst, count, period, quantity, prefix, namespace, at)

    def top(
        self,
        metric: str,
        latest: float | None = None,
        start: float | None = None,
        end: float | None = None,
        n: int = 10,
        scope: str = "local",
        *,
        most_buckets: int | None = None,
        prefix: Prefix = PREFIX,
        namespace: str = NAMESPACE,
        at: float | None = None,
    ) -> list[TopEntity]:
        """Returns the `n` entities with the highest totals in the `latest` seconds, or in a
        range.
        """
        return self._call(
            _TOP, metric, latest, start, end, n, scope, most_buckets, prefix, namespace, at
        )

    def try_incr(
        self,
        operations: Sequence[Operation | dict[str, Any]],
        conditions: Conditions,
        bucket_count: int = BUCKET_COUNT,
        algorithm: Algorithm | str = "estimate",
        *,
        prefix: Prefix = PREFIX,
        namespace: str = NAMESPACE,
        at: float | None = None,
    ) -> BatchResult:
        """Counts all operations if their conditions allow all of them, none otherwise."""
        return self._call(
            _TRY_INCR, operations, conditions, bucket_count, algorithm, prefix, namespace, at
        )

    def write(
        self,
        writes: Sequence[Write | dict[str, Any]],
        *,
        prefix: Prefix = PREFIX,
        namespace: str = NAMESPACE,
        at: float | None = None,
    ) -> Written:
        """Applies many writes to metrics, all or none, as a writer does when it flushes."""
        return self._call(_WRITE, writes, prefix, namespace, at)


class AwaitedMetrics(AwaitedLayer):
    """The operations of `Metrics`, each a coroutine."""

    add = awaited(CalledMetrics.add)
    buckets = awaited(CalledMetrics.buckets)
    define = awaited(CalledMetrics.define)
    define_limits = awaited(CalledMetrics.define_limits)
    defined = awaited(CalledMetrics.defined)
    distribution = awaited(CalledMetrics.distribution)
    gauge = awaited(CalledMetrics.gauge)
    incr = awaited(CalledMetrics.incr)
    lifetime = awaited(CalledMetrics.lifetime)
    limit_incr = awaited(CalledMetrics.limit_incr)
    peek = awaited(CalledMetrics.peek)
    prometheus = awaited(CalledMetrics.prometheus)
    rate = awaited(CalledMetrics.rate)
    rates = awaited(CalledMetrics.rates)
    record = awaited(CalledMetrics.record)
    require = awaited(CalledMetrics.require)
    reset = awaited(CalledMetrics.reset)
    series = awaited(CalledMetrics.series)
    set = awaited(CalledMetrics.set)
    throttle = awaited(CalledMetrics.throttle)
    top = awaited(CalledMetrics.top)
    try_incr = awaited(CalledMetrics.try_incr)
    write = awaited(CalledMetrics.write)


class RecordedMetrics(RecordedLayer):
    """The operations of `Metrics`, kept to be sent together."""

    add = recorded(CalledMetrics.add)
    buckets = recorded(CalledMetrics.buckets)
    define = recorded(CalledMetrics.define)
    define_limits = recorded(CalledMetrics.define_limits)
    defined = recorded(CalledMetrics.defined)
    distribution = recorded(CalledMetrics.distribution)
    gauge = recorded(CalledMetrics.gauge)
    incr = recorded(CalledMetrics.incr)
    lifetime = recorded(CalledMetrics.lifetime)
    limit_incr = recorded(CalledMetrics.limit_incr)
    peek = recorded(CalledMetrics.peek)
    prometheus = recorded(CalledMetrics.prometheus)
    rate = recorded(CalledMetrics.rate)
    rates = recorded(CalledMetrics.rates)
    record = recorded(CalledMetrics.record)
    require = recorded(CalledMetrics.require)
    reset = recorded(CalledMetrics.reset)
    series = recorded(CalledMetrics.series)
    set = recorded(CalledMetrics.set)
    throttle = recorded(CalledMetrics.throttle)
    top = recorded(CalledMetrics.top)
    try_incr = recorded(CalledMetrics.try_incr)
    write = recorded(CalledMetrics.write)


_ADD: Final = Call("metrics.add", "write", CalledMetrics.add)
_BUCKETS: Final = Call("metrics.buckets", "read", CalledMetrics.buckets)
_DEFINE: Final = Call("metrics.define", "write", CalledMetrics.define)
_DEFINE_LIMITS: Final = Call("metrics.define_limits", "write", CalledMetrics.define_limits)
_DEFINED: Final = Call("metrics.defined", "read", CalledMetrics.defined)
_DISTRIBUTION: Final = Call("metrics.distribution", "read", CalledMetrics.distribution)
_GAUGE: Final = Call("metrics.gauge", "read", CalledMetrics.gauge)
_INCR: Final = Call("metrics.incr", "write", CalledMetrics.incr)
_LIFETIME: Final = Call("metrics.lifetime", "read", CalledMetrics.lifetime)
_LIMIT_INCR: Final = Call("metrics.limit_incr", "write", CalledMetrics.limit_incr)
_PEEK: Final = Call("metrics.peek", "read", CalledMetrics.peek)
_PROMETHEUS: Final = Call("metrics.prometheus", "read", CalledMetrics.prometheus)
_RATE: Final = Call("metrics.rate", "read", CalledMetrics.rate)
_RATES: Final = Call("metrics.rates", "read", CalledMetrics.rates)
_RECORD: Final = Call("metrics.record", "write", CalledMetrics.record)
_REQUIRE: Final = Call("metrics.require", "write", CalledMetrics.require)
_RESET: Final = Call("metrics.reset", "write", CalledMetrics.reset)
_SERIES: Final = Call("metrics.series", "read", CalledMetrics.series)
_SET: Final = Call("metrics.set", "write", CalledMetrics.set)
_THROTTLE: Final = Call("metrics.throttle", "write", CalledMetrics.throttle)
_TOP: Final = Call("metrics.top", "read", CalledMetrics.top)
_TRY_INCR: Final = Call("metrics.try_incr", "write", CalledMetrics.try_incr)
_WRITE: Final = Call("metrics.write", "write", CalledMetrics.write)
