"""Dramatiq's worker program on Redis; a third word is the number of messages it prefetches."""

import os
import sys

import dramatiq
from draining import ADDRESS, THREADS, drain, mark
from dramatiq.brokers.redis import RedisBroker

dramatiq.set_broker(RedisBroker(url=ADDRESS))
nothing = dramatiq.actor(actor_name="nothing")(lambda: mark())


def put(count: int) -> None:
    for _ in range(count):
        nothing.send()


if __name__ == "__main__":
    if len(sys.argv) > 3:
        os.environ["dramatiq_queue_prefetch"] = sys.argv[3]  # noqa: SIM112  # Dramatiq's own name
    command = ["-m", "dramatiq", "workers_dramatiq", "--processes", "1", "--threads", THREADS]
    drain("dramatiq", put, [sys.executable, *command])
