"""Pages, totals and projections."""

from typing import Any

import pytest

from holdfast.entities import StoreEntities
from holdfast.entities.messages import Filter, Ordering, PutEntity
from holdfast.errors import BadFilter
from holdfast.testing import Clock

ALL = [Filter("id", "ALL")]
IN_X = [Filter("city", "=", ["x"])]


@pytest.fixture
def ten(entities: StoreEntities) -> StoreEntities:
    """Ten users, "0" to "9", in city x."""
    entities.put_raw("test.Users", [{"id": str(n), "age": n, "city": "x"} for n in range(10)])
    return entities


@pytest.mark.parametrize("filters", [ALL, IN_X, [Filter("id", "IN", [str(n) for n in range(10)])]])
def test_offset_and_limit_cut_a_page_and_total_counts_all(
    ten: StoreEntities, filters: list[Filter]
) -> None:
    page = ten.select_raw("test.Users", filters, offset=3, limit=2)

    assert ([e.id for e in page], page.total) == (["3", "4"], 10)


@pytest.mark.parametrize("filters", [ALL, IN_X, [Filter("id", ">=", ["0"])]])
def test_an_offset_beyond_the_end_gives_nothing(ten: StoreEntities, filters: list[Filter]) -> None:
    page = ten.select_raw("test.Users", filters, offset=10)

    assert ([e.id for e in page], page.total) == ([], 10)


def test_the_limit_is_100_unless_given_and_minus_1_is_none(entities: StoreEntities) -> None:
    entities.put_raw("test.Users", [{"city": "x"} for _ in range(150)])

    assert len(entities.select_raw("test.Users", IN_X)) == 100
    assert len(entities.select_raw("test.Users", ALL)) == 100
    assert len(entities.select_raw("test.Users", IN_X, limit=-1)) == 150
    assert len(entities.select_raw("test.Users", ALL, limit=-1)) == 150


def test_totals_are_right_in_descending_order(ten: StoreEntities) -> None:
    page = ten.select_raw("test.Users", IN_X, order=Ordering("age", asc=False), limit=2)

    assert ([e.id for e in page], page.total) == (["9", "8"], 10)


@pytest.mark.parametrize("filters", [ALL, IN_X, [Filter("id", "IN", ["1"])]])
def test_a_query_that_does_not_count_has_total_minus_1(
    ten: StoreEntities, filters: list[Filter]
) -> None:
    assert ten.select_raw("test.Users", filters, count=False).total == -1


def test_a_projection_carries_what_an_entity_has_of_it(ten: StoreEntities) -> None:
    ten.put_raw("test.Users", [{"id": "bare"}])

    page = ten.select_raw("test.Users", ALL, properties=["age", "id", "other"], offset=9)

    assert [(e.id, e.properties) for e in page] == [("9", {"age": 9}), ("bare", {})]
    assert ten.get_raw("test.Users", ["1"], properties=["city"])[0].properties == {"city": "x"}


def test_null_is_reported_and_a_missing_property_is_not(entities: StoreEntities) -> None:
    entities.put_raw("test.Users", [{"id": "u", "age": None}])

    assert entities.get_raw("test.Users", ["u"])[0].properties == {"age": None}


@pytest.mark.parametrize("asc", [True, False])
@pytest.mark.parametrize("expires", [False, True])
def test_a_far_offset_gives_the_right_page(
    entities: StoreEntities, clock: Clock, asc: bool, expires: bool
) -> None:
    entities.put_raw("test.Users", [{"city": "x", "age": n} for n in range(4000)])
    if expires:
        entities.put_raw("test.Users", [PutEntity({"city": "x", "age": 7}, ttl=1)])
        clock.advance(seconds=0.5)
    order = Ordering("age", asc)

    for offset in (511, 513, 2000, 3998, 4000, 9000):
        page = entities.select_raw("test.Users", IN_X, order=order, offset=offset, limit=2)
        ages = range(4000) if asc else range(3999, -1, -1)
        assert [e.properties["age"] for e in page] == list(ages[offset : offset + 2])
        assert page.total == 4000


def test_large_totals_are_exact(entities: StoreEntities) -> None:
    entities.put_raw("test.Users", [{"city": f"c{n % 3}", "age": n} for n in range(3000)])

    assert entities.select_raw("test.Users", [Filter("city", "=", ["C1"])], limit=1).total == 1000
    between = [Filter("age", "><", [100, 2899])]
    assert entities.select_raw("test.Users", between, limit=1, offset=5).total == 2800
    ordered = [Filter("city", "IN", ["c0", "c2"]), Filter("age", "<", [2700])]
    assert entities.select_raw("test.Users", ordered, order=Ordering("age")).total == 1800
    assert entities.count_raw("test.Users") == 3000


@pytest.mark.parametrize("limit", [1, 31, 32, 33, 127, 128, 129, -1])
@pytest.mark.parametrize("offset", [0, 1, 40])
@pytest.mark.parametrize("count", [False, True])
@pytest.mark.parametrize("ascending", [False, True])
def test_pages_of_every_size_hold_what_lives(
    entities: StoreEntities, clock: Clock, limit: int, offset: int, count: bool, ascending: bool
) -> None:
    ids = [f"{n:03}" for n in range(140)]
    lives = {id: 0 if n % 3 else 10**9 for n, id in enumerate(ids)}
    entities.put_raw(
        "test.Users", [PutEntity({"city": "x", "age": 1}, id, lives[id]) for id in ids]
    )
    clock.advance(seconds=2)
    order = None if ascending else Ordering("age", asc=False)

    page = entities.select_raw(
        "test.Users", IN_X, order=order, offset=offset, limit=limit, count=count
    )

    live = [id for id in ids if not lives[id]][:: 1 if ascending else -1]
    end = None if limit == -1 else offset + limit
    assert [entity.id for entity in page] == live[offset:end]
    assert page.total == (len(live) if count else -1)


@pytest.mark.parametrize("ids", [["T", "TT", "T\x01", "\x00T", "é"], ["TT", "T"], ["T"], ["\x01"]])
def test_an_index_finds_ids_of_any_text(entities: StoreEntities, ids: list[str]) -> None:
    entities.put_raw("test.Users", [PutEntity({"city": "x"}, id) for id in ids])

    found = entities.select_raw("test.Users", IN_X)

    assert sorted(entity.id for entity in found) == sorted(ids)


def test_a_query_is_checked_however_often_its_like_was_asked(ten: StoreEntities) -> None:
    def total(value: object, op: str = "=") -> int:
        return ten.select_raw("test.Users", [Filter("age", op, [value])]).total

    assert [total(3), total(3), total(3.0), total(True), total(""), total(None)] == [
        1,
        1,
        1,
        0,
        0,
        0,
    ]
    assert [total(8, ">"), total(3, "IN"), total(3, "EQ")] == [1, 1, 1]
    for value in (2**64, [3], "\ud800"):
        with pytest.raises(BadFilter):
            total(value)
    with pytest.raises(BadFilter, match="Unsupported operator"):
        total(3, "~")


def test_filters_may_come_from_an_iterator(ten: StoreEntities) -> None:
    for _ in range(2):
        filters: Any = iter(IN_X)
        assert ten.select_raw("test.Users", filters).total == 10
