"""Distributions: a sketch in each bucket of each sequence, merged when it is read."""

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from holdfast.engine.contract import Reader, Transaction
from holdfast.keys import pack_int
from holdfast.metrics import sketches
from holdfast.metrics.layout import LIFETIMES, Keys
from holdfast.metrics.rates import require_type
from holdfast.metrics.records import (
    DistributionReading,
    LifetimeSum,
    Metric,
    SketchCell,
)
from holdfast.metrics.records import Sequence as BucketSequence
from holdfast.metrics.rounding import check_stored
from holdfast.metrics.totals import TimeRange, choose_sequence, first_visible, touching

QUANTILES: Final = (0.5, 0.9, 0.99)

_encode: Final = msgspec.msgpack.Encoder().encode
_decode_lifetime: Final = msgspec.msgpack.Decoder(LifetimeSum).decode
decode_cell: Final = msgspec.msgpack.Decoder(SketchCell).decode


def record(
    tx: Transaction,
    keys: Keys,
    name: str,
    metric: Metric,
    suffix: bytes,
    value: float,
    count: int,
    at: float,
) -> None:
    """Notes that `value` occurred `count` times. Reads and writes 1 key for each sequence."""
    for sequence in metric.sequences:
        bucket = pack_int(int(at / sequence.time_step))
        key = keys.sequence(name, sequence.name) + bucket + suffix
        stored = tx.get(key)
        cell = sketches.EMPTY if stored is None else decode_cell(stored)
        accuracy, max_bins = metric.accuracy, metric.bins
        cell = sketches.with_value(cell, value, count, accuracy, max_bins)
        check_stored(name, cell.count)
        tx.put(key, _encode(cell))
    if metric.lifetime or metric.expose:
        _note_lifetime(tx, keys, name, suffix, value, count)


def read_distribution(
    reader: Reader,
    keys: Keys,
    name: str,
    metric: Metric,
    suffixes: Iterable[bytes],
    asked: TimeRange,
    now: float,
    quantiles: Sequence[float],
) -> DistributionReading:
    """The values of all entities in the buckets that touch the range. Reads 1 key for each."""
    require_type(name, metric, "distribution")
    sequence = choose_sequence(metric, asked.start, now)
    first, last = touching(sequence, asked, now)
    cells = [
        cell
        for suffix in suffixes
        for cell in read_cells(reader, keys, name, sequence, suffix, first, last, now).values()
    ]
    return reading_of(metric, cells, quantiles)


def reading_of(
    metric: Metric, cells: Iterable[SketchCell], quantiles: Sequence[float]
) -> DistributionReading:
    merged = sketches.merged(cells, metric.bins)
    found = {repr(q): sketches.quantile(merged, q, metric.accuracy) for q in quantiles}
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


def read_cells(
    reader: Reader,
    keys: Keys,
    name: str,
    sequence: BucketSequence,
    suffix: bytes,
    first: int,
    last: int,
    now: float,
) -> dict[int, SketchCell]:
    """One entity's visible buckets, ascending. Reads 1 key for each."""
    stem = keys.sequence(name, sequence.name)
    first = max(first, first_visible(sequence, now))
    wanted = [stem + pack_int(bucket) + suffix for bucket in range(first, last + 1)]
    return {
        bucket: decode_cell(value)
        for bucket, value in enumerate(reader.get_many(wanted), first)
        if value is not None
    }


def read_lifetime(value: bytes) -> LifetimeSum:
    return _decode_lifetime(value)


def _note_lifetime(
    tx: Transaction, keys: Keys, name: str, suffix: bytes, value: float, count: int
) -> None:
    key = keys.of_entity(LIFETIMES, name, suffix)
    stored = tx.get(key)
    old = LifetimeSum(0, 0.0) if stored is None else _decode_lifetime(stored)
    check_stored(name, old.count + count)
    tx.put(key, _encode(LifetimeSum(old.count + count, old.sum + value * count)))
