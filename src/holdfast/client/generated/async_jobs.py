"""Jobs of a server for programs that `await`.

Made by `make client` from holdfast.client.jobs.
"""

from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Any

from holdfast.client.generated.async_handles import AsyncJobHandle, AsyncQueueHandle
from holdfast.client.generated.jobs import AwaitedJobs
from holdfast.client.jobs import ENDED, wait_steps
from holdfast.jobs.records import Job
from holdfast.limits import JOBS_PER_STEP

if TYPE_CHECKING:
    from holdfast.client.jobs_v1 import AsyncJobsV1


class AsyncJobs(AwaitedJobs):
    """The job queue of one space of a server."""

    def queue(self, name: str) -> AsyncQueueHandle:
        """Returns a handle on one queue: `await client.jobs.queue("emails").pop("worker")`."""
        return AsyncQueueHandle(self, name)

    def __getitem__(self, id: str) -> AsyncJobHandle:
        """Returns a handle on one job: `await client.jobs["welcome"].complete("worker")`."""
        return AsyncJobHandle(self, id)

    @property
    def v1(self) -> "AsyncJobsV1":
        """Returns the calls of version 1 of Qless."""
        from holdfast.client.jobs_v1 import AsyncJobsV1

        return AsyncJobsV1(self)

    async def pop_wait(
        self,
        queues: str | Sequence[str],
        worker: str,
        count: int = 1,
        *,
        timeout: float | None = None,
        lock_seconds: float | None = None,
    ) -> list[Job]:
        """Pops from the first of `queues` that has a job; waits up to `timeout` seconds.

        If the connection breaks meanwhile, a job may have been popped and its answer lost: it
        raises `OutcomeUnknown`, and such a job returns to its queue when its lock expires.
        """
        for step in wait_steps(timeout):
            jobs = await super().pop_wait(
                queues, worker, count, timeout=step, lock_seconds=lock_seconds
            )
            if jobs:
                return jobs
        return []

    async def result_wait(self, id: str, *, timeout: float | None = None) -> Job:
        """Returns the job as soon as it is complete or failed, or as it is after `timeout`
        seconds."""
        for step in wait_steps(timeout):
            job = await super().result_wait(id, timeout=step)
            if job.state in ENDED:
                break
        return job

    async def put_all(self, jobs: Sequence[Any], *, worker: str = "") -> AsyncIterator[str]:
        """Puts any number of jobs, `JOBS_PER_STEP` in a transaction; yields their ids."""
        for at in range(0, len(jobs), JOBS_PER_STEP):
            for each in await self.put_many(jobs[at : at + JOBS_PER_STEP], worker=worker):
                yield each
