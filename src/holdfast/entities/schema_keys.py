"""Reads the primary keys and the indexes of a schema file."""

from collections.abc import Sequence
from typing import Final

import yaml

from holdfast.entities.schema import Column, Index, Primary
from holdfast.entities.schema_text import SchemaText
from holdfast.entities.types import COLUMN_KINDS
from holdfast.limits import MAX_INDEX_COLUMNS, MAX_TABLE_INDEXES
from holdfast.yaml_text import shortened

_KEYS: Final = ("type", "columns", "options", "name")
_TYPES: Final = {"Random": "random", "Compound": "compound", "Simple": "simple"}  # as in the text


def read_primary(
    text: SchemaText, table: str, columns: Sequence[Column], node: yaml.Node | None
) -> Primary:
    """Returns the primary key. Without a type it is compound when it has columns, else random."""
    fields = text.fields(node, f"'primary' of table {table}", _KEYS)
    options = text.fields(fields.get("options"), f"'primary' of table {table}", ("hashed",))
    named = text.words(fields.get("columns"), f"'columns' of the primary of table {table}")
    type = text.word(fields.get("type"), "'type'") or ("compound" if named else "random")
    type = _TYPES.get(type, type)
    hashed = text.flag(options.get("hashed"), "'hashed'")
    if type == "random":
        return Primary()
    if type != "compound":
        place = fields["type"]
        text.error(place, f"Index type '{type}' is not allowed for the primary of table {table}")
    elif node is not None:
        place = fields.get("columns", node)
        _check_columns(text, place, table, columns, named, f"{table} primary")
    return Primary(type="compound", columns=named, hashed=hashed)


def read_indexes(
    text: SchemaText, schema: str, table: str, columns: Sequence[Column], node: yaml.Node | None
) -> tuple[Index, ...]:
    """Returns the indexes in the order of the file."""
    indexes: dict[tuple[str, ...], Index] = {}
    for item in text.items(node, f"'indexes' of table {table}"):
        index = _read_index(text, schema, table, columns, item)
        if index.columns and index.columns in indexes:
            listed = ", ".join(index.columns)
            text.error(item, f"Two indexes of table {table} have the same columns: {listed}")
        indexes.setdefault(index.columns, index)
        if len(indexes) > MAX_TABLE_INDEXES:
            text.error(item, f"Table {table} has more than {MAX_TABLE_INDEXES} indexes")
            break
    return tuple(indexes.values())


def _read_index(
    text: SchemaText, schema: str, table: str, columns: Sequence[Column], node: yaml.Node
) -> Index:
    fields = text.fields(node, f"an index of table {table}", _KEYS)
    options = text.fields(fields.get("options"), "'options' of an index", ("unique", "sparse"))
    named = text.words(fields.get("columns"), f"'columns' of an index of table {table}")
    type = text.word(fields.get("type"), "'type'")
    type = _TYPES.get(type, type)
    if type not in ("simple", "compound"):
        place = fields.get("type", node)
        text.error(place, f"Index type '{type}' is not allowed, use 'simple' or 'compound'")
    index = Index(
        columns=named,
        type="simple" if type == "simple" else "compound",
        unique=text.flag(options.get("unique"), "'unique'"),
        sparse=text.flag(options.get("sparse"), "'sparse'"),
    )
    name = index.name(f"{schema}.{table}")
    place = fields.get("columns", node)
    _check_columns(text, place, table, columns, named, name)
    if type == "simple" and len(named) > 1:
        text.error(place, f"The simple index {name} has {len(named)} columns, make it compound")
    return index


def _check_columns(
    text: SchemaText,
    place: yaml.Node,
    table: str,
    columns: Sequence[Column],
    named: tuple[str, ...],
    index: str,
) -> None:
    types, index = {column.name: column.type for column in columns}, shortened(index)
    if not named:
        text.error(place, f"Index {index} has no columns")
    elif len(named) > MAX_INDEX_COLUMNS:
        count = f"{len(named)} columns, at most {MAX_INDEX_COLUMNS} are allowed"
        text.error(place, f"Index {index} has {count}")
        return
    seen: set[str] = set()
    for name in named:
        if name in seen:
            text.error(place, f"Index {index} has the column {name} twice")
        elif name not in types:
            problem = f"Table {table} does not contain column {name} required for index {index}"
            text.error(place, problem + text.nearest(name, tuple(types)))
        elif COLUMN_KINDS[types[name]].is_container:
            text.error(place, f"Index {index} can't use {name}, which is a {types[name]}")
        seen.add(name)
