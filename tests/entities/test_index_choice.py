"""Which index answers a query, in which order, and what is refused."""

from typing import Any

import pytest

from holdfast.entities import StoreEntities
from holdfast.entities.messages import Filter, Ordering
from holdfast.errors import BadFilter, NoIndex
from holdfast.store import Store

SCHEMA = """
schema: s
tables:
  T:
    columns:
      a: {type: Int}
      b: {type: Int}
      c: {type: Int}
      d: {type: Int}
    indexes:
      - {type: simple, columns: [a]}
      - {type: compound, columns: [a, b]}
      - {type: compound, columns: [a, b, c]}
      - {type: compound, columns: [d, c]}
"""


def eq(name: str, *values: Any) -> Filter:
    return Filter(name, "=" if len(values) == 1 else "IN", values)


@pytest.fixture
def table(store: Store) -> StoreEntities:
    """27 entities, one for each combination of a, b and c in 0..2; d is 1."""
    store.entities.deploy(SCHEMA)
    numbers = range(3)
    store.entities.put_raw(
        "s.T",
        [
            {"id": f"{a}{b}{c}", "a": a, "b": b, "c": c, "d": 1}
            for a in numbers
            for b in numbers
            for c in numbers
        ],
    )
    return store.entities


def ids(
    table: StoreEntities, *filters: Filter, by: str = "", asc: bool = True, **options: Any
) -> list[str]:
    order = Ordering(by, asc) if by else None
    page = table.select_raw("s.T", filters, order=order, **options)
    assert options or page.total == len(page.entities)
    return [entity.id for entity in page]


def test_an_index_serves_its_first_columns_in_any_order(table: StoreEntities) -> None:
    assert ids(table, eq("a", 1)) == [f"1{b}{c}" for b in range(3) for c in range(3)]
    assert ids(table, eq("b", 2), eq("a", 1)) == ["120", "121", "122"]
    assert ids(table, eq("c", 0), eq("b", 2), eq("a", 1)) == ["120"]


@pytest.mark.parametrize(
    "filters",
    [
        [eq("b", 1)],
        [eq("a", 1), eq("c", 1)],
        [eq("id", "000"), eq("a", 0)],
        [eq("nothing", 1)],
    ],
)
def test_what_no_index_begins_with_is_refused(table: StoreEntities, filters: list[Filter]) -> None:
    with pytest.raises(NoIndex, match="No index matches the filter"):
        table.select_raw("s.T", filters)


def test_a_plan_for_single_values_serves_no_other_query(table: StoreEntities) -> None:
    """Queries of one value for each column leave a plan behind, by the order of the columns."""
    assert ids(table, eq("b", 2), eq("a", 1)) == ["120", "121", "122"]
    assert ids(table, eq("b", 0), eq("a", 2)) == ["200", "201", "202"]

    assert ids(table, eq("b", 0, 2), eq("a", 1)) == ["100", "101", "102", "120", "121", "122"]
    assert ids(table, Filter("b", ">", (1,)), eq("a", 0)) == ["020", "021", "022"]
    assert ids(table, eq("b", 2), eq("a", 1), by="c", asc=False) == ["122", "121", "120"]
    assert ids(table, eq("b", None), eq("a", 1)) == []
    assert ids(table, eq("b", ""), eq("a", 1)) == []


@pytest.mark.parametrize("size", [31, 32, 33, 70])
def test_pages_and_totals_are_right_around_what_is_read_at_once(store: Store, size: int) -> None:
    store.entities.deploy(SCHEMA)
    names = [f"{number:03}" for number in range(size)]
    store.entities.put_raw("s.T", [{"id": name, "a": 1} for name in names])
    store.entities.put_raw("s.T", [{"id": "zzz", "a": 2}])

    for offset, limit in ((0, 5), (0, 32), (0, -1), (30, 5), (32, 32), (69, 5)):
        for count in (True, False):
            page = store.entities.select_raw(
                "s.T", [eq("a", 1)], offset=offset, limit=limit, count=count
            )
            wanted = names[offset:] if limit < 0 else names[offset : offset + limit]
            assert [entity.id for entity in page] == wanted
            assert page.total == (size if count else -1)


def test_in_selects_several_stretches_in_index_order(table: StoreEntities) -> None:
    assert ids(table, eq("a", 2, 0, 2), eq("b", 1)) == ["010", "011", "012", "210", "211", "212"]


def test_ordered_stretches_are_merged(table: StoreEntities) -> None:
    ascending = ids(table, eq("a", 2, 0), eq("b", 1), by="c")

    assert ascending == ["010", "210", "011", "211", "012", "212"]
    assert ids(table, eq("a", 2, 0), eq("b", 1), by="c", asc=False) == ascending[::-1]


def test_order_by_a_filtered_column_ties_by_the_columns_after_it(table: StoreEntities) -> None:
    assert ids(table, eq("a", 0, 1), eq("b", 2, 0), eq("c", 1), by="b", asc=True) == [
        "001",
        "101",
        "021",
        "121",
    ]
    assert ids(table, eq("a", 0, 1), eq("b", 2), by="a", asc=False) == [
        *("122", "121", "120"),
        *("022", "021", "020"),
    ]


def test_an_order_that_no_index_gives_is_refused(table: StoreEntities) -> None:
    for order in ("c", "id", "d"):
        with pytest.raises(NoIndex):
            table.select_raw("s.T", [eq("a", 1)], order=Ordering(order))


