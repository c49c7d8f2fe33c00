"""Counters: values that only go up, stored as one number for each bucket, and their rates."""

from collections.abc import Iterator
from typing import Any, Final

from holdfast.call_time import CallTimer
from holdfast.engine.contract import Reader, Transaction, read_counter
from holdfast.errors import BadRange, MetricOverflow, NotACounter, WrongMetricType
from holdfast.keys import pack_int, unpack
from holdfast.metrics.entity import EntityKey, Scoped, suffix_of
from holdfast.metrics.layout import (
    LIFETIMES,
    WINDOW_SUMMARIES,
    Keys,
    bucket_range,
    window_stems,
)
from holdfast.metrics.prometheus import (
    NO_ENTITY,
    Family,
    Sample,
    by_value,
    entities_of,
    labels,
    metric_name,
    number_text,
)
from holdfast.metrics.records import COUNTER, Metric, Number, Rate, Sequence, StoredSpec
from holdfast.metrics.rounding import scaled
from holdfast.metrics.totals import (
    Counts,
    Future,
    Point,
    Span,
    TimeRange,
    first_visible,
    span_of,
    sum_up,
)
from holdfast.metrics.window_summaries import read_numbers

SERIES_VALUES: Final = ("total", "per_second")


class Counter:
    """A counter under a prefix: the beginnings of its keys, computed once."""

    __slots__ = ("_lifetimes", "_name", "_sequences", "_summaries", "metric")

    def __init__(self, keys: Keys, name: str, stored: StoredSpec) -> None:
        metric = stored.metric
        self.metric: Final = metric
        self._name = name
        # Step, stem, and the bucket that was asked for last: mostly it is the next one, too.
        self._sequences: list[list[Any]] = [
            [sequence.time_step, keys.sequence(name, sequence.name), (-1, b"")]
            for sequence in metric.sequences
        ]
        self._lifetimes = keys.entity_key(LIFETIMES, name, b"") if metric.lifetime else None
        self._summaries = (
            None if stored.window is None else keys.entity_key(WINDOW_SUMMARIES, name, b"")
        )

    def add(self, tx: Transaction, suffix: bytes, units: int, at: float) -> None:
        """Counts `units` at `at`.

        Writes 1 key for each sequence and 1 more with `lifetime`; deletes 1 if a limiter keeps
        summaries of these counters.
        """
        if not units:
            return
        try:
            for sequence in self._sequences:
                step, stem, (known, bucket) = sequence
                number = int(at / step)
                if number != known:
                    bucket = stem + pack_int(number)
                    sequence[2] = (number, bucket)
                tx.add(bucket + suffix, units)
            if self._lifetimes is not None:
                tx.add(self._lifetimes + suffix, units)
            if self._summaries is not None:
                tx.delete(self._summaries + suffix)
        except NotACounter as error:
            raise MetricOverflow(f"{self._name!r} would exceed the 64 bits of a counter") from error


def read_counts(
    reader: Reader, stem: bytes, suffix: bytes, first: int, last: int
) -> dict[int, int]:
    """Returns one entity's buckets from `first` to `last`, without empty ones. Reads 1 key each."""
    wanted = [bucket + suffix for bucket in window_stems(stem, first, last)]
    values = reader.get_many(wanted)
    if not all(values):
        present = [(bucket, value) for bucket, value in enumerate(values, first) if value]
        counts = {bucket: read_counter(value) for bucket, value in present}
    else:  # decoding all at once takes a quarter of the time
        units = read_numbers(b"".join(values))  # type: ignore[arg-type]  # no None among them
        counts = dict(zip(range(first, last + 1), units, strict=True))
    if not all(counts.values()):
        return {bucket: units for bucket, units in counts.items() if units}
    return counts


def span_counts(
    reader: Reader, keys: Keys, name: str, span: Span, suffix: bytes, now: float
) -> dict[int, int]:
    """Returns one entity's buckets of `span` that have not expired. Reads 1 key for each bucket."""
    if span.is_empty:
        return {}
    first = max(span.first, first_visible(span.sequence, now))
    return read_counts(reader, keys.sequence(name, span.sequence.name), suffix, first, span.last)


def read_buckets(
    reader: Reader,
    keys: Keys,
    name: str,
    sequence: Sequence,
    suffix: bytes,
    first: int,
    last: int,
    now: float,
) -> dict[int, bytes]:
    """Returns the stored values of one entity's buckets that have not expired, ascending.

    Reads 1 key for each.
    """
    stem = keys.sequence(name, sequence.name)
    first = max(first, first_visible(sequence, now))
    wanted = [stem + pack_int(bucket) + suffix for bucket in range(first, last + 1)]
    values = enumerate(reader.get_many(wanted), first)
    return {bucket: value for bucket, value in values if value is not None}


def scan_sequence(
    reader: Reader, stem: bytes, first: int, last: int
) -> Iterator[tuple[int, int | str, tuple[str, ...], bytes]]:
    """Yields bucket, scope, components and value of all entities in some buckets."""
    begin, end = bucket_range(stem, first, last)
    for key, value in reader.scan(begin, end):
        bucket, scope, components = unpack(key, len(stem))
        yield bucket, scope, components, value


