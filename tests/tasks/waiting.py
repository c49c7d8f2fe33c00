"""Waiting for what happens in other threads and processes, and looking at jobs."""

import threading
import time
from collections.abc import Callable

from holdfast.jobs import Failure, Job
from holdfast.store import Store


def until(condition: Callable[[], object], seconds: float = 30) -> None:
    """Waits until the condition is true."""
    end = time.monotonic() + seconds
    pause = threading.Event()
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        pause.wait(0.01)


def found(store: Store, id: str) -> Job:
    """Returns a job that is there."""
    job = store.jobs.get(id)
    assert job is not None
    return job


def state(store: Store, id: str) -> str:
    """Returns the state of a job."""
    return found(store, id).state


def failure_of(store: Store, id: str) -> Failure:
    """Returns how a job has failed."""
    failure = found(store, id).failure
    assert failure is not None
    return failure
