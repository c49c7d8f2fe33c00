"""The rows of a large leaderboard: candidates by value and, if it is very large, also by count.

    (generation, 0, value)         -> count and error
    (generation, 3, count, value)  -> error          the index by count, highest first

The index begins with the highest candidates, ties by value, and ends with the smallest. So the
highest are found without reading the others, however many there are. Each count moves a row of the
index; smaller boards avoid that cost, because they can be read as a whole.

When a board becomes very large, or was written by an older version, the following counts build its
index, some rows with each. Until it is complete, reads use the rows by value.
"""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from holdfast.events.codec import ORDERED, ORDERING, KeyRecord
from holdfast.events.layout import (
    COUNTS,
    COUNTS_CURSOR,
    VALUES,
    WHOLE_VALUE_BYTES,
    part_value,
    value_part,
)
from holdfast.events.record_cache import RecordCache, RecordWriter
from holdfast.keys import after, pack_bytes, prefix_range
from holdfast.limits import INDEXED_PER_COUNT, UNINDEXED_CANDIDATES

__all__ = [
    "MAX_COUNT",
    "BoardRows",
    "Candidate",
    "CountIndex",
    "count_in",
    "find",
    "highest",
    "last_of_count",
    "scan",
]

_COUNT: Final = struct.Struct(">QQ")  # count, error
_COUNT_ALONE: Final = struct.Struct(">I")  # an exact count, while it is small
_SHORT_ROW: Final = _COUNT_ALONE.size
_INDEX_COUNT: Final = struct.Struct(">Q")  # a count in the index, subtracted from `MAX_COUNT`
MAX_COUNT: Final = 2**64 - 1  # what a row has room for
_ROWS_SORTED_AT_ONCE: Final = 2_000  # of those that may be among the highest


@dataclass(slots=True)
class Candidate:
    """A value with its count, and the most by which the count can be too high."""

    value: bytes
    count: int
    error: int
    score: float = 0.0  # of a decaying board: the count that is left now


