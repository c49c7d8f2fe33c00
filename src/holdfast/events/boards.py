"""Leaderboards: the most frequent values.

A board tracks more candidates than the K that it shows, by the Space-Saving algorithm: a new value
on a full board replaces the candidate with the smallest count, starts with that count plus one, and
records it as its possible error. So a count is never too low, and never too high by more than its
error; a value that occurred more often than the smallest count is always on the board.

A small board is packed in its record, a large one has a row for each candidate. To find its
smallest candidates, the whole board is read once, and they are listed: usually hundreds share the
smallest count, and each of them makes room for a new value before the board is read again. So no
second index is needed until reading all candidates takes too long: see board_rows.py.

A board with a half-life ranks what is frequent now. A count of weight w at time t is stored as
w * 2^((t - landmark) / half-life): all counts decay at the same rate, so their order changes only
when something is counted, and counting costs the same as on any board. Another half-life only moves
the landmark. Every 20 half-lives the candidates are scaled down to a new landmark, in one
transaction. So such a board tracks a limited number of them, and of an event that counts on many
boards only some are scaled down. The others follow with the next events.
"""

from collections.abc import Iterator, Sequence
from math import ceil
from typing import Final

from holdfast.events import board_rows, distinct_counters
from holdfast.events.board_rows import MAX_COUNT, BoardRows, Candidate, CountIndex
from holdfast.events.codec import (
    BOARD,
    DECAYED,
    GROSS_OFF,
    MIXED,
    ORDERED,
    PARTIAL,
    KeyRecord,
    Value,
    escaped,
    unescaped,
)
from holdfast.events.layout import SMALLEST, VALUES
from holdfast.events.record_cache import RecordCache, RecordWriter
from holdfast.keys import pack_int, prefix_range
from holdfast.limits import (
    INDEXED_PER_COUNT,
    MAX_DECAYING_CANDIDATES,
    MIN_TRACKED_VALUES,
    PACKED_BOARD_BYTES,
    PACKED_BOARD_ENTRIES,
    TRACKED_PER_ENTRY,
    UNINDEXED_CANDIDATES,
)

__all__ = [
    "Candidate",
    "all_candidates",
    "capacity",
    "count",
    "factor_now",
    "top",
    "top_descending",
]

_SMALLEST_PER_ROW: Final = 16
_SCALE: Final = 1 << 16  # of a decaying board: the count of a weight of 1 at the landmark
_LANDMARK_HALF_LIVES: Final = 20  # after which counts are scaled down
_LANDMARK_BITS: Final = 40  # of a weight and its half-lives, after which they are scaled down
_MAX_SCALED: Final = 1 << 62  # of one count; all of a candidate together have 64 bits
_MAX_HALF_LIVES: Final = 60  # after which nothing is left
_PART_END: Final = b"\x00"  # ends a packed value, and occurs nowhere else in it


def capacity(k: int) -> int:
    """Returns how many candidates a board of K entries tracks."""
    return max(TRACKED_PER_ENTRY * k, MIN_TRACKED_VALUES) if k else 0


# --- counting ---------------------------------------------------------------------------------


def count(
    cache: RecordWriter,
    records: list[KeyRecord],
    value: Value,
    k: int,
    *,
    gross: int,
    counted: bool,
    weight: int = 1,
    half_life_ms: int = 0,
) -> None:
    """Counts `value` with `weight` on each board, of `k` entries."""
    tracked = capacity(k)
    for record in records:
        record.dirty = True
        record.gross += gross
        record.flags |= BOARD
        record.bound = k
        scaled, most = weight, tracked
        if half_life_ms or record.flags & DECAYED:
            most = min(tracked, MAX_DECAYING_CANDIDATES)
            scaled = _scaled_weight(cache, record, weight, value.at, half_life_ms, most)
        if record.size > most:
            _shrink(cache, record, most)
        known = _count_on(cache, record, value, most, scaled)
        if counted and (not known or record.flags & MIXED):
            record.digests += value.digest
            if len(record.digests) > distinct_counters.PENDING_BYTES:
                distinct_counters.archive_digests(cache, record)
        elif not counted and not known:
            record.flags |= MIXED | PARTIAL


def _count_on(
    cache: RecordWriter, record: KeyRecord, value: Value, tracked: int, weight: int
) -> bool:
    """Counts a value; returns whether it was among the candidates."""
    if not tracked and not record.size:
        # Untracked, any value may be the one that is counted here each time.
        record.floor = min(record.floor + weight, MAX_COUNT)
        record.flags |= PARTIAL
        return False
    if record.has_rows:
        return _count_in_rows(cache, record, value, tracked, weight)
    if record.floor:
        _write_rows(cache, record, ())
        return _count_in_rows(cache, record, value, tracked, weight)
    return _count_packed(cache, record, value, weight)


