"""Generated code: what it says, that it compiles, and that its clients speak with a server."""

import ast
import importlib.util
import json
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from holdfast.entities import Model
from holdfast.entities.codegen import Language, Options, Style, generate
from holdfast.entities.codegen.names import NamingRules
from holdfast.entities.codegen.python_layout import docstring
from holdfast.entities.codegen.python_tree import check_python
from holdfast.entities.models import schema_yaml
from holdfast.entities.schema import Column, Schema, Table
from holdfast.entities.schema_file import load_schemas, parse_schema
from holdfast.entities.types import COLUMN_TYPES
from holdfast.errors import InvalidEntitySchema
from tests.entities.schema_texts import SHOP
from tests.tools import run as run_tool

ROOT = Path(__file__).parents[2]
EVERYTHING = Path(__file__).with_name("everything.schema.yaml")
STYLES: tuple[Style, ...] = get_args(Style)

PACKAGE = '''\
class Package(Model, schema="shop", table="Packages", primary=("packageId", "locale"), hashed=True):
    """What is on offer"""

    packageId: str = column(required=True, max_len=100)
    locale: str | None = column()
    name: str | None = column()
    rank: int = column(default=0)
    currency: Literal["usd", "nis"] | None = column()
    screenshots: list[str] | None = column("screens")  # keys of the screenshots
    lastModification: datetime = column("lmtime", default=now)
'''
CLASSIC = '''\
class Package(Model):
    """What is on offer"""

    _table = "Packages"
    _schema = "shop"

    packageId = Text("packageId", required=True, maxLen=100)
    locale = Text("locale")
    name = Text("name")
    rank = Int("rank", default=0)
    currency = Text("currency", choices=["usd", "nis"])
    # keys of the screenshots
    screenshots = List("screens", type=Text())
    lastModification = Timestamp("lmtime", default=Timestamp.now)
'''
GO = """\
const Schema_shop = "shop"

// Table_Packages is the name of the table in its schema.
const Table_Packages = "Packages"

// Package holds an entity of the table shop.Packages: What is on offer
type Package struct {
	_         struct{} `table:"Packages" schema:"shop"`
	Id        string   `db:",primary"`
	PackageId string   `db:"packageId,required" maxlen:"100"`
	Locale    *string  `db:"locale"`
	Name      *string  `db:"name"`
	Rank      int64    `db:"rank" default:"0"`
	Currency  *string  `db:"currency" choices:"[\\"usd\\", \\"nis\\"]"`
	// keys of the screenshots
	Screenshots      []string  `db:"screens" type:"Text"`
	LastModification time.Time `db:"lmtime" default:"$now"`

	holdfast *holdfastLoaded // what the client has loaded
}
"""
TYPESCRIPT = """\
/** What is on offer */
export interface Package {
  id: string;
  packageId: string;
  locale?: string | null;
  name?: string | null;
  rank: number;
  currency?: "usd" | "nis" | null;
  /** keys of the screenshots */
  screenshots?: string[] | null;
  lastModification: Date;
}

export const PackageModel = {
  schema: "shop",
  table: "Packages",
  primary: { type: "compound", columns: ["packageId", "locale"], hashed: true },
  indexes: [{ type: "compound", columns: ["name", "locale"], unique: false, sparse: false }],
  columns: {
    packageId: { name: "packageId", type: "Text", required: true, maxLen: 100 },
"""


def shop() -> list[Schema]:
    return [parse_schema(SHOP)]


def everything() -> list[Schema]:
    return load_schemas(EVERYTHING)


def run(*command: str | Path, cwd: Path = ROOT) -> str:
    """Returns what a tool says; a failure fails the test."""
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def imported(source: str, folder: Path, name: str) -> ModuleType:
    path = folder / f"{name}.py"
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("language", "style", "expected"),
    [
        ("py", "modern", PACKAGE),
        ("py", "classic", CLASSIC),
        ("go", "modern", GO),
        ("ts", "modern", TYPESCRIPT),
    ],
)
def test_the_example_of_the_manual_is_generated(
    language: Language, style: Style, expected: str
) -> None:
    assert expected in generate(shop(), language, Options(style=style))


