"""Python models in the style of the public Meduza client, for `holdfast.meduza`."""

from collections.abc import Iterator, Sequence

from holdfast.entities.codegen.names import NamingRules, comment_text
from holdfast.entities.codegen.python import holds_moment, title
from holdfast.entities.codegen.python_layout import (
    Brackets,
    comment_lines,
    docstring,
    fits,
    literal,
    text,
    with_key,
)
from holdfast.entities.schema import Column, Schema, Table
from holdfast.entities.types import is_now, meduza_type


def write(schemas: Sequence[Schema], names: NamingRules) -> str:
    """Returns the module, with a comment line at the start and the end of each schema."""
    head = f'"""{title(schemas)}"""\n'
    columns = [column for schema in schemas for table in schema.tables for column in table.columns]
    parts = [head + _imports(columns)]
    for schema in schemas:
        classes = "".join(f"\n\n{_class(table, names)}" for table in schema.tables)
        parts.append(
            f"\n# Schema {schema.name} begins.\n{classes}\n\n# Schema {schema.name} ends.\n"
        )
    return "".join(parts)


def _imports(columns: Sequence[Column]) -> str:
    used = {meduza_type(column.type) for column in columns}
    used |= {meduza_type(column.subtype) for column in columns if column.subtype}
    lines = [""]
    if any(holds_moment([column.default, *column.choices]) for column in columns):
        lines += ["from datetime import UTC, datetime", ""]
    lines.append("from holdfast.meduza import Model")
    if used:
        source, parts = "from holdfast.meduza.columns import ", sorted(used)
        flat = source + ", ".join(parts)
        lines += [flat] if fits(flat) else Brackets(f"{source}(", parts, ")").lines(0)
    return "\n".join([*lines, ""])


def _class(table: Table, names: NamingRules) -> str:
    lines = [f"class {names.model(table)}(Model):"]
    if comment_text(table.comment):
        lines += [*docstring(table.comment), ""]
    lines += [f"    _table = {text(table.name)}", f"    _schema = {text(table.schema)}"]
    if table.columns:
        lines.append("")
    for column in table.columns:
        lines += comment_lines(column.comment)
        called = f"{names.attribute(column)} = {meduza_type(column.type)}("
        call = Brackets(called, list(_arguments(column)), ")")
        lines += call.lines(4)
    return "\n".join([*lines, ""])


def _arguments(column: Column) -> Iterator[str | Brackets]:
    yield text(column.name)
    if column.required:
        yield "required=True"
    if column.max_len is not None and column.kind.is_sized:
        yield f"maxLen={column.max_len}"
    if column.choices:
        yield with_key(
            "choices=", Brackets("[", [literal(choice) for choice in column.choices], "]")
        )
    if column.subtype:
        yield f"type={meduza_type(column.subtype)}()"
    if column.default is not None:
        yield with_key("default=", _default(column))


def _default(column: Column) -> str | Brackets:
    if is_now(column.type, column.default):
        return f"{meduza_type(column.type)}.now"
    return literal(column.default, type=column.type, subtype=column.subtype)
