"""Batch: all or nothing."""

import itertools
from typing import Any

import pytest

from holdfast.errors import (
    BatchTooLong,
    InvalidTableRequest,
    PreconditionFailed,
    TableError,
    UnknownAttribute,
)
from holdfast.store import Store
from tests.tables.schemas import example, simple

pytestmark = pytest.mark.every_engine


def put(table: str, condition: Any = None, **attributes: Any) -> dict[str, Any]:
    operation = {"op": "put", "table": table, "attributes": attributes}
    return operation if condition is None else {**operation, "if": condition}


@pytest.fixture
def tables(store: Store) -> Store:
    store.tables.create(simple())
    store.tables.create(example())
    return store


def test_several_tables_change_together(tables: Store) -> None:
    tables.tables.put("simple", {"key": "old", "place": 1})
    result = tables.tables.batch(
        [
            put("simple", key="a", place=1),
            put("example", name="n", property="p"),
            {"op": "delete", "table": "simple", "attributes": {"key": "old"}},
            put("simple", key="a", place=1, value="merged"),
        ]
    )

    assert (result.applied, result.failed) == (True, None)
    assert [step.count for step in result.results] == [None, None, 1, None]
    assert result.results[1].tid is not None
    assert tables.tables.get("simple").items == [{"key": "a", "place": 1, "value": "merged"}]
    assert tables.tables.get("example").count == 1
    assert tables.tables.facts("simple").rows == 1


def test_if_one_condition_fails_nothing_is_applied(tables: Store) -> None:
    tables.tables.put("simple", {"key": "b", "place": 1})
    result = tables.tables.batch(
        [
            put("simple", key="a", place=1),
            put("simple", "not exists", key="b", place=1),
        ]
    )

    assert (result.applied, result.failed, result.results) == (False, 1, [])
    assert tables.tables.get("simple", {"key": "a"}).count == 0


def test_conditions_look_at_what_was_stored_before(tables: Store) -> None:
    twice = [put("simple", "not exists", key="a", place=1, value=value) for value in "xy"]

    assert tables.tables.batch(twice).applied
    assert tables.tables.get("simple").items[0]["value"] == "y"


def test_a_bad_operation_is_named_and_nothing_is_applied(tables: Store) -> None:
    with pytest.raises(UnknownAttribute, match="operation 1: Unknown attribute nope"):
        tables.tables.batch(
            [put("simple", key="a", place=1), put("simple", key="a", place=2, nope=1)]
        )

    assert tables.tables.get("simple").count == 0


def test_an_etag_that_does_not_match_is_named_and_nothing_is_applied(tables: Store) -> None:
    there = put("simple", key="a", place=1)
    tables.tables.batch([there])

    for bad in ({**there, "if_none_match": "*"}, {**there, "op": "delete", "if_none_match": "*"}):
        with pytest.raises(PreconditionFailed, match="operation 1: The row has the etag"):
            tables.tables.batch([put("simple", key="b", place=1), bad])

    assert tables.tables.get("simple").items == [{"key": "a", "place": 1, "value": None}]


@pytest.mark.parametrize(
    "operations",
    [
        {},
        [[]],
        [{"op": "put"}],
        [{"op": "get", "table": "simple"}],
        [{**put("simple", key="a", place=1), "limit": 1}],
        [put("simple", key="a", place=1)] * 1_001,
        [put("missing", key="a")],
        [{"op": "delete", "table": "simple", "attributes": {}}],
        [{**put("simple", key="a", place=1), "if_match": 5}],
        [{**put("simple", key="a", place=1), "if_none_match": ["*"]}],
        [{**put("simple", key="a", place=1), "op": "delete", "if_match": 5}],
    ],
)
def test_a_batch_of_a_wrong_shape_is_refused(tables: Store, operations: Any) -> None:
    with pytest.raises(TableError):
        tables.tables.batch(operations)


def test_a_batch_is_at_most_a_thousand(tables: Store) -> None:
    rows = [put("simple", key="a", place=place) for place in range(1_000)]

    assert tables.tables.batch(rows).applied
    with pytest.raises(InvalidTableRequest, match="1000"):
        tables.tables.batch([*rows, rows[0]])


def test_a_batch_that_takes_long_is_refused(tables: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = itertools.count()
    monkeypatch.setattr("holdfast.call_time.thread_time", lambda: next(seconds))

    with pytest.raises(BatchTooLong):
        tables.tables.batch([put("simple", key="a", place=place) for place in range(10)])

    assert tables.tables.get("simple").count == 0
