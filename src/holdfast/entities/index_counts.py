"""Counts the entries in a stretch of an index without walking all of them.

About every 512th entry of an index, chosen by a checksum of its bytes, is a *milestone*: beside it
is stored the number of entries after the previous milestone, up to and including this one. A
stretch is counted by walking to its first milestone, adding up the milestones inside, and walking
on from the last: hundreds of steps for hundreds of thousands of entries. The choice depends only on
the entry, so an index has the same milestones whatever the order of its changes."""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Final
from zlib import crc32

from holdfast.engine.contract import Reader, Transaction, pack_counter, read_counter
from holdfast.entities.layout import END_OF_INDEX
from holdfast.entities.table_access import IndexAccess
from holdfast.keys import after, prefix_range
from holdfast.limits import INDEX_STEP_ENTITIES, MILESTONE_ENTRIES

_MILESTONE_MASK: Final = MILESTONE_ENTRIES - 1
_MAX_STEPS: Final = 8  # these cost as much as a new search


def is_milestone(entry: bytes) -> bool:
    """Returns whether an entry is a milestone. Here and below, entries are without their prefix."""
    return not crc32(entry) & _MILESTONE_MASK


def count_changes(tx: Transaction, index: IndexAccess, changes: Mapping[bytes, int]) -> None:
    """Updates the milestones for entries that were put (1) or deleted (-1).

    Ordinary entries come first, counted at the milestones as they were; then milestones that were
    put or deleted, when all entries are in place. There is one search per stretch between two
    milestones."""
    if len(changes) == 1:
        [(entry, change)] = changes.items()
        if not is_milestone(entry):  # the usual case
            if change:
                tx.add(index.counts + _milestone_from(tx, index, entry), change)
            return
    milestones = []
    deltas: dict[bytes, int] = {}
    search = _Search(tx, index)
    for entry, change in sorted(changes.items()):
        if is_milestone(entry):
            milestones.append((entry, change))
        elif change:
            milestone = search.at_or_after(entry)
            deltas[milestone] = deltas.get(milestone, 0) + change
    for milestone, delta in deltas.items():
        if delta:
            tx.add(index.counts + milestone, delta)
    for entry, change in milestones:
        if change < 0:
            _remove_milestone(tx, index, entry)
    # In ascending order: entries after a new milestone were counted for the one after it.
    for entry, change in milestones:
        if change > 0:
            _add_milestone(tx, index, entry)


class _Search:
    """Finds the milestones of ascending entries: by a few steps if the next one is near, otherwise
    by a new search in the index. After each search it makes fewer steps, since entries that were
    far apart usually stay so, and in a large index such steps would cost more than the searches."""

    __slots__ = ("_found", "_index", "_reader", "_scan", "_steps")

    def __init__(self, reader: Reader, index: IndexAccess) -> None:
        self._reader = reader
        self._index = index
        self._scan: Iterator[tuple[bytes, bytes]] = iter(())
        self._found = b""
        self._steps = _MAX_STEPS

    def at_or_after(self, entry: bytes) -> bytes:
        """Returns the first milestone at or after `entry`, or the end of the index."""
        if entry <= self._found:
            return self._found
        prefix = self._index.milestones
        size = len(prefix)
        if self._found and self._steps:
            for key, _ in islice(self._scan, self._steps):
                if key[size:] >= entry:
                    self._found = key[size:]
                    return self._found
            self._steps //= 2
        self._scan = self._reader.scan(prefix + entry, prefix + END_OF_INDEX)
        self._found = next(self._scan, (prefix + END_OF_INDEX, b""))[0][size:]
        return self._found


def count_stretch(reader: Reader, index: IndexAccess, begin: bytes, end: bytes) -> int:
    """Returns the number of entries with begin <= entry < end.

    Reads about 512 entries, and one counter for every 512 entries counted.
    """
    size = len(index.counts)
    first = _milestone_from(reader, index, begin)
    last = _milestone_before(reader, index, end)
    if first >= end or last < first:
        return _count_by_scan(reader, index, begin, end)
    between = reader.scan(index.counts + after(first), index.counts + after(last))
    counted = sum(read_counter(value) for key, value in between if len(key) > size)
    return (
        _count_by_scan(reader, index, begin, after(first))
        + counted
        + _count_by_scan(reader, index, after(last), end)
    )


def stretch_before(reader: Reader, index: IndexAccess, entry: bytes) -> int:
    """Returns the number of entries after the previous milestone, up to and including `entry`."""
    before = _milestone_before(reader, index, entry)
    return _count_by_scan(reader, index, after(before) if before else b"", after(entry))


