"""Migrates a table from one schema to the next: what may change, and the new record."""

from typing import Any, NamedTuple

import msgspec

from holdfast.errors import SchemaUpgradeRejected
from holdfast.tables.compression import DEFAULT_ALGORITHM, DEFAULT_BLOCK_SIZE
from holdfast.tables.policies import effective_policy
from holdfast.tables.records import TableRecord
from holdfast.tables.schema import UPDATE_PATTERNS, Schema

_DEFAULT_COMPRESSION = {"algorithm": DEFAULT_ALGORITHM, "block_size": DEFAULT_BLOCK_SIZE}
_TITLE = "The table already exists, and its schema cannot be upgraded to the requested one"


class Migration(NamedTuple):
    """The record after a migration, and the ids of the indexes that it removes."""

    record: TableRecord
    removed_indexes: list[int]


def first_record(schema: Schema, number: int, *, inherited: bool = False) -> TableRecord:
    """Returns the record of a new table."""
    names = list(schema.get("secondaryIndexes", {}))
    return TableRecord(
        number=number,
        schema=msgspec.json.encode(schema),
        ids={name: id for id, name in enumerate(schema["attributes"])},
        next_id=len(schema["attributes"]),
        indexes={name: id for id, name in enumerate(names)},
        next_index=len(names),
        inherited=inherited,
    )


def are_equal(left: Schema, right: Schema) -> bool:
    """Returns whether two normalised schemas are equivalent.

    Explicit defaults, the order of members and unknown members make no difference.
    """
    return _comparable_schema(left) == _comparable_schema(right)


def migrate(record: TableRecord, new: Schema) -> Migration:
    """Returns the record of the table with the schema `new`, or raises `SchemaUpgradeRejected`."""
    old: Schema = msgspec.json.decode(record.schema)
    check_upgrade(old, new)
    ids, next_id = _ids(record, new)
    kept = {n: id for n, id in record.indexes.items() if n in new.get("secondaryIndexes", {})}
    removed = [id for name, id in record.indexes.items() if name not in kept]
    changed_policy = effective_policy(old) != effective_policy(new)
    migrated = msgspec.structs.replace(
        record,
        schema=msgspec.json.encode(new),
        ids=ids,
        next_id=next_id,
        indexes=kept,
        building=[name for name in record.building if name in kept],
        policy_generation=record.policy_generation + changed_policy,
    )
    return Migration(migrated, removed)


def check_upgrade(old: Schema, new: Schema) -> None:
    """Raises `SchemaUpgradeRejected` unless a table with the schema `old` may get `new`."""
    if are_equal(old, new):
        return
    if new["version"] <= old["version"]:
        raise _rejected(f"its version must be higher than {old['version']}, it is {new['version']}")
    for name, kind in old["attributes"].items():
        if new["attributes"].get(name, kind) != kind:
            raise _rejected(
                f"the type of attribute {name!r} can't change from {kind} to "
                f"{new['attributes'][name]}"
            )
    _check_index(old, new)
    _check_secondary(old, new)


def _check_index(old: Schema, new: Schema) -> None:
    if _keys(old) != _keys(new):
        raise _rejected("Only static index additions and removals are possible")
    before, after = _statics(old), _statics(new)
    for name in before ^ after:
        # A static element may be added or removed only together with its attribute.
        if name in old["attributes"] and name in new["attributes"]:
            raise _rejected(f"Changing index on existing column {name!r} is not possible")


def _check_secondary(old: Schema, new: Schema) -> None:
    before, after = _secondary(old), _secondary(new)
    for name, elements in after.items():
        if before.get(name) != elements:
            what = "changed" if name in before else "added"
            raise _rejected(
                f"secondary indexes can't be {what} by a schema: {name!r}, use add_index"
            )


def _ids(record: TableRecord, new: Schema) -> tuple[dict[str, int], int]:
    """Returns ids of all attributes; an id is never used for another attribute."""
    ids, next_id = {}, record.next_id
    for name in new["attributes"]:
        if name in record.ids:
            ids[name] = record.ids[name]
        else:
            ids[name] = next_id
            next_id += 1
    return ids, next_id


def _rejected(reason: str) -> SchemaUpgradeRejected:
    return SchemaUpgradeRejected(f"{_TITLE} ({reason})")


def _element(element: dict[str, Any]) -> tuple[Any, ...]:
    order = element.get("order") if element["type"] == "range" else None
    return element["type"], element["attribute"], order


def _keys(schema: Schema) -> list[tuple[Any, ...]]:
    return [_element(e) for e in schema["index"] if e["type"] in ("hash", "range")]


def _statics(schema: Schema) -> set[str]:
    return {e["attribute"] for e in schema["index"] if e["type"] == "static"}


def _secondary(schema: Schema) -> dict[str, list[tuple[Any, ...]]]:
    return {
        name: [_element(element) for element in elements]
        for name, elements in schema.get("secondaryIndexes", {}).items()
    }


def _comparable_schema(schema: Schema) -> dict[str, Any]:
    options = {k: v for k, v in schema.get("options", {}).items() if v is not None}
    if options.get("updates") in ({}, {"pattern": UPDATE_PATTERNS[0]}):
        del options["updates"]
    compression = options.get("compression", [_DEFAULT_COMPRESSION])
    options["compression"] = [_DEFAULT_COMPRESSION | each for each in compression]
    return {
        "version": schema["version"],
        "attributes": schema["attributes"],
        "index": [_element(element) for element in schema["index"]],
        "secondary": _secondary(schema),
        "policy": effective_policy(schema),
        "options": options,
    }