# --- totals and rates -------------------------------------------------------------------------


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
    """Returns total and rates over `asked`. Reads 1 key for each bucket of the range."""
    metric.require_type(name, COUNTER)
    check_length(asked)
    span = span_of(metric, asked, now, future)
    counts = span_counts(reader, keys, name, span, suffix_of(entity, namespace), now)
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
    """Returns the total of a span, and whether it is exact."""
    if span.is_empty:
        return scaled(0, metric.resolution), True
    units, exact = sum_up(counts, span.sequence.time_step, span.start, span.end, now)
    return scaled(units, metric.resolution), exact


def read_lifetime(reader: Reader, keys: Keys, name: str, metric: Metric, suffix: bytes) -> Number:
    """Returns the lifetime total. Reads 1 key."""
    metric.require_type(name, COUNTER)
    if not metric.lifetime:
        raise WrongMetricType(
            f"{name!r} keeps no lifetime counter", hint="Add `lifetime: true` to its spec."
        )
    value = reader.get(keys.entity_key(LIFETIMES, name, suffix))
    return scaled(read_counter(value), metric.resolution)


def check_length(asked: TimeRange) -> None:
    if asked.start == asked.end:
        raise BadRange("an empty range has the total 0 and no rate")


def all_totals(
    reader: Reader,
    keys: Keys,
    name: str,
    metric: Metric,
    asked: TimeRange,
    now: float,
    most_buckets: int | None = None,
    timer: CallTimer | None = None,
) -> dict[Scoped, Number]:
    """Returns the totals of all entities of all scopes that are not 0.

    Raises `BadRange` if that takes more than `most_buckets` buckets.
    """
    span = span_of(metric, asked, now)
    if span.is_empty:
        return {}
    first = max(span.first, first_visible(span.sequence, now))
    stem = keys.sequence(name, span.sequence.name)
    counts: dict[Scoped, dict[int, int]] = {}
    found_buckets = scan_sequence(reader, stem, first, span.last)
    for number, (bucket, scope, components, value) in enumerate(found_buckets):
        if number == most_buckets:
            raise BadRange(f"the range has more than {most_buckets} buckets")
        counts.setdefault((scope, components), {})[bucket] = read_counter(value)
        if timer is not None:
            timer.check()
    totals = {}
    for scoped, found in counts.items():
        if total := total_of(metric, found, span, now)[0]:
            totals[scoped] = total
        if timer is not None:
            timer.check()
    return totals


# --- series and exposition --------------------------------------------------------------------


def series_point(
    reader: Reader,
    keys: Keys,
    name: str,
    metric: Metric,
    sequence: Sequence,
    suffix: bytes,
    first: int,
    last: int,
    value: str,
    now: float,
) -> Point:
    """Returns the function that computes a point of a series. Reads 1 key for each bucket."""
    step = sequence.time_step
    counts = read_counts(reader, keys.sequence(name, sequence.name), suffix, first, last)

    def point(begins: float, ends: float) -> Number:
        end = min(ends, now)
        # Only the buckets of the point: a long series would otherwise look at all for each.
        inside = range(int(begins / step), int(end / step) + 1)
        near = {bucket: counts[bucket] for bucket in inside if bucket in counts}
        total = scaled(sum_up(near, step, begins, end, now)[0], metric.resolution)
        return total if value == "total" else total / (ends - begins)

    return point


def family(
    reader: Reader, keys: Keys, name: str, metric: Metric, now: float, timer: CallTimer
) -> Family:
    """Returns a counter's lifetime totals, or without those its rates, for scrapers."""
    stem = metric_name((*keys.prefix, name))
    if metric.lifetime:
        return Family(stem, "counter", metric.help, _lifetimes(reader, keys, name, metric, timer))
    rates = _rates(reader, keys, name, metric, now, timer)
    return Family(f"{stem}_per_second", "gauge", metric.help, rates)


def _lifetimes(
    reader: Reader, keys: Keys, name: str, metric: Metric, timer: CallTimer
) -> list[list[Sample]]:
    found = [
        (scaled(read_counter(value), metric.resolution), scoped)
        for scoped, value in entities_of(reader, keys, LIFETIMES, name, timer)
    ]
    found = found or [(scaled(0, metric.resolution), NO_ENTITY)]
    return [[Sample("_total", labels(*scoped), value)] for value, scoped in by_value(found)]


def _rates(
    reader: Reader, keys: Keys, name: str, metric: Metric, now: float, timer: CallTimer
) -> list[list[Sample]]:
    window = metric.sequences[0].soft_expiry
    asked = TimeRange(max(now - window, 0.0), now)
    totals = all_totals(reader, keys, name, metric, asked, now, timer=timer)
    found = [(total / window, scoped) for scoped, total in totals.items()] or [(0.0, NO_ENTITY)]
    return [
        [Sample("", (*labels(*scoped), ("window", number_text(window))), value)]
        for value, scoped in by_value(found)
    ]
