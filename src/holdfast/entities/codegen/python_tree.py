"""Checks generated Python against a syntax tree that is made from the schema itself.

The generators write text. If a text in a schema could end its own quotes, the source would parse to
a different tree; then nothing is emitted.
"""

import ast
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from holdfast.entities.codegen.names import NamingRules, comment_text
from holdfast.entities.codegen.python import is_optional, literal_choices, plain_annotation, title
from holdfast.entities.codegen.python_layout import docstring_value
from holdfast.entities.schema import Column, Index, Schema, Table
from holdfast.entities.types import COLUMN_KINDS, COLUMN_TYPES, is_now, meduza_type
from holdfast.errors import InvalidEntitySchema

_IMPORTS: Final[dict[str, set[str]]] = {
    "datetime": {"UTC", "datetime"},
    "typing": {"Literal"},
    "holdfast.entities": {"Col", "Model", "column", "index", "now"},
    "holdfast.meduza": {"Model"},
    "holdfast.meduza.columns": set(COLUMN_TYPES),
}
for _kind in COLUMN_KINDS.values():
    _IMPORTS.setdefault(_kind.python.__module__, set()).add(_kind.python.__name__)


def check_python(source: str, schemas: Sequence[Schema], names: NamingRules, style: str) -> str:
    """Returns `source` if its syntax tree is that of the schemas; else `InvalidEntitySchema`."""
    make = _classic if style == "classic" else _typed if style == "typed" else _modern
    wanted: list[ast.stmt] = [ast.Expr(ast.Constant(title(schemas)))]
    wanted += [make(table, names) for schema in schemas for table in schema.tables]
    try:
        is_same = _dump(_without_imports(ast.parse(source))) == _dump(wanted)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        is_same = False
    if not is_same:
        problem = "The generated Python is not what the schema describes, so none is written"
        raise InvalidEntitySchema.of([problem])
    return source


def _dump(body: Sequence[ast.stmt]) -> str:
    return ast.dump(ast.Module(body=list(body), type_ignores=[]))


def _without_imports(module: ast.Module) -> list[ast.stmt]:
    """Returns the statements without the known imports, with each alias replaced by its type."""
    aliases: dict[str, ast.expr] = {}
    kept: list[ast.stmt] = []
    for each in module.body:
        match each:
            case ast.ImportFrom(module=str(origin), level=0, names=names) if all(
                one.asname is None and one.name in _IMPORTS.get(origin, ()) for one in names
            ):
                continue
            case ast.Assign(
                targets=[ast.Name(id=alias)],
                value=ast.Subscript(value=ast.Name(id="Literal"), slice=inner) as literal,
            ) if all(
                isinstance(part, ast.Constant)
                for part in (inner.elts if isinstance(inner, ast.Tuple) else [inner])
            ):
                aliases[alias] = literal
            case _:
                kept.append(each)
    return [_Inlined(aliases).visit(each) for each in kept]


class _Inlined(ast.NodeTransformer):
    """Replaces each alias by its meaning in the annotations that use it."""

    def __init__(self, aliases: Mapping[str, ast.expr]) -> None:
        self._aliases = aliases

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self._aliases.get(node.id, node) if isinstance(node.ctx, ast.Load) else node


def _modern(table: Table, names: NamingRules, *, typed: bool = False) -> ast.stmt:
    columns = [
        ast.AnnAssign(
            target=ast.Name(id=names.attribute(column), ctx=ast.Store()),
            annotation=_annotation(column, typed=typed),
            value=_column(column, names.attribute(column)),
            simple=1,
        )
        for column in table.columns
    ]
    body = [*_documented(table), *columns]
    if table.indexes:
        body.append(_assigned("__indexes__", _tuple([_index(index) for index in table.indexes])))
    keywords: dict[str, ast.expr] = {"schema": _value(table.schema), "table": _value(table.name)}
    if table.primary.type == "compound":
        keywords["primary"] = _tuple([_value(column) for column in table.primary.columns])
    keywords |= {
        option: _value(True)
        for option, is_on in (("hashed", table.primary.hashed), ("strict", table.strict))
        if is_on
    }
    return _class(names.model(table), keywords, body or [ast.Pass()])


def _typed(table: Table, names: NamingRules) -> ast.stmt:
    return _modern(table, names, typed=True)


def _classic(table: Table, names: NamingRules) -> ast.stmt:
    columns = [
        _assigned(names.attribute(column), _classic_column(column)) for column in table.columns
    ]
    own = [_assigned("_table", _value(table.name)), _assigned("_schema", _value(table.schema))]
    return _class(names.model(table), {}, [*_documented(table), *own, *columns])


