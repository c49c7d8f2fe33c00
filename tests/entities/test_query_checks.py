"""Queries that make no sense are refused with Meduza's words."""

from collections.abc import Callable
from typing import Any

import pytest

from holdfast.entities import StoreEntities
from holdfast.entities.messages import Change, Filter
from holdfast.errors import (
    BadChange,
    BadFilter,
    BadPaging,
    BadQuery,
    HoldfastError,
    InvalidEntitySchema,
    InvalidTable,
    NoIndex,
)

BY_AGE = [Filter("age", "=", [1])]


@pytest.mark.parametrize(
    ("filter", "words"),
    [
        (Filter("", "=", [1]), "No property given for filter"),
        (Filter("age", "=", []), "No values given for filter"),
        (Filter("age", "IN", []), "No values given for filter"),
        (Filter("age", ">", []), "No values given for filter"),
        (Filter("age", "=", [1, 2]), "Too many values for equality filter"),
        (Filter("age", "<", [1, 2]), "Too many values"),
        (Filter("age", "><", [1]), "BETWEEN filters must have exactly 2 values, 1 given"),
        (Filter("age", "ALL"), "ALL is allowed only on primary keys"),
        (Filter("age", "~", [1]), "Unsupported operator: '~'"),
        (Filter("age", "=", [[1]]), "container"),
        (Filter("age", "=", [{"a": 1}]), "container"),
        (Filter("age", "=", [{1}]), "container"),
        (Filter("age", "=", [2**64]), "64 bits"),
        (Filter("city", "=", ["\ud800"]), "compared"),
        (Filter("city", "=", [object()]), "compared"),
    ],
)
def test_a_filter_that_makes_no_sense_is_refused(
    entities: StoreEntities, filter: Filter, words: str
) -> None:
    calls: list[Callable[[], object]] = [
        lambda: entities.select_raw("test.Users", [filter]),
        lambda: entities.update_raw("test.Users", [filter], [Change("SET", "a", 1)]),
        lambda: entities.delete_raw("test.Users", [filter]),
    ]
    for call in calls:
        with pytest.raises(BadFilter, match=words) as caught:
            call()
        assert caught.value.code == "bad_filter"


def test_two_filters_for_one_property_are_refused(entities: StoreEntities) -> None:
    with pytest.raises(BadFilter):
        entities.select_raw("test.Users", BY_AGE * 2)


@pytest.mark.parametrize(
    ("offset", "limit"), [(0, 0), (0, -2), (-1, 1), (0.5, 1), (0, 1.5), (True, 1)]
)
def test_an_invalid_page_is_refused(entities: StoreEntities, offset: Any, limit: Any) -> None:
    with pytest.raises(BadPaging, match=f"Invalid paging parameters: offset: {offset}, limit: "):
        entities.select_raw("test.Users", BY_AGE, offset=offset, limit=limit)


@pytest.mark.parametrize("name", ["test.None", "Users", "nothing"])
def test_an_unknown_table_is_invalid(entities: StoreEntities, name: str) -> None:
    calls: list[Callable[[], object]] = [
        lambda: entities.put_raw(name, [{"a": 1}]),
        lambda: entities.get_raw(name, ["x"]),
        lambda: entities.select_raw(name, BY_AGE),
        lambda: entities.update_raw(name, BY_AGE, [Change("SET", "a", 1)]),
        lambda: entities.delete_raw(name, BY_AGE),
        lambda: entities.count_raw(name),
        lambda: entities.drop(name),
        lambda: entities.repair(name),
        lambda: list(entities.dump(name)),
        lambda: entities.load(name, []),
    ]
    for call in calls:
        with pytest.raises(InvalidTable) as caught:
            call()
        assert caught.value.message == "Invalid Table"


