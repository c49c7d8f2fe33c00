"""The operations of the layer on one transaction.

Each takes `prefix`, one or more strings that identify the caller, `namespace`, the scope of local
entities, and `at`, a time to use instead of the clock, for backfills and tests.
"""

from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from typing import Any, Self

from holdfast.declarations import operation
from holdfast.engine.contract import Transaction
from holdfast.metrics import buckets, distributions, exposition, gauges, registry
from holdfast.metrics.argument_errors import error_for_argument
from holdfast.metrics.conditions import BUCKET_COUNT, Algorithm, Conditions, make_plan
from holdfast.metrics.counters import read_lifetime, read_rate
from holdfast.metrics.entity import EntityLike, Prefix, as_entity, as_prefix, suffix_of
from holdfast.metrics.layout import Keys
from holdfast.metrics.limit_operations import LimitOperations
from holdfast.metrics.limiter import Limiter
from holdfast.metrics.limiter_fast_path import SingleHits
from holdfast.metrics.reader import Reader
from holdfast.metrics.records import (
    BucketPage,
    Deleted,
    DistributionReading,
    GaugeReading,
    Metric,
    Number,
    Rate,
    RateQuery,
    Series,
    TopEntity,
    Write,
    Written,
)
from holdfast.metrics.registry import OnConflict
from holdfast.metrics.scope import NAMESPACE, PREFIX, UNSCOPED
from holdfast.metrics.series import read_series
from holdfast.metrics.specs import Specs, listed, normalize
from holdfast.metrics.top import read_top
from holdfast.metrics.totals import Future, check_buckets, time_range
from holdfast.metrics.writer import Writer
from holdfast.metrics.writes import incr_one, write_all


