"""Get: slices, predicates, order, projection, distinct."""

from decimal import Decimal
from typing import Any

import pytest

from holdfast.errors import (
    IndexNotFound,
    InvalidAttributeValue,
    InvalidTableQuery,
    InvalidTableRequest,
    TableNotFound,
)
from holdfast.store import Store
from tests.tables.schemas import example, hash_on, range_on, simple, static_on, version

GRID = {
    "table": "grid",
    "attributes": {"h": "string", "r1": "int", "r2": "string", "r3": "int", "v": "int"},
    "index": [hash_on("h"), range_on("r1"), range_on("r2", "desc"), range_on("r3")],
}


@pytest.fixture
def grid(store: Store) -> Store:
    """h in a, b; r1 in 1..3; r2 in x, y, z (descending); r3 in 1, 2."""
    store.tables.create(GRID)
    rows = [
        {"h": h, "r1": r1, "r2": r2, "r3": r3}
        for h in "ab"
        for r1 in (1, 2, 3)
        for r2 in "xyz"
        for r3 in (1, 2)
    ]
    store.tables.batch([{"op": "put", "table": "grid", "attributes": row} for row in rows])
    return store


def keys(store: Store, attributes: Any, **query: Any) -> list[str]:
    items = store.tables.get("grid", attributes, **query).items
    return [f"{item['r1']}{item['r2']}{item['r3']}" for item in items]


def test_the_whole_table(grid: Store) -> None:
    assert grid.tables.get("grid").count == grid.tables.get("grid", {}).count == 36


def test_equality_on_a_growing_prefix(grid: Store) -> None:
    assert len(keys(grid, {"h": "a"})) == 18
    assert keys(grid, {"h": "a", "r1": 2}) == ["2z1", "2z2", "2y1", "2y2", "2x1", "2x2"]
    assert keys(grid, {"r1": 2, "r2": "y", "h": "a"}) == ["2y1", "2y2"]
    assert keys(grid, {"h": "a", "r1": {"eq": 2}, "r2": "y", "r3": "2"}) == ["2y2"]
    assert keys(grid, {"h": "missing"}) == []


@pytest.mark.parametrize(
    ("predicate", "found"),
    [
        ({"lt": 2}, {1}),
        ({"le": 2}, {1, 2}),
        ({"gt": 2}, {3}),
        ({"ge": 2}, {2, 3}),
        ({"GE": 2, "Lt": 3}, {2}),
        ({"between": [2, 3]}, {2, 3}),
        ({"between": [3, 2]}, set()),
        ({"gt": 3, "lt": 1}, set()),
        ({"eq": 2, "ge": 1}, {2}),
        ({"eq": 2, "ge": 3}, set()),
        ({"gt": 1, "gT": 2}, {3}),
    ],
)
def test_predicates_on_an_ascending_range(grid: Store, predicate: Any, found: set[int]) -> None:
    items = grid.tables.get("grid", {"h": "a", "r1": predicate}).items

    assert {item["r1"] for item in items} == found


@pytest.mark.parametrize(
    ("predicate", "found"),
    [
        ({"lt": "y"}, ["x"]),
        ({"le": "y"}, ["y", "x"]),
        ({"gt": "y"}, ["z"]),
        ({"ge": "y"}, ["z", "y"]),
        ({"between": ["x", "y"]}, ["y", "x"]),
        ({"gt": "w", "lt": "y"}, ["x"]),
    ],
)
def test_smaller_means_smaller_also_on_a_descending_range(
    grid: Store, predicate: Any, found: list[str]
) -> None:
    items = grid.tables.get("grid", {"h": "a", "r1": 1, "r2": predicate}).items

    assert [item["r2"] for item in items if item["r3"] == 1] == found


@pytest.mark.parametrize(
    ("attributes", "fragment"),
    [
        ({"h": "a", "v": 1}, "is not a part of primary key"),
        ({"h": "a", "nothing": 1}, "is not a part of primary key"),
        ({"r1": 1}, "hash"),
        ({"h": "a", "r2": "x"}, "must be fixed"),
        ({"h": "a", "r1": 1, "r3": 1}, "must be fixed"),
        ({"h": "a", "r1": {"ge": 1}, "r2": "x"}, "Found predicate after non-eq predicate"),
        ({"h": "a", "r1": {"ge": 1}, "r2": {"lt": "x"}}, "Found predicate after non-eq"),
        ({"h": {"ge": "a"}}, "Non-eq conditions allowed only on range columns"),
        ({"h": {"eq": "a", "ge": "a"}}, "Non-eq conditions allowed only on range columns"),
        ({"h": "a", "r1": {"gte": 1}}, "Illegal predicate operator"),
        ({"h": "a", "r1": {"ge": 1, "gte": 1}}, "Illegal predicate operator"),
        ({"h": "a", "r1": {}}, "Illegal predicate operator"),
        ({"h": {}}, "Illegal predicate operator"),
        ({"h": None}, "is undefined"),
        ({"h": {"eq": None}}, "is undefined"),
        ({"h": "a", "r1": None}, "is undefined"),
        ({"h": "a", "r1": {"ge": None}}, "is undefined"),
    ],
)
def test_a_query_that_is_no_slice_is_refused(grid: Store, attributes: Any, fragment: str) -> None:
    with pytest.raises(InvalidTableQuery, match=fragment) as caught:
        grid.tables.get("grid", attributes)

    assert (caught.value.type, caught.value.status) == ("invalid_query", 400)


