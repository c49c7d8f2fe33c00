"""GET: finds the entities of a selection, a page at a time, and counts them all.

Entries of an index are walked without loading their entities; only those of the page are loaded.
"""

from bisect import bisect_right
from collections.abc import Iterator
from heapq import merge
from itertools import chain
from typing import Any, Final

import msgspec

from holdfast.call_time import CallTimer
from holdfast.engine.contract import Reader, read_counter
from holdfast.entities.answer_meters import AnswerMeter, ChangeMeter, ComparedMeter
from holdfast.entities.ids import plain_id
from holdfast.entities.index_choice import (
    ByIds,
    ByIndex,
    ByKeyColumns,
    ByPrimary,
    Selection,
    Stretch,
)
from holdfast.entities.index_counts import count_stretch, skip_backward, skip_forward
from holdfast.entities.layout import ids_in, is_expired_entry
from holdfast.entities.messages import NO_LIMIT, NOT_COUNTED
from holdfast.entities.name_lists import Readers, read_head
from holdfast.entities.order import entry_part
from holdfast.entities.table_access import TableAccess
from holdfast.expiry import to_ms
from holdfast.keys import pack_int, pack_str, unpack
from holdfast.limits import (
    EXPIRED_ENTITY_STEPS,
    MAX_ANSWER_ENTITIES,
    MAX_CHANGED_ENTITIES,
    MAX_WALK_SECONDS,
    VALUES_PER_SIZE_CHECK,
    WALKED_ENTRIES,
)

_FEWER_WALKED: Final = (
    "Select fewer: without the count, after the last id instead of by offset, or fewer IN values."
)
_WALKED_PER_CHECK: Final = 256  # entries between two looks at the time

_UNBOUNDED: Final = 2**63
_READ_AHEAD: Final = 32  # entries of an index that are read at once where no one knows how many
_MOST_AT_ONCE: Final = 128  # and where a page needs more
_TEXT: Final = frozenset({str})
_HEADS: Final = Readers(read_head, lambda stored: [read_head(each) for each in stored])


class FoundEntities(msgspec.Struct, frozen=True):
    """A page of stored entities with their ids, and the number of all that match."""

    ids: list[str]
    stored: list[Any]
    total: int = NOT_COUNTED
    partial: bool = False

    def pairs(self) -> Iterator[tuple[str, Any]]:
        """Yields the ids, each with its entity."""
        return zip(self.ids, self.stored)  # noqa: B905  # `strict` takes twice as long


def find(
    reader: Reader,
    access: TableAccess,
    selection: Selection,
    readers: Readers,
    offset: int,
    limit: int,
    count: bool,
    meter: AnswerMeter | None = None,
) -> FoundEntities:
    """Returns a page of the selection, decoded. With a meter it has a bound."""
    if isinstance(selection, ByPrimary):
        return _find_by_primary(reader, access, selection, readers, offset, limit, count, meter)
    if not isinstance(selection, ByIndex):
        return _find_by_ids(reader, access, selection, readers, offset, limit, count, meter)
    most = _UNBOUNDED if limit == NO_LIMIT else limit
    wanted = offset + most
    ahead = wanted if wanted <= _MOST_AT_ONCE else _READ_AHEAD
    if count and ahead < _READ_AHEAD:
        ahead = _READ_AHEAD
    groups, index = selection.groups, selection.index
    if ahead and len(groups) == 1 and len(stretches := groups[0][1]) == 1:
        # A single stretch: reading its first entries at once costs a third of one by one.
        prefix, [stretch] = index.entries, stretches
        begin, end = prefix + stretch.begin, prefix + stretch.end
        pairs = list(reader.scan(begin, end, limit=ahead, reverse=selection.is_descending))
        parts = _live_parts(reader, pairs)
        if len(pairs) < ahead or (not count and len(parts) >= wanted):  # the usual: that is enough
            page = parts[offset:wanted] if offset or wanted < len(parts) else parts
            ids, stored = _load_parts(reader, access, page, readers, meter)
            return FoundEntities(ids, stored, len(parts) if count else NOT_COUNTED, not index.ready)
    return _find_by_index(reader, access, selection, readers, offset, most, count, meter)


