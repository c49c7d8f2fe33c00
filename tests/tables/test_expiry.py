"""Rows that expire: exact to the millisecond, and removed soon after."""

from collections.abc import Callable
from typing import Any

import pytest

from holdfast.errors import InvalidAttributeValue, TtlNotAllowed
from holdfast.limits import (
    EXPIRED_PER_WRITE,
    EXPIRED_REVISIONS_PER_STEP,
    EXPIRY_RETRY_MS,
    MAX_FALLBACKS,
)
from holdfast.store import Store
from holdfast.testing import Clock
from holdfast.testing.factories import BEGINNING
from tests.tables.schemas import example, hash_on, proj_of, simple, version

KEY = {"key": "a", "place": 1}


def test_a_row_is_invisible_the_moment_it_expires(store: Store, clock: Clock) -> None:
    store.tables.create(simple(secondaryIndexes={"by_value": [hash_on("value")]}))
    store.tables.put("simple", {**KEY, "value": "x", "_ttl": 2})

    clock.advance(seconds=1.999)
    assert store.tables.get("simple").count == 1
    clock.advance(seconds=0.001)
    assert store.tables.get("simple").items == []
    assert store.tables.get("simple", {"value": "x"}, index="by_value").items == []
    assert store.tables.get("simple", count_only=True).count == 0
    assert store.tables.delete("simple", {"key": "a"}).count == 0


def test_what_has_expired_is_removed_with_later_writes(store: Store, clock: Clock) -> None:
    store.tables.create(simple(secondaryIndexes={"by_value": [hash_on("value")]}))
    for place in range(5):
        store.tables.put("simple", {"key": "a", "place": place, "value": "x", "_ttl": 2})
    clock.advance(seconds=2)
    assert store.tables.facts("simple").rows == 5

    store.tables.put("simple", {"key": "other", "place": 1})

    facts = store.tables.facts("simple")
    assert (facts.rows, facts.entries, facts.expiring) == (1, 0, 0)


def test_a_sweep_goes_on_after_a_restart(store: Store, clock: Clock) -> None:
    store.tables.create(simple())
    for place in range(30):
        store.tables.put("simple", {"key": "a", "place": place, "_ttl": 2})
    clock.advance(seconds=3)
    again = Store(store.engine)

    assert again.sweep() == 30
    assert again.tables.facts("simple").rows == 0


def test_a_later_put_leaves_the_expiry_as_it_is(store: Store, clock: Clock) -> None:
    store.tables.create(simple())
    store.tables.put("simple", {**KEY, "_ttl": 10})
    clock.advance(seconds=4)
    store.tables.put("simple", {**KEY, "value": "x"})

    assert store.tables.get("simple", with_ttl=True).items[0]["_ttl"] == 6
    clock.advance(seconds=6)
    assert store.tables.get("simple").count == 0


def test_a_new_ttl_replaces_the_old_and_null_removes_it(store: Store, clock: Clock) -> None:
    store.tables.create(simple())
    store.tables.put("simple", {**KEY, "_ttl": 10})
    store.tables.put("simple", {**KEY, "_ttl": 20})
    assert store.tables.get("simple", with_ttl=True).items[0]["_ttl"] == 20

    store.tables.put("simple", {**KEY, "_ttl": None})

    clock.advance(seconds=30)
    store.sweep()
    assert store.tables.get("simple", with_ttl=True).items[0]["_ttl"] is None
    assert store.tables.facts("simple").expiring == 0


def test_the_remaining_seconds_are_rounded_down(store: Store, clock: Clock) -> None:
    store.tables.create(simple())
    store.tables.put("simple", {**KEY, "_ttl": 2})

    for advance, left in ((0, 2), (0.001, 1), (0.999, 1), (0.5, 0)):
        clock.advance(seconds=advance)
        [item] = store.tables.get("simple", with_ttl=True, proj="place").items
        assert item == {"place": 1, "_ttl": left}