class BoardRows:
    """The rows of one board in a transaction."""

    __slots__ = ("_cache", "_counts", "_record", "_values", "prefix")

    def __init__(self, cache: RecordWriter, record: KeyRecord) -> None:
        self._cache = cache
        self._record = record
        self.prefix = cache.keys.generation(record.generation)
        self._values = self.prefix + VALUES
        self._counts = self.prefix + COUNTS

    def write_all(self, candidates: Sequence[Candidate]) -> None:
        """Writes the rows of a board that has none yet."""
        if len(candidates) > UNINDEXED_CANDIDATES:
            self._record.flags |= ORDERED
        for each in candidates:
            self.add(each)

    def add(self, candidate: Candidate) -> None:
        """Writes the rows of a candidate that the board did not have."""
        candidate.count = min(candidate.count, MAX_COUNT)
        candidate.error = min(candidate.error, MAX_COUNT)
        self._put(self._values + value_part(candidate.value), candidate)
        if self._record.flags & (ORDERED | ORDERING):
            self._add_to_index(candidate)

    def increment(self, raw: bytes, weight: int) -> bool:
        """Adds to the count of a value; returns whether the board has it."""
        by_value = self._values + value_part(raw)
        stored = self._cache.get(by_value)
        if stored is None:
            return False
        if len(stored) == _SHORT_ROW and not self._record.flags & (ORDERED | ORDERING):
            times = int.from_bytes(stored, "big") + weight
            if times <= 0xFFFF_FFFF:
                self._cache.put(by_value, _COUNT_ALONE.pack(times))
                return True
        times, error, _ = _unpack(stored)
        grown = Candidate(raw, min(times + weight, MAX_COUNT), error)
        self._put(by_value, grown)
        if self._record.flags & (ORDERED | ORDERING):
            self._cache.delete(self._index_key(raw, times))
            self._add_to_index(grown)
        return True

    def remove(self, part: bytes, count: int) -> bool:
        """Removes the candidate of a key part if it has that count; returns whether it did."""
        by_value = self._values + part
        stored = self._cache.get(by_value)
        if stored is None or count_in(stored) != count:
            return False
        self._cache.delete(by_value)
        if self._record.flags & (ORDERED | ORDERING):
            self._cache.delete(self._index_key(_unpack(stored)[2] or part_value(part), count))
        return True

    def remove_smallest(self) -> int:
        """Removes a candidate with the smallest count, by the index; returns that count."""
        begin, end = prefix_range(self._counts)
        # What this call has removed from the end already is not skipped again each time.
        end = self._cache.index_ends.get(begin, end)
        [(key, _)] = self._cache.scan(begin, end, limit=1, reverse=True)
        self._cache.index_ends[begin] = key
        smallest = _candidate_in_index(key[len(begin) :], b"")
        self.remove(value_part(smallest.value), smallest.count)
        return smallest.count

    def extend_index(self) -> None:
        """Adds some candidates to an index that is being built, and begins one if it is due.

        Every count meanwhile writes its own row, so candidates can be added in any order.
        """
        record, cache = self._record, self._cache
        if record.flags & ORDERED or record.size <= UNINDEXED_CANDIDATES:
            return
        record.flags |= ORDERING
        begin, end = prefix_range(self._values)
        cursor = cache.get(self.prefix + COUNTS_CURSOR)
        start = begin if cursor is None else after(begin + cursor)
        found = list(cache.scan(start, end, limit=INDEXED_PER_COUNT))
        for key, stored in found:
            self._add_to_index(_candidate(key[len(begin) :], stored))
        if len(found) == INDEXED_PER_COUNT:
            cache.put(self.prefix + COUNTS_CURSOR, found[-1][0][len(begin) :])
        else:
            cache.delete(self.prefix + COUNTS_CURSOR)
            record.flags = record.flags & ~ORDERING | ORDERED

    def _put(self, by_value: bytes, candidate: Candidate) -> None:
        """Writes a row, in a short form if possible: more rows on a page make a commit cheaper."""
        raw = candidate.value if len(candidate.value) > WHOLE_VALUE_BYTES else b""
        if candidate.error or raw or candidate.count > 0xFFFF_FFFF:
            self._cache.put(by_value, _COUNT.pack(candidate.count, candidate.error) + raw)
        else:
            self._cache.put(by_value, _COUNT_ALONE.pack(candidate.count))

    def _add_to_index(self, candidate: Candidate) -> None:
        error = _INDEX_COUNT.pack(candidate.error) if candidate.error else b""
        key = self._index_key(candidate.value, candidate.count)
        self._cache.put(key, error)
        if key >= self._cache.index_ends.get(self._counts, key + b"\0"):
            del self._cache.index_ends[self._counts]

    def _index_key(self, raw: bytes, count: int) -> bytes:
        return self._counts + _INDEX_COUNT.pack(MAX_COUNT - count) + pack_bytes(raw)


# --- reading -------------------------------------------------------------------------------------


def scan(cache: RecordCache, record: KeyRecord) -> Iterator[Candidate]:
    """Yields all candidates in the order of their values; those with long values last."""
    begin, end = prefix_range(cache.keys.generation(record.generation) + VALUES)
    at = len(begin)
    for key, stored in cache.scan(begin, end):
        yield _candidate(key[at:], stored)


def highest(cache: RecordCache, record: KeyRecord, k: int) -> list[Candidate]:
    """Returns the `k` highest candidates, and perhaps some more."""
    if not record.flags & ORDERED:
        return _highest_by_scan(cache, record, k)
    return CountIndex(cache, record).read(k)


