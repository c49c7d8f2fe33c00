"""Which tables there are, and what is known about them."""

from enum import Enum
from typing import Any

import pytest

from holdfast.engine.contract import Reader
from holdfast.errors import InvalidTableQuery, TableNotFound
from holdfast.keys import prefix_range
from holdfast.store import Store
from holdfast.tables.layout import keys_of
from holdfast.testing import Clock
from tests.tables.schemas import hash_on, range_on, simple, static_on


def keys_left(reader: Reader) -> int:
    keys = keys_of(reader.space)
    prefixes = (keys.rows, keys.statics, keys.entries, keys.counts, keys.builds)
    return sum(len(list(reader.scan(*prefix_range(prefix)))) for prefix in prefixes)


def test_tables_are_listed_in_order_page_by_page(store: Store) -> None:
    for name in ("b", "é", "a", "c", "Z"):
        store.tables.create(simple(), table=name)

    assert store.tables.names() == ["Z", "a", "b", "c", "é"]
    assert store.tables.names(limit=2) == ["Z", "a"]
    assert store.tables.names(after="a", limit=2) == ["b", "c"]
    assert len(store.tables.names(limit=10**30)) == 5


@pytest.mark.parametrize("limit", [0, -1, "5", 1.5, None])
def test_a_listing_has_a_limit_of_at_least_one(store: Store, limit: Any) -> None:
    for tables in (store.tables, store.space("*").tables):
        with pytest.raises(InvalidTableQuery, match="limit"):
            tables.names(limit=limit)


def test_facts_follow_every_write(store: Store) -> None:
    store.tables.create(
        simple(
            attributes={"key": "string", "place": "int", "value": "string", "note": "string"},
            index=[hash_on("key"), static_on("note"), range_on("place")],
            secondaryIndexes={"i": [hash_on("value")]},
        )
    )
    for place in range(3):
        store.tables.put("simple", {"key": "a", "place": place, "value": "x", "note": "n"})
    store.tables.put("simple", {"key": "a", "place": 0, "value": None, "_ttl": 5})

    facts = store.tables.facts("simple")
    assert (facts.rows, facts.entries, facts.expiring) == (3, 2, 1)
    assert facts.bytes > 0
    store.tables.delete("simple", {"key": "a"})
    facts = store.tables.facts("simple")
    assert (facts.rows, facts.bytes, facts.entries, facts.expiring) == (0, 0, 0, 0)


def test_a_dropped_table_is_gone_at_once(store: Store) -> None:
    store.tables.create(simple())
    store.tables.put("simple", {"key": "a", "place": 1})

    assert store.tables.drop("simple") is True
    assert store.tables.drop("simple") is False
    with pytest.raises(TableNotFound):
        store.tables.get("simple")
    store.tables.create(simple())
    assert store.tables.get("simple").items == []


def test_what_a_dropped_table_stored_is_removed_in_bounded_steps(
    store: Store, clock: Clock
) -> None:
    store.tables.create(simple(secondaryIndexes={"i": [hash_on("value")]}))
    for begin in range(0, 1_200, 400):
        store.tables.batch(
            [
                {"op": "put", "table": "simple",
                 "attributes": {"key": "a", "place": begin + n, "value": "x", "_ttl": 60}}
                for n in range(400)
            ]
        )  # fmt: skip
    clock.advance(seconds=1)
    store.tables.drop("simple")

    with store._runner.view() as reader:
        assert 1_500 < keys_left(reader) < 2_404
    for _ in range(6):
        clock.advance(seconds=1)
        store.sweep(limit=1)
    with store._runner.view() as reader:
        assert keys_left(reader) == 0


def test_rows_of_a_dropped_table_expire_without_a_trace(store: Store, clock: Clock) -> None:
    store.tables.create(simple())
    store.tables.put("simple", {"key": "a", "place": 1, "_ttl": 5})
    store.tables.drop("simple")
    store.tables.create(simple())
    store.tables.put("simple", {"key": "a", "place": 1})

    clock.advance(seconds=6)
    while store.sweep():
        pass
    assert store.tables.get("simple").count == 1


def test_dropping_what_can_be_no_table_finds_nothing(store: Store) -> None:
    number: Any = 5

    assert not store.tables.drop("\ud800")
    assert not store.tables.drop(number)


class Table(str, Enum):  # noqa: UP042 - as written before StrEnum
    PAGES = "pages"


def test_a_member_of_an_enumeration_names_the_table_of_its_value(store: Store) -> None:
    store.tables.create(simple(table=Table.PAGES))

    assert store.tables.names() == ["pages"]
    assert store.tables.schema(Table.PAGES) == store.tables.schema("pages")