def test_the_typed_style_shows_columns_to_type_checkers() -> None:
    source = generate(shop(), "py", Options(style="typed"))

    assert "    rank: Col[int] = column(default=0)\n" in source
    assert '    currency: Col[Literal["usd", "nis"] | None] = column()\n' in source


@pytest.mark.parametrize("language", ["py", "go", "ts"])
def test_the_output_is_the_same_in_every_run(language: Language) -> None:
    program = (
        "import sys; from holdfast.entities.codegen import generate;"
        "from holdfast.entities.schema_file import load_schemas;"
        f"sys.stdout.write(generate(load_schemas({str(EVERYTHING)!r}), {language!r}))"
    )

    assert run(sys.executable, "-c", program) == generate(everything(), language)


def test_python_output_is_formatted_and_passes_mypy(tmp_path: Path) -> None:
    for style in STYLES:
        for title, schemas in (("shop", shop()), ("everything", everything())):
            path = tmp_path / f"{title}_{style}.py"
            path.write_text(generate(schemas, "py", Options(style=style)))

    run("ruff", "format", "--check", "--config", ROOT / "pyproject.toml", tmp_path)
    run("ruff", "check", "--isolated", "--line-length=100", "--select", "F,I,UP,W", tmp_path)
    run(sys.executable, "-m", "mypy", "--strict", *sorted(tmp_path.iterdir()))


@pytest.mark.parametrize("style", ["modern", "typed"])
def test_generated_models_describe_the_schema_that_they_came_from(
    style: Style, tmp_path: Path
) -> None:
    source = generate(everything(), "py", Options(style=style))
    module = imported(source, tmp_path, f"all_{style}")
    models = [
        each
        for each in vars(module).values()
        if isinstance(each, type) and issubclass(each, Model) and each is not Model
    ]

    again = parse_schema(schema_yaml(*models))

    assert [plain(table) for table in again.tables] == [
        plain(table) for table in everything()[0].tables
    ]


def plain(table: Table) -> Table:
    """A table without what generated Python does not tell: comments and names of classes."""
    columns = tuple(
        msgspec.structs.replace(column, comment="", client_name="") for column in table.columns
    )
    return msgspec.structs.replace(table, comment="", class_name="", columns=columns)


def test_keywords_get_a_trailing_underscore() -> None:
    schema = parse_schema(
        "schema: s\ntables: {T: {columns: {class: {type: Text}, func: {type: Text}, "
        "new: {type: Text}, fine: {type: Text}}}}"
    )

    python, go, typescript = (generate([schema], language) for language in ("py", "go", "ts"))

    assert '    class_: str | None = column("class")\n' in python
    assert "    new: str | None = column()\n" in python
    assert '\tFunc  *string  `db:"func"`\n' in go
    assert "  class_?: string | null;\n  func?: string | null;\n  new_?: string" in typescript


def test_options_of_go_and_typescript() -> None:
    public = generate(shop(), "go", Options(package="shop", meduza_types=True))

    assert public.startswith("// Code generated by holdfast gen. DO NOT EDIT.\n\npackage shop\n")
    assert 'import "github.com/EverythingMe/meduza/schema"' in public
    assert "\tRank      schema.Int  `" in public
    assert "Holdfast" not in public
    assert "  rank: bigint;" in generate(shop(), "ts", Options(bigint=True))


texts = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=60)
names = st.from_regex(r"[A-Za-z][A-Za-z0-9_]{0,12}", fullmatch=True).filter(lambda n: n != "id")


@st.composite
def schemas(draw: st.DrawFn) -> Schema:
    columns = []
    for name in draw(st.lists(names, max_size=4, unique_by=str.lower)):
        type = draw(st.sampled_from(COLUMN_TYPES))
        defaults: dict[str, st.SearchStrategy[Any]] = {
            "Text": texts,
            "Binary": st.binary(max_size=30),
            "Float": st.floats(),
            "List": st.lists(texts, max_size=4),
            "Map": st.dictionaries(texts, st.integers(-9, 9), max_size=3),
        }
        default = draw(st.none() | defaults.get(type, st.none()))
        choices: tuple[str, ...] = ()
        if type == "Text" and default is None:
            choices = tuple(draw(st.lists(texts, max_size=4, unique=True)))
        columns.append(
            Column(
                name=name,
                type=type,
                comment=draw(texts),
                default=default,
                choices=choices,
                required=draw(st.booleans()),
            )
        )
    table = Table(schema="s", name="Things", comment=draw(texts), columns=tuple(columns))
    return Schema(name="s", tables=(table,))