def skip_forward(
    reader: Reader, index: IndexAccess, begin: bytes, end: bytes, offset: int
) -> tuple[bytes, int]:
    """Skips most of the `offset` entries; returns where to begin, and how many are left to skip.

    Reads about 512 entries, and one counter for every 512 entries skipped.
    """
    first = _milestone_from(reader, index, begin)
    if first >= end:
        return begin, offset
    left = offset - _count_by_scan(reader, index, begin, after(first))
    if left < 0:
        return begin, offset
    size = len(index.counts)
    position = after(first)
    for key, value in reader.scan(index.counts + position, index.counts + end):
        count = read_counter(value)
        if count > left:
            break
        position, left = after(key[size:]), left - count
    return position, left


def skip_backward(
    reader: Reader, index: IndexAccess, begin: bytes, end: bytes, offset: int
) -> tuple[bytes, int]:
    """Like `skip_forward`, from the end: returns where to end, and how many are left to skip."""
    last = _milestone_before(reader, index, end)
    if last < begin:
        return end, offset
    left = offset - _count_by_scan(reader, index, after(last), end)
    if left < 0:
        return end, offset
    size = len(index.counts)
    position = after(last)
    # A milestone holds the count of the entries before it: the number that the next step skips.
    count = 0
    for key, value in reader.scan(index.counts + begin, index.counts + position, reverse=True):
        if count > left:
            break
        position, left = after(key[size:]), left - count
        count = read_counter(value)
    return position, left


def recount_step(
    tx: Transaction, index: IndexAccess, begin: bytes, *, dry_run: bool
) -> tuple[int, bytes | None]:
    """Recounts from `begin`, which follows a milestone, up to a later milestone.

    Returns how many counts were wrong, and where to continue; None at the end of the index.
    """
    right: dict[bytes, int] = {}
    size, run, walked, last = len(index.entries), 0, 0, END_OF_INDEX
    for key, _ in tx.scan(index.entries + begin, prefix_range(index.entries)[1]):
        run, walked = run + 1, walked + 1
        if is_milestone(key[size:]):
            right[key[size:]], run = run, 0
            if walked >= INDEX_STEP_ENTITIES:
                last = key[size:]
                break
    else:
        right[END_OF_INDEX] = run
    wrong = _differing(tx, index, begin, after(last), right)
    if not dry_run:
        for entry in wrong:
            _set_count(tx, index, entry, right.get(entry))
    return len(wrong), None if last == END_OF_INDEX else after(last)


def _differing(
    reader: Reader, index: IndexAccess, begin: bytes, end: bytes, right: dict[bytes, int]
) -> list[bytes]:
    """Returns the milestones between begin and end that are missing, wrong or superfluous."""
    size = len(index.counts)
    counts = {
        key[size:]: read_counter(value)
        for key, value in reader.scan(index.counts + begin, index.counts + end)
    }
    placed = {
        key[size:] for key, _ in reader.scan(index.milestones + begin, index.milestones + end)
    }
    placed.add(END_OF_INDEX)
    return sorted(
        entry
        for entry in right.keys() | counts.keys() | placed
        if counts.get(entry, 0) != right.get(entry, 0)
        or ((entry in right) != (entry in placed) and entry != END_OF_INDEX)
    )


def _set_count(tx: Transaction, index: IndexAccess, entry: bytes, count: int | None) -> None:
    if count is None:
        tx.delete(index.milestones + entry)
        tx.delete(index.counts + entry)
        return
    tx.put(index.counts + entry, pack_counter(count))
    if entry != END_OF_INDEX:
        tx.put(index.milestones + entry, b"")


def _milestone_from(reader: Reader, index: IndexAccess, entry: bytes) -> bytes:
    """Returns the first milestone at or after `entry`, or the end of the index."""
    begin = index.milestones + entry
    for key, _ in reader.scan(begin, index.milestones + END_OF_INDEX, limit=1):
        return key[len(index.milestones) :]
    return END_OF_INDEX


def _milestone_before(reader: Reader, index: IndexAccess, entry: bytes) -> bytes:
    """Returns the last milestone before `entry`, or b"" if there is none."""
    end = index.milestones + entry
    for key, _ in reader.scan(index.milestones, end, limit=1, reverse=True):
        return key[len(index.milestones) :]
    return b""


def _add_milestone(tx: Transaction, index: IndexAccess, entry: bytes) -> None:
    before = _milestone_before(tx, index, entry)
    milestone = _milestone_from(tx, index, after(entry))
    count = _count_by_scan(tx, index, after(before) if before else b"", after(entry))
    tx.put(index.milestones + entry, b"")
    tx.add(index.counts + entry, count)
    tx.add(index.counts + milestone, 1 - count)


def _remove_milestone(tx: Transaction, index: IndexAccess, entry: bytes) -> None:
    count = read_counter(tx.get(index.counts + entry))
    tx.delete(index.milestones + entry)
    tx.delete(index.counts + entry)
    tx.add(index.counts + _milestone_from(tx, index, entry), count - 1)


def _count_by_scan(reader: Reader, index: IndexAccess, begin: bytes, end: bytes) -> int:
    entries = reader.scan(index.entries + begin, index.entries + end)
    return sum(1 for _ in entries)
