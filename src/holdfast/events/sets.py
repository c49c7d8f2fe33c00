"""Sets: values in the order in which they were last added, newest first.

A set has one of three forms, depending on its size; callers need not know which:

- up to 32 members: all in the head of its record;
- up to 256: the newest in the head, older ones in an archive. An add changes only the head; 32
  members move to the archive together. Until the archive is compacted, it may hold values that were
  added again since or are beyond the set's bound; reads skip them;
- beyond: a row for each member, by value and by place.

An event with 12 targets so writes 12 small records, which often share pages; the cost of a durable
commit is mostly the number of pages that it writes.
"""

from operator import itemgetter
from typing import Final, TypeAlias

from holdfast.events import distinct_counters
from holdfast.events.codec import (
    FANNED_OUT,
    MIXED,
    PARTIAL,
    ROWS,
    SCORED,
    TIME_BYTES,
    UNBOUNDED,
    KeyRecord,
    Value,
    escaped,
    pack_time,
    unescaped,
    unpack_time,
)
from holdfast.events.layout import PLACES, VALUES, place, value_part
from holdfast.events.record_cache import RecordCache, RecordWriter
from holdfast.events.snapshots import note_change
from holdfast.keys import prefix_range
from holdfast.limits import (
    CLEARED_PER_STEP,
    EVICTED_PER_WRITE,
    HEAD_BYTES,
    HEAD_MEMBERS,
    MAX_BUNDLES,
    PACKED_BYTES,
    PACKED_MEMBERS,
)

__all__ = ["add", "contains", "newest_values", "packed_members", "remove", "size"]

Member: TypeAlias = tuple[bytes, int]  # value, milliseconds of its last add

_VALUE: Final = TIME_BYTES + 1  # where the value of an entry begins
_TIME: Final = itemgetter(slice(TIME_BYTES))
_UNPACKED_MEMBERS: Final = PACKED_MEMBERS // 4  # a set that shrinks to this is packed again


# --- writing ----------------------------------------------------------------------------------


def add(
    cache: RecordWriter,
    records: list[KeyRecord],
    value: Value,
    bound: int,
    *,
    gross: int,
    counted: bool,
    takes_older: bool = False,
    keeps_equal: bool = False,
) -> None:
    """Adds `value` to the front of each set, and evicts members beyond `bound`.

    A present value is moved to a newer time. `takes_older` moves it to an older one, too;
    `keeps_equal` leaves it at its place among values of the same time.
    """
    time, entry, digest = value.time, value.entry, value.digest
    # The usual case: a new value, newer than all others, and neither head nor digests are full.
    fast_bound = bound if counted and not takes_older else None
    free = HEAD_BYTES - len(entry)
    for record in records:
        pending, size = record.digests, record.size
        if (
            record.fast_bound == fast_bound
            and size < HEAD_MEMBERS
            # Head and digests were emptied together, and have grown by the same values since: a
            # short search among random bytes answers for a long one among similar names.
            and pending.find(digest) < 0  # `in` would raise and catch an error first
            and time >= record.newest
            and len(head := record.head) <= free
        ):
            record.digests = pending + digest
            record.head = entry + head
            record.newest = time
            record.size = size + 1
            record.gross += gross
            record.dirty = True
        else:
            _add(
                cache,
                record,
                value,
                bound,
                gross,
                counted=counted,
                takes_older=takes_older,
                keeps_equal=keeps_equal,
            )
            record.update_fast_bound()


