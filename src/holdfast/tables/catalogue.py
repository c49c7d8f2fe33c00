"""The tables of a space: find, create, migrate and drop them, and their defaults."""

import sys
from collections.abc import Mapping
from itertools import islice
from typing import Any, Final

import msgspec

from holdfast import expiry
from holdfast.bounded_cache import BoundedCache, of_spaces
from holdfast.engine.contract import Reader, Transaction, read_counter
from holdfast.error_text import did_you_mean, shown
from holdfast.errors import InvalidTableQuery, InvalidTableSchema, TableNotFound, UnsupportedPart
from holdfast.keys import pack, prefix_range, unpack
from holdfast.limits import MAX_COMPARED_NAMES
from holdfast.tables.background_steps import DROPPED_INDEX, DROPPED_TABLE
from holdfast.tables.layout import keys_of
from holdfast.tables.migration import are_equal, check_upgrade, first_record, migrate
from holdfast.tables.plan import TablePlan, encode_record, plan_of
from holdfast.tables.records import CreateResult, DefaultRecord, Facts, TableRecord
from holdfast.tables.schema import Schema, normalise

_NO_NUMBER = 0  # the number of a table that exists only by default: it has no rows


def find(reader: Reader, table: str) -> TablePlan:
    """Returns the plan of a table, its own in this space or the default's. Reads 1 key."""
    if isinstance(table, str):
        try:
            cached = _cached_plans[reader.space, table]
            value = reader.get(cached.key)
            record, plan = cached.found
            if value == record and plan is not None:
                return plan
            value = value or _default_record(reader, table)
        except UnsupportedPart:
            value = None
        if value is not None:
            plan = plan_of(value)
            cached.found = value, plan
            return plan
    raise not_found(table, reader)


class _CachedPlan:
    """The key of a table's record, and the record and plan that were last read there.

    Comparing the record costs less than finding it in the cache of all plans.
    """

    __slots__ = ("found", "key")

    def __init__(self, key: bytes) -> None:
        self.key: Final = key
        self.found: tuple[bytes, TablePlan | None] = b"", None


def _cached_plan(space_and_table: tuple[bytes, str]) -> _CachedPlan:
    space, table = space_and_table
    return _CachedPlan(keys_of(space).table(table))


_cached_plans: Final = of_spaces(BoundedCache(_cached_plan, entries=4096))


def not_found(table: str, reader: Reader | None = None) -> TableNotFound:
    """Returns the error for a missing table, with the nearest name. Reads some names."""
    near = (
        ""
        if reader is None
        else did_you_mean(table, names(reader, after=None, limit=MAX_COMPARED_NAMES))
    )
    return TableNotFound(f"Invalid query. No schema: there is no table {shown(table)}{near}")


def find_to_write(tx: Transaction, table: str) -> TablePlan:
    """Returns the plan of a table for writes: one that exists by default gets its own record."""
    plan = find(tx, table)
    if plan.number != _NO_NUMBER:
        return plan
    record = first_record(plan.schema, _next_number(tx), inherited=True)
    return plan_of(_store(tx, table, record))


def create(tx: Transaction, submitted: Any, table: str | None = None) -> CreateResult:
    """Creates a table, or migrates an existing one to the submitted schema."""
    name = name_in(submitted, table)
    schema, warnings = normalise(name, submitted, before=_current_schema(tx, name))
    changed, record = _create_or_migrate(tx, name, schema)
    warnings += plan_of(encode_record(record)).warnings
    return CreateResult(
        table=name, version=int(schema["version"]), changed=changed, warnings=warnings
    )


def name_in(submitted: Any, table: str | None) -> str:
    """Returns the name of the table of a submitted schema: `table`, or the schema's own."""
    name = table
    if name is None:
        name = submitted.get("table") if isinstance(submitted, Mapping) else None
    if not isinstance(name, str):
        raise InvalidTableSchema(f"Invalid name of table: {shown(name)}")
    return name


def drop(tx: Transaction, table: str) -> bool:
    """Drops a table with its rows; a default of the same name no longer applies in this space.

    Returns whether the table existed. Its rows are removed in bounded steps from now on.
    """
    keys = keys_of(tx.space)
    if not isinstance(table, str):
        return False
    try:
        value = tx.get(keys.table(table))
    except UnsupportedPart:
        return False
    had_default = tx.get(keys.default(table)) is not None
    if had_default:
        tx.put(keys.no_default(table), b"")
    if value is None:
        return False
    number = plan_of(value).number
    tx.delete(keys.table(table))
    tx.delete(keys.number(number))
    expiry.begin_work(tx, DROPPED_TABLE, pack(number))
    return True