@pytest.mark.parametrize(
    ("op", "values", "expected"),
    [
        ("><", [1, 2], ["011", "012"]),
        ("><", [None, 1], ["010", "011"]),
        ("><", [1, None], ["011", "012"]),
        ("><", [None, None], ["010", "011", "012"]),
        ("><", [2, 1], []),
        (">", [0], ["011", "012"]),
        (">=", [1], ["011", "012"]),
        ("<", [1], ["010"]),
        ("<=", [1], ["010", "011"]),
        ("<", ["text"], []),
        (">", [None], []),
        (">", [0.5], ["011", "012"]),
    ],
)
def test_a_range_on_the_last_filtered_column(
    table: StoreEntities, op: str, values: list[Any], expected: list[str]
) -> None:
    filters = [Filter("c", op, values), eq("b", 1), eq("a", 0)]

    assert ids(table, *filters) == expected
    assert ids(table, *filters, by="c", asc=False) == expected[::-1]


def test_a_range_before_an_equality_is_refused(table: StoreEntities) -> None:
    with pytest.raises(
        BadFilter, match="Ranges must come after equality filters in the index's column order"
    ):
        table.select_raw("s.T", [Filter("a", ">", [0]), eq("b", 1)])


def test_two_ranges_are_refused(table: StoreEntities) -> None:
    with pytest.raises(BadFilter, match="Only a single range per query allowed"):
        table.select_raw("s.T", [Filter("a", ">", [0]), Filter("b", "<", [1])])


def test_a_range_is_ordered_by_its_own_property_only(table: StoreEntities) -> None:
    with pytest.raises(BadFilter, match="Range queries can only be ordered by the range property"):
        table.select_raw("s.T", [Filter("a", ">", [0])], order=Ordering("b"))


def test_a_range_never_matches_null(table: StoreEntities) -> None:
    table.put_raw("s.T", [{"id": "null", "a": None}, {"id": "text", "a": "x"}])

    assert ids(table, Filter("a", "<=", [0])) == [f"0{b}{c}" for b in range(3) for c in range(3)]
    assert "null" not in ids(table, Filter("a", "><", [None, None]))
    assert ids(table, Filter("a", "><", [2, None]), limit=-1)[-1] == "text"


def test_empty_text_finds_missing_values_and_null_does_not_find_text(
    entities: StoreEntities,
) -> None:
    entities.put_raw(
        "test.Users",
        [{"id": "e", "city": ""}, {"id": "n", "city": None}, {"id": "m"}, {"id": "x", "city": "x"}],
    )

    def found(value: str | None) -> list[str]:
        return [e.id for e in entities.select_raw("test.Users", [eq("city", value)])]

    assert found("") == ["m", "n", "e"]
    assert found(None) == ["m", "n"]
    assert [e.id for e in entities.select_raw("test.Users", [eq("city", "", "X")])] == [
        *("m", "n", "e", "x"),
    ]


def test_all_in_the_order_of_an_index_or_of_ids(table: StoreEntities) -> None:
    everything = Filter("id", "ALL")

    assert ids(table, everything)[:3] == ["000", "001", "002"]
    assert ids(table, everything, by="id", asc=False)[:2] == ["222", "221"]
    assert ids(table, everything, by="a", asc=False)[:2] == ["222", "221"]
    assert ids(table, everything, by="d")[0] == "000"
    with pytest.raises(NoIndex):
        ids(table, everything, by="b")


@pytest.mark.parametrize(
    ("op", "values", "expected"),
    [
        ("=", ["011"], ["011"]),
        ("=", [11], []),
        ("IN", ["222", "none", "000", "222"], ["222", "000", "222"]),
        ("><", ["22", "221"], ["220", "221"]),
        ("><", ["221", None], ["221", "222"]),
        (">", ["220"], ["221", "222"]),
        (">=", ["221"], ["221", "222"]),
        ("<", ["002"], ["000", "001"]),
        ("<=", ["001"], ["000", "001"]),
        ("<=", [1], []),
    ],
)
def test_filters_on_the_id(
    table: StoreEntities, op: str, values: list[Any], expected: list[str]
) -> None:
    page = table.select_raw("s.T", [Filter("id", op, values)])

    assert [entity.id for entity in page] == expected
    assert page.total == len(set(expected))


def test_key_columns_give_their_combinations_in_order(entities: StoreEntities) -> None:
    entities.put_raw(
        "test.Keyed",
        [{"name": n, "lastName": m} for n, m in [("a", "x"), ("b", "x"), ("b", "y"), ("c", "x")]],
    )

    def select(order: Ordering | None = None) -> list[str]:
        filters = [eq("lastName", "Y", "x", "y"), eq("name", "b", "A", "none")]
        page = entities.select_raw("test.Keyed", filters, order=order)
        assert page.total == 3
        return [entity.id for entity in page]

    assert select() == ["b|y|", "b|x|", "a|x|"]
    assert select(Ordering("id")) == ["a|x|", "b|x|", "b|y|"]
    assert select(Ordering("id", asc=False)) == ["b|y|", "b|x|", "a|x|"]


def test_part_of_a_compound_primary_is_no_index(entities: StoreEntities) -> None:
    with pytest.raises(NoIndex):
        entities.select_raw("test.Keyed", [eq("name", "a")])
    with pytest.raises(NoIndex):
        entities.select_raw("test.Keyed", [eq("name", "a"), Filter("lastName", ">", ["a"])])


def test_the_product_of_in_lists_is_bounded(table: StoreEntities) -> None:
    with pytest.raises(BadFilter, match="combinations"):
        table.select_raw("s.T", [eq("a", *range(200)), eq("b", *range(200))])
