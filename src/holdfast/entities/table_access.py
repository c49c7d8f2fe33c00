"""Access to a deployed table: its prefixes, key columns and indexes, computed once and cached.

An access is a pure function of the stored table's bytes, so the cache needs no invalidation: a new
deployment stores other bytes, and the next transaction uses another access."""

from collections.abc import Iterable
from typing import Any, Final

from holdfast.bounded_cache import BoundedCache, bounded_cache, of_spaces
from holdfast.engine.contract import Reader
from holdfast.entities.layout import keys_of
from holdfast.entities.messages import changed_topic
from holdfast.entities.name_lists import NameLists
from holdfast.entities.order import NULL, entry_part
from holdfast.entities.records import StoredIndex, StoredTable, read_table
from holdfast.entities.schema import Column, Index, Table
from holdfast.error_text import did_you_mean, shown
from holdfast.errors import InvalidTable
from holdfast.keys import pack_int, prefix_range, unpack
from holdfast.limits import MAX_COMPARED_NAMES


class IndexAccess:
    """One secondary index."""

    __slots__ = (
        *("columns", "counts", "entries", "milestones", "name", "nulls", "number", "ready"),
        *("sparse", "unique"),
    )

    def __init__(self, space: bytes, index: Index, stored: StoredIndex, name: str) -> None:
        keys, number = keys_of(space), pack_int(stored.number)
        self.name: Final = name
        self.number: Final = stored.number
        self.ready: Final = stored.ready
        self.columns: Final = index.columns
        self.unique: Final = index.unique
        self.sparse: Final = index.sparse
        self.entries: Final = keys.entries + number
        self.milestones: Final = keys.milestones + number
        self.counts: Final = keys.counts + number
        self.nulls: Final = NULL * len(index.columns)

    def values_part(self, properties: dict[str, Any]) -> bytes | None:
        """Returns the entity's index entry without the id; None if a sparse index leaves the entity
        out."""
        get = properties.get
        if len(self.columns) == 2:
            first, second = self.columns
            values = entry_part(get(first)) + entry_part(get(second))
        else:
            values = b"".join([entry_part(get(column)) for column in self.columns])
        return None if self.sparse and values == self.nulls else values

    def has_same_values(self, old: dict[str, Any], new: dict[str, Any]) -> bool:
        """Returns whether all columns hold identical objects; equal objects are not compared."""
        return all([old.get(column) is new.get(column) for column in self.columns])

    def has_null(self, properties: dict[str, Any]) -> bool:
        """Returns whether the entity is exempt from uniqueness."""
        return any(entry_part(properties.get(column)) == NULL for column in self.columns)


class TableAccess:
    """One table: the prefixes of its keys, its primary key and its indexes."""

    __slots__ = (
        *("entities", "expiring", "hashed", "indexed", "indexes", "key_columns", "name"),
        *(
            "kept",
            "name_lists",
            "number",
            "plain",
            "plans",
            "indexes_by_columns",
            "primary",
            "read_kept",
        ),
        *("size", "strict", "table", "topic"),
    )

    def __init__(self, space: bytes, stored: StoredTable) -> None:
        keys, table, number = keys_of(space), stored.table, pack_int(stored.number)
        self.name: Final = table.full_name
        self.number: Final = stored.number
        self.table: Final = table
        self.topic: Final = changed_topic(table.full_name)
        self.entities: Final = keys.entities + number
        self.name_lists: Final = NameLists(stored.name_lists)
        self.plain: Final = self.name_lists.plain
        self.kept: Final = self.name_lists.kept
        self.read_kept: Final = self.kept.one
        self.size: Final = keys.sizes + number
        self.expiring: Final = keys.expiring + number
        self.key_columns: Final = _key_columns(table)
        self.primary: Final = tuple(column for column, _ in self.key_columns)
        self.hashed: Final = table.primary.hashed
        self.indexes: Final = tuple(
            IndexAccess(space, index, number_and_state, table.index_name(index))
            for index, number_and_state in zip(table.indexes, stored.indexes, strict=True)
        )
        self.indexed: Final = frozenset(
            column for index in self.indexes for column in index.columns
        )
        self.indexes_by_columns: Final = _indexes_by_columns(self.indexes)
        # By the columns that a query compares with one value each, in its order: the index to use,
        # and the positions of the index's columns in the query.
        self.plans: Final[dict[tuple[str, ...], tuple[IndexAccess, tuple[int, ...]]]] = {}
        self.strict: Final[dict[str, Column] | None] = (
            {column.name: column for column in table.columns} if table.strict else None
        )


def access_to(reader: Reader, name: str) -> TableAccess:
    """Returns the access of the table `schema.Table`. Reads 1 key."""
    try:
        cached = _table_keys[reader.space, name]
    except TypeError:  # `name` is not hashable, so it is no text
        raise _not_deployed(name) from None
    stored = reader.get(cached.key)
    if stored is None:
        raise _not_deployed(name, _names(reader))
    known, access = cached.found
    if access is None or stored != known:
        access = _access(reader.space, stored)
        cached.found = stored, access
    return access


def _not_deployed(name: Any, known: Iterable[str] = ()) -> InvalidTable:
    message = f"{shown(name)} is not deployed{did_you_mean(name, known)}"
    end = "" if message.endswith("?") else "."
    return InvalidTable("Invalid Table", hint=f"{message}{end} {InvalidTable.hint}")


def _names(reader: Reader) -> list[str]:
    """Returns some names of tables that are deployed. Reads 1 key for each."""
    prefix = keys_of(reader.space).tables
    found = reader.scan(*prefix_range(prefix), limit=MAX_COMPARED_NAMES)
    return [str(unpack(key, len(prefix))[0]) for key, _ in found]


class _TableKey:
    """The key of a table, and the bytes that were last read there: comparing them is cheaper than
    a look-up in the cache of all tables."""

    __slots__ = ("found", "key")

    def __init__(self, key: bytes) -> None:
        self.key: Final = key
        self.found: tuple[bytes, TableAccess | None] = b"", None


def _table_key(space_and_name: tuple[bytes, str]) -> _TableKey:
    space, name = space_and_name
    return _TableKey(keys_of(space).table(name))


_table_keys: Final = of_spaces(BoundedCache(_table_key, entries=1024))


@bounded_cache(1024, is_of_spaces=True)
def _access(space: bytes, stored: bytes) -> TableAccess:
    return TableAccess(space, read_table(stored))


def _indexes_by_columns(indexes: Iterable[IndexAccess]) -> dict[frozenset[str], list[IndexAccess]]:
    """Returns the indexes by the sets of columns that they begin with."""
    found: dict[frozenset[str], list[IndexAccess]] = {}
    for index in indexes:
        for length in range(1, len(index.columns) + 1):
            found.setdefault(frozenset(index.columns[:length]), []).append(index)
    return found


def _key_columns(table: Table) -> tuple[tuple[str, str | None], ...]:
    """Returns the columns of a compound primary key with their types; none for a random one."""
    if table.primary.type != "compound":
        return ()
    types: dict[str, str] = {column.name: column.type for column in table.columns}
    return tuple((column, types.get(column)) for column in table.primary.columns)
