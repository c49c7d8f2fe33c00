"""Gauges: values that rise and fall. Each bucket keeps last, min, max, sum and count."""

from typing import Final

import msgspec

from holdfast import expiry
from holdfast.call_time import CallTimer
from holdfast.engine.contract import Reader, Transaction
from holdfast.expiry import Remover
from holdfast.keys import pack, pack_int, unpack
from holdfast.limits import CLOCK_AHEAD_SECONDS, SWEEP_SECONDS
from holdfast.metrics.counters import read_buckets
from holdfast.metrics.layout import LAST_SAMPLES, Keys, keys_of
from holdfast.metrics.prometheus import (
    Family,
    Sample,
    by_value,
    entities_of,
    labels,
    metric_name,
)
from holdfast.metrics.records import (
    GAUGE,
    GaugeCell,
    GaugeReading,
    LastSample,
    Metric,
    Number,
    Sequence,
    StoredSpec,
    decode_spec,
)
from holdfast.metrics.rounding import check_stored, scaled
from holdfast.metrics.totals import (
    Point,
    TimeRange,
    buckets_touching,
    choose_sequence,
    first_visible,
)

LAST: Final = "metrics.last"
SERIES_VALUES: Final = ("last", "min", "max", "mean", "count")

_LOOK_BACK: Final = 256  # buckets that one step of the search for an older sample reads
_encode: Final = msgspec.msgpack.Encoder().encode
_decode_cell: Final = msgspec.msgpack.Decoder(GaugeCell).decode
_decode_last: Final = msgspec.msgpack.Decoder(LastSample).decode


class Gauge:
    """A gauge under a prefix, for writes."""

    __slots__ = ("_keys", "_name", "metric")

    def __init__(self, keys: Keys, name: str, stored: StoredSpec) -> None:
        self.metric: Final = stored.metric
        self._keys = keys
        self._name = name

    def set(self, tx: Transaction, suffix: bytes, units: int, at: float) -> None:
        """Stores a sample. Reads and writes 1 key for each sequence, and 1 more."""
        keys, name, metric = self._keys, self._name, self.metric
        for sequence in metric.sequences:
            bucket = pack_int(int(at / sequence.time_step))
            key = keys.sequence(name, sequence.name) + bucket + suffix
            cell = _with_sample(tx.get(key), units, at)
            check_stored(name, cell.last, cell.sum)
            tx.put(key, _encode(cell))
        _note_last(tx, keys, name, metric, suffix, units, at)

    def add(self, tx: Transaction, suffix: bytes, units: int, at: float) -> None:
        """Stores a sample that is `units` above the last one. Reads 1 key more than a set."""
        last = last_sample(tx, self._keys, self._name, self.metric, suffix, at)
        self.set(tx, suffix, (last.units if last else 0) + units, at)


def last_sample(
    reader: Reader, keys: Keys, name: str, metric: Metric, suffix: bytes, now: float
) -> LastSample | None:
    """Returns the newest sample, unless its buckets have expired everywhere. Reads 1 key."""
    value = reader.get(keys.entity_key(LAST_SAMPLES, name, suffix))
    last = None if value is None else _decode_last(value)
    return last if last and now < _ends(metric, last.time) else None


def read_gauge(
    reader: Reader,
    keys: Keys,
    name: str,
    metric: Metric,
    suffix: bytes,
    asked: TimeRange,
    now: float,
) -> GaugeReading:
    """Returns the reading of a range. Reads 1 key for each bucket, and some before the range."""
    metric.require_type(name, GAUGE)
    sequence = choose_sequence(metric, asked.start, now)
    first, last = buckets_touching(sequence, asked, now)
    cells = read_cells(reader, keys, name, sequence, suffix, first, last, now)
    before = None if cells else last_before(reader, keys, name, sequence, suffix, first, now)
    return reading_of(metric, list(cells.values()), before)


def reading_of(metric: Metric, cells: list[GaugeCell], before: GaugeCell | None) -> GaugeReading:
    """Returns the reading of `cells`, ascending; `before` is the newest of those that are older."""
    newest = cells[-1] if cells else before
    last = None if newest is None else scaled(newest.last, metric.resolution)
    if not cells:
        return GaugeReading(last=last, min=None, max=None, mean=None, count=0)
    count = sum(cell.count for cell in cells)
    return GaugeReading(
        last=last,
        min=scaled(min(cell.min for cell in cells), metric.resolution),
        max=scaled(max(cell.max for cell in cells), metric.resolution),
        mean=sum(cell.sum for cell in cells) * metric.resolution / count,
        count=count,
    )


def read_cells(
    reader: Reader,
    keys: Keys,
    name: str,
    sequence: Sequence,
    suffix: bytes,
    first: int,
    last: int,
    now: float,
) -> dict[int, GaugeCell]:
    """Returns one entity's visible buckets, ascending. Reads 1 key for each."""
    found = read_buckets(reader, keys, name, sequence, suffix, first, last, now)
    return {bucket: _decode_cell(value) for bucket, value in found.items()}


