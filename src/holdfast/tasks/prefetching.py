"""Prefetched jobs: popped ahead of time, they wait in this process for a slot.

A commit for each job can cost more than the job itself. So a worker whose runs are short pops many
jobs in one commit, and settles many in one. It pops only as many as will start within
`PREFETCH_SECONDS`, judging by its last runs; a job that is put later with a higher priority waits
about that long behind them. If runs take longer, nothing is prefetched. A prefetched job that waits
too long because a run has become slow is handed back to other workers.
"""

import threading
import time
from collections import deque
from collections.abc import Iterable
from typing import Final

from holdfast.jobs.records import Job
from holdfast.limits import MAX_PREFETCH_WAIT_SECONDS, PREFETCH_SECONDS

__all__ = ["Prefetched"]

_WEIGHT: Final = 0.1  # of the newest run in the mean of all


class Prefetched:
    """Up to `most` jobs, in the order in which they were popped, for a number of slots."""

    def __init__(self, most: int, slots: int, *, lock_seconds: float) -> None:
        self._most = most if slots else 0
        self._slots = slots
        # A job must not begin when its lock has ended, nor while it can end before a heartbeat.
        self._wait_seconds = min(MAX_PREFETCH_WAIT_SECONDS, lock_seconds / 4)
        self._lock = threading.Lock()
        self._waiting: deque[tuple[float, Job]] = deque()  # until when each may begin
        self._mean: float | None = None  # seconds of a run

    def __len__(self) -> int:
        return len(self._waiting)

    def note(self, seconds: float) -> None:
        """Updates the mean run time with that of one more run."""
        mean = self._mean
        self._mean = seconds if mean is None else mean + _WEIGHT * (seconds - mean)

    def wanted(self) -> int:
        """Returns how many more jobs should wait here."""
        if self._mean is None or self._mean > PREFETCH_SECONDS:
            return 0
        in_time = int(self._slots * PREFETCH_SECONDS / max(self._mean, 1e-6))
        return max(0, min(self._most, in_time) - len(self._waiting))

    def add(self, jobs: Iterable[Job]) -> None:
        """Adds jobs that were popped just now."""
        until = time.monotonic() + self._wait_seconds
        with self._lock:
            self._waiting.extend([(until, job) for job in jobs])

    def next(self) -> Job | None:
        """Returns the job that should run next, from any thread; None if none may begin."""
        with self._lock:
            if not self._waiting or self._waiting[0][0] < time.monotonic():
                return None
            return self._waiting.popleft()[1]

    def take_late(self) -> list[Job]:
        """Returns the jobs that have waited too long, to be handed back.

        After that, nothing is prefetched until runs are short again.
        """
        now = time.monotonic()
        late: list[Job] = []
        with self._lock:
            while self._waiting and self._waiting[0][0] < now:
                late.append(self._waiting.popleft()[1])
        if late:
            self._mean = max(self._mean or 0.0, MAX_PREFETCH_WAIT_SECONDS)
        return late

    def take_all(self) -> list[Job]:
        """Returns all waiting jobs, to be handed back."""
        with self._lock:
            jobs = [job for _, job in self._waiting]
            self._waiting.clear()
        return jobs