def names(reader: Reader, *, after: str | None, limit: int) -> list[str]:
    """Returns names of tables in byte order, tables that exist by default included."""
    check_limit(limit)
    if after is not None and not isinstance(after, str):
        raise InvalidTableQuery(f"`after` must be the name of a table, not {shown(after)}")
    keys = keys_of(reader.space)
    found: set[str] = set()
    for prefix in (keys.tables, keys.defaults):
        begin, end = prefix_range(prefix)
        if after is not None:
            begin = prefix_range(prefix + pack(after))[1]
        listed = (str(unpack(key, len(prefix))[0]) for key, _ in reader.scan(begin, end))
        if prefix is keys.defaults:
            listed = (name for name in listed if reader.get(keys.no_default(name)) is None)
        found.update(islice(listed, min(limit, sys.maxsize)))
    return sorted(found, key=str.encode)[:limit]


def check_limit(limit: Any) -> None:
    if type(limit) is not int or limit < 1:
        raise InvalidTableQuery(f"The limit must be an integer of at least 1, not {shown(limit)}")


def facts(reader: Reader, plan: TablePlan) -> Facts:
    """Returns the counts that every write maintains. Reads 4 keys."""
    keys = keys_of(reader.space)
    counts = reader.get_many([keys.count(plan.number, what) for what in range(4)])
    rows, size, entries, expiring = map(read_counter, counts)
    return Facts(rows=rows, bytes=size, entries=entries, expiring=expiring)


# --- the default of domain `*`, in one space ------------------------------------------------------


def check_default(reader: Reader, table: str, schema: Schema) -> None:
    """Raises if the table of this space can't be migrated to `schema`."""
    value = reader.get(keys_of(reader.space).table(table))
    if value is not None:
        check_upgrade(plan_of(value).schema, schema)


def adopt_default(tx: Transaction, table: str, schema: Schema) -> None:
    """Migrates the table of this space, if it has one, and stores the default."""
    keys = keys_of(tx.space)
    value = tx.get(keys.table(table))
    if value is not None:
        _migrate(tx, table, plan_of(value), schema)
    store_default(tx, table, schema)


def store_default(tx: Transaction, table: str, schema: Schema) -> None:
    """Makes `schema` the default of this space, whether or not it has its own table."""
    keys = keys_of(tx.space)
    tx.put(keys.default(table), _encode(DefaultRecord(schema=msgspec.json.encode(schema))))
    tx.delete(keys.no_default(table))


def forget_default(tx: Transaction, table: str) -> None:
    """Drops the table of this space, its default, and the record that hides the default."""
    keys = keys_of(tx.space)
    tx.delete(keys.default(table))
    drop(tx, table)
    tx.delete(keys.no_default(table))


# --- internals -----------------------------------------------------------------------------------


def _default_record(reader: Reader, table: str) -> bytes | None:
    """Returns the record of a table that exists by default: as its own, but without a number."""
    keys = keys_of(reader.space)
    value = reader.get(keys.default(table))
    if value is None or reader.get(keys.no_default(table)) is not None:
        return None
    default = msgspec.msgpack.decode(value, type=DefaultRecord)
    if default.is_template:
        return None
    return encode_record(first_record(msgspec.json.decode(default.schema), _NO_NUMBER))


def _current_schema(reader: Reader, table: str) -> Schema | None:
    """Returns the schema of a table, its own or the default; None if there is no such table."""
    try:
        return find(reader, table).schema
    except TableNotFound:
        return None


def _create_or_migrate(tx: Transaction, table: str, schema: Schema) -> tuple[bool, TableRecord]:
    keys = keys_of(tx.space)
    value = tx.get(keys.table(table))
    if value is not None:
        return _migrate(tx, table, plan_of(value), schema)
    by_default = _default_record(tx, table)
    tx.delete(keys.no_default(table))
    changed = True
    if by_default is not None:
        default = plan_of(by_default).schema
        check_upgrade(default, schema)
        changed = not are_equal(default, schema)
    record = first_record(schema, _next_number(tx))
    _store(tx, table, record)
    return changed, record


def _migrate(
    tx: Transaction, table: str, plan: TablePlan, schema: Schema
) -> tuple[bool, TableRecord]:
    if are_equal(plan.schema, schema):
        return False, plan.record
    record, removed = migrate(plan.record, schema)
    record = msgspec.structs.replace(record, inherited=False)
    tx.put(keys_of(tx.space).table(table), encode_record(record))
    for index in removed:
        tx.delete(keys_of(tx.space).build(record.number, index))
        expiry.begin_work(tx, DROPPED_INDEX, pack(record.number, index))
    return True, record


def _next_number(tx: Transaction) -> int:
    key = keys_of(tx.space).last_number
    number = read_counter(tx.get(key)) + 1
    tx.add(key, 1)
    return number


def _store(tx: Transaction, table: str, record: TableRecord) -> bytes:
    keys = keys_of(tx.space)
    value = encode_record(record)
    tx.put(keys.table(table), value)
    tx.put(keys.number(record.number), table.encode())
    return value


def _encode(record: DefaultRecord) -> bytes:
    return msgspec.msgpack.encode(record)
