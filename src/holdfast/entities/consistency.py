"""Checks the stored keys of this layer: entities, index entries and counts must agree.

`problems_at` checks one key at a time, for a caller that walks a space in bounded steps.
`entities.repair` fixes what it finds in the indexes of a table.
"""

from collections.abc import Iterator

from holdfast.engine.contract import Reader, read_counter
from holdfast.entities.index_counts import is_milestone, stretch_before
from holdfast.entities.layout import END_OF_INDEX, entry_value, id_in, id_part_of, keys_of
from holdfast.entities.records import read_table
from holdfast.entities.table_access import IndexAccess, TableAccess, access_to
from holdfast.keys import pack_int, pack_str, prefix_range, unpack, unpack_first

__all__ = ["problems_at"]


def problems_at(reader: Reader, key: bytes, value: bytes) -> Iterator[str]:
    """Yields the problems of the pair at `key`, a sentence each.

    Reads a few keys, for a table as a whole all of its entities.
    """
    keys = keys_of(reader.space)
    if key.startswith(keys.tables):
        yield from _table(reader, access_to(reader, read_table(value).table.full_name))
    elif key.startswith(keys.entities):
        access = _table_of(reader, unpack(key, len(keys.entities))[0])
        if access is not None:
            yield from _entity(reader, access, key, value)
    elif key.startswith(keys.expiring):
        number, expires, id = unpack(key, len(keys.expiring))
        access = _table_of(reader, number)
        stored = None if access is None else reader.get(access.entities + pack_str(id))
        if access is not None and (stored is None or access.read_kept(stored).expires != expires):
            yield f"{access.name}: {id!r} is listed to expire, but does not"
    else:
        yield from _index_key(reader, key, value)


def _table(reader: Reader, access: TableAccess) -> Iterator[str]:
    counted = read_counter(reader.get(access.size))
    has = sum(1 for _ in reader.scan(*prefix_range(access.entities)))
    if counted != has:
        yield f"{access.name}: counts {counted} entities, has {has}"


def _entity(reader: Reader, access: TableAccess, key: bytes, value: bytes) -> Iterator[str]:
    id_part, entity = key[len(access.entities) :], access.read_kept(value)
    id = id_in(id_part)
    for index in access.indexes:
        values = index.values_part(entity.properties)
        if values is None or not index.ready:
            continue
        found = reader.get(index.entries + values + id_part)
        if found != entry_value(id_part, entity.expires):
            problem = "is missing" if found is None else "has another expiry"
            yield f"{access.name}: the entry of {id!r} in index {index.name} {problem}"
    if entity.expires:
        listed = access.expiring + pack_int(entity.expires) + id_part
        if reader.get(listed) is None:
            yield f"{access.name}: {id!r} expires, but is not listed to"


def _index_key(reader: Reader, key: bytes, value: bytes) -> Iterator[str]:
    keys = keys_of(reader.space)
    checks = {keys.entries: _entry, keys.milestones: _milestone, keys.counts: _count}
    for prefix, check in checks.items():
        if key.startswith(prefix):
            found = _index_of(reader, unpack_first(key, len(prefix))[0])
            if found is not None:
                yield from check(reader, *found, key, value)


def _entry(
    reader: Reader, access: TableAccess, index: IndexAccess, key: bytes, value: bytes
) -> Iterator[str]:
    id_part, entry = id_part_of(key, value), key[len(index.entries) :]
    stored = reader.get(access.entities + id_part)
    values = None if stored is None else index.values_part(access.read_kept(stored).properties)
    if values is None or values + id_part != entry:
        problem = "without an entity" if stored is None else "with other values"
        yield f"{access.name}: index {index.name} has an entry of {id_in(id_part)!r} {problem}"
    if is_milestone(entry) and reader.get(index.milestones + entry) is None:
        yield f"{access.name}: index {index.name} lacks a milestone"


def _milestone(
    reader: Reader, access: TableAccess, index: IndexAccess, key: bytes, value: bytes
) -> Iterator[str]:
    entry = key[len(index.milestones) :]
    if reader.get(index.entries + entry) is None:
        yield f"{access.name}: index {index.name} has a milestone without an entry"


def _count(
    reader: Reader, access: TableAccess, index: IndexAccess, key: bytes, value: bytes
) -> Iterator[str]:
    entry = key[len(index.counts) :]
    counted, has = read_counter(value), stretch_before(reader, index, entry)
    if entry != END_OF_INDEX and reader.get(index.milestones + entry) is None:
        has = 0  # a count without its milestone
    if counted != has:
        yield f"{access.name}: index {index.name} counts {counted} entries where there are {has}"


def _tables(reader: Reader) -> Iterator[TableAccess]:
    for _, value in reader.scan(*prefix_range(keys_of(reader.space).tables)):
        yield access_to(reader, read_table(value).table.full_name)


def _table_of(reader: Reader, number: int) -> TableAccess | None:
    """Returns the table of that number; None if it was dropped."""
    return next((access for access in _tables(reader) if access.number == number), None)


def _index_of(reader: Reader, number: int) -> tuple[TableAccess, IndexAccess] | None:
    """Returns the index of that number; None if it was removed."""
    for access in _tables(reader):
        for index in access.indexes:
            if index.number == number:
                return access, index
    return None
