"""Filters of entities as a user types them: a column, an operator and a text."""

from collections.abc import Callable
from datetime import datetime
from typing import Any, Final, NamedTuple

import msgspec

from holdfast.dashboard.page_request import PageRequest
from holdfast.entities.schema import Index, Schema, Table
from holdfast.entities.schema_dump import dump_schema
from holdfast.entities.types import COLUMN_KINDS
from holdfast.errors import BadInput
from holdfast.limits import MAX_SHOWN_FILTERS

OPERATORS: Final = {
    "=": "is",
    "IN": "is one of",
    "><": "is between",
    ">": "is more than",
    ">=": "is at least",
    "<": "is less than",
    "<=": "is at most",
}
_LIST_OPERATORS: Final = ("IN", "><")
_FLAGS: Final = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
_READERS: Final[dict[type, Callable[[str], Any]]] = {
    int: int,
    float: float,
    bool: lambda text: _FLAGS[text.lower()],
    datetime: lambda text: {"$date": text},
}  # by the Python type of the column's values; other types use the text as it is typed


class TypedFilter(NamedTuple):
    """A filter as it is typed: one line of the form."""

    column: str
    operator: str
    text: str


def typed_filters(request: PageRequest) -> list[TypedFilter]:
    """Returns the filters of the address: `c0=country&o0==&v0=de&c1=...`."""
    found = []
    for number in range(MAX_SHOWN_FILTERS):
        column = request.parameter(f"c{number}")
        if column:
            operator = request.parameter(f"o{number}", "=")
            found.append(TypedFilter(column, operator, request.parameter(f"v{number}")))
    return found


def as_filters(table: Table | None, typed: list[TypedFilter]) -> list[dict[str, Any]]:
    """Returns the filters as arguments of the operation, with values of the column's type."""
    return [
        {"property": each.column, "op": each.operator, "values": _values(table, each)}
        for each in typed
    ]


def _values(table: Table | None, typed: TypedFilter) -> list[Any]:
    texts = typed.text.split(",") if typed.operator in _LIST_OPERATORS else [typed.text]
    column = table.column(typed.column) if table else None
    type = column.type if column else ""
    return [_value(type, typed.column, text.strip()) for text in texts]


def _value(type: str, column: str, text: str) -> Any:
    """Reads a text as a value; without a column it is JSON, or else the text itself.

    >>> _value("Int", "age", "7"), _value("Text", "name", "7"), _value("", "free", "7")
    (7, '7', 7)
    """
    if type:
        read = _READERS.get(COLUMN_KINDS[type].python, str)
        try:
            return read(text)
        except (ValueError, KeyError):
            raise BadInput(f"{column} is of type {type}, and {text!r:.100} is not") from None
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text


def missing_index(typed: list[TypedFilter], order: str) -> Index:
    """Returns the index that would serve the filters: equal columns first, then the range."""
    equal = [each.column for each in typed if each.operator in ("=", "IN")]
    ranged = [each.column for each in typed if each.operator not in ("=", "IN")]
    columns = tuple(dict.fromkeys([*equal, *ranged, *([order] if order else [])]))
    return Index(columns=columns)


def with_index(schema: Schema, table: str, index: Index) -> Schema:
    """Returns the schema with one more index of a table."""
    tables = tuple(
        msgspec.structs.replace(each, indexes=(*each.indexes, index))
        if each.name == table and index not in each.indexes
        else each
        for each in schema.tables
    )
    return msgspec.structs.replace(schema, tables=tables)


def index_as_yaml(table: Table, index: Index) -> str:
    """Returns the lines of a schema file that add an index."""
    only = Table(schema=table.schema, name=table.name, indexes=(index,))
    return dump_schema(Schema(name=table.schema, tables=(only,)), filled=False)
