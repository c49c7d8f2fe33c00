"""Code generator fuzz

Hostile schemas become source code, and the languages' own parsers say what that code holds. Every
text of a schema is made of quotes, line ends, comment marks, keywords and payloads that would leave
a file behind if they ran. Python is executed and its models are compared with the schema; Go is
parsed, formatted and type-checked; TypeScript is compiled and its constants are evaluated.
"""

import ast
import base64
import json
import math
import sys
import tempfile
import time
import types
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any, Final

import msgspec

from holdfast.entities import Model
from holdfast.entities.codegen import Options, generate, golang
from holdfast.entities.codegen.names import NamingRules, comment_text
from holdfast.entities.models import schema_yaml
from holdfast.entities.schema import Column, Index, Primary, Schema, Table
from holdfast.entities.schema_dump import dump_schema
from holdfast.entities.schema_file import parse_schema
from holdfast.entities.types import COLUMN_KINDS, COLUMN_TYPES
from holdfast.errors import InvalidEntitySchema
from tests.campaign.frame import Result
from tests.tools import run as run_tool

LINE_ENDS: Final = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
BIDI: Final = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c"
PIECES: Final = (
    *('"', '"""', '""""', "'", "'''", "`", "\\", "\\\\", '\\"', "\\N{BULLET}", "\\x41", "\\u0041"),
    *("#", "# type: ignore", "# noqa", "//", "/*", "*/", "**/", "/", "*", "${x}", "{x}", "%s", "$"),
    *("//go:build ignore", "//go:embed x", "//line x.go:1", "// +build no", "/// <reference/>"),
    *("@ts-ignore", "@ts-nocheck", "@jsx h", "</script>", "<!--", "-->", "-*- coding: utf-7 -*-"),
    *("type: int", "fmt: off", "- item", "* item", "1. item", "# Heading", "\tcode", "    code"),
    *(LINE_ENDS + BIDI + "\0\x01\x1b\x7f\ufeff\u00a0\u3000\ufffe\U000e0001" + "\r\n"),
    *("ß", "漢字", "👩\u200d👧", "\uff49\uff44", "a", "b c", " ", "  ", "null", "~", "no", "1e3"),
    *("=", "<<", "- ", ": ", "&a"),
)  # fmt: skip
NAMES: Final = (
    *("class", "None", "def", "match", "type", "id", "Id", "ID", "func", "range", "Model", "Col"),
    *("column", "index", "now", "str", "set", "datetime", "UTC", "Literal", "Text", "Set", "List"),
    *("string", "number", "Date", "Promise", "Record", "Array", "Error", "constructor", "toString"),
    *("prototype", "all", "schema_yaml", "encode", "HoldfastClient", "holdfastRead", "NewA", "A"),
    *("NewB", "B", "AModel", "AKind", "Kind", "kind", "Schema_s", "Table_A", "eval", "arguments"),
)  # fmt: skip
HOSTILE_NAMES: Final = (
    *("", "a b", "a\nb", "1a", "é", "\uff49\uff44", "a;b", "a\0", '"', "../a", "a.b"),
    *("__proto__", "_"),
)  # fmt: skip

CONTAINERS = {name for name, kind in COLUMN_KINDS.items() if kind.is_container}


