"""Children of a workflow: gathered, failed, removed and canceled."""

from typing import Any

import pytest

from holdfast.errors import ChildFailed, JobNeeded
from holdfast.store import Store
from holdfast.tasks import Fail, Run, Tasks
from holdfast.tasks.execution import Runtime
from holdfast.testing import run_tasks

pytestmark = pytest.mark.every_engine


def gathering(tasks: Tasks, *, return_errors: bool = False) -> Any:
    @tasks.task(queue="children", retries=0)
    def resize(width: int) -> set[int]:
        if width < 0:
            raise Fail("bad-width", f"{width} is below 0")
        return {width}

    @tasks.workflow(name="gathering", retries=0)
    def resize_all(run: Run, widths: list[int]) -> list[str]:
        calls = [resize.call(width) for width in widths]
        if not return_errors:
            return [str(each) for each in run.gather(calls)]
        found = run.gather(calls, return_errors=True)
        return [each.group or "" if isinstance(each, ChildFailed) else str(each) for each in found]

    return resize_all


def test_children_run_on_any_worker_and_their_results_are_gathered(store: Store) -> None:
    tasks = Tasks(queue="q")
    job = gathering(tasks).put(store, [1, 2, 3])

    run_tasks(store, tasks)

    assert job.result(timeout=0) == ["{1}", "{2}", "{3}"]
    assert len(store.jobs.jobs("complete")) == 4


def test_a_failed_child_fails_its_workflow(store: Store) -> None:
    tasks = Tasks(queue="q")
    gathering(tasks).put(store, [1, -2, 3])

    run_tasks(store, tasks, keep_failures=True)

    assert store.jobs.failed() == {"bad-width": 1, "q-ChildFailed": 1}


def test_a_failed_child_may_be_an_outcome(store: Store) -> None:
    tasks = Tasks(queue="q")
    job = gathering(tasks, return_errors=True).put(store, [1, -2])

    run_tasks(store, tasks, keep_failures=True)

    assert job.result(timeout=0) == ["{1}", "bad-width"]


@pytest.mark.parametrize("value", [7, None])
def test_a_child_that_was_removed_meanwhile_still_counts(store: Store, value: int | None) -> None:
    store.jobs.config_set("jobs-history-count", 1)
    tasks, found = Tasks(queue="q"), list[int | None]()

    @tasks.task(queue="children", result_ttl=1)
    def child(number: int) -> int | None:
        return value if number == 1 else number

    @tasks.workflow(retries=0)
    def flow(run: Run) -> None:
        found.extend(run.gather([child.call(1), child.call(2)]))

    flow.put(store)
    run_tasks(store, tasks)

    assert found == [value, 2]
    assert len(store.jobs.jobs("complete")) == 1


def test_canceling_a_workflow_cancels_its_children(store: Store) -> None:
    tasks = Tasks(queue="q")
    job = gathering(tasks).put(store, [1, 2])
    run_and_report(store, tasks)
    assert store.jobs.length("children") == 2
    with pytest.raises(JobNeeded):
        store.jobs.cancel(f"{job.id}/0.0")

    store.jobs.cancel(job.id)

    assert store.jobs.length("children") == 0


def run_and_report(store: Store, tasks: Tasks) -> None:
    """Runs one job of the queue `q` and reports its outcome."""
    runtime = Runtime(tasks, store)
    attempt = runtime.attempt(store.jobs.pop("q", "w")[0])
    report = attempt.report(attempt.execute())
    runtime.close()
    assert report is not None
    store.jobs.report([report])
