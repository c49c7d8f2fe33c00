"""The operations of metrics, for a client. Made by `make client` from operations.py."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from holdfast.client.calls import Call
from holdfast.client.faces import AwaitFace, CallFace, Handle, RecordFace
from holdfast.metrics import distributions
from holdfast.metrics.conditions import BUCKET_COUNT, Algorithm, Conditions
from holdfast.metrics.entity import EntityLike, Prefix
from holdfast.metrics.layer import NAMESPACE, PREFIX
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
from holdfast.metrics.specs import Specs
from holdfast.metrics.totals import Future

_ADD: Final[Call[None]] = Call("metrics.add", "write", only_reads=False, result=None)

_BUCKETS: Final[Call[BucketPage]] = Call(
    "metrics.buckets", "read", only_reads=True, result=BucketPage
)

_DEFINE: Final[Call[dict[str, Metric]]] = Call(
    "metrics.define", "write", only_reads=False, result=dict[str, Metric]
)

_DEFINE_LIMITS: Final[Call[None]] = Call(
    "metrics.define_limits", "write", only_reads=False, result=None
)

_DISTRIBUTION: Final[Call[DistributionReading]] = Call(
    "metrics.distribution", "read", only_reads=True, result=DistributionReading
)

_GAUGE: Final[Call[GaugeReading]] = Call(
    "metrics.gauge", "read", only_reads=True, result=GaugeReading
)

_INCR: Final[Call[None]] = Call("metrics.incr", "write", only_reads=False, result=None)

_LIFETIME: Final[Call[Number]] = Call("metrics.lifetime", "read", only_reads=True, result=Number)

_LIMIT_INCR: Final[Call[None]] = Call("metrics.limit_incr", "write", only_reads=False, result=None)

_PEEK: Final[Call[BatchResult]] = Call("metrics.peek", "read", only_reads=True, result=BatchResult)

_PROMETHEUS: Final[Call[str]] = Call("metrics.prometheus", "read", only_reads=True, result=str)

_RATE: Final[Call[Rate]] = Call("metrics.rate", "read", only_reads=True, result=Rate)

_RATES: Final[Call[list[Rate]]] = Call("metrics.rates", "read", only_reads=True, result=list[Rate])

_RECORD: Final[Call[None]] = Call("metrics.record", "write", only_reads=False, result=None)

_REQUIRE: Final[Call[BatchResult]] = Call(
    "metrics.require", "write", only_reads=False, result=BatchResult
)

_RESET: Final[Call[Deleted]] = Call("metrics.reset", "write", only_reads=False, result=Deleted)

_SERIES: Final[Call[Series]] = Call("metrics.series", "read", only_reads=True, result=Series)

_SET: Final[Call[None]] = Call("metrics.set", "write", only_reads=False, result=None)

_THROTTLE: Final[Call[list[int]]] = Call(
    "metrics.throttle", "write", only_reads=False, result=list[int]
)

_TOP: Final[Call[list[TopEntity]]] = Call(
    "metrics.top", "read", only_reads=True, result=list[TopEntity]
)

_TRY_INCR: Final[Call[BatchResult]] = Call(
    "metrics.try_incr", "write", only_reads=False, result=BatchResult
)

_WRITE: Final[Call[Written]] = Call("metrics.write", "write", only_reads=False, result=Written)


def _add(
    metric: str,
    entity: EntityLike = None,
    delta: Number = 1,
    *,
    prefix: Prefix = PREFIX,
    namespace: str = NAMESPACE,
    at: float | None = None,
) -> dict[str, Any]:
    given: dict[str, Any] = {"metric": metric}
    if entity is not None:
        given["entity"] = entity
    if delta != 1:
        given["delta"] = delta
    if prefix != PREFIX:
        given["prefix"] = prefix
    if namespace != NAMESPACE:
        given["namespace"] = namespace
    if at is not None:
        given["at"] = at
    return given


def _buckets(
    metric: str | None = None,
    limit: int = 1000,
    after: str | None = None,
    *,
    prefix: Prefix = PREFIX,
    namespace: str = NAMESPACE,
    at: float | None = None,
) -> dict[str, Any]:
    given: dict[str, Any] = {}
    if metric is not None:
        given["metric"] = metric
    if limit != 1000:
        given["limit"] = limit
    if after is not None:
        given["after"] = after
    if prefix != PREFIX:
        given["prefix"] = prefix
    if namespace != NAMESPACE:
        given["namespace"] = namespace
    if at is not None:
        given["at"] = at
    return given


def _define(
    specs: Specs,
    on_conflict: OnConflict = "refuse",
    *,
    prefix: Prefix = PREFIX,
    namespace: str = NAMESPACE,
    at: float | None = None,
) -> dict[str, Any]:
    given: dict[str, Any] = {"specs": specs}
    if on_conflict != "refuse":
        given["on_conflict"] = on_conflict
    if prefix != PREFIX:
        given["prefix"] = prefix
    if namespace != NAMESPACE:
        given["namespace"] = namespace
    if at is not None:
        given["at"] = at
    return given


def _define_limits(
    conditions: Conditions,
    bucket_count: int = BUCKET_COUNT,
    algorithm: Algorithm | str = "estimate",
    on_conflict: OnConflict = "refuse",
    *,
    prefix: Prefix = PREFIX,
) -> dict[str, Any]:
    given: dict[str, Any] = {"conditions": conditions}
    if bucket_count != BUCKET_COUNT:
        given["bucket_count"] = bucket_count
    if algorithm != "estimate":
        given["algorithm"] = algorithm
    if on_conflict != "refuse":
        given["on_conflict"] = on_conflict
    if prefix != PREFIX:
        given["prefix"] = prefix
    return given


def _distribution(
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
) -> dict[str, Any]:
    given: dict[str, Any] = {"metric": metric}
    if entity is not None:
        given["entity"] = entity
    if latest is not None:
        given["latest"] = latest
    if start is not None:
        given["start"] = start
    if end is not None:
        given["end"] = end
    if quantiles != distributions.QUANTILES:
        given["quantiles"] = quantiles
    if entities is not None:
        given["entities"] = entities
    if prefix != PREFIX:
        given["prefix"] = prefix
    if namespace != NAMESPACE:
        given["namespace"] = namespace
    if at is not None:
        given["at"] = at
    return given


def _gauge(
    metric: str,
    entity: EntityLike = None,
    latest: float | None = None,
    start: float | None = None,
    end: float | None = None,
    *,
    prefix: Prefix = PREFIX,
    namespace: str = NAMESPACE,
    at: float | None = None,
) -> dict[str, Any]:
    given: dict[str, Any] = {"metric": metric}
    if entity is not None:
        given["entity"] = entity
    if latest is not None:
        given["latest"] = latest
    if start is not None:
        given["start"] = start
    if end is not None:
        given["end"] = end
    if prefix != PREFIX:
        given["prefix"] = prefix
    if namespace != NAMESPACE:
        given["namespace"] = namespace
    if at is not None:
        given["at"] = at
    return given


def _incr(
    metric: str,
    entity: EntityLike = None,
    value: Number = 1,
    *,
    prefix: Prefix = PREFIX,
    namespace: str = NAMESPACE,
    at: float | None = None,
) -> dict[str, Any]:
    given: dict[str, Any] = {"metric": metric}
    if entity is not None:
        given["entity"] = entity
    if value != 1:
        given["value"] = value
    if prefix != PREFIX:
        given["prefix"] = prefix
    if namespace != NAMESPACE:
        given["namespace"] = namespace
    if at is not None:
        given["at"] = at
    return given


def _lifetime(
    metric: str,
    entity: EntityLike = None,
    *,
    prefix: Prefix = PREFIX,
    namespace: str = NAMESPACE,
    at: float | None = None,
) -> dict[str, Any]:
    given: dict[str, Any] = {"metric": metric}
    if entity is not None:
        given["entity"] = entity
    if prefix != PREFIX:
        given["prefix"] = prefix
    if namespace != NAMESPACE:
        given["namespace"] = namespace
    if at is not None:
        given["at"] = at
    return given


def _limit_incr(
    operations: Sequence[Operation | dict[str, Any]],
    conditions: Conditions,
    bucket_count: int = BUCKET_COUNT,
    algorithm: Algorithm | str = "estimate",
    *,
    prefix: Prefix = PREFIX,
    namespace: str = NAMESPACE,
    at: float | None = None,
) -> dict[str, Any]:
    given: dict[str, Any] = {"operations": operations, "conditions": conditions}
    if bucket_count != BUCKET_COUNT:
        given["bucket_count"] = bucket_count
    if algorithm != "estimate":
        given["algorithm"] = algorithm
    if prefix != PREFIX:
        given["prefix"] = prefix
    if namespace != NAMESPACE:
        given["namespace"] = namespace
    if at is not None:
        given["at"] = at
    return given


def _peek(
    operations: Sequence[Operation | dict[str, Any]],
    conditions: Conditions,
    bucket_count: int = BUCKET_COUNT,
    algorithm: Algorithm | str = "estimate",
    *,
    prefix: Prefix = PREFIX,
    namespace: str = NAMESPACE,
    at: float | None = None,
) -> dict[str, Any]:
    given: dict[str, Any] = {"operations": operations, "conditions": conditions}
    if bucket_count != BUCKET_COUNT:
        given["bucket_count"] = bucket_count
    if algorithm != "estimate":
        given["algorithm"] = algorithm
    if prefix != PREFIX:
        given["prefix"] = prefix
    if namespace != NAMESPACE:
        given["namespace"] = namespace
    if at is not None:
        given["at"] = at
    return given


def _prometheus(
    openmetrics: bool = False,
    *,
    prefix: Prefix | None = None,
    namespace: str = NAMESPACE,
    at: float | None = None,
) -> dict[str, Any]:
    given: dict[str, Any] = {}
    if openmetrics is not False:
        given["openmetrics"] = openmetrics
    if prefix is not None:
        given["prefix"] = prefix
    if namespace != NAMESPACE:
        given["namespace"] = namespace
    if at is not None:
        given["at"] = at
    return given


def _rate(
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
) -> dict[str, Any]:
    given: dict[str, Any] = {"metric": metric}
    if entity is not None:
        given["entity"] = entity
    if latest is not None:
        given["latest"] = latest
    if start is not None:
        given["start"] = start
    if end is not None:
        given["end"] = end
    if future != "clamp":
        given["future"] = future
    if prefix != PREFIX:
        given["prefix"] = prefix
    if namespace != NAMESPACE:
        given["namespace"] = namespace
    if at is not None:
        given["at"] = at
    return given


def _rates(
    queries: Sequence[RateQuery | dict[str, Any]],
    *,
    prefix: Prefix = PREFIX,
    namespace: str = NAMESPACE,
    at: float | None = None,
) -> dict[str, Any]:
    given: dict[str, Any] = {"queries": queries}
    if prefix != PREFIX:
        given["prefix"] = prefix
    if namespace != NAMESPACE:
        given["namespace"] = namespace
    if at is not None:
        given["at"] = at
    return given


def _record(
    metric: str,
    entity: EntityLike = None,
    value: Number = 0,
    count: int = 1,
    *,
    prefix: Prefix = PREFIX,
    namespace: str = NAMESPACE,
    at: float | None = None,
) -> dict[str, Any]:
    given: dict[str, Any] = {"metric": metric}
    if entity is not None:
        given["entity"] = entity
    if value != 0:
        given["value"] = value
    if count != 1:
        given["count"] = count
    if prefix != PREFIX:
        given["prefix"] = prefix
    if namespace != NAMESPACE:
        given["namespace"] = namespace
    if at is not None:
        given["at"] = at
    return given


def _require(
    operations: Sequence[Operation | dict[str, Any]],
    conditions: Conditions,
    bucket_count: int = BUCKET_COUNT,
    algorithm: Algorithm | str = "estimate",
    *,
    prefix: Prefix = PREFIX,
    namespace: str = NAMESPACE,
    at: float | None = None,
) -> dict[str, Any]:
    given: dict[str, Any] = {"operations": operations, "conditions": conditions}
    if bucket_count != BUCKET_COUNT:
        given["bucket_count"] = bucket_count
    if algorithm != "estimate":
        given["algorithm"] = algorithm
    if prefix != PREFIX:
        given["prefix"] = prefix
    if namespace != NAMESPACE:
        given["namespace"] = namespace
    if at is not None:
        given["at"] = at
    return given


def _reset(
    entities: Sequence[EntityLike] | None = None,
    metrics: Sequence[str] | None = None,
    *,
    prefix: Prefix = PREFIX,
    namespace: str = NAMESPACE,
    at: float | None = None,
) -> dict[str, Any]:
    given: dict[str, Any] = {}
    if entities is not None:
        given["entities"] = entities
    if metrics is not None:
        given["metrics"] = metrics
    if prefix != PREFIX:
        given["prefix"] = prefix
    if namespace != NAMESPACE:
        given["namespace"] = namespace
    if at is not None:
        given["at"] = at
    return given


def _series(
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
) -> dict[str, Any]:
    given: dict[str, Any] = {"metric": metric}
    if entity is not None:
        given["entity"] = entity
    if start is not None:
        given["start"] = start
    if end is not None:
        given["end"] = end
    if step is not None:
        given["step"] = step
    if value != "total":
        given["value"] = value
    if prefix != PREFIX:
        given["prefix"] = prefix
    if namespace != NAMESPACE:
        given["namespace"] = namespace
    if at is not None:
        given["at"] = at
    return given


def _set(
    metric: str,
    entity: EntityLike = None,
    value: Number = 0,
    *,
    prefix: Prefix = PREFIX,
    namespace: str = NAMESPACE,
    at: float | None = None,
) -> dict[str, Any]:
    given: dict[str, Any] = {"metric": metric}
    if entity is not None:
        given["entity"] = entity
    if value != 0:
        given["value"] = value
    if prefix != PREFIX:
        given["prefix"] = prefix
    if namespace != NAMESPACE:
        given["namespace"] = namespace
    if at is not None:
        given["at"] = at
    return given


def _throttle(
    key: str,
    max_burst: int,
    count: int,
    period: int,
    quantity: int = 1,
    *,
    prefix: Prefix = PREFIX,
    namespace: str = NAMESPACE,
    at: float | None = None,
) -> dict[str, Any]:
    given: dict[str, Any] = {"key": key, "max_burst": max_burst, "count": count, "period": period}
    if quantity != 1:
        given["quantity"] = quantity
    if prefix != PREFIX:
        given["prefix"] = prefix
    if namespace != NAMESPACE:
        given["namespace"] = namespace
    if at is not None:
        given["at"] = at
    return given


def _top(
    metric: str,
    latest: float | None = None,
    start: float | None = None,
    end: float | None = None,
    n: int = 10,
    scope: str = "local",
    *,
    prefix: Prefix = PREFIX,
    namespace: str = NAMESPACE,
    at: float | None = None,
) -> dict[str, Any]:
    given: dict[str, Any] = {"metric": metric}
    if latest is not None:
        given["latest"] = latest
    if start is not None:
        given["start"] = start
    if end is not None:
        given["end"] = end
    if n != 10:
        given["n"] = n
    if scope != "local":
        given["scope"] = scope
    if prefix != PREFIX:
        given["prefix"] = prefix
    if namespace != NAMESPACE:
        given["namespace"] = namespace
    if at is not None:
        given["at"] = at
    return given


def _try_incr(
    operations: Sequence[Operation | dict[str, Any]],
    conditions: Conditions,
    bucket_count: int = BUCKET_COUNT,
    algorithm: Algorithm | str = "estimate",
    *,
    prefix: Prefix = PREFIX,
    namespace: str = NAMESPACE,
    at: float | None = None,
) -> dict[str, Any]:
    given: dict[str, Any] = {"operations": operations, "conditions": conditions}
    if bucket_count != BUCKET_COUNT:
        given["bucket_count"] = bucket_count
    if algorithm != "estimate":
        given["algorithm"] = algorithm
    if prefix != PREFIX:
        given["prefix"] = prefix
    if namespace != NAMESPACE:
        given["namespace"] = namespace
    if at is not None:
        given["at"] = at
    return given


def _write(
    writes: Sequence[Write | dict[str, Any]],
    *,
    prefix: Prefix = PREFIX,
    namespace: str = NAMESPACE,
    at: float | None = None,
) -> dict[str, Any]:
    given: dict[str, Any] = {"writes": writes}
    if prefix != PREFIX:
        given["prefix"] = prefix
    if namespace != NAMESPACE:
        given["namespace"] = namespace
    if at is not None:
        given["at"] = at
    return given


class CalledMetrics(CallFace):
    """The operations of `Metrics`, each a call to a server."""

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
        """Takes a sample of a gauge that is `delta` above the last one. Costs 1 read more."""
        return self._call(
            _ADD, _add(metric, entity, delta, prefix=prefix, namespace=namespace, at=at)
        )

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
        """The stored counters of all scopes by their readable keys. Reads 1 key for each."""
        return self._call(
            _BUCKETS, _buckets(metric, limit, after, prefix=prefix, namespace=namespace, at=at)
        )

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
        return self._call(
            _DEFINE, _define(specs, on_conflict, prefix=prefix, namespace=namespace, at=at)
        )

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
        return self._call(
            _DEFINE_LIMITS,
            _define_limits(conditions, bucket_count, algorithm, on_conflict, prefix=prefix),
        )

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
        """Quantiles and more of an entity, or of `entities` merged. Reads 1 key for each
        bucket.
        """
        return self._call(
            _DISTRIBUTION,
            _distribution(
                metric,
                entity,
                latest,
                start,
                end,
                quantiles,
                entities,
                prefix=prefix,
                namespace=namespace,
                at=at,
            ),
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
        """Last, min, max, mean and count of a gauge's samples. Reads 1 key for each bucket."""
        return self._call(
            _GAUGE,
            _gauge(metric, entity, latest, start, end, prefix=prefix, namespace=namespace, at=at),
        )

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
        """Adds `value` to a counter. Reads 1 key, writes 1 for each sequence."""
        return self._call(
            _INCR, _incr(metric, entity, value, prefix=prefix, namespace=namespace, at=at)
        )

    def lifetime(
        self,
        metric: str,
        entity: EntityLike = None,
        *,
        prefix: Prefix = PREFIX,
        namespace: str = NAMESPACE,
        at: float | None = None,
    ) -> Number:
        """All that was ever counted, if the spec says `lifetime`. Reads 2 keys."""
        return self._call(
            _LIFETIME, _lifetime(metric, entity, prefix=prefix, namespace=namespace, at=at)
        )

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
        """Counts all operations without asking. With buckets reads 1 key and writes 2 for
        each.
        """
        return self._call(
            _LIMIT_INCR,
            _limit_incr(
                operations,
                conditions,
                bucket_count,
                algorithm,
                prefix=prefix,
                namespace=namespace,
                at=at,
            ),
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
        """What `try_incr` would say, for the same reads. Writes nothing."""
        return self._call(
            _PEEK,
            _peek(
                operations,
                conditions,
                bucket_count,
                algorithm,
                prefix=prefix,
                namespace=namespace,
                at=at,
            ),
        )

    def prometheus(
        self,
        openmetrics: bool = False,
        *,
        prefix: Prefix | None = None,
        namespace: str = NAMESPACE,
        at: float | None = None,
    ) -> str:
        """What specs say to `expose`, of one prefix or of all, as text. Reads what it shows."""
        return self._call(
            _PROMETHEUS, _prometheus(openmetrics, prefix=prefix, namespace=namespace, at=at)
        )

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
        """Total and rates over `latest` seconds, or a range. Reads 1 key for each bucket."""
        return self._call(
            _RATE,
            _rate(
                metric,
                entity,
                latest,
                start,
                end,
                future,
                prefix=prefix,
                namespace=namespace,
                at=at,
            ),
        )

    def rates(
        self,
        queries: Sequence[RateQuery | dict[str, Any]],
        *,
        prefix: Prefix = PREFIX,
        namespace: str = NAMESPACE,
        at: float | None = None,
    ) -> list[Rate]:
        """Several rates of one snapshot. Reads as `rate` does for each."""
        return self._call(_RATES, _rates(queries, prefix=prefix, namespace=namespace, at=at))

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
        """Notes a value of a distribution. Reads and writes 1 key for each sequence."""
        return self._call(
            _RECORD,
            _record(metric, entity, value, count, prefix=prefix, namespace=namespace, at=at),
        )

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
            _REQUIRE,
            _require(
                operations,
                conditions,
                bucket_count,
                algorithm,
                prefix=prefix,
                namespace=namespace,
                at=at,
            ),
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
        """Deletes all that is stored of `entities`, in `metrics` or in all under the prefix."""
        return self._call(
            _RESET, _reset(entities, metrics, prefix=prefix, namespace=namespace, at=at)
        )

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
        """Values for a plot, one for each `step` from `start` to `end`."""
        return self._call(
            _SERIES,
            _series(
                metric, entity, start, end, step, value, prefix=prefix, namespace=namespace, at=at
            ),
        )

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
        """Takes a sample of a gauge. Reads 2 keys, writes 1, and both for each sequence."""
        return self._call(
            _SET, _set(metric, entity, value, prefix=prefix, namespace=namespace, at=at)
        )

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
        """GCRA as redis-cell has it, `count` in `period` seconds, with its five integers."""
        return self._call(
            _THROTTLE,
            _throttle(
                key, max_burst, count, period, quantity, prefix=prefix, namespace=namespace, at=at
            ),
        )

    def top(
        self,
        metric: str,
        latest: float | None = None,
        start: float | None = None,
        end: float | None = None,
        n: int = 10,
        scope: str = "local",
        *,
        prefix: Prefix = PREFIX,
        namespace: str = NAMESPACE,
        at: float | None = None,
    ) -> list[TopEntity]:
        """The `n` entities with the highest totals. Scans the buckets of the range."""
        return self._call(
            _TOP,
            _top(metric, latest, start, end, n, scope, prefix=prefix, namespace=namespace, at=at),
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
            _TRY_INCR,
            _try_incr(
                operations,
                conditions,
                bucket_count,
                algorithm,
                prefix=prefix,
                namespace=namespace,
                at=at,
            ),
        )

    def write(
        self,
        writes: Sequence[Write | dict[str, Any]],
        *,
        prefix: Prefix = PREFIX,
        namespace: str = NAMESPACE,
        at: float | None = None,
    ) -> Written:
        """Makes all writes or none: the flush of a writer."""
        return self._call(_WRITE, _write(writes, prefix=prefix, namespace=namespace, at=at))


class AwaitedMetrics(AwaitFace):
    """The operations of `Metrics`, each a coroutine."""

    async def add(
        self,
        metric: str,
        entity: EntityLike = None,
        delta: Number = 1,
        *,
        prefix: Prefix = PREFIX,
        namespace: str = NAMESPACE,
        at: float | None = None,
    ) -> None:
        """Takes a sample of a gauge that is `delta` above the last one. Costs 1 read more."""
        return await self._call(
            _ADD, _add(metric, entity, delta, prefix=prefix, namespace=namespace, at=at)
        )

    async def buckets(
        self,
        metric: str | None = None,
        limit: int = 1000,
        after: str | None = None,
        *,
        prefix: Prefix = PREFIX,
        namespace: str = NAMESPACE,
        at: float | None = None,
    ) -> BucketPage:
        """The stored counters of all scopes by their readable keys. Reads 1 key for each."""
        return await self._call(
            _BUCKETS, _buckets(metric, limit, after, prefix=prefix, namespace=namespace, at=at)
        )

    async def define(
        self,
        specs: Specs,
        on_conflict: OnConflict = "refuse",
        *,
        prefix: Prefix = PREFIX,
        namespace: str = NAMESPACE,
        at: float | None = None,
    ) -> dict[str, Metric]:
        """Stores the specs of metrics and returns them normalised, sequences in search order."""
        return await self._call(
            _DEFINE, _define(specs, on_conflict, prefix=prefix, namespace=namespace, at=at)
        )

    async def define_limits(
        self,
        conditions: Conditions,
        bucket_count: int = BUCKET_COUNT,
        algorithm: Algorithm | str = "estimate",
        on_conflict: OnConflict = "refuse",
        *,
        prefix: Prefix = PREFIX,
    ) -> None:
        """Stores the conditions of a limiter, as `define` stores the specs of metrics."""
        return await self._call(
            _DEFINE_LIMITS,
            _define_limits(conditions, bucket_count, algorithm, on_conflict, prefix=prefix),
        )

    async def distribution(
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
        """Quantiles and more of an entity, or of `entities` merged. Reads 1 key for each
        bucket.
        """
        return await self._call(
            _DISTRIBUTION,
            _distribution(
                metric,
                entity,
                latest,
                start,
                end,
                quantiles,
                entities,
                prefix=prefix,
                namespace=namespace,
                at=at,
            ),
        )

    async def gauge(
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
        """Last, min, max, mean and count of a gauge's samples. Reads 1 key for each bucket."""
        return await self._call(
            _GAUGE,
            _gauge(metric, entity, latest, start, end, prefix=prefix, namespace=namespace, at=at),
        )

    async def incr(
        self,
        metric: str,
        entity: EntityLike = None,
        value: Number = 1,
        *,
        prefix: Prefix = PREFIX,
        namespace: str = NAMESPACE,
        at: float | None = None,
    ) -> None:
        """Adds `value` to a counter. Reads 1 key, writes 1 for each sequence."""
        return await self._call(
            _INCR, _incr(metric, entity, value, prefix=prefix, namespace=namespace, at=at)
        )

    async def lifetime(
        self,
        metric: str,
        entity: EntityLike = None,
        *,
        prefix: Prefix = PREFIX,
        namespace: str = NAMESPACE,
        at: float | None = None,
    ) -> Number:
        """All that was ever counted, if the spec says `lifetime`. Reads 2 keys."""
        return await self._call(
            _LIFETIME, _lifetime(metric, entity, prefix=prefix, namespace=namespace, at=at)
        )

    async def limit_incr(
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
        """Counts all operations without asking. With buckets reads 1 key and writes 2 for
        each.
        """
        return await self._call(
            _LIMIT_INCR,
            _limit_incr(
                operations,
                conditions,
                bucket_count,
                algorithm,
                prefix=prefix,
                namespace=namespace,
                at=at,
            ),
        )

    async def peek(
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
        """What `try_incr` would say, for the same reads. Writes nothing."""
        return await self._call(
            _PEEK,
            _peek(
                operations,
                conditions,
                bucket_count,
                algorithm,
                prefix=prefix,
                namespace=namespace,
                at=at,
            ),
        )

    async def prometheus(
        self,
        openmetrics: bool = False,
        *,
        prefix: Prefix | None = None,
        namespace: str = NAMESPACE,
        at: float | None = None,
    ) -> str:
        """What specs say to `expose`, of one prefix or of all, as text. Reads what it shows."""
        return await self._call(
            _PROMETHEUS, _prometheus(openmetrics, prefix=prefix, namespace=namespace, at=at)
        )

    async def rate(
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
        """Total and rates over `latest` seconds, or a range. Reads 1 key for each bucket."""
        return await self._call(
            _RATE,
            _rate(
                metric,
                entity,
                latest,
                start,
                end,
                future,
                prefix=prefix,
                namespace=namespace,
                at=at,
            ),
        )

    async def rates(
        self,
        queries: Sequence[RateQuery | dict[str, Any]],
        *,
        prefix: Prefix = PREFIX,
        namespace: str = NAMESPACE,
        at: float | None = None,
    ) -> list[Rate]:
        """Several rates of one snapshot. Reads as `rate` does for each."""
        return await self._call(_RATES, _rates(queries, prefix=prefix, namespace=namespace, at=at))

    async def record(
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
        """Notes a value of a distribution. Reads and writes 1 key for each sequence."""
        return await self._call(
            _RECORD,
            _record(metric, entity, value, count, prefix=prefix, namespace=namespace, at=at),
        )

    async def require(
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
        return await self._call(
            _REQUIRE,
            _require(
                operations,
                conditions,
                bucket_count,
                algorithm,
                prefix=prefix,
                namespace=namespace,
                at=at,
            ),
        )

    async def reset(
        self,
        entities: Sequence[EntityLike] | None = None,
        metrics: Sequence[str] | None = None,
        *,
        prefix: Prefix = PREFIX,
        namespace: str = NAMESPACE,
        at: float | None = None,
    ) -> Deleted:
        """Deletes all that is stored of `entities`, in `metrics` or in all under the prefix."""
        return await self._call(
            _RESET, _reset(entities, metrics, prefix=prefix, namespace=namespace, at=at)
        )

    async def series(
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
        """Values for a plot, one for each `step` from `start` to `end`."""
        return await self._call(
            _SERIES,
            _series(
                metric, entity, start, end, step, value, prefix=prefix, namespace=namespace, at=at
            ),
        )

    async def set(
        self,
        metric: str,
        entity: EntityLike = None,
        value: Number = 0,
        *,
        prefix: Prefix = PREFIX,
        namespace: str = NAMESPACE,
        at: float | None = None,
    ) -> None:
        """Takes a sample of a gauge. Reads 2 keys, writes 1, and both for each sequence."""
        return await self._call(
            _SET, _set(metric, entity, value, prefix=prefix, namespace=namespace, at=at)
        )

    async def throttle(
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
        """GCRA as redis-cell has it, `count` in `period` seconds, with its five integers."""
        return await self._call(
            _THROTTLE,
            _throttle(
                key, max_burst, count, period, quantity, prefix=prefix, namespace=namespace, at=at
            ),
        )

    async def top(
        self,
        metric: str,
        latest: float | None = None,
        start: float | None = None,
        end: float | None = None,
        n: int = 10,
        scope: str = "local",
        *,
        prefix: Prefix = PREFIX,
        namespace: str = NAMESPACE,
        at: float | None = None,
    ) -> list[TopEntity]:
        """The `n` entities with the highest totals. Scans the buckets of the range."""
        return await self._call(
            _TOP,
            _top(metric, latest, start, end, n, scope, prefix=prefix, namespace=namespace, at=at),
        )

    async def try_incr(
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
        return await self._call(
            _TRY_INCR,
            _try_incr(
                operations,
                conditions,
                bucket_count,
                algorithm,
                prefix=prefix,
                namespace=namespace,
                at=at,
            ),
        )

    async def write(
        self,
        writes: Sequence[Write | dict[str, Any]],
        *,
        prefix: Prefix = PREFIX,
        namespace: str = NAMESPACE,
        at: float | None = None,
    ) -> Written:
        """Makes all writes or none: the flush of a writer."""
        return await self._call(_WRITE, _write(writes, prefix=prefix, namespace=namespace, at=at))


class RecordedMetrics(RecordFace):
    """The operations of `Metrics`, kept to be sent together."""

    def add(
        self,
        metric: str,
        entity: EntityLike = None,
        delta: Number = 1,
        *,
        prefix: Prefix = PREFIX,
        namespace: str = NAMESPACE,
        at: float | None = None,
    ) -> Handle[None]:
        """Takes a sample of a gauge that is `delta` above the last one. Costs 1 read more."""
        return self._record(
            _ADD, _add(metric, entity, delta, prefix=prefix, namespace=namespace, at=at)
        )

    def buckets(
        self,
        metric: str | None = None,
        limit: int = 1000,
        after: str | None = None,
        *,
        prefix: Prefix = PREFIX,
        namespace: str = NAMESPACE,
        at: float | None = None,
    ) -> Handle[BucketPage]:
        """The stored counters of all scopes by their readable keys. Reads 1 key for each."""
        return self._record(
            _BUCKETS, _buckets(metric, limit, after, prefix=prefix, namespace=namespace, at=at)
        )

    def define(
        self,
        specs: Specs,
        on_conflict: OnConflict = "refuse",
        *,
        prefix: Prefix = PREFIX,
        namespace: str = NAMESPACE,
        at: float | None = None,
    ) -> Handle[dict[str, Metric]]:
        """Stores the specs of metrics and returns them normalised, sequences in search order."""
        return self._record(
            _DEFINE, _define(specs, on_conflict, prefix=prefix, namespace=namespace, at=at)
        )

    def define_limits(
        self,
        conditions: Conditions,
        bucket_count: int = BUCKET_COUNT,
        algorithm: Algorithm | str = "estimate",
        on_conflict: OnConflict = "refuse",
        *,
        prefix: Prefix = PREFIX,
    ) -> Handle[None]:
        """Stores the conditions of a limiter, as `define` stores the specs of metrics."""
        return self._record(
            _DEFINE_LIMITS,
            _define_limits(conditions, bucket_count, algorithm, on_conflict, prefix=prefix),
        )

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
    ) -> Handle[DistributionReading]:
        """Quantiles and more of an entity, or of `entities` merged. Reads 1 key for each
        bucket.
        """
        return self._record(
            _DISTRIBUTION,
            _distribution(
                metric,
                entity,
                latest,
                start,
                end,
                quantiles,
                entities,
                prefix=prefix,
                namespace=namespace,
                at=at,
            ),
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
    ) -> Handle[GaugeReading]:
        """Last, min, max, mean and count of a gauge's samples. Reads 1 key for each bucket."""
        return self._record(
            _GAUGE,
            _gauge(metric, entity, latest, start, end, prefix=prefix, namespace=namespace, at=at),
        )

    def incr(
        self,
        metric: str,
        entity: EntityLike = None,
        value: Number = 1,
        *,
        prefix: Prefix = PREFIX,
        namespace: str = NAMESPACE,
        at: float | None = None,
    ) -> Handle[None]:
        """Adds `value` to a counter. Reads 1 key, writes 1 for each sequence."""
        return self._record(
            _INCR, _incr(metric, entity, value, prefix=prefix, namespace=namespace, at=at)
        )

    def lifetime(
        self,
        metric: str,
        entity: EntityLike = None,
        *,
        prefix: Prefix = PREFIX,
        namespace: str = NAMESPACE,
        at: float | None = None,
    ) -> Handle[Number]:
        """All that was ever counted, if the spec says `lifetime`. Reads 2 keys."""
        return self._record(
            _LIFETIME, _lifetime(metric, entity, prefix=prefix, namespace=namespace, at=at)
        )

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
    ) -> Handle[None]:
        """Counts all operations without asking. With buckets reads 1 key and writes 2 for
        each.
        """
        return self._record(
            _LIMIT_INCR,
            _limit_incr(
                operations,
                conditions,
                bucket_count,
                algorithm,
                prefix=prefix,
                namespace=namespace,
                at=at,
            ),
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
    ) -> Handle[BatchResult]:
        """What `try_incr` would say, for the same reads. Writes nothing."""
        return self._record(
            _PEEK,
            _peek(
                operations,
                conditions,
                bucket_count,
                algorithm,
                prefix=prefix,
                namespace=namespace,
                at=at,
            ),
        )

    def prometheus(
        self,
        openmetrics: bool = False,
        *,
        prefix: Prefix | None = None,
        namespace: str = NAMESPACE,
        at: float | None = None,
    ) -> Handle[str]:
        """What specs say to `expose`, of one prefix or of all, as text. Reads what it shows."""
        return self._record(
            _PROMETHEUS, _prometheus(openmetrics, prefix=prefix, namespace=namespace, at=at)
        )

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
    ) -> Handle[Rate]:
        """Total and rates over `latest` seconds, or a range. Reads 1 key for each bucket."""
        return self._record(
            _RATE,
            _rate(
                metric,
                entity,
                latest,
                start,
                end,
                future,
                prefix=prefix,
                namespace=namespace,
                at=at,
            ),
        )

    def rates(
        self,
        queries: Sequence[RateQuery | dict[str, Any]],
        *,
        prefix: Prefix = PREFIX,
        namespace: str = NAMESPACE,
        at: float | None = None,
    ) -> Handle[list[Rate]]:
        """Several rates of one snapshot. Reads as `rate` does for each."""
        return self._record(_RATES, _rates(queries, prefix=prefix, namespace=namespace, at=at))

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
    ) -> Handle[None]:
        """Notes a value of a distribution. Reads and writes 1 key for each sequence."""
        return self._record(
            _RECORD,
            _record(metric, entity, value, count, prefix=prefix, namespace=namespace, at=at),
        )

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
    ) -> Handle[BatchResult]:
        """Counts all operations, or raises `LimitExceeded`, which undoes the whole
        transaction.
        """
        return self._record(
            _REQUIRE,
            _require(
                operations,
                conditions,
                bucket_count,
                algorithm,
                prefix=prefix,
                namespace=namespace,
                at=at,
            ),
        )

    def reset(
        self,
        entities: Sequence[EntityLike] | None = None,
        metrics: Sequence[str] | None = None,
        *,
        prefix: Prefix = PREFIX,
        namespace: str = NAMESPACE,
        at: float | None = None,
    ) -> Handle[Deleted]:
        """Deletes all that is stored of `entities`, in `metrics` or in all under the prefix."""
        return self._record(
            _RESET, _reset(entities, metrics, prefix=prefix, namespace=namespace, at=at)
        )

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
    ) -> Handle[Series]:
        """Values for a plot, one for each `step` from `start` to `end`."""
        return self._record(
            _SERIES,
            _series(
                metric, entity, start, end, step, value, prefix=prefix, namespace=namespace, at=at
            ),
        )

    def set(
        self,
        metric: str,
        entity: EntityLike = None,
        value: Number = 0,
        *,
        prefix: Prefix = PREFIX,
        namespace: str = NAMESPACE,
        at: float | None = None,
    ) -> Handle[None]:
        """Takes a sample of a gauge. Reads 2 keys, writes 1, and both for each sequence."""
        return self._record(
            _SET, _set(metric, entity, value, prefix=prefix, namespace=namespace, at=at)
        )

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
    ) -> Handle[list[int]]:
        """GCRA as redis-cell has it, `count` in `period` seconds, with its five integers."""
        return self._record(
            _THROTTLE,
            _throttle(
                key, max_burst, count, period, quantity, prefix=prefix, namespace=namespace, at=at
            ),
        )

    def top(
        self,
        metric: str,
        latest: float | None = None,
        start: float | None = None,
        end: float | None = None,
        n: int = 10,
        scope: str = "local",
        *,
        prefix: Prefix = PREFIX,
        namespace: str = NAMESPACE,
        at: float | None = None,
    ) -> Handle[list[TopEntity]]:
        """The `n` entities with the highest totals. Scans the buckets of the range."""
        return self._record(
            _TOP,
            _top(metric, latest, start, end, n, scope, prefix=prefix, namespace=namespace, at=at),
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
    ) -> Handle[BatchResult]:
        """Counts all operations if their conditions allow all of them, none otherwise."""
        return self._record(
            _TRY_INCR,
            _try_incr(
                operations,
                conditions,
                bucket_count,
                algorithm,
                prefix=prefix,
                namespace=namespace,
                at=at,
            ),
        )

    def write(
        self,
        writes: Sequence[Write | dict[str, Any]],
        *,
        prefix: Prefix = PREFIX,
        namespace: str = NAMESPACE,
        at: float | None = None,
    ) -> Handle[Written]:
        """Makes all writes or none: the flush of a writer."""
        return self._record(_WRITE, _write(writes, prefix=prefix, namespace=namespace, at=at))
