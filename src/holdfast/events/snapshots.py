"""The members of large sets as they were when a background fan-out began.

A fan-out reads the rows of a generation in the order of their values, a step at a time, while the
set keeps changing. A write that changes a row which the fan-out has not reached yet first records
the old state: `+value` for a member, `-` for a value that was not there. So a fan-out writes for
exactly the members that the set had at the time of its event, without a copy of them.
"""

from typing import Final

from holdfast.engine.contract import Reader
from holdfast.events.codec import FANNED_OUT, KeyRecord
from holdfast.events.layout import PLACES, VALUES, keys_of, part_value
from holdfast.events.record_cache import RecordWriter
from holdfast.keys import after, prefix_range, unpack

__all__ = ["Snapshot", "note_change"]

_MEMBER: Final = b"+"
_NO_MEMBER: Final = b"-"
_DIGEST_MARK: Final = 0xFF  # begins the part of a long value, see `layout.value_part`


def note_change(cache: RecordWriter, record: KeyRecord, part: bytes, member: bytes | None) -> None:
    """Notes, for each fan-out that will still read `part`, whether it was a `member` before.

    Reads 1 key for each fan-out of the set, writes 1.
    """
    keys = cache.keys
    begin, end = keys.fan_out_sources(record.generation)
    sources = list(cache.scan(begin, end))
    if not sources:
        record.flags &= ~FANNED_OUT
    for source, cursor in sources:
        if part <= cursor:
            continue
        [id] = unpack(source, len(begin))
        change = keys.fan_out_changes(id, record.generation) + part
        if cache.get(change) is None:  # the first change knows what was there
            cache.put(change, _NO_MEMBER if member is None else _MEMBER + member)


class Snapshot:
    """One generation as a fan-out sees it."""

    def __init__(self, reader: Reader, id: bytes, generation: int) -> None:
        keys = keys_of(reader.space)
        self._reader = reader
        self._rows = keys.generation(generation)
        self._changes = keys.fan_out_changes(id, generation)

    def members(self, cursor: bytes, limit: int) -> tuple[list[tuple[bytes, bytes]], bytes | None]:
        """Returns members after `cursor`, each with its part, and the next cursor.

        The cursor is None when there are no more. Reads up to `limit` rows and as many notes.
        """
        rows, rows_end = self._scan(self._rows + VALUES, cursor, limit)
        notes, notes_end = self._scan(self._changes, cursor, limit)
        ends = [end for end in (rows_end, notes_end) if end is not None]
        last = min(ends, default=None)
        parts = sorted({*rows, *notes})
        found = []
        for part in parts:
            if last is not None and part > last:
                break
            noted = notes.get(part)
            raw = self._raw(part, rows[part]) if noted is None else noted[1:]
            if noted != _NO_MEMBER and raw is not None:
                found.append((part, raw))
        return found, last

    def contains(self, part: bytes) -> bool:
        """Returns whether the value with that part was a member."""
        noted = self._reader.get(self._changes + part)
        if noted is not None:
            return noted != _NO_MEMBER
        return self._reader.get(self._rows + VALUES + part) is not None

    def _scan(
        self, prefix: bytes, cursor: bytes, limit: int
    ) -> tuple[dict[bytes, bytes], bytes | None]:
        """Returns pairs after `cursor`, and the key up to which they are complete; None: all."""
        begin, end = prefix_range(prefix)
        if cursor:
            begin = after(prefix + cursor)
        size = len(prefix)
        found = {key[size:]: value for key, value in self._reader.scan(begin, end, limit=limit)}
        return found, max(found) if len(found) == limit else None

    def _raw(self, part: bytes, place: bytes) -> bytes | None:
        if part[1] != _DIGEST_MARK:
            return part_value(part)
        return self._reader.get(self._rows + PLACES + place)
