"""Inline runs, for tests: runs all jobs that are due in the caller's thread, one after another."""

from typing import TYPE_CHECKING, Any, Final

import msgspec

from holdfast.errors import HoldfastError
from holdfast.jobs.records import Job
from holdfast.limits import MAX_JOBS_PER_CALL
from holdfast.tasks.execution import Runtime
from holdfast.tasks.outcomes import Outcome, Retry, Snooze

if TYPE_CHECKING:
    from holdfast.client.client import ClientSpace
    from holdfast.store import Space
    from holdfast.tasks.registry import Tasks

__all__ = ["Ran", "run_tasks"]

WORKER: Final = "inline"


class Ran(msgspec.Struct, frozen=True):
    """One run: the job and its outcome."""

    job: Job
    outcome: Outcome

    @property
    def task(self) -> str:
        """The name of its task."""
        return self.job.klass


def run_tasks(
    where: "Space | ClientSpace", tasks: "Tasks", *, keep_failures: bool = False
) -> list[Ran]:
    """Runs all due jobs of the tasks' queues in this thread, in order, and returns the runs.

    Jobs that are put meanwhile run too. Jobs that are due later are left: advance the clock and
    call it again. An exception of a task is raised once its job is settled; with `keep_failures` it
    is kept with the run instead, and the next job runs.
    """
    runtime = Runtime(tasks, where)
    ran: list[Ran] = []
    try:
        runtime.check()
        while (job := _next(where, tasks)) is not None:
            ran.append(_run(runtime, job))
            error = ran[-1].outcome.error
            if error is not None and not keep_failures and _is_a_failure(ran[-1].outcome):
                raise error
            if len(ran) > MAX_JOBS_PER_CALL:
                raise HoldfastError(
                    f"{len(ran)} jobs ran, and there are more",
                    hint="Does a task put itself again without a delay?",
                )
    finally:
        runtime.close()
    return ran


def _next(where: Any, tasks: "Tasks") -> Job | None:
    for queue in tasks.queues:
        popped: list[Job] = where.jobs.pop(queue, WORKER)
        if popped:
            return popped[0]
    return None


def _run(runtime: Runtime, job: Job) -> Ran:
    attempt = runtime.attempt(job)
    outcome = attempt.execute()
    report = attempt.report(outcome)
    if report is not None:
        runtime.where.jobs.report([report])
    return Ran(job, outcome)


def _is_a_failure(outcome: Outcome) -> bool:
    """Returns whether the task raised an exception other than `Retry`, `Fail` or `Snooze`."""
    return not isinstance(outcome.error, Retry | Snooze)