def test_queries_that_lack_what_they_need_are_refused(entities: StoreEntities) -> None:
    cases: list[tuple[Any, type[HoldfastError], str]] = [
        (lambda: entities.put_raw("", [{}]), BadQuery, "No table for PUT query"),
        (lambda: entities.select_raw("", BY_AGE), BadQuery, "No table for GET query"),
        (
            lambda: entities.update_raw("", BY_AGE, [Change("SET", "a")]),
            BadQuery,
            "No table for UPDATE query",
        ),
        (lambda: entities.delete_raw("", BY_AGE), BadQuery, "DelQuery has no table"),
        (
            lambda: entities.put_raw("test.Users", []),
            BadQuery,
            "PUT query does not contain entities",
        ),
        (lambda: entities.select_raw("test.Users", []), BadQuery, "No filters for GET query"),
        (
            lambda: entities.update_raw("test.Users", [], [Change("SET", "a")]),
            BadQuery,
            "No selection filters for Update query",
        ),
        (
            lambda: entities.update_raw("test.Users", BY_AGE, []),
            BadQuery,
            "No changes in update query",
        ),
        (lambda: entities.delete_raw("test.Users", []), NoIndex, "No index matches the filter"),
        (lambda: entities.put_raw("test.Users", [{}], mode="no"), BadQuery, "mode"),  # type: ignore[arg-type]  # that is the point
    ]
    for call, error, words in cases:
        with pytest.raises(error, match=words):
            call()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (Change("SET", "", 1), "No property name for change"),
        (Change("NOOP", "a", 1), "Change Op NOOP still not supported"),
        (Change("INCR", "a", "1"), "Invalid value for INCR"),
        (Change("INCR", "a", True), "Invalid value for INCR"),
        (Change("INCR", "a", None), "Invalid value for INCR"),
        (Change("EXP", "", 1.5), "Invalid value for TTL: 1.5"),
        (Change("EXP", "", "1"), "Invalid value for TTL: "),
        (Change("SET", "id", "x"), "The id of an entity cannot be changed"),
        (Change("PDEL", "id"), "The id of an entity cannot be changed"),
        (Change("MSET", "a", [1]), "Invalid value for MSET"),
        (Change("MDEL", "a", 5), "Invalid value for MDEL"),
    ],
)
def test_a_change_that_no_entity_could_take_is_refused(
    entities: StoreEntities, change: Change, words: str
) -> None:
    with pytest.raises(BadChange, match=words):
        entities.update_raw("test.Users", BY_AGE, [change])


@pytest.mark.parametrize("given", [5, "x", Filter("id", "ALL"), [5], ["x"], [Filter("id", "=", 5)]])  # type: ignore[arg-type]  # on purpose
def test_what_is_no_list_of_filters_is_refused_by_every_call(
    entities: StoreEntities, given: Any
) -> None:
    calls: list[Callable[[], object]] = [
        lambda: entities.select_raw("test.Users", given),
        lambda: entities.count_raw("test.Users", given),
        lambda: entities.update_raw("test.Users", given, [Change("SET", "age", 1)]),
        lambda: entities.delete_raw("test.Users", given),
    ]
    for call in calls:
        with pytest.raises(BadFilter, match="filter"):
            call()


def test_other_arguments_of_another_kind_are_refused_too(entities: StoreEntities) -> None:
    ann: Any = [Filter("id", "=", ["ann"])]
    odd: Any = 5

    with pytest.raises(InvalidTable):
        entities.put_raw(odd, [{"age": 1}])
    with pytest.raises(InvalidTable):
        entities.select_raw(odd, ann)
    with pytest.raises(BadQuery, match="entities must be a list"):
        entities.put_raw("test.Users", odd)
    with pytest.raises(BadQuery, match="5 is not an ordering"):
        entities.select_raw("test.Users", ann, order=odd)
    with pytest.raises(BadChange, match="5 is not a change"):
        entities.update_raw("test.Users", ann, [odd])
    with pytest.raises(InvalidEntitySchema, match="YAML or a Schema"):
        entities.deploy(odd)


def test_what_is_wrong_with_a_query_comes_before_an_unknown_table(entities: StoreEntities) -> None:
    wrong = [Filter("age", "~", [1])]
    for call in (entities.select_raw, entities.count_raw, entities.delete_raw):
        with pytest.raises(BadFilter):
            call("test.Unknown", wrong)
    with pytest.raises(BadFilter):
        entities.update_raw("test.Unknown", wrong, [Change("SET", "age", 1)])


def test_a_table_with_a_long_name_is_shown_by_its_beginning(entities: StoreEntities) -> None:
    with pytest.raises(InvalidTable, match="'TTT") as caught:
        entities.select_raw("T" * 100_000, BY_AGE)

    assert len(caught.value.hint) < 500


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda e: e.get_raw("test.Users", "anna"), "ids must be a list of texts, not 'anna'"),
        (lambda e: e.get_raw("test.Users", 5), "ids must be a list of texts, not 5"),
        (
            lambda e: e.get_raw("test.Users", [], properties="age"),
            "properties must be a list of texts",
        ),
        (
            lambda e: e.select_raw("test.Users", BY_AGE, properties="age"),
            "properties must be a list",
        ),
        (lambda e: e.update_raw("test.Users", BY_AGE, 5), "changes must be a list, not 5"),
    ],
)
def test_one_text_is_not_a_list_of_its_letters(
    entities: StoreEntities, call: Callable[[Any], object], words: str
) -> None:
    with pytest.raises(BadQuery, match=words):
        call(entities)
