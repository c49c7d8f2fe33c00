"""Series for plots: one value for each point of time, aligned to the epoch."""

import math
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from holdfast.engine.contract import Reader
from holdfast.error_text import shown
from holdfast.errors import BadRange, WrongMetricType
from holdfast.limits import MAX_BUCKETS, MAX_SERIES_POINTS, MIN_TIME_STEP
from holdfast.metrics import buckets, distributions, gauges
from holdfast.metrics.layout import Keys
from holdfast.metrics.records import GaugeCell, Metric, Number, Sequence, Series
from holdfast.metrics.rounding import scaled
from holdfast.metrics.specs import is_positive
from holdfast.metrics.totals import (
    TimeRange,
    choose_sequence,
    first_visible,
    sum_up,
    time_range,
    touching,
)

Point: TypeAlias = Callable[[float, float], Number | None]  # the value from one time to another

_OF_TYPE: Final = {
    "counter": ("total", "per_second"),
    "gauge": ("last", "min", "max", "mean", "count"),
    "distribution": ("count", "sum", "min", "max", "mean"),
}


def read_series(
    reader: Reader,
    keys: Keys,
    name: str,
    metric: Metric,
    suffix: bytes,
    start: Any,
    end: Any,
    step: Any,
    value: str,
    now: float,
) -> Series:
    """Values from `start` to `end`. Reads 1 key for each bucket in between."""
    asked = time_range(now, start=start, end=end)
    sequence = choose_sequence(metric, asked.start, now)
    width = sequence.time_step if step is None else step
    if not is_positive(width) or width < MIN_TIME_STEP:
        raise BadRange(
            f"`step` is a number of seconds, at least {MIN_TIME_STEP}, not {shown(step)}"
        )
    first, behind = int(asked.start / width), math.ceil(asked.end / width)
    if behind - first > MAX_SERIES_POINTS:
        raise BadRange(
            f"the series has {behind - first} points, at most {MAX_SERIES_POINTS} are possible",
            hint="Use a larger step.",
        )
    whole = TimeRange(first * width, min(behind * width, now))
    point = _point(reader, keys, name, metric, sequence, suffix, whole, value, now)
    values: list[Number | None] = []
    partial: list[bool] = []
    for number in range(first, behind):
        begins, ends = number * width, (number + 1) * width
        known = now - sequence.hard_expiry <= begins < now
        values.append(point(begins, ends) if known else None)
        partial.append(known and now < ends)
    return Series(
        start=first * width, step=width, sequence=sequence.name, values=values, partial=partial
    )


def _point(
    reader: Reader,
    keys: Keys,
    name: str,
    metric: Metric,
    sequence: Sequence,
    suffix: bytes,
    whole: TimeRange,
    value: str,
    now: float,
) -> Point:
    """The function that gives a point its value, from buckets that are read once."""
    quantile = _quantile(metric, value)
    if value not in _OF_TYPE[metric.type] and quantile is None:
        raise WrongMetricType(
            f"a {metric.type} has no {value!r}",
            hint=f"It has {', '.join(_OF_TYPE[metric.type])}"
            + (" and quantiles such as p50." if metric.type == "distribution" else "."),
        )
    step = sequence.time_step
    if whole.start >= whole.end:
        whole = TimeRange(whole.start, whole.start)
    first, last = int(whole.start / step), int(whole.end / step)
    first = max(first, first_visible(sequence, now))
    if last - first >= MAX_BUCKETS:
        raise BadRange(f"the series reads {last - first + 1} buckets, at most {MAX_BUCKETS} fit")
    if metric.type == "counter":
        stem = keys.sequence(name, sequence.name)
        counts = buckets.read_counts(reader, stem, suffix, first, last)
        return _counter_point(metric, step, counts, value, now)
    if metric.type == "gauge":
        cells = gauges.read_cells(reader, keys, name, sequence, suffix, first, last, now)
        before = None
        if value == "last":
            before = gauges.last_before(reader, keys, name, sequence, suffix, first, now)
        return _gauge_point(metric, sequence, cells, before, value, now)
    sketches = distributions.read_cells(reader, keys, name, sequence, suffix, first, last, now)
    return _distribution_point(metric, sequence, sketches, value, quantile, now)


def _counter_point(
    metric: Metric, step: Number, counts: dict[int, int], value: str, now: float
) -> Point:
    def point(begins: float, ends: float) -> Number:
        end = min(ends, now)
        # Only the buckets of the point: a long series would otherwise look at all for each.
        inside = range(int(begins / step), int(end / step) + 1)
        near = {bucket: counts[bucket] for bucket in inside if bucket in counts}
        total = scaled(sum_up(near, step, begins, end, now)[0], metric.resolution)
        return total if value == "total" else total / (ends - begins)

    return point


def _gauge_point(
    metric: Metric,
    sequence: Sequence,
    cells: dict[int, GaugeCell],
    before: GaugeCell | None,
    value: str,
    now: float,
) -> Point:
    seen = before

    def point(begins: float, ends: float) -> Number | None:
        nonlocal seen  # points come in the order of time, so what was last seen carries on
        first, last = touching(sequence, TimeRange(begins, ends), now)
        near = [cells[bucket] for bucket in range(first, last + 1) if bucket in cells]
        reading = gauges.reading_of(metric, near, seen)
        seen = near[-1] if near else seen
        found: Number | None = getattr(reading, value)
        return found

    return point


def _distribution_point(
    metric: Metric,
    sequence: Sequence,
    cells: dict[int, Any],
    value: str,
    quantile: float | None,
    now: float,
) -> Point:
    def point(begins: float, ends: float) -> Number | None:
        first, last = touching(sequence, TimeRange(begins, ends), now)
        near = [cells[bucket] for bucket in range(first, last + 1) if bucket in cells]
        reading = distributions.reading_of(metric, near, [] if quantile is None else [quantile])
        if quantile is not None:
            return reading.quantiles[repr(quantile)]
        found: Number | None = getattr(reading, value)
        return found

    return point


def _quantile(metric: Metric, value: Any) -> float | None:
    """The quantile that `p99.9` means, or None if `value` is none."""
    if metric.type != "distribution" or not isinstance(value, str) or value[:1] != "p":
        return None
    try:
        percent = float(value[1:])
    except ValueError:
        return None
    if not 0 <= percent <= 100:
        raise BadRange(f"{value!r} is no percentile, they go from p0 to p100")
    return percent / 100
