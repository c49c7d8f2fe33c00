"""Jobs of a server: the operations, waits of any length, and handles on one queue or job."""

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from holdfast.client.generated.jobs import CalledJobs
from holdfast.errors import BadArgument
from holdfast.jobs.handles import JobHandle, QueueHandle
from holdfast.jobs.records import COMPLETE, FAILED, Job
from holdfast.limits import JOBS_PER_STEP, WAIT_STEP_SECONDS

if TYPE_CHECKING:
    from holdfast.client.jobs_v1 import ClientJobsV1

ENDED: Final = (COMPLETE, FAILED)


class ClientJobs(CalledJobs):
    """The job queue of one space of a server."""

    def queue(self, name: str) -> QueueHandle:
        """Returns a handle on one queue: `client.jobs.queue("emails").pop("worker")`."""
        return QueueHandle(self, name)  # type: ignore[arg-type]  # it has the calls of a store

    def __getitem__(self, id: str) -> JobHandle:
        """Returns a handle on one job: `client.jobs["welcome"].complete("worker")`."""
        return JobHandle(self, id)  # type: ignore[arg-type]  # it has the calls of a store

    @property
    def v1(self) -> "ClientJobsV1":
        """Returns the calls of version 1 of Qless."""
        from holdfast.client.jobs_v1 import ClientJobsV1

        return ClientJobsV1(self)

    def pop_wait(
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
            jobs = super().pop_wait(queues, worker, count, timeout=step, lock_seconds=lock_seconds)
            if jobs:
                return jobs
        return []

    def result_wait(self, id: str, *, timeout: float | None = None) -> Job:
        """Returns the job as soon as it is complete or failed, or as it is after `timeout`
        seconds."""
        for step in wait_steps(timeout):
            job = super().result_wait(id, timeout=step)
            if job.state in ENDED:
                break
        return job

    def put_all(self, jobs: Sequence[Any], *, worker: str = "") -> Iterator[str]:
        """Puts any number of jobs, `JOBS_PER_STEP` in a transaction; yields their ids."""
        for at in range(0, len(jobs), JOBS_PER_STEP):
            yield from self.put_many(jobs[at : at + JOBS_PER_STEP], worker=worker)


def wait_steps(timeout: float | None) -> Iterator[float]:
    """Yields the seconds of each step of a wait, so that a server that hangs is noticed.

    There is always a first step. A server that is stopping answers at once; then the rest of the
    time is requested again.
    """
    if timeout is not None and not (isinstance(timeout, int | float) and timeout == timeout):
        raise BadArgument(f"timeout must be a number or None, not {timeout!r:.200}")
    end = None if timeout is None else time.monotonic() + timeout
    yield WAIT_STEP_SECONDS if timeout is None else min(timeout, WAIT_STEP_SECONDS)
    while end is None or end - time.monotonic() > 0:
        left = WAIT_STEP_SECONDS if end is None else end - time.monotonic()
        yield max(0.0, min(left, WAIT_STEP_SECONDS))