def _count_packed(cache: RecordWriter, record: KeyRecord, value: Value, weight: int) -> bool:
    head = record.head
    found = head.find(value.pattern)
    if found >= 0:
        begin = found + len(value.pattern)
        end = head.find(b"\x01", begin)
        if end < 0:
            end = len(head)
        record.head = b"%b%d%b" % (head[:begin], int(head[begin:end]) + weight, head[end:])
        return True
    record.head = b"%b%b%d" % (head, value.pattern, weight)
    record.size += 1
    if record.size > PACKED_BOARD_ENTRIES or len(record.head) > PACKED_BOARD_BYTES:
        _unpack_to_rows(cache, record)
    return False


def _count_in_rows(
    cache: RecordWriter, record: KeyRecord, value: Value, tracked: int, weight: int
) -> bool:
    rows = BoardRows(cache, record)
    known = rows.increment(value.raw, weight)
    if not known:
        if record.size < tracked:
            record.size += 1
        else:
            record.floor = max(record.floor, _evict_smallest(cache, record, rows))
            record.flags |= PARTIAL
        if not weight:  # it may have the smallest count, but the list does not have it
            record.smallest_used = record.smallest_listed
        # The newcomer may be the candidate that was evicted with the highest count.
        rows.add(Candidate(value.raw, record.floor + weight, record.floor))
    rows.extend_index()
    return known


def _evict_smallest(cache: RecordWriter, record: KeyRecord, rows: BoardRows) -> int:
    """Removes a candidate with the smallest count; returns that count."""
    if record.flags & ORDERED:
        return rows.remove_smallest()
    while True:
        if record.smallest_used >= record.smallest_listed:
            _list_smallest(cache, record, rows.prefix)
        row, index = divmod(record.smallest_used, _SMALLEST_PER_ROW)
        listed = cache.get(rows.prefix + SMALLEST + pack_int(row))
        assert listed is not None  # written by _list_smallest, up to `smallest_listed`
        record.smallest_used += 1
        part = listed.split(_PART_END, index + 1)[index]
        if not part:
            record.smallest += 1
            continue
        # One that was counted since the list was made is no longer among the smallest.
        if rows.remove(part + _PART_END, record.smallest):
            return record.smallest


def _list_smallest(cache: RecordWriter, record: KeyRecord, prefix: bytes) -> None:
    """Reads the whole board once and lists all candidates that have the smallest count.

    The list stays valid while it is used: counts only grow, and a new candidate has a larger count.
    Once none of them is left, the smallest count is one more. The candidates that have that count
    now follow in the list, after an empty part.
    """
    begin, end = prefix_range(prefix + VALUES)
    counts = [(board_rows.count_in(stored), key) for key, stored in cache.scan(begin, end)]
    smallest = min(times for times, _ in counts)
    parts = [key[len(begin) :] for times, key in counts if times == smallest]
    parts.append(_PART_END)
    parts += [key[len(begin) :] for times, key in counts if times == smallest + 1]
    record.smallest = smallest
    record.smallest_listed, record.smallest_used = len(parts), 0
    for row, first in enumerate(range(0, len(parts), _SMALLEST_PER_ROW)):
        listed = b"".join(parts[first : first + _SMALLEST_PER_ROW])
        cache.put(prefix + SMALLEST + pack_int(row), listed)


def _unpack_to_rows(cache: RecordWriter, record: KeyRecord) -> None:
    candidates = list(_packed_candidates(record))
    record.head = b""
    _write_rows(cache, record, candidates)


def _write_rows(cache: RecordWriter, record: KeyRecord, candidates: Sequence[Candidate]) -> None:
    cache.new_generation(record)
    record.smallest_listed = record.smallest_used = 0
    record.size = len(candidates)
    BoardRows(cache, record).write_all(candidates)


def _shrink(cache: RecordWriter, record: KeyRecord, tracked: int) -> None:
    """Removes the smallest candidates of a board that has more than are tracked now; of a very
    large one only some, so that the next counts remove the others."""
    if tracked <= UNINDEXED_CANDIDATES:
        _rewrite(cache, record, tracked, 1)
    elif record.flags & ORDERED:
        rows = BoardRows(cache, record)
        removed = min(record.size - tracked, INDEXED_PER_COUNT)
        record.floor = max(record.floor, *[rows.remove_smallest() for _ in range(removed)])
        record.flags |= PARTIAL
        record.size -= removed
    # Otherwise the counts that follow complete its index first.


def _rewrite(cache: RecordWriter, record: KeyRecord, tracked: int, factor: float) -> None:
    """Writes the highest `tracked` candidates again, with their counts multiplied."""
    had_rows = record.has_rows
    if had_rows and record.size > tracked:
        found = board_rows.highest(cache, record, tracked + 1)
    else:
        found = list(all_candidates(cache, record))
    if len(found) > tracked:
        found.sort(key=_rank)
        record.floor = max(record.floor, found[tracked].count)
        record.flags |= PARTIAL
    candidates = [
        Candidate(each.value, round(each.count * factor), round(each.error * factor))
        for each in found[:tracked]
    ]
    record.floor = min(round(record.floor * factor), MAX_COUNT)
    cache.abandon_generation(record)
    record.head = b""
    record.smallest = 0
    record.size = len(candidates)
    if candidates and (had_rows or record.floor):
        _write_rows(cache, record, candidates)
    else:
        record.head = b"".join(
            b"\x01%b\x00%d" % (escaped(each.value), each.count) for each in candidates
        )