class CountIndex:
    """The candidates of a very large board from the highest on, read in steps."""

    __slots__ = ("_at", "_begin", "_cache", "_end")

    def __init__(self, cache: RecordCache, record: KeyRecord) -> None:
        self._cache = cache
        self._begin, self._end = prefix_range(cache.keys.generation(record.generation) + COUNTS)
        self._at = len(self._begin)

    def read(self, count: int) -> list[Candidate]:
        """Returns the next candidates."""
        pairs = list(self._cache.scan(self._begin, self._end, limit=count))
        if pairs:
            self._begin = after(pairs[-1][0])
        return [_candidate_in_index(key[self._at :], error) for key, error in pairs]


def last_of_count(cache: RecordCache, record: KeyRecord, count: int, most: int) -> list[Candidate]:
    """Returns the greatest values among the candidates with that count; needs the index."""
    counts = cache.keys.generation(record.generation) + COUNTS
    begin, end = prefix_range(counts + _INDEX_COUNT.pack(MAX_COUNT - count))
    pairs = cache.scan(begin, end, limit=most, reverse=True)
    return [_candidate_in_index(key[len(counts) :], error) for key, error in pairs]


def find(cache: RecordCache, record: KeyRecord, values: Sequence[bytes]) -> list[Candidate]:
    """Returns those of the values that are candidates."""
    prefix = cache.keys.generation(record.generation) + VALUES
    stored = cache.tx.get_many([prefix + value_part(value) for value in values])
    found = []
    for value, row in zip(values, stored, strict=True):
        if row is not None:
            times, error, _ = _unpack(row)
            found.append(Candidate(value, times, error))
    return found


def _highest_by_scan(cache: RecordCache, record: KeyRecord, k: int) -> list[Candidate]:
    """Returns the `k` highest candidates of a board without an index, and some more.

    Most rows cost one comparison. Rows come in the order of their values, so of two equal counts
    the earlier row ranks higher; only long values, whose rows come last, are not in order.
    """
    begin, end = prefix_range(cache.keys.generation(record.generation) + VALUES)
    at = len(begin)
    kept: list[tuple[int, bytes, bytes]] = []
    lowest, lowest_short = -1, b""  # the count that a row must exceed, and as a short row has it
    most = max(2 * k, _ROWS_SORTED_AT_ONCE)
    for key, stored in cache.scan(begin, end):
        if len(stored) == _SHORT_ROW and stored <= lowest_short:
            continue  # of most rows nothing else is looked at
        times, _, raw = _unpack(stored)
        if times > lowest or (raw and times == lowest):
            kept.append((times, key, stored))
            if len(kept) > most:
                kept.sort(key=_by_count)  # stable: equal counts stay in the order of their values
                lowest = kept[k - 1][0] if k else times
                lowest_short = _COUNT_ALONE.pack(min(lowest, 0xFFFF_FFFF))
                longer = [row for row in kept[k:] if row[0] == lowest and len(row[2]) > _COUNT.size]
                kept = kept[:k] + longer
                most = max(most, 2 * len(kept))
    return [_candidate(key[at:], stored) for _, key, stored in kept]


def _by_count(row: tuple[int, bytes, bytes]) -> int:
    return -row[0]


def count_in(stored: bytes) -> int:
    """Returns the count of a row: its first 4 bytes if it has no more, otherwise the first 8."""
    return int.from_bytes(stored[:8], "big")


def _candidate(part: bytes, stored: bytes) -> Candidate:
    times, error, raw = _unpack(stored)
    return Candidate(raw or part_value(part), times, error)


def _candidate_in_index(place: bytes, error: bytes) -> Candidate:
    """Returns the candidate at a place of the index."""
    count = MAX_COUNT - _INDEX_COUNT.unpack_from(place)[0]
    return Candidate(
        part_value(place[_INDEX_COUNT.size :]), count, _INDEX_COUNT.unpack(error)[0] if error else 0
    )


def _unpack(stored: bytes) -> tuple[int, int, bytes]:
    if len(stored) == _COUNT_ALONE.size:
        return _COUNT_ALONE.unpack(stored)[0], 0, b""
    times, error = _COUNT.unpack_from(stored)
    return times, error, stored[_COUNT.size :]
