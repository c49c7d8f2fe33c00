"""Errors of tasks and workflows."""

from holdfast.errors.base import BadInput, HoldfastError


class BadTask(BadInput):
    """A task is declared in a way that can't be meant."""

    code = "bad_task"


class BadTaskArgument(BadInput):
    """Arguments do not fit the function of a task."""

    code = "bad_task_argument"


class TaskFailed(HoldfastError):
    """The job whose result was asked for has failed; `group` says how, `failure` in full."""

    code, status = "task_failed", 424
    hint = "`holdfast jobs show` shows its history and its log."
    facts = {"group": str, "failure": str}  # noqa: RUF012  # nobody changes it
    group: str | None = None
    failure: str | None = None


class WorkflowChanged(HoldfastError):
    """A workflow asks for another step than the one that it remembers under this number."""

    code, status = "workflow_changed", 409
    hint = 'Let running workflows take the old path: `if run.version("new-shipping"): ...`.'


class WorkflowTooLarge(BadInput):
    """A workflow has more steps, or larger results, than fit."""

    code, status = "workflow_too_large", 413
    hint = "Hand parts of it to child workflows, and keep large results in entities or tables."


class StepFailed(HoldfastError):
    """A step of a workflow has failed for good in an earlier run."""

    code, status = "step_failed", 424


class ChildFailed(HoldfastError):
    """A child job of a workflow has failed; `id`, `group` and `failure` say which and how."""

    code, status = "child_failed", 424
    hint = "Catch it in the workflow, or ask with `return_errors=True`."
    facts = {"id": str, "group": str, "failure": str}  # noqa: RUF012  # nobody changes it
    id: str | None = None
    group: str | None = None
    failure: str | None = None


class TaskNotFinished(HoldfastError, TimeoutError):
    """The job whose result was asked for was not complete in time."""

    code, status = "task_not_finished", 504
    hint = "Wait longer, or check that a worker serves its queue."


class ProcessDied(HoldfastError):
    """The process that ran a job has ended before the job did."""

    code, status = "process_died", 500
    hint = "Look for a crash, a call of os._exit, or memory that ran out, in the task's own code."


class TaskTimedOut(HoldfastError, TimeoutError):
    """A task took longer than its timeout."""

    code, status = "task_timed_out", 504
    hint = "Give it a longer `timeout`, or less to do."
