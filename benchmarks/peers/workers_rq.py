"""RQ's worker program: it forks for each job, so it gets a tenth of them."""

import sys
from pathlib import Path

import redis
from draining import ADDRESS, drain
from rq import Queue


def put(count: int) -> None:
    queue = Queue(connection=redis.Redis.from_url(ADDRESS))
    for _ in range(count):
        queue.enqueue("draining.mark")


if __name__ == "__main__":
    program = str(Path(sys.executable).parent / "rq")
    drain("rq", put, [program, "worker", "--quiet", "--url", ADDRESS], share=10)
