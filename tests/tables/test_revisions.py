"""An index agrees with its table at every moment, whatever expires and whenever it is removed."""

from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.store import Store
from holdfast.tables.versions import ticks_of
from holdfast.testing import Clock
from tests.stores import Stores
from tests.tables.schemas import example, hash_on, proj_of, range_on, static_on, version

INDEXES = {
    "by_value": [hash_on("value"), proj_of("length")],
    "by_length": [hash_on("length"), range_on("value", "desc")],
    "by_tid": [hash_on("tid"), proj_of("value")],
}
POLICIES: list[dict[str, Any]] = [
    {"type": "all"},
    {"type": "latest", "count": 1, "grace_ttl": 5},
    {"type": "latest", "count": 2, "grace_ttl": 0},
    {"type": "interval", "count": 1, "interval": 4, "grace_ttl": 3},
    {"type": "ttl", "ttl": 6},
]
Row = dict[str, Any]

VALUES = st.sampled_from(["u1", "u2", None])
PUTS = st.tuples(
    st.just("put"), st.sampled_from("ab"), st.integers(1, 8), VALUES, st.sampled_from([1, 2]),
    st.sampled_from([None, 1, 2, 4, 9, "keep"]),
)  # fmt: skip
DELETES = st.tuples(st.just("delete"), st.sampled_from("ab"), st.integers(1, 8))
WAITS = st.tuples(st.just("wait"), st.sampled_from([0.5, 1, 3, 10]))
SWEEPS = st.tuples(st.just("sweep"))
STEPS = st.lists(st.one_of(PUTS, PUTS, DELETES, WAITS, WAITS, SWEEPS), max_size=14)


def rows_of(store: Store) -> list[Row]:
    return store.tables.get("example", with_ttl=True).items


def expected(rows: list[Row], index: str) -> list[Row]:
    """Returns what an index should find, by a plain reading of the table's own rows."""
    declared = [e["attribute"] for e in INDEXES[index] if e["type"] in ("hash", "range")]
    names = dict.fromkeys([*(e["attribute"] for e in INDEXES[index]), "property", "name", "tid"])
    current: dict[tuple[str, str], Row] = {}
    for row in rows:
        record = row["name"], row["property"]
        if record not in current or ticks_of(row["tid"]) > ticks_of(current[record]["tid"]):
            current[record] = row
    found = rows if "tid" in declared else list(current.values())
    return [
        {name: row[name] for name in names} | {"_ttl": row["_ttl"]}
        for row in found
        if all(row[name] is not None for name in declared)
    ]


def assert_indexes_agree(store: Store) -> None:
    rows = rows_of(store)
    for index in INDEXES:
        right = sorted(map(repr, (dict(sorted(r.items())) for r in expected(rows, index))))
        found = store.tables.get("example", index=index, with_ttl=True).items
        assert sorted(map(repr, (dict(sorted(r.items())) for r in found))) == right
        assert store.tables.get("example", index=index, count_only=True).count == len(right)
        assert len(list(store.tables.scan("example", index=index))) == len(right)
    for value in ("u1", "u2"):
        found = store.tables.get(
            "example", {"value": value}, index="by_value", proj=["name", "length"]
        ).items
        right_rows = [row for row in expected(rows, "by_value") if row["value"] == value]
        assert sorted((i["name"], i["length"]) for i in found) == sorted(
            (row["name"], row["length"]) for row in right_rows
        )


def take(store: Store, clock: Clock, step: tuple[Any, ...], *, takes_ttl: bool) -> None:
    if step[0] == "wait":
        clock.advance(seconds=step[1])
    elif step[0] == "sweep":
        store.sweep()
    elif step[0] == "delete":
        _, name, second = step
        store.tables.delete("example", {"name": name, "property": "p", "tid": version(second)})
    else:
        _, name, second, value, length, ttl = step
        row = {"name": name, "property": "p", "tid": version(second)}
        row |= {"value": value, "length": length}
        if takes_ttl and ttl != "keep":
            row["_ttl"] = ttl
        store.tables.put("example", row)


@pytest.mark.every_engine
def test_an_index_finds_what_a_record_becomes_when_its_newest_revision_expires(
    store: Store, clock: Clock
) -> None:
    store.tables.create(example(secondaryIndexes=INDEXES))
    row = {"name": "a", "property": "p"}
    store.tables.put("example", {**row, "tid": version(1), "value": "u1", "length": 1})
    store.tables.put("example", {**row, "tid": version(2), "value": "u2", "length": 2, "_ttl": 5})

    def found(value: str) -> list[Any]:
        page = store.tables.get("example", {"value": value}, index="by_value")
        return [item["length"] for item in page.items]

    assert (found("u1"), found("u2")) == ([], [2])
    clock.advance(seconds=5)
    assert (found("u1"), found("u2")) == ([1], [])
    store.sweep()
    assert (found("u1"), found("u2")) == ([1], [])


