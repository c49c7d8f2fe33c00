"""The error texts of Qless, which its clients search for known fragments.

The layer's errors have fields: the job, the worker, the argument. With the refused command, these
give the text that the original script would raise.
"""

from typing import Final

from holdfast.errors import (
    BadArgument,
    CircularDependency,
    HoldfastError,
    JobLost,
    JobNeeded,
    UnknownJob,
    UnknownRecurringJob,
    WrongState,
)
from holdfast.jobs.arguments import EMPTY_NAME

_CALLS: Final = {  # the names of commands in the texts, if not the capitalised command
    "batch.open": "Batch",
    "batch.cancel": "Batch",
    "batch.close": "Batch",
    "batch.forget": "Batch",
    "batch.get": "Batch",
    "batch.jobs": "Batch",
    "bulk.get": "Bulk",
    "bulk.start": "Bulk",
    "bulk.step": "Bulk",
    "bulk.stop": "Bulk",
    "config.set": "config.set",
    "config.unset": "config.unset",
    "mput": "Put",
    "recur": "RecurringJob On",
    "recur.tag": "Tag",
    "recur.untag": "Untag",
    "recur.update": "Recur",
    "throttle.delete": "Throttle",
    "throttle.set": "Throttle",
}
_ARGUMENTS: Final = {
    "id": "jid",
    "rate_key": "rate-key",
    "unique_for": "unique-for",
    "unique_mode": "unique-mode",
}
_NOT_JOBS: Final = ("Batch", "Bulk", "Throttle")  # their ids are not those of jobs
_PROBLEMS: Final = {  # the beginnings of problems: ours, and those of Qless
    EMPTY_NAME: "missing",
    "must be a finite number, not ": "not a number: ",
    "must be a number, not ": "not a number: ",
    "is not JSON: ": "missing or not JSON: ",
}
_NOT_RUNNING: Final = {
    "complete": "is not currently running",
    "retry": "is not currently running",
}
_WITH_ANOTHER: Final = {
    "complete": "has been handed out to another worker",
    "fail": "running with another worker",
    "heartbeat": "given out to another worker",
    "retry": "has been given to another worker",
}


def as_qless_error(error: HoldfastError, command: str) -> HoldfastError:
    """Returns the error with the text of Qless, or unchanged if Qless has none for it."""
    call = _CALLS.get(command, command.capitalize())
    text = _text(error, command, call)
    return error if text is None else type(error)(text, hint=error.hint)


def _text(error: HoldfastError, command: str, call: str) -> str | None:
    match error:
        case UnknownJob(jid=str(jid)) if jid:
            return _unknown(jid, command, call)
        case UnknownRecurringJob(jid=str(jid)) if jid:
            known = command != "recur.update"
            return f"{call}(): " + (
                f"Job {jid} does not exist" if known else f"No recurring job {jid}"
            )
        case JobNeeded(jid=jid, dependent=dependent) if jid:
            needed = f"{jid} is a dependency of {dependent}"
            return f"{call}(): {needed} but is not mentioned to be canceled"
        case JobLost(jid=jid, queue=queue) if queue:
            return f"{call}(): Job {jid} running in another queue: {queue}"
        case JobLost(jid=jid, worker=worker) if worker:
            return f"{call}(): Job {jid} {_WITH_ANOTHER.get(command, 'running')}: {worker}"
        case WrongState(jid=jid, state=state) if jid:
            return _wrong_state(jid, state, command, call)
        case CircularDependency(jid=jid) if jid:
            return f"{call}(): Job {jid} would depend on itself"
        case BadArgument(argument="id", problem=problem) if call in _NOT_JOBS:
            return f'{call}(): Arg "id" {_problem(problem)}'
        case BadArgument(argument=argument, problem=problem) if argument:
            return f'{call}(): Arg "{_ARGUMENTS.get(argument, argument)}" {_problem(problem)}'
    return None


def _unknown(jid: str, command: str, call: str) -> str:
    if command == "depends":
        return f"Depends(): Job {jid} not in the depends state: false"
    return f"{call}(): Job {'' if command == 'track' else f'{jid} '}does not exist"


def _wrong_state(jid: str, state: str, command: str, call: str) -> str:
    if command == "depends":
        return f"Depends(): Job {jid} not in the depends state: {state}"
    if command == "timeout":
        return f"Timeout(): Job {jid} not running"
    return f"{call}(): Job {jid} {_NOT_RUNNING.get(command, 'not currently running')}: {state}"


def _problem(problem: str) -> str:
    for ours, theirs in _PROBLEMS.items():
        if problem.startswith(ours):
            return theirs + problem.removeprefix(ours)
    return problem
