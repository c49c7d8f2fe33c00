"""Execution: how runs end, and what their jobs then are."""

from collections.abc import Callable
from typing import Any

import pytest

from holdfast.errors import JobLost
from holdfast.jobs import Job
from holdfast.limits import MAX_TASK_ERROR_CHARS
from holdfast.store import Store
from holdfast.tasks import Batch, Fail, Retry, Run, Snooze, Tasks, Tx, exponential, fixed
from holdfast.tasks.execution import Runtime
from holdfast.testing import Clock, run_tasks

pytestmark = pytest.mark.every_engine


def put_and_run(
    store: Store, function: Callable[..., Any], clock: Clock | None = None, **options: Any
) -> Job:
    """Puts one job of a function and runs it until nothing is due."""
    tasks = Tasks(queue="q", **options)
    id = tasks.task(name="function")(function).put(store).id
    run_tasks(store, tasks, keep_failures=True)
    job = store.jobs.get(id)
    assert job is not None
    return job


def raising(error: BaseException) -> Callable[[], None]:
    def function() -> None:
        raise error

    return function


def retried(job: Job) -> list[dict[str, Any]]:
    return [entry.more for entry in job.history if entry.what == "retried"]


# --- the ways to end ------------------------------------------------------------------------------


def test_a_task_that_returns_completes_its_job(store: Store) -> None:
    job = put_and_run(store, lambda: 3)

    assert job.state == "complete"
    assert store.jobs.result(job.id) == 3


def test_an_exception_is_retried_by_the_backoff_and_leaves_its_reason(
    store: Store, clock: Clock
) -> None:
    job = put_and_run(store, raising(OSError("no route")), retries=2, backoff=fixed(30))

    assert (job.state, job.remaining) == ("scheduled", 1)
    assert retried(job) == [
        {
            "worker": "inline",
            "remaining": 1,
            "group": "q-OSError",
            "message": "OSError: no route",
        }
    ]
    clock.advance(seconds=29)
    assert store.jobs.pop("q", "w") == []
    clock.advance(seconds=1)
    assert len(store.jobs.pop("q", "w")) == 1


def test_when_no_retry_is_left_the_job_fails_with_the_traceback(store: Store) -> None:
    job = put_and_run(store, raising(OSError("no route")), retries=0)

    assert job.failure is not None
    assert (job.state, job.failure.group) == ("failed", "q-OSError")
    assert job.failure.message.startswith("Traceback (most recent call last):\n  File ")
    assert "holdfast/tasks" not in job.failure.message
    assert job.failure.message.endswith("OSError: no route\n")


def test_a_job_fails_after_as_many_attempts_as_it_has_retries_and_one(
    store: Store, clock: Clock
) -> None:
    tasks, attempts = Tasks(queue="q"), list[int]()

    @tasks.task(retries=2, backoff=[1, 5])
    def function(run: Run) -> None:
        attempts.append(run.job.attempt)
        raise OSError

    job = function.put(store)
    for _ in range(4):
        run_tasks(store, tasks, keep_failures=True)
        clock.advance(seconds=5)

    assert attempts == [1, 2, 3]
    found = job.get()
    assert found is not None
    assert found.state == "failed"


def test_retry_says_when_and_why(store: Store, clock: Clock) -> None:
    job = put_and_run(store, raising(Retry(after=7, why="the service is busy")), retries=3)

    assert (job.state, job.remaining) == ("scheduled", 2)
    assert [entry["message"] for entry in retried(job)] == ["the service is busy"]
    clock.advance(seconds=7)
    assert len(store.jobs.pop("q", "w")) == 1


def test_a_free_retry_uses_up_none(store: Store) -> None:
    job = put_and_run(store, raising(Retry(after=7, free=True)), retries=0)

    assert (job.state, job.remaining) == ("scheduled", 0)


def test_a_retry_without_any_left_fails_with_its_reason(store: Store) -> None:
    job = put_and_run(store, raising(Retry(why="busy")), retries=0)

    assert job.failure is not None
    assert (job.failure.group, job.failure.message) == ("q-Retry", "busy")


def test_fail_uses_no_retries(store: Store) -> None:
    job = put_and_run(store, raising(Fail("no-order", "order 7 does not exist")), retries=5)

    assert job.failure is not None
    assert (job.failure.group, job.failure.message) == ("no-order", "order 7 does not exist")
    assert job.remaining == 5


def test_snooze_comes_back_later_and_uses_none(store: Store, clock: Clock) -> None:
    job = put_and_run(store, raising(Snooze(60)), retries=0)

    assert (job.state, job.remaining) == ("scheduled", 0)
    clock.advance(seconds=60)
    assert len(store.jobs.pop("q", "w")) == 1


def test_what_is_in_fail_on_fails_at_once(store: Store) -> None:
    job = put_and_run(store, raising(KeyError("x")), fail_on=LookupError, retries=5)

    assert job.failure is not None
    assert (job.state, job.failure.group) == ("failed", "q-KeyError")