@pytest.mark.parametrize(
    "attributes",
    [{"h": 5}, {"h": "a", "r1": "x"}, {"h": "a", "r1": {"between": [1]}},
     {"h": "a", "r1": {"between": 1}}, {"h": "a", "r1": {"between": [1, 2, 3]}},
     {"h": "a", "r1": True}, {"h": "a", "r1": {"lt": 2**31}}],
)  # fmt: skip
def test_a_value_that_does_not_fit_is_refused(grid: Store, attributes: Any) -> None:
    with pytest.raises(InvalidAttributeValue) as caught:
        grid.tables.get("grid", attributes)

    assert caught.value.attribute in ("h", "r1")


def test_attributes_that_are_no_object_are_refused(grid: Store) -> None:
    with pytest.raises(InvalidTableRequest):
        grid.tables.get("grid", ["h"])  # type: ignore[arg-type]  # that is the point


def test_what_is_not_there(grid: Store) -> None:
    with pytest.raises(TableNotFound):
        grid.tables.get("missing")
    with pytest.raises(IndexNotFound) as caught:
        grid.tables.get("grid", index="missing")
    with pytest.raises(InvalidTableQuery):
        grid.tables.get("grid", index=5)  # type: ignore[arg-type]  # that is the point

    assert (caught.value.type, caught.value.status) == ("index_not_found", 404)


def test_a_node_buffer_is_a_value(store: Store) -> None:
    store.tables.create(
        {
            "table": "t",
            "attributes": {"key": "blob", "place": "blob"},
            "index": [hash_on("key"), range_on("place")],
        }
    )
    store.tables.put("t", {"key": b"a", "place": b"b"})

    def data(raw: bytes) -> dict[str, Any]:
        return {"type": "Buffer", "data": list(raw)}

    assert store.tables.get("t", {"key": data(b"a"), "place": data(b"b")}).count == 1
    assert store.tables.get("t", {"key": data(b"a"), "place": {"ge": data(b"b")}}).count == 1
    assert store.tables.get("t", {"key": data(b"x")}).count == 0


# --- versions by time ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("predicate", "found"),
    [
        ({"ge": "1970-01-01T00:00:02Z"}, [3, 2]),
        ({"gt": "1970-01-01T00:00:02Z"}, [3]),
        ({"le": "1970-01-01T00:00:02Z"}, [2, 1]),
        ({"lt": "1970-01-01T00:00:02Z"}, [1]),
        ({"between": ["1970-01-01T00:00:01Z", "1970-01-01T00:00:02Z"]}, [2, 1]),
        ({"lt": "2014-01-01", "ge": "1970-01-01"}, [3, 2, 1]),
        ({"le": "9999-12-31"}, [3, 2, 1]),
        ({"ge": "0001-01-01"}, [3, 2, 1]),
    ],
)
def test_a_time_means_the_versions_of_its_millisecond(
    store: Store, predicate: Any, found: list[int]
) -> None:
    store.tables.create(example())
    for second in (1, 2, 3):
        store.tables.put(
            "example",
            {"name": "a", "property": "p", "tid": version(second + 0.0005), "length": second},
        )

    attributes = {"name": "a", "property": "p", "tid": predicate}
    assert [item["length"] for item in store.tables.get("example", attributes).items] == found


def test_equality_needs_a_whole_version(store: Store) -> None:
    store.tables.create(example())

    with pytest.raises(InvalidAttributeValue):
        store.tables.get("example", {"name": "a", "property": "p", "tid": "2014-01-01"})


# --- order ---------------------------------------------------------------------------------------