def test_a_put_on_an_expired_row_starts_from_an_empty_one(store: Store, clock: Clock) -> None:
    store.tables.create(simple(secondaryIndexes={"by_value": [hash_on("value")]}))
    store.tables.put("simple", {**KEY, "value": "x", "_ttl": 2})
    clock.advance(seconds=2)
    store.tables.put("simple", KEY)

    assert store.tables.get("simple", with_ttl=True).items == [{**KEY, "value": None, "_ttl": None}]
    assert store.tables.facts("simple").entries == 0


@pytest.mark.parametrize("ttl", [0, -1, 1.5, "5", True, 630_720_001, [], float("nan")])
def test_a_bad_ttl_is_refused(store: Store, ttl: Any) -> None:
    store.tables.create(simple())

    with pytest.raises(InvalidAttributeValue) as caught:
        store.tables.put("simple", {**KEY, "_ttl": ttl})

    assert caught.value.attribute == "_ttl"


def test_the_longest_ttl_is_twenty_years(store: Store) -> None:
    store.tables.create(simple())
    store.tables.put("simple", {**KEY, "_ttl": 630_720_000})

    assert store.tables.get("simple", with_ttl=True).items[0]["_ttl"] == 630_720_000


def test_a_ttl_does_not_go_with_a_policy(store: Store) -> None:
    store.tables.create(
        example(revisionRetentionPolicy={"type": "latest", "count": 1, "grace_ttl": 1})
    )
    store.tables.create(example(table="all", revisionRetentionPolicy={"type": "all"}))

    with pytest.raises(TtlNotAllowed, match="custom _ttl is not allowed") as caught:
        store.tables.put("example", {"name": "a", "property": "p", "_ttl": 5})
    store.tables.put("all", {"name": "a", "property": "p", "_ttl": 5})

    assert caught.value.type == "ttl_not_allowed"


def test_a_ttl_may_be_combined_with_a_condition(store: Store, clock: Clock) -> None:
    store.tables.create(simple())
    row = {**KEY, "_ttl": 5}

    assert store.tables.put("simple", row, if_="not exists").applied
    assert not store.tables.put("simple", row, if_="not exists").applied
    clock.advance(seconds=5)
    assert store.tables.put("simple", row, if_="not exists").applied


@pytest.mark.parametrize("seconds", [10, 10.0])
def test_the_default_ttl_of_a_table_is_renewed_by_every_put(
    store: Store, clock: Clock, seconds: float
) -> None:
    store.tables.create(simple(options={"default_time_to_live": seconds}))
    store.tables.put("simple", KEY)
    clock.advance(seconds=6)
    store.tables.put("simple", {**KEY, "value": "x"})
    clock.advance(seconds=6)

    assert store.tables.get("simple", with_ttl=True).items[0]["_ttl"] == 4
    store.tables.put("simple", {**KEY, "_ttl": None})
    clock.advance(seconds=100)
    assert store.tables.get("simple").count == 1


def test_a_default_ttl_of_null_is_none(store: Store, clock: Clock) -> None:
    options = {"default_time_to_live": None}
    store.tables.create(simple(options=options))
    store.tables.put("simple", KEY)
    clock.advance(seconds=10**6)

    assert store.tables.get("simple", with_ttl=True).items[0]["_ttl"] is None
    assert store.tables.schema("simple")["options"] == options
    assert not store.tables.create(simple()).changed


def test_an_expired_current_revision_is_replaced_by_the_next(store: Store, clock: Clock) -> None:
    store.tables.create(example(secondaryIndexes={"by_value": [hash_on("value")]}))
    row = {"name": "a", "property": "p"}
    store.tables.put("example", {**row, "tid": version(1), "value": "old"})
    store.tables.put("example", {**row, "tid": version(2), "value": "new", "_ttl": 2})
    clock.advance(seconds=2)

    assert store.tables.get("example", {"value": "new"}, index="by_value").count == 0
    store.sweep()
    assert store.tables.get("example", {"value": "old"}, index="by_value").count == 1
    assert store.tables.get("example", {"value": "new"}, index="by_value").count == 0