class Metrics(LimitOperations):
    """Counters in time sequences, gauges, distributions, and rate limits."""

    # Called by the server; see operations.py.
    _error_for_argument = staticmethod(error_for_argument)

    def __init__(self, tx: Transaction) -> None:
        self._tx = tx

    @operation(local=True)
    def scoped(self, *, prefix: Prefix = PREFIX, namespace: str = NAMESPACE) -> Self:
        """Returns these metrics with a prefix, a namespace or both bound for every call.

        A prefix or namespace that is given to a call takes precedence. Writers, readers and
        limiters made from the result have its scope too. Reads and writes nothing.
        """
        scoped = type(self)(self._tx)
        scoped._scope = (self._scope or UNSCOPED).narrowed(prefix, namespace)
        return scoped

    # --- specs --------------------------------------------------------------------------------

    @operation()
    def define(
        self,
        specs: Specs,
        on_conflict: OnConflict = "refuse",
        *,
        prefix: Prefix = PREFIX,
        namespace: str = NAMESPACE,
        at: float | None = None,
    ) -> dict[str, Metric]:
        """Stores the specs of metrics and returns them normalised, sequences in search order.

        Raises if a spec contradicts the stored one; `on_conflict="discard"` deletes the stored data
        instead, at most `MAX_DISCARDED_KEYS` of a metric. Reads 1 key for each metric, writes 2 for
        a new one.
        """
        metrics = normalize(specs)
        keys, _, _ = self._where(prefix, namespace, at)
        registry.define(self._tx, keys, metrics, on_conflict)
        return metrics

    @operation(reads=True)
    def defined(
        self,
        after: str | None = None,
        limit: int = 100,
        *,
        names: Sequence[str] | None = None,
        prefix: Prefix = PREFIX,
        namespace: str = NAMESPACE,
    ) -> dict[str, Metric]:
        """Returns the specs of the metrics under a prefix by name, beginning after `after`.

        Returns at most `limit` of them, in order; with `names`, only those. The conditions of
        limiters are included. Reads 1 key for each.
        """
        keys, _, _ = self._where(prefix, namespace, None)
        if names is not None:
            return registry.defined_among(self._tx, keys, names)
        return registry.page_of_specs(self._tx, keys, after, limit)

    # --- writing ------------------------------------------------------------------------------

    @operation()
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
        """Adds `value` to the counter of an entity, now or at the time `at`.

        Raises `UnknownMetric` if it is not defined. Reads 1 key, writes 1 for each sequence.
        """
        keys, namespace, now = self._where(prefix, namespace, at)
        incr_one(self._tx, keys, namespace, metric, entity, value, now)

    @operation()
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
        """Sets the gauge of an entity to `value`, now or at the time `at`.

        Reads 2 keys, writes 1, and both for each sequence.
        """
        write = Write(metric=metric, entity=entity, value=value, at=at, op="set")
        self._write(write, prefix, namespace)

    @operation()
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
        """Changes the gauge of an entity by `delta`, from its last value or from 0.

        Reads 1 key more than `set`.
        """
        write = Write(metric=metric, entity=entity, value=delta, at=at, op="add")
        self._write(write, prefix, namespace)

    @operation()
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
        """Records that `value` occurred, `count` times, in the distribution of an entity.

        Reads and writes 1 key for each sequence.
        """
        write = Write(metric=metric, entity=entity, value=value, at=at, op="record", count=count)
        self._write(write, prefix, namespace)

    @operation()
    def write(
        self,
        writes: Sequence[Write | dict[str, Any]],
        *,
        prefix: Prefix = PREFIX,
        namespace: str = NAMESPACE,
        at: float | None = None,
    ) -> Written:
        """Applies many writes to metrics, all or none, as a writer does when it flushes.

        Reads 1 key for each metric, and costs what each write does.
        """
        keys, namespace, now = self._where(prefix, namespace, at)
        return Written(written=write_all(self._tx, keys, namespace, writes, now))

    @operation()
    def reset(
        self,
        entities: Sequence[EntityLike] | None = None,
        metrics: Sequence[str] | None = None,
        *,
        prefix: Prefix = PREFIX,
        namespace: str = NAMESPACE,
        at: float | None = None,
    ) -> Deleted:
        """Deletes everything stored about `entities`, in `metrics` or in all under the prefix.

        None means the entity without components; an empty list means no entity.
        Reads and deletes 1 key for each entity in each bucket that any entity has.
        """
        keys, namespace, _ = self._where(prefix, namespace, at)
        found = [None] if entities is None else listed(entities, "entities")
        names = None if metrics is None else listed(metrics, "metrics")
        wanted = [as_entity(entity) for entity in found]
        return Deleted(deleted=buckets.reset(self._tx, keys, names, wanted, namespace))

    # --- reading ------------------------------------------------------------------------------

    @operation(reads=True)
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
        """Returns total and rates of a counter: of the `latest` seconds, or from `start` to `end`.

        The first sequence, in search order, that reaches back to the beginning of the range serves
        it. Reads 1 key for each bucket.
        """
        keys, namespace, now, spec = self._spec(metric, prefix, namespace, at)
        asked = time_range(now, latest, start, end)
        return read_rate(
            self._tx, keys, metric, spec, as_entity(entity), namespace, asked, now, future
        )

    @operation(reads=True)
    def rates(
        self,
        queries: Sequence[RateQuery | dict[str, Any]],
        *,
        prefix: Prefix = PREFIX,
        namespace: str = NAMESPACE,
        at: float | None = None,
    ) -> list[Rate]:
        """Returns several rates from one snapshot. Reads what `rate` does for each.

        Raises `BadRange` if all ranges together have more than `MAX_BUCKETS_PER_CALL` buckets.
        """
        given = {"prefix": prefix, "namespace": namespace, "at": at}
        found: list[Rate] = []
        count = 0
        for query in listed(queries, "queries"):
            found.append(self.rate(**{**given, **RateQuery.arguments(query)}))
            count += found[-1].last_bucket - found[-1].first_bucket + 1
            check_buckets(count)
        return found

    @operation(reads=True)
    def buckets(
        self,
        metric: str | None = None,
        limit: int = 1_000,
        after: str | None = None,
        *,
        prefix: Prefix = PREFIX,
        namespace: str = NAMESPACE,
        at: float | None = None,
    ) -> BucketPage:
        """Returns a page of the stored counters, of one metric or of all, by their readable keys.

        Pass `next` of the page as `after` to continue. Reads 1 key for each.
        """
        keys, _, now = self._where(prefix, namespace, at)
        return buckets.list_buckets(self._tx, keys, metric, limit, after, now)

    @operation(reads=True)
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
        """Returns values for a plot, one for each `step` from `start` to `end`.

        `value` is `total` or `per_second` of a counter, `last`, `min`, `max` or `mean` of a gauge,
        `p50`, `p99.9`, `count`, `mean` and so on of a distribution. Reads 1 key for each bucket.
        """
        keys, namespace, now, spec = self._spec(metric, prefix, namespace, at)
        suffix = suffix_of(as_entity(entity), namespace)
        return read_series(self._tx, keys, metric, spec, suffix, start, end, step, value, now)

    @operation(reads=True)
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
        """Returns the `n` entities with the highest totals in the `latest` seconds, or in a range.

        Scans the buckets of the range.

        Raises `BadRange` if there are more than `most_buckets`, or `MAX_BUCKETS_PER_CALL`.
        """
        keys, namespace, now, spec = self._spec(metric, prefix, namespace, at)
        asked = time_range(now, latest, start, end)
        return read_top(self._tx, keys, metric, spec, asked, n, scope, namespace, now, most_buckets)

    @operation(reads=True)
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

        Reads 1 key for each bucket.
        """
        keys, namespace, now, spec = self._spec(metric, prefix, namespace, at)
        asked = time_range(now, latest, start, end)
        suffix = suffix_of(as_entity(entity), namespace)
        return gauges.read_gauge(self._tx, keys, metric, spec, suffix, asked, now)

    @operation(reads=True)
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
        """Returns `quantiles` of a distribution: of the `latest` seconds, or from `start` to `end`.

        With `entities`, the values of all of them are merged. Reads 1 key for each bucket.
        """
        keys, namespace, now, spec = self._spec(metric, prefix, namespace, at)
        asked = time_range(now, latest, start, end)
        wanted = [entity] if entities is None else listed(entities, "entities")
        suffixes = [suffix_of(as_entity(found), namespace) for found in wanted]
        asked_for = listed(quantiles, "quantiles")
        return distributions.read_distribution(
            self._tx, keys, metric, spec, suffixes, asked, now, asked_for
        )

    @operation(reads=True)
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
        keys, namespace, _, spec = self._spec(metric, prefix, namespace, at)
        return read_lifetime(self._tx, keys, metric, spec, suffix_of(as_entity(entity), namespace))

    @operation(reads=True)
    def prometheus(
        self,
        openmetrics: bool = False,
        *,
        prefix: Prefix | None = None,
        namespace: str = NAMESPACE,
        at: float | None = None,
    ) -> str:
        """Returns the metrics whose spec has `expose`, of one prefix or of all, as Prometheus text.

        After `MAX_SCRAPE_SECONDS` of processor time it names the next metric, and leaves out the
        rest. Reads the buckets of what it shows.
        """
        _, _, now = self._where(PREFIX if prefix is None else prefix, namespace, at)
        if prefix is None and self._scope is not None and self._scope.prefix != PREFIX:
            prefix = self._scope.prefix
        only = None if prefix is None else as_prefix(prefix)
        return exposition.exposition(self._tx, now, prefix=only, openmetrics=openmetrics)

    # --- objects on this transaction ----------------------------------------------------------

    @operation(local=True)
    def writer(
        self,
        specs: Specs,
        prefix: Prefix = PREFIX,
        *,
        namespace: str = NAMESPACE,
        on_conflict: OnConflict = "refuse",
    ) -> Writer:
        """Returns a writer whose flush is part of this transaction."""
        return Writer(
            self,
            self.define(specs, on_conflict, prefix=prefix),
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
        """Returns a reader that sees what this transaction has written."""
        return Reader(
            lambda: nullcontext(self._tx),
            self.define(specs, on_conflict, prefix=prefix),
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
    ) -> Limiter:
        """Returns a limiter whose charges are undone if this transaction fails."""
        self.define_limits(conditions, bucket_count, algorithm, on_conflict, prefix=prefix)
        plan = make_plan(conditions, bucket_count, algorithm)
        bound = self._bound(prefix, namespace)
        hits = SingleHits(lambda work: work(self._tx), self._keys(prefix), plan, bound["namespace"])
        return Limiter(self, plan, **bound, sleep=None, try_one=hits.try_incr)

    # --- pieces -------------------------------------------------------------------------------

    def _bound(self, prefix: Prefix, namespace: str) -> dict[str, Any]:
        """Returns the arguments that writers, readers and limiters have in common."""
        scope = self._scope or UNSCOPED
        return {**scope.arguments(prefix, namespace), "clock": lambda: self._tx.now}

    def _spec(
        self, metric: str, prefix: Prefix, namespace: str, at: float | None
    ) -> tuple[Keys, str, float, Metric]:
        keys, namespace, now = self._where(prefix, namespace, at)
        return keys, namespace, now, registry.stored_spec(self._tx, keys, metric).metric

    def _write(self, write: Write, prefix: Prefix, namespace: str) -> None:
        keys, namespace, now = self._where(prefix, namespace, None)
        write_all(self._tx, keys, namespace, (write,), now)
