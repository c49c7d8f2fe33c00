"""Jobs that were put for a task, with results of the type that the task returns."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from holdfast.errors import BadInput, TaskFailed, TaskNotFinished
from holdfast.jobs.records import COMPLETE, FAILED, Job

__all__ = ["AsyncTaskJob", "TaskJob"]

R = TypeVar("R")
Decode = Callable[[Any], Any]


class _AnyTaskJob(Generic[R]):
    """A job of a task, by its id."""

    def __init__(self, where: Any, id: str | Callable[[], str], decode: Decode) -> None:
        self._where = where
        self._id = id
        self._decode = decode

    @property
    def id(self) -> str:
        """The job's id. In a batch it is available once the batch has been sent."""
        return self._id if isinstance(self._id, str) else self._id()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._id!r})"

    def _jobs(self, wanted: str) -> Any:
        jobs = getattr(self._where, "jobs", None)
        if not hasattr(jobs, wanted):
            raise BadInput(
                "this job was put in a transaction or batch, which can't wait for it",
                hint="Ask the store or client: task.job(store, job.id).result().",
            )
        return jobs


class TaskJob(_AnyTaskJob[R]):
    """A job of a task, on a store or client."""

    def get(self) -> Job | None:
        """Returns the job as it is now, or None if it does not exist."""
        found: Job | None = self._jobs("get").get(self.id)
        return found

    def result(self, timeout: float | None = None) -> R:
        """Waits until the job is complete and returns the task's result.

        Raises `TaskFailed` if the job failed, and `TaskNotFinished` after `timeout` seconds.
        """
        jobs = self._jobs("result_wait")
        refuse_unfinished(jobs.result_wait(self.id, timeout=timeout), timeout)
        result: R = self._decode(jobs.result(self.id))
        return result


class AsyncTaskJob(_AnyTaskJob[R]):
    """A job of a task, on an async client."""

    async def get(self) -> Job | None:
        """Returns the job as it is now, or None if it does not exist."""
        found: Job | None = await self._jobs("get").get(self.id)
        return found

    async def result(self, timeout: float | None = None) -> R:
        """Like `TaskJob.result`, with `await`."""
        jobs = self._jobs("result_wait")
        refuse_unfinished(await jobs.result_wait(self.id, timeout=timeout), timeout)
        result: R = self._decode(await jobs.result(self.id))
        return result


def refuse_unfinished(job: Job, timeout: float | None) -> None:
    """Raises unless the job is complete."""
    if job.state == FAILED and job.failure is not None:
        group, failure = job.failure.group, job.failure.message
        last = failure.strip().rpartition("\n")[2]
        error = TaskFailed(f"job {job.id} failed in the group {group}: {last}")
        error.group, error.failure = group, failure
        raise error
    if job.state != COMPLETE:
        raise TaskNotFinished(f"job {job.id} is {job.state} after {timeout:g} seconds")