def test_a_record_that_keeps_its_value_keeps_its_place_when_a_revision_expires(
    store: Store, clock: Clock
) -> None:
    store.tables.create(example(secondaryIndexes=INDEXES))
    row = {"name": "a", "property": "p", "value": "same"}
    store.tables.put("example", {**row, "tid": version(1), "length": 1})
    store.tables.put("example", {**row, "tid": version(2), "length": 2, "_ttl": 5})

    def found() -> list[Any]:
        query: dict[str, Any] = {"index": "by_value", "proj": ["tid", "length"], "with_ttl": True}
        return store.tables.get("example", {"value": "same"}, **query).items

    before = found()
    clock.advance(seconds=5)
    after = found()

    assert before == [{"tid": version(2), "length": 2, "_ttl": 5}]
    assert after == [{"tid": version(1), "length": 1, "_ttl": None}]


def test_static_values_are_read_for_the_revision_that_is_current_now(
    store: Store, clock: Clock
) -> None:
    attributes = {**example()["attributes"], "note": "string"}
    index = [*example()["index"], static_on("note")]
    store.tables.create(example(attributes=attributes, index=index, secondaryIndexes=INDEXES))
    row = {"name": "a", "property": "p", "note": "shared"}
    store.tables.put("example", {**row, "tid": version(1), "value": "u1"})
    store.tables.put("example", {**row, "tid": version(2), "value": "u2", "_ttl": 5})
    clock.advance(seconds=6)

    page = store.tables.get("example", {"value": "u1"}, index="by_value", proj=["note", "value"])

    assert page.items == [{"note": "shared", "value": "u1"}]


def test_a_row_of_many_revisions_costs_no_more_to_put_than_of_few(store: Store) -> None:
    store.tables.create(
        example(secondaryIndexes=INDEXES, revisionRetentionPolicy={"type": "ttl", "ttl": 600})
    )
    for second in range(1, 60):
        row = {"name": "a", "property": "p", "tid": version(second), "value": "v", "length": 1}
        store.tables.put("example", row)

    assert store.tables.facts("example").entries == 59 + 2  # by_tid has all, the others the newest


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(steps=STEPS, policy=st.sampled_from(POLICIES), late=st.booleans())
def test_indexes_agree_with_the_table_at_every_moment(
    stores: Stores, steps: list[tuple[Any, ...]], policy: dict[str, Any], late: bool
) -> None:
    follow(stores, steps, policy, late=late)


@pytest.mark.every_engine
@pytest.mark.parametrize("seed", range(3))
def test_indexes_agree_with_the_table_on_every_engine(stores: Stores, seed: int) -> None:
    """Fixed steps, for engines on which many of them would take long."""
    random = Random(seed)
    steps: list[tuple[Any, ...]] = []
    for _ in range(12):
        row = random.choice("ab"), random.randint(1, 4)
        values = random.choice(["u1", "u2", None]), random.choice([1, 2])
        put = ("put", *row, *values, random.choice([None, 1, 2, 4, 9]))
        steps.append(random.choice([put, put, ("delete", *row), ("wait", 1), ("sweep",)]))

    follow(stores, steps, {"type": "all"}, late=seed == 2)


def follow(
    stores: Stores, steps: list[tuple[Any, ...]], policy: dict[str, Any], *, late: bool
) -> None:
    """Takes the steps, half of them before there is an index if it comes `late`."""
    clock = Clock()
    with stores.open(clock=clock) as store:
        indexes = {} if late else INDEXES
        store.tables.create(example(secondaryIndexes=indexes, revisionRetentionPolicy=policy))
        for number, step in enumerate(steps):
            if late and number == len(steps) // 2:
                add_indexes(store)
            take(store, clock, step, takes_ttl=policy["type"] == "all")
            if not late or number >= len(steps) // 2:
                assert_indexes_agree(store)
        if late and not steps:
            return
        for seconds in (0.5, 1, 2, 4, 8):
            clock.advance(seconds=seconds)
            assert_indexes_agree(store)
        assert list(store.admin.check().problems) == []


def add_indexes(store: Store) -> None:
    for name, elements in INDEXES.items():
        store.tables.add_index("example", name, elements)
        assert store.tables.build_index("example", name).complete