class Fuzz:
    """Makes hostile schemas from one source of chance."""

    def __init__(self, random: Random, canary: Path) -> None:
        self.random = random
        path = str(canary)
        self.payloads = (
            f'""" ; open({path!r}, "w") #',
            f'"""" ; open({path!r}, "w") #',
            f"'''\nopen({path!r}, 'w')\n'''",
            f'")\nopen({path!r}, "w") #',
            f'\\"""\nopen({path!r}, "w")\n"""',
            f'*/ require("fs").writeFileSync({path!r}, ""); /*',
            f'"; require("fs").writeFileSync({path!r}, ""); "',
            f'`; import "os"; func init() {{ os.Create({path!r}) }}; var _ = `',
            f'\nfunc init() {{ panic("{path}") }}\n',
        )

    def text(self, longest: int = 6) -> str:
        pieces = self.random.choices(PIECES, k=self.random.randint(0, longest))
        if self.random.random() < 0.25:
            pieces.insert(self.random.randint(0, len(pieces)), self.random.choice(self.payloads))
        return self.random.choice(("", "", " ")).join(pieces)

    def name(self) -> str:
        chance = self.random.random()
        if chance < 0.5:
            return self.random.choice(NAMES)
        if chance < 0.505:
            return self.random.choice(HOSTILE_NAMES)
        rest = self.random.choices("abcXYZ_019", k=self.random.randint(0, 9))
        return self.random.choice("abcXYZ") + "".join(rest)

    def schemas(self) -> list[Schema]:
        names = self.random.sample(("s", "shop", "S2"), k=self.random.choice((1, 1, 1, 2)))
        if self.random.random() < 0.02:
            names[0] = self.name()
        return [Schema(name=name, tables=tuple(self.tables(name))) for name in names]

    def tables(self, schema: str) -> list[Table]:
        made = [self.table(schema) for _ in range(self.random.randint(0, 3))]
        return list({table.name: table for table in made}.values())

    def table(self, schema: str) -> Table:
        made = [self.column() for _ in range(self.random.randint(0, 6))]
        columns = tuple({column.name: column for column in made}.values())
        keys = [column.name for column in columns if column.type not in CONTAINERS]
        indexes = {
            tuple(self.random.sample(keys, k=self.random.randint(1, len(keys))))
            for _ in range(self.random.randint(0, 2))
            if keys
        }
        is_compound = bool(keys) and self.random.random() < 0.5
        return Table(
            schema=schema,
            name=self.name(),
            comment=self.text(),
            class_name=self.name() if self.random.random() < 0.3 else "",
            strict=self.random.random() < 0.2,
            primary=self.primary(keys) if is_compound else Primary(),
            columns=columns,
            indexes=tuple(
                Index(columns=each, unique=self.flip(), sparse=self.flip())
                for each in sorted(indexes)
            ),
        )

    def primary(self, keys: list[str]) -> Primary:
        return Primary(type="compound", columns=tuple(keys[:2]), hashed=self.flip())

    def flip(self) -> bool:
        return self.random.random() < 0.4

    def column(self) -> Column:
        type = self.random.choice(COLUMN_TYPES)
        subtype = None
        if type in CONTAINERS and self.random.random() < 0.7:
            subtype = self.random.choice(COLUMN_TYPES[:7] if type == "Set" else COLUMN_TYPES)
        choices: tuple[Any, ...] = ()
        kind = subtype if type in CONTAINERS else type
        if (
            kind is not None
            and kind not in CONTAINERS
            and kind != "Bool"
            and self.random.random() < 0.3
        ):
            made = [self.value(kind) for _ in range(self.random.randint(1, 9))]
            choices = tuple(one for at, one in enumerate(made) if one not in made[:at])
        default = None
        if self.random.random() < 0.5 and not choices:
            default = (
                "$now"
                if type == "Timestamp" and self.random.random() < 0.5
                else self.value(type, subtype)
            )
        name = self.name()
        return Column(
            name=name,
            type=type,
            client_name=self.name() if self.random.random() < 0.2 else "",
            comment=self.text(),
            default=default,
            required=self.random.random() < 0.3,
            max_len=self.random.choice((None, None, 1, 2**31)),
            choices=choices,
            subtype=subtype,
        )  # fmt: skip

    def value(self, type: str | None, subtype: str | None = None, depth: int = 0) -> Any:
        random = self.random
        if type is None:
            deep = COLUMN_TYPES if depth < 3 else COLUMN_TYPES[:7]
            type = random.choice([each for each in deep if each != "Set"])
        if type in ("Set", "List"):
            items = [self.value(subtype, None, depth + 1) for _ in range(random.randint(0, 4))]
            if type == "List":
                return items
            flat = [item for item in items if not isinstance(item, list | dict)]
            return [one for at, one in enumerate(flat) if one not in flat[:at]]
        if type == "Map":
            return {
                self.key(): self.value(subtype, None, depth + 1)
                for _ in range(random.randint(0, 3))
            }
        made: dict[str, Any] = {
            "Int": random.choice((0, -1, 2**63 - 1, -(2**63), random.randint(-99, 99))),
            "Uint": random.choice((0, 2**64 - 1, 2**63, random.randint(0, 99))),
            "Float": random.choice(
                (0.0, -0.0, 1e300, -1.5, 1e16, 5e-324, math.inf, -math.inf, 0.1)
            ),
            "Text": self.text(),
            "Bool": random.random() < 0.5,
            "Timestamp": datetime(2020, 1, 1, tzinfo=UTC)
            + timedelta(milliseconds=random.randint(-(10**12), 10**12)),
            "Binary": random.randbytes(random.randint(0, 9)),
        }
        return made[type]

    def key(self) -> str:
        return self.random.choice(("__proto__", "constructor", "a", self.text(3) or "k"))


