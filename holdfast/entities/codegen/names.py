"""Names in generated code: what a table and its columns are called, and which names can't be."""

import keyword
import re
from collections.abc import Iterator, Sequence
from typing import Final

from holdfast.entities.schema import Column, Schema, Table


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_IDENTIFIER: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]*")

_GO_KEYWORDS: Final = _words(
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
    "Record Set Uint8Array Partial"
)
# What a model's body must be able to say after a column of that name, and what every model has.
_PYTHON_MODEL: Final = _words(
    "bool bytes col column datetime dict float index int list now object set str all from_entity "
    "schema_yaml table_name table_record to_properties Col Literal UTC Model"
)
_PYTHON_CLASSIC: Final = _words(
    "Binary Bool Float Int List Map Model Set Text Timestamp Uint all decode encode primary "
    "setPrimary tableName UTC datetime"
)


def comment_text(comment: str) -> list[str]:
    """The lines of a comment, without blanks around them and without what no source may hold."""
    lines = []
    for line in comment.strip().splitlines():
        said = "".join(character if character.isprintable() else " " for character in line)
        lines.append(" ".join(said.split()))
    while lines and not lines[-1]:
        lines.pop()
    while lines and not lines[0]:
        lines.pop(0)
    return lines


class Names:
    """How one language, or one style of it, wants its names."""

    def __init__(
        self,
        taken: frozenset[str],
        *,
        models: frozenset[str] = frozenset(),
        capital: bool = False,
    ) -> None:
        self._taken = taken
        self._models = taken | models  # names that a class can't have
        self._capital = capital

    @classmethod
    def of(cls, language: str, style: str) -> "Names":
        if language == "go":
            return cls(_GO_KEYWORDS | {"Id"}, capital=True)
        if language == "ts":
            return cls(_TS_KEYWORDS | {"id"}, models=_TS_TYPES)
        own = _PYTHON_CLASSIC if style == "classic" else _PYTHON_MODEL
        return cls(frozenset(keyword.kwlist) | own | {"id"})

    def attribute(self, column: Column) -> str:
        return self._free(column.attribute, self._taken)

    def model(self, table: Table) -> str:
        return self._free(table.model, self._models)

    def _free(self, name: str, taken: frozenset[str]) -> str:
        if self._capital:
            name = name[:1].upper() + name[1:]
        return f"{name}_" if name in taken else name


def check_names(schemas: Sequence[Schema], names: Names) -> Iterator[tuple[tuple[str, ...], str]]:
    """What can't be generated, each with the path of the table or column that it is about."""
    classes: dict[str, str] = {}
    for table in (table for schema in schemas for table in schema.tables):
        path = (table.schema, table.name)
        model = names.model(table)
        if not _IDENTIFIER.fullmatch(table.model):
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
            if not _IDENTIFIER.fullmatch(column.attribute):
                yield own, f"The clientName '{column.attribute}' can't be a name in code"
            elif name in attributes:
                both = f"{attributes[name]} and {column.name} of table {table.name}"
                yield own, f"Columns {both} have one attribute name: {name}"
            attributes.setdefault(name, column.name)
