"""Leaderboards: the values that came up most often.

More candidates than the K that are shown are tracked, by the Space-Saving rule: a newcomer to a
full board takes the place of the candidate with the smallest count, inherits that count plus one,
and remembers it as its possible error. A count is therefore never below the truth, and never above
it by more than its error; a value that came up more often than the smallest count is always there.

A small board is packed in its record, a large one has a row for each candidate. Its smallest
candidates are found by reading all of it once, and listed: usually hundreds share the smallest
count, and each of them serves a newcomer before it is read again. So a count costs no second index.
"""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from holdfast.events import digests
from holdfast.events.codec import BOARD, MIXED, PARTIAL, Record, Value, unescaped
from holdfast.events.layout import (
    SMALLEST,
    VALUES,
    WHOLE_VALUE_BYTES,
    part_value,
    value_part,
)
from holdfast.events.record_cache import RecordCache, RecordWriter
from holdfast.keys import pack_int, prefix_range
from holdfast.limits import (
    MIN_TRACKED_VALUES,
    PACKED_BOARD_BYTES,
    PACKED_BOARD_ENTRIES,
    TRACKED_PER_ENTRY,
)

__all__ = ["Candidate", "capacity", "count", "merged", "top"]

_VICTIMS_PER_ROW: Final = 16
_COUNT: Final = struct.Struct(">QQ")  # count, error
_COUNT_ALONE: Final = struct.Struct(">I")  # an exact count, while it is small
_PART_END: Final = b"\x00"  # ends a packed value, and stands nowhere else in it


@dataclass(slots=True)
class Candidate:
    """A value with its count, and the most by which the count can be too high."""

    value: bytes
    count: int
    error: int


def capacity(k: int) -> int:
    """How many candidates a board of K entries tracks."""
    return max(TRACKED_PER_ENTRY * k, MIN_TRACKED_VALUES) if k else 0


# --- counting ---------------------------------------------------------------------------------


def count(
    cache: RecordWriter,
    records: list[Record],
    value: Value,
    k: int,
    *,
    gross: int,
    counted: bool,
) -> None:
    """Counts `value` once on each board, of `k` entries."""
    room = capacity(k)
    for record in records:
        record.dirty = True
        record.gross += gross
        record.flags |= BOARD
        if record.bound != k:
            record.bound = k
            if record.size > room:
                _shrink(cache, record, room)
        known = _count_on(cache, record, value, room)
        if counted and (not known or record.flags & MIXED):
            record.digests += value.digest
            if len(record.digests) > digests.PENDING_BYTES:
                digests.settle(cache, record)
        elif not counted and not known:
            record.flags |= MIXED | PARTIAL


def _count_on(cache: RecordWriter, record: Record, value: Value, room: int) -> bool:
    """Counts a value, and says whether it was among the candidates."""
    if not room:
        # Untracked, any value may be the one that is counted here each time.
        record.floor += 1
        record.flags |= PARTIAL
        return False
    if record.has_rows:
        return _count_in_rows(cache, record, value, room)
    if record.floor:
        _write_rows(cache, record, ())
        return _count_in_rows(cache, record, value, room)
    return _count_in_head(cache, record, value)


def _count_in_head(cache: RecordWriter, record: Record, value: Value) -> bool:
    head = record.head
    found = head.find(value.pattern)
    if found >= 0:
        begin = found + len(value.pattern)
        end = head.find(b"\x01", begin)
        if end < 0:
            end = len(head)
        record.head = b"%b%d%b" % (head[:begin], int(head[begin:end]) + 1, head[end:])
        return True
    record.head = head + value.pattern + b"1"
    record.size += 1
    if record.size > PACKED_BOARD_ENTRIES or len(record.head) > PACKED_BOARD_BYTES:
        _unpack_to_rows(cache, record)
    return False


def _count_in_rows(cache: RecordWriter, record: Record, value: Value, room: int) -> bool:
    prefix = cache.keys.generation(record.generation)
    by_value = prefix + VALUES + value_part(value.raw)
    stored = cache.get(by_value)
    if stored is not None:
        times, error, raw = _unpacked(stored)
        cache.put(by_value, _packed(times + 1, error, raw))
        return True
    if record.size < room:
        record.size += 1
    else:
        record.floor = max(record.floor, _evict_smallest(cache, record, prefix))
        record.flags |= PARTIAL
    # Whoever was let go with the highest count may be this newcomer, back again.
    cache.put(by_value, _packed(record.floor + 1, record.floor, _stored_beside_digest(value.raw)))
    return False


