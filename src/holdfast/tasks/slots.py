"""Slots: places in a worker where runs happen.

The worker gives a slot an attempt and hears of its end by a call from any thread. Thread slots are
here; slots on an event loop and in processes keep the same protocol.
"""

import logging
import queue
import threading
from collections.abc import Callable
from typing import Final, Protocol

from holdfast.jobs.records import Job
from holdfast.jobs.reports import Report
from holdfast.tasks.execution import Attempt, Runtime
from holdfast.tasks.run import Run

__all__ = ["Done", "Finished", "Slot", "ThreadSlot"]


_log: Final = logging.getLogger("holdfast.tasks")


class Finished:
    """The end of a run: its slot is free, and `report` is what the store is to be told."""

    __slots__ = ("job", "report", "slot")

    def __init__(self, slot: "Slot", job: Job, report: Report | None) -> None:
        self.slot = slot
        self.job = job
        self.report = report


Done = Callable[[Finished], None]


class Slot(Protocol):
    """One place where a run happens, under a worker name of its own."""

    @property
    def name(self) -> str:
        """The name of the worker that holds the slot's job: `<host>-<pid>-<n>`."""
        ...

    @property
    def run(self) -> Run | None:
        """The run that happens now; None if the slot is free, or its run is elsewhere."""
        ...

    def takes(self, job: Job) -> bool:
        """Whether jobs of this task may run here."""
        ...

    def start(self, job: Job) -> None:
        """Begins the run of a job that was popped under the slot's name; returns at once."""
        ...

    def interrupt(self) -> None:
        """Ends the run as soon as it can be ended; why is in `run.stopped`."""
        ...

    def close(self) -> None:
        """Ends the slot when its run has ended."""
        ...


class ThreadSlot:
    """A thread that runs one attempt after the other."""

    def __init__(
        self, name: str, runtime: Runtime, done: Done, *, beat: Callable[[Run], None]
    ) -> None:
        self.name = name
        self.run: Run | None = None
        self._runtime = runtime
        self._done = done
        self._beat = beat
        self._given: queue.SimpleQueue[Attempt | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    def takes(self, job: Job) -> bool:
        """A thread runs every task; it waits for async ones."""
        return True

    def start(self, job: Job) -> None:
        """Gives the thread its next run."""
        attempt = self._runtime.attempt(job, beat=self._beat)
        self.run = attempt.run
        self._given.put(attempt)

    def interrupt(self) -> None:
        """Does nothing: the task sees it at its next `run.check()`."""

    def close(self, timeout: float | None = None) -> None:
        """Ends the thread; one that is stuck is left behind after `timeout` seconds."""
        self._given.put(None)
        self._thread.join(timeout)

    @property
    def is_stuck(self) -> bool:
        """Whether the thread still runs after `close`."""
        return self._thread.is_alive()

    def _work(self) -> None:
        while (attempt := self._given.get()) is not None:
            report = None
            try:
                report = attempt.report(attempt.execute())
            except Exception:  # of this package, not of the task: its lock ends by itself
                _log.exception("the run of job %s broke", attempt.job.id)
            self.run = None
            self._done(Finished(self, attempt.job, report))