def run(random: Random, seconds: float) -> Result:
    """Generates and examines code for about `seconds`."""
    tried: Counter[str] = Counter()
    broken: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        canary = Path(folder, "canary")
        fuzz = Fuzz(random, canary)
        deadline = time.monotonic() + seconds
        size = 20
        while not tried or time.monotonic() < deadline:
            batch = [fuzz.schemas() for _ in range(size)]
            broken += examine(batch, tried)
            size = min(size * 2, 200)
        if canary.exists():
            broken.append("code of a schema has run")
    return Result(tried=dict(tried), broken=broken)


def examine(batch: Sequence[list[Schema]], tried: Counter[str]) -> Iterator[str]:
    """Returns the problems of the code for these schemas, in every language."""
    go: dict[str, tuple[str, list[Schema]]] = {}
    ts: dict[str, tuple[str, list[Schema]]] = {}
    for at, schemas in enumerate(batch):
        tried["schemas"] += 1
        yield from (f"{problem}\n{schemas!r}" for problem in check_yaml(schemas, tried))
        for style in ("modern", "typed", "classic"):
            if (source := made(schemas, "py", Options(style=style), tried)) is not None:
                yield from (
                    f"{problem} ({style})\n{source}"
                    for problem in check_python(source, schemas, style)
                )
        if (source := made(schemas, "go", Options(), tried)) is not None:
            go[f"go{at}"] = source, schemas
        for name, is_big in (("ts", False), ("big", True)):
            if (source := made(schemas, "ts", Options(bigint=is_big), tried)) is not None:
                ts[f"{name}{at}"] = source, schemas
    yield from check_go(go)
    yield from check_typescript(ts)


def made(schemas: list[Schema], language: Any, options: Options, tried: Counter[str]) -> str | None:
    """The source, or None if the schemas were refused."""
    try:
        source = generate(schemas, language, options)
    except InvalidEntitySchema as error:
        if "is not what the schema describes" in str(error):
            raise AssertionError(f"the generator had to stop itself: {schemas!r}") from error
        tried["refused"] += 1
        return None
    tried[f"{language} files"] += 1
    return source


def check_yaml(schemas: Sequence[Schema], tried: Counter[str]) -> Iterator[str]:
    """A schema that can be read from a file is the same when it was written and read again."""
    for schema in schemas:
        try:
            again = parse_schema(dump_schema(schema, filled=False))
        except InvalidEntitySchema:
            continue  # names that clash or can't be names
        tried["yaml files"] += 1
        yield from (f"YAML: {each}" for each in differences(again, plain(schema)))


def plain(schema: Schema) -> Schema:
    """The schema as a file says it: names of classes only where they differ from the table's."""
    tables = tuple(
        msgspec.structs.replace(
            table,
            class_name="" if table.class_name == table.name else table.class_name,
            columns=tuple(
                msgspec.structs.replace(
                    each, client_name="" if each.client_name == each.name else each.client_name
                )
                for each in table.columns
            ),
        )
        for table in schema.tables
    )  # fmt: skip
    return msgspec.structs.replace(schema, tables=tables)


