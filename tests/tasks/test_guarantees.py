"""The table of docs/guarantees.md, Tasks: what a run with `Tx` has written, however it ended.

Runs that return or raise, and those that lost their lock to another worker, are in
test_execution.py.
"""

import os
import random
import signal
import threading
from multiprocessing.connection import Connection

import pytest

import holdfast
from holdfast.store import Store
from holdfast.tasks import Run, Tasks, Tx
from holdfast.tasks.execution import Attempt, Runtime
from holdfast.testing import Clock, run_tasks
from tests.processes import start
from tests.stores import Stores
from tests.tasks.waiting import found, state

pytestmark = pytest.mark.every_engine

tasks = Tasks("guarantees", queue="q")


@tasks.task
def add(tx: Tx, run: Run, killed: str = "") -> None:
    tx.metrics.incr("done")
    if run.job.worker == "victim" and killed == "before":
        die()
    if run.job.worker == "victim" and killed == "in":
        threading.Timer(random.random() / 500, die).start()  # a commit takes about as long


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def opened(url: str, clock: Clock) -> Store:
    store = holdfast.open(url, durability="interval", clock=clock)
    store.metrics.define({"done": {"lifetime": True}})
    store.jobs.config_set("grace-period", 0)
    return store


def begun(store: Store) -> tuple[str, Attempt]:
    """A run of a new job that has its lock and has not called the task yet."""
    store.metrics.define({"done": {"lifetime": True}})
    store.jobs.config_set("grace-period", 0)
    id = add.put(store).id
    [job] = store.jobs.pop("q", "victim", lock_seconds=60)
    return id, Runtime(tasks, store).attempt(job)


def done(store: Store) -> float:
    return store.metrics.lifetime("done")


def seen(store: Store, id: str) -> tuple[float, str]:
    """The counter and the job's state at one moment: a commit may still be on its way."""

    def look(tx: Tx) -> tuple[float, str]:
        job = tx.jobs.get(id)
        assert job is not None
        return tx.metrics.lifetime("done"), job.state

    return store.transact(look)


def be_killed(url: str, clock: Clock, connection: Connection) -> None:
    """Runs one job, and is killed when it is complete if it was not before."""
    with opened(url, clock) as store:
        [job] = store.jobs.pop("q", "victim", lock_seconds=60)
        Runtime(tasks, store).attempt(job).execute()
        die()


@pytest.mark.parametrize(
    ("killed", "outcomes"),
    [
        ("before", {(0, "running")}),
        ("in", {(0, "running"), (1, "complete")}),
        ("after", {(1, "complete")}),
    ],
)
def test_a_run_that_is_killed_has_written_all_with_its_completion_or_nothing(
    stores: Stores, clock: Clock, killed: str, outcomes: set[tuple[int, str]]
) -> None:
    url = stores.url()
    with opened(url, clock) as store:
        id = add.put(store, killed).id
        status = start(be_killed, url, clock).join()
        outcome = seen(store, id)

        clock.advance(seconds=61)
        run_tasks(store, tasks)

        assert status == -signal.SIGKILL
        assert outcome in outcomes
        assert seen(store, id) == (1, "complete")


def test_a_run_that_wakes_when_another_worker_has_the_job_writes_nothing(
    store: Store, clock: Clock
) -> None:
    id, attempt = begun(store)

    clock.advance(seconds=61)
    [taken] = store.jobs.pop("q", "other", lock_seconds=60)
    outcome = attempt.execute()

    assert (taken.id, outcome.what, done(store)) == (id, "lost", 0)
    assert (found(store, id).worker, state(store, id)) == ("other", "running")


def test_a_run_that_wakes_before_anyone_took_the_job_writes_all_of_it(
    store: Store, clock: Clock
) -> None:
    id, attempt = begun(store)

    clock.advance(seconds=1_000)
    attempt.execute()

    assert seen(store, id) == (1, "complete")


def test_a_run_whose_job_was_canceled_meanwhile_writes_nothing(store: Store) -> None:
    id, attempt = begun(store)

    store.jobs.cancel(id)
    outcome = attempt.execute()

    assert (outcome.what, done(store), store.jobs.get(id)) == ("lost", 0, None)


def test_a_run_whose_job_was_moved_meanwhile_writes_nothing(store: Store) -> None:
    id, attempt = begun(store)

    store.jobs.requeue("elsewhere", id)
    outcome = attempt.execute()

    assert (outcome.what, done(store)) == ("lost", 0)
    assert (found(store, id).queue, state(store, id)) == ("elsewhere", "waiting")
