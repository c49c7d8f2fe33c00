"""Series for plots: one value for each point of time, aligned to the epoch."""

import math
from typing import Any

from holdfast.engine.contract import Reader
from holdfast.error_text import shown
from holdfast.errors import BadRange, WrongMetricType
from holdfast.limits import MAX_BUCKETS, MAX_SERIES_POINTS, MIN_TIME_STEP
from holdfast.metrics.kinds import KINDS
from holdfast.metrics.layout import Keys
from holdfast.metrics.records import Metric, Number, Sequence, Series
from holdfast.metrics.specs import is_positive
from holdfast.metrics.totals import (
    Point,
    TimeRange,
    choose_sequence,
    first_visible,
    time_range,
)


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
    """Returns values from `start` to `end`. Reads 1 key for each bucket in between."""
    asked = time_range(now, start=start, end=end)
    sequence = choose_sequence(metric, asked.start, now)
    width = sequence.time_step if step is None else step
    if not is_positive(width) or width < MIN_TIME_STEP:
        raise BadRange(
            f"`step` must be a number of seconds, at least {MIN_TIME_STEP}, not {shown(step)}"
        )
    first, end_bucket = int(asked.start / width), math.ceil(asked.end / width)
    if end_bucket - first > MAX_SERIES_POINTS:
        raise BadRange(
            f"the series has {end_bucket - first} points, at most {MAX_SERIES_POINTS} are allowed",
            hint="Use a larger step.",
        )
    whole = TimeRange(first * width, min(end_bucket * width, now))
    point = _point(reader, keys, name, metric, sequence, suffix, whole, value, now)
    values: list[Number | None] = []
    partial: list[bool] = []
    for number in range(first, end_bucket):
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
    """Returns the function that computes a point, from buckets that are read once."""
    kind = KINDS[metric.type]
    if not kind.has_series_value(value):
        raise WrongMetricType(
            f"a {metric.type} has no {value!r}", hint=f"It has {kind.series_values}."
        )
    step = sequence.time_step
    if whole.start >= whole.end:
        whole = TimeRange(whole.start, whole.start)
    first, last = int(whole.start / step), int(whole.end / step)
    first = max(first, first_visible(sequence, now))
    if last - first >= MAX_BUCKETS:
        raise BadRange(f"the series reads {last - first + 1} buckets, at most {MAX_BUCKETS} fit")
    return kind.series_point(reader, keys, name, metric, sequence, suffix, first, last, value, now)
