"""Counts over several keys: unions, intersections and differences, all of them or since a moment.

Counts are exact while all digests are kept, up to 256 values of a key, and where the members
themselves can be counted: in a set that has lost none and is not large. Beyond, sketches are merged
register by register, which is as accurate as one sketch of everything. Intersections and
differences of sketches are computed from unions (inclusion-exclusion), so they have the error of
the unions: `error` is one standard error of the answer, and it can exceed a small intersection of
large sets.
"""

from collections.abc import Sequence
from itertools import combinations
from math import ceil, sqrt
from typing import Final

from holdfast.call_time import CallTimer
from holdfast.errors import BadInput, CountersWithoutTimes
from holdfast.events import distinct_counters, sets, sketch, timed_counters
from holdfast.events.codec import KEPT, MIXED, PARTIAL, SCORED, WINDOWED, KeyRecord
from holdfast.events.record_cache import RecordCache, RecordWriter
from holdfast.events.records import Distinct
from holdfast.events.set_reads import SetOperation, SetView, TimeBounds
from holdfast.events.timed_counters import TimedCounter
from holdfast.limits import EXACT_DISTINCT, MAX_COUNTED_MEMBERS, MAX_INTERSECTED_KEYS

__all__ = ["distinct", "gross", "keep_union"]

_SKETCH_ERROR: Final = 0.0084


def distinct(
    cache: RecordCache,
    records: Sequence[KeyRecord],
    operation: SetOperation,
    since: int | None,
    timer: CallTimer | None,
) -> Distinct:
    """Returns how many different values all keys have together, in common, or only the first."""
    if since is not None or any(_has_times_only(record) for record in records):
        return _distinct_since(cache, records, operation, -1 if since is None else since, timer)
    incomplete = any(record.flags & MIXED for record in records)
    if len(records) == 1:
        size = _exact_size(cache, records[0])
        if size is not None:
            return Distinct(count=size, exact=True)
    known = [distinct_counters.known(cache, record) for record in records]
    if not any(record.is_dense for record in records):
        found = _combine_sets([set(each) for each in known], operation)
        return Distinct(count=len(found), exact=not incomplete, incomplete=incomplete)
    if operation != "union" and not incomplete:
        counted = _count_members(cache, records, operation)
        if counted is not None:
            return Distinct(count=counted, exact=True)
    sketches = [
        distinct_counters.sketch_of(cache, record, each)
        for record, each in zip(records, known, strict=True)
    ]
    return _estimate(sketches, operation, incomplete)


def _has_times_only(record: KeyRecord) -> bool:
    """Returns whether a stored result was counted since a moment, and has no other counter."""
    return record.flags & (KEPT | PARTIAL) == KEPT | PARTIAL


def _exact_size(cache: RecordCache, record: KeyRecord) -> int | None:
    """Returns the number of members, if they are all that were ever added."""
    if not record.is_whole or not record.is_dense or record.is_count:
        return None  # a short list of digests says the same
    return record.size if record.is_board else sets.exact_size(cache, record)


def _combine_sets(found: Sequence[set[bytes]], operation: SetOperation) -> set[bytes]:
    first, *others = found
    if operation == "union":
        return first.union(*others)
    return first.intersection(*others) if operation == "intersection" else first.difference(*others)


def _count_members(
    cache: RecordCache, records: Sequence[KeyRecord], operation: SetOperation
) -> int | None:
    """Counts the members that are in all sets, or in the first alone, if none was ever lost."""
    if any(record.is_board or record.is_count or not record.is_whole for record in records):
        return None
    sizes = [sets.exact_size(cache, record) for record in records]
    if None in sizes:
        return None
    views = [SetView(cache, record, TimeBounds(), n) for n, record in enumerate(records)]
    walked = 0
    if operation == "intersection":
        walked = min(range(len(sizes)), key=lambda n: sizes[n] or 0)
    if (sizes[walked] or 0) > MAX_COUNTED_MEMBERS // len(records):
        return None
    others = [view for n, view in enumerate(views) if n != walked]
    wanted = operation == "intersection"
    return sum(
        all((view.time_of(member.value) is not None) is wanted for view in others)
        for member in views[walked].walk(None)
    )


# --- estimates ----------------------------------------------------------------------------------


def _estimate(sketches: Sequence[bytes], operation: SetOperation, incomplete: bool) -> Distinct:
    def union(chosen: Sequence[int]) -> float:
        return sketch.merged_estimate([sketches[n] for n in chosen])

    return _from_unions(len(sketches), operation, union, _SKETCH_ERROR, incomplete)


