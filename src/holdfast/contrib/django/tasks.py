"""A backend for Django's tasks: `django.tasks` of Django 6, or the package `django-tasks`.

A task that is enqueued is a job of the project's store, which `manage.py holdfast_worker` runs.
"""

import importlib
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Final

from holdfast.contrib.django.stores import open_store
from holdfast.errors import MissingDriver
from holdfast.jobs.records import COMPLETE, FAILED, Job
from holdfast.tasks import Fail, Outcome, Run, Tasks

__all__ = ["HoldfastBackend", "django_tasks_registry"]

TASK: Final = "django.task"  # the Holdfast task that runs tasks of Django


def _package() -> str:
    """Returns the name of the package with Django's tasks."""
    for name in ("django.tasks", "django_tasks"):
        try:
            importlib.import_module(name)
        except ImportError:
            continue
        return name
    raise MissingDriver(
        "there is neither Django 6 nor the package `django-tasks`",
        hint="Use Python 3.12 with Django 6, or pip install django-tasks.",
    )


_PACKAGE: Final = _package()
_base: Any = importlib.import_module(f"{_PACKAGE}.base")
_signals: Any = importlib.import_module(f"{_PACKAGE}.signals")
_exceptions: Any = importlib.import_module(f"{_PACKAGE}.exceptions")
# Django 6 has another name for it than django-tasks.
_InvalidTask: Any = getattr(_exceptions, "InvalidTask", None) or _exceptions.InvalidTaskError
_Backend: Any = importlib.import_module(f"{_PACKAGE}.backends.base").BaseTaskBackend
_Status: Any = _base.TaskResultStatus


class HoldfastBackend(_Backend):  # type: ignore[misc]  # the package depends on Django's version
    """Puts Django's tasks as jobs of the project's store.

    `OPTIONS` may have `retries`, how often a task that raised is run again (0), and `modules`, the
    packages besides the installed applications whose tasks may run.
    """

    supports_defer = True
    supports_async_task = True
    supports_get_result = True
    supports_priority = True

    def enqueue(self, task: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Puts a job for a task, in one commit."""
        self.validate_task(task)
        store = open_store()
        delay = 0.0
        if task.run_after is not None:
            delay = max(0.0, task.run_after.timestamp() - store.read_clock())
        result = self._result(task, "", list(args), dict(kwargs))  # refuses what is not JSON
        data = {
            "path": task.module_path,
            "args": result.args,
            "kwargs": result.kwargs,
            "backend": self.alias,
        }
        id = store.jobs.put(
            task.queue_name,
            TASK,
            data,
            delay=delay,
            priority=task.priority,
            retries=int(self.options.get("retries", 0)),
            tags=[task.module_path],
        )
        found = self.get_result(id)
        _signals.task_enqueued.send(type(self), task_result=found)
        return found

    def get_result(self, result_id: str) -> Any:
        """Returns the state of a task that was enqueued, and its result."""
        store = open_store()
        job = store.jobs.get(result_id)
        if job is None or job.klass != TASK:
            raise _exceptions.TaskResultDoesNotExist(result_id)
        data = job.data
        task = self.find(data["path"]).using(
            priority=int(job.priority), queue_name=job.queue or None
        )
        result = self._result(task, job.id, data["args"], data["kwargs"])
        for name, value in _facts(job).items():
            object.__setattr__(result, name, value)
        if job.state == COMPLETE:
            object.__setattr__(result, "_return_value", store.jobs.result(job.id))
        return result

    def find(self, path: str) -> Any:
        """Returns the task of that path, of an installed application and of no other module."""
        from django.apps import apps
        from django.utils.module_loading import import_string

        allowed = [config.name for config in apps.get_app_configs()]
        allowed += self.options.get("modules", [])
        if not any(path.startswith(f"{name}.") for name in allowed):
            raise _InvalidTask(f"{path} is not in an installed application")
        found = import_string(path)
        if not isinstance(found, _base.Task):
            raise _InvalidTask(f"{path} is not a task")
        return found

    def _result(self, task: Any, id: str, args: list[Any], kwargs: dict[str, Any]) -> Any:
        return _base.TaskResult(
            task=task,
            id=id,
            status=_Status.READY,
            enqueued_at=None,
            started_at=None,
            finished_at=None,
            last_attempted_at=None,
            args=args,
            kwargs=kwargs,
            backend=self.alias,
            errors=[],
            worker_ids=[],
        )


def _facts(job: Job) -> dict[str, Any]:
    """Returns the fields of a task's result that follow from the history of its job."""
    times: dict[str, list[int]] = {}
    for entry in job.history:
        times.setdefault(entry.what, []).append(entry.when)
    popped = times.get("popped", [])
    errors = []
    if job.failure is not None:
        error = _base.TaskError(
            exception_class_path=job.failure.group, traceback=job.failure.message
        )
        errors.append(error)
    workers = [str(entry.more["worker"]) for entry in job.history if entry.what == "popped"]
    ended = times.get("done", []) + times.get("failed", [])
    status = {COMPLETE: _Status.SUCCESSFUL, FAILED: _Status.FAILED, "running": _Status.RUNNING}
    return {
        "status": status.get(job.state, _Status.READY),
        "enqueued_at": _moment(times.get("put", [])[:1]),
        "started_at": _moment(popped[:1]),
        "last_attempted_at": _moment(popped[-1:]),
        "finished_at": _moment(ended[-1:]) if job.state in (COMPLETE, FAILED) else None,
        "errors": errors,
        "worker_ids": workers,
    }


def _moment(times: list[int]) -> datetime | None:
    return datetime.fromtimestamp(times[0], UTC) if times else None


# --- the worker's side ----------------------------------------------------------------------------


def django_tasks_registry() -> Tasks:
    """Returns the registry that runs Django's tasks, for a worker."""
    tasks = Tasks("django")
    tasks.task(name=TASK)(_run)
    tasks.use(_TaskMiddleware())
    return tasks


def _run(run: Run, path: str, args: list[Any], kwargs: dict[str, Any], backend: str) -> Any:
    """Runs one of Django's tasks; one that has no retries left fails with its exception's path."""
    backends: Any = importlib.import_module(_PACKAGE).task_backends
    chosen = backends[backend]
    result = chosen.get_result(run.job.id)
    _signals.task_started.send(sender=type(chosen), task_result=result)
    try:
        context = [_base.TaskContext(task_result=result)] if result.task.takes_context else []
        returned = result.task.call(*context, *args, **kwargs)
        normalized = importlib.import_module(_json_module()).normalize_json(returned)
    except Exception as error:
        if run.job.retries_left:
            raise
        kind = type(error)
        text = "".join(traceback.format_exception(error))
        raise Fail(f"{kind.__module__}.{kind.__qualname__}", text) from error
    return normalized


def _json_module() -> str:
    return "django_tasks.utils" if _PACKAGE == "django_tasks" else "django.utils.json"


class _TaskMiddleware:
    """Closes database connections that are too old, as Django does for requests, and sends the
    signal that a task has finished."""

    @contextmanager
    def _around(self) -> Iterator[None]:
        from django.db import close_old_connections

        close_old_connections()
        try:
            yield
        finally:
            close_old_connections()

    def before(self, run: Run) -> Any:
        return self._around()

    def after(self, run: Run, outcome: Outcome) -> None:
        if outcome.what not in ("complete", "fail"):
            return
        data = open_store().jobs.get(run.job.id)
        if data is None or data.klass != TASK:
            return
        backend = importlib.import_module(_PACKAGE).task_backends[data.data["backend"]]
        result = backend.get_result(run.job.id)
        _signals.task_finished.send(type(backend), task_result=result)
