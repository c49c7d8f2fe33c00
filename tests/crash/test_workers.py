"""Workers that are killed and stopped at any moment: effects in the store happen exactly once."""

import os
import random
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.store import Store
from holdfast.tasks import Run, Tasks, Tx, Worker
from tests.processes import start
from tests.stores import Stores
from tests.tasks.waiting import found, until

# The number of jobs in a short run; HOLDFAST_CRASH_JOBS=10000 is the long one.
JOBS = int(os.environ.get("HOLDFAST_CRASH_JOBS", "0"))
SHORT = {"lmdb": 1_000}
LOCK_SECONDS = 1.0

tasks = Tasks("crash", queue="crash", retries=1_000)


@tasks.task
def add(tx: Tx, number: int) -> None:
    tx.metrics.incr("done")


@tasks.task
def visit(run: Run, folder: str) -> str:
    """Says that it has begun, and goes on when it may; returns the worker."""
    (Path(folder) / run.job.worker).touch()
    until(Path(folder, "go").exists)
    return run.job.worker


def work(url: str, name: str, connection: Connection) -> None:
    """Runs tasks until it is killed."""
    with holdfast.open(url, durability="interval") as store:
        worker = Worker(store, tasks, threads=4, lock_seconds=LOCK_SECONDS, name=name)
        connection.send("ready")
        worker.run()


def opened(url: str) -> Store:
    store = holdfast.open(url, durability="interval")
    store.metrics.define({"done": {"lifetime": True}})
    store.jobs.config_set("grace-period", 0)
    return store


def done(store: Store) -> Any:
    return store.metrics.lifetime("done")


def put_in_waves(store: Store, count: int, wave: int) -> Iterator[None]:
    for first in range(0, count, wave):
        add.put_many(store, [(number,) for number in range(first, min(first + wave, count))])
        yield


@pytest.mark.every_engine
def test_tasks_with_a_transaction_count_exactly_once_however_often_workers_are_killed(
    stores: Stores,
) -> None:
    count = JOBS or SHORT.get(stores.engine_name, 150)
    chance, url = random.Random(count), stores.url()
    wave = max(20, min(200, count // 8))
    with opened(url) as store:
        left = put_in_waves(store, count, wave)
        next(left)
        workers = [start(work, url, f"worker-{number}") for number in range(2)]
        kills = 0
        while done(store) < count:
            next(left, None)  # so that a worker is killed while it has something to do
            aim = min(count, done(store) + chance.randrange(1, wave))
            until(lambda aim=aim: done(store) >= aim, 120)  # type: ignore[misc]  # bound now
            victim = chance.randrange(2)
            workers[victim].kill()
            kills += 1
            workers[victim] = start(work, url, f"worker-{2 + kills}")
        until(lambda: not store.jobs.counts("crash").running, 60)
        for each in workers:
            each.kill()

        assert done(store) == count
        assert len(store.jobs.jobs("complete", count=count + 1)) == count
        assert kills > 3


def test_a_worker_that_was_stopped_longer_than_its_lock_is_refused(
    stores: Stores, tmp_path: Path
) -> None:
    url = stores.url()
    with opened(url) as store:
        job = visit.put(store, str(tmp_path))
        first = start(work, url, "first")
        until(lambda: list(tmp_path.glob("first-*")))
        first.stop()

        second = start(work, url, "second")
        until(lambda: list(tmp_path.glob("second-*")), 60)
        (tmp_path / "go").touch()
        until(lambda: found(store, job.id).state == "complete")
        first.go_on()
        other = visit.put(store, str(tmp_path))
        until(lambda: found(store, other.id).state == "complete")

        assert job.result().startswith("second-")
        entries = [entry.what for entry in found(store, job.id).history]
        assert entries.count("done") == 1
        for each in (first, second):
            each.kill()