@settings(
    max_examples=6,
    deadline=None,
    phases=[Phase.generate],  # to shrink an example is to run the formatter a hundred times
    suppress_health_check=list(HealthCheck),
)
@given(st.lists(schemas(), min_size=10, max_size=10))
def test_any_schema_gives_formatted_python_that_compiles(
    tmp_path: Path, made: list[Schema]
) -> None:
    for at, schema in enumerate(made):
        for style in STYLES:
            source = generate([schema], "py", Options(style=style))
            (tmp_path / f"{style}{at}.py").write_text(source)
            compile(source, "generated", "exec")

    run("ruff", "format", "--check", "--config", ROOT / "pyproject.toml", tmp_path)


PAYLOAD = '__import__("os").system("touch PWNED")'
LINE_ENDS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
BIDI = "\u202e\u2066\u2069\u200f"


@pytest.mark.parametrize(
    "text",
    [
        f'People"""" ; {PAYLOAD} #',
        f'People""" ; {PAYLOAD} #',
        f'\\""" ; {PAYLOAD} #',
        f"''' ; {PAYLOAD} #",
        f'"\n{PAYLOAD}',
        *(f"a{end}{PAYLOAD}" for end in LINE_ENDS),
        f"*/ {PAYLOAD} /*",
        f"`{PAYLOAD}`",
        "\\",
        "\\N{BULLET}{0}%s",
        f"{BIDI}\0\x1b\ufeff",
    ],
)
@pytest.mark.parametrize("style", STYLES)
def test_a_text_of_a_schema_stays_a_text_in_python(style: Style, text: str) -> None:
    column = Column(name="a", type="Text", comment=text, default=text, required=True)
    either = Column(name="b", type="Text", comment=text, choices=(text, "other"))
    table = Table(schema="s", name="T", comment=text, columns=(column, either))

    source = generate([Schema(name="s", tables=(table,))], "py", Options(style=style))

    module = ast.parse(source)
    values = [node.value for node in ast.walk(module) if isinstance(node, ast.Constant)]
    names = {node.id for node in ast.walk(module) if isinstance(node, ast.Name)}
    assert values.count(text) >= 2
    known = "Model column Col Literal str Text TB a b _table _schema"
    assert names <= set(known.split())
    assert not any(character in source for character in LINE_ENDS[1:] + BIDI + "\0\x1b\ufeff")


def test_python_that_is_not_what_the_schema_describes_is_not_emitted() -> None:
    source = generate(shop(), "py")
    names = NamingRules.of("py", "modern")

    for other in (
        source + "print()\n",
        source.replace("max_len=100", "max_len=(100)+0"),
        source.replace("from typing import Literal", "from typing import Literal, Any"),
        source.replace('"""What is on offer"""', '"""What is on""" " offer!"'),
        source + '"""',
    ):
        with pytest.raises(InvalidEntitySchema, match="not what the schema describes"):
            check_python(other, shop(), names, "modern")
    assert check_python(source, shop(), names, "modern") == source


@pytest.mark.parametrize(
    "schema",
    [
        Schema(name='s"""\nimport os'),
        Schema(name="s", tables=(Table(schema="s", name="T\n{}"),)),
        Schema(name="s", tables=(Table(schema="t", name="T"),)),
        Schema(name="s", tables=(Table(schema="s", name="T"), Table(schema="s", name="T"))),
        *(
            Schema(name="s", tables=(Table(schema="s", name="T", columns=(column,)),))
            for column in (
                Column(name="a b", type="Text"),
                Column(name="id", type="Text"),
                Column(name="a", type='Text"'),  # type: ignore[arg-type]  # on purpose
                Column(name="a", type="List", subtype="x"),  # type: ignore[arg-type]  # on purpose
                Column(name="a", type="Text", max_len="1"),  # type: ignore[arg-type]  # on purpose
                Column(name="a", type="Text", comment="\ud800"),
                Column(name="a", type="Text", choices=(1,)),
                Column(name="a", type="Map", default={"a": object()}),
                Column(name="a", type="Int", default=2**64),
                Column(name="a", type="Timestamp", default=datetime(2020, 1, 1)),
            )
        ),
    ],
)
def test_records_that_no_schema_file_could_give_are_refused(schema: Schema) -> None:
    for language in get_args(Language):
        with pytest.raises(InvalidEntitySchema):
            generate([schema], language)