def test_with_retry_on_nothing_else_is_retried(store: Store) -> None:
    assert put_and_run(store, raising(OSError()), retry_on=OSError).state == "scheduled"
    assert put_and_run(store, raising(KeyError()), retry_on=(OSError,)).state == "failed"


def test_a_backoff_gets_the_attempt_and_the_error(store: Store, clock: Clock) -> None:
    given: list[Any] = []

    def backoff(attempt: int, error: BaseException) -> float:
        given.append((attempt, str(error)))
        return 3

    put_and_run(store, raising(OSError("no route")), backoff=backoff)

    assert given == [(1, "no route")]
    clock.advance(seconds=3)
    assert len(store.jobs.pop("q", "w")) == 1


def test_a_backoff_that_fails_is_no_wait(store: Store) -> None:
    job = put_and_run(store, raising(OSError()), backoff=lambda attempt, error: 1 / 0, retries=1)

    assert job.state == "failed", "it was run again at once, and failed again"


def test_exponential_waits_spread_by_their_jitter() -> None:
    wait = exponential(first=10, most=100, jitter=0.5)

    waits = {wait(1, OSError()) for _ in range(50)}

    assert len(waits) > 1
    assert all(5 <= each <= 15 for each in waits)


def test_long_error_texts_are_cut_in_the_middle(store: Store) -> None:
    job = put_and_run(store, raising(OSError("x" * 200_000 + "the end")), retries=0)

    assert job.failure is not None
    assert len(job.failure.message) <= MAX_TASK_ERROR_CHARS
    assert job.failure.message.startswith("Traceback")
    assert job.failure.message.rstrip().endswith("the end")


def test_an_exception_without_words_is_kept_all_the_same(store: Store) -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    job = put_and_run(store, raising(Mute()), retries=0)

    assert job.failure is not None
    assert job.failure.group == "q-Mute"


def test_a_task_that_exits_is_retried_as_any_other(store: Store) -> None:
    job = put_and_run(store, raising(SystemExit(1)), retry_on=(BaseException,))

    assert job.state == "scheduled"


# --- unknown tasks --------------------------------------------------------------------------------


def test_a_job_of_an_unknown_task_waits_an_hour_for_a_worker_that_has_it(
    store: Store, clock: Clock
) -> None:
    tasks = Tasks(queue="q")
    tasks.task(name="known")(print)
    store.jobs.put("q", "unknown", {}, id="a", retries=0)

    begun = clock()
    while not store.jobs.failed() and clock() < begun + 2 * 3600:
        run_tasks(store, tasks, keep_failures=True)
        clock.advance(seconds=60)

    assert store.jobs.failed() == {"q-unknown-task": 1}
    assert clock() - begun >= 3600
    assert [job.remaining for job in store.jobs.multiget("a")] == [0]


def test_a_job_of_an_unknown_task_runs_when_a_worker_has_it(store: Store, clock: Clock) -> None:
    old, new = Tasks(queue="q"), Tasks(queue="q")
    old.task(name="known")(print)
    job = new.task(name="new")(lambda: 1).put(store)

    run_tasks(store, old)
    clock.advance(seconds=10)
    run_tasks(store, new)

    assert job.result(timeout=0) == 1


# --- effects and completion in one commit ---------------------------------------------------------


def counting(store: Store) -> Tasks:
    store.metrics.define({"done": {"lifetime": True}})
    return Tasks(queue="q")


def test_the_writes_of_a_tx_task_and_its_completion_are_one_commit(store: Store) -> None:
    tasks = counting(store)

    @tasks.task
    def count(tx: Tx, by: int) -> int:
        tx.metrics.incr("done", value=by)
        return by

    job = count.put(store, 3)
    run_tasks(store, tasks)

    assert store.metrics.lifetime("done") == 3
    assert job.result(timeout=0) == 3


@pytest.mark.parametrize(
    ("error", "state"),
    [
        (OSError(), "scheduled"),
        (Fail("group", "no"), "failed"),
        (Snooze(5), "scheduled"),
        (Retry(after=5), "scheduled"),
    ],
)
def test_of_a_tx_task_that_raises_nothing_is_written(
    store: Store, error: Exception, state: str
) -> None:
    tasks = counting(store)

    @tasks.task(retries=5)
    def count(tx: Tx, run: Run) -> None:
        tx.metrics.incr("done")
        run.log("info", "counted")
        raise error

    job = count.put(store)
    run_tasks(store, tasks, keep_failures=True)

    found = job.get()
    assert found is not None
    assert found.state == state
    assert store.metrics.lifetime("done") == 0
    assert [line.text for line in store.jobs.read_log(job.id)] == ["counted"]


