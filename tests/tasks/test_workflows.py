"""Workflows: steps are remembered, and a run goes on where the last one stopped."""

import math
from datetime import date
from typing import Any
from uuid import UUID

import pytest

import holdfast
from holdfast.errors import BadTask, BadTaskArgument
from holdfast.store import Store
from holdfast.tasks import Batch, Run, Tasks, Tx, Worker, Workflow, fixed
from holdfast.tasks.execution import Runtime
from holdfast.testing import Clock, run_tasks, temporary_server
from tests.tasks.waiting import failure_of

pytestmark = pytest.mark.every_engine


class Crash(BaseException):
    """Ends a run as a kill does: nothing is reported."""


def run_and_crash(store: Store, tasks: Tasks) -> None:
    """Runs the next job until it crashes; then its lock is gone."""
    runtime = Runtime(tasks, store)
    [job] = store.jobs.pop("q", "w")
    runtime.attempt(job).execute()
    runtime.close()
    store.jobs.timeout(job.id)


def state(store: Store, id: str) -> str:
    job = store.jobs.get(id)
    return "gone" if job is None else job.state


def test_a_step_runs_once_and_later_runs_get_its_result(store: Store, clock: Clock) -> None:
    tasks, ran = Tasks(queue="q"), list[str]()

    def charge(order: str) -> date:
        ran.append("charge")
        return date(2026, 1, 2)

    def ship(order: str) -> str:
        ran.append("ship")
        if ran.count("ship") == 1:
            raise ConnectionError("no route")
        return f"shipped {order}"

    @tasks.workflow(retries=3, backoff=0)
    def fulfil(run: Run, order: str) -> str:
        day = run.step(charge, order)
        return f"{run.step(ship, order)} on {day:%d.%m.}"

    job = fulfil.put(store, "1001")
    run_tasks(store, tasks, keep_failures=True)

    assert job.result(timeout=0) == "shipped 1001 on 02.01."
    assert ran == ["charge", "ship", "ship"]


def test_a_crash_at_any_step_resumes_after_the_last_finished_one(store: Store) -> None:
    store.metrics.define({"done": {"lifetime": True}})
    tasks, ran, crash_at = Tasks(queue="q"), list[int](), [-1]

    def note(number: int) -> int:
        if number == crash_at[0]:
            crash_at[0] = -1
            raise Crash
        ran.append(number)
        return number

    def count(tx: Tx, number: int) -> int:
        tx.metrics.incr("done")
        return number

    @tasks.workflow(name="twenty")
    def twenty(run: Run) -> int:
        total = 0
        for number in range(10):
            total += run.step(note, number)
            total += run.transact(count, number)
        return total

    job = twenty.put(store)
    for number in range(10):
        crash_at[0] = number
        run_and_crash(store, tasks)
    run_tasks(store, tasks)

    assert job.result(timeout=0) == 90
    assert ran == list(range(10))
    assert store.metrics.lifetime("done") == 10


def test_a_step_may_have_retries_of_its_own(store: Store, clock: Clock) -> None:
    tasks, attempts = Tasks(queue="q"), list[float]()

    def reserve() -> str:
        attempts.append(clock())
        if len(attempts) < 3:
            raise OSError("busy")
        return "reserved"

    @tasks.workflow(retries=0)
    def fulfil(run: Run) -> str:
        return run.step(reserve, retries=3, backoff=fixed(5))

    job = fulfil.put(store)
    begun = clock()
    for _ in range(3):
        run_tasks(store, tasks)
        clock.advance(seconds=5)

    assert job.result(timeout=0) == "reserved"
    assert attempts == [begun, begun + 5, begun + 10]
    assert [step.attempts for step in fulfil.status(store, job.id).steps] == [3]


def test_a_failure_that_the_workflow_caught_is_remembered(store: Store) -> None:
    tasks, ran = Tasks(queue="q"), list[str]()

    def charge() -> None:
        ran.append("charge")
        raise ConnectionError("no route")

    def ask() -> str:
        ran.append("ask")
        return "asked"

    def end() -> None:
        ran.append("end")
        if ran.count("end") == 1:
            raise OSError

    @tasks.workflow(retries=1, backoff=0)
    def fulfil(run: Run) -> str:
        try:
            run.step(charge)
        except ConnectionError as error:
            why = str(error)
            answer = run.step(ask)
        run.step(end)
        return f"{answer}: {why}"

    job = fulfil.put(store)
    run_tasks(store, tasks, keep_failures=True)

    assert job.result(timeout=0) == "asked: no route"
    assert ran == ["charge", "ask", "end", "end"]