def check_python(source: str, schemas: list[Schema], style: str) -> Iterator[str]:
    names = NamingRules.of("py", style)
    tables = [table for schema in schemas for table in schema.tables]
    try:
        body = ast.parse(source).body
        module = types.ModuleType("generated")
        sys.modules["generated"] = module
        exec(compile(source, "generated", "exec"), module.__dict__)
    except Exception as error:
        yield f"Python does not run: {error!r}"
        return
    kinds = {ast.Expr, ast.ImportFrom, ast.Assign, ast.ClassDef}
    if (
        not all(type(each) in kinds for each in body)
        or sum(isinstance(e, ast.Expr) for e in body) != 1
    ):
        yield "Python holds other statements than it should"
    classes = [each for each in body if isinstance(each, ast.ClassDef)]
    if [each.name for each in classes] != [names.model(table) for table in tables]:
        yield "Python holds other classes than it should"
    for each, table in zip(classes, tables, strict=False):
        said = (ast.get_docstring(each) or "").split()
        if said != " ".join(comment_text(table.comment)).split():
            yield f"the docstring of {table.name} is {said}"
    if style == "classic":
        return
    for schema in schemas:
        models = [vars(module)[names.model(table)] for table in schema.tables]
        if not models:
            continue
        assert all(issubclass(model, Model) for model in models)
        try:
            again = parse_schema(schema_yaml(*models))
        except InvalidEntitySchema as error:
            yield f"the schema that Python describes is refused: {error}\n{schema_yaml(*models)}"
            continue
        yield from (f"Python describes {each}" for each in differences(bare(again), bare(schema)))


def differences(found: Schema, wanted: Schema) -> Iterator[str]:
    """Where two schemas differ; compared by their bytes, which also tell NaN, 1 and 1.0 apart."""
    encode = msgspec.msgpack.encode
    if encode(found) == encode(wanted):
        return
    pairs = [(one, other) for one, other in zip(found.tables, wanted.tables, strict=False)]
    for one, other in pairs:
        for own, its in zip(one.columns, other.columns, strict=False):
            if encode(own) != encode(its):
                yield f"{own!r} instead of {its!r}"
                return
    yield f"{found!r} instead of {wanted!r}"


def bare(schema: Schema) -> Schema:
    """A schema without what generated Python does not tell: comments and names of classes."""
    tables = [
        msgspec.structs.replace(
            table,
            comment="",
            class_name="",
            columns=tuple(
                msgspec.structs.replace(
                    column, comment="", client_name="", default=in_order(column)
                )
                for column in table.columns
            ),
        )
        for table in schema.tables
    ]
    return msgspec.structs.replace(schema, tables=tuple(tables))


def in_order(column: Column) -> Any:
    """The default, with a Set sorted: Python's sets have no order."""
    if column.type == "Set" and column.default is not None:
        return sorted(column.default, key=repr)
    if column.subtype == "Set" and isinstance(column.default, list):
        return [sorted(one, key=repr) for one in column.default]
    if column.subtype == "Set" and isinstance(column.default, dict):
        return {key: sorted(one, key=repr) for key, one in column.default.items()}
    return column.default


def check_go(files: dict[str, tuple[str, list[Schema]]]) -> Iterator[str]:
    empty = generate([Schema(name="empty")], "go")
    sources = [{"name": "empty", "source": empty}]
    sources += [{"name": name, "source": source} for name, (source, _) in files.items()]
    checker = Path(__file__).with_name("codegen_check.go")
    client, *found = json.loads(run_tool("go", "run", checker, input=json.dumps(sources)))
    names = NamingRules.of("go", "modern")
    for seen in found:
        source, schemas = files[seen["Name"]]
        tables = [table for schema in schemas for table in schema.tables]
        structs = {names.model(table): go_fields(table, names) for table in tables}
        others = Counter(client["Others"]) + Counter(f"New{model}" for model in structs)
        others += Counter({"holdfastModel": len(structs)})
        own = {
            name: fields
            for name, fields in seen["Structs"].items()
            if name not in client["Structs"]
        }
        strings = Counter(seen["Consts"].values()) - Counter(client["Consts"].values())
        wanted = Counter([*(schema.name for schema in schemas), *(table.name for table in tables)])
        problems = [seen["Error"]] if seen["Error"] else []
        problems += [f"is not formatted: {seen['Unformed']}"] if seen["Unformed"] else []
        if not seen["Error"]:
            problems += [] if own == structs else [f"has other structs: {own} not {structs}"]
            problems += [] if Counter(seen["Others"]) == others else ["has other declarations"]
            is_same = strings == wanted - Counter({"empty": 1})
            problems += [] if is_same else [f"has other constants: {strings} not {wanted}"]
        yield from (f"Go {problem}\n{source}" for problem in problems)