def test_of_a_tx_task_that_lost_its_lock_nothing_is_written(store: Store) -> None:
    tasks = counting(store)

    @tasks.task
    def count(tx: Tx) -> None:
        tx.metrics.incr("done")

    job = count.put(store)
    runtime = Runtime(tasks, store)
    [popped] = store.jobs.pop("q", "slow")
    store.jobs.timeout(popped.id)
    store.jobs.pop("q", "slow")  # by the same name: the fencing number tells them apart

    attempt = runtime.attempt(popped)
    outcome = attempt.execute()

    assert outcome.what == "lost"
    assert attempt.report(outcome) is None
    assert store.metrics.lifetime("done") == 0
    found = job.get()
    assert found is not None
    assert found.state == "running"
    runtime.close()


def test_a_result_that_can_not_be_kept_undoes_a_tx_task(store: Store) -> None:
    tasks = counting(store)

    @tasks.task
    def count(tx: Tx) -> object:
        tx.metrics.incr("done")
        return object()

    count.put(store)
    run_tasks(store, tasks, keep_failures=True)

    assert store.metrics.lifetime("done") == 0
    assert store.jobs.failed() == {"q-bad-result": 1}


def test_a_lost_job_that_is_not_its_own_is_an_error_like_any_other(store: Store) -> None:
    tasks = counting(store)

    @tasks.task(retries=0)
    def meddle(tx: Tx) -> None:
        raise JobLost("of another job")

    meddle.put(store)
    run_tasks(store, tasks, keep_failures=True)

    assert store.jobs.failed() == {"q-JobLost": 1}


def test_a_batch_is_done_with_the_completion(store: Store) -> None:
    tasks = counting(store)

    @tasks.task
    def count(batch: Batch, by: int) -> str:
        batch.metrics.incr("done", value=by)
        batch.jobs.put("next", data={"by": by})
        return "counted"

    job = count.put(store, 2)
    run_tasks(store, tasks)

    assert store.metrics.lifetime("done") == 2
    assert store.jobs.length("next") == 1
    assert job.result(timeout=0) == "counted"


def test_a_batch_of_a_job_that_was_lost_is_not_done(store: Store) -> None:
    tasks = counting(store)

    @tasks.task
    async def count(batch: Batch) -> None:
        batch.metrics.incr("done")
        store.jobs.timeout(job.id)

    job = count.put(store)
    runtime = Runtime(tasks, store)
    [popped] = store.jobs.pop("q", "w")

    outcome = runtime.attempt(popped).execute()

    assert outcome.what == "lost"
    assert store.metrics.lifetime("done") == 0
    runtime.close()


def test_an_error_in_a_batch_retries_the_job(store: Store) -> None:
    tasks = counting(store)

    @tasks.task(retries=0)
    def wrong(batch: Batch) -> None:
        batch.metrics.incr("done")
        batch.metrics.incr("unknown")

    wrong.put(store)
    run_tasks(store, tasks, keep_failures=True)

    assert store.metrics.lifetime("done") == 0
    assert store.jobs.failed() == {"q-UnknownMetric": 1}


# --- what a run may do ----------------------------------------------------------------------------


def test_progress_and_log_are_kept_with_the_job(store: Store, clock: Clock) -> None:
    def function(run: Run) -> None:
        run.progress(0.4, "resizing")
        run.log("warning", "it is slow")

    job = put_and_run(store, function)

    assert (job.progress, job.progress_text) == (0.4, "resizing")
    [line] = store.jobs.read_log(job.id)
    assert (line.level, line.text, line.when) == ("warning", "it is slow", clock())


def test_the_next_task_is_put_in_the_completing_commit(store: Store) -> None:
    tasks, ran = Tasks(queue="q"), list[Any]()

    @tasks.task
    def second(number: int) -> None:
        ran.append(number)

    @tasks.task
    def first(run: Run, fails: bool) -> None:
        run.put_next(second, 7)
        if fails:
            raise Fail("group")

    first.put(store, False)
    first.put(store, True)
    run_tasks(store, tasks, keep_failures=True)

    assert ran == [7]


def test_a_run_that_was_lost_is_told_at_its_check(store: Store) -> None:
    tasks, seen = Tasks(queue="q"), list[Any]()

    @tasks.task
    def work(run: Run) -> None:
        run.mark_lost("job_lost", "given to another worker")
        seen.append(run.is_lost)
        run.check()
        seen.append("went on")

    work.put(store)
    [ran] = run_tasks(store, tasks, keep_failures=True)

    assert (ran.outcome.what, seen) == ("lost", [True])


def test_a_run_beyond_its_deadline_is_retried_in_the_group_timeout(
    store: Store, clock: Clock
) -> None:
    def function(run: Run) -> None:
        run.deadline = 0.0
        run.check()

    job = put_and_run(store, function, retries=1, backoff=0)

    assert job.failure is not None
    assert (job.state, job.failure.group) == ("failed", "timeout")
    assert [entry["group"] for entry in retried(job)] == ["timeout"]


def test_a_result_is_kept_for_its_own_time(store: Store, clock: Clock) -> None:
    job = put_and_run(store, lambda: 1, result_ttl=10)

    clock.advance(seconds=9)
    assert store.jobs.result(job.id) == 1
    clock.advance(seconds=1)
    assert store.jobs.result(job.id) is None
