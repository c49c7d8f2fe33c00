"""The `if` of a put."""

from typing import Any

import pytest

from holdfast.errors import InvalidAttributeValue, InvalidTableRequest, UnknownAttribute
from holdfast.store import Store
from holdfast.testing import Clock
from tests.tables.schemas import example, hash_on, range_on, simple, static_on, version

KEY = {"key": "a", "place": 1}


@pytest.mark.parametrize("condition", ["not exists", "  NOT \t exists ", "Not Exists"])
def test_not_exists_is_met_once(store: Store, condition: str) -> None:
    store.tables.create(simple())

    first = store.tables.put("simple", {**KEY, "value": "one"}, if_=condition)
    second = store.tables.put("simple", {**KEY, "value": "two"}, if_=condition)

    assert (first.applied, second.applied) == (True, False)
    assert store.tables.get("simple").items[0]["value"] == "one"


def test_exists_is_met_by_a_live_row(store: Store, clock: Clock) -> None:
    store.tables.create(simple())

    assert not store.tables.put("simple", KEY, if_="exists").applied
    store.tables.put("simple", {**KEY, "_ttl": 5})
    assert store.tables.put("simple", KEY, if_="exists").applied
    clock.advance(seconds=5)
    assert not store.tables.put("simple", KEY, if_="exists").applied
    assert store.tables.put("simple", KEY, if_="not exists").applied


@pytest.mark.parametrize("condition", ["exist", "", "not  there", 5, ["not exists"], True])
def test_another_condition_is_refused(store: Store, condition: Any) -> None:
    store.tables.create(simple())

    with pytest.raises(InvalidTableRequest, match="Only 'not exists'") as caught:
        store.tables.put("simple", KEY, if_=condition)

    assert caught.value.type == "invalid_request"


@pytest.mark.parametrize(
    ("condition", "met"),
    [
        ({"value": "m"}, True),
        ({"value": "n"}, False),
        ({"value": {"EQ": "m"}}, True),
        ({"value": {"lt": "n", "ge": "m"}}, True),
        ({"value": {"gt": "m"}}, False),
        ({"value": {"between": ["a", "m"]}}, True),
        ({"value": {"between": ["z", "a"]}}, False),
        ({"value": None}, False),
        ({"other": None}, True),
        ({"other": {"eq": None}}, True),
        ({"other": {"lt": 5}}, False),
        ({"other": 5}, False),
        ({"key": "a", "place": {"le": 1}}, True),
        ({"tags": [2, 1]}, True),
        ({"tags": {"eq": [1]}}, False),
        ({"data": {"eq": {"b": 2, "a": [1]}}}, True),
        ({"data": {"eq": {"a": [1]}}}, False),
        ({}, True),
    ],
)
def test_predicates_look_at_the_stored_row(
    store: Store, condition: dict[str, Any], met: bool
) -> None:
    attributes = {
        "key": "string", "place": "int", "value": "string", "other": "int", "tags": "set<int>",
        "data": "json",
    }  # fmt: skip
    store.tables.create(simple(attributes=attributes))
    row = {**KEY, "value": "m", "tags": [1, 2], "data": {"a": [1], "b": 2}}
    store.tables.put("simple", row)

    result = store.tables.put("simple", {**KEY, "value": "changed"}, if_=condition)

    assert result.applied is met
    [item] = store.tables.get("simple", proj="value").items
    assert item["value"] == ("changed" if met else "m")


def test_a_condition_on_a_row_needs_the_row(store: Store) -> None:
    store.tables.create(simple())

    assert not store.tables.put("simple", KEY, if_={"value": None}).applied
    assert store.tables.get("simple").items == []


def test_a_condition_on_a_static_does_not_need_the_row(store: Store) -> None:
    """The compare-and-set that statics exist for: write B if the latest is still A."""
    schema = example(
        attributes={"name": "string", "tid": "timeuuid", "latest": "timeuuid"},
        index=[hash_on("name"), static_on("latest"), range_on("tid", "desc")],
    )
    store.tables.create(schema)
    a, b, c = version(1), version(2), version(3)
    first = store.tables.put("example", {"name": "x", "tid": a, "latest": a}, if_={"latest": None})
    row = {"name": "x", "tid": b, "latest": b}
    second = store.tables.put("example", row, if_={"latest": a})
    late = {"name": "x", "tid": c, "latest": c}
    third = store.tables.put("example", late, if_={"latest": a})

    assert [first.applied, second.applied, third.applied] == [True, True, False]
    items = store.tables.get("example", {"name": "x"}).items
    assert [(item["tid"], item["latest"]) for item in items] == [(b, b), (a, b)]


def test_nothing_at_all_is_written_if_a_condition_is_not_met(store: Store) -> None:
    schema = example(
        attributes={"name": "string", "tid": "timeuuid", "note": "string"},
        index=[hash_on("name"), static_on("note"), range_on("tid", "desc")],
        revisionRetentionPolicy={"type": "latest", "count": 1, "grace_ttl": 0},
    )
    store.tables.create(schema)
    store.tables.put("example", {"name": "x", "tid": version(1), "note": "kept"})

    row = {"name": "x", "tid": version(2), "note": "lost"}
    result = store.tables.put("example", row, if_={"note": "something else"})

    assert (result.applied, result.tid) == (False, None)
    items = store.tables.get("example", {"name": "x"}).items
    assert items == [{"name": "x", "tid": version(1), "note": "kept"}]


def test_bad_predicates_are_refused(store: Store) -> None:
    store.tables.create(simple(attributes={"key": "string", "place": "int", "value": "json"}))

    with pytest.raises(UnknownAttribute):
        store.tables.put("simple", KEY, if_={"missing": 1})
    with pytest.raises(InvalidTableRequest, match="Illegal predicate operator"):
        store.tables.put("simple", KEY, if_={"value": {"foo": "bar"}})
    with pytest.raises(InvalidAttributeValue):
        store.tables.put("simple", KEY, if_={"place": "x"})
    with pytest.raises(InvalidAttributeValue):
        store.tables.put("simple", KEY, if_={"place": {"between": [1]}})
    with pytest.raises(InvalidAttributeValue):
        store.tables.put("simple", KEY, if_={"value": {"lt": 5}})


def test_the_old_row_is_returned(store: Store) -> None:
    store.tables.create(simple())
    first = store.tables.put("simple", {**KEY, "value": "one"}, return_old=True)
    second = store.tables.put("simple", {**KEY, "value": "two"}, return_old=True)

    assert first.old is None
    assert second.old == {**KEY, "value": "one"}


def test_twelve_clients_compare_and_set_and_one_wins_each_round(store: Store) -> None:
    from concurrent.futures import ThreadPoolExecutor

    store.tables.create(simple(index=[hash_on("key"), range_on("place")]))
    with ThreadPoolExecutor(12) as pool:
        results = pool.map(
            lambda n: store.tables.put("simple", {**KEY, "value": str(n)}, if_="not exists"),
            range(12),
        )

    assert sum(result.applied for result in results) == 1
