"""Schemas that may be deployed, and every problem of those that may not."""

import time
from typing import Any

import pytest

from holdfast.errors import InvalidEventSchema
from holdfast.events.schema import read_schema
from holdfast.store import Store


def problems(schema: Any) -> list[str]:
    with pytest.raises(InvalidEventSchema) as raised:
        read_schema(schema)
    return raised.value.problems


def handler(**fields: Any) -> dict[str, Any]:
    return {"targets": ["['a']"], "add": "v"} | fields


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ({"targets": []}, "p[0].targets: expected a list of at least one expression"),
        ({"targets": "['a']"}, "p[0].targets: expected a list"),
        ({"targets": ["['a']", "[user  "]}, "p[0].targets[1]: expected ']' at column 8"),
        ({"targets": [7]}, "p[0].targets[0]: expected an expression, a string, not 7"),
        ({"targets": ["[@dayly]"]}, "p[0].targets[0]: unknown built-in '@dayly'"),
        ({"add": "9"}, "p[0].add: expected a term or '[' at column 1"),
        ({"add": None}, "p[0].add: expected an expression, a string, not null"),
        ({"remove": "v"}, "p[0]: expected exactly one operation"),
        ({"ad": "v"}, "p[0]: unknown field 'ad', did you mean 'add'?"),
        ({"max_stored_values": -1}, "p[0].max_stored_values: expected an integer"),
        ({"max_stored_values": 1.5}, "p[0].max_stored_values: expected an integer"),
        ({"max_stored_values": True}, "p[0].max_stored_values: expected an integer"),
        ({"max_stored_values": None}, "p[0].max_stored_values: expected an integer"),
        ({"store_gross_counters": 1}, "p[0].store_gross_counters: expected true or false, not 1"),
        ({"store_distinct_counters": "no"}, "p[0].store_distinct_counters: expected true"),
        ({"expire_after": "soon"}, "p[0].expire_after: expected a duration"),
        ({"expire_after": 0}, "p[0].expire_after: expected a duration"),
        ({"expire_after": True}, "p[0].expire_after: expected a duration"),
        ({"expire_after": "9 years"}, "p[0].expire_after: expected a duration"),
    ],
)
def test_a_bad_handler_is_refused_with_the_place_of_its_problem(
    fields: dict[str, Any], place: str
) -> None:
    [problem] = problems({"p": [handler(**fields)]})

    assert problem.startswith(place)


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ([], "the schema is a list, expected an object"),
        (7, "the schema is 7, expected an object"),
        ({"p": {}}, "p: expected a list of handlers, not an object"),
        ({"p": ["x"]}, "p[0]: expected a handler, an object, not 'x'"),
        ({"p": [{"targets": ["['a']"]}]}, "p[0]: expected exactly one operation"),
        ({"p": [{"add": "v"}]}, "p[0].targets: expected a list"),
        ({"a::b": []}, "a::b: an event prefix has no empty segment"),
        ({":a": []}, ":a: an event prefix has no empty segment"),
        ({":": []}, ":: an event prefix has no empty segment"),
        ({"a::": []}, "a::: an event prefix has no empty segment"),
        ({7: []}, "7: expected a string as event prefix"),
        ({"a" * 600: []}, f"{'a' * 600}: longer than the 512 bytes"),
        ({":".join("a" * 33): []}, f"{':'.join('a' * 33)}: 33 segments"),
        ("{", "the text is neither JSON"),
        ("- a", "the schema is a list, expected an object"),
    ],
)
def test_a_bad_schema_is_refused(schema: Any, problem: str) -> None:
    [found] = problems(schema)

    assert found.startswith(problem)


