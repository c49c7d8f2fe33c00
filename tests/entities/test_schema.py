"""Schema files: what they may say, and how each problem is named."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.entities.schema import Column, ColumnAdmin, Index, Primary, Schema, Table, TableAdmin
from holdfast.entities.schema_dump import dump_schema
from holdfast.entities.schema_file import load_schemas, parse_schema, read_schemas
from holdfast.entities.types import COLUMN_TYPES
from holdfast.errors import InvalidEntitySchema
from holdfast.limits import MAX_SCHEMA_BYTES

SHOP = """\
schema: shop                    # required
tables:
  Packages:                     # name in the database
    comment: What is on offer
    class: Package              # name of the generated class; default: the table name
    engines: [redis]            # accepted and ignored
    strict: false               # 13.4
    primary:
      type: compound            # compound | random; default random
      columns: [packageId, locale]
      options: {hashed: true}
    columns:
      packageId:
        type: Text
        options: {required: true, max_len: 100}
      locale: {type: Text}
      name: {type: Text}
      rank: {type: Int, default: 0}
      currency:
        type: Text
        options: {choices: [usd, nis]}
      screens:
        comment: keys of the screenshots
        clientName: screenshots # attribute name in generated code; default: the column name
        type: List
        options: {subtype: Text}
      lmtime: {type: Timestamp, clientName: lastModification, default: $now}
    indexes:
      - {type: compound, columns: [name, locale]}
"""


def table(columns: str, rest: str = "") -> str:
    """A schema file with one table; the columns begin in line 4."""
    lines = "".join(f"      {line}\n" for line in columns.splitlines())
    return f"schema: s\ntables:\n  T: {{columns: {{\n{lines}    }}{rest}}}\n"


def problems(*contents: str | bytes) -> list[str]:
    files = [(f"{name}.yaml", content) for name, content in zip("abc", contents, strict=False)]
    return [str(problem) for problem in read_schemas(files).problems]


def column(text: str) -> Column:
    return parse_schema(table(f"x: {text}")).tables[0].columns[0]


def test_the_example_of_the_manual_is_read_in_full() -> None:
    schema = parse_schema(SHOP)

    assert schema == Schema(
        name="shop",
        tables=(
            Table(
                schema="shop",
                name="Packages",
                comment="What is on offer",
                class_name="Package",
                engines=("redis",),
                primary=Primary(type="compound", columns=("packageId", "locale"), hashed=True),
                columns=(
                    Column(name="packageId", type="Text", required=True, max_len=100),
                    Column(name="locale", type="Text"),
                    Column(name="name", type="Text"),
                    Column(name="rank", type="Int", default=0),
                    Column(name="currency", type="Text", choices=("usd", "nis")),
                    Column(
                        name="screens",
                        type="List",
                        client_name="screenshots",
                        comment="keys of the screenshots",
                        subtype="Text",
                    ),
                    Column(
                        name="lmtime",
                        type="Timestamp",
                        client_name="lastModification",
                        default="$now",
                    ),
                ),
                indexes=(Index(columns=("name", "locale")),),
            ),
        ),
    )
    assert not problems(SHOP)


def test_the_class_and_the_attributes_default_to_the_names_in_the_file() -> None:
    packages = parse_schema(SHOP).tables[0]

    assert (packages.full_name, packages.model) == ("shop.Packages", "Package")
    assert [column.attribute for column in packages.columns] == [
        *("packageId", "locale", "name", "rank", "currency", "screenshots", "lastModification")
    ]


def test_an_index_is_known_by_table_columns_and_type() -> None:
    users = parse_schema(
        "schema: mock\ntables:\n  users:\n    columns: {name: {type: Text}}\n"
        "    indexes: [{type: simple, columns: [name]}]"
    ).tables[0]

    assert users.index_name(users.indexes[0]) == "mock.users__name_simple"


def test_tabs_and_blanks_at_line_ends_are_white_space() -> None:
    text = "schema: s\t\ntables:\t \n  T:\n    comment:\n      two words \t\n    columns:\t\n"

    assert parse_schema(text).tables[0].comment == "two words"
    assert parse_schema(text.replace("\n", "\r\n")).tables[0].comment == "two words"


def test_a_file_in_the_loose_layout_of_public_schemas_is_read() -> None:
    text = """
