"""`holdfast worker` on a folder; a third word is its durability."""

import sys
import time

from draining import ADDRESS, THREADS, drain, mark

import holdfast
from holdfast.tasks import Tasks

tasks = Tasks(queue="peer")
nothing = tasks.task(name="nothing")(mark)


@tasks.task(name="started")
def started() -> float:
    return time.perf_counter()  # one clock for all processes of a machine


def put(count: int) -> None:
    with holdfast.open(ADDRESS, durability="interval") as store:
        for begin in range(0, count, 1_000):
            nothing.put_many(store, [()] * min(count - begin, 1_000))


if __name__ == "__main__":
    command = ["-m", "holdfast", "worker", "workers_holdfast:tasks", "--data", ADDRESS]
    command += ["--durability", sys.argv[3], "--threads", THREADS]
    drain("holdfast", put, [sys.executable, *command])
