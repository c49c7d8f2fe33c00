"""Errors of jobs.

Qless clients get their own texts for these, without the hint: see compat/qless.
"""

from typing import ClassVar, Self

from holdfast.errors.base import BadInput, HoldfastError, NotFound


class BadArgument(BadInput):
    """An argument of an operation on jobs is missing, malformed or contradicts another."""

    code = "bad_argument"
    facts: ClassVar = {"argument": str, "problem": str}
    argument = ""  # which one, if it is about one
    problem = ""  # the message without the argument's name

    @classmethod
    def named(cls, argument: str, problem: str, *, hint: str | None = None) -> Self:
        """Returns the error about one argument: `BadArgument.named("queue", "must be text")`."""
        error = cls(f"{argument} {problem}", hint=hint)
        error.argument, error.problem = argument, problem
        return error


class JobTooLarge(BadArgument):
    """A job's data is larger than a queue should carry."""

    code, status = "job_too_large", 413
    hint = "Keep it elsewhere and put its name into the job."


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
    """No job has that id: it was never put, or was canceled, or completed long ago."""

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
    """No batch of jobs has that id: it was never opened, or was forgotten."""

    code = "unknown_batch"


class UnknownBulkAction(NotFound):
    """No bulk action has that id: it was never started, or ended more than a week ago."""

    code = "unknown_bulk_action"


class WrongState(HoldfastError):
    """The job is not in a state that the operation can start from."""

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
    """The caller does not hold the job's lock any more: it was given away or put elsewhere."""

    code = "job_lost"
    hint = "Drop the work: the current holder of the job will finish it."
    facts: ClassVar = {**WrongState.facts, "worker": str, "queue": str}
    worker = queue = ""  # the one that has it now

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


LockLost = JobLost  # the same error by what was lost


class JobNeeded(WrongState):
    """Other jobs depend on this one."""

    code = "job_needed"
    hint = "Cancel them together with it."
    facts: ClassVar = {**WrongState.facts, "dependent": str}
    dependent = ""

    @classmethod
    def by(cls, jid: str, dependent: str) -> Self:
        """Returns the error about a job that `dependent` depends on."""
        error = cls(f"job {dependent!r} depends on job {jid!r}")
        error.jid, error.dependent = jid, dependent
        return error


class UniqueKeyTaken(WrongState):
    """Another job owns the unique key."""

    code = "unique_key_taken"


class Canceled(WrongState):
    """The job of a run was canceled."""

    code = "canceled"
    hint = "Drop the work; nobody waits for it."