def test_a_list_of_sets_has_a_default_in_go() -> None:
    column = Column(name="c", type="List", subtype="Set", default=[[False], [b"\x95"]])
    schema = Schema(name="s", tables=(Table(schema="s", name="T", columns=(column,)),))

    source = generate([schema], "go")

    sets = 'map[interface{}]struct{}{false: {}}, map[interface{}]struct{}{"\\x95": {}}'
    assert "[]map[interface{}]struct{}{" + sets + "}" in source


@pytest.mark.parametrize("package", ["", "a b", "func", "a\nimport os", "1", "../a"])
def test_a_go_package_has_a_name(package: str) -> None:
    with pytest.raises(InvalidEntitySchema, match="can't be the name of a Go package"):
        generate(shop(), "go", Options(package=package))


def test_comments_never_switch_off_the_checks_of_a_language() -> None:
    column = "{{type: Int, comment: '{0}'}}"
    text = "schema: s\ntables: {{T: {{comment: '{0}', columns: {{a: " + column + "}}}}}}"
    python = generate([parse_schema(text.format("type: ignore"))], "py")
    typescript = generate([parse_schema(text.format("@ts-nocheck"))], "ts")

    assert "  # 'type': ignore\n" in python
    assert "@ts-" not in typescript


@pytest.mark.parametrize("comment", ['"', '"\nß', 'say "hi"', '"a"', 'x\n"', '"""', '\\"'])
def test_quotes_at_the_ends_of_a_comment_do_not_run_into_those_of_the_docstring(
    tmp_path: Path, comment: str
) -> None:
    source = "class A:\n" + "\n".join(docstring(comment)) + "\n\n    x: int = 1\n"
    (tmp_path / "a.py").write_text(source)

    compile(source, "generated", "exec")
    run("ruff", "format", "--check", "--config", ROOT / "pyproject.toml", tmp_path)


def test_go_output_is_formatted_and_compiles(tmp_path: Path) -> None:
    for title, schemas in (("shop", shop()), ("everything", everything())):
        path = tmp_path / title / "model.go"
        path.parent.mkdir()
        path.write_text(generate(schemas, "go"))
        assert run_tool("gofmt", "-l", path) == ""
        run_tool("go", "vet", path)
    public = tmp_path / "public.go"
    public.write_text(generate(everything(), "go", Options(meduza_types=True)))
    assert run_tool("gofmt", "-l", public) == ""


def test_typescript_output_compiles(tmp_path: Path) -> None:
    for title, options in (("number", Options()), ("bigint", Options(bigint=True))):
        for name, schemas in (("shop", shop()), ("everything", everything())):
            (tmp_path / f"{name}_{title}.ts").write_text(generate(schemas, "ts", options))
    strict = ("--strict", "--noEmit", "--noUncheckedIndexedAccess", "--target", "es2020")
    run_tool("tsc", "--skipLibCheck", *strict, *sorted(tmp_path.iterdir()))


def test_the_constant_of_a_typescript_model_tells_everything(tmp_path: Path) -> None:
    source = generate(shop(), "ts")
    start = source.index("export const PackageModel = ") + len("export const PackageModel = ")
    constant = source[start : source.index(" as const;", start)]

    told = json.loads(run_tool("node", "-e", f"console.log(JSON.stringify({constant}))"))

    assert told["primary"] == {
        "type": "compound",
        "columns": ["packageId", "locale"],
        "hashed": True,
    }
    assert told["columns"]["lastModification"] == {
        "name": "lmtime",
        "type": "Timestamp",
        "required": False,
        "default": "$now",
    }
    assert told["columns"]["screenshots"]["subtype"] == "Text"
    assert told["columns"]["currency"]["choices"] == ["usd", "nis"]
