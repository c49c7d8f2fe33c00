"""Errors of tasks and workflows."""

from holdfast.errors.base import BadInput, HoldfastError


class BadTask(BadInput):
    """The declaration of a task is invalid."""

    code = "bad_task"


class BadTaskArgument(BadInput):
    """The arguments do not fit the signature of the task's function."""

    code = "bad_task_argument"


class TaskFailed(HoldfastError):
    """The job has failed, so it has no result; `group` and `failure` say how."""

    code, status = "task_failed", 424
    hint = "`holdfast jobs show ID` shows its history and its log."
    facts = {"group": str, "failure": str}  # noqa: RUF012  # nobody changes it
    group: str | None = None
    failure: str | None = None


class WorkflowChanged(HoldfastError):
    """The code of a workflow runs another step than the one recorded at this position."""

    code, status = "workflow_changed", 409
    hint = 'Let running workflows take the old path: `if run.version("new-shipping"): ...`.'


class WorkflowTooLarge(BadInput):
    """A workflow has too many steps, or its results are too large."""

    code, status = "workflow_too_large", 413
    hint = "Move parts of it into child workflows, and keep large results in entities or tables."


class StepFailed(HoldfastError):
    """A step of the workflow has failed in an earlier run, and will not be tried again."""

    code, status = "step_failed", 424


class ChildFailed(HoldfastError):
    """A child job of a workflow has failed; `id`, `group` and `failure` say which and how."""

    code, status = "child_failed", 424
    hint = "Catch it in the workflow, or wait with `run.gather(calls, return_errors=True)`."
    facts = {"id": str, "group": str, "failure": str}  # noqa: RUF012  # nobody changes it
    id: str | None = None
    group: str | None = None
    failure: str | None = None


class TaskNotFinished(HoldfastError, TimeoutError):
    """The job was not complete when the time to wait for its result ran out."""

    code, status = "task_not_finished", 504
    hint = "Wait longer, or check that a worker takes jobs from its queue."


class ProcessDied(HoldfastError):
    """The process that ran the job has died before the job was finished."""

    code, status = "process_died", 500
    hint = "Look for a crash, a call of os._exit or a lack of memory in the code of the task."


class TaskTimedOut(HoldfastError, TimeoutError):
    """A task took longer than its timeout."""

    code, status = "task_timed_out", 504
    hint = "Give it a longer `timeout`, or less work."