def find_all(reader: Reader, access: TableAccess, selection: Selection) -> FoundEntities:
    """Returns every entity of the selection once, in kept form, for callers that write it back."""
    meter = ChangeMeter()
    if isinstance(selection, ByIds):
        ids = list(dict.fromkeys(selection.ids))
        return load(reader, access, ids, access.kept, meter if len(ids) > 1 else None)
    most = MAX_CHANGED_ENTITIES + 1
    return find(reader, access, selection, access.kept, 0, most, False, meter)


def count_all(reader: Reader, access: TableAccess, selection: Selection) -> int:
    """Returns how many live entities match."""
    return find(reader, access, selection, access.kept, 0, 0, True).total


def load(
    reader: Reader,
    access: TableAccess,
    ids: list[str],
    readers: Readers,
    meter: AnswerMeter | None = None,
) -> FoundEntities:
    """Returns the live entities of these ids, in this order; missing ones are left out."""
    if not _TEXT.issuperset(map(type, ids)):
        ids = [plain_id(id) for id in ids]
    if len(ids) == 1 and meter is None:
        entity = load_one(reader, access, pack_str(ids[0]), readers)
        return FoundEntities([], []) if entity is None else FoundEntities(ids, [entity])
    prefix, now_ms, read = access.entities, 0, readers.one
    found_ids: list[str] = []
    found: list[Any] = []
    for begin in range(0, len(ids), VALUES_PER_SIZE_CHECK):
        some = ids[begin : begin + VALUES_PER_SIZE_CHECK]
        stored = reader.get_many([prefix + pack_str(id) for id in some])
        if meter is not None:
            meter.take(access, [value for value in stored if value is not None])
        for id, value in zip(some, stored):  # noqa: B905  # see `Found.pairs`
            if value is not None:
                entity = read(value)
                if entity.expires:
                    now_ms = now_ms or to_ms(reader.now)
                    if entity.expires <= now_ms:
                        continue
                found_ids.append(id)
                found.append(entity)
    return FoundEntities(found_ids, found)


def load_one(reader: Reader, access: TableAccess, id_part: bytes, readers: Readers) -> Any:
    """Returns the live entity of this id part, or None. Reads 1 key."""
    value = reader.get(access.entities + id_part)
    if value is None:
        return None
    entity = readers.one(value)
    return None if entity.expires and entity.expires <= to_ms(reader.now) else entity


# --- ids --------------------------------------------------------------------------------------


def _find_by_ids(
    reader: Reader,
    access: TableAccess,
    selection: ByIds | ByKeyColumns,
    readers: Readers,
    offset: int,
    limit: int,
    count: bool,
    meter: AnswerMeter | None,
) -> FoundEntities:
    ids = list(selection.ids)
    if isinstance(selection, ByKeyColumns):
        allowed = selection.allowed
        kept = load(reader, access, ids, access.kept, ComparedMeter())
        ids = [id for id, entity in kept.pairs() if _fits(entity.properties, allowed)]
    elif offset == 0 and (limit == NO_LIMIT or limit >= len(ids)):
        found = load(reader, access, ids, readers, meter)
        return _counted(found, found.ids) if count else found
    else:  # an id may be given many times, and is read once
        distinct = list(dict.fromkeys(ids))
        live = set(load(reader, access, distinct, _HEADS, ComparedMeter()).ids)
        ids = [id for id in ids if id in live]
    page = ids[offset:] if limit == NO_LIMIT else ids[offset : offset + limit]
    found = load(reader, access, page, readers, meter)
    return _counted(found, ids) if count else found


def _counted(page: FoundEntities, ids: list[str]) -> FoundEntities:
    return FoundEntities(page.ids, page.stored, len(set(ids)))


def _fits(properties: dict[str, Any], allowed: dict[str, frozenset[bytes]]) -> bool:
    return all(entry_part(properties.get(name)) in parts for name, parts in allowed.items())


# --- the primary key --------------------------------------------------------------------------