def test_order_forwards_and_backwards(grid: Store) -> None:
    forward = keys(grid, {"h": "a"})

    assert keys(grid, {"h": "a"}, order={"r1": "asc"}) == forward
    assert keys(grid, {"h": "a"}, order={"r2": "desc", "r1": "asc", "r3": "asc"}) == forward
    assert keys(grid, {"h": "a"}, order={"r1": "desc"}) == forward[::-1]
    assert keys(grid, {"h": "a"}, order={"r2": "asc"}) == forward[::-1]
    assert keys(grid, {"h": "a"}, order={"r1": "desc", "r2": "asc"}) == forward[::-1]


def test_what_is_fixed_has_no_say_in_the_order(grid: Store) -> None:
    fixed = {"h": "a", "r1": 1}

    assert keys(grid, fixed, order={"r1": "desc", "r2": "desc"}) == keys(grid, fixed)
    assert keys(grid, fixed, order={"r1": "asc", "r2": "asc"}) == keys(grid, fixed)[::-1]


def test_without_a_hash_key_the_order_is_reversed_inside_each(grid: Store) -> None:
    forward = [(item["h"], item["r1"], item["r2"], item["r3"])
               for item in grid.tables.get("grid").items]  # fmt: skip
    items = grid.tables.get("grid", order={"r1": "desc"}).items

    backward = [(item["h"], item["r1"], item["r2"], item["r3"]) for item in items]
    assert backward == forward[:18][::-1] + forward[18:][::-1]


@pytest.mark.parametrize(
    ("order", "fragment"),
    [
        ({"r1": "desc", "r2": "desc"}, "Inconsistent sort order"),
        ({"r1": "up"}, "Invalid sort order"),
        ({"h": "asc"}, "Cannot order on attribute"),
        ({"v": "asc"}, "Cannot order on attribute"),
        (["r1"], "Invalid sort order"),
    ],
)
def test_an_order_that_no_index_has_is_refused(grid: Store, order: Any, fragment: str) -> None:
    with pytest.raises(InvalidTableQuery, match=fragment):
        grid.tables.get("grid", {"h": "a"}, order=order)


# --- projection ----------------------------------------------------------------------------------


def test_items_have_every_attribute_or_those_of_the_projection(grid: Store) -> None:
    whole = {"h": "a", "r1": 1, "r2": "z", "r3": 1, "v": None}

    assert grid.tables.get("grid", {"h": "a"}, limit=1).items == [whole]
    assert grid.tables.get("grid", {"h": "a"}, limit=1, proj="v").items == [{"v": None}]
    assert grid.tables.get("grid", {"h": "a"}, limit=1, proj=["r2", "r1", "r2"]).items == [
        {"r2": "z", "r1": 1}
    ]


@pytest.mark.parametrize("proj", [[], "missing", ["v", "missing"], 5, {"v": 1}, [5]])
def test_a_bad_projection_is_refused(grid: Store, proj: Any) -> None:
    with pytest.raises(InvalidTableQuery, match="Projection"):
        grid.tables.get("grid", {"h": "a"}, proj=proj)


@pytest.mark.parametrize("flags", [{"with_ttl": 1}, {"distinct": "true"}, {"limit": "5"},
                                   {"limit": 0}, {"limit": -1}, {"limit": True},
                                   {"limit": 1.5}, {"limit": float("inf")},
                                   {"limit": Decimal("0.0")}])  # fmt: skip
def test_flags_and_limits_of_a_wrong_type_are_refused(grid: Store, flags: Any) -> None:
    with pytest.raises(InvalidTableQuery):
        grid.tables.get("grid", **flags)


@pytest.mark.parametrize("limit", [2.0, Decimal("2.0"), Decimal("0.2e1")])
def test_a_limit_may_be_written_with_a_fraction_of_zero(grid: Store, limit: Any) -> None:
    assert grid.tables.get("grid", {"h": "a"}, limit=limit).count == 2


def test_distinct_gives_one_item_for_each_hash_key(store: Store) -> None:
    attributes = {"key": "string", "place": "int", "note": "string"}
    index = [hash_on("key"), static_on("note"), range_on("place")]
    store.tables.create(simple(attributes=attributes, index=index))
    for key in "abc":
        for place in range(3):
            store.tables.put("simple", {"key": key, "place": place, "note": f"of {key}"})

    items = store.tables.get("simple", proj=["key", "note"], distinct=True).items

    assert items == [{"key": key, "note": f"of {key}"} for key in "abc"]
    page = store.tables.get("simple", proj="key", distinct=True, limit=2)
    assert page.items == [{"key": "a"}, {"key": "b"}]
    rest = store.tables.get("simple", proj="key", distinct=True, limit=2, next=page.next)
    assert (rest.items, rest.next) == ([{"key": "c"}], None)
    fixed = store.tables.get("simple", {"key": "b"}, proj="key", distinct=True)
    assert fixed.items == [{"key": "b"}]


