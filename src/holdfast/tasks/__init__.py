"""Tasks: functions that workers run, with effects and completion in one commit.

tasks = Tasks(queue="receipts")

@tasks.task(retries=5, backoff=exponential(first=1, most=300), timeout=30)
def send_receipt(order: str, copy_to: str | None = None) -> None: ...

send_receipt.put(store, "1001")
Worker(store, tasks, threads=4).run_until_empty()
"""

from typing import TYPE_CHECKING, Any

from holdfast.errors import Canceled, ChildFailed, JobLost, WorkflowChanged
from holdfast.store import Tx
from holdfast.tasks.backoff import Backoff, exponential, fixed
from holdfast.tasks.durations import days, hours, minutes, weeks
from holdfast.tasks.handles import AsyncTaskJob, TaskJob
from holdfast.tasks.middleware import Middleware
from holdfast.tasks.outcomes import Fail, Outcome, Retry, Snooze
from holdfast.tasks.parameters import provided
from holdfast.tasks.registry import Tasks
from holdfast.tasks.run import Run
from holdfast.tasks.task import Puts, Task, TaskCall
from holdfast.tasks.workflows import AsyncRun, Workflow, WorkflowStatus

if TYPE_CHECKING:
    from holdfast.client.batches import Batch
    from holdfast.tasks.worker import Worker

__all__ = [
    "AsyncRun",
    "AsyncTaskJob",
    "Backoff",
    "Batch",
    "Canceled",
    "ChildFailed",
    "Fail",
    "JobLost",
    "Middleware",
    "Outcome",
    "Puts",
    "Retry",
    "Run",
    "Snooze",
    "Task",
    "TaskCall",
    "TaskJob",
    "Tasks",
    "Tx",
    "Worker",
    "Workflow",
    "WorkflowChanged",
    "WorkflowStatus",
    "days",
    "exponential",
    "fixed",
    "hours",
    "minutes",
    "provided",
    "weeks",
]

if not TYPE_CHECKING:  # a program that only puts jobs loads neither a client nor the worker
    _HOMES = {"Batch": "holdfast.client.batches", "Worker": "holdfast.tasks.worker"}

    def __getattr__(name: str) -> Any:
        import importlib

        if name not in _HOMES:
            raise AttributeError(f"module 'holdfast.tasks' has no attribute {name!r}")
        value = globals()[name] = getattr(importlib.import_module(_HOMES[name]), name)
        return value
