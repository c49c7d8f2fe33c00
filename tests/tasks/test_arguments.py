"""Arguments: stored by name, converted by annotation, refused where they do not fit."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any, Literal, TypedDict
from uuid import UUID

import msgspec
import pytest

from holdfast.entities import Col, Model, column
from holdfast.errors import BadTaskArgument
from holdfast.store import Store
from holdfast.tasks import Tasks
from holdfast.testing import run_tasks


class Size(Enum):
    SMALL = "s"
    LARGE = "l"


@dataclass
class Point:
    x: int
    y: int


class Address(msgspec.Struct):
    street: str
    since: date


class Line(TypedDict):
    sku: str
    count: int


class Order(Model, schema="shop", table="Orders"):
    customer: Col[str] = column(required=True)
    at: Col[datetime | None] = column(default=None)
    labels: Col[set[str]] = column(default=set())


NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
VALUES: list[tuple[Any, Any]] = [
    (datetime, NOON),
    (date, date(2026, 1, 2)),
    (timedelta, timedelta(seconds=90)),
    (UUID, UUID(int=7)),
    (Decimal, Decimal("1.10")),
    (Size, Size.LARGE),
    (Point, Point(1, 2)),
    (Address, Address("Main St", date(2026, 1, 2))),
    (Line, {"sku": "a", "count": 2}),
    (Order, Order(customer="ann", at=NOON, labels={"new"})),
    (set[int], {1, 2}),
    (bytes, b"\x00\xff"),
    (list[Point], [Point(1, 2), Point(3, 4)]),
    (dict[int, date], {1: date(2026, 1, 2)}),
    (tuple[int, str], (1, "a")),
    (str | None, None),
    (Literal["a", "b"], "b"),
    (float, 3),
    (int | str, "x"),
    (bool, True),
]


def task_of(tasks: Tasks, annotation: Any, got: list[Any]) -> Any:
    def function(value: Any) -> None:
        got.append(value)

    function.__annotations__["value"] = annotation
    return tasks.task(name="function")(function)


@pytest.mark.parametrize(("annotation", "value"), VALUES, ids=[str(each[0]) for each in VALUES])
def test_a_value_keeps_its_type(store: Store, annotation: Any, value: Any) -> None:
    tasks, got = Tasks(queue="q"), list[Any]()

    task_of(tasks, annotation, got).put(store, value)
    run_tasks(store, tasks)

    assert got == [value]


@pytest.mark.parametrize(("annotation", "value"), VALUES, ids=[str(each[0]) for each in VALUES])
def test_a_result_keeps_its_type(store: Store, annotation: Any, value: Any) -> None:
    tasks = Tasks(queue="q")

    def function() -> Any:
        return value

    function.__annotations__["return"] = annotation
    job = tasks.task(name="function")(function).put(store)
    run_tasks(store, tasks)

    assert job.result() == value


@pytest.mark.parametrize(
    ("annotation", "value", "words"),
    [
        (str, 7, "value of function is an int, expected str"),
        (int, "7", "is a str, expected int"),
        (str | None, 7, "expected str or None"),
        (datetime, "noon", "is a str, expected datetime"),
        (list[int], [1, "x"], r"value\[1\] is a str, expected int"),
        (Point, {"x": 1, "y": 2}, "is a dict, expected Point"),
        (dict[str, float], {"a": float("nan")}, r"value\[\"a\"\] is the float nan"),
        (object, {1, 2}, "value is a set, and has no annotation"),
        (Any, [NOON], r"value\[0\] is a datetime, and has no annotation"),
    ],
)
def test_what_does_not_fit_is_refused_at_put_by_its_name(
    store: Store, annotation: Any, value: Any, words: str
) -> None:
    task = task_of(Tasks(queue="q"), annotation, [])

    with pytest.raises(BadTaskArgument, match=words):
        task.put(store, value)

    assert store.jobs.length("q") == 0


@pytest.mark.parametrize(
    "call",
    [
        lambda put: put(),
        lambda put: put("a", "b", "c"),
        lambda put: put("a", unknown=1),
    ],
)
def test_a_call_that_does_not_fit_the_signature_is_refused(
    store: Store, call: Callable[..., Any]
) -> None:
    tasks = Tasks()

    @tasks.task
    def function(order: str, copy: str = "") -> None: ...

    with pytest.raises(BadTaskArgument, match="don't fit"):
        call(lambda *args, **kwargs: function.put(store, *args, **kwargs))


@pytest.mark.every_engine
@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"lines": [{"sku": "a", "count": "x"}]}, r"lines\[0\].count is a str, expected int"),
        ({}, "lines: function needs it, and it is missing"),
        ({"lines": [], "old": 1}, "old: function has no such parameter"),
        ([1, 2], "not an object"),
    ],
)
def test_a_stored_job_that_does_not_fit_fails_at_once_with_the_path(
    store: Store, data: Any, words: str
) -> None:
    tasks = Tasks(queue="q")

    @tasks.task(name="function", retries=5)
    def function(lines: list[Line], note: str = "") -> None:
        raise AssertionError("it must not run")

    id = store.jobs.put("q", "function", data)
    run_tasks(store, tasks, keep_failures=True)

    job = store.jobs.get(id)
    assert job is not None
    assert job.failure is not None
    assert (job.state, job.failure.group, job.remaining) == ("failed", "q-bad-arguments", 5)
    assert re.search(words, job.failure.message)


def test_a_stored_job_may_leave_out_what_has_a_default(store: Store) -> None:
    tasks, got = Tasks(queue="q"), list[Any]()

    @tasks.task(name="function")
    def function(order: str, note: str = "none") -> None:
        got.append((order, note))

    store.jobs.put("q", "function", {"order": "1001", "$traceparent": "00-1-2-01"})
    run_tasks(store, tasks)

    assert got == [("1001", "none")]


def test_every_kind_of_parameter_is_kept(store: Store) -> None:
    tasks, got = Tasks(queue="q"), list[Any]()

    @tasks.task
    def function(
        first: date, /, second: int, *rest: date, third: str = "c", **more: Decimal
    ) -> None:
        got.append((first, second, rest, third, more))

    day = date(2026, 1, 2)
    function.put(store, day, 2, day, third="x", extra=Decimal("1.5"))
    function.put(store, day, 2)
    run_tasks(store, tasks)

    assert got == [
        (day, 2, (day,), "x", {"extra": Decimal("1.5")}),
        (day, 2, (), "c", {}),
    ]


def test_a_result_that_can_not_be_kept_fails_the_job(store: Store) -> None:
    tasks = Tasks(queue="q")

    @tasks.task(name="function")
    def function() -> object:
        return object()

    function.put(store)
    run_tasks(store, tasks, keep_failures=True)

    assert store.jobs.failed() == {"q-bad-result": 1}


class Counted(Model, schema="shop", table="Counted"):
    views: int = column(type="Uint")
    ranks: set[int] = column(subtype="Uint")


def test_an_object_with_unsigned_columns_travels(store: Store) -> None:
    tasks, seen = Tasks(), list[Any]()

    @tasks.task
    def count(counted: Counted) -> None:
        seen.append((counted.views, counted.ranks))

    count.put(store, Counted(views=2**63, ranks={1}))
    run_tasks(store, tasks)

    assert seen == [(2**63, {1})]
