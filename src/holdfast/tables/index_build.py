"""Builds an index of a table that has rows, in bounded steps, while writes go on.

As soon as the index is in the schema, every write maintains it as if it were complete. A step
writes the entries of the next rows, even if a write has stored some of them already, so steps and
writes may come in any order.
"""

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from holdfast import expiry
from holdfast.engine.contract import Reader, Transaction, read_counter
from holdfast.error_text import shown
from holdfast.errors import IndexNotFound, InvalidTableSchema, RowKeyTooLong
from holdfast.keys import after, pack, prefix_range
from holdfast.limits import BUILD_STEP_BYTES, ROWS_PER_BUILD_STEP
from holdfast.tables import revisions, row_codec
from holdfast.tables.layout import ENTRIES, ROWS, keys_of
from holdfast.tables.plan import Index, TablePlan, encode_record
from holdfast.tables.records import BuildRecord, IndexProgress
from holdfast.tables.row_writer import RowWriter
from holdfast.tables.schema import check_name, normalise

BUILD: Final = "tables.build"  # the kind of its expiry entry; the subject is number and index id

_BUILD: Final = msgspec.msgpack.Decoder(BuildRecord)


def add_index(tx: Transaction, plan: TablePlan, name: str, elements: Any) -> None:
    """Adds a secondary index and starts to build it; the schema's version grows by one."""
    check_name(name, "index")
    if name in plan.indexes:
        raise InvalidTableSchema(f"{plan.name} has a secondary index {shown(name)} already")
    given = list(elements) if isinstance(elements, Sequence) else elements
    indexes = {**plan.schema.get("secondaryIndexes", {}), name: given}
    version = plan.schema["version"] + 1
    schema, _ = normalise(
        plan.name,
        {**plan.schema, "version": version, "secondaryIndexes": indexes},
        before=plan.schema,
    )
    index = plan.record.next_index
    record = msgspec.structs.replace(
        plan.record,
        schema=msgspec.json.encode(schema),
        indexes={**plan.record.indexes, name: index},
        next_index=index + 1,
        building=[*plan.record.building, name],
        inherited=False,
    )
    keys = keys_of(tx.space)
    tx.put(keys.table(plan.name), encode_record(record))
    tx.put(keys.build(plan.number, index), msgspec.msgpack.encode(BuildRecord()))
    expiry.begin_work(tx, BUILD, pack(plan.number, index))


def build_step(tx: Transaction, plan: TablePlan, index_id: int) -> bool:
    """Writes the entries of the next rows; returns True if nothing is left to do."""
    key = keys_of(tx.space).build(plan.number, index_id)
    value = tx.get(key)
    index = next((i for i in plan.indexes.values() if i.id == index_id), None)
    if value is None or index is None:
        return True
    build = _BUILD.decode(value)
    if build.problem:
        return True
    begin, end = prefix_range(keys_of(tx.space).rows_of(plan.number))
    if build.after:
        begin = after(tx.space + build.after)
    rows, size = [], 0
    for pair in tx.scan(begin, end, limit=ROWS_PER_BUILD_STEP):
        rows.append(pair)
        size += len(pair[1])
        if size > BUILD_STEP_BYTES:
            break
    try:
        _write_entries(tx, plan, index, rows, build)
    except RowKeyTooLong as error:
        # A row must never be missing silently, so the index stays incomplete, with the reason.
        problem = msgspec.structs.replace(build, problem=error.message)
        tx.put(key, msgspec.msgpack.encode(problem))
        return True
    if len(rows) < ROWS_PER_BUILD_STEP and size <= BUILD_STEP_BYTES:
        _complete(tx, plan, index)
        tx.delete(key)
        return True
    last = rows[-1][0][len(tx.space) :]
    tx.put(key, msgspec.msgpack.encode(BuildRecord(after=last, rows=build.rows + len(rows))))
    return False


def progress(reader: Reader, plan: TablePlan, name: str) -> IndexProgress:
    """Returns the progress of an index build. Reads 2 keys."""
    index = plan.indexes.get(name) if isinstance(name, str) else None
    if index is None or index.id is None:
        raise IndexNotFound(f"{plan.name} has no secondary index {shown(name)}")
    keys = keys_of(reader.space)
    total = read_counter(reader.get(keys.count(plan.number, ROWS)))
    value = reader.get(keys.build(plan.number, index.id))
    if value is None:
        return IndexProgress(index=name, complete=index.complete, rows=total, total=total)
    build = _BUILD.decode(value)
    return IndexProgress(
        index=name, complete=False, rows=build.rows, total=total, problem=build.problem
    )


def _write_entries(
    tx: Transaction,
    plan: TablePlan,
    index: Index,
    rows: list[tuple[bytes, bytes]],
    build: BuildRecord,
) -> None:
    writer = RowWriter(tx, plan)
    entries = keys_of(tx.space).entries + plan.number_bytes
    record = writer.record_of(tx.space + build.after) if build.after else None
    found: list[tuple[bytes, bytes]] = []
    for key, value in rows:
        if not index.per_row:
            # The newest revision of a record comes first, and lists the others with entries.
            if record is not None and key.startswith(record):
                continue
            record = writer.record_of(key)
            chain = writer.rebuild_chain(key, row_codec.decode(value))
            found += revisions.entries_of(index, chain).items()
            continue
        row = row_codec.decode(value)
        entry = index.entry(plan.values(row.body))
        if entry is not None:
            found.append((entry[0], row_codec.encode(entry[1], expires_ms=row.expires_ms).value))
    added = 0
    for key, entry_value in found:
        added += tx.get(entries + key) is None
        tx.put(entries + key, entry_value)
    writer.finish()
    if added:
        tx.add(keys_of(tx.space).count(plan.number, ENTRIES), added)


def _complete(tx: Transaction, plan: TablePlan, index: Index) -> None:
    building = [name for name in plan.record.building if name != index.name]
    record = msgspec.structs.replace(plan.record, building=building)
    tx.put(keys_of(tx.space).table(plan.name), encode_record(record))
