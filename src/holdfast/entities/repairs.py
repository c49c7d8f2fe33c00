"""Compares entities with their index entries, in steps, and repairs what differs."""

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from holdfast.binding import Runner
from holdfast.engine.contract import Transaction
from holdfast.entities.index_counts import count_changes, recount_step
from holdfast.entities.layout import entry_value, id_part_of
from holdfast.entities.table_access import IndexAccess, TableAccess, access_to
from holdfast.keys import after, prefix_range
from holdfast.limits import INDEX_STEP_ENTITIES

T = TypeVar("T")


class Repaired(msgspec.Struct, frozen=True, kw_only=True):
    """The result of checking or repairing a table and its indexes."""

    checked: int = 0  # entities
    added: int = 0  # index entries that were missing
    removed: int = 0  # index entries without an entity, or with another's values
    recounted: int = 0  # counts of index entries that were wrong


def repair(runner: Runner, table: str, *, dry_run: bool) -> Repaired:
    """Repairs the table and then each index; with `dry_run` it changes nothing."""
    checked = added = removed = recounted = 0
    with runner.view() as reader:
        positions = range(len(access_to(reader, table).indexes))
    cursor: bytes | None = b""
    while cursor is not None:
        count, missing, cursor = _step(runner, dry_run, _check_entities, table, cursor, dry_run)
        checked, added = checked + count, added + missing
    for position in positions:
        cursor = b""
        while cursor is not None:
            wrong, cursor = _step(runner, dry_run, _check_entries, table, position, cursor, dry_run)
            removed += wrong
        cursor = b""
        while cursor is not None:
            wrong, cursor = _step(runner, dry_run, _check_counts, table, position, cursor, dry_run)
            recounted += wrong
    return Repaired(checked=checked, added=added, removed=removed, recounted=recounted)


def _step(runner: Runner, dry_run: bool, work: Callable[..., T], *args: Any) -> T:
    if dry_run:
        with runner.view() as reader:
            return work(reader, *args)
    return runner.transact(lambda tx: work(tx, *args))


def _check_entities(
    tx: Transaction, table: str, cursor: bytes, dry_run: bool
) -> tuple[int, int, bytes | None]:
    access = access_to(tx, table)
    size = len(access.entities)
    end = prefix_range(access.entities)[1]
    entities = list(tx.scan(access.entities + cursor, end, limit=INDEX_STEP_ENTITIES))
    added: list[dict[bytes, int]] = [{} for _ in access.indexes]
    wrong = 0
    for key, value in entities:
        id_part, entity = key[size:], access.read_kept(value)
        for position, index in enumerate(access.indexes):
            values = index.values_part(entity.properties)
            if values is None or not index.ready:
                continue
            entry, expected = values + id_part, entry_value(id_part, entity.expires)
            found = tx.get(index.entries + entry)
            if found == expected:
                continue
            wrong += 1
            if not dry_run:
                tx.put(index.entries + entry, expected)
                if found is None:
                    added[position][entry] = 1
    for index, entries in zip(access.indexes, added, strict=True):
        count_changes(tx, index, entries)
    return len(entities), wrong, _next(entities, size)


def _check_entries(
    tx: Transaction, table: str, position: int, cursor: bytes, dry_run: bool
) -> tuple[int, bytes | None]:
    access = access_to(tx, table)
    index = access.indexes[position]
    size = len(index.entries)
    end = prefix_range(index.entries)[1]
    entries = list(tx.scan(index.entries + cursor, end, limit=INDEX_STEP_ENTITIES))
    wrong = [
        key[size:]
        for key, value in entries
        if key[size:] != _expected_entry(tx, access, index, id_part_of(key, value))
    ]
    if not dry_run:
        for entry in wrong:
            tx.delete(index.entries + entry)
        count_changes(tx, index, dict.fromkeys(wrong, -1))
    return len(wrong), _next(entries, size)


def _check_counts(
    tx: Transaction, table: str, position: int, cursor: bytes, dry_run: bool
) -> tuple[int, bytes | None]:
    return recount_step(tx, access_to(tx, table).indexes[position], cursor, dry_run=dry_run)


def _expected_entry(
    tx: Transaction, access: TableAccess, index: IndexAccess, id_part: bytes
) -> bytes | None:
    stored = tx.get(access.entities + id_part)
    values = None if stored is None else index.values_part(access.read_kept(stored).properties)
    return None if values is None else values + id_part


def _next(pairs: list[tuple[bytes, bytes]], size: int) -> bytes | None:
    """Returns where the next step begins; None if this was the last."""
    return after(pairs[-1][0][size:]) if len(pairs) == INDEX_STEP_ENTITIES else None
