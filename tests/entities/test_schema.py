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
from tests.entities.schema_texts import SHOP, column, problems, table


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


def test_a_dump_fills_in_all_defaults() -> None:
    text = dump_schema(parse_schema(SHOP))

    assert "name: shop.Packages__name,locale_compound" in text
    assert "clientName: packageId" in text
    assert "required: false" in text
    assert "priority: 0" in text
