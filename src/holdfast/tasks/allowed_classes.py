"""Runs classes that jobs name by dotted names, as the worker of Qless does; only below a prefix.

`klass` comes from the queue, and so from anyone who may put jobs. Therefore nothing is imported
unless the operator has allowed it: `holdfast worker --allow shop.jobs`. The static method named
like the queue is called with the job, otherwise the one named `process`. A method that returns
without settling its job completes it; an exception fails the job at once.
"""

import importlib
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from holdfast.tasks.options import TaskOptions
from holdfast.tasks.outcomes import Fail, Settled
from holdfast.tasks.parameters import TaskParameters
from holdfast.tasks.registry import AnyTask, Tasks
from holdfast.tasks.run import Run
from holdfast.tasks.task import Task

__all__ = ["AllowedClasses", "ClassJob"]


class AllowedClasses(Tasks):
    """A registry that also finds classes below some prefixes."""

    def __init__(self, prefixes: Sequence[str]) -> None:
        super().__init__("allowed")
        self._prefixes = tuple(prefixes)

    def find(self, name: str) -> AnyTask | None:
        """Returns the registered task of that name, or one that calls the class."""
        found = super().find(name)
        if found is not None or not self._is_allowed(name):
            return found
        return _ClassTask(_runner(name), name, TaskOptions(retry_on=()), self)

    def _is_allowed(self, name: str) -> bool:
        return any(name == each or name.startswith(f"{each}.") for each in self._prefixes)


class ClassJob:
    """A job as a class of Qless sees it: its data, and the ways to settle it."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self.jid = run.job.id
        self.data = run.job.data
        self.klass_name = run.job.task
        self.queue_name = run.job.queue
        self.tags = list(run.job.tags)
        self.priority = run.job.priority
        self.retries_left = run.job.retries_left
        self.worker_name = run.job.worker
        self.is_settled = False

    @property
    def sandbox(self) -> str:
        """The path of an empty directory for the files of this run."""
        return str(self._run.sandbox)

    def __getitem__(self, name: str) -> Any:
        return self.data[name]

    def complete(self, next: str | None = None, **options: Any) -> str:
        """Completes the job, or moves it to the queue `next`."""
        if next is not None:
            options["next"] = next
        return str(self._settle("complete", **options))

    def fail(self, group: str, message: str) -> str:
        """Fails the job in a group."""
        return str(self._settle("fail", group, message))

    def retry(self, delay: float = 0) -> int:
        """Puts the job back into its queue, and uses up a retry."""
        return int(self._settle("retry", delay=delay))

    def heartbeat(self) -> None:
        """Renews the lock; the worker also does so by itself."""
        self._run.heartbeat()

    def _settle(self, how: str, *args: Any, **options: Any) -> Any:
        call = getattr(self._run.store.jobs, how)
        settled = call(self.jid, self.worker_name, *args, **options)
        self.is_settled = True
        return settled


class _ClassTask(Task[Any, Any, Any, Any]):
    """A task whose function gets the whole job and no arguments."""

    @property
    def parameters(self) -> TaskParameters:
        return _WholeJob(self.function, self.name, ())


class _WholeJob(TaskParameters):
    def decode(self, data: Any) -> dict[str, Any]:
        return {}


def _runner(name: str) -> Callable[[Run], None]:
    def call(run: Run) -> None:
        job = ClassJob(run)
        _method(name, run.job.queue)(job)
        if job.is_settled:
            raise Settled

    return call


def _method(name: str, queue: str) -> Callable[[ClassJob], Any]:
    """Returns the static method for the job's queue."""
    module, _, class_name = name.rpartition(".")
    try:
        cls = getattr(importlib.import_module(module), class_name)
    except Exception as error:
        raise Fail(
            f"{queue}-{type(error).__name__}", f"{name} can't be imported: {error}"
        ) from error
    for method in (queue, "process"):
        found = inspect.getattr_static(cls, method, None)
        if found is None:
            continue
        if not isinstance(found, staticmethod):
            raise Fail(f"{queue}-method-type", f"{name}.{method} is not a static method")
        chosen: Callable[[ClassJob], Any] = getattr(cls, method)
        return chosen
    raise Fail(f"{queue}-method-missing", f"{name} has no method {queue} and none named process")