def _add(
    cache: RecordWriter,
    record: KeyRecord,
    value: Value,
    bound: int,
    gross: int,
    *,
    counted: bool,
    takes_older: bool,
    keeps_equal: bool,
) -> None:
    record.dirty = True
    record.gross += gross
    if record.bound != bound:
        _change_bound(cache, record, bound)
    stays = False
    # Without scores, no member is newer than one that is added now.
    if takes_older and record.bundles and (keeps_equal or record.flags & SCORED):
        stays = not record.flags & ROWS and _stays_in_archive(
            cache, record, value, keeps_equal=keeps_equal
        )
    flags = record.flags
    if flags & ROWS:
        _add_row(
            cache, record, value, counted=counted, takes_older=takes_older, keeps_equal=keeps_equal
        )
        return
    head = record.head
    found = head.find(value.pattern)
    if found < 0:
        if counted:
            record.digests += value.digest
        else:
            record.flags = flags | MIXED | PARTIAL
        if not stays:
            in_order = value.time >= head[:TIME_BYTES]
            record.head = value.entry + head if in_order else _inserted(head, value)
            record.size += 1
        if record.size > bound:
            _cut_head(record)
    else:
        if counted and flags & MIXED:
            record.digests += value.digest
        _move(record, value, found, takes_older=takes_older, keeps_equal=keeps_equal)
    if record.size > HEAD_MEMBERS or len(record.head) > HEAD_BYTES:
        _move_to_archive(cache, record)
    if len(record.digests) > distinct_counters.PENDING_BYTES:
        distinct_counters.archive_digests(cache, record)


def remove(cache: RecordWriter, record: KeyRecord, raw: bytes) -> bool:
    """Removes a value; returns whether it was there."""
    record.fast_bound = -1
    if record.has_rows:
        return _remove_row(cache, record, raw)
    entries = _entries(cache, record)
    kept = [entry for entry in entries if entry[_VALUE:] != escaped(raw)]
    if len(kept) == len(entries):
        return False
    record.flags |= PARTIAL
    _repack(cache, record, kept)
    return True


def _stays_in_archive(
    cache: RecordWriter, record: KeyRecord, value: Value, *, keeps_equal: bool
) -> bool:
    """Returns whether the value keeps its place; removes a member of it that is newer."""
    entries = _entries(cache, record)
    same = value.pattern[1:-1]
    time = next((entry[:TIME_BYTES] for entry in entries if entry[_VALUE:] == same), b"")
    if time > value.time:
        _repack(cache, record, [entry for entry in entries if entry[_VALUE:] != same])
    return keeps_equal and time == value.time


def _move(
    record: KeyRecord, value: Value, found: int, *, takes_older: bool, keeps_equal: bool
) -> None:
    """Moves a member of the head to the place of its new time."""
    head = record.head
    begin = found - TIME_BYTES
    if not _keeps_place(
        head[begin:found], value.time, takes_older=takes_older, keeps_equal=keeps_equal
    ):
        rest = head[:begin] + head[found + len(value.pattern) :]
        in_order = value.time >= rest[:TIME_BYTES]
        record.head = value.entry + rest if in_order else _inserted(rest, value)


def _keeps_place(time: bytes, new: bytes, *, takes_older: bool, keeps_equal: bool) -> bool:
    """Returns whether a member keeps its place when it is added with a new time."""
    return keeps_equal if time == new else time > new and not takes_older


def _inserted(head: bytes, value: Value) -> bytes:
    """Returns the head with a value older than its first member: the event came late."""
    entries = head.split(b"\x00")[:-1]
    older = (i for i, entry in enumerate(entries) if entry[:TIME_BYTES] <= value.time)
    entries.insert(next(older, len(entries)), value.entry[:-1])
    return _joined(entries)


def _cut_head(record: KeyRecord) -> None:
    """Evicts the oldest member of a set so small that the head holds all of it."""
    record.flags |= PARTIAL
    record.head = record.head[: record.head.rfind(b"\x00", 0, -1) + 1]
    record.size -= 1


def _change_bound(cache: RecordWriter, record: KeyRecord, bound: int) -> None:
    """Applies the bound of the handler that writes now.

    A larger bound must not bring back values that the old one has evicted; a smaller one cuts the
    set at once.
    """
    if record.has_rows:
        record.bound = bound
        _evict_rows(cache, record)
    elif record.size or record.bundles:
        entries = _entries(cache, record)
        record.bound = bound
        if len(entries) > bound:
            record.flags |= PARTIAL
        _repack(cache, record, entries[:bound])
    else:
        record.bound = bound


