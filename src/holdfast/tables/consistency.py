"""Checks stored keys of this layer: rows, index entries and counts must agree.

`problems_at` is called for each key of a scan of the space, in bounded steps. Each check reads one
snapshot, so a write between two checks is never mistaken for corruption.
"""

from collections.abc import Iterator, Mapping

from holdfast.engine.contract import Reader, read_counter
from holdfast.keys import prefix_range, unpack, unpack_first
from holdfast.limits import MAX_FALLBACKS
from holdfast.tables import layout, revisions, row_codec
from holdfast.tables.background_steps import find_by_number
from holdfast.tables.plan import VERSION_BYTES, Index, TablePlan, Values, plan_of

__all__ = ["problems_at"]


def problems_at(reader: Reader, key: bytes, value: bytes) -> Iterator[str]:
    """Yields a sentence for each problem of the pair at `key`.

    Reads a few keys, for a table as a whole all of its rows and entries.
    """
    keys = layout.keys_of(reader.space)
    if key.startswith(keys.tables):
        yield from _table(reader, keys, key, value)
    elif key.startswith(keys.numbers):
        [number] = unpack(key, len(keys.numbers))
        plan = find_by_number(reader, number)
        if plan is None or plan.number != number:
            yield f"table number {number} belongs to no table"
    elif key.startswith(keys.rows):
        yield from _row(reader, keys, key, value)
    elif key.startswith(keys.entries):
        yield from _entry(reader, keys, key, value)


def _table(reader: Reader, keys: layout.Keys, key: bytes, value: bytes) -> Iterator[str]:
    plan = plan_of(value)
    [name] = unpack(key, len(keys.tables))
    if reader.get(keys.number(plan.number)) != name.encode():
        yield f"table {name}: its number {plan.number} does not lead back to it"
    rows = size = expiring = 0
    for row, value_bytes in reader.scan(*prefix_range(keys.rows_of(plan.number))):
        rows, size = rows + 1, size + len(row) + len(value_bytes)
        expiring += row_codec.decode(value_bytes).expires_ms > 0
    for static, value_bytes in reader.scan(*prefix_range(keys.statics_of(plan.number))):
        size += len(static) + len(value_bytes)
    entries = sum(1 for _ in reader.scan(*prefix_range(keys.entries_of(plan.number))))
    expected = {
        layout.ROWS: ("rows", rows),
        layout.BYTES: ("bytes", size),
        layout.ENTRIES: ("index entries", entries),
        layout.EXPIRING: ("expiring rows", expiring),
    }
    for what, (words, number) in expected.items():
        counted = read_counter(reader.get(keys.count(plan.number, what)))
        if counted != number:
            yield f"table {name}: counts {counted} {words}, has {number}"


def _row(reader: Reader, keys: layout.Keys, key: bytes, value: bytes) -> Iterator[str]:
    plan = _plan_at(reader, key, keys.rows)
    if plan is None:
        return  # a dropped table whose rows are being removed
    row = row_codec.decode(value)
    values = plan.values(row.body)
    if keys.rows_of(plan.number) + plan.primary.key(values) != key:
        yield f"table {plan.name}: a row is stored under another row's key"
        return
    if plan.current_indexes and _is_newest(reader, key):
        yield from _fallbacks(reader, plan, key, row)
    for index in plan.indexes.values():
        if not index.complete:
            continue
        for entry, expected in _entries(reader, plan, index, key, row).items():
            found = reader.get(keys.entries + plan.number_bytes + entry)
            if found != expected:
                problem = "is missing" if found is None else "has other values"
                row_text = _key_text(plan, values)
                yield f"table {plan.name}: the entry of {row_text} in index {index.name} {problem}"


def _fallbacks(
    reader: Reader, plan: TablePlan, key: bytes, row: row_codec.StoredRow
) -> Iterator[str]:
    """Yields a problem if a row has a wrong list; rows of an older Holdfast have none."""
    chain = revisions.chain_of(key, row)[: MAX_FALLBACKS + 1]
    if chain[1:] and chain != revisions.extended(reader, chain[:1]):
        row_text = _key_text(plan, plan.values(row.body))
        yield f"table {plan.name}: the list of fallbacks of {row_text} is wrong"


def _entry(reader: Reader, keys: layout.Keys, key: bytes, value: bytes) -> Iterator[str]:
    plan = _plan_at(reader, key, keys.entries)
    if plan is None:
        return
    number = unpack_first(key, len(keys.entries) + len(plan.number_bytes))[0]
    index = next((each for each in plan.indexes.values() if each.id == number), None)
    if index is None:
        return  # a dropped index
    values = revisions.values_of(plan, index, row_codec.decode(value).body)
    row_key = keys.rows_of(plan.number) + plan.primary.key(values)
    if not index.per_row:
        newest = next(iter(reader.scan(*prefix_range(row_key[:-VERSION_BYTES]), limit=1)), None)
        row_key = row_key if newest is None else newest[0]
    row = reader.get(row_key)
    expected = {} if row is None else _entries(reader, plan, index, row_key, row_codec.decode(row))
    if key[len(keys.entries) + len(plan.number_bytes) :] not in expected:
        row_text = _key_text(plan, values)
        yield f"table {plan.name}: index {index.name} has an entry of {row_text} without a row"


def _plan_at(reader: Reader, key: bytes, prefix: bytes) -> TablePlan | None:
    return find_by_number(reader, unpack_first(key, len(prefix))[0])


def _entries(
    reader: Reader, plan: TablePlan, index: Index, key: bytes, row: row_codec.StoredRow
) -> Mapping[bytes, bytes]:
    """Returns the entries that a row must have; those of a record belong to its newest row."""
    if not index.per_row and not _is_newest(reader, key):
        return {}
    chain = [revisions.ChainEntry(key, row, plan.values(row.body))]
    for member in revisions.chain_of(key, row)[1:] if not index.per_row else ():
        value = reader.get(member.key)
        if value is not None:
            found = row_codec.decode(value)
            chain.append(revisions.ChainEntry(member.key, found, plan.values(found.body)))
    return revisions.entries_of(index, chain)


def _is_newest(reader: Reader, key: bytes) -> bool:
    return next(iter(reader.scan(*prefix_range(key[:-VERSION_BYTES]), limit=1)))[0] == key


def _key_text(plan: TablePlan, values: Values) -> str:
    return ", ".join(f"{name}={values[id]!r}" for id, name in plan.key_slots)
