"""Slots: a worker runs one attempt at a time in each of them.

The worker gives an attempt to a slot, and the slot calls back, from any thread, when it has ended.
Thread slots are here; slots on an event loop (async_slots.py) and in processes (process_slots.py)
follow the same protocol.
"""

import logging
import queue
import threading
from collections.abc import Callable
from typing import Final, Protocol

from holdfast.jobs.reports import Report
from holdfast.tasks.execution import Attempt
from holdfast.tasks.outcomes import Outcome

__all__ = ["Done", "Finished", "Slot", "ThreadSlot", "end_of_run"]

_log: Final = logging.getLogger("holdfast.tasks")


class Finished:
    """The end of a run: its slot is free, and `report` is to be sent to the store."""

    __slots__ = ("attempt", "continues", "outcome", "report", "slot")

    def __init__(
        self, slot: "Slot", attempt: Attempt, outcome: Outcome | None, report: Report | None
    ) -> None:
        self.slot = slot
        self.attempt = attempt
        self.outcome = outcome
        self.report = report
        self.continues = False  # the slot has begun another run already


Done = Callable[[Finished], Attempt | None]  # returns the next run of a slot


class Slot(Protocol):
    """Runs one attempt at a time, under its own worker name."""

    kind: str  # "thread", "async" or "process"
    continues: bool  # whether it begins the run that `Done` returns, without another `start`

    @property
    def name(self) -> str:
        """The name of the worker that holds the slot's job: `<host>-<pid>-<n>`."""
        ...

    @property
    def number(self) -> int:
        """The slot's number in its worker, from 0."""
        ...

    def start(self, attempt: Attempt) -> None:
        """Begins the run of a job that was popped under the slot's name; returns at once."""
        ...

    def interrupt(self) -> None:
        """Ends the run as soon as possible; `run.stopped` has the reason."""
        ...

    def close(self, timeout: float | None = None) -> None:
        """Closes the slot when its run has ended, or abandons it after `timeout` seconds."""
        ...


class ThreadSlot:
    """A thread that runs one attempt after the other; it waits for async tasks."""

    kind = "thread"
    continues = True

    def __init__(self, name: str, number: int, done: Done) -> None:
        self.name = name
        self.number = number
        self._done = done
        self._attempt: Attempt | None = None
        self._given: queue.SimpleQueue[Attempt | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    def start(self, attempt: Attempt) -> None:
        """Gives the thread its next run."""
        self._given.put(attempt)

    def interrupt(self) -> None:
        """Cancels an async task; a function sees it at its next `run.check()`."""
        attempt = self._attempt
        if attempt is not None:
            attempt.interrupt()

    def close(self, timeout: float | None = None) -> None:
        """Ends the thread; one that is stuck is abandoned after `timeout` seconds."""
        self._given.put(None)
        self._thread.join(timeout)

    def _work(self) -> None:
        while (attempt := self._given.get()) is not None:
            # A run that follows another at once need not wait for the fetcher's thread.
            while attempt is not None:
                self._attempt = attempt
                attempt = self._done(end_of_run(self, attempt, attempt.execute))
            self._attempt = None


def end_of_run(slot: Slot, attempt: Attempt, execute: Callable[[], Outcome]) -> Finished:
    """Calls `execute`, which returns the outcome of an attempt; returns the end of its run."""
    try:
        outcome = execute()
        return Finished(slot, attempt, outcome, attempt.report(outcome))
    except Exception:  # an error of this package, not of the task: the job's lock ends by itself
        _log.exception("the run of job %s failed unexpectedly", attempt.job.id)
        return Finished(slot, attempt, None, None)
