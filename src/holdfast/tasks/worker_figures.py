"""Figures of one worker: how many runs ended how, and how long jobs waited and ran."""

import threading
import time
from bisect import bisect_left
from collections import defaultdict
from typing import TYPE_CHECKING, Final

from holdfast.jobs.records import Job
from holdfast.limits import MAX_WORKER_NAMES

if TYPE_CHECKING:
    from holdfast.tasks.slots import Finished

__all__ = ["BUCKETS", "Histogram", "WorkerFigures"]

BUCKETS: Final = (0.005, 0.025, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 1800.0, 7200.0)  # seconds
_OTHER: Final = "(other)"  # queues beyond the bound: labels of a scraper must be bounded


class Histogram:
    """Seconds, counted by bucket."""

    def __init__(self) -> None:
        self.counts = [0] * (len(BUCKETS) + 1)
        self.sum = 0.0

    def add(self, seconds: float) -> None:
        """Counts one value."""
        self.counts[bisect_left(BUCKETS, seconds)] += 1
        self.sum += seconds

    @property
    def count(self) -> int:
        """Returns how many values were counted."""
        return sum(self.counts)


class WorkerFigures:
    """Counted in memory, by queue; read by `/metrics` of the worker."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.begun: dict[str, float] = {}  # when each running job began, by its id
        self.ended: defaultdict[tuple[str, str], int] = defaultdict(int)  # by queue and outcome
        self.run_seconds: defaultdict[str, Histogram] = defaultdict(Histogram)
        self.wait_seconds: defaultdict[str, Histogram] = defaultdict(Histogram)

    @property
    def finished(self) -> int:
        """Returns how many runs have ended."""
        with self._lock:
            return sum(self.ended.values())

    def ended_by_queue(self) -> dict[tuple[str, str], int]:
        """Returns how many runs have ended, by queue and outcome."""
        with self._lock:
            return dict(self.ended)

    def begin(self, job: Job) -> None:
        """Notes the beginning of a run."""
        now = time.time()
        waited = _waited(job)
        with self._lock:
            self.begun[job.id] = now
            if waited is not None:
                self.wait_seconds[self._label(job.queue)].add(waited)

    def end(self, job: Job, finished: "Finished") -> float:
        """Notes the end of a run; returns how long it took."""
        what = "broken" if finished.outcome is None else finished.outcome.what
        with self._lock:
            queue = self._label(job.queue)
            begun = self.begun.pop(job.id, None)
            self.ended[queue, what] += 1
            seconds = 0.0 if begun is None else max(0.0, time.time() - begun)
            if begun is not None:
                self.run_seconds[queue].add(seconds)
            return seconds

    def _label(self, queue: str) -> str:
        known = self.wait_seconds
        return queue if queue in known or len(known) < MAX_WORKER_NAMES else _OTHER


def _waited(job: Job) -> float | None:
    """Returns how long the job was in its queue before it was popped."""
    if len(job.history) < 2:
        return None
    before, popped = job.history[-2:]
    return max(0.0, popped.when - before.when)
