"""Celery's worker program on Redis, in threads, results ignored."""

import sys

from celery import Celery
from draining import ADDRESS, THREADS, drain, mark

app = Celery("workers_celery", broker=ADDRESS, task_ignore_result=True)
nothing = app.task(name="nothing")(mark)


def put(count: int) -> None:
    for _ in range(count):
        nothing.delay()


if __name__ == "__main__":
    command = ["-m", "celery", "-A", "workers_celery", "worker", "-P", "threads", "-c", THREADS]
    command += ["--without-gossip", "--without-mingle", "--without-heartbeat", "-l", "CRITICAL"]
    drain("celery", put, [sys.executable, *command])