def _move_to_archive(cache: RecordWriter, record: KeyRecord) -> None:
    """Moves the head to the archive, which is compacted when it holds about twice the set."""
    if record.bound <= HEAD_MEMBERS:
        return  # a few long values; there will be no more of them
    if record.bundles < min(2 + record.bound // HEAD_MEMBERS, MAX_BUNDLES):
        distinct_counters.archive(cache, record, record.head)
        record.head, record.size = b"", 0
        return
    merged = _merged(record.head, distinct_counters.read_archive(cache, record)[1])
    if len(merged) > record.bound:
        record.flags |= PARTIAL
    _repack(cache, record, merged[: record.bound])


def _repack(cache: RecordWriter, record: KeyRecord, entries: list[bytes]) -> None:
    """Stores all members of a set again, in the form that suits their number."""
    known, _ = distinct_counters.read_archive(cache, record)
    known = distinct_counters.absorb_digests(cache, record, known)
    packed = _joined(entries)
    archive = b""
    record.size = len(entries)
    if len(entries) > PACKED_MEMBERS or (
        len(packed) > PACKED_BYTES and record.bound > HEAD_MEMBERS
    ):
        record.head = b""
        _unpack_to_rows(cache, record, entries)
    elif len(entries) > HEAD_MEMBERS:
        record.head, record.size, archive = b"", 0, packed
    else:
        record.head = packed
    distinct_counters.rewrite(cache, record, known, archive)


def _joined(entries: list[bytes]) -> bytes:
    return b"\x00".join(entries) + b"\x00" if entries else b""


# --- rows -------------------------------------------------------------------------------------


def _unpack_to_rows(cache: RecordWriter, record: KeyRecord, entries: list[bytes]) -> None:
    prefix = cache.new_generation(record)
    record.sequence = 0
    for entry in reversed(entries):
        raw = unescaped(entry[_VALUE:])
        record.sequence += 1
        where = place(unpack_time(entry[:TIME_BYTES]), record.sequence)
        cache.put(prefix + VALUES + value_part(raw), where)
        cache.put(prefix + PLACES + where, raw)


def _add_row(
    cache: RecordWriter,
    record: KeyRecord,
    value: Value,
    *,
    counted: bool,
    takes_older: bool,
    keeps_equal: bool,
) -> None:
    prefix = cache.keys.generation(record.generation)
    by_value = prefix + VALUES + value_part(value.raw)
    old = cache.get(by_value)
    if record.flags & FANNED_OUT:
        note_change(cache, record, value_part(value.raw), value.raw if old else None)
    if counted and (old is None or record.flags & MIXED):
        record.digests += value.digest
        if len(record.digests) > distinct_counters.PENDING_BYTES:
            distinct_counters.archive_digests(cache, record)
    if old is None:
        record.size += 1
        if not counted:
            record.flags |= MIXED | PARTIAL
    elif _keeps_place(
        old[:TIME_BYTES],
        place(value.at, 0)[:TIME_BYTES],
        takes_older=takes_older,
        keeps_equal=keeps_equal,
    ):
        return
    else:
        cache.delete(prefix + PLACES + old)
    record.sequence += 1
    where = place(value.at, record.sequence)
    cache.put(by_value, where)
    places = prefix + PLACES
    cache.put(places + where, value.raw)
    if places + where < cache.first_places.get(places, b""):
        del cache.first_places[places]
    if record.size > record.bound:
        _evict_rows(cache, record)


def _evict_rows(cache: RecordWriter, record: KeyRecord) -> None:
    """Evicts the oldest members beyond the bound, or copies the rest if that is less work."""
    excess = record.size - record.bound
    if excess <= 0:
        return
    record.flags |= PARTIAL
    if record.bound <= _UNPACKED_MEMBERS or (
        excess > record.bound + CLEARED_PER_STEP and record.bound <= EVICTED_PER_WRITE
    ):
        _pack_rows(cache, record, record.bound)
        return
    prefix = cache.keys.generation(record.generation)
    begin, end = prefix_range(prefix + PLACES)
    # What this call has evicted already is not skipped again each time.
    first = cache.first_places.get(begin, begin)
    oldest = list(cache.scan(first, end, limit=min(excess, EVICTED_PER_WRITE)))
    cache.first_places[begin] = oldest[-1][0]
    for where, raw in oldest:
        part = value_part(raw)
        if record.flags & FANNED_OUT:
            note_change(cache, record, part, raw)
        cache.delete(where)
        cache.delete(prefix + VALUES + part)
    record.size -= len(oldest)


def _remove_row(cache: RecordWriter, record: KeyRecord, raw: bytes) -> bool:
    prefix = cache.keys.generation(record.generation)
    by_value = prefix + VALUES + value_part(raw)
    where = cache.get(by_value)
    if where is None:
        return False
    if record.flags & FANNED_OUT:
        note_change(cache, record, value_part(raw), raw)
    cache.delete(by_value)
    cache.delete(prefix + PLACES + where)
    record.size -= 1
    record.flags |= PARTIAL
    if record.size <= _UNPACKED_MEMBERS:
        _pack_rows(cache, record, record.size)
    return True


def _pack_rows(cache: RecordWriter, record: KeyRecord, count: int) -> None:
    """Packs the `count` newest members and abandons the generation."""
    newest = _rows(cache, record, limit=count)
    entries = [_entry(raw, at) for raw, at in newest]
    cache.abandon_generation(record)
    _repack(cache, record, entries)


# --- reading ----------------------------------------------------------------------------------


def size(cache: RecordCache, record: KeyRecord) -> int:
    """Returns how many members the set has."""
    if record.has_rows or not record.bundles:
        return record.size
    return len(_entries(cache, record))


def contains(cache: RecordCache, record: KeyRecord, raw: bytes) -> Member | None:
    """Returns the member, if the set has it."""
    if record.has_rows:
        by_value = cache.keys.generation(record.generation) + VALUES + value_part(raw)
        where = cache.get(by_value)
        return None if where is None else (raw, int.from_bytes(where[:TIME_BYTES], "big"))
    value = escaped(raw)
    found = (entry for entry in _entries(cache, record) if entry[_VALUE:] == value)
    entry = next(found, None)
    return None if entry is None else (raw, unpack_time(entry[:TIME_BYTES]))


def packed_members(cache: RecordCache, record: KeyRecord) -> list[Member]:
    """Returns all members of a packed set, newest first."""
    return [
        (unescaped(entry[_VALUE:]), unpack_time(entry[:TIME_BYTES]))
        for entry in _entries(cache, record)
    ]


def newest_values(cache: RecordCache, record: KeyRecord, limit: int) -> list[bytes]:
    """Returns the values of the newest members, for a look-up."""
    if record.has_rows:
        return [raw for raw, _ in _rows(cache, record, limit=limit)]
    return [unescaped(entry[_VALUE:]) for entry in _entries(cache, record)[:limit]]


def _entries(cache: RecordCache, record: KeyRecord) -> list[bytes]:
    """Returns all members of a packed set as entries, newest first."""
    _, older = distinct_counters.read_archive(cache, record)
    merged = _merged(record.head, older)
    return merged if record.bound == UNBOUNDED else merged[: record.bound]


def _merged(head: bytes, older: bytes) -> list[bytes]:
    entries = (head + older).split(b"\x00")[:-1]
    # In order already, unless an event came late. The sort keeps the order within a millisecond.
    entries.sort(key=_TIME, reverse=True)
    values = [entry[_VALUE:] for entry in entries]
    if len(set(values)) == len(values):
        return entries
    first: dict[bytes, bytes] = {}
    for value, entry in zip(values, entries, strict=True):
        first.setdefault(value, entry)
    return list(first.values())


def _entry(raw: bytes, at: int) -> bytes:
    return pack_time(at) + b"\x01" + escaped(raw)


def _rows(cache: RecordCache, record: KeyRecord, *, limit: int) -> list[Member]:
    begin, end = prefix_range(cache.keys.generation(record.generation) + PLACES)
    times = len(begin)
    return [
        (raw, int.from_bytes(key[times : times + TIME_BYTES], "big"))
        for key, raw in cache.scan(begin, end, limit=limit, reverse=True)
    ]


def exact_size(cache: RecordCache, record: KeyRecord) -> int | None:
    """Returns the number of members if none was ever evicted; compaction may still evict some."""
    if record.has_rows:
        return record.size
    count = len(_merged(record.head, distinct_counters.read_archive(cache, record)[1]))
    return count if count <= record.bound else None
