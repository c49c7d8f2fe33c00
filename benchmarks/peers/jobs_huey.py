"""Huey on Redis, or on sqlite3 if the address is a file: tasks enqueued and executed per second."""

import logging
import time

from huey import RedisHuey, SqliteHuey
from timing import arguments, in_threads, per_second, say


def main() -> None:
    url, count = arguments()
    logging.disable()
    if url.startswith("redis:"):
        queue = RedisHuey("peer", url=url)
    else:
        queue = SqliteHuey("peer", filename=url, fsync=False)  # synchronous = OFF
    task = queue.task()(time.time)

    def drain() -> None:
        while (waiting := queue.dequeue()) is not None:
            queue.execute(waiting)

    enqueued = per_second(in_threads(task, count), count)
    say("huey", enqueued=enqueued, completed=per_second(drain, count))


main()
