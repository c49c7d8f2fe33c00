"""The five retention policies, exact in the writing transaction."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.errors import InvalidTableSchema
from holdfast.store import Store
from holdfast.tables.row_codec import StoredRow
from holdfast.tables.row_writer import RowWriter
from holdfast.testing import Clock
from tests.repetitions import repeated
from tests.stores import Stores
from tests.tables.schemas import Schema, example, range_on, simple, version

ROW = {"name": "a", "property": "p"}


def kept_by(**policy: Any) -> Schema:
    return example(revisionRetentionPolicy=policy)


def put(store: Store, second: float, **attributes: Any) -> None:
    store.tables.put("example", {**ROW, "tid": version(second), **attributes})


def seconds(store: Store, **attributes: Any) -> list[int]:
    items = store.tables.get("example", {"name": "a", **attributes}).items
    return [round((item["tid"].time - version(0).time) / 10_000_000) for item in items]


def test_all_keeps_all(store: Store) -> None:
    store.tables.create(kept_by(type="all"))
    for second in range(10):
        put(store, second)

    assert len(seconds(store)) == 10


def test_latest_keeps_the_newest_and_gives_the_others_a_grace(store: Store, clock: Clock) -> None:
    store.tables.create(kept_by(type="latest", count=2, grace_ttl=5))
    for second in (1, 2, 3):
        put(store, second)
    clock.advance(seconds=2.5)
    put(store, 4)

    assert seconds(store) == [4, 3, 2, 1]
    clock.advance(seconds=2.499)
    assert seconds(store) == [4, 3, 2, 1]
    clock.advance(seconds=0.001)
    assert seconds(store) == [4, 3, 2]
    clock.advance(seconds=2.5)
    assert seconds(store) == [4, 3]
    clock.advance(seconds=1_000)
    assert seconds(store) == [4, 3]


def test_latest_without_grace_removes_at_once(store: Store) -> None:
    store.tables.create(kept_by(type="latest", count=1, grace_ttl=0))
    for second in (5, 3, 7):
        put(store, second)

    assert seconds(store) == [7]
    assert store.tables.facts("example").rows == 1


def test_a_late_old_revision_is_the_one_that_goes(store: Store, clock: Clock) -> None:
    store.tables.create(kept_by(type="latest", count=2, grace_ttl=5))
    for second in (10, 11, 1):
        put(store, second)

    clock.advance(seconds=5)
    assert seconds(store) == [11, 10]


def test_overwriting_a_condemned_revision_does_not_save_it(store: Store, clock: Clock) -> None:
    store.tables.create(kept_by(type="latest", count=1, grace_ttl=5))
    put(store, 1)
    put(store, 2)
    clock.advance(seconds=3)
    put(store, 1, value="again")

    clock.advance(seconds=2)
    assert seconds(store) == [2]


def test_five_revisions_of_many_are_kept(store: Store, clock: Clock) -> None:
    store.tables.create(kept_by(type="latest", count=5, grace_ttl=0))
    for second in range(20):
        put(store, second)

    assert seconds(store) == [19, 18, 17, 16, 15]


def test_records_do_not_disturb_each_other(store: Store) -> None:
    store.tables.create(kept_by(type="latest", count=1, grace_ttl=0))
    for prop in ("p", "q"):
        for second in (1, 2):
            store.tables.put("example", {"name": "a", "property": prop, "tid": version(second)})

    assert store.tables.get("example", {"name": "a"}).count == 2


def test_latest_with_count_zero_expires_every_revision(store: Store, clock: Clock) -> None:
    store.tables.create(kept_by(type="latest", count=0, grace_ttl=2))
    put(store, 1)
    clock.advance(seconds=1)
    put(store, 2)

    clock.advance(seconds=1)
    assert seconds(store) == [2]
    clock.advance(seconds=1)
    assert seconds(store) == []


def test_latest_in_an_unversioned_table_has_no_effect(store: Store, clock: Clock) -> None:
    policy = {"type": "latest", "count": 1, "grace_ttl": 0}
    store.tables.create(simple(revisionRetentionPolicy=policy))
    for place in (1, 2):
        store.tables.put("simple", {"key": "a", "place": place})

    clock.advance(seconds=100)
    assert store.tables.get("simple").count == 2


def test_interval_keeps_the_newest_of_each_interval(store: Store) -> None:
    store.tables.create(kept_by(type="interval", count=1, interval=10, grace_ttl=0))
    for second in (1, 2, 11, 13, 12, 29):
        put(store, second)

    assert seconds(store) == [29, 13, 2]


def test_a_backfill_touches_its_own_interval_only(store: Store) -> None:
    store.tables.create(kept_by(type="interval", count=2, interval=10, grace_ttl=0))
    for second in (21, 22, 23, 1, 2, 3):
        put(store, second)

    assert seconds(store) == [23, 22, 3, 2]


def test_intervals_may_have_fractions_and_lie_before_1970(store: Store) -> None:
    store.tables.create(kept_by(type="interval", count=1, interval=0.5, grace_ttl=0))
    for second in (-0.6, -0.55, -0.4, 0.1, 0.4, 0.6):
        put(store, second, value=str(second))

    items = store.tables.get("example", {"name": "a"}).items
    assert [item["value"] for item in items] == ["0.6", "0.4", "-0.4", "-0.55"]


def test_ttl_expires_and_a_put_renews(store: Store, clock: Clock) -> None:
    store.tables.create(simple(revisionRetentionPolicy={"type": "ttl", "ttl": 2}))
    store.tables.put("simple", {"key": "a", "place": 1})
    clock.advance(seconds=1.5)
    store.tables.put("simple", {"key": "a", "place": 1})
    clock.advance(seconds=1.999)

    assert store.tables.get("simple").count == 1
    clock.advance(seconds=0.001)
    assert store.tables.get("simple").count == 0


@pytest.mark.parametrize(("order", "kept"), [("asc", 1), ("desc", 3)])
def test_latest_hash_keeps_the_first_row_in_the_declared_order(
    store: Store, order: str, kept: int
) -> None:
    index = [*simple()["index"][:1], range_on("place", order)]
    store.tables.create(simple(index=index, revisionRetentionPolicy={"type": "latest_hash"}))
    for place in (2, 1, 3):
        assert store.tables.put("simple", {"key": "a", "place": place}).applied
    store.tables.put("simple", {"key": "b", "place": 9})

    assert [item["place"] for item in store.tables.get("simple", {"key": "a"}).items] == [kept]
    assert store.tables.get("simple", {"key": "b"}).count == 1


def test_latest_hash_ends_with_the_version(store: Store) -> None:
    store.tables.create(kept_by(type="latest_hash"))
    for prop, second in (("p", 1), ("p", 2), ("q", 5), ("p", 0)):
        store.tables.put("example", {"name": "a", "property": prop, "tid": version(second)})

    [item] = store.tables.get("example", {"name": "a"}).items
    assert (item["property"], item["tid"]) == ("p", version(2))


def test_a_changed_policy_applies_from_the_next_put_of_each_record(
    store: Store, clock: Clock
) -> None:
    store.tables.create(kept_by(type="all"))
    for second in range(1, 8):
        put(store, second)
    policy = {"type": "latest", "count": 2, "grace_ttl": 5}
    store.tables.create(example(version=2, revisionRetentionPolicy=policy))
    assert len(seconds(store)) == 7

    put(store, 3, value="touched")

    clock.advance(seconds=5)
    assert seconds(store) == [7, 6]
    policy = {"type": "latest", "count": 3, "grace_ttl": 0}
    store.tables.create(example(version=3, revisionRetentionPolicy=policy))
    for second in (8, 9, 10):
        put(store, second)
    assert seconds(store) == [10, 9, 8]


@pytest.mark.parametrize("policy", [{"count": 2, "grace_ttl": 0}, {"count": 2, "grace_ttl": 5}])
@pytest.mark.parametrize("late", [False, True])
def test_a_changed_policy_prunes_a_long_record_by_several_puts(
    store: Store,
    clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
    policy: dict[str, int],
    late: bool,
) -> None:
    monkeypatch.setattr("holdfast.tables.row_writer.PRUNED_PER_TRANSACTION", 3)
    store.tables.create(kept_by(type="all"))
    for second in range(1, 13):
        put(store, second)
    latest = {"type": "latest", **policy}
    store.tables.create(example(version=2, revisionRetentionPolicy=latest))

    put(store, 9 if late else 13)
    clock.advance(seconds=5)
    assert len(seconds(store)) == (9 if late else 10)
    for second in range(14, 18):
        put(store, second)

    clock.advance(seconds=5)
    assert seconds(store) == [17, 16]
    put(store, 18)
    clock.advance(seconds=5)
    assert seconds(store) == [18, 17]


def test_a_put_reads_a_bounded_number_of_rows_that_expire_anyway(
    store: Store, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.tables.row_writer.PRUNED_PER_TRANSACTION", 3)
    monkeypatch.setattr("holdfast.tables.row_writer.MAX_EXPIRING_ROWS_READ", 3)
    store.tables.create(kept_by(type="all"))
    for second in range(1, 13):
        put(store, second)
    latest = {"type": "latest", "count": 1, "grace_ttl": 5}
    store.tables.create(example(version=2, revisionRetentionPolicy=latest))

    for second in range(13, 19):
        put(store, second)
    clock.advance(seconds=5)
    assert len(seconds(store)) > 1
    for _ in range(5):
        put(store, 19)
        store.sweep()
        clock.advance(seconds=5)
        store.sweep()

    assert seconds(store) == [19]


def test_latest_hash_prunes_a_long_hash_key_by_several_puts(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.tables.row_writer.PRUNED_PER_TRANSACTION", 3)
    store.tables.create(kept_by(type="all"))
    for second in range(1, 13):
        put(store, second)
    store.tables.create(example(version=2, revisionRetentionPolicy={"type": "latest_hash"}))

    put(store, 13)
    assert len(seconds(store)) == 10
    for second in range(14, 19):
        put(store, second)

    assert seconds(store) == [18]


@pytest.mark.parametrize(
    "policy", [{"type": "latest", "count": 1, "grace_ttl": 0}, {"type": "latest_hash"}]
)
def test_the_puts_of_a_transaction_prune_a_bounded_number_of_rows_together(
    store: Store, monkeypatch: pytest.MonkeyPatch, policy: Schema
) -> None:
    monkeypatch.setattr("holdfast.tables.row_writer.PRUNED_PER_TRANSACTION", 3)
    store.tables.create(kept_by(type="all"))
    for second in range(1, 21):
        put(store, second)
    store.tables.create(example(version=2, revisionRetentionPolicy=policy))
    one = {"op": "put", "table": "example", "attributes": ROW}
    tids = [version(second) for second in range(21, 26)]

    store.tables.batch([one | {"attributes": {**ROW, "tid": tid}} for tid in tids])

    # Five rows came, and each put may remove one if it has to.
    assert 25 - 3 - 5 <= store.tables.facts("example").rows <= 25 - 3
    for second in range(26, 40):
        put(store, second)
    assert seconds(store) == [39]


def test_a_late_revision_does_not_cost_a_read_of_all_that_expire(
    store: Store, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.tables.create(kept_by(type="latest", count=2, grace_ttl=60))
    for second in range(50, 100):
        put(store, second)
    read = []
    between = RowWriter.rows_between

    def counted(writer: RowWriter, begin: bytes, end: bytes) -> Iterator[tuple[bytes, StoredRow]]:
        for pair in between(writer, begin, end):
            read.append(pair)
            yield pair

    monkeypatch.setattr(RowWriter, "rows_between", counted)
    put(store, 10)
    put(store, 60)

    assert len(read) == 4
    assert len(seconds(store)) == 51
    clock.advance(seconds=60)
    assert seconds(store) == [99, 98]


def test_a_put_reads_a_bounded_number_of_expiring_rows_before_the_first_that_stays(
    store: Store, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.tables.row_writer.MAX_EXPIRING_ROWS_READ", 3)
    store.tables.create(kept_by(type="ttl", ttl=60))
    put(store, 1)
    store.tables.create(
        example(version=2, revisionRetentionPolicy={"type": "latest", "count": 2, "grace_ttl": 0})
    )
    put(store, 2)
    store.tables.create(example(version=3, revisionRetentionPolicy={"type": "ttl", "ttl": 60}))
    for second in range(3, 13):
        put(store, second)
    store.tables.create(
        example(version=4, revisionRetentionPolicy={"type": "latest", "count": 1, "grace_ttl": 0})
    )
    put(store, 13)
    assert len(seconds(store)) == 13

    clock.advance(seconds=60)
    store.sweep()
    put(store, 14)

    assert seconds(store) == [14]


def test_a_policy_keeps_a_bounded_number_of_revisions(store: Store) -> None:
    with pytest.raises(InvalidTableSchema, match="at most 1000,"):
        store.tables.create(kept_by(type="latest", count=1_001, grace_ttl=0))


POLICIES = st.sampled_from(
    [
        {"type": "all"},
        {"type": "latest", "count": 1, "grace_ttl": 0},
        {"type": "latest", "count": 2, "grace_ttl": 3},
        {"type": "latest", "count": 0, "grace_ttl": 2},
        {"type": "interval", "count": 1, "interval": 4, "grace_ttl": 0},
        {"type": "interval", "count": 2, "interval": 5, "grace_ttl": 2},
        {"type": "ttl", "ttl": 4},
        {"type": "latest_hash"},
    ]
)
EVENTS = st.lists(
    st.tuples(st.sampled_from("pq"), st.integers(0, 15))  # a put of (property, second)
    | st.sampled_from([0.5, 1.0, 2.5])  # or time that passes
    | POLICIES,  # or another policy
    max_size=25,
)


def apply_to_model(
    rows: dict[tuple[str, int], float | None],
    policy: dict[str, Any],
    written: tuple[str, int],
    now: float,
) -> None:
    """The specification, row by row: `rows` maps (property, second) to its expiry."""
    prop, second = written
    for row, expires in list(rows.items()):
        if expires is not None and expires <= now:
            del rows[row]
    rows.setdefault(written, None)
    kind, grace = policy["type"], policy.get("grace_ttl", 0)
    if kind == "ttl" or (kind == "latest" and policy["count"] == 0):
        rows[written] = now + policy.get("ttl", grace)
        return
    record = [row for row, expires in rows.items() if row[0] == prop and expires is None]
    if kind == "interval":
        begin = second - second % policy["interval"]
        record = [row for row in record if begin <= row[1] < begin + policy["interval"]]
    if kind in ("latest", "interval"):
        for row in sorted(record, key=lambda row: -row[1])[policy["count"] :]:
            rows[row] = now + grace
    if kind == "latest_hash":
        free = sorted((r for r, e in rows.items() if e is None), key=lambda r: (r[0], -r[1]))
        for row in free[1:]:
            del rows[row]


@settings(
    max_examples=repeated(40, full=80), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
@given(first=POLICIES, events=EVENTS)
def test_every_policy_does_what_a_simple_model_does(
    stores: Stores, first: dict[str, Any], events: list[Any]
) -> None:
    clock = Clock(1_000_000.0)
    rows: dict[tuple[str, int], float | None] = {}
    policy, number = first, 1
    with stores.open(clock=clock) as store:
        store.tables.create(example(revisionRetentionPolicy=policy))
        for event in events:
            if isinstance(event, float):
                clock.advance(seconds=event)
            elif isinstance(event, dict):
                policy, number = event, number + 1
                store.tables.create(example(version=number, revisionRetentionPolicy=policy))
            else:
                prop, second = event
                store.tables.put("example", {"name": "a", "property": prop, "tid": version(second)})
                apply_to_model(rows, policy, event, clock())
            live = {row for row, e in rows.items() if e is None or e > clock()}
            found = {
                (item["property"], round((item["tid"].time - version(0).time) / 10_000_000))
                for item in store.tables.get("example").items
            }
            assert found == live
