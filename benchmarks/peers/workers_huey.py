"""Huey's consumer program on sqlite3, unsynced."""

import sys

from draining import ADDRESS, THREADS, drain, mark
from huey import SqliteHuey

queue = SqliteHuey("peer", filename=ADDRESS, fsync=False)  # synchronous = OFF
nothing = queue.task()(mark)


def put(count: int) -> None:
    from workers_huey import nothing  # under the name that the consumer knows

    for _ in range(count):
        nothing()


if __name__ == "__main__":
    command = ["-m", "huey.bin.huey_consumer", "workers_huey.queue", "--quiet", "-w", THREADS]
    drain("huey", put, [sys.executable, *command])