def go_fields(table: Table, names: NamingRules) -> list[dict[str, Any]]:
    fields = [
        {"Name": "_", "Type": "struct{}", "Tags": {"table": table.name, "schema": table.schema}},
        {"Name": "Id", "Type": "string", "Tags": {"db": ",primary"}},
    ]
    for column in table.columns:
        tags = {"db": column.name + (",required" if column.required else "")}
        if column.max_len is not None:
            tags["maxlen"] = str(column.max_len)
        if column.subtype:
            tags["type"] = column.subtype
        if column.default is not None:
            tags["default"] = golang.tag_value(column.default)
        if column.choices:
            tags["choices"] = golang.tag_value(list(column.choices))
        kind = golang.go_type(column)
        fields.append({"Name": names.attribute(column), "Type": kind, "Tags": tags})
    return [*fields, {"Name": "holdfast", "Type": "*holdfastLoaded", "Tags": {}}]


def check_typescript(files: dict[str, tuple[str, list[Schema]]]) -> Iterator[str]:
    empty = generate([Schema(name="empty")], "ts")
    sources = [{"name": "empty", "source": empty}]
    sources += [{"name": name, "source": source} for name, (source, _) in files.items()]
    checker = Path(__file__).with_name("codegen_check.cjs")
    client, *found = json.loads(run_tool("node", checker, input=json.dumps(sources)))
    names = NamingRules.of("ts", "modern")
    for seen in found:
        source, schemas = files[seen["name"]]
        tables = [table for schema in schemas for table in schema.tables]
        interfaces = {names.model(table): ts_members(table, names) for table in tables}
        constants: dict[str, Any] = {"holdfastSchemas": [schema.name for schema in schemas]}
        constants |= {f"{names.model(table)}Model": ts_constant(table, names) for table in tables}
        problems = [seen["error"]] if seen["error"] else []
        if seen["interfaces"] != interfaces:
            problems.append(f"has other interfaces: {seen['interfaces']} not {interfaces}")
        if simple(seen["constants"]) != simple(constants):
            problems.append(f"has other constants: {seen['constants']} not {constants}")
        if seen["others"] != client["others"] or seen["pragmas"] or seen["directives"]:
            problems.append(f"has other statements: {seen['others']} {seen['pragmas']}")
        yield from (f"TypeScript {problem}\n{source}" for problem in problems)


def ts_members(table: Table, names: NamingRules) -> list[list[Any]]:
    optional = [
        [names.attribute(column), not column.required and column.default is None]
        for column in table.columns
    ]
    return [["id", False], *optional]


def ts_constant(table: Table, names: NamingRules) -> dict[str, Any]:
    columns = {}
    for column in table.columns:
        said = {"name": column.name, "type": column.type, "required": column.required}
        said |= {"subtype": column.subtype} if column.subtype else {}
        said |= {"maxLen": column.max_len} if column.max_len is not None else {}
        said |= {"default": column.default} if column.default is not None else {}
        said |= {"choices": list(column.choices)} if column.choices else {}
        columns[names.attribute(column)] = said
    primary = table.primary
    return {
        "schema": table.schema,
        "table": table.name,
        "primary": {
            "type": primary.type,
            "columns": list(primary.columns),
            "hashed": primary.hashed,
        },
        "indexes": [
            {"type": i.type, "columns": list(i.columns), "unique": i.unique, "sparse": i.sparse}
            for i in table.indexes
        ],
        "columns": columns,
    }


def simple(value: Any) -> Any:
    """A value as JavaScript's numbers and JSON show it."""
    if isinstance(value, dict):
        return {key: simple(one) for key, one in value.items()}
    if isinstance(value, list):
        return [simple(one) for one in value]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, float) and not math.isfinite(value):
        return f"{value}".replace("inf", "Infinity")
    if type(value) is int or isinstance(value, float):
        return float(value)
    if isinstance(value, str) and value.lstrip("-").isascii() and value.lstrip("-").isdigit():
        return float(value) if len(value) > 15 else value  # a bigint
    return value