def store(cache: RecordWriter, record: KeyRecord, candidates: Sequence[Candidate]) -> None:
    """Stores entries that were counted elsewhere as a board; it has no counters of its own."""
    record.flags |= BOARD | PARTIAL | MIXED | GROSS_OFF
    record.bound = len(candidates)
    _write_rows(cache, record, candidates)


# --- decay ----------------------------------------------------------------------------------------


def _scaled_weight(
    cache: RecordWriter,
    record: KeyRecord,
    weight: int,
    at: int,
    half_life_ms: int,
    tracked: int,
) -> int:
    """Returns the weight of a count at `at`, in the units of the board's landmark."""
    if not record.flags & DECAYED:
        if record.size or record.floor:  # it counted without decay until now
            if not _may_rescale(cache, record, tracked):
                return weight
            _rewrite(cache, record, tracked, _SCALE)
        record.flags |= DECAYED
        record.landmark_ms, record.half_life_ms = at, half_life_ms
    elif half_life_ms and half_life_ms != record.half_life_ms:
        _change_half_life(record, at, half_life_ms)
    age = (at - record.landmark_ms) / record.half_life_ms
    if (age > _LANDMARK_HALF_LIVES or age + weight.bit_length() > _LANDMARK_BITS) and _may_rescale(
        cache, record, tracked
    ):
        _rewrite(cache, record, tracked, 2.0 ** -min(_MAX_HALF_LIVES, age))
        record.landmark_ms = at
        age = 0.0
    age = min(_MAX_HALF_LIVES, max(-_MAX_HALF_LIVES, age))
    return min(_MAX_SCALED, round(weight * _SCALE * float(2.0**age)))


def _change_half_life(record: KeyRecord, at: int, half_life_ms: int) -> None:
    """Moves the landmark so that all counts are worth the same at `at` with another half-life."""
    at = max(at, record.landmark_ms)
    age_ms = min(at - record.landmark_ms, _MAX_HALF_LIVES * record.half_life_ms)
    record.landmark_ms = at - age_ms * half_life_ms // record.half_life_ms
    record.half_life_ms = half_life_ms


def _may_rescale(cache: RecordWriter, record: KeyRecord, tracked: int) -> bool:
    """Returns whether this transaction may rewrite another board, and counts it if so."""
    size = min(record.size, tracked)
    if cache.rescaled and cache.rescaled + size > MAX_DECAYING_CANDIDATES:
        return False
    cache.rescaled += size
    return True


def _decayed(cache: RecordCache, record: KeyRecord, candidate: Candidate) -> Candidate:
    """Returns a candidate with what is left of its count now."""
    factor = factor_now(cache, record)
    score = candidate.count * factor
    return Candidate(candidate.value, round(score), ceil(candidate.error * factor), score)


def factor_now(cache: RecordCache, record: KeyRecord) -> float:
    """Returns the factor from a stored count to its value now; 1 for a board without decay."""
    if not record.half_life_ms:
        return 1.0
    age = (cache.now_ms - record.landmark_ms) / record.half_life_ms
    return float(2.0 ** -max(min(age, _MAX_HALF_LIVES), -_MAX_HALF_LIVES)) / _SCALE


# --- reading ----------------------------------------------------------------------------------


def top(cache: RecordCache, record: KeyRecord, k: int) -> list[Candidate]:
    """Returns the `k` highest candidates; ties are ordered by value."""
    candidates = (
        board_rows.highest(cache, record, k) if record.has_rows else _packed_candidates(record)
    )
    found = sorted(candidates, key=_rank)[:k]
    return [_decayed(cache, record, each) for each in found] if record.half_life_ms else found


def top_descending(cache: RecordCache, record: KeyRecord, k: int) -> list[Candidate]:
    """Like `top`, but of equal counts the greater value comes first.

    Of a board with an index by count, reads at most 2 `k` candidates.
    """
    if not record.flags & ORDERED:
        found = list(all_candidates(cache, record))
    else:
        found = CountIndex(cache, record).read(k)
        smallest = found[-1].count if found else 0
        found = [each for each in found if each.count > smallest]
        found += board_rows.last_of_count(cache, record, smallest, k - len(found))
    found = sorted(found, key=lambda each: (each.count, each.value), reverse=True)[:k]
    return [_decayed(cache, record, each) for each in found] if record.half_life_ms else found


def _rank(candidate: Candidate) -> tuple[int, bytes]:
    return -candidate.count, candidate.value


def all_candidates(cache: RecordCache, record: KeyRecord) -> Iterator[Candidate]:
    """Yields all candidates of a board, in no order."""
    return board_rows.scan(cache, record) if record.has_rows else _packed_candidates(record)


def _packed_candidates(record: KeyRecord) -> Iterator[Candidate]:
    for entry in record.head.split(b"\x01")[1:]:
        value, times = entry.split(b"\x00")
        yield Candidate(unescaped(value), int(times), 0)
