"""Hostile YAML is refused with line and column, in bounded time, in every layer that reads YAML."""

import time
from typing import Any

import pytest

from holdfast.entities.schema_file import parse_schema, read_schemas
from holdfast.errors import InvalidEntitySchema, InvalidEventSchema, InvalidTableSchema, TableError
from holdfast.events.schema import read_schema
from holdfast.limits import MAX_SCHEMA_BYTES, MAX_SCHEMA_PROBLEMS
from holdfast.store import Store
from holdfast.yaml_text import YamlProblem, load

CPU_SECONDS = 5.0  # of the largest text that is read at all


def bomb(levels: int, form: str) -> str:
    """A text whose every level names the one before it twice."""
    lines = ["a0: &a0 {k: v}"]
    lines += [f"a{n}: &a{n} " + form.format(f"*a{n - 1}") for n in range(1, levels)]
    return "\n".join(lines)


HOSTILE = {
    "merge bomb": bomb(24, "{{<<: [{0}, {0}]}}"),
    "merge bomb of ten": bomb(9, "{{<<: [" + ", ".join(["{0}"] * 10) + "]}}"),
    "alias bomb": bomb(40, "[{0}, {0}]"),
    "itself": "a: &a {b: *a}",
    "itself merged": "a: &a {<<: *a}",
    "itself as a key": "&a {*a : 1}",
    "unknown alias": "a: *nobody",
    "merge of a text": "a: {<<: text}",
    "merge of a list of texts": "a: {<<: [text]}",
    "twice": "a: 1\na: 2",
    "unknown tag": "a: !!python/object/apply:os.system [ls]",
    "own tag": "a: !mine 1",
    "not a bool": "a: !!bool maybe",
    "not a moment": "a: !!timestamp soon",
    "empty integer": "a: !!int ''",
    "empty float": "a: !!float ''",
    "not binary": "a: !!binary '%'",
    "bad date": "a: 2024-99-99",
    "bad time": "a: 2024-01-01T99:00:00Z",
    "base of 60": "a: 190:20:30",
    "base of 60, long": "a: " + ":".join(["1"] * 100_000),
    "digits": "a: " + "9" * 100_000,
    "digits of a fraction": "a: 1." + "9" * 100_000,
    "octal digits": "a: 0" + "7" * 100_000,
    "binary digits": "a: 0b" + "1" * 100_000,
    "deep list": "[" * 100_000,
    "deep mapping": "{a: " * 100_000,
    "deep block": "- " * 100_000,
    "deep keys": "? " * 100_000,
    "nul": "a: \0",
    "control": "a: \x07",
    "lone surrogate": '"\\ud800": 1',
    "not unicode": b"a: \xff",
    "utf-16": "a: 1".encode("utf-16"),
    "tab": "a:\n\tb: 1",
    "unclosed": 'a: "',
    "two documents": "a: 1\n---\nb: 2",
    "directive": "%YAML 9.9\n---\na: 1",
    "list as a key": "? [a]\n: 1",
    "mapping as a key": "? {a: 1}\n: 1",
    "blanks": "a:" + " " * (MAX_SCHEMA_BYTES - 10) + "b",
    "tabs": "a: b" + "\t" * (MAX_SCHEMA_BYTES - 10) + "c",
    "blank lines": " \n" * (MAX_SCHEMA_BYTES // 2),
    "many nodes": "[" + "1," * (MAX_SCHEMA_BYTES // 2 - 2) + "]",
    "many keys": "".join(f"k{n}: 1\n" for n in range(100_000)),
    "many repeats": "a: 1\n" * (MAX_SCHEMA_BYTES // 6),
    "many anchors": "".join(f"k{n}: &a{n} 1\n" for n in range(50_000)),
    "too long": "a" * (5 * MAX_SCHEMA_BYTES),
}


@pytest.fixture(params=HOSTILE)
def hostile(request: pytest.FixtureRequest) -> Any:
    return HOSTILE[request.param]


def test_a_hostile_text_is_no_schema_of_entities(hostile: str | bytes) -> None:
    begin = time.thread_time()

    with pytest.raises(InvalidEntitySchema) as caught:
        read_schemas([("a.yaml", hostile)]).checked()

    assert time.thread_time() - begin < CPU_SECONDS
    assert caught.value.problems[0].startswith("a.yaml:")
    assert sum(map(len, caught.value.problems)) < 500 * (MAX_SCHEMA_PROBLEMS + 1)


def test_a_hostile_text_is_no_schema_of_events(hostile: str | bytes) -> None:
    begin = time.thread_time()

    with pytest.raises(InvalidEventSchema):
        read_schema(hostile)

    assert time.thread_time() - begin < CPU_SECONDS


@pytest.mark.parametrize("hostile_text", [text for text in HOSTILE.values() if text[:2] == "a:"])
def test_a_hostile_value_inside_a_schema_is_a_problem_with_its_line(hostile_text: str) -> None:
    value = hostile_text.removeprefix("a:").strip("\n") or "''"
    anywhere = "schema: s\ntables:\n  T:\n    options: {{o: {0}}}\n    columns:\n"
    column = "      c{1}: {{type: {1}, default: {0}, options: {{choices: [{0}], max_len: {0}}}}}\n"
    types = ("Int", "Uint", "Float", "Text", "Bool", "Timestamp", "Binary", "Set", "List", "Map")
    text = anywhere.format(value) + "".join(column.format(value, type) for type in types)
    begin = time.thread_time()

    reading = read_schemas([("a.yaml", text)])

    assert time.thread_time() - begin < CPU_SECONDS
    assert all(problem.place.line >= 1 for problem in reading.problems)
    assert reading.errors


@pytest.mark.parametrize(
    ("column", "problem"),
    [
        (
            "{type: Timestamp, default: 2024-99-99}",
            "Default '2024-99-99', which is not a valid timestamp, does not fit the Timestamp",
        ),
        ("{type: Timestamp, default: 0001-01-01T00:00:00+05:00}", "outside the years 1 to 9999"),
        (
            "{type: Int, default: 12:30}",
            "Default '12:30', which is not a number, does not fit the Int column c",
        ),
        ("{type: Int, default: !!bool maybe}", "'maybe', which is not a valid bool,"),
        ("{type: Bool, default: !!bool maybe}", "'maybe', which is not a valid bool,"),
        ("{type: Uint, default: -1}", "Default -1, which needs more than 64 bits or has the wrong"),
        ("{type: Text, options: {max_len: " + "9" * 5_000 + "}}", "must be a whole number"),
    ],
)
def test_a_bad_value_of_a_schema_is_named_with_its_line(column: str, problem: str) -> None:
    with pytest.raises(InvalidEntitySchema) as caught:
        parse_schema(f"schema: s\ntables:\n  T:\n    columns:\n      c: {column}", file="a.yaml")

    assert caught.value.problems[0].startswith("a.yaml:5: ")
    assert problem in caught.value.problems[0]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("a: 1\nb: {<<: 5}", (2, 9)),
        ("a: 1\nb: 2\na: 3", (3, 1)),
        ("a:\n  - !x y", (2, 5)),
        ("a:\n  b: 2024-99-99", (2, 6)),
        ("a: [1,\n 2: 3: 4]", (2, 6)),
    ],
)
def test_a_problem_has_the_line_and_the_column_where_it_lies(
    text: str, place: tuple[int, int]
) -> None:
    with pytest.raises(YamlProblem) as caught:
        load(text)

    assert (caught.value.line, caught.value.column) == place


def test_what_is_merged_comes_behind_what_is_written_out() -> None:
    text = "base: &b {x: 1, y: 2}\nown: {<<: [*b, {y: 3, z: 4}], x: 9}"

    assert load(text)["own"] == {"x": 9, "y": 2, "z": 4}


NESTED: Any = []
for _ in range(500):
    NESTED = [NESTED]


@pytest.mark.parametrize(
    "change",
    [
        {"attributes": {"a": "int" * 50_000}},
        {"attributes": {"a": "set<" * 50_000}},
        {"attributes": {"a": "set<" * 50_000 + "int" + ">" * 50_000}},
        {"attributes": {"a": NESTED}},
        {"attributes": {"a" * 100_000: "string"}},
        {"attributes": {f"a{n}": "nothing" for n in range(50_000)}},
        {"index": [{"attribute": "key", "type": "hash"}] * 50_000},
        {"index": NESTED},
        {"options": {"default_time_to_live": 10**4000}},
        {"options": NESTED},
        {"secondaryIndexes": {"i" * 10_000: NESTED}},
        {"revisionRetentionPolicy": {"type": "latest", "count": 10**4000}},
        {"table": "\0" * 100_000},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_hostile_schema_of_a_table_is_refused_in_bounded_time(
    store: Store, change: dict[str, Any]
) -> None:
    schema = {
        "table": "t",
        "attributes": {"key": "string"},
        "index": [{"attribute": "key", "type": "hash"}],
    }
    begin = time.thread_time()

    with pytest.raises(TableError) as caught:
        store.tables.create({**schema, **change})

    assert time.thread_time() - begin < CPU_SECONDS
    assert isinstance(caught.value, InvalidTableSchema) or caught.value.status < 500
