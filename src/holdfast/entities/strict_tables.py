"""Checks entities against the columns of tables with `strict: true`."""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, NoReturn

from msgspec.msgpack import Ext

from holdfast.entities.linear_patterns import LinearPattern, NotLinear
from holdfast.entities.order import entry_part
from holdfast.entities.schema import Column
from holdfast.entities.table_access import TableAccess
from holdfast.entities.types import COLUMN_KINDS
from holdfast.entities.values import elements_of, from_kept, to_kept
from holdfast.errors import BadValue


def check_entity(
    access: TableAccess,
    id: str,
    properties: dict[str, Any],
    *,
    names: Iterable[str],
    is_whole: bool,
) -> None:
    """Raises for a value that does not fit its column, with table, id, column and reason.

    `names` are the properties that were written. A whole entity must also have all required
    properties."""
    columns = access.strict or {}
    for name in names:
        column = columns.get(name)
        if column is None:
            _refuse(access, id, name, "the table has no such column")
        if name in properties:
            reason = _problem(column, properties[name])
            if reason:
                _refuse(access, id, name, reason)
    if is_whole:
        for name, column in columns.items():
            if (column.required or column.not_null) and properties.get(name) is None:
                _refuse(access, id, name, "it is required")


def _refuse(access: TableAccess, id: str, column: str, reason: str) -> NoReturn:
    raise BadValue(f"{access.name}, id {id!r}, column {column}: {reason}")


def _problem(column: Column, value: Any) -> str:
    """Returns the problem with `value`, or an empty text."""
    if value is None:
        return "it is required" if column.required or column.not_null else ""
    if not column.kind.fits(value):
        return f"{_brief(value)} is not of type {column.type}"
    inner = _inner_values(value)
    if column.subtype is not None and inner is not None:
        for item in inner:
            if item is not None and not COLUMN_KINDS[column.subtype].fits(item):
                return f"{_brief(item)} in it is not of type {column.subtype}"
    if column.max_len is not None:
        length = len(inner) if inner is not None else len(value) if _has_length(value) else 0
        if length > column.max_len:
            return f"its length is {length}, at most {column.max_len} is allowed"
    if column.choices:
        for item in [value] if inner is None else inner:
            if not _is_choice(column.choices, item):
                return f"{_brief(item)} is not one of {', '.join(map(repr, column.choices))}"
    if column.must_match and type(value) is str:
        return _mismatch(column.must_match, value)
    return ""


def _mismatch(expression: str, value: str) -> str:
    try:
        pattern = _pattern(expression)
    except (NotLinear, re.error) as error:  # the schema did not come from a file, which is checked
        return f"its table's must_match {expression} can't be used: {error}"
    if len(value) > pattern.max_letters:
        return f"it has {len(value)} characters, at most {pattern.max_letters} can be compared"
    return "" if pattern.fullmatch(value) else f"{_brief(value)} does not match {expression}"


def _inner_values(value: Any) -> list[Any] | None:
    if type(value) is Ext:
        return elements_of(value)
    if type(value) is dict:
        return list(value.values())
    return value if type(value) is list else None


def _has_length(value: Any) -> bool:
    return type(value) in (str, bytes)


def _is_choice(choices: tuple[Any, ...], value: Any) -> bool:
    if type(value) is str:
        return value in choices
    return any(entry_part(to_kept(choice)) == entry_part(value) for choice in choices)


@lru_cache(maxsize=256)
def _pattern(expression: str) -> LinearPattern:
    return LinearPattern(expression)


def _brief(value: Any) -> str:
    text = repr(from_kept(value))
    return text if len(text) <= 40 else text[:37] + "..."
