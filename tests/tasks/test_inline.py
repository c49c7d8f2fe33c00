"""Running tasks inline, in the tests of those who use them."""

from collections.abc import Callable
from typing import Any

import pytest

from holdfast.errors import HoldfastError
from holdfast.store import Store
from holdfast.tasks import Snooze, Tasks
from holdfast.testing import Clock, run_tasks


def test_what_is_due_runs_in_order_and_is_returned(store: Store, clock: Clock) -> None:
    tasks = Tasks(queue="q")

    @tasks.task(name="double")
    def double(number: int) -> int:
        if number < 3:
            double.put(store, number + 10)
        return 2 * number

    double.put(store, 1)
    double.options(priority=5).put(store, 7)
    double.options(delay=60).put(store, 30)

    ran = run_tasks(store, tasks)
    assert [(each.task, each.outcome.result) for each in ran] == [
        ("double", 14),
        ("double", 2),
        ("double", 22),
    ]

    clock.advance(seconds=60)
    assert [each.outcome.result for each in run_tasks(store, tasks)] == [60]


def test_an_exception_surfaces_as_it_is_after_its_job_was_settled(store: Store) -> None:
    tasks, error = Tasks(queue="q"), OSError("no route")

    @tasks.task(retries=0)
    def work() -> None:
        raise error

    job = work.put(store)

    with pytest.raises(OSError, match="no route") as raised:
        run_tasks(store, tasks)

    assert raised.value is error
    assert job.get().state == "failed"  # type: ignore[union-attr]


def test_snoozing_is_no_failure(store: Store) -> None:
    tasks = Tasks(queue="q")

    @tasks.task
    def work() -> None:
        raise Snooze(60)

    work.put(store)
    [ran] = run_tasks(store, tasks)

    assert ran.outcome.what == "retry"


def test_a_task_that_puts_itself_for_ever_is_noticed(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.tasks.inline.MAX_JOBS_PER_CALL", 20)
    tasks = Tasks(queue="q")

    @tasks.task
    def work() -> None:
        work.put(store)

    work.put(store)
    with pytest.raises(HoldfastError, match="put itself again"):
        run_tasks(store, tasks)


def test_the_fixture_runs_what_is_due_in_its_store(
    holdfast_store: Store, tasks_run: Callable[..., list[Any]]
) -> None:
    tasks = Tasks()
    job = tasks.task(name="one")(lambda: 1).put(holdfast_store)

    [ran] = tasks_run(tasks)

    assert ran.job.id == job.id
    assert tasks_run(tasks, keep_failures=True) == []
