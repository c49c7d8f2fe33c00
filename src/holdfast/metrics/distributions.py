"""Distributions: a sketch in each bucket of each sequence, merged when it is read."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from holdfast.call_time import CallTimer
from holdfast.engine.contract import Reader, Transaction
from holdfast.errors import BadRange
from holdfast.keys import pack_int
from holdfast.metrics import sketches
from holdfast.metrics.call_timers import timer_of_sketches
from holdfast.metrics.counters import read_buckets, scan_sequence
from holdfast.metrics.entity import Scoped
from holdfast.metrics.layout import LIFETIMES, Keys
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
from holdfast.metrics.records import (
    DISTRIBUTION,
    DistributionReading,
    LifetimeSum,
    Metric,
    Number,
    SketchCell,
    StoredSpec,
)
from holdfast.metrics.records import Sequence as BucketSequence
from holdfast.metrics.rounding import check_stored
from holdfast.metrics.totals import (
    Point,
    TimeRange,
    buckets_touching,
    check_buckets,
    choose_sequence,
    first_visible,
)

QUANTILES: Final = (0.5, 0.9, 0.99)
SERIES_VALUES: Final = ("count", "sum", "min", "max", "mean")

_encode: Final = msgspec.msgpack.Encoder().encode
_decode_lifetime: Final = msgspec.msgpack.Decoder(LifetimeSum).decode
_decode_cell: Final = msgspec.msgpack.Decoder(SketchCell).decode


class Distribution:
    """A distribution under a prefix, for writes."""

    __slots__ = ("_keys", "_name", "metric")

    def __init__(self, keys: Keys, name: str, stored: StoredSpec) -> None:
        self.metric: Final = stored.metric
        self._keys = keys
        self._name = name

    def record(self, tx: Transaction, suffix: bytes, value: float, count: int, at: float) -> None:
        """Records that `value` occurred `count` times. Reads and writes 1 key per sequence."""
        keys, name, metric = self._keys, self._name, self.metric
        for sequence in metric.sequences:
            bucket = pack_int(int(at / sequence.time_step))
            key = keys.sequence(name, sequence.name) + bucket + suffix
            stored = tx.get(key)
            cell = sketches.EMPTY if stored is None else _decode_cell(stored)
            cell = sketches.with_value(cell, value, count, metric.accuracy, metric.bins)
            check_stored(name, cell.count)
            tx.put(key, _encode(cell))
        if metric.lifetime or metric.expose:
            _note_lifetime(tx, keys, name, suffix, value, count)


def read_distribution(
    reader: Reader,
    keys: Keys,
    name: str,
    metric: Metric,
    suffixes: Sequence[bytes],
    asked: TimeRange,
    now: float,
    quantiles: Sequence[float],
) -> DistributionReading:
    """Returns the reading of all entities together. Reads 1 key for each bucket of each."""
    metric.require_type(name, DISTRIBUTION)
    sequence = choose_sequence(metric, asked.start, now)
    first, last = buckets_touching(sequence, asked, now)
    check_buckets(len(suffixes) * (last - first + 1))
    # Decoded one after the other, since sketches may be large.
    cells = (
        _decode_cell(value)
        for suffix in suffixes
        for value in read_buckets(reader, keys, name, sequence, suffix, first, last, now).values()
    )
    return reading_of(metric, cells, quantiles, timer_of_sketches())


def reading_of(
    metric: Metric, cells: Iterable[SketchCell], quantiles: Sequence[float], timer: CallTimer
) -> DistributionReading:
    merged = sketches.merged(cells, metric.bins, timer)
    found = {}
    for q in quantiles:
        found[repr(q)] = sketches.quantile(merged, q, metric.accuracy)
        timer.check()
    if merged.count == 0:
        return DistributionReading(
            count=0, sum=None, min=None, max=None, mean=None, quantiles=found
        )
    return DistributionReading(
        count=merged.count,
        sum=merged.sum,
        min=merged.min,
        max=merged.max,
        mean=merged.sum / merged.count,
        quantiles=found,
    )


def conflict(name: str, old: Metric, new: Metric) -> str | None:
    """Returns why values of the new spec can't be added to those of the old one."""
    if old.accuracy == new.accuracy:
        return None
    return f"{name!r} is stored with a relative accuracy of {old.accuracy}, not {new.accuracy}"