def last_before(
    reader: Reader,
    keys: Keys,
    name: str,
    sequence: Sequence,
    suffix: bytes,
    bucket: int,
    now: float,
) -> GaugeCell | None:
    """Returns the newest visible bucket before `bucket` that has a sample.

    Reads 1 key, and 1 for each bucket that it looks back, from that of the last sample on.
    """
    oldest = first_visible(sequence, now)
    value = reader.get(keys.entity_key(LAST_SAMPLES, name, suffix))
    if value is None:
        return None
    bucket = min(bucket, int(_decode_last(value).time / sequence.time_step) + 1)
    while bucket > oldest:
        begin = max(bucket - _LOOK_BACK, oldest)
        found = read_cells(reader, keys, name, sequence, suffix, begin, bucket - 1, now)
        if found:
            return found[max(found)]
        bucket = begin
    return None


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
    cells = read_cells(reader, keys, name, sequence, suffix, first, last, now)
    seen = None
    if value == "last":
        seen = last_before(reader, keys, name, sequence, suffix, first, now)

    def point(begins: float, ends: float) -> Number | None:
        nonlocal seen  # points come in the order of time: a value lasts until the next
        first, last = buckets_touching(sequence, TimeRange(begins, ends), now)
        near = [cells[bucket] for bucket in range(first, last + 1) if bucket in cells]
        reading = reading_of(metric, near, seen)
        seen = near[-1] if near else seen
        found: Number | None = getattr(reading, value)
        return found

    return point


def family(
    reader: Reader, keys: Keys, name: str, metric: Metric, now: float, timer: CallTimer
) -> Family:
    """Returns the last samples of a gauge for scrapers."""
    found = []
    for scoped, value in entities_of(reader, keys, LAST_SAMPLES, name, timer):
        last = _decode_last(value)
        if now < _ends(metric, last.time):
            found.append((scaled(last.units, metric.resolution), scoped))
    series = [[Sample("", labels(*scoped), value)] for value, scoped in by_value(found)]
    return Family(metric_name((*keys.prefix, name)), "gauge", metric.help, series)


# --- pieces -----------------------------------------------------------------------------------


def _with_sample(value: bytes | None, units: int, at: float) -> GaugeCell:
    if value is None:
        return GaugeCell(at, units, units, units, units, 1)
    cell = _decode_cell(value)
    is_newest = at >= cell.time  # of equal times the later write wins
    return GaugeCell(
        at if is_newest else cell.time,
        units if is_newest else cell.last,
        min(cell.min, units),
        max(cell.max, units),
        cell.sum + units,
        cell.count + 1,
    )


def _note_last(
    tx: Transaction, keys: Keys, name: str, metric: Metric, suffix: bytes, units: int, at: float
) -> None:
    key = keys.entity_key(LAST_SAMPLES, name, suffix)
    value = tx.get(key)
    if value is not None and _is_later(_decode_last(value).time, at, tx.now):
        return
    tx.put(key, _encode(LastSample(at, units)))
    if value is None:
        _schedule(tx, keys, name, suffix, _ends(metric, at))


def _is_later(kept: float, at: float, now: float) -> bool:
    """Returns whether the kept sample is the newer one.

    A sample of the present replaces one that was written while the clock was ahead: that one could
    otherwise remain the last sample for years.
    """
    present = now + CLOCK_AHEAD_SECONDS
    return kept > at and not (kept > present >= at)


def _ends(metric: Metric, at: float) -> float:
    """Returns when the last bucket that holds a sample of `at` expires."""
    return max(
        (int(at / sequence.time_step) + 1) * sequence.time_step + sequence.hard_expiry
        for sequence in metric.sequences
    )


def _schedule(tx: Transaction, keys: Keys, name: str, suffix: bytes, at: float) -> None:
    # Not at once, even if a caller's own time (`at`) is far behind the store's clock.
    at = max(at, tx.now + SWEEP_SECONDS)
    expiry.schedule(tx, at + 0.001, LAST, pack(keys.prefix, name, suffix))  # rounded to ms there


def remove_last(tx: Transaction, subject: bytes) -> bool:
    """Deletes a last sample once its buckets are gone; a newer one is scheduled for later."""
    prefix, name, suffix = unpack(subject)
    keys = keys_of(tx.space, prefix)
    key = keys.entity_key(LAST_SAMPLES, name, suffix)
    value, spec = tx.get(key), tx.get(keys.spec(name))
    if value is None:
        return True
    ends = 0.0 if spec is None else _ends(decode_spec(spec).metric, _decode_last(value).time)
    if ends <= tx.now:
        tx.delete(key)
    else:
        _schedule(tx, keys, name, suffix, ends)
    return True


REMOVERS: Final[dict[str, Remover]] = {LAST: remove_last}
