"""Schema files: from YAML to records, with every problem named by file and line.

    parsed = read_schemas([("shop.schema.yaml", text), ...])
    parsed.schemas    the schemas, each collected from its files
    parsed.problems   errors, which prevent a deploy, and warnings, such as unknown keys

`load_schemas` and `parse_schema` return the schemas or raise an exception instead.
"""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import msgspec
import yaml

from holdfast.entities.schema import Column, Schema, Table, TableAdmin
from holdfast.entities.schema_columns import read_column
from holdfast.entities.schema_keys import read_indexes, read_primary
from holdfast.entities.schema_text import Problem, SchemaText, SourcePlace, kind
from holdfast.entities.schema_values import read_element
from holdfast.entities.types import ValueMismatch
from holdfast.errors import InvalidEntitySchema
from holdfast.limits import MAX_ENTITY_NAME_LETTERS

NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]*")

_TOP_KEYS: Final = ("schema", "tables")
_TABLE_KEYS: Final = (
    *("comment", "class", "name", "engines", "options", "strict"),
    *("primary", "columns", "indexes", "adminOptions"),
)


class ParsedSchemas(msgspec.Struct):
    """The schemas of several files, and the problems in them."""

    schemas: list[Schema]
    problems: list[Problem]  # errors first, each in the order of the files
    places: dict[tuple[str, ...], SourcePlace]  # of (schema, table) and (schema, table, column)

    @property
    def errors(self) -> list[Problem]:
        return [problem for problem in self.problems if problem.severity == "error"]

    @property
    def warnings(self) -> list[Problem]:
        return [problem for problem in self.problems if problem.severity == "warning"]

    def checked(self) -> list[Schema]:
        """Returns the schemas; raises `InvalidEntitySchema` with all errors if there are any."""
        if self.errors:
            raise InvalidEntitySchema.of(map(str, self.errors))
        return self.schemas


def read_schemas(sources: Iterable[tuple[str, str | bytes]]) -> ParsedSchemas:
    """Reads files, given as name and content. Files of one schema are put together."""
    parsed = ParsedSchemas([], [], {})
    tables: dict[str, list[Table]] = {}
    for file, content in sources:
        text = SchemaText(file, parsed.problems)
        before = len(parsed.problems)
        root = text.compose(content)
        if root is not None:
            _read_file(text, root, parsed.places, tables)
        elif len(parsed.problems) == before:
            text.error_at(1, "Schema has no name! The file is empty")
    parsed.schemas = [Schema(name=name, tables=tuple(own)) for name, own in tables.items()]
    parsed.problems.sort(key=lambda problem: problem.severity)
    return parsed


def load_schemas(*files: str | Path) -> list[Schema]:
    """Returns the schemas of these files; raises `InvalidEntitySchema` with every problem."""
    return read_schemas((str(file), Path(file).read_bytes()) for file in files).checked()


def parse_schema(content: str | bytes, *, file: str = "schema") -> Schema:
    """Returns the one schema of a text; `file` is what problems call it.

    >>> schema = parse_schema("schema: shop\\ntables: {Packages: {columns: {name: {type: Text}}}}")
    >>> schema.tables[0].full_name, schema.tables[0].columns[0].type
    ('shop.Packages', 'Text')
    """
    return read_schemas([(file, content)]).checked()[0]


def _read_file(
    text: SchemaText,
    root: yaml.Node,
    places: dict[tuple[str, ...], SourcePlace],
    tables: dict[str, list[Table]],
) -> None:
    if not isinstance(root, yaml.MappingNode):
        text.error(root, f"A schema must be a mapping, not {kind(root)}")
        return
    fields = text.fields(root, "a schema", _TOP_KEYS)
    schema = text.word(fields.get("schema"), "'schema'")
    if schema:
        _check_name(text, fields["schema"], schema, "schema")
    else:
        text.error(root, "Schema has no name! Write `schema: NAME` at the top")
    own = tables.setdefault(schema, [])
    for name, key, body in text.entries(fields.get("tables"), "'tables'"):
        _check_name(text, key, name, "table")
        first = places.setdefault((schema, name), text.place(key))
        if first != text.place(key):
            text.error(key, f"Table {name} is already described in {first}")
        own.append(_read_table(text, schema, name, body, places))


def _read_table(
    text: SchemaText,
    schema: str,
    name: str,
    body: yaml.Node,
    places: dict[tuple[str, ...], SourcePlace],
) -> Table:
    fields = text.fields(body, f"table {name}", _TABLE_KEYS)
    strict = text.flag(fields.get("strict"), "'strict'")
    class_name = text.word(fields.get("class"), "'class'")
    columns = []
    for column, key, column_body in text.entries(fields.get("columns"), f"'columns' of {name}"):
        _check_name(text, key, column, "column")
        if column == "id":
            text.error(key, f"A column of table {name} is called 'id', which every entity has")
        places.setdefault((schema, name, column), text.place(key))
        columns.append(read_column(text, column, key, column_body, strict=strict))
    return Table(
        schema=schema,
        name=name,
        comment=text.word(fields.get("comment"), "'comment'"),
        class_name="" if class_name == name else class_name,
        strict=strict,
        primary=read_primary(text, name, columns, fields.get("primary")),
        columns=tuple(columns),
        indexes=read_indexes(text, schema, name, columns, fields.get("indexes")),
        engines=text.words(fields.get("engines"), "'engines'"),
        options={
            option: _option_value(text, value)
            for option, _, value in text.entries(fields.get("options"), "'options'")
        },
        admin=_read_admin(text, fields.get("adminOptions"), columns),
    )


def _check_name(text: SchemaText, node: yaml.Node, name: str, what: str) -> None:
    if not NAME.fullmatch(name):
        rule = "it must begin with a letter and go on with letters, digits and underscores"
        text.error(node, f"Invalid name '{name:.100}' for a {what}: {rule}")
    elif len(name) > MAX_ENTITY_NAME_LETTERS:
        text.error(
            node,
            f"The name '{name:.20}...' of a {what} has {len(name)} characters, "
            f"at most {MAX_ENTITY_NAME_LETTERS} are allowed",
        )


def _option_value(text: SchemaText, node: yaml.Node) -> Any:
    try:
        return read_element(text, node)
    except ValueMismatch:
        return None  # the options of a table have no effect, so a bad value is no problem


def _read_admin(
    text: SchemaText, node: yaml.Node | None, columns: list[Column]
) -> TableAdmin | None:
    fields = text.fields(node, "'adminOptions' of a table", ("listColumns", "searchBy"))
    listed = text.words(fields.get("listColumns"), "'listColumns'")
    if listed == tuple(sorted(column.name for column in columns)):
        listed = ()  # which means the same
    admin = TableAdmin(
        list_columns=listed, search_by=text.words(fields.get("searchBy"), "'searchBy'")
    )
    return None if admin == TableAdmin() else admin