def test_sleep_frees_the_slot_and_uses_no_retry(store: Store, clock: Clock) -> None:
    tasks, ran = Tasks(queue="q"), list[str]()

    @tasks.workflow(retries=0)
    def remind(run: Run) -> None:
        run.step(ran.append, "first")
        run.sleep(days=3)
        run.step(ran.append, "second")

    job = remind.put(store)
    run_tasks(store, tasks)
    assert (state(store, job.id), ran) == ("scheduled", ["first"])

    clock.advance(seconds=3 * 86_400 - 1)
    run_tasks(store, tasks)
    assert ran == ["first"]
    clock.advance(seconds=1)
    run_tasks(store, tasks)

    assert (state(store, job.id), ran) == ("complete", ["first", "second"])


def waiting(tasks: Tasks) -> Workflow[Any, Any, [], str]:
    @tasks.workflow(name="waiting")
    def approve(run: Run) -> str:
        answer = run.wait("approved", timeout=100, default="nobody")
        run.sleep(1)
        return f"by {answer}"

    return approve


@pytest.mark.parametrize("is_early", [False, True])
def test_a_signal_ends_a_wait(store: Store, clock: Clock, is_early: bool) -> None:
    tasks = Tasks(queue="q")
    approve = waiting(tasks)
    job = approve.put(store)

    if not is_early:
        run_tasks(store, tasks)
        assert state(store, job.id) == "scheduled"
    approve.signal(store, job.id, "approved", "ann")
    run_tasks(store, tasks)
    clock.advance(seconds=1)
    run_tasks(store, tasks)

    assert job.result(timeout=0) == "by ann"


def test_a_wait_ends_with_its_timeout(store: Store, clock: Clock) -> None:
    tasks = Tasks(queue="q")
    job = waiting(tasks).put(store)

    for seconds in (100, 1, 0):
        run_tasks(store, tasks)
        clock.advance(seconds=seconds)

    assert job.result(timeout=0) == "by nobody"


def test_time_and_chance_are_remembered(store: Store, clock: Clock) -> None:
    tasks, seen = Tasks(queue="q"), list[tuple[float, UUID, float]]()

    @tasks.workflow
    def look(run: Run) -> None:
        seen.append((run.now(), run.uuid(), run.random()))
        run.sleep(10)

    look.put(store)
    run_tasks(store, tasks)
    clock.advance(seconds=10)
    run_tasks(store, tasks)

    assert len(seen) == 2
    assert seen[0] == seen[1]


def changed(tasks: Tasks, *, is_new: bool, versioned: bool) -> None:
    def old() -> str:
        return "old"

    def new() -> str:
        return "new"

    @tasks.workflow(name="flow", queue="q")
    def flow(run: Run) -> str:
        goes_new = is_new and (not versioned or run.version("new"))
        way = run.step(new if goes_new else old)
        run.sleep(10)
        return way


def test_a_changed_workflow_fails_and_names_both_steps(store: Store, clock: Clock) -> None:
    before, after = Tasks(queue="q"), Tasks(queue="q")
    changed(before, is_new=False, versioned=False)
    changed(after, is_new=True, versioned=False)
    store.jobs.put("q", "flow", {}, id="a")

    run_tasks(store, before)
    clock.advance(seconds=10)
    run_tasks(store, after, keep_failures=True)

    job = store.jobs.get("a")
    assert job is not None
    assert job.failure is not None
    assert job.failure.group == "q-WorkflowChanged"
    assert "old" in job.failure.message
    assert "new" in job.failure.message
    assert "run.version" in job.failure.message


def test_a_version_lets_workflows_that_are_under_way_go_the_old_way(
    store: Store, clock: Clock
) -> None:
    before, after = Tasks(queue="q"), Tasks(queue="q")
    changed(before, is_new=False, versioned=True)
    changed(after, is_new=True, versioned=True)
    store.jobs.put("q", "flow", {}, id="a")

    run_tasks(store, before)
    store.jobs.put("q", "flow", {}, id="b")
    run_tasks(store, after)
    clock.advance(seconds=10)
    run_tasks(store, after)

    assert (store.jobs.result("a"), store.jobs.result("b")) == ("old", "new")


def test_a_worker_that_lost_the_job_remembers_and_commits_nothing(store: Store) -> None:
    store.metrics.define({"done": {"lifetime": True}})
    tasks = Tasks(queue="q")

    def count(tx: Tx) -> None:
        tx.metrics.incr("done")

    @tasks.workflow
    def flow(run: Run) -> None:
        store.jobs.timeout(run.job.id)
        run.transact(count)

    job = flow.put(store)
    [ran] = [each for each in run_lost(store, tasks)]

    assert ran == "lost"
    assert store.metrics.lifetime("done") == 0
    assert fulfil_steps(store, job.id) == []


