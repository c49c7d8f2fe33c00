"""Handles on one queue or one job of a server, for programs that `await`.

Made by `make client` from holdfast.jobs.handles.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from holdfast.errors import UnknownJob
from holdfast.jobs.breakdown import GroupBy
from holdfast.jobs.handles import this_worker, worker_and_count
from holdfast.jobs.records import Job, QueueCounts, QueueStats, StatsTable

if TYPE_CHECKING:
    from holdfast.client.generated.async_jobs import AsyncJobs


class AsyncQueueHandle:
    """One queue of a server."""

    __slots__ = ("_jobs", "name")

    def __init__(self, jobs: "AsyncJobs", name: str) -> None:
        self._jobs = jobs
        self.name = name

    async def put(self, klass: str = "", data: Any = None, **options: Any) -> str:
        """Puts a job; see `Jobs.put`."""
        return await self._jobs.put(self.name, klass, data, **options)

    async def pop(self, worker: str | int = "", count: int = 1, **options: Any) -> list[Job]:
        """Takes jobs; see `Jobs.pop`. `pop(10)` takes ten for this process."""
        worker, count = worker_and_count(worker, count)
        return await self._jobs.pop(self.name, worker, count, **options)

    async def pop_wait(
        self, worker: str | int = "", count: int = 1, *, timeout: float | None = None
    ) -> list[Job]:
        """Takes jobs as soon as there are any; see `AsyncJobs.pop_wait`."""
        worker, count = worker_and_count(worker, count)
        return await self._jobs.pop_wait(self.name, worker, count, timeout=timeout)

    async def peek(self, count: int = 1) -> list[Job]:
        """Shows the next jobs; see `Jobs.peek`."""
        return await self._jobs.peek(self.name, count)

    async def counts(self) -> QueueCounts:
        """Returns how many jobs are in which list; see `Jobs.counts`."""
        return await self._jobs.counts(self.name)

    async def stats(self, date: float | None = None) -> QueueStats:
        """Returns the statistics of a day; see `Jobs.stats`."""
        return await self._jobs.stats(self.name, date)

    async def stats_by(self, by: GroupBy = "class", **options: Any) -> StatsTable:
        """Returns the statistics by class, tag or worker; see `Jobs.stats_by`."""
        return await self._jobs.stats_by(self.name, by, **options)

    async def pause(self, *, stop_running: bool = False) -> None:
        """Pauses the queue; see `AsyncJobs.pause`."""
        await self._jobs.pause(self.name, stop_running=stop_running)

    async def unpause(self) -> None:
        """Ends a pause."""
        await self._jobs.unpause(self.name)

    async def length(self) -> int:
        """Returns the number of jobs in the queue."""
        return await self._jobs.length(self.name)


class AsyncJobHandle:
    """One job of a server, by its id."""

    __slots__ = ("_jobs", "id")

    def __init__(self, jobs: "AsyncJobs", id: str) -> None:
        self._jobs = jobs
        self.id = id

    async def get(self) -> Job:
        """Returns the job as it is now; raises `UnknownJob` if it does not exist."""
        job = await self._jobs.get(self.id)
        if job is None:
            raise UnknownJob.of(self.id)
        return job

    async def heartbeat(self, worker: str = "", **options: Any) -> float:
        """Renews the lock; see `Jobs.heartbeat`."""
        return await self._jobs.heartbeat(self.id, worker or this_worker(), **options)

    async def complete(self, worker: str = "", **options: Any) -> str:
        """Ends the job or moves it on; see `Jobs.complete`."""
        return await self._jobs.complete(self.id, worker or this_worker(), **options)

    async def fail(self, worker: str, group: str, message: str, **options: Any) -> str:
        """Fails the job; see `Jobs.fail`."""
        return await self._jobs.fail(self.id, worker or this_worker(), group, message, **options)

    async def retry(self, worker: str = "", **options: Any) -> int:
        """Puts the job back; see `Jobs.retry`."""
        return await self._jobs.retry(self.id, worker or this_worker(), **options)

    async def timeout(self) -> None:
        """Takes the job from its worker; see `Jobs.timeout`."""
        await self._jobs.timeout(self.id)

    async def cancel(self) -> None:
        """Cancels the job; see `Jobs.cancel`."""
        await self._jobs.cancel(self.id)

    async def move(self, queue: str, *, delay: float = 0, depends: Sequence[str] = ()) -> str:
        """Puts the job into another queue; see `Jobs.requeue`."""
        return await self._jobs.requeue(queue, self.id, delay=delay, depends=depends)

    async def priority(self, priority: float) -> None:
        """Changes the priority; see `Jobs.priority`."""
        await self._jobs.priority(self.id, priority)

    async def log(self, message: str, data: dict[str, Any] | None = None) -> None:
        """Writes into the job's history; see `Jobs.log`."""
        await self._jobs.log(self.id, message, data)

    async def result(self) -> Any:
        """Returns the job's result; see `Jobs.result`."""
        return await self._jobs.result(self.id)