def _evict_smallest(cache: RecordWriter, record: Record, prefix: bytes) -> int:
    """Removes a candidate with the smallest count, and returns that count."""
    while True:
        if record.victim >= record.victims:
            _list_smallest(cache, record, prefix)
        row, index = divmod(record.victim, _VICTIMS_PER_ROW)
        listed = cache.get(prefix + SMALLEST + pack_int(row))
        assert listed is not None  # written by _list_smallest, up to `victims`
        by_value = prefix + VALUES + listed.split(_PART_END, index + 1)[index] + _PART_END
        record.victim += 1
        stored = cache.get(by_value)
        # One that was counted since the list was made is no longer among the smallest.
        if stored is not None and _unpacked(stored)[0] == record.smallest:
            cache.delete(by_value)
            return record.smallest


def _list_smallest(cache: RecordWriter, record: Record, prefix: bytes) -> None:
    """Reads the whole board once and lists all candidates that have the smallest count.

    The list stays right while it is used: counts only grow, and a newcomer's is larger.
    """
    begin, end = prefix_range(prefix + VALUES)
    counts = [(_unpacked(stored)[0], key) for key, stored in cache.scan(begin, end)]
    smallest = min(times for times, _ in counts)
    parts = [key[len(begin) :] for times, key in counts if times == smallest]
    record.smallest = smallest
    record.victims, record.victim = len(parts), 0
    for row, first in enumerate(range(0, len(parts), _VICTIMS_PER_ROW)):
        listed = b"".join(parts[first : first + _VICTIMS_PER_ROW])
        cache.put(prefix + SMALLEST + pack_int(row), listed)


def _unpack_to_rows(cache: RecordWriter, record: Record) -> None:
    candidates = list(_head(record))
    record.head = b""
    _write_rows(cache, record, candidates)


def _write_rows(cache: RecordWriter, record: Record, candidates: Sequence[Candidate]) -> None:
    prefix = cache.new_generation(record)
    record.victims = record.victim = 0
    record.size = len(candidates)
    for candidate in candidates:
        cache.put(
            prefix + VALUES + value_part(candidate.value),
            _packed(candidate.count, candidate.error, _stored_beside_digest(candidate.value)),
        )


def _shrink(cache: RecordWriter, record: Record, room: int) -> None:
    """Keeps the `room` highest candidates: the handler that writes now tracks fewer."""
    ranked = sorted(_candidates(cache, record), key=_rank)
    record.floor = max(record.floor, ranked[room].count)
    record.flags |= PARTIAL
    cache.abandon_generation(record)
    record.head = b""
    record.size = 0
    if room:
        _write_rows(cache, record, ranked[:room])


# --- reading ----------------------------------------------------------------------------------


def top(cache: RecordCache, record: Record, k: int) -> list[Candidate]:
    """The `k` highest candidates; ties are ordered by value."""
    return sorted(_candidates(cache, record), key=_rank)[:k]


def merged(cache: RecordCache, records: Sequence[Record], k: int) -> list[Candidate]:
    """The `k` highest candidates of several boards together.

    A value that a board does not track may still have come up there, as often as the highest count
    that the board has let go: that much is added to its count and to its error.
    """
    counts: dict[bytes, int] = {}
    errors: dict[bytes, int] = {}
    floors = sum(record.floor for record in records)
    for record in records:
        for candidate in _candidates(cache, record):
            value = candidate.value
            counts[value] = counts.get(value, floors) + candidate.count - record.floor
            errors[value] = errors.get(value, floors) + candidate.error - record.floor
    together = [Candidate(value, total, errors[value]) for value, total in counts.items()]
    return sorted(together, key=_rank)[:k]


def _rank(candidate: Candidate) -> tuple[int, bytes]:
    return -candidate.count, candidate.value


def _candidates(cache: RecordCache, record: Record) -> Iterator[Candidate]:
    return _rows(cache, record) if record.has_rows else _head(record)


def _head(record: Record) -> Iterator[Candidate]:
    for entry in record.head.split(b"\x01")[1:]:
        value, times = entry.split(b"\x00")
        yield Candidate(unescaped(value), int(times), 0)


def _rows(cache: RecordCache, record: Record) -> Iterator[Candidate]:
    begin, end = prefix_range(cache.keys.generation(record.generation) + VALUES)
    at = len(begin)
    for key, stored in cache.scan(begin, end):
        times, error, raw = _unpacked(stored)
        yield Candidate(raw or part_value(key[at:]), times, error)


def _packed(times: int, error: int, raw: bytes) -> bytes:
    """A row: short for most, because many rows to a page make a commit cheap."""
    if error or raw or times > 0xFFFF_FFFF:
        return _COUNT.pack(times, error) + raw
    return _COUNT_ALONE.pack(times)


def _unpacked(stored: bytes) -> tuple[int, int, bytes]:
    if len(stored) == _COUNT_ALONE.size:
        return _COUNT_ALONE.unpack(stored)[0], 0, b""
    times, error = _COUNT.unpack_from(stored)
    return times, error, stored[_COUNT.size :]


def _stored_beside_digest(raw: bytes) -> bytes:
    """A value that its key holds the digest of only, and that its row must therefore hold."""
    return raw if len(raw) > WHOLE_VALUE_BYTES else b""