def test_an_index_tells_the_ttl_of_its_row(store: Store) -> None:
    schema = simple(secondaryIndexes={"by_value": [hash_on("value"), proj_of("place")]})
    store.tables.create(schema)
    store.tables.put("simple", {**KEY, "value": "x", "_ttl": 7})

    page = store.tables.get("simple", {"value": "x"}, index="by_value", with_ttl=True)
    assert page.items == [{"value": "x", "place": 1, "key": "a", "_ttl": 7}]


def test_rows_with_versions_of_any_variant_are_removed_when_they_expire(
    store: Store, clock: Clock
) -> None:
    store.tables.create(example())
    for rest in (0, 2**64 - 1):  # Cassandra's drivers make such bounds of a time
        tid = version(1, rest)
        store.tables.put("example", {"name": "a", "property": "p", "tid": tid, "_ttl": 2})
    clock.advance(seconds=2)

    store.sweep()

    assert store.tables.facts("example").rows == 0


def put_revisions(store: Store, ttl_of: Callable[[int], int], *, count: int) -> None:
    store.tables.create(example(secondaryIndexes={"by_length": [hash_on("length")]}))
    for second in range(count):
        attributes = {"name": "a", "property": "p", "tid": version(second), "length": second}
        store.tables.put("example", {**attributes, "_ttl": ttl_of(second)})


def current(store: Store) -> list[int]:
    """The values that the index finds."""
    counts = [
        store.tables.get("example", {"length": n}, index="by_length").count for n in range(40)
    ]
    return [second for second, count in enumerate(counts) if count]


def sweep_all(store: Store, clock: Clock) -> None:
    while store.sweep():
        clock.advance(seconds=EXPIRY_RETRY_MS / 1000)


def test_a_record_whose_revisions_expire_together_is_removed_in_bounded_steps(
    store: Store, clock: Clock
) -> None:
    put_revisions(store, lambda second: 60, count=200)
    clock.advance(seconds=60)

    store.tables.put("example", {"name": "other", "property": "p"})

    most = EXPIRED_PER_WRITE + EXPIRED_REVISIONS_PER_STEP
    assert 200 - most <= store.tables.facts("example").rows <= 200
    sweep_all(store, clock)
    facts = store.tables.facts("example")
    assert (facts.rows, facts.entries, facts.expiring) == (1, 0, 0)


def test_a_deleted_revision_takes_a_bounded_number_of_expired_ones_with_it(
    store: Store, clock: Clock
) -> None:
    put_revisions(store, lambda second: 60 if second < 99 else 90, count=100)
    clock.advance(seconds=60)

    with store.transaction() as tx:  # a delete alone would also remove what is due
        tx.tables.delete("example", {"name": "a", "property": "p", "tid": version(99)})
        rows = tx.tables.facts("example").rows

    assert rows == 99 - EXPIRED_REVISIONS_PER_STEP
    assert current(store) == []


def test_each_revision_that_outlives_the_newer_ones_becomes_current_in_turn(
    store: Store, clock: Clock
) -> None:
    put_revisions(store, lambda second: 100 - second, count=40)

    for second in range(39, -1, -1):
        assert current(store) == [second]
        clock.advance(seconds=100 - second - (clock() - BEGINNING))
        sweep_all(store, clock)
    assert current(store) == []


def test_a_record_stores_a_bounded_number_of_fallbacks(store: Store) -> None:
    put_revisions(store, lambda second: 100 - second, count=40)

    assert store.tables.facts("example").entries == 1 + MAX_FALLBACKS
    store.tables.delete("example", {"name": "a", "property": "p", "tid": version(39)})
    assert store.tables.facts("example").entries == 1 + MAX_FALLBACKS
    assert store.admin.check().problems == []
