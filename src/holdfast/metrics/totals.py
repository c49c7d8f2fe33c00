"""The arithmetic of reads: which sequence answers a range, and the total of its buckets.

Nothing here touches a store, so a limiter, a reader, a series and a top list count in the same way.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from holdfast.error_text import shown
from holdfast.errors import BadRange
from holdfast.limits import MAX_AT, MAX_BUCKETS, MAX_BUCKETS_PER_CALL
from holdfast.metrics.records import Metric, Number, Sequence

Future: TypeAlias = Literal["clamp", "extrapolate"]
Point: TypeAlias = Callable[[float, float], Number | None]  # the value from one time to another
Counts: TypeAlias = Mapping[int, int]  # units by bucket, ascending, without zeros

FUTURES: Final = ("clamp", "extrapolate")

_END_OF_TIME: Final = 1e15  # beyond, a bucket's number would leave the 64 bits


class TimeRange(NamedTuple):
    """A stretch of time, as it was asked for."""

    start: float
    end: float


class Span(NamedTuple):
    """The part of one sequence that a range is read from."""

    sequence: Sequence
    start: float
    end: float  # clamped to now, unless the future is extrapolated
    first: int
    last: int
    is_empty: bool  # nothing of the range is before now, or it has no length


def check_time(at: Any) -> float:
    """Returns `at` if it is a time between 1970 and the year 9999; raises otherwise."""
    if isinstance(at, bool) or not isinstance(at, int | float) or not 0 <= at <= MAX_AT:
        raise BadRange(
            f"a time must be a number of seconds from 0 to {MAX_AT:.0f}, not {shown(at)}"
        )
    return float(at)


def time_range(now: float, latest: Any = None, start: Any = None, end: Any = None) -> TimeRange:
    """Returns the range that `latest`, or `start` and `end`, ask for.

    >>> time_range(1000.0, latest=60)
    TimeRange(start=940.0, end=1000.0)
    """
    if latest is not None:
        if start is not None or end is not None:
            raise BadRange("give either `latest`, or `start` and `end`, not both")
        if isinstance(latest, bool) or not isinstance(latest, int | float) or not latest >= 0:
            raise BadRange(f"`latest` must be a number of seconds, 0 or more, not {shown(latest)}")
        if latest == math.inf:
            raise BadRange("`latest` is a finite number of seconds")
        return TimeRange(now - latest if latest < now else 0.0, now)
    if start is None or end is None:
        raise BadRange("give `latest`, or `start` and `end`")
    found = TimeRange(_bound(start), _bound(end))
    if found.start > found.end:
        raise BadRange(f"a range starts at {shown(start)} and ends earlier, at {shown(end)}")
    return found


def _bound(moment: Any) -> float:
    """Returns a checked bound; a range may reach past the year 9999, where nothing is stored."""
    if isinstance(moment, bool) or not isinstance(moment, int | float):
        raise BadRange(f"a range starts and ends at numbers of seconds, not at {shown(moment)}")
    if not 0 <= moment <= _END_OF_TIME:
        raise BadRange(f"a range starts and ends at finite times from 0 on, not at {shown(moment)}")
    return float(moment)


def choose_sequence(metric: Metric, start: float, now: float) -> Sequence:
    """Returns the first sequence that reaches back to `start`, else the last: it has the most."""
    for sequence in metric.sequences:
        if now - sequence.soft_expiry <= start:
            return sequence
    return metric.sequences[-1]


def span_of(metric: Metric, asked: TimeRange, now: float, future: Future = "clamp") -> Span:
    """Returns the part of a sequence that serves `asked`, up to now unless `future` differs."""
    if future not in FUTURES:
        raise BadRange(f"`future` must be 'clamp' or 'extrapolate', not {shown(future)}")
    sequence = choose_sequence(metric, asked.start, now)
    step = sequence.time_step
    start, end = asked
    is_empty = start == end
    if future == "clamp" and end > now:
        is_empty = is_empty or start >= now
        end = max(now, start)
    first, last = int(start / step), int(end / step)
    if last - first >= MAX_BUCKETS:
        raise BadRange(
            f"the range has {last - first + 1} buckets of {step} seconds, at most {MAX_BUCKETS} "
            "can be read at once",
            hint="Ask for a shorter range, or give the metric a coarser sequence.",
        )
    return Span(sequence, start, end, first, last, is_empty)


def check_buckets(count: int) -> None:
    """Refuses a call whose queries or entities have more than `MAX_BUCKETS_PER_CALL` buckets."""
    if count > MAX_BUCKETS_PER_CALL:
        raise BadRange(
            f"the call would read more than {MAX_BUCKETS_PER_CALL} buckets",
            hint="Split it, ask for shorter ranges, or give the metric a coarser sequence.",
        )


def first_visible(sequence: Sequence, now: float) -> int:
    """Returns the oldest bucket that has not expired: now < (bucket + 1) * step + hard expiry."""
    step, hard = sequence.time_step, sequence.hard_expiry
    bucket = max(int((now - hard) / step) - 2, 0)
    while now >= (bucket + 1) * step + hard:
        bucket += 1
    return bucket


def buckets_touching(sequence: Sequence, asked: TimeRange, now: float) -> tuple[int, int]:
    """Returns the first and the last bucket that overlap the range.

    A range that ends now includes the bucket that begins now, so that it has the newest counts.
    """
    step = sequence.time_step
    first, last = int(asked.start / step), int(asked.end / step)
    if last * step >= asked.end != now:
        last -= 1
    if last - first >= MAX_BUCKETS:
        raise BadRange(f"the range has {last - first + 1} buckets, at most {MAX_BUCKETS} fit")
    return first, last


def sum_up(
    counts: Counts, step: Number, start: float, end: float, now: float
) -> tuple[Number, bool]:
    """Returns the sum of `counts` from `start` to `end`, and whether every bucket is whole.

    A bucket that is partly inside contributes its share. The current bucket covers the time from
    its start until now, so its share is of that time, not of the whole step.
    """
    first, last = int(start / step), int(end / step)
    if counts and (next(iter(counts)) < first or next(reversed(counts)) > last):
        counts = {bucket: units for bucket, units in counts.items() if first <= bucket <= last}
    units = list(counts.values())
    total: Number = 0
    exact = True
    newest = units.pop() if last in counts else None
    if first in counts and first != last:
        # One by one, as the original adds them: a sum of fractions depends on the order.
        total = units[0] * max((first + 1) * step - start, 0) / step
        exact = total == units[0] or total == 0
        for found in units[1:]:
            total += found
    else:
        total = sum(units)
    if newest is not None:
        part = _newest_part(last, newest, first == last, step, start, end, now)
        exact = exact and (part == newest or part == 0)
        total += part
    return total, exact


def _newest_part(
    last: int,
    units: int,
    is_only: bool,
    step: Number,
    start: float,
    end: float,
    now: float,
) -> Number:
    """Returns the share of the last bucket of a range, which may be its only one."""
    begin = last * step
    progress = min(begin + step, now) - begin
    if is_only:
        return units * (end - start) / progress if progress > 0 else 0
    overlap = max(end - begin, 0)
    if overlap == progress:  # also 0 = 0: what was counted at this very instant counts in full
        return units
    return units * overlap / progress if progress > 0 else 0
