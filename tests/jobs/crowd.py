"""Workers in processes of their own; importable, because each process is a new one."""

import os
import signal
from functools import partial
from pathlib import Path

import holdfast
from holdfast.jobs import Job
from holdfast.store import Tx


def work(url: str, name: str, output: str, *, count: int, die_after: int | None = None) -> None:
    """Pops and completes until everything is complete, writes down what it was given, dies if it is
    told to.
    """
    given: list[str] = []
    done: list[str] = []
    with holdfast.open(url, durability="interval") as store:
        while True:
            jobs = store.jobs.pop(
                "queue", name, count, lock_seconds=3_600 if die_after is None else 1
            )
            given += [job.id for job in jobs]
            if die_after is not None and len(given) >= die_after:
                os.kill(os.getpid(), signal.SIGKILL)
            store.transact(partial(_complete, name=name, jobs=jobs))
            done += [job.id for job in jobs]
            if not jobs and _all_is_done(store):
                break
            if not jobs:
                store.jobs.pop_wait("nothing-comes-here", name, timeout=0.02)
    Path(output).write_text("\n".join(given) + "\n\n" + "\n".join(done))


def _complete(tx: Tx, name: str, jobs: list[Job]) -> None:
    for job in jobs:
        tx.jobs.complete(job.id, name, lock=job.lock)


def _all_is_done(store: holdfast.Store) -> bool:
    return store.jobs.length("queue") == 0
