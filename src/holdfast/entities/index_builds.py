"""Background work on indexes: building new ones, and clearing removed ones.

The work is done in bounded steps, each its own transaction, by the mechanism that removes expired
data: the server's background task, in a library each write, or `StoreEntities.build` to do it at
once. Each step records its progress, so the work continues after a restart."""

from typing import Final

import msgspec

from holdfast import expiry
from holdfast.engine.contract import Reader, Transaction
from holdfast.entities.index_counts import count_changes
from holdfast.entities.layout import entry_value, id_part_of, is_expired_entry, keys_of
from holdfast.entities.records import (
    IndexWork,
    StoredIndex,
    read_table,
    read_work,
    write_record,
    write_table,
)
from holdfast.entities.table_access import IndexAccess, TableAccess, access_to
from holdfast.errors import InvalidTable
from holdfast.keys import after, pack_int, prefix_range, unpack
from holdfast.limits import BUILD_STEP_BYTES, INDEX_STEP_ENTITIES

WORK_KIND: Final = "entities.index"  # the subject is an index's number, packed


def start_building(tx: Transaction, index: int, *, table: str, name: str) -> None:
    """Schedules the building of the index with this number."""
    _start(tx, index, IndexWork(kind="build", table=table, name=name))


def start_clearing(tx: Transaction, number: int, *, table: str, name: str) -> None:
    """Schedules the removal of all keys below the number of an index or a table."""
    _start(tx, number, IndexWork(kind="clear", table=table, name=name))


def pending_work(reader: Reader) -> list[tuple[int, IndexWork]]:
    """Returns the indexes that are being built or cleared, by number."""
    prefix = keys_of(reader.space).work
    return [
        (int(unpack(key, len(prefix))[0]), read_work(value))
        for key, value in reader.scan(*prefix_range(prefix))
    ]


def work_step(tx: Transaction, subject: bytes) -> bool:
    """Runs the next bounded step of the work on one index; returns True when it is done."""
    number = int(unpack(subject)[0])
    key = keys_of(tx.space).index_work(number)
    stored = tx.get(key)
    if stored is None:
        return True
    work = read_work(stored)
    if work.kind == "clear":
        is_done = _clear_step(tx, number)
        if is_done:
            tx.delete(key)
        return is_done
    return _build_step(tx, number, work)


def _start(tx: Transaction, number: int, work: IndexWork) -> None:
    tx.put(keys_of(tx.space).index_work(number), write_record(work))
    expiry.begin_work(tx, WORK_KIND, pack_int(number))


# --- building ---------------------------------------------------------------------------------


def _build_step(tx: Transaction, number: int, work: IndexWork) -> bool:
    key = keys_of(tx.space).index_work(number)
    try:
        access = access_to(tx, work.table)
    except InvalidTable:
        access = None
    index = next((i for i in access.indexes if i.number == number), None) if access else None
    if access is None or index is None:  # the index, or its table, has been removed since
        tx.delete(key)
        return True
    begin = access.entities + after(work.cursor) if work.cursor else access.entities
    end = prefix_range(access.entities)[1]
    entities, size = [], 0
    for pair in tx.scan(begin, end, limit=INDEX_STEP_ENTITIES):
        entities.append(pair)
        size += len(pair[1])
        if size > BUILD_STEP_BYTES:
            break
    conflicts = _index_entities(tx, access, index, entities)
    work = msgspec.structs.replace(
        work,
        done=work.done + len(entities),
        cursor=entities[-1][0][len(access.entities) :] if entities else work.cursor,
        conflicts=work.conflicts + len(conflicts),
        conflict=work.conflict or (conflicts[0] if conflicts else ""),
    )
    if len(entities) < INDEX_STEP_ENTITIES and size <= BUILD_STEP_BYTES:
        return _finish_building(tx, number, work)
    tx.put(key, write_record(work))
    return False


def _index_entities(
    tx: Transaction, access: TableAccess, index: IndexAccess, entities: list[tuple[bytes, bytes]]
) -> list[str]:
    """Adds the missing entries; returns the ids that violate the uniqueness of the index."""
    now_ms = expiry.to_ms(tx.now)
    added: dict[bytes, int] = {}
    conflicts: list[str] = []
    for key, value in entities:
        id_part = key[len(access.entities) :]
        entity = access.read_kept(value)
        values = index.values_part(entity.properties)
        if values is None:
            continue
        if index.unique and not index.has_null(entity.properties):
            for other, mark in tx.scan(*prefix_range(index.entries + values)):
                if id_part_of(other, mark) != id_part and not is_expired_entry(mark, now_ms):
                    conflicts.append(str(unpack(id_part)[0]))
                    break
        if tx.get(index.entries + values + id_part) is None:
            tx.put(index.entries + values + id_part, entry_value(id_part, entity.expires))
            added[values + id_part] = 1
    count_changes(tx, index, added)
    return conflicts


def _finish_building(tx: Transaction, number: int, work: IndexWork) -> bool:
    """Makes the index available to queries; with conflicts it must be built again first."""
    keys = keys_of(tx.space)
    if work.conflicts:
        stuck = msgspec.structs.replace(work, is_stuck=True)
        tx.put(keys.index_work(number), write_record(stuck))
        return True
    stored = read_table(tx.get(keys.table(work.table)) or b"")
    indexes = tuple(
        StoredIndex(number) if index.number == number else index for index in stored.indexes
    )
    ready = msgspec.structs.replace(stored, indexes=indexes)
    tx.put(keys.table(work.table), write_table(ready))
    tx.delete(keys.index_work(number))
    return True


def restart_conflicting(tx: Transaction) -> int:
    """Restarts the building of unique indexes that found conflicts."""
    restarted = 0
    for number, work in pending_work(tx):
        if work.is_stuck:
            start_building(tx, number, table=work.table, name=work.name)
            restarted += 1
    return restarted


# --- clearing ---------------------------------------------------------------------------------


def _clear_step(tx: Transaction, number: int) -> bool:
    """Clears a bounded number of keys below `number`, that of an index or a table."""
    keys, part = keys_of(tx.space), pack_int(number)
    left = INDEX_STEP_ENTITIES
    for area in (
        keys.entities,
        keys.entries,
        keys.milestones,
        keys.counts,
        keys.expiring,
        keys.sizes,
    ):
        begin, end = prefix_range(area + part)
        found = [key for key, _ in tx.scan(begin, end, limit=left)]
        if found:
            tx.clear(begin, after(found[-1]))
            left -= len(found)
        if left <= 0:
            return False
    return True