# --- series and exposition --------------------------------------------------------------------


def has_series_value(value: Any) -> bool:
    """Returns whether a series can show `value`: one of the names, or a quantile such as p99."""
    return value in SERIES_VALUES or _quantile(value) is not None


def series_point(
    reader: Reader,
    keys: Keys,
    name: str,
    metric: Metric,
    sequence: BucketSequence,
    suffix: bytes,
    first: int,
    last: int,
    value: str,
    now: float,
) -> Point:
    """Returns the function that computes a point of a series. Reads 1 key for each bucket."""
    quantile = _quantile(value)
    cells = read_buckets(reader, keys, name, sequence, suffix, first, last, now)
    timer = timer_of_sketches()

    def point(begins: float, ends: float) -> Number | None:
        first, last = buckets_touching(sequence, TimeRange(begins, ends), now)
        # Decoded for each point: all of them decoded could be many times as large.
        near = (_decode_cell(cells[each]) for each in range(first, last + 1) if each in cells)
        reading = reading_of(metric, near, [] if quantile is None else [quantile], timer)
        if quantile is not None:
            return reading.quantiles[repr(quantile)]
        found: Number | None = getattr(reading, value)
        return found

    return point


def _quantile(value: Any) -> float | None:
    """Returns the quantile that a text such as `p99.9` names, or None."""
    if not isinstance(value, str) or value[:1] != "p":
        return None
    try:
        percent = float(value[1:])
    except ValueError:
        return None
    if not 0 <= percent <= 100:
        raise BadRange(f"{value!r} is not a percentile: they go from p0 to p100")
    return percent / 100


def family(
    reader: Reader, keys: Keys, name: str, metric: Metric, now: float, timer: CallTimer
) -> Family:
    """Returns quantiles, sum and count of a distribution for scrapers."""
    series = _summaries(reader, keys, name, metric, now, timer)
    return Family(metric_name((*keys.prefix, name)), "summary", metric.help, series)


def _summaries(
    reader: Reader, keys: Keys, name: str, metric: Metric, now: float, timer: CallTimer
) -> list[list[Sample]]:
    cells = _window_cells(reader, keys, name, metric, now, timer)
    lifetimes = {
        scoped: _decode_lifetime(value)
        for scoped, value in entities_of(reader, keys, LIFETIMES, name, timer)
    }
    if not lifetimes:
        base = labels(*NO_ENTITY)
        return [[Sample("_sum", base, 0), Sample("_count", base, 0)]]
    series = []
    for _, scoped in by_value([(life.count, scoped) for scoped, life in lifetimes.items()]):
        merged = sketches.merged(cells.get(scoped, ()), metric.bins, timer)
        base = labels(*scoped)
        samples = []
        for q in QUANTILES:
            value = sketches.quantile(merged, q, metric.accuracy)
            if value is not None:
                samples.append(Sample("", (*base, ("quantile", number_text(q))), value))
        samples.append(Sample("_sum", base, lifetimes[scoped].sum))
        samples.append(Sample("_count", base, lifetimes[scoped].count))
        series.append(samples)
    return series


def _window_cells(
    reader: Reader, keys: Keys, name: str, metric: Metric, now: float, timer: CallTimer
) -> dict[Scoped, list[SketchCell]]:
    """Returns the sketches of the first sequence's soft expiry, by entity."""
    sequence = metric.sequences[0]
    asked = TimeRange(max(now - sequence.soft_expiry, 0.0), now)
    first, last = buckets_touching(sequence, asked, now)
    first = max(first, first_visible(sequence, now))
    found: dict[Scoped, list[SketchCell]] = {}
    stem = keys.sequence(name, sequence.name)
    for _, scope, components, value in scan_sequence(reader, stem, first, last):
        found.setdefault((scope, components), []).append(_decode_cell(value))
        timer.check()
    return found


def _note_lifetime(
    tx: Transaction, keys: Keys, name: str, suffix: bytes, value: float, count: int
) -> None:
    key = keys.entity_key(LIFETIMES, name, suffix)
    stored = tx.get(key)
    old = LifetimeSum(0, 0.0) if stored is None else _decode_lifetime(stored)
    check_stored(name, old.count + count)
    tx.put(key, _encode(LifetimeSum(old.count + count, old.sum + value * count)))