def _find_by_primary(
    reader: Reader,
    access: TableAccess,
    selection: ByPrimary,
    readers: Readers,
    offset: int,
    limit: int,
    count: bool,
    meter: AnswerMeter | None,
) -> FoundEntities:
    prefix, now_ms = access.entities, to_ms(reader.now)
    size = len(prefix)
    pairs = reader.scan(
        prefix + selection.begin, prefix + selection.end, reverse=selection.is_descending
    )
    ids: list[str] = []
    page: list[Any] = []
    seen, end = 0, _UNBOUNDED if limit == NO_LIMIT else offset + limit
    is_walked = count and not selection.is_all
    if selection.is_all and meter is not None and end - offset > MAX_ANSWER_ENTITIES:
        meter.expect(min(end, live_size(reader, access)) - offset)  # before any of them is read
    for key, value in _timed(pairs) if end or is_walked else ():
        head = read_head(value)
        if head.expires and head.expires <= now_ms:
            continue
        if offset <= seen < end:
            if meter is not None:
                meter.take(access, (value,))
            ids.append(str(unpack(key, size)[0]))
            page.append(readers.one(value))
        seen += 1
        if seen >= end and not is_walked:
            break
    if not count:
        return FoundEntities(ids, page)
    return FoundEntities(ids, page, seen if is_walked else live_size(reader, access))


def live_size(reader: Reader, access: TableAccess) -> int:
    """Returns how many entities a table holds. Reads 1 key, and one for each expired entity still
    there."""
    size = read_counter(reader.get(access.size))
    return size - sum(1 for _ in reader.scan(*expired_range(access, to_ms(reader.now))))


def expired_range(access: TableAccess, now_ms: int) -> tuple[bytes, bytes]:
    """Returns the key range of entities that have expired but are not removed yet."""
    return access.expiring, access.expiring + pack_int(now_ms + 1)


# --- indexes ----------------------------------------------------------------------------------


def _find_by_index(
    reader: Reader,
    access: TableAccess,
    selection: ByIndex,
    readers: Readers,
    offset: int,
    most: int,
    count: bool,
    meter: AnswerMeter | None,
) -> FoundEntities:
    """Returns a page of a selection whose entries have to be walked."""
    partial = not selection.index.ready
    now_ms = to_ms(reader.now)
    skipped = 0
    entries = _timed(_entries(reader, selection))
    if offset > WALKED_ENTRIES and not _has_expired(reader, access, now_ms):
        selection_from, left = _skip_by_milestones(reader, selection, offset)
        entries = _timed(_entries(reader, selection_from))
        skipped, offset = offset - left, left
    if offset:
        skipped += _skip(entries, offset, now_ms)
    page = _take(entries, min(most, MAX_ANSWER_ENTITIES + 1), now_ms)
    if meter is not None:
        meter.expect(len(page))
    ids, stored = _load_parts(reader, access, page, readers, meter)
    if not count:
        return FoundEntities(ids, stored, NOT_COUNTED, partial)
    walked = skipped + len(page)
    most = max(WALKED_ENTRIES - walked, 1)
    further = _skip(entries, most, now_ms)
    if further < most:
        return FoundEntities(ids, stored, walked + further, partial)
    return FoundEntities(ids, stored, _count_stretches(reader, access, selection), partial)


def _live_parts(reader: Reader, pairs: list[tuple[bytes, bytes]]) -> list[bytes]:
    """Returns the id parts of those of the entries that have not expired."""
    if not pairs:
        return []
    usual = pairs[0][1]
    size = usual[0] << 8 | usual[1]
    parts = [key[-size:] for key, value in pairs if value == usual]
    if len(parts) < len(pairs) or len(usual) > 2:  # ids of several lengths, or some expire
        return _take(iter(pairs), len(pairs), to_ms(reader.now))
    return parts


def _load_parts(
    reader: Reader,
    access: TableAccess,
    parts: list[bytes],
    readers: Readers,
    meter: AnswerMeter | None,
) -> tuple[list[str], list[Any]]:
    """Returns the ids and entities of these id parts, which the entries of an index end with."""
    if len(parts) > VALUES_PER_SIZE_CHECK:
        ids: list[str] = []
        found: list[Any] = []
        for begin in range(0, len(parts), VALUES_PER_SIZE_CHECK):
            some = parts[begin : begin + VALUES_PER_SIZE_CHECK]
            some_ids, some_found = _load_parts(reader, access, some, readers, meter)
            ids += some_ids
            found += some_found
        return ids, found
    prefix = access.entities
    stored: list[Any] = reader.get_many([prefix + part for part in parts])
    if None in stored:  # an entry without its entity is damage, which `check` reports
        parts = [part for part, value in zip(parts, stored, strict=True) if value is not None]
        stored = [value for value in stored if value is not None]
    if meter is not None:
        meter.take(access, stored)
    return ids_in(parts), readers.many(stored)


def _has_expired(reader: Reader, access: TableAccess, now_ms: int) -> bool:
    return any(reader.scan(*expired_range(access, now_ms), limit=1))


