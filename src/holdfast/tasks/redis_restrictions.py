"""Restrictions of a worker on a Redis with the Qless script: refuses tasks that need more."""

from typing import TYPE_CHECKING

from holdfast.errors import BadTask
from holdfast.tasks.workflows import Workflow

if TYPE_CHECKING:
    from holdfast.tasks.registry import AnyTask, Tasks

__all__ = ["check_redis_restrictions"]


def check_redis_restrictions(tasks: "Tasks") -> None:
    """Raises `BadTask` for tasks and schedules that the script does not support."""
    for task in tasks:
        for what in _unsupported(task):
            raise BadTask(
                f"task {task.name} asks for {what}, and this worker is on a Redis with a script",
                hint="Move the jobs with `holdfast jobs import`, or let a worker on a store run "
                "the task.",
            )
    for schedule in tasks.schedules:
        raise BadTask(
            f"{schedule.describe()} is a schedule, and this worker is on a Redis with a script",
            hint="Put a recurring job there with a Qless client.",
        )


def _unsupported(task: "AnyTask") -> list[str]:
    """Returns the features of the task that the script lacks."""
    kinds = task.parameters.kinds
    asked = {
        "Tx": "tx" in kinds,
        "Batch": "batch" in kinds,
        "a workflow's memory": isinstance(task, Workflow),
        "max_concurrency": task.options_given.max_concurrency,
    }
    return [what for what, is_asked in asked.items() if is_asked]
