"""Schema files with mistakes: each is named with its file and line, and all at once."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.entities.schema_dump import dump_schema
from holdfast.entities.schema_file import parse_schema, read_schemas
from holdfast.errors import InvalidEntitySchema
from holdfast.limits import MAX_SCHEMA_BYTES
from tests.entities.schema_texts import SHOP, problems, table


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
        (
            "schema: " + "s" * 256,
            "a.yaml:1: The name 'ssssssssssssssssssss...' of a schema has 256",
        ),
        ("schema: s\ntables:\n  1T:", "a.yaml:3: Invalid name '1T' for a table"),
        ("schema: s\ntables:\n  " + "T" * 256 + ":", "a.yaml:3: The name 'TTTTTTTTTTTTTTTTTTTT..."),
        (table("c" * 256 + ": {type: Int}"), "a.yaml:4: The name 'cccccccccccccccccccc...' of a"),
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


@pytest.mark.parametrize("text", ["- " * 500_000, "[" * 500_000, "? " * 250_000])
def test_a_text_that_nests_without_end_is_refused(text: str) -> None:
    assert problems(text) == ["a.yaml:1: The schema nests deeper than 110 levels"]


def test_a_text_that_unfolds_without_end_is_refused() -> None:
    bomb = "schema: s\nx:\n- &a0 [x]\n"
    bomb += "".join(f"- &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 12))

    [unfolded] = problems(bomb)
    [itself] = problems(table("x: &x {type: Map, default: *x}"))

    assert "The schema expands to" in unfolded
    assert itself == "a.yaml:4: The schema contains itself, by an alias in its own anchor"


def test_a_text_beyond_one_mebibyte_is_refused() -> None:
    [problem] = problems("#" * (MAX_SCHEMA_BYTES + 1))

    assert problem == "a.yaml:1: The schema is 1048577 bytes, at most 1048576 are read"


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


@pytest.mark.parametrize(
    "keys", ["indexes: [{type: compound, columns: [%s]}]", "primary: {columns: [%s]}"]
)
def test_an_index_or_a_primary_key_has_at_most_64_columns(keys: str) -> None:
    columns = ", ".join(f"c{number}: {{type: Int}}" for number in range(65))
    named = [f"c{number}" for number in range(65)]

    def text(count: int) -> str:
        own = keys % ", ".join(named[:count])
        return f"schema: s\ntables: {{T: {{columns: {{{columns}}}, {own}}}}}"

    parse_schema(text(64))
    with pytest.raises(InvalidEntitySchema, match="has 65 columns, at most 64 are allowed"):
        parse_schema(text(65))


def test_a_table_has_at_most_a_hundred_indexes() -> None:
    columns = ", ".join(f"c{number}: {{type: Int}}" for number in range(102))
    indexes = ", ".join(f"{{type: simple, columns: [c{number}]}}" for number in range(102))

    assert problems(table(columns, f", indexes: [{indexes}]")) == [
        "a.yaml:5: Table T has more than 100 indexes"
    ]
