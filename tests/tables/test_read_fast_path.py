"""The short way gives the page of the long way, or leaves it to it."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.errors import TableError
from holdfast.store import Store
from holdfast.tables import catalogue
from holdfast.tables.queries import Query
from holdfast.tables.read_fast_path import fast_page
from holdfast.tables.reads import get_page
from tests.stores import Stores
from tests.tables.schemas import (
    example,
    hash_on,
    proj_of,
    range_on,
    simple,
    static_on,
    version,
)

VALUES = st.sampled_from(["a", "b", "a" * 300, "", None, 7, {"eq": "a"}, {"node": 1}])
BOUNDS = st.dictionaries(
    st.sampled_from(["lt", "le", "gt", "ge", "eq", "no"]),
    st.sampled_from(["a", "b", "", None]),
    max_size=2,
)
TIMES = st.dictionaries(
    st.sampled_from(["lt", "le", "gt", "ge", "eq", "GE", "no"]),
    st.sampled_from([version(1), version(2), "1970-01-01T00:00:02Z", "never", None]),
    max_size=2,
)
QUERIES = st.fixed_dictionaries(
    {},
    optional={
        "name": VALUES,
        "property": VALUES | BOUNDS,
        "tid": st.sampled_from([version(1), version(2), {"node": 1}, {}, None]) | TIMES,
        "value": VALUES,
    },
)


def fill(store: Store) -> None:
    indexes = {"by_value": [hash_on("value"), proj_of("length")]}
    store.tables.create(example(secondaryIndexes=indexes))
    for name in ("a", "b", "a" * 300):
        for prop in ("a", "b"):
            for second in (1, 2, 3):
                row = {"name": name, "property": prop, "tid": version(second), "value": prop}
                store.tables.put("example", {**row, "length": second})


@given(
    queries=st.lists(
        st.tuples(
            st.none() | QUERIES,
            st.sampled_from([None, "by_value", "none"]),
            st.sampled_from([None, 1, 2, 3, 100, 0, -1, True, "1", 20_000]),
        ),
        min_size=20,
        max_size=40,
    )
)
@settings(max_examples=15, deadline=None)
def test_both_ways_lead_to_the_same_page(
    stores: Stores, queries: list[tuple[Any, Any, Any]]
) -> None:
    with stores.open() as store:
        fill(store)
        with store.view() as view:
            reader = view.raw
            plan = catalogue.find(reader, "example")
            for attributes, index, limit in queries:
                query = Query(attributes=attributes, index=index, limit=limit)
                short = outcome(fast_page, reader, plan, index, attributes, limit)

                assert short in (None, outcome(get_page, reader, plan, query))


def outcome(work: Callable[..., Any], *args: Any) -> Any:
    """Returns the result of `work`, or its error."""
    try:
        return work(*args)
    except TableError as error:
        return type(error), error.message


def test_the_usual_queries_take_the_short_way(store: Store) -> None:
    fill(store)

    with store.view() as view:
        plan = catalogue.find(view.raw, "example")
        latest = fast_page(view.raw, plan, None, {"name": "a", "property": "b"}, 1)
        some = fast_page(view.raw, plan, None, {"name": "a", "property": {"ge": "b"}}, 20)
        by_value = fast_page(view.raw, plan, "by_value", {"value": "a"}, None)
        since = {"name": "a", "property": "b", "tid": {"ge": version(2)}}
        recent = fast_page(view.raw, plan, None, since, 20)

    assert latest is not None
    assert [item["tid"] for item in latest.items] == [version(3)]
    assert some is not None
    assert some.count == 3
    assert by_value is not None
    assert by_value.count == 3
    assert recent is not None
    assert [item["tid"] for item in recent.items] == [version(3), version(2)]


OF_TYPE: dict[str, Callable[[int], Any]] = {"int": int, "string": str}
OPERANDS: dict[str, Any] = {
    "int": st.integers(-1, 6),
    "string": st.sampled_from(["", "0", "1", "11", "2", "3", "a"]),
}


@given(data=st.data())
@settings(max_examples=5, deadline=None)
@pytest.mark.parametrize("type", ["int", "string"])
@pytest.mark.parametrize("order", ["asc", "desc"])
def test_bounds_on_the_last_element_take_the_short_way(
    stores: Stores, type: str, order: str, data: st.DataObject
) -> None:
    with stores.open() as store:
        attributes = {"key": "string", "place": type, "value": "string"}
        index = [hash_on("key"), range_on("place", order)]
        store.tables.create(simple(attributes=attributes, index=index))
        for place in range(5):
            store.tables.put("simple", {"key": "a", "place": OF_TYPE[type](place)})
        operators = st.sampled_from(["lt", "le", "gt", "ge"])
        with store.view() as view:
            plan = catalogue.find(view.raw, "simple")
            for _ in range(20):
                bounds = data.draw(st.dictionaries(operators, OPERANDS[type], min_size=1))
                keys, limit = {"key": "a", "place": bounds}, data.draw(st.sampled_from([1, 3, 9]))
                long = get_page(view.raw, plan, Query(attributes=keys, limit=limit))

                short = fast_page(view.raw, plan, None, keys, limit)

                assert short == long or (short is None and long.count == 0)


def test_equality_on_every_element_takes_the_long_way_to_an_etag(store: Store) -> None:
    fill(store)
    keys = {"name": "a", "property": "b"}

    with store.view() as view:
        plan = catalogue.find(view.raw, "example")
        for tid in (version(2), {"eq": version(2)}, {"EQ": version(2)}):
            assert fast_page(view.raw, plan, None, {**keys, "tid": tid}, 1) is None
            query = Query(attributes={**keys, "tid": tid}, limit=1)
            assert get_page(view.raw, plan, query).etag is not None


@pytest.mark.parametrize(
    ("schema", "row"),
    [
        (example(index=[*example()["index"], static_on("value")]), {"value": "of all"}),
        (simple(), {"_ttl": 60}),
    ],
    ids=["static", "expiring"],
)
def test_what_is_unusual_takes_the_long_way(store: Store, schema: Any, row: Any) -> None:
    keys = {"name": "a", "property": "b"} if schema["table"] == "example" else {"key": "a"}
    place = {} if schema["table"] == "example" else {"place": 1}
    store.tables.create(schema)
    store.tables.put(schema["table"], {**keys, **place, **row})

    with store.view() as view:
        plan = catalogue.find(view.raw, schema["table"])
        assert fast_page(view.raw, plan, None, keys, 1) is None
    [item] = store.tables.get(schema["table"], keys, limit=1).items

    assert item["value"] == row.get("value")


@pytest.mark.parametrize("algorithm", ["lz4", "deflate", "snappy"])
def test_compressed_rows_take_the_short_way(store: Store, algorithm: str) -> None:
    store.tables.create(simple(options={"compression": [{"algorithm": algorithm}]}))
    for place, value in enumerate(["x" * 1_000, "short", "y" * 9_000]):
        store.tables.put("simple", {"key": "a", "place": place, "value": value})

    with store.view() as view:
        plan = catalogue.find(view.raw, "simple")
        page = fast_page(view.raw, plan, None, {"key": "a"}, 9)

    assert page is not None
    assert [len(item["value"]) for item in page.items] == [1_000, 5, 9_000]


@pytest.mark.parametrize("compressed", [(), (0,), (70, 71), range(150)], ids=repr)
def test_pages_of_every_size_are_those_of_the_long_way(store: Store, compressed: Any) -> None:
    store.tables.create(example())
    rows = [
        {"name": "a", "property": f"{n:03}", "value": "v" * (600 if n in compressed else 1)}
        for n in range(150)
    ]
    store.tables.batch([{"op": "put", "table": "example", "attributes": row} for row in rows])

    with store.view() as view:
        plan = catalogue.find(view.raw, "example")
        for limit in (1, 63, 64, 65, 128, 149, 150, 151):
            query = Query(attributes={"name": "a"}, limit=limit)
            short = fast_page(view.raw, plan, None, {"name": "a"}, limit)
            assert short is not None
            assert short == get_page(view.raw, plan, query)
