"""Deploys schemas: applies a plan to the store, and schedules new indexes to be built.

A deploy is one transaction that touches the tables' records and no entity. Tables without entities
are ready at once. New indexes of the others are built in the background (`index_builds`), where
removed indexes are cleared, too.
"""

from holdfast.engine.contract import Notice, Reader, Transaction, read_counter
from holdfast.entities.index_builds import restart_conflicting, start_building, start_clearing
from holdfast.entities.layout import keys_of
from holdfast.entities.messages import ChangeNotice, changed_topic
from holdfast.entities.plan import Plan, TableChange, plan
from holdfast.entities.records import (
    StoredIndex,
    StoredTable,
    read_table,
    write_record,
    write_table,
)
from holdfast.entities.schema import Schema, Table
from holdfast.entities.selections import live_size
from holdfast.entities.table_access import access_to
from holdfast.errors import TableInUse
from holdfast.keys import pack_int, pack_str, prefix_range, unpack


def deployed(reader: Reader, schema: str) -> Schema | None:
    """Returns the schema as it is deployed. Reads as many keys as it has tables."""
    tables = tuple(stored.table for stored in stored_tables(reader, schema)) if schema else ()
    is_known = (
        bool(tables) or reader.get(keys_of(reader.space).schemas + pack_str(schema)) is not None
    )
    return Schema(name=schema, tables=tables) if is_known else None


def schema_names(reader: Reader) -> list[str]:
    """Returns the names of all deployed schemas, those without tables last. Reads 1 key per
    table."""
    named = [stored.table.schema for stored in stored_tables(reader)]
    empty = keys_of(reader.space).schemas
    named += [str(unpack(key, len(empty))[0]) for key, _ in reader.scan(*prefix_range(empty))]
    return list(dict.fromkeys(named))


def stored_tables(reader: Reader, schema: str = "") -> list[StoredTable]:
    """Returns the tables of a schema, or of all, in the order in which they were first deployed."""
    # The full name is one part of the key: without its end it is the prefix of a schema's tables.
    begins = pack_str(f"{schema}." if schema else "")[:-1]
    found = [
        read_table(value)
        for _, value in reader.scan(*prefix_range(keys_of(reader.space).tables + begins))
    ]
    return sorted(found, key=lambda stored: stored.number)


def deploy(tx: Transaction, schema: Schema, *, prune: bool, force: bool) -> Plan:
    """Makes the tables of `schema` usable, and returns what changed."""
    changes = plan(deployed(tx, schema.name), schema, prune=prune)
    if not schema.tables:
        tx.put(keys_of(tx.space).schemas + pack_str(schema.name), b"")
    for change in changes.tables:
        if change.action == "remove":
            _remove(tx, change.table, force=force)
        elif change.action != "keep":
            _write(tx, change)
    restart_conflicting(tx)
    return changes


def drop(tx: Transaction, name: str) -> int:
    """Empties a table and returns how many live entities it held; the table stays deployed.

    Writes two keys per index; the entities are cleared in the background.
    """
    access = access_to(tx, name)
    held = live_size(tx, access)
    _forget(tx, access.table)
    _store(tx, access.table, number=_next_number(tx), kept={}, is_empty=True)
    notice = ChangeNotice(name, is_emptied=True)
    tx.after_commit(Notice(changed_topic(name), write_record(notice)))
    return held


def _write(tx: Transaction, change: TableChange) -> None:
    new = change.table
    old = tx.get(keys_of(tx.space).table(new.full_name))
    if old is None:
        _store(tx, new, number=_next_number(tx), kept={}, is_empty=True)
        return
    stored = read_table(old)
    if change.primary_changes and live_size(tx, access_to(tx, new.full_name)):
        raise TableInUse(
            f"Primary key of table {new.name} cannot change while it holds entities",
            hint="Dump the table, drop it, deploy the new schema and put the entities again.",
        )
    numbers = dict(
        zip(map(stored.table.index_name, stored.table.indexes), stored.indexes, strict=True)
    )
    for index in change.remove_indexes:
        name = stored.table.index_name(index)
        start_clearing(tx, numbers.pop(name).number, table=new.full_name, name=name)
    is_empty = _is_empty(tx, stored)
    _store(tx, new, number=stored.number, kept=numbers, is_empty=is_empty, old=stored)


def _store(
    tx: Transaction,
    table: Table,
    *,
    number: int,
    kept: dict[str, StoredIndex],
    is_empty: bool,
    old: StoredTable | None = None,
) -> None:
    """Stores a table; if it has entities, they keep using the name lists of `old`."""
    indexes = []
    for index in table.indexes:
        name = table.index_name(index)
        stored = kept.get(name)
        if stored is None:
            stored = StoredIndex(_next_number(tx), is_empty)
            if not is_empty:
                start_building(tx, stored.number, table=table.full_name, name=name)
        indexes.append(stored)
    name_lists = () if old is None else old.name_lists
    record = StoredTable(number=number, table=table, indexes=tuple(indexes), name_lists=name_lists)
    tx.put(keys_of(tx.space).table(table.full_name), write_table(record))


def _remove(tx: Transaction, table: Table, *, force: bool) -> None:
    if not force and live_size(tx, access_to(tx, table.full_name)):
        raise TableInUse(
            f"table {table.full_name} is no longer mentioned but still holds entities",
            hint="Deploy with `force` to lose them, or without `prune` to keep the table.",
        )
    _forget(tx, table)


def _forget(tx: Transaction, table: Table) -> None:
    """Removes a table at once; its entities are cleared in the background."""
    key = keys_of(tx.space).table(table.full_name)
    found = tx.get(key)
    if found is None:
        return
    stored = read_table(found)
    tx.delete(key)
    # Tables and indexes share one series of numbers, so the same work clears both.
    for number in (stored.number, *(index.number for index in stored.indexes)):
        start_clearing(tx, number, table=table.full_name, name="")


def _is_empty(tx: Transaction, stored: StoredTable) -> bool:
    """Returns whether a table holds nothing, not even expired entities."""
    return not read_counter(tx.get(keys_of(tx.space).sizes + pack_int(stored.number)))


def _next_number(tx: Transaction) -> int:
    key = keys_of(tx.space).last_number
    number = int(tx.get(key) or b"0") + 1
    tx.put(key, b"%d" % number)
    return number