def _classic_column(column: Column) -> ast.expr:
    keywords: dict[str, ast.expr] = {}
    if column.required:
        keywords["required"] = _value(True)
    if column.max_len is not None and column.kind.is_sized:
        keywords["maxLen"] = _value(column.max_len)
    if column.choices:
        keywords["choices"] = _value(list(column.choices))
    if column.subtype:
        keywords["type"] = _call(meduza_type(column.subtype))
    if is_now(column.type, column.default):
        keywords["default"] = ast.Attribute(_name(meduza_type(column.type)), "now", ast.Load())
    elif column.default is not None:
        keywords["default"] = _value(column.default, column.type, column.subtype)
    return _call(meduza_type(column.type), [_value(column.name)], keywords)


def _column(column: Column, attribute: str) -> ast.expr:
    keywords: dict[str, ast.expr] = {}
    if not column.kind.annotations:
        keywords["type"] = _value(column.type)
    if column.subtype and not COLUMN_KINDS[column.subtype].annotations:
        keywords["subtype"] = _value(column.subtype)
    if column.required:
        keywords["required"] = _value(True)
    if column.max_len is not None:
        keywords["max_len"] = _value(column.max_len)
    if column.choices and not literal_choices(column):
        keywords["choices"] = _tuple([_value(choice) for choice in column.choices])
    if is_now(column.type, column.default):
        keywords["default"] = _name("now")
    elif column.kind.is_container and column.default is not None and not column.default:
        keywords["default"] = _name(column.kind.python.__name__)
    elif column.default is not None:
        keywords["default"] = _value(column.default, column.type, column.subtype)
    named = [] if attribute == column.name else [_value(column.name)]
    return _call("column", named, keywords)


def _annotation(column: Column, *, typed: bool) -> ast.expr:
    if literal_choices(column):
        kind = _subscript("Literal", [_value(choice) for choice in column.choices])
    else:  # it contains no text of the schema
        kind = ast.parse(plain_annotation(column), mode="eval").body
    if is_optional(column):
        kind = ast.BinOp(kind, ast.BitOr(), ast.Constant(None))
    return _subscript("Col", [kind]) if typed else kind


def _index(index: Index) -> ast.expr:
    keywords: dict[str, ast.expr] = {}
    if index.type == "compound" and len(index.columns) == 1:
        keywords["type"] = _value("compound")
    keywords |= {option: _value(True) for option in ("unique", "sparse") if getattr(index, option)}
    return _call("index", [_value(column) for column in index.columns], keywords)


def _documented(table: Table) -> list[ast.stmt]:
    if not comment_text(table.comment):
        return []
    return [ast.Expr(ast.Constant(docstring_value(table.comment)))]


def _class(name: str, keywords: Mapping[str, ast.expr], body: Sequence[ast.stmt]) -> ast.stmt:
    # Parsed, not constructed: newer Pythons have more fields than 3.11.
    made = ast.parse("class Empty(Model): pass").body[0]
    assert isinstance(made, ast.ClassDef)
    made.name, made.body = name, list(body)
    made.keywords = [ast.keyword(arg=key, value=value) for key, value in keywords.items()]
    return made


def _name(name: str) -> ast.expr:
    return ast.Name(id=name, ctx=ast.Load())


def _assigned(name: str, value: ast.expr) -> ast.stmt:
    return ast.Assign(targets=[ast.Name(id=name, ctx=ast.Store())], value=value)


def _call(
    name: str, arguments: Sequence[ast.expr] = (), keywords: Mapping[str, ast.expr] | None = None
) -> ast.expr:
    options = [ast.keyword(arg=key, value=value) for key, value in (keywords or {}).items()]
    return ast.Call(func=_name(name), args=list(arguments), keywords=options)


def _tuple(parts: Sequence[ast.expr]) -> ast.expr:
    return ast.Tuple(elts=list(parts), ctx=ast.Load())


def _subscript(name: str, parts: Sequence[ast.expr]) -> ast.expr:
    inner = parts[0] if len(parts) == 1 else _tuple(parts)
    return ast.Subscript(value=_name(name), slice=inner, ctx=ast.Load())


def _value(value: Any, type: str = "", subtype: str | None = None) -> ast.expr:
    """Returns the expression of a value of a column of this type; a Set is written as a set."""
    if isinstance(value, datetime):
        parts = value.timetuple()[:6] + ((value.microsecond,) if value.microsecond else ())
        return _call("datetime", [_value(part) for part in parts], {"tzinfo": _name("UTC")})
    if isinstance(value, list):
        items = [_value(item, subtype or "") for item in value]
        if type and COLUMN_KINDS[type].is_distinct:
            return ast.Set(elts=items) if items else _call("set")
        return ast.List(elts=items, ctx=ast.Load())
    if isinstance(value, dict):
        keys: list[ast.expr | None] = [_value(key) for key in value]
        return ast.Dict(keys=keys, values=[_value(item, subtype or "") for item in value.values()])
    if isinstance(value, float) and value - value != 0:
        return _call("float", [ast.Constant(str(value))])
    if isinstance(value, int | float) and not isinstance(value, bool) and repr(value)[0] == "-":
        return ast.UnaryOp(op=ast.USub(), operand=ast.Constant(-value))
    return ast.Constant(value)
