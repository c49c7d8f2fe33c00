"""Checks and normalises a submitted schema."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from holdfast.error_text import did_you_mean, nearest, shown
from holdfast.errors import InvalidTableSchema
from holdfast.limits import (
    MAX_ATTRIBUTES,
    MAX_TABLE_INDEXES,
    MAX_TABLE_NAME_BYTES,
    MAX_TTL_SECONDS,
)
from holdfast.tables.compression import check_compression
from holdfast.tables.durations import seconds_of
from holdfast.tables.policies import check_policy, normalise_policy
from holdfast.tables.types import is_type, type_of
from holdfast.tables.values import accept_json

Schema = dict[str, Any]

ELEMENT_TYPES: Final = ("hash", "static", "range", "proj")  # and the order that they are sorted in
UPDATE_PATTERNS: Final = ("random-update", "write-once", "timeseries")

_KNOWN: Final = {
    "table", "version", "attributes", "index", "secondaryIndexes", "revisionRetentionPolicy",
    "options",
}  # fmt: skip
_OPTIONS: Final = ("compression", "updates", "default_time_to_live")
_KNOWN_OPTIONS: Final = (*_OPTIONS, "durability")  # RESTBase's; here every commit is durable
_DROPPED: Final = ("_config_version", "_backend_version")  # RESTBase's own book-keeping
_CONTROL: Final = re.compile("[\x00-\x1f\x7f-\x9f]")


def normalise(
    table: str, submitted: Any, *, before: Schema | None = None
) -> tuple[Schema, list[str]]:
    """Returns the schema that is stored for `table`, and a warning for each unknown member.

    Fills in the defaults that section 3.3 of the specification names, and converts durations to
    seconds; all else is stored as it was sent. `before` is the table's present schema: what
    it contains is accepted again, even where a new schema would be refused.
    """
    check_name(table, "table")
    if not isinstance(submitted, Mapping):
        raise InvalidTableSchema("Attributes are required: a schema is an object")
    try:
        plain = accept_json(dict(submitted))
    except ValueError as error:
        raise InvalidTableSchema(f"Invalid value in the schema: {error}") from None
    schema = {name: value for name, value in plain.items() if name not in _DROPPED}
    schema["table"] = table
    schema["version"] = _version(schema.get("version"))
    attributes = _attributes(schema.get("attributes"))
    schema["index"] = _index(schema.get("index"), attributes, "the index")
    if schema.get("options") is None:
        schema["options"] = {}
    for optional in ("secondaryIndexes", "revisionRetentionPolicy"):
        if optional in schema and schema[optional] is None:
            del schema[optional]
    before = before or {}
    statics = _check_primary(schema["index"])
    if "secondaryIndexes" in schema:
        schema["secondaryIndexes"] = _secondary(schema["secondaryIndexes"], attributes, statics)
    schema["options"] = _options(schema["options"])
    if schema["options"].get("compression") != before.get("options", {}).get("compression"):
        check_compression(schema["options"])
    if "revisionRetentionPolicy" in schema:
        stored = before.get("revisionRetentionPolicy")
        schema["revisionRetentionPolicy"] = normalise_policy(
            schema["revisionRetentionPolicy"], stored
        )
        check_policy(schema)
    _refuse_misspelt(schema, before)
    unknown = [str(name) for name in schema if name not in _KNOWN and name != "domain"]
    warnings = [f"unknown member {name!r} is kept and has no effect" for name in unknown]
    options = [str(name) for name in schema["options"] if name not in _KNOWN_OPTIONS]
    return schema, warnings + [f"unknown option {n!r} is kept and has no effect" for n in options]


def _refuse_misspelt(schema: Schema, before: Schema) -> None:
    """Raises for an unknown member that looks like a misspelt known one."""
    _refuse_near(schema, _KNOWN, before, "member")
    options, known_options = schema["options"], before.get("options", {})
    _refuse_near(options, _OPTIONS, known_options, "option")
    known_updates = known_options.get("updates") or {}
    _refuse_unknown(options.get("updates") or {}, ("pattern",), known_updates, "updates")
    if schema["index"] != before.get("index"):
        _check_elements(schema["index"], "the index")
    known_indexes = before.get("secondaryIndexes", {})
    for name, elements in schema.get("secondaryIndexes", {}).items():
        if elements != known_indexes.get(name):
            _check_elements(elements, f"secondary index {name!r}")


def _refuse_near(
    given: Mapping[str, Any], known: Iterable[str], before: Mapping[str, Any], kind: str
) -> None:
    for name in given:
        near = None if name in known or name in before else nearest(name, known, likeness=0.8)
        if near is not None:
            raise InvalidTableSchema(f"Unknown {kind} {shown(name)}, did you mean {near!r}?")


def _refuse_unknown(
    given: Mapping[str, Any], known: Iterable[str], before: Mapping[str, Any], where: str
) -> None:
    for name in given:
        if name not in known and name not in before:
            raise InvalidTableSchema(
                f"Unknown member {shown(name)} in {where}{did_you_mean(name, known)}"
            )


def _check_elements(elements: list[dict[str, Any]], where: str) -> None:
    for element in elements:
        _refuse_unknown(element, ("type", "attribute", "order"), {}, where)


def check_name(name: Any, kind: str) -> None:
    """Raises unless `name` may name a table or an index."""
    if not _is_name(name) or "/" in name or name in (".", ".."):
        raise InvalidTableSchema(
            f"Invalid name of {kind}: {shown(name)}",
            hint=f"Use 1 to {MAX_TABLE_NAME_BYTES} bytes without control characters and '/'.",
        )


def _is_name(name: Any) -> bool:
    if not isinstance(name, str) or _CONTROL.search(name):
        return False
    try:
        return 1 <= len(name.encode()) <= MAX_TABLE_NAME_BYTES
    except UnicodeEncodeError:
        return False


def _version(version: Any) -> int:
    version = _whole(version)
    if version is None or (type(version) is int and version == 0):
        return 1
    if type(version) is not int or version < 1:
        raise InvalidTableSchema(f"The version must be a positive integer, not {shown(version)}")
    return version


def _whole(number: Any) -> Any:
    """Returns a whole number as an int: JSON has one kind of number, so 2.0 is 2."""
    return int(number) if isinstance(number, float) and number.is_integer() else number


def _attributes(attributes: Any) -> dict[str, str]:
    if not isinstance(attributes, Mapping) or not attributes:
        raise InvalidTableSchema("Attributes are required: an object of names and types")
    if len(attributes) > MAX_ATTRIBUTES:
        raise InvalidTableSchema(
            f"Attributes are required to be at most {MAX_ATTRIBUTES}, these are {len(attributes)}"
        )
    for name, kind in attributes.items():
        if not _is_name(name) or name.startswith("_"):
            raise InvalidTableSchema(
                f"Invalid name of attribute: {shown(name)}",
                attribute=str(name),
                hint=f"Use 1 to {MAX_TABLE_NAME_BYTES} bytes that do not begin with '_'.",
            )
        if not isinstance(kind, str) or not is_type(kind):
            raise InvalidTableSchema(
                f"Invalid type of attribute {shown(name)}: {shown(kind)}", attribute=name
            )
    return dict(attributes)


def _index(elements: Any, attributes: dict[str, str], where: str) -> list[dict[str, Any]]:
    """Returns the elements of an index, checked, sorted by type, each range with its order."""
    if not isinstance(elements, list | tuple) or not elements:
        raise InvalidTableSchema(f"Invalid index. Must have at least one entry: {where}")
    found = [_element(element, attributes, where) for element in elements]
    names = [element["attribute"] for element in found]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidTableSchema(f"Invalid index. Duplicate index entries for {twice!r} in {where}")
    if not any(element["type"] == "hash" for element in found):
        raise InvalidTableSchema(f"Indexes without hash are not yet supported: {where}")
    return sorted(found, key=lambda element: ELEMENT_TYPES.index(element["type"]))


def _element(element: Any, attributes: dict[str, str], where: str) -> dict[str, Any]:
    if not isinstance(element, Mapping) or element.get("type") not in ELEMENT_TYPES:
        raise InvalidTableSchema(f"Invalid index element encountered in {where}: {shown(element)}")
    name = element.get("attribute")
    if not isinstance(name, str) or name not in attributes:
        raise InvalidTableSchema(
            f"Index element {shown(name)} is not in attributes ({where})", attribute=str(name)
        )
    found = dict(element)
    if found["type"] == "range":
        found.setdefault("order", "asc")
    if "order" in found and found["order"] not in ("asc", "desc"):
        raise InvalidTableSchema(
            f"Invalid order {shown(found['order'])} of {shown(name)} in {where}"
        )
    if found["type"] in ("hash", "range") and type_of(attributes[name]).component is None:
        raise InvalidTableSchema(
            f"Attribute {shown(name)} of type {attributes[name]} cannot be indexed", attribute=name
        )
    return found


def _check_primary(index: list[dict[str, Any]]) -> set[str]:
    """Returns the static attributes of the primary index."""
    statics = {element["attribute"] for element in index if element["type"] == "static"}
    if statics and not any(element["type"] == "range" for element in index):
        raise InvalidTableSchema(
            f"Cannot create static column in table without range keys: {sorted(statics)[0]!r}"
        )
    return statics


def _secondary(
    indexes: Any, attributes: dict[str, str], statics: set[str]
) -> dict[str, list[dict[str, Any]]]:
    if not isinstance(indexes, Mapping):
        raise InvalidTableSchema(
            "Invalid index. Must have at least one entry: secondaryIndexes is an object"
        )
    if len(indexes) > MAX_TABLE_INDEXES:
        raise InvalidTableSchema(
            f"A table has at most {MAX_TABLE_INDEXES} secondary indexes, these are {len(indexes)}"
        )
    found = {}
    for name, elements in indexes.items():
        check_name(name, "index")
        found[name] = _index(elements, attributes, f"secondary index {shown(name)}")
        for element in found[name]:
            if element["type"] == "static" or element["attribute"] in statics:
                raise InvalidTableSchema(
                    f"A static attribute can't be in secondary index {shown(name)}: "
                    f"{element['attribute']!r}"
                )
    return found


def _options(given: Any) -> dict[str, Any]:
    """Returns the options, checked, with a duration as seconds."""
    if not isinstance(given, Mapping):
        raise InvalidTableSchema("Invalid options: an object is expected")
    options = dict(given)
    compression = options.get("compression")
    if compression is not None and not (
        isinstance(compression, list) and all(isinstance(each, Mapping) for each in compression)
    ):
        raise InvalidTableSchema(
            "Invalid option value for compression: an array of objects is expected"
        )
    updates = options.get("updates")
    if updates is not None and (
        not isinstance(updates, Mapping)
        or updates.get("pattern", UPDATE_PATTERNS[0]) not in UPDATE_PATTERNS
    ):
        raise InvalidTableSchema(f"Invalid update pattern: {shown(updates)}")
    stated = options.get("default_time_to_live")
    if isinstance(stated, str):
        try:
            options["default_time_to_live"] = seconds_of(stated)
        except ValueError as error:
            raise InvalidTableSchema(
                f"The option default_time_to_live must be a number of seconds: {error}"
            ) from None
    ttl = _whole(options.get("default_time_to_live"))
    if ttl is not None and (type(ttl) is not int or not 1 <= ttl <= MAX_TTL_SECONDS):
        raise InvalidTableSchema(
            "The option default_time_to_live must be seconds, a positive integer of at most "
            f"{MAX_TTL_SECONDS}, not {shown(stated)}"
        )
    return options
