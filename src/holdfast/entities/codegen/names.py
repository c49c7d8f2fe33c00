"""Names in generated code: those of tables and their columns, and names that are not allowed."""

import keyword
import re
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from holdfast.entities.schema import Column, Schema, Table
from holdfast.entities.types import COLUMN_TYPES
from holdfast.entities.values import MAX_UINT, MIN_INT
from holdfast.limits import MAX_SCHEMA_DEPTH


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


IDENTIFIER: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]*")

GO_KEYWORDS: Final = _words(
    "break case chan const continue default defer else fallthrough for func go goto if import "
    "interface map package range return select struct switch type var"
)
_TS_KEYWORDS: Final = _words(
    "break case catch class const continue debugger default delete do else enum export extends "
    "false finally for function if import in instanceof new null return super switch this throw "
    "true try typeof var void while with as implements interface let package private protected "
    "public static yield"
)
_TS_TYPES: Final = _words(
    "any bigint boolean never number object string symbol undefined unknown Date Error Promise "
    "Record Set Uint8Array Partial Map Array Object WeakMap AbortSignal Response RequestInit"
)
# Names that the body of a model uses after its columns, and attributes that every model has.
_PYTHON_MODEL: Final = _words(
    "bool bytes col column datetime dict float index int list now object set str all from_entity "
    "schema_yaml table_name table_record to_properties Col Literal UTC Model"
)
_PYTHON_CLASSIC: Final = _words(
    "Binary Bool Float Int List Map Model Set Text Timestamp Uint all decode encode primary "
    "setPrimary tableName UTC datetime float set"
)


def comment_text(comment: str) -> list[str]:
    """Returns the lines of a comment, without surrounding blanks and unprintable
    characters."""
    lines = []
    for line in comment.strip().splitlines():
        text = "".join(character if character.isprintable() else " " for character in line)
        lines.append(" ".join(text.split()))
    while lines and not lines[-1]:
        lines.pop()
    while lines and not lines[0]:
        lines.pop(0)
    return lines


class NamingRules:
    """The rules for names in one language, or in one style of it."""

    def __init__(
        self,
        taken: frozenset[str],
        *,
        models: frozenset[str] = frozenset(),
        prefix: str = "",
        capital: bool = False,
    ) -> None:
        self._taken = taken
        self._models = taken | models  # names that a class can't have
        self._prefix = prefix  # of all names that the client code declares
        self._capital = capital

    @classmethod
    def of(cls, language: str, style: str) -> "NamingRules":
        if language == "go":
            return cls(GO_KEYWORDS | {"Id"}, prefix="holdfast", capital=True)
        if language == "ts":
            return cls(_TS_KEYWORDS | {"id"}, models=_TS_TYPES, prefix="holdfast")
        own = _PYTHON_CLASSIC if style == "classic" else _PYTHON_MODEL
        return cls(frozenset(keyword.kwlist) | own | {"id"})

    def attribute(self, column: Column) -> str:
        return self._available(column.attribute, self._taken)

    def model(self, table: Table) -> str:
        name = self._available(table.model, self._models)
        is_ours = bool(self._prefix) and name.lower().startswith(self._prefix)
        return f"{name}_" if is_ours else name

    def _available(self, name: str, taken: frozenset[str]) -> str:
        if self._capital:
            name = name[:1].upper() + name[1:]
        return f"{name}_" if name in taken else name


NameProblems = Iterator[tuple[tuple[str, ...], str]]


def check_names(schemas: Sequence[Schema], names: NamingRules) -> NameProblems:
    """Yields a problem for each name that can't be generated, with the path of its table or
    column."""
    classes: dict[str, str] = {}
    for table in (table for schema in schemas for table in schema.tables):
        path = (table.schema, table.name)
        model = names.model(table)
        if not IDENTIFIER.fullmatch(table.model):
            yield path, f"The class '{table.model}' of table {table.name} can't be a name in code"
        elif model in classes:
            yield (
                path,
                f"Tables {classes[model]} and {table.full_name} have one class name: {model}",
            )
        classes.setdefault(model, table.full_name)
        attributes: dict[str, str] = {}
        for column in table.columns:
            own = (*path, column.name)
            name = names.attribute(column)
            if not IDENTIFIER.fullmatch(column.attribute):
                yield own, f"The clientName '{column.attribute}' can't be a name in code"
            elif name in attributes:
                both = f"{attributes[name]} and {column.name} of table {table.name}"
                yield own, f"Columns {both} have one attribute name: {name}"
            attributes.setdefault(name, column.name)


def check_records(schemas: Sequence[Schema]) -> NameProblems:
    """Yields problems that only records made by a program can have, not those of schema files."""
    for at, schema in enumerate(schemas):
        if not IDENTIFIER.fullmatch(schema.name):
            yield (), f"The schema {schema.name!r} can't be a name in code"
        if schema.name in (other.name for other in schemas[:at]):
            yield (), f"There are two schemas {schema.name}"
        if len({table.name for table in schema.tables}) < len(schema.tables):
            yield (), f"The schema {schema.name} has two tables of one name"
        for table in schema.tables:
            path = (table.schema, table.name)
            if len({column.name for column in table.columns}) < len(table.columns):
                yield path, f"The table {table.name} has two columns of one name"
            if not IDENTIFIER.fullmatch(table.name) or table.schema != schema.name:
                yield (
                    path,
                    f"The table {table.full_name!r} of {schema.name} can't be a name in code",
                )
            keys = (table.primary.columns, *(index.columns for index in table.indexes))
            if not _is_value([table.comment, *keys]):
                yield path, f"The table {table.name} holds a text that is not Unicode"
            for column in table.columns:
                if not _is_column(column):
                    yield (*path, column.name), f"The record of column {column.name!r} is invalid"


def _is_column(column: Column) -> bool:
    texts = [column.name, column.comment]
    if column.type in COLUMN_TYPES and column.kind.is_text:
        texts += column.choices
    return (
        IDENTIFIER.fullmatch(column.name) is not None
        and column.name != "id"
        and column.type in COLUMN_TYPES
        and (column.subtype is None or column.subtype in COLUMN_TYPES)
        and (column.max_len is None or type(column.max_len) is int)
        and all(isinstance(text, str) for text in texts)
        and _is_value([*texts, column.default, *column.choices])
    )


def _is_value(value: Any, depth: int = 0) -> bool:
    """Returns whether a generator can write `value` as a literal."""
    if isinstance(value, str):
        return value.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in value)
    if isinstance(value, datetime):
        return value.utcoffset() == timedelta()
    if isinstance(value, list | tuple):
        return depth <= MAX_SCHEMA_DEPTH and all(_is_value(item, depth + 1) for item in value)
    if isinstance(value, dict):
        return all(isinstance(key, str) for key in value) and _is_value(
            [*value, *value.values()], depth + 1
        )
    if type(value) is int:
        return MIN_INT <= value <= MAX_UINT
    return value is None or type(value) in (bool, float, bytes)