def _skip_by_milestones(reader: Reader, selection: ByIndex, offset: int) -> tuple[ByIndex, int]:
    """Returns a selection that begins nearer to the page, and how many entries are left to skip.

    It works for a single stretch only: of several, it is not known beforehand which are skipped.
    """
    [(fixed, stretches), *more] = selection.groups
    if more or len(stretches) != 1:
        return selection, offset
    [stretch] = stretches
    if selection.is_descending:
        end, left = skip_backward(reader, selection.index, stretch.begin, stretch.end, offset)
        shorter = Stretch(stretch.begin, end)
    else:
        begin, left = skip_forward(reader, selection.index, stretch.begin, stretch.end, offset)
        shorter = Stretch(begin, stretch.end)
    return ByIndex(selection.index, [(fixed, [shorter])], selection.is_descending), left


def _take(entries: Iterator[tuple[bytes, bytes]], limit: int, now_ms: int) -> list[bytes]:
    """Returns the id parts of the next live entries."""
    taken: list[bytes] = []
    if limit:
        for key, value in entries:
            if len(value) == 2 or not is_expired_entry(value, now_ms):
                taken.append(key[-(value[0] << 8 | value[1]) :])
                if len(taken) == limit:
                    break
    return taken


def _skip(entries: Iterator[tuple[bytes, bytes]], limit: int, now_ms: int) -> int:
    """Skips the next live entries, at most `limit`, and returns how many there were."""
    passed = 0
    for _, value in entries:
        if len(value) == 2 or not is_expired_entry(value, now_ms):
            passed += 1
            if passed == limit:
                break
    return passed


def _timed(entries: Iterator[tuple[bytes, bytes]]) -> Iterator[tuple[bytes, bytes]]:
    """Yields the entries, as long as the call has time for them."""
    timer = _timer()
    for number, pair in enumerate(entries, 1):
        if not number % _WALKED_PER_CHECK:
            timer.check()
        yield pair


def _timer() -> CallTimer:
    return CallTimer("the selection", _FEWER_WALKED, MAX_WALK_SECONDS)


def _entries(reader: Reader, selection: ByIndex) -> Iterator[tuple[bytes, bytes]]:
    """Returns the entries of the selection in its order, expired ones included."""
    prefix, size = selection.index.entries, len(selection.index.entries)
    reverse = selection.is_descending
    groups = []
    for fixed, stretches in selection.groups:
        scans = (
            reader.scan(prefix + stretch.begin, prefix + stretch.end, reverse=reverse)
            for stretch in (reversed(stretches) if reverse else stretches)
        )
        groups.append(((size + fixed), chain.from_iterable(scans)))
    if len(groups) == 1:
        return groups[0][1]
    keyed = [_with_order(cut, scan) for cut, scan in groups]
    return (pair for _, pair in merge(*keyed, reverse=reverse))


def _with_order(
    cut: int, pairs: Iterator[tuple[bytes, bytes]]
) -> Iterator[tuple[bytes, tuple[bytes, bytes]]]:
    for pair in pairs:
        yield pair[0][cut:], pair


def _count_stretches(reader: Reader, access: TableAccess, selection: ByIndex) -> int:
    """Returns the number of live entries: those that the milestones count, less the expired ones.

    If very many have expired and are not removed yet, walking the selection is cheaper.
    """
    now_ms, index, timer = to_ms(reader.now), selection.index, _timer()
    stretches = sorted(stretch for _, group in selection.groups for stretch in group)
    total = 0
    for stretch in stretches:
        total += count_stretch(reader, index, stretch.begin, stretch.end)
        timer.check()
    most = max(WALKED_ENTRIES, total // EXPIRED_ENTITY_STEPS)
    expired = list(reader.scan(*expired_range(access, now_ms), limit=most))
    if len(expired) == most:
        return _skip(_timed(_entries(reader, selection)), _UNBOUNDED, now_ms)
    begins = [stretch.begin for stretch in stretches]
    for key, _ in expired:
        id_part = pack_str(str(unpack(key, len(access.expiring))[1]))
        stored = reader.get(access.entities + id_part)
        timer.check()
        values = index.values_part(access.read_kept(stored).properties) if stored else None
        if values is None or reader.get(index.entries + values + id_part) is None:
            continue
        entry = values + id_part
        place = bisect_right(begins, entry)
        total -= place > 0 and entry < stretches[place - 1].end
    return total