@pytest.mark.parametrize(
    ("job", "problem"),
    [
        ("digest", "p[0].enqueue: expected an object, not 'digest'"),
        ({"klass": "K"}, "p[0].enqueue.queue: expected a name"),
        ({"queue": "q", "klass": 1}, "p[0].enqueue.klass: expected a name"),
        ({"queue": "q", "klass": "K", "data": []}, "p[0].enqueue.data: expected an object"),
        ({"queue": "q", "klass": "K", "data": {"a": "9"}}, "p[0].enqueue.data.a: expected a term"),
        ({"queue": "q", "klass": "K", "dat": {}}, "p[0].enqueue: unknown field 'dat', did you"),
    ],
)
def test_a_bad_job_is_refused(job: Any, problem: str) -> None:
    [found] = problems({"p": [{"enqueue": job}]})

    assert found.startswith(problem)


def test_every_problem_is_reported_at_once_with_its_place() -> None:
    schema = {
        "client:gravity:action": [
            {"targets": ["['a']", "['unique'"], "add": "9", "max_stored_values": "x"},
            {"targets": ["[@never]"], "count_frequency": "v", "store_gross_counters": None},
        ],
        "a::b": [{"targets": [], "remove": "v", "expire_after": "x", "colour": "red"}],
    }

    found = problems(schema)

    places = [
        "client:gravity:action[0].targets[1]: expected ']' at column 10",
        "client:gravity:action[0].max_stored_values: ",
        "client:gravity:action[0].add: ",
        "client:gravity:action[1].targets[0]: unknown built-in '@never'",
        "client:gravity:action[1].store_gross_counters: ",
        "a::b: ",
        "a::b[0]: unknown field 'colour'",
        "a::b[0].targets: ",
        "a::b[0].expire_after: ",
    ]
    assert len(found) == len(places)
    assert all(problem.startswith(place) for problem, place in zip(found, places, strict=True))


@pytest.mark.parametrize(
    ("given", "milliseconds"),
    [(90, 90_000), (0.5, 500), ("90d", 7_776_000_000), ("36h", 129_600_000), ("1.5m", 90_000)],
)
def test_a_duration_is_seconds_or_text(given: Any, milliseconds: int) -> None:
    _, [found] = read_schema({"p": [handler(expire_after=given)]})

    assert found.options.expire_after_ms == milliseconds


def test_a_schema_comes_as_an_object_as_json_or_as_yaml() -> None:
    plain = {"p": [{"targets": ["['a']"], "add": "v"}]}
    json = '{"p": [{"targets": ["[\'a\']"], "add": "v"}]}'
    yaml = """
        p:
          - targets: ["['a']"]
            add: v
    """

    assert read_schema(plain) == read_schema(json) == read_schema(json.encode())
    assert read_schema(plain) == read_schema(yaml)


def test_a_leaderboard_has_a_hundred_entries_and_a_set_no_bound_unless_told() -> None:
    _, [add, count] = read_schema(
        {"p": [handler(), {"targets": ["['b']"], "count_frequency": "v"}]}
    )

    assert (add.options.bound, count.options.bound) == (None, 100)


def test_a_job_needs_no_targets() -> None:
    _, [found] = read_schema({"p": [{"enqueue": {"queue": "q", "klass": "K"}}]})

    assert (found.options.operation, found.targets) == ("enqueue", ())


@pytest.mark.parametrize(
    "schema",
    ["\ud800", {"\ud800": []}, {"e": [{"targets": ["['\ud800']"], "add": "x"}]}, "[" * 100_000],
)
def test_text_that_can_not_be_stored_is_refused(store: Store, schema: Any) -> None:
    with pytest.raises(InvalidEventSchema):
        store.events.deploy(schema)


def test_many_unknown_fields_are_refused_in_a_moment() -> None:
    fields = {f"targts{number}": 1 for number in range(50_000)}
    begin = time.thread_time()

    found = problems({"p": [fields]})
    several = problems({"p": [{"targts": number} for number in range(50_000)]})

    assert time.thread_time() - begin < 5  # with the nearest name for each, some minutes
    assert found[0] == "p[0]: unknown field 'targts0', did you mean 'targets'?"
    assert several[-1].startswith("p[49999]")
