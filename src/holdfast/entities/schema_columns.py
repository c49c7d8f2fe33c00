"""Reads the columns of a schema file."""

import re
from typing import Any, Final

import yaml

from holdfast.entities.linear_patterns import LinearPattern, NotLinear
from holdfast.entities.schema import Column, ColumnAdmin
from holdfast.entities.schema_text import SchemaText, is_null
from holdfast.entities.schema_values import disallowed_choice, read_value
from holdfast.entities.types import COLUMN_KINDS, COLUMN_TYPES, ColumnType, ValueMismatch

_KEYS: Final = ("type", "comment", "clientName", "name", "default", "options", "adminOptions")
_OPTIONS: Final = ("required", "max_len", "choices", "subtype", "not_null", "must_match")
_FALLBACK: Final[ColumnType] = "Text"  # takes any value as it is written
_ADMIN: Final = ("hidden", "readonly", "priority", "format")


def read_column(
    text: SchemaText, name: str, key: yaml.Node, body: yaml.Node, *, strict: bool
) -> Column:
    """Returns the column `name`, read from its body."""
    fields = text.fields(body, f"column {name}", _KEYS)
    if not isinstance(body, yaml.MappingNode) and not is_null(body):
        return Column(name=name, type=_FALLBACK)  # reported already
    options = text.fields(fields.get("options"), f"'options' of column {name}", _OPTIONS)
    type = _read_type(text, name, fields.get("type"), fields.get("type", key))
    subtype = _read_subtype(text, name, type, options.get("subtype"))
    choices = _read_choices(text, name, type, subtype, options.get("choices"))
    client_name = text.word(fields.get("clientName"), "'clientName'")
    max_len = text.number(options.get("max_len"), f"'max_len' of column {name}")
    return Column(
        name=name,
        type=type or _FALLBACK,  # an unknown type has been reported; the rest is checked anyway
        client_name="" if client_name == name else client_name,
        comment=text.word(fields.get("comment"), "'comment'"),
        default=_read_default(text, name, type, subtype, choices, fields.get("default")),
        required=text.flag(options.get("required"), f"'required' of column {name}"),
        max_len=max_len if max_len > 0 else None,  # 0 and -1 mean "no limit" to Meduza
        choices=choices,
        subtype=subtype,
        not_null=text.flag(options.get("not_null"), f"'not_null' of column {name}"),
        must_match=_read_pattern(text, name, options.get("must_match"), strict=strict),
        admin=_read_admin(text, name, fields.get("adminOptions")),
    )


def _read_type(
    text: SchemaText, column: str, node: yaml.Node | None, place: yaml.Node
) -> ColumnType | None:
    word = text.word(node, f"'type' of column {column}")
    for type in COLUMN_TYPES:
        if type == word:
            return type
    suggestion = text.nearest(word, COLUMN_TYPES)
    text.error(place, f"Invalid type in schema: '{word}' for column {column}{suggestion}")
    return None


def _read_subtype(
    text: SchemaText, column: str, type: ColumnType | None, node: yaml.Node | None
) -> ColumnType | None:
    if node is None or is_null(node):
        return None
    subtype = _read_type(text, column, node, node)
    if type is not None and not COLUMN_KINDS[type].is_container:
        text.warn(node, f"'subtype' means nothing in the {type} column {column} and is ignored")
        return None
    if type and subtype and COLUMN_KINDS[type].is_distinct and COLUMN_KINDS[subtype].is_container:
        text.error(node, f"The elements of the {type} column {column} can't be of type {subtype}")
    return subtype


def _read_choices(
    text: SchemaText,
    column: str,
    type: ColumnType | None,
    subtype: ColumnType | None,
    node: yaml.Node | None,
) -> tuple[Any, ...]:
    choices = []
    kind = subtype if type and COLUMN_KINDS[type].is_container else type
    for item in text.items(node, f"'choices' of column {column}"):
        if kind is None:
            kind = _FALLBACK
        try:
            choices.append(read_value(text, item, kind, None))
        except ValueMismatch as mismatch:
            text.error(item, f"Choice {mismatch} does not fit the {type} column {column}")
    return tuple(choices)


def _read_default(
    text: SchemaText,
    column: str,
    type: ColumnType | None,
    subtype: ColumnType | None,
    choices: tuple[Any, ...],
    node: yaml.Node | None,
) -> Any:
    if node is None or type is None:
        return None
    if is_null(node) and not (COLUMN_KINDS[type].is_text and node.value):
        return None
    try:
        default = read_value(text, node, type, subtype)
    except ValueMismatch as mismatch:
        text.error(node, f"Default {mismatch} does not fit the {type} column {column}")
        return None
    if (other := disallowed_choice(default, choices, type)) is not None:
        known = ", ".join(map(str, choices))
        text.error(node, f"Default '{other}' is not one of the choices of column {column}: {known}")
    return default


def _read_pattern(text: SchemaText, column: str, node: yaml.Node | None, *, strict: bool) -> str:
    pattern = text.word(node, f"'must_match' of column {column}")
    if not strict or node is None:  # it has no effect
        return pattern
    try:
        LinearPattern(pattern)
    except re.error as error:
        text.error(node, f"'must_match' of column {column} is not a regular expression: {error}")
    except NotLinear as error:
        text.error(node, f"'must_match' of column {column} can't be used here: {error}")
    return pattern


def _read_admin(text: SchemaText, column: str, node: yaml.Node | None) -> ColumnAdmin | None:
    fields = text.fields(node, f"'adminOptions' of column {column}", _ADMIN)
    admin = ColumnAdmin(
        hidden=text.flag(fields.get("hidden"), "'hidden'"),
        readonly=text.flag(fields.get("readonly"), "'readonly'"),
        priority=text.number(fields.get("priority"), "'priority'"),
        format=text.word(fields.get("format"), "'format'"),
    )
    return None if admin == ColumnAdmin() else admin