def run_lost(store: Store, tasks: Tasks) -> list[str]:
    runtime = Runtime(tasks, store)
    outcome = runtime.attempt(store.jobs.pop("q", "w")[0]).execute()
    runtime.close()
    return [outcome.what]


def fulfil_steps(store: Store, id: str) -> list[str]:
    return [step.name for step in store.jobs.steps(id)]


def test_the_status_tells_the_steps(store: Store, clock: Clock) -> None:
    tasks = Tasks(queue="q")

    @tasks.workflow
    def flow(run: Run) -> None:
        run.step(abs, -3)
        run.wait("go")

    job = flow.put(store)
    run_tasks(store, tasks)
    flow.signal(store, job.id, "other", 7)

    status = flow.status(store, job.id)
    assert [(step.name, step.result) for step in status.steps] == [("abs", 3), ("wait go", None)]
    assert (status.steps[0].begun, status.steps[1].ended) == (clock(), 0)
    assert [signal.value for signal in status.signals] == [7]


def test_a_task_that_is_no_workflow_has_no_steps(store: Store) -> None:
    tasks = Tasks(queue="q")

    @tasks.task(retries=0)
    def plain(run: Run) -> None:
        run.step(abs, -3)

    plain.put(store)
    with pytest.raises(BadTask, match="is not a workflow"):
        run_tasks(store, tasks)


def test_a_step_that_is_too_large_fails_the_workflow(store: Store) -> None:
    tasks = Tasks(queue="q")

    @tasks.workflow
    def flow(run: Run) -> None:
        run.step(lambda: "x" * 2_000_000)

    flow.put(store)
    run_tasks(store, tasks, keep_failures=True)

    assert store.jobs.failed() == {"q-WorkflowTooLarge": 1}


@pytest.mark.parametrize(
    ("result", "reason"),
    [(object(), "there is no JSON for a value of type object"), (math.nan, "it is the float nan")],
)
def test_a_step_whose_result_can_not_be_stored_fails_the_workflow_at_once(
    store: Store, result: object, reason: str
) -> None:
    tasks = Tasks(queue="q")
    ran: list[str] = []

    def charge() -> object:
        ran.append("charged")
        return result

    @tasks.workflow(retries=5)
    def pay(run: Run) -> None:
        run.step(charge)

    job = pay.put(store)
    run_tasks(store, tasks, keep_failures=True)

    failure = failure_of(store, job.id)
    assert (failure.group, len(ran)) == ("q-bad-result", 1)
    assert failure.message.endswith(f"charge returned can't be stored: {reason}")


def test_a_signal_whose_value_can_not_be_stored_is_refused(store: Store) -> None:
    tasks = Tasks(queue="q")

    @tasks.workflow
    def wait(run: Run) -> None:
        run.wait("approved")

    job = wait.put(store)
    with pytest.raises(BadTaskArgument, match="approved can't be stored: there is no JSON"):
        wait.signal(store, job.id, "approved", object())


@pytest.mark.only_on("lmdb")
def test_a_workflow_runs_on_a_server_with_batches() -> None:
    tasks = Tasks(queue="q")

    def count(batch: Batch, by: int) -> int:
        batch.metrics.incr("done", value=by)
        return by

    @tasks.task(queue="children")
    def double(number: int) -> int:
        return 2 * number

    @tasks.workflow
    def flow(run: Run) -> list[int]:
        first = run.transact(count, 3)
        rest = run.gather([double.call(number) for number in (1, 2)])
        return [first, *rest, run.wait("go")]

    with temporary_server() as url, holdfast.connect(url) as client:
        client.metrics.define({"done": {"lifetime": True}})
        job = flow.put(client)
        with Worker(client, tasks, threads=2):
            flow.signal(client, job.id, "go", 9)
            assert job.result(timeout=30) == [3, 2, 4, 9]

        assert client.metrics.lifetime("done") == 3
        steps = flow.status(client, job.id).steps
        assert [step.name.rpartition(".")[2] for step in steps] == ["count", "gather", "wait go"]


@pytest.mark.only_on("lmdb")
def test_a_batch_of_a_workflow_that_lost_its_job_is_not_done() -> None:
    tasks = Tasks(queue="q")

    def count(batch: Batch) -> None:
        batch.metrics.incr("done")

    with temporary_server() as url, holdfast.connect(url) as client:
        client.metrics.define({"done": {"lifetime": True}})

        @tasks.workflow
        def flow(run: Run) -> None:
            client.jobs.timeout(run.job.id)
            run.transact(count)

        flow.put(client)
        runtime = Runtime(tasks, client)
        outcome = runtime.attempt(client.jobs.pop("q", "w")[0]).execute()
        runtime.close()

        assert outcome.what == "lost"
        assert client.metrics.lifetime("done") == 0
