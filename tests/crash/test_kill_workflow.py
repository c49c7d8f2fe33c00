"""A workflow killed at every place: `transact` steps happen once, others at least once."""

import os
import random
import signal
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, Final

import pytest

import holdfast
from holdfast.store import Store
from holdfast.tasks import Run, Tasks, Tx, Worker
from tests.processes import start
from tests.repetitions import repeated
from tests.stores import Stores, problems_of

STEPS: Final = repeated(6, full=20)  # every second one is a transaction
NUMBERS: Final = [str(number) for number in range(STEPS)]
KILLS: Final = repeated(12, full=30)  # at random moments
LATER: Final = 1_000  # seconds, longer than a lock: the next worker takes over
ID: Final = "workflow"
LAST: Final = f"before {STEPS}"


def declare(reach: Callable[[str], None]) -> Tasks:
    """The workflow, which tells each place that it reaches."""
    tasks = Tasks("crash", queue="crash")

    def stepped(store: Store, number: int) -> int:
        store.metrics.incr("stepped", [str(number)])
        reach(f"inside {number}")
        return number

    def transacted(tx: Tx, number: int) -> int:
        tx.metrics.incr("transacted", [str(number)])
        reach(f"inside {number}")
        return number

    @tasks.workflow(name="count", retries=1_000)
    def count(run: Run) -> int:
        total = 0
        for number in range(STEPS):
            reach(f"before {number}")
            if number % 2:
                total += run.transact(transacted, number)
            else:
                total += run.step(stepped, run.store, number)
        reach(LAST)
        return total

    return tasks


def open_later(url: str, runs: int) -> Store:
    """Opens the store as it is when the locks of earlier runs have ended."""
    return holdfast.open(url, clock=lambda: time.time() + runs * LATER)


def begin(url: str) -> None:
    """Puts the workflow's job."""
    with open_later(url, 0) as store:
        store.jobs.config_set("grace-period", 0)
        store.metrics.define({name: {"lifetime": True} for name in ("stepped", "transacted")})
        store.jobs.put("crash", "count", {}, id=ID, retries=1_000)


def work(url: str, runs: int, deadly: str, connection: Connection) -> None:
    """Runs the workflow, and is killed at the place `deadly`."""

    def reach(place: str) -> None:
        if place == deadly:
            os.kill(os.getpid(), signal.SIGKILL)

    with open_later(url, runs) as store:
        Worker(store, declare(reach)).run_until_empty()


def work_and_tell(url: str, runs: int, connection: Connection) -> None:
    """Runs the workflow, and tells each place that it reaches."""
    with open_later(url, runs) as store:
        Worker(store, declare(connection.send)).run_until_empty()


def counted(store: Store, metric: str) -> dict[str, Any]:
    found = {number: store.metrics.lifetime(metric, [number]) for number in NUMBERS}
    return {number: count for number, count in found.items() if count}


@pytest.mark.every_engine
def test_a_workflow_killed_before_and_inside_each_step_resumes_there(stores: Stores) -> None:
    url = stores.url()
    begin(url)
    places = [f"{where} {step}" for step in range(STEPS) for where in ("before", "inside")]
    places.append(LAST)

    for runs, place in enumerate(places):
        assert start(work, url, runs, place).join() == -signal.SIGKILL, place
    assert start(work, url, len(places), "").join() == 0

    with open_later(url, len(places)) as store:
        assert counted(store, "transacted") == dict.fromkeys(NUMBERS[1::2], 1)
        assert counted(store, "stepped") == dict.fromkeys(NUMBERS[::2], 2)  # once to be killed
        assert store.jobs.result(ID) == sum(range(STEPS))
        assert [step.attempts for step in store.jobs.steps(ID)] == [1] * STEPS
        assert problems_of(store) == []


def test_a_workflow_killed_at_random_moments_does_each_transaction_once(stores: Stores) -> None:
    chance, url = random.Random(20), stores.url()
    begin(url)

    for runs in range(KILLS):
        child = start(work_and_tell, url, runs)
        places = [child.receive()]
        while places[-1] != LAST and len(places) < chance.randrange(1, runs + 5):
            places.append(child.receive())
        child.kill()  # while it does the step, commits it, or begins the next one
        if LAST in [*places, *child.receive_all()]:  # it may be complete
            break
    assert start(work, url, KILLS, "").join() == 0

    with open_later(url, KILLS) as store:
        assert counted(store, "transacted") == dict.fromkeys(NUMBERS[1::2], 1)
        assert counted(store, "stepped").keys() == set(NUMBERS[::2])
        assert store.jobs.result(ID) == sum(range(STEPS))
        assert problems_of(store) == []
