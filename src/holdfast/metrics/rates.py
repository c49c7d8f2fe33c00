"""Totals and rates of a range: the arithmetic of `totals` on what is stored."""

from holdfast.engine.contract import Reader, read_counter
from holdfast.errors import BadRange, WrongMetricType
from holdfast.metrics import buckets
from holdfast.metrics.entity import EntityKey, suffix_of
from holdfast.metrics.layout import LIFETIMES, Keys
from holdfast.metrics.records import Metric, Number, Rate
from holdfast.metrics.rounding import scaled
from holdfast.metrics.totals import Counts, Future, Span, TimeRange, span_of, sum_up


def read_rate(
    reader: Reader,
    keys: Keys,
    name: str,
    metric: Metric,
    entity: EntityKey,
    namespace: str,
    asked: TimeRange,
    now: float,
    future: Future,
) -> Rate:
    """Total and rates over `asked`. Reads 1 key for each bucket of the range."""
    require_type(name, metric, "counter")
    check_length(asked)
    span = span_of(metric, asked, now, future)
    counts = buckets.span_counts(reader, keys, name, span, suffix_of(entity, namespace), now)
    total, exact = total_of(metric, counts, span, now)
    per_second = total / (asked.end - asked.start)
    return Rate(
        total=total,
        per_second=per_second,
        per_minute=per_second * 60,
        per_hour=per_second * 3600,
        per_day=per_second * 86400,
        sequence=span.sequence.name,
        time_step=span.sequence.time_step,
        first_bucket=span.first,
        last_bucket=span.last,
        exact=exact,
    )


def total_of(metric: Metric, counts: Counts, span: Span, now: float) -> tuple[Number, bool]:
    """The total of a span, and whether it is exact."""
    if span.is_empty:
        return scaled(0, metric.resolution), True
    units, exact = sum_up(counts, span.sequence.time_step, span.start, span.end, now)
    return scaled(units, metric.resolution), exact


def read_lifetime(reader: Reader, keys: Keys, name: str, metric: Metric, suffix: bytes) -> Number:
    """All that was ever counted. Reads 1 key."""
    require_type(name, metric, "counter")
    if not metric.lifetime:
        raise WrongMetricType(
            f"{name!r} keeps no lifetime counter", hint="Add `lifetime: true` to its spec."
        )
    value = reader.get(keys.of_entity(LIFETIMES, name, suffix))
    return scaled(read_counter(value), metric.resolution)


def check_length(asked: TimeRange) -> None:
    if asked.start == asked.end:
        raise BadRange("a range of no length has a total, 0, and no rate")


def require_type(name: str, metric: Metric, kind: str) -> None:
    if metric.type != kind:
        raise WrongMetricType(f"{name!r} is a {metric.type}, and a {kind} was expected")
