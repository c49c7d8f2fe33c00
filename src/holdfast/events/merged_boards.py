"""The highest candidates of several leaderboards together.

The value with the highest sum need not be high on any single board. Boards that are read as a whole
anyway are added up candidate by candidate. Boards with an index by count are read from the top, all
equally far: a value that has not been met can have at most the sum of the last counts that were
read. Once `k` values have more than that, no other value can be among the highest, and only the
values that were met and may still qualify are looked up in the other boards. (This is the threshold
algorithm of Fagin, Lotem and Naor.)

Boards whose counts are all alike would be read to their end this way. Once about half of their
candidates have been read without a result, they are added up like small ones.
"""

from collections.abc import Iterable, Iterator, Sequence
from heapq import nlargest
from math import ceil
from typing import Final

from holdfast.call_time import CallTimer
from holdfast.events import board_rows, boards
from holdfast.events.board_rows import Candidate
from holdfast.events.codec import ORDERED, KeyRecord
from holdfast.events.record_cache import RecordCache

__all__ = ["merged"]

_FIRST_STEP: Final = 64  # candidates that are read of each index at first, at least
_ROUNDING: Final = 1e-9  # the relative rounding error of a sum of scores


def merged(
    cache: RecordCache, records: Sequence[KeyRecord], k: int, timer: CallTimer | None
) -> list[Candidate]:
    """Returns the `k` highest candidates of several boards together.

    A value that a board does not track may still have come up there, as often as the highest count
    that the board has let go: that much is added to its count and to its error.
    """
    if not k:
        return []
    decays = any(record.half_life_ms for record in records)
    parts = [_Board(cache, record, decays=decays) for record in records]
    contenders = _contenders(parts, k, timer)
    floors = sum(part.floor for part in parts)
    totals: dict[bytes, float] = {}
    errors: dict[bytes, float] = {}
    for part in parts:
        if timer is not None:
            timer.check()
        factor, floor = part.factor, part.floor
        for each in part.all() if contenders is None else part.of(contenders):
            value = each.value
            totals[value] = totals.get(value, floors) + each.count * factor - floor
            errors[value] = errors.get(value, floors) + each.error * factor - floor
    ranked = sorted(totals.items(), key=lambda pair: (-pair[1], pair[0]))[:k]
    if decays:
        return [Candidate(value, round(s), ceil(max(0.0, errors[value])), s) for value, s in ranked]
    return [Candidate(value, int(total), int(errors[value])) for value, total in ranked]


class _Board:
    """One of the boards, and the candidates that were read of it so far."""

    __slots__ = ("_cache", "_index", "_record", "bound", "factor", "floor", "is_read", "seen")

    def __init__(self, cache: RecordCache, record: KeyRecord, *, decays: bool) -> None:
        self._cache = cache
        self._record = record
        # By which counts become scores. Sums of whole numbers are exact, however large.
        self.factor: float = boards.factor_now(cache, record) if decays else 1
        self.floor = record.floor * self.factor  # at most, of a value that is not tracked
        self.bound: float = float("inf")  # at most, of a value that was not read
        self.seen: dict[bytes, Candidate] = {}
        self.is_read = False  # to its end
        self._index = board_rows.CountIndex(cache, record) if record.flags & ORDERED else None

    @property
    def indexed(self) -> int:
        """The number of candidates that are in order of their counts."""
        return 0 if self._index is None else self._record.size

    def all(self) -> Iterator[Candidate]:
        """Yields all candidates."""
        return boards.all_candidates(self._cache, self._record)

    def read(self, count: int) -> list[Candidate]:
        """Returns the next highest candidates; all of a board without an index."""
        if self._index is None:
            found, self.is_read = list(self.all()), True
        else:
            found = self._index.read(count)
            self.is_read = len(found) < count
        self.seen.update([(each.value, each) for each in found])
        self.bound = self.floor
        if not self.is_read:
            self.bound = max(self.floor, found[-1].count * self.factor)
        return found

    def of(self, values: Iterable[bytes]) -> list[Candidate]:
        """Returns those of the values that are candidates."""
        seen = self.seen
        found = [seen[value] for value in values if value in seen]
        if not self.is_read:
            missing = [value for value in values if value not in seen]
            found += board_rows.find(self._cache, self._record, missing)
        return found


def _contenders(parts: Sequence[_Board], k: int, timer: CallTimer | None) -> list[bytes] | None:
    """Returns the values that may be among the `k` highest; None if all boards have to be read."""
    most = sum(part.indexed for part in parts) // 2
    if not most:
        return None
    floors = sum(part.floor for part in parts)
    totals: dict[bytes, float] = {}  # at least; what was not read counts as not tracked
    step = max(k, _FIRST_STEP)
    while True:
        for part in parts:
            if part.is_read:
                continue
            if timer is not None:
                timer.check()
            factor, floor = part.factor, part.floor
            for each in part.read(step):
                totals[each.value] = totals.get(each.value, floors) + each.count * factor - floor
        highest = nlargest(k, totals.values())
        lowest = highest[-1] if highest and len(highest) == k else -1
        unread = [part for part in parts if not part.is_read]
        # Of two values with equal counts the smaller ranks higher: an equal count is not enough.
        if not unread or lowest > _rounded_up(sum(part.bound for part in parts)):
            break
        if sum(len(part.seen) for part in parts if part.indexed) > most:
            return None
        step *= 2
    return [
        value
        for value, total in totals.items()
        if lowest
        <= _rounded_up(total + sum(p.bound - p.floor for p in unread if value not in p.seen))
    ]


def _rounded_up(total: float) -> float:
    """Returns a sum of scores that no order of adding exceeds; whole numbers are exact."""
    return total if isinstance(total, int) else total + total * _ROUNDING