@pytest.mark.parametrize(
    "query",
    [{}, {"proj": "place"}, {"proj": ["key", "value"]}, {"proj": "key", "order": {"place": "asc"}},
     {"proj": "key", "attributes": {"key": "a", "place": 1}},
     {"proj": "key", "attributes": {"key": "a", "place": {"ge": 1}}},
     {"proj": "key", "index": "by_value"}],
)  # fmt: skip
def test_distinct_is_for_hash_keys_only(store: Store, query: dict[str, Any]) -> None:
    store.tables.create(simple(secondaryIndexes={"by_value": [hash_on("value")]}))

    with pytest.raises(InvalidTableQuery, match="distinct"):
        store.tables.get("simple", distinct=True, **query)


def test_rows_are_counted_without_being_transferred(grid: Store) -> None:
    page = grid.tables.get("grid", {"h": "a", "r1": {"ge": 2}}, count_only=True)

    assert (page.items, page.count, page.next) == ([], 12, None)
    part = grid.tables.get("grid", count_only=True, limit=30)
    assert part.count == 30
    assert grid.tables.get("grid", count_only=True, next=part.next).count == 6


def test_a_scan_reads_all_rows_on_one_snapshot(grid: Store) -> None:
    rows = grid.tables.scan("grid", {"h": "a"})
    first = next(rows)
    grid.tables.delete("grid", {"h": "a"})

    assert [first, *rows] != []
    assert grid.tables.get("grid", {"h": "a"}).count == 0
    assert len(list(grid.tables.scan("grid"))) == 18


@pytest.mark.parametrize(
    ("attributes", "fragment"),
    [
        ({"property": {"gt": 10}, "tid": {"le": "a"}}, "Found predicate after non-eq predicate"),
        ({"property": {"gt": 10}, "tid": "a"}, "Found predicate after non-eq predicate"),
        ({"name": 5, "property": {"gt": 10}, "tid": "a"}, "Found predicate after non-eq predicate"),
        ({"tid": {"wrong": 10}}, "Illegal predicate operator"),
        ({"name": 5, "property": {}}, "Illegal predicate operator"),
        ({"name": 5, "value": "x"}, "is not a part of primary key"),
        ({"property": {"gt": 10}}, "hash"),
        ({"name": 5, "tid": "x"}, "must be fixed"),
    ],
)
def test_the_shape_of_a_query_is_looked_at_before_its_values(
    store: Store, attributes: dict[str, Any], fragment: str
) -> None:
    store.tables.create(example())

    with pytest.raises(InvalidTableQuery, match=fragment):
        store.tables.get("example", attributes)


@pytest.mark.parametrize(
    ("members", "fragment"),
    [
        ({"limit": 0}, "limit"),
        ({"proj": "nothing"}, "Projection"),
        ({"order": {"name": "asc"}}, "Cannot order on attribute"),
        ({"order": {"tid": "up"}}, "Invalid sort order"),
        ({"order": "asc"}, "Invalid sort order"),
        ({"with_ttl": 1}, "with_ttl"),
        ({"distinct": True}, "distinct"),
    ],
)
def test_whatever_else_is_wrong_with_a_query_is_said_before_a_bad_value(
    store: Store, members: dict[str, Any], fragment: str
) -> None:
    store.tables.create(example())

    with pytest.raises(InvalidTableQuery, match=fragment):
        store.tables.get("example", {"name": 5}, **members)


def test_of_several_bad_values_the_first_in_the_schema_is_named(store: Store) -> None:
    index = [hash_on("name"), range_on("tid", "desc"), range_on("property")]
    store.tables.create(example(index=index))

    with pytest.raises(InvalidAttributeValue) as caught:
        store.tables.get("example", {"tid": "x", "property": 5, "name": "a"})

    assert caught.value.attribute == "property"


def test_distinct_of_attributes_that_are_no_object_is_refused(store: Store) -> None:
    store.tables.create(example())
    attributes: Any = 5

    with pytest.raises(InvalidTableRequest):
        store.tables.get("example", attributes, proj="name", distinct=True)


def test_a_page_reads_a_bounded_number_of_bytes_even_if_it_shows_few(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.tables.reads.MAX_READ_PAGE_BYTES", 250)
    store.tables.create(simple())
    for place in range(9):
        store.tables.put("simple", {"key": "a", "place": place, "value": "x" * 100})

    page = store.tables.get("simple", {"key": "a"}, proj=["place"])
    rest = store.tables.get("simple", {"key": "a"}, proj=["place"], next=page.next)

    assert [item["place"] for item in page.items + rest.items] == [0, 1, 2, 3, 4, 5]