# Schema file
schema: market
tables:
    Apps:
        adminOptions:
            listColumns:
                - packageId
                - name
        table:
            apps
        engines: \n            - redis
            \n        primary:
            type: random
            columns: [packageId]            \n        options:
            lru_size: 10000
            fallback_engine: mysql
        columns:    \n            packageId:
                type: Text
                options: \n                     required: true
                     must_match: \\b[A-Z0-9._%+-]+@[A-Z]{2,4}\\b
                     not_null: true
                adminOptions:
                    priority: 6
                    hidden: yes

            name:
                comment: "the name"
                type: Text
            score:
                type: Float
                default: 0
            seen:
                type: Timestamp
                default: current_timestamp
        indexes:
            #-   type: geo
            #    columns: [lat,lon]\t\t\t
            -   type: compound
                columns: [name]

    Bare:
"""
    reading = read_schemas([("market.schema.yaml", text)])

    [schema] = reading.checked()
    apps, bare = schema.tables
    assert apps.primary == Primary()
    assert apps.options == {"lru_size": 10000, "fallback_engine": "mysql"}
    assert apps.admin == TableAdmin(list_columns=("packageId", "name"))
    assert apps.columns[0].admin == ColumnAdmin(priority=6, hidden=True)
    assert apps.columns[0].not_null
    assert apps.columns[0].must_match == r"\b[A-Z0-9._%+-]+@[A-Z]{2,4}\b"
    assert [c.default for c in apps.columns] == [None, None, 0.0, "$now"]
    assert bare == Table(schema="market", name="Bare")
    assert [str(warning) for warning in reading.warnings] == [
        "market.schema.yaml:10: warning: 'table' means nothing in table Apps and is ignored"
    ]


@pytest.mark.parametrize("word", ["no", "on", "null", "1e3", "~", "0x10", "2020-01-01", "$now"])
def test_texts_are_kept_as_written_whatever_they_look_like_to_yaml(word: str) -> None:
    read = column(f"{{type: Text, default: {word}, options: {{choices: [{word}, other]}}}}")

    assert (read.default, read.choices) == (word, (word, "other"))


def test_names_are_kept_as_written_whatever_they_look_like_to_yaml() -> None:
    schema = parse_schema(
        "schema: no\ntables: {on: {columns: {null: {type: Int}, y: {type: Int}}}}"
    )

    assert (schema.name, schema.tables[0].name) == ("no", "on")
    assert [column.name for column in schema.tables[0].columns] == ["null", "y"]


@pytest.mark.parametrize(
    ("body", "default"),
    [
        ("{type: Int, default: -5}", -5),
        ("{type: Int, default: 0x10}", 16),
        ("{type: Uint, default: 18446744073709551615}", 2**64 - 1),
        ("{type: Float, default: 3}", 3.0),
        ("{type: Float, default: 1e3}", 1000.0),
        ("{type: Float, default: .inf}", float("inf")),
        ("{type: Bool, default: true}", True),
        ("{type: Text, default: }", None),
        ("{type: Int, default: }", None),
        ("{type: Text, default: ''}", ""),
        ("{type: Timestamp, default: $now}", "$now"),
        ("{type: Timestamp, default: current_timestamp}", "$now"),
        ("{type: Timestamp, default: 2020-01-02}", datetime(2020, 1, 2, tzinfo=UTC)),
        (
            "{type: Timestamp, default: '2020-01-02T03:04:05.678+01:00'}",
            datetime(2020, 1, 2, 2, 4, 5, 678000, tzinfo=UTC),
        ),
        ("{type: Binary, default: abc}", b"abc"),
        ("{type: Binary, default: !!binary AP8=}", b"\x00\xff"),
        ("{type: Set, default: [1, 2, 1]}", [1, 2]),
        ("{type: List, default: []}", []),
        ("{type: List, default: [1, no, [a]], }", [1, False, ["a"]]),
        ("{type: List, default: [1, no], options: {subtype: Text}}", ["1", "no"]),
        ("{type: Map, default: {no: 1}}", {"no": 1}),
        ("{type: Map, default: {a: 1}, options: {subtype: Float}}", {"a": 1.0}),
    ],
)
def test_a_default_is_read_as_its_column_type(body: str, default: Any) -> None:
    read = column(body).default

    assert read == default
    assert type(read) is type(default)


@pytest.mark.parametrize(
    "body",
    [
        "{type: Int, default: five}",
        "{type: Int, default: 1.5}",
        "{type: Int, default: '5'}",
        "{type: Int, default: true}",
        "{type: Int, default: 9223372036854775808}",
        "{type: Uint, default: -1}",
        "{type: Float, default: x}",
        "{type: Float, default: '1e3'}",
        "{type: Bool, default: 1}",
        "{type: Timestamp, default: tomorrow}",
        "{type: Timestamp, default: 5}",
        "{type: Int, default: $now}",
        "{type: Text, default: [a]}",
        "{type: Set, default: {a: 1}}",
        "{type: Set, default: [[1]]}",
        "{type: List, default: a}",
        "{type: List, default: [a], options: {subtype: Int}}",
        "{type: Map, default: [a]}",
        "{type: Text, default: c, options: {choices: [a, b]}}",
        "{type: Int, default: 3, options: {choices: [1, 2]}}",
        "{type: Set, default: [a, c], options: {subtype: Text, choices: [a, b]}}",
    ],
)
def test_a_default_that_does_not_fit_its_column_is_refused(body: str) -> None:
    [problem] = problems(table(f"x: {body}"))

    assert problem.startswith("a.yaml:4: Default ")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "a.yaml:1: Schema has no name! The file is empty"),
        ("tables: {}", "a.yaml:1: Schema has no name! Write `schema: NAME` at the top"),
        ("schema:", "a.yaml:1: Schema has no name! Write `schema: NAME` at the top"),
        ("- a", "a.yaml:1: A schema must be a mapping, not a list"),
        ("just text", "a.yaml:1: A schema must be a mapping, not 'just text'"),
        (
            "schema: s\n--- \nschema: t",
            "a.yaml:2: The schema is not YAML: but found another document",
        ),
        ("schema: 'a\n", "a.yaml:2: The schema is not YAML: found unexpected end of stream"),
        ("schema: a\n  tables: [", "a.yaml:2: The schema is not YAML: "),
        (b"schema: \xff", "a.yaml:1: The schema is not UTF-8 text: invalid start byte at 8"),
        ("schema: \ud800", "a.yaml:1: The schema is not UTF-8 text: surrogates not allowed at 8"),
        ("schema: s\ntables: [T]", "a.yaml:2: 'tables' must be a mapping, not a list"),
        ("schema: a-b", "a.yaml:1: Invalid name 'a-b' for a schema: it must begin with a letter"),
        ("schema: s\ntables:\n  1T:", "a.yaml:3: Invalid name '1T' for a table"),
        ("schema: s\ntables:\n  T:\n  T:", "a.yaml:4: 'tables' has 'T' twice, first in line 3"),
        (table("_x: {type: Int}"), "a.yaml:4: Invalid name '_x' for a column"),
        (table("id: {type: Int}"), "a.yaml:4: A column of table T is called 'id'"),
        (
            table("x: {type: text}"),
            "a.yaml:4: Invalid type in schema: 'text' for column x, did you mean 'Text'?",
        ),
        (table("x:"), "a.yaml:4: Invalid type in schema: '' for column x"),
        (table("x: Text"), "a.yaml:4: column x must be a mapping, not 'Text'"),
        (
            table("x: {type: Set, options: {subtype: List}}"),
            "a.yaml:4: The elements of the Set column x can't be of type List",
        ),
        (
            table("x: {type: List, options: {subtype: String}}"),
            "a.yaml:4: Invalid type in schema: 'String' for column x",
        ),
        (
            table("x: {type: Int, options: {required: maybe}}"),
            "a.yaml:4: 'required' of column x must be true or false, not 'maybe'",
        ),
        (
            table("x: {type: Text, options: {max_len: long}}"),
            "a.yaml:4: 'max_len' of column x must be a whole number, not 'long'",
        ),
        (
            table("x: {type: Int, options: {choices: [a]}}"),
            "a.yaml:4: Choice 'a' does not fit the Int column x",
        ),
        (
            table("x: {type: Text, options: {must_match: '['}}", ", strict: true"),
            "a.yaml:4: 'must_match' of column x is not a regular expression",
        ),
        (
            table("name: {type: Int}", ", primary: {type: compound, columns: [nam]}"),
            "a.yaml:5: Table T does not contain column nam required for index T primary, "
            "did you mean 'name'?",
        ),
        (
            table("x: {type: Int}", ", indexes: [{type: simple, columns: [y]}]"),
            "a.yaml:5: Table T does not contain column y required for index s.T__y_simple",
        ),
        (
            table("x: {type: Int}", ", indexes: [{type: geo, columns: [x]}]"),
            "a.yaml:5: Index type 'geo' is not allowed",
        ),
        (
            table("x: {type: Int}", ", indexes: [{columns: [x]}]"),
            "a.yaml:5: Index type '' is not allowed",
        ),
        (
            table("x: {type: Int}", ", primary: {type: sorted, columns: [x]}"),
            "a.yaml:5: Index type 'sorted' is not allowed for the primary of table T",
        ),
        (
            table("x: {type: Int}", ", primary: {type: compound}"),
            "a.yaml:5: Index T primary has no columns",
        ),
        (
            table("x: {type: Int}", ", indexes: [{type: compound, columns: [x, x]}]"),
            "a.yaml:5: Index s.T__x,x_compound has the column x twice",
        ),
        (
            table("x: {type: Set}", ", indexes: [{type: simple, columns: [x]}]"),
            "a.yaml:5: Index s.T__x_simple can't use x, which is a Set",
        ),
        (
            table("x: {type: Map}", ", primary: {columns: [x]}"),
            "a.yaml:5: Index T primary can't use x, which is a Map",
        ),
        (
            table(
                "x: {type: Int}\ny: {type: Int}".replace("\n", ",\n"),
                ", indexes: [{type: simple, columns: [x, y]}]",
            ),
            "a.yaml:6: The simple index s.T__x,y_simple has 2 columns",
        ),
        (
            table(
                "x: {type: Int}",
                ", indexes: [{type: simple, columns: [x]}, {type: compound, columns: [x]}]",
            ),
            "a.yaml:5: Two indexes of table T have the same columns: x",
        ),
    ],
)
def test_each_mistake_is_refused_with_its_file_and_line(text: str | bytes, expected: str) -> None:
    [problem] = problems(text)

    assert problem.startswith(expected)


def test_every_problem_of_every_file_is_reported_at_once() -> None:
    first = "schema: s\ntables:\n  A:\n    columns:\n      x: {type: Txt}\n      y: {type: In}\n"
    second = "schema: s\ntables:\n  A: {}\n  B: {colums: {}}\n"

    with pytest.raises(InvalidEntitySchema) as caught:
        read_schemas([("a.yaml", first), ("b.yaml", second)]).checked()

    assert caught.value.problems == (
        "a.yaml:5: Invalid type in schema: 'Txt' for column x, did you mean 'Text'?",
        "a.yaml:6: Invalid type in schema: 'In' for column y, did you mean 'Int'?",
        "b.yaml:3: Table A is already described in a.yaml:3",
    )
    assert str(caught.value) == "\n".join(caught.value.problems)
    assert problems(first, second)[-1] == (
        "b.yaml:4: warning: 'colums' means nothing in table B, did you mean 'columns'?"
    )


def test_a_schema_may_be_spread_over_several_files(tmp_path: Path) -> None:
    (tmp_path / "a.schema.yaml").write_text("schema: s\ntables: {A: }")
    (tmp_path / "b.schema.yaml").write_text("schema: s\ntables: {B: }")
    (tmp_path / "c.schema.yaml").write_text("schema: other\ntables: {A: }")

    schemas = load_schemas(*sorted(tmp_path.iterdir()))

    names = [[table.full_name for table in schema.tables] for schema in schemas]
    assert names == [["s.A", "s.B"], ["other.A"]]


def test_a_primary_without_a_type_is_compound_if_it_has_columns() -> None:
    compound = parse_schema(table("x: {type: Int}", ", primary: {columns: [x]}")).tables[0]
    random = parse_schema(table("x: {type: Int}", ", primary: {}")).tables[0]
    ignored = parse_schema(table("x: {type: Int}", ", primary: {type: random, columns: [zz]}"))

    assert compound.primary == Primary(type="compound", columns=("x",))
    assert random.primary == ignored.tables[0].primary == Primary()


def test_names_of_one_letter_uint_and_missing_engines_are_accepted() -> None:
    assert not problems("schema: s\ntables: {T: {columns: {x: {type: Uint}}}}")


def test_index_options_are_read() -> None:
    index = (
        parse_schema(
            table(
                "x: {type: Int}",
                ", indexes: [{type: simple, columns: [x], options: {unique: true, sparse: true}}]",
            )
        )
        .tables[0]
        .indexes[0]
    )

    assert (index.unique, index.sparse) == (True, True)


def test_anchors_and_merges_save_typing() -> None:
    text = table("a: &t {type: Text, comment: one},\nb: {<<: *t, comment: two},\nc: *t")

    a, b, c = parse_schema(text).tables[0].columns

    assert (a.comment, b.comment, c.comment) == ("one", "two", "one")
    assert {a.type, b.type, c.type} == {"Text"}


@pytest.mark.parametrize("text", ["- " * 500_000, "[" * 500_000, "? " * 250_000])
def test_a_text_that_nests_without_end_is_refused(text: str) -> None:
    assert problems(text) == ["a.yaml:1: The schema nests deeper than 110 levels"]


def test_a_text_that_unfolds_without_end_is_refused() -> None:
    bomb = "schema: s\nx:\n- &a0 [x]\n"
    bomb += "".join(f"- &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 12))

    [unfolded] = problems(bomb)
    [itself] = problems(table("x: &x {type: Map, default: *x}"))

    assert "The schema unfolds to" in unfolded
    assert itself == "a.yaml:4: The schema contains itself, by an alias in its own anchor"


def test_a_text_beyond_one_mebibyte_is_refused() -> None:
    [problem] = problems("#" * (MAX_SCHEMA_BYTES + 1))

    assert problem == "a.yaml:1: The schema is 1048577 bytes, at most 1048576 are read"


names = st.from_regex(r"[A-Za-z][A-Za-z0-9_]{0,8}", fullmatch=True).filter(lambda n: n != "id")
words = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), max_size=12)
defaults = {
    "Int": st.integers(-(2**63), 2**63 - 1),
    "Text": st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), min_size=1).filter(
        str.isprintable
    ),
    "Float": st.floats(allow_nan=False),
    "Bool": st.booleans(),
    "Binary": st.binary(),
    "Timestamp": st.just("$now"),
    "List": st.lists(st.integers(-5, 5)),
}


@st.composite
def columns(draw: st.DrawFn) -> Column:
    type = draw(st.sampled_from(COLUMN_TYPES))
    default = draw(st.none() | defaults.get(type, st.none()))
    name, client_name = draw(names), draw(st.just("") | names)
    return Column(
        name=name,
        type=type,
        client_name="" if client_name == name else client_name,
        comment=draw(words).strip(),
        default=default,
        required=draw(st.booleans()),
        max_len=draw(st.none() | st.integers(1, 9)),
        subtype="Int" if type == "List" else None,
    )


@st.composite
def schemas(draw: st.DrawFn) -> Schema:
    name = draw(names)
    tables = []
    for own in draw(st.lists(names, max_size=3, unique=True)):
        has = draw(st.lists(columns(), max_size=4, unique_by=lambda column: column.name))
        plain = [column.name for column in has if column.type not in ("Set", "List", "Map")]
        indexes = (Index(columns=tuple(plain), unique=draw(st.booleans())),) if plain else ()
        tables.append(
            Table(
                schema=name,
                name=own,
                columns=tuple(has),
                indexes=indexes,
                strict=draw(st.booleans()),
                primary=Primary(type="compound", columns=tuple(plain[:1])) if plain else Primary(),
            )
        )
    return Schema(name=name, tables=tuple(tables))


@settings(max_examples=60, deadline=None)
@given(schema=schemas(), filled=st.booleans())
def test_a_dumped_schema_reads_back_the_same(schema: Schema, filled: bool) -> None:
    assert parse_schema(dump_schema(schema, filled=filled)) == schema


@st.composite
def damaged_files(draw: st.DrawFn) -> str | bytes:
    """The example with pieces cut out, repeated or replaced by what YAML finds interesting."""
    text = SHOP
    odd = ["null", "[]", "{}", "- x", "!!binary x", "&a [*a]", "<<: 1", "\t", "\0", "%", "? ", "5"]
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = draw(st.integers(start, min(len(text), start + 40)))
        text = text[:start] + draw(st.sampled_from(odd) | st.text(max_size=5)) + text[end:]
    return text if draw(st.booleans()) else text.encode("utf-8", "surrogatepass")


@settings(max_examples=150, deadline=None)
@given(content=damaged_files() | st.binary() | st.text())
def test_no_file_can_do_worse_than_be_refused(content: str | bytes) -> None:
    reading = read_schemas([("a.yaml", content)])

    assert reading.errors or dump_schema(reading.schemas[0])


def test_a_dump_fills_in_all_defaults() -> None:
    text = dump_schema(parse_schema(SHOP))

    assert "name: shop.Packages__name,locale_compound" in text
    assert "clientName: packageId" in text
    assert "required: false" in text
    assert "priority: 0" in text
