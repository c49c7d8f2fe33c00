"""Handles on one queue or one job, for code that reads `queue.pop(10)` and `job.complete()`.

Without a name, the worker is this process, `<host>-<pid>`.
"""

import os
import socket
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from holdfast.errors import UnknownJob
from holdfast.jobs.breakdown import GroupBy
from holdfast.jobs.records import Job, QueueCounts, QueueStats, StatsTable

if TYPE_CHECKING:
    from holdfast.jobs.store import StoreJobs


class QueueHandle:
    """One queue of a store."""

    __slots__ = ("_jobs", "name")

    def __init__(self, jobs: "StoreJobs", name: str) -> None:
        self._jobs = jobs
        self.name = name

    def put(self, klass: str = "", data: Any = None, **options: Any) -> str:
        """Puts a job; see `Jobs.put`."""
        return self._jobs.put(self.name, klass, data, **options)

    def pop(self, worker: str | int = "", count: int = 1, **options: Any) -> list[Job]:
        """Takes jobs; see `Jobs.pop`. `pop(10)` takes ten for this process."""
        worker, count = worker_and_count(worker, count)
        return self._jobs.pop(self.name, worker, count, **options)

    def pop_wait(
        self, worker: str | int = "", count: int = 1, *, timeout: float | None = None
    ) -> list[Job]:
        """Takes jobs as soon as there are any; see `StoreJobs.pop_wait`."""
        worker, count = worker_and_count(worker, count)
        return self._jobs.pop_wait(self.name, worker, count, timeout=timeout)

    def peek(self, count: int = 1) -> list[Job]:
        """Shows the next jobs; see `Jobs.peek`."""
        return self._jobs.peek(self.name, count)

    def counts(self) -> QueueCounts:
        """Returns how many jobs are in which list; see `Jobs.counts`."""
        return self._jobs.counts(self.name)

    def stats(self, date: float | None = None) -> QueueStats:
        """Returns the statistics of a day; see `Jobs.stats`."""
        return self._jobs.stats(self.name, date)

    def stats_by(self, by: GroupBy = "class", **options: Any) -> StatsTable:
        """Returns the statistics by class, tag or worker; see `Jobs.stats_by`."""
        return self._jobs.stats_by(self.name, by, **options)

    def pause(self, *, stop_running: bool = False) -> None:
        """Pauses the queue; see `StoreJobs.pause`."""
        self._jobs.pause(self.name, stop_running=stop_running)

    def unpause(self) -> None:
        """Ends a pause."""
        self._jobs.unpause(self.name)

    def __len__(self) -> int:
        return self._jobs.length(self.name)


class JobHandle:
    """One job of a store, by its id."""

    __slots__ = ("_jobs", "id")

    def __init__(self, jobs: "StoreJobs", id: str) -> None:
        self._jobs = jobs
        self.id = id

    def get(self) -> Job:
        """Returns the job as it is now; raises `UnknownJob` if it does not exist."""
        job = self._jobs.get(self.id)
        if job is None:
            raise UnknownJob.of(self.id)
        return job

    def heartbeat(self, worker: str = "", **options: Any) -> float:
        """Renews the lock; see `Jobs.heartbeat`."""
        return self._jobs.heartbeat(self.id, worker or this_worker(), **options)

    def complete(self, worker: str = "", **options: Any) -> str:
        """Ends the job or moves it on; see `Jobs.complete`."""
        return self._jobs.complete(self.id, worker or this_worker(), **options)

    def fail(self, worker: str, group: str, message: str, **options: Any) -> str:
        """Fails the job; see `Jobs.fail`."""
        return self._jobs.fail(self.id, worker or this_worker(), group, message, **options)

    def retry(self, worker: str = "", **options: Any) -> int:
        """Puts the job back; see `Jobs.retry`."""
        return self._jobs.retry(self.id, worker or this_worker(), **options)

    def timeout(self) -> None:
        """Takes the job from its worker; see `Jobs.timeout`."""
        self._jobs.timeout(self.id)

    def cancel(self) -> None:
        """Cancels the job; see `Jobs.cancel`."""
        self._jobs.cancel(self.id)

    def move(self, queue: str, *, delay: float = 0, depends: Sequence[str] = ()) -> str:
        """Puts the job into another queue; see `Jobs.requeue`."""
        return self._jobs.requeue(queue, self.id, delay=delay, depends=depends)

    def priority(self, priority: float) -> None:
        """Changes the priority; see `Jobs.priority`."""
        self._jobs.priority(self.id, priority)

    def log(self, message: str, data: dict[str, Any] | None = None) -> None:
        """Writes into the job's history; see `Jobs.log`."""
        self._jobs.log(self.id, message, data)

    def result(self) -> Any:
        """Returns the job's result; see `Jobs.result`."""
        return self._jobs.result(self.id)


def this_worker() -> str:
    """Returns the name of this process as a worker."""
    return f"{socket.gethostname()}-{os.getpid()}"


def worker_and_count(worker: str | int, count: int) -> tuple[str, int]:
    """Returns the worker and the count of a pop; a number alone is a count for this process."""
    if isinstance(worker, int):
        return this_worker(), worker
    return worker or this_worker(), count
