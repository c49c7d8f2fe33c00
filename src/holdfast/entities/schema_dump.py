"""Writes schemas as YAML, for `/schemadump` and for models.

Reading the text again gives the same records.
"""

from collections.abc import Mapping
from typing import Any

import yaml

from holdfast.entities.schema import Column, ColumnAdmin, Index, Schema, Table, TableAdmin


def dump_schema(schema: Schema, *, filled: bool = True) -> str:
    """Returns the schema as YAML, with all defaults, or only with what differs from them.

    >>> print(dump_schema(Schema(name="shop", tables=(Table(schema="shop", name="Users"),))))
    schema: shop
    tables:
      Users:
        name: Users
        comment: ''
        class: Users
        engines: []
        options: {}
        strict: false
        primary:
          type: random
          columns: []
          options:
            hashed: false
        columns: {}
        indexes: []
        adminOptions:
          listColumns: []
          searchBy: []
    <BLANKLINE>
    """
    tables = {table.name: _table(table) for table in schema.tables}
    if not filled:
        tables = {table.name: _pruned(tables[table.name], _blank(table)) for table in schema.tables}
    document = {"schema": schema.name, "tables": tables}
    text: str = yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)
    return text


class _Dumper(yaml.SafeDumper):
    """Writes every value in full, without YAML aliases."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _write_text(dumper: _Dumper, value: str) -> yaml.Node:
    # Other styles write line ends such as U+0085 unescaped, and YAML reads them as "\n".
    style = None if value.isprintable() else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Dumper.add_representer(str, _write_text)


def _table(table: Table) -> dict[str, Any]:
    admin = table.admin or TableAdmin()
    return {
        "name": table.name,
        "comment": table.comment,
        "class": table.model,
        "engines": list(table.engines),
        "options": table.options,
        "strict": table.strict,
        "primary": {
            "type": table.primary.type,
            "columns": list(table.primary.columns),
            "options": {"hashed": table.primary.hashed},
        },
        "columns": {column.name: _column(column) for column in table.columns},
        "indexes": [_index(table, index) for index in table.indexes],
        "adminOptions": {
            "listColumns": list(admin.list_columns) or sorted(c.name for c in table.columns),
            "searchBy": list(admin.search_by),
        },
    }


def _column(column: Column) -> dict[str, Any]:
    admin = column.admin or ColumnAdmin()
    return {
        "name": column.name,
        "type": column.type,
        "comment": column.comment,
        "clientName": column.attribute,
        # A null would be the text "null" in a Text column, so without a default there is no line.
        **({} if column.default is None else {"default": column.default}),
        "options": {
            "required": column.required,
            "max_len": column.max_len,
            "choices": list(column.choices),
            "subtype": column.subtype,
            "not_null": column.not_null,
            "must_match": column.must_match,
        },
        "adminOptions": {
            "hidden": admin.hidden,
            "readonly": admin.readonly,
            "priority": admin.priority,
            "format": admin.format,
        },
    }


def _index(table: Table, index: Index) -> dict[str, Any]:
    return {
        "name": table.index_name(index),
        "type": index.type,
        "columns": list(index.columns),
        "options": {"unique": index.unique, "sparse": index.sparse},
    }


def _blank(table: Table) -> dict[str, Any]:
    """Returns the document of a table with these names and defaults for all else."""
    columns = tuple(Column(name=column.name, type=column.type) for column in table.columns)
    blank = _table(Table(schema=table.schema, name=table.name, columns=columns))
    for column in blank["columns"].values():
        del column["type"]  # it has no default
    blank["indexes"] = [
        {"name": table.index_name(index), "options": {"unique": False, "sparse": False}}
        for index in table.indexes
    ]
    return blank


def _pruned(value: Mapping[str, Any], blank: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the entries of `value` that differ from those of `blank`."""
    kept: dict[str, Any] = {}
    for name, part in value.items():
        other = blank.get(name, ...)
        if name == "columns" and isinstance(part, dict):
            kept[name] = {key: _pruned(column, other[key]) for key, column in part.items()}
        elif name == "indexes":
            kept[name] = [_pruned(*pair) for pair in zip(part, other, strict=True)]
        elif isinstance(part, dict) and isinstance(other, dict) and name != "options":
            kept[name] = _pruned(part, other)
        elif isinstance(part, dict) and isinstance(other, dict):
            kept[name] = {key: one for key, one in part.items() if one != other.get(key, ...)}
        elif part != other:
            kept[name] = part
    empty: tuple[Any, ...] = ({}, [])
    return {name: part for name, part in kept.items() if name == "default" or part not in empty}
