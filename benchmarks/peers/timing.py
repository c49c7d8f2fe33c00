"""Shared by all peers: eight threads that enqueue, and the line of JSON that reports the result.

Nothing here needs Holdfast: a peer runs in an environment of its own.
"""

import json
import sys
import threading
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version

THREADS = 8


def arguments() -> tuple[str, int]:
    """The address of the server to work on, and how many jobs."""
    return sys.argv[1], int(sys.argv[2])


def per_second(work: Callable[[], object], count: int) -> float:
    begin = time.perf_counter()
    work()
    return count / (time.perf_counter() - begin)


def in_threads(call: Callable[[], object], count: int) -> Callable[[], None]:
    """`count` calls, shared by threads that start together."""

    def work() -> None:
        for _ in range(count // THREADS):
            call()

    def run() -> None:
        threads = [threading.Thread(target=work) for _ in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    return run


def say(package: str, **figures: float) -> None:
    try:
        known = version(package)
    except PackageNotFoundError:  # Holdfast itself, run from its source
        known = ""
    print(json.dumps({"version": f"{package} {known}", **figures}))
