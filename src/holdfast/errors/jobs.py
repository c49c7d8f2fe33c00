"""Errors of jobs.

Qless clients get the texts of Qless for them, without the hint: see compat/qless.
"""

from typing import ClassVar, Self

from holdfast.errors.base import BadInput, HoldfastError, NotFound


class BadArgument(BadInput):
    """An argument is missing or invalid, or contradicts another one."""

    code = "bad_argument"
    facts: ClassVar = {"argument": str, "problem": str}
    argument = ""  # the name of the argument, if the error is about one
    problem = ""  # the message without the argument's name

    @classmethod
    def named(cls, argument: str, problem: str, *, hint: str | None = None) -> Self:
        """Returns the error about one argument: `BadArgument.named("queue", "must be text")`."""
        error = cls(f"{argument} {problem}", hint=hint)
        error.argument, error.problem = argument, problem
        return error


class JobTooLarge(BadArgument):
    """The data or the result of a job is too large, or nested too deep."""

    code, status = "job_too_large", 413
    hint = "Store it elsewhere, in a table for example, and put its key into the job."


class CircularDependency(BadArgument):
    """A job would have to wait for itself, directly or through others."""

    code = "circular_dependency"
    facts: ClassVar = {**BadArgument.facts, "jid": str}
    jid = ""

    @classmethod
    def of(cls, jid: str) -> Self:
        """Returns the error about the job `jid`."""
        error = cls(f"job {jid!r} would depend on itself")
        error.jid = jid
        return error


class UnknownJob(NotFound):
    """No job has that id: it was never put, was canceled, or completed long ago."""

    code = "unknown_job"
    facts: ClassVar = {"jid": str}
    jid = ""

    @classmethod
    def of(cls, jid: str) -> Self:
        """Returns the error about the id `jid`."""
        error = cls(f"there is no job {jid!r}")
        error.jid = jid
        return error


class UnknownRecurringJob(NotFound):
    """No recurring job has that id."""

    code = "unknown_recurring_job"
    facts: ClassVar = {"jid": str}
    jid = ""

    @classmethod
    def of(cls, jid: str) -> Self:
        """Returns the error about the id `jid`."""
        error = cls(f"there is no recurring job {jid!r}")
        error.jid = jid
        return error


class UnknownBatch(NotFound):
    """No batch of jobs has that id: it was never opened, or was deleted by `batch_forget`."""

    code = "unknown_batch"


class UnknownBulkAction(NotFound):
    """No bulk action has that id: it was never started, or ended more than a week ago."""

    code = "unknown_bulk_action"


class WrongState(HoldfastError):
    """The job is in a state that does not allow the operation."""

    code, status = "wrong_state", 409
    facts: ClassVar = {"jid": str, "state": str}
    jid = state = ""

    @classmethod
    def of(cls, jid: str, state: str, wanted: str) -> Self:
        """Returns the error about a job that is in `state` and should be `wanted`."""
        error = cls(f"job {jid!r} is {state}, not {wanted}")
        error.jid, error.state = jid, state
        return error


class JobLost(WrongState):
    """The caller no longer holds the job's lock: another worker or another queue has the job."""

    code = "job_lost"
    hint = "Drop the work: the worker that holds the job now will finish it."
    facts: ClassVar = {**WrongState.facts, "worker": str, "queue": str}
    worker = queue = ""  # the worker or queue that has it now

    @classmethod
    def to_worker(cls, jid: str, worker: str, lock: int | None = None) -> Self:
        """Returns the error about a job that `worker` holds now."""
        by_lock = "" if lock is None else f" by lock {lock}"
        error = cls(f"job {jid!r} is held by worker {worker!r}{by_lock}")
        error.jid, error.worker = jid, worker
        return error

    @classmethod
    def to_queue(cls, jid: str, queue: str) -> Self:
        """Returns the error about a job that runs in another queue than the caller said."""
        error = cls(f"job {jid!r} runs in another queue: {queue}")
        error.jid, error.queue = jid, queue
        return error


LockLost = JobLost  # another name for the same error


class JobNeeded(WrongState):
    """The job can't be canceled alone: other jobs depend on it."""

    code = "job_needed"
    hint = "Cancel the jobs that depend on it in the same call."
    facts: ClassVar = {**WrongState.facts, "dependent": str}
    dependent = ""

    @classmethod
    def by(cls, jid: str, dependent: str) -> Self:
        """Returns the error about a job that `dependent` depends on."""
        error = cls(f"job {dependent!r} depends on job {jid!r}")
        error.jid, error.dependent = jid, dependent
        return error


class UniqueKeyTaken(WrongState):
    """Another job has the same unique key, and `unique_mode` is "error"."""

    code = "unique_key_taken"
    hint = "Put it with `unique_mode` 'keep' to get the other job's id, or 'replace' to cancel it."


class Canceled(WrongState):
    """The job was canceled while a worker ran it."""

    code = "canceled"
    hint = "Drop the work: nobody waits for its result."