def _from_unions(
    keys: int, operation: SetOperation, union: object, error: float, incomplete: bool = False
) -> Distinct:
    """Returns a count from the counts of unions, with one standard error."""
    assert callable(union)
    everything = range(keys)
    if operation == "union" or keys == 1:
        terms = [(1, union(tuple(everything)))]
    elif operation == "difference":
        terms = [(1, union(tuple(everything))), (-1, union(tuple(everything)[1:]))]
    else:
        if keys > MAX_INTERSECTED_KEYS:
            raise BadInput(
                f"an estimated intersection of {keys} keys, "
                f"at most {MAX_INTERSECTED_KEYS} are allowed"
            )
        terms = [
            ((-1) ** (size + 1), union(chosen))
            for size in range(1, keys + 1)
            for chosen in combinations(everything, size)
        ]
    count = max(0.0, sum(sign * number for sign, number in terms))
    deviation = error * sqrt(sum(number * number for _, number in terms))
    return Distinct(count=round(count), exact=False, error=ceil(deviation), incomplete=incomplete)


# --- since a moment -----------------------------------------------------------------------------


def _distinct_since(
    cache: RecordCache,
    records: Sequence[KeyRecord],
    operation: SetOperation,
    since: int,
    timer: CallTimer | None,
) -> Distinct:
    second = since // 1_000
    timed: list[TimedCounter] = []
    for record in records:
        timed.append(_values_since(cache, record, since).since(second))
        if timer is not None:
            timer.check()
    entries = [each.entries for each in timed]
    if all(each is not None for each in entries):
        found = _combine_sets([set(each or ()) for each in entries], operation)
        return Distinct(count=len(found), exact=True)

    def union(chosen: Sequence[int]) -> float:
        merged = TimedCounter()
        for n in chosen:
            merged.merge(timed[n])
            if timer is not None:
                timer.check()
        return merged.count()

    return _from_unions(len(records), operation, union, timed_counters.STANDARD_ERROR)


def _values_since(
    cache: RecordCache, record: KeyRecord, since: int, *, counts_members: bool = False
) -> TimedCounter:
    """Returns the values of a key with their seconds, from its counter or from its members: if it
    has lost some, only if `counts_members`."""
    if record.flags & WINDOWED:
        return timed_counters.read(cache.tx, cache.keys, record.key, timed_counters.VALUES)
    if not record.known:
        return TimedCounter()
    if record.is_board or record.is_count or not (record.is_whole or counts_members):
        raise _without_times(record)
    view = SetView(cache, record, TimeBounds(since=since), 0)
    found: dict[bytes, int] = {}
    for member in view.walk(None):
        if len(found) == MAX_COUNTED_MEMBERS:
            raise _without_times(record)
        # A member later in the second of `since` counts: its own time says so exactly.
        found[sketch.digest(member.value)] = max(member.at // 1_000, since // 1_000 + 1)
    return TimedCounter(found)


def _without_times(record: KeyRecord) -> CountersWithoutTimes:
    return CountersWithoutTimes(f"the counters of {record.key.decode()} keep no times")


# --- gross --------------------------------------------------------------------------------------


def gross(
    cache: RecordCache, records: Sequence[KeyRecord], since: int | None, timer: CallTimer | None
) -> int:
    """Returns how many values were added; a scored add that several keys have is one."""
    if since is None:
        if not any(record.flags & SCORED for record in records):
            return sum(record.gross for record in records)
        plain = [record for record in records if not record.flags & WINDOWED]
    else:
        plain = []
        for record in records:
            if record.known and not record.flags & WINDOWED and record.gross:
                raise _without_times(record)
    merged = TimedCounter()
    for record in records:
        if record.flags & WINDOWED and not record.is_count:
            adds = timed_counters.read(cache.tx, cache.keys, record.key, timed_counters.ADDS)
            merged.merge(adds)
            if timer is not None:
                timer.check()
    if since is not None:
        merged = merged.since(since // 1_000)
    return round(merged.count()) + sum(record.gross for record in plain)


# --- stored results -----------------------------------------------------------------------------


def keep_union(
    cache: RecordWriter,
    record: KeyRecord,
    sources: Sequence[KeyRecord],
    since: int | None,
    timer: CallTimer | None,
    *,
    counts_members: bool = False,
) -> None:
    """Makes `record` a snapshot of the union of `sources`, as it is now."""
    record.flags |= KEPT
    record.dirty = True
    if all(each.flags & WINDOWED or not each.known for each in sources) or since is not None:
        merged = TimedCounter()
        for each in sources:
            moment = -1 if since is None else since
            merged.merge(_values_since(cache, each, moment, counts_members=counts_members))
            if timer is not None:
                timer.check()
        if since is not None:
            merged = merged.since(since // 1_000)
            record.flags |= PARTIAL
        record.flags |= WINDOWED
        timed_counters.store(cache, record.key, timed_counters.VALUES, merged)
    if since is not None:
        return
    if any(each.flags & MIXED for each in sources):
        record.flags |= MIXED
    known = [distinct_counters.known(cache, each) for each in sources]
    together = list(dict.fromkeys(digest for each in known for digest in each))
    if not any(each.is_dense for each in sources) and len(together) <= EXACT_DISTINCT:
        record.digests = b"".join(together)
        return
    sketches = [
        distinct_counters.sketch_of(cache, each, own)
        for each, own in zip(sources, known, strict=True)
    ]
    distinct_counters.store_sketch(cache, record, sketch.union(sketches))
