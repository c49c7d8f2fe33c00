"""`Tasks`: a registry of tasks. Importing one opens nothing."""

import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar, Unpack

from holdfast.errors import BadTask
from holdfast.tasks.middleware import Middleware
from holdfast.tasks.options import DecoratorOptions, DefaultOptions, options_of
from holdfast.tasks.schedules import Schedule, Scheduled, deploy
from holdfast.tasks.task import Task
from holdfast.tasks.task_decorator import TaskDecorator
from holdfast.tasks.workflows import Workflow, WorkflowDecorator

__all__ = ["Tasks"]

AnyTask = Task[Any, Any, Any, Any]
T = TypeVar("T", bound=AnyTask)


class Tasks:
    """Tasks by their names, with defaults for their options.

    >>> tasks = Tasks(queue="receipts", retries=3)
    >>> @tasks.task
    ... def send(order: str) -> None: ...
    >>> send.new_job("1001").queue
    'receipts'

    `name` tells the registries of one store apart: `deploy` removes only schedules that a registry
    of the same name has declared.
    """

    def __init__(self, name: str = "tasks", **defaults: Unpack[DefaultOptions]) -> None:
        self.name = name
        self._defaults = defaults
        self._own: dict[str, AnyTask] = {}
        self._makers: dict[Any, Callable[[], Any]] = {}
        self._middleware: list[Middleware] = []
        self._schedules: list[Schedule] = []
        self._included: list[Tasks] = []
        self._included_in: list[Tasks] = []
        options_of(defaults, {})  # refuses bad ones where they are written

    # --- declaring --------------------------------------------------------------------------------

    @property
    def task(self) -> TaskDecorator:
        """The decorator that makes a task of a function: `@tasks.task`, `@tasks.task(retries=5)`.

        Options: `name`, `queue`, `priority`, `retries`, `backoff`, `timeout`, `lock_seconds`,
        `tags`, `unique`, `unique_for`, `throttles`, `retry_on`, `fail_on`, `result_ttl` and
        `max_concurrency`.
        """
        return TaskDecorator(self._declare, {})

    @property
    def workflow(self) -> WorkflowDecorator:
        """The decorator that makes a workflow of a function: a task whose steps are remembered.

        Its first parameter is the run; the options are those of `task`.
        """
        return WorkflowDecorator(self._declare_workflow, {})

    def _declare_workflow(self, function: Callable[..., Any], given: DecoratorOptions) -> AnyTask:
        return self._declare(function, given, Workflow)

    def _declare(
        self, function: Callable[..., Any], given: DecoratorOptions, kind: type[AnyTask] = Task
    ) -> AnyTask:
        if not callable(function):
            raise BadTask(f"a task must be a function, not {function!r:.100}")
        options = options_of(self._defaults, given)
        return self.add(kind(function, given.get("name") or _name_of(function), options, self))

    def add(self, task: T) -> T:
        """Registers a task; raises if another one has its name."""
        for registry in self._with_ancestors():
            registry._refuse_duplicate(task.name, task)
        self._own[task.name] = task
        return task

    def include(self, other: "Tasks") -> None:
        """Adds the tasks, schedules, provided objects and middleware of another registry to this
        one."""
        if self in other._with_descendants():
            raise BadTask(f"registry {other.name!r} includes {self.name!r} already")
        for task in other:
            for registry in self._with_ancestors():
                registry._refuse_duplicate(task.name, task)
        self._included.append(other)
        other._included_in.append(self)

    def provide(self, kind: Any, make: Callable[[], Any]) -> None:
        """Registers how to make the object that tasks get by parameters of the type `kind`.

        `make` is called once in each process. It may be a plain or a coroutine function, or a
        generator function, sync or async: its part after `yield` runs when the process ends.
        """
        if kind in self._makers:
            raise BadTask(f"{getattr(kind, '__name__', kind)} is provided twice")
        self._makers[kind] = make

    def use(self, middleware: Middleware) -> None:
        """Adds middleware; the first one is the outermost."""
        self._middleware.append(middleware)

    def cron(
        self, expression: str, *, tz: str = "UTC", args: Mapping[str, Any] | None = None
    ) -> Callable[[T], T]:
        """Returns a decorator that runs the task below it by a cron expression."""
        return self._scheduled(Schedule(cron=expression, tz=tz, args=dict(args or {})))

    def every(self, seconds: float, *, args: Mapping[str, Any] | None = None) -> Callable[[T], T]:
        """Returns a decorator that runs the task below it every `seconds`."""
        return self._scheduled(Schedule(interval=seconds, args=dict(args or {})))

    def _scheduled(self, schedule: Schedule) -> Callable[[T], T]:
        def declare(task: T) -> T:
            if not isinstance(task, Task):
                raise BadTask(
                    "a schedule is for a task", hint="Write @tasks.cron(...) above @tasks.task."
                )
            self._schedules.append(schedule.of(task.name))
            return task

        return declare

    # --- reading ----------------------------------------------------------------------------------

    def find(self, name: str) -> AnyTask | None:
        """Returns the task of that name, of this registry or an included one."""
        for registry in self._with_descendants():
            if name in registry._own:
                return registry._own[name]
        return None

    def __iter__(self) -> Iterator[AnyTask]:
        for registry in self._with_descendants():
            yield from registry._own.values()

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __bool__(self) -> bool:
        return True

    @property
    def providers(self) -> Mapping[Any, Callable[[], Any]]:
        """Returns the makers of provided objects by type; those of outer registries come first."""
        found: dict[Any, Callable[[], Any]] = {}
        for registry in (*self._with_ancestors(), *self._with_descendants()):
            for kind, make in registry._makers.items():
                found.setdefault(kind, make)
        return found

    @property
    def middleware(self) -> list[Middleware]:
        """The middleware of this registry and the included ones, outermost first."""
        return [each for registry in self._with_descendants() for each in registry._middleware]

    def headers(self) -> dict[str, str]:
        """Returns the headers that middleware stores with a job that is put now."""
        found: dict[str, str] = {}
        for registry in self._with_ancestors():
            for each in registry._middleware:
                make = getattr(each, "headers", None)
                if make is not None:
                    found.update(make())
        return found

    @property
    def is_included(self) -> bool:
        """Returns whether another registry includes this one."""
        return bool(self._included_in)

    @property
    def queues(self) -> list[str]:
        """The queues of all tasks, in the order of their declaration."""
        return list(dict.fromkeys(task.options_given.queue for task in self))

    @property
    def schedules(self) -> list[Scheduled]:
        """Returns all declared schedules, each with its recurring job."""
        return [
            each.recurring_job(registry.name, registry.find(each.task))
            for registry in self._with_descendants()
            for each in registry._schedules
        ]

    def deploy(self, store: Any) -> None:
        """Makes the recurring jobs of a store, space or client equal to the declared schedules.

        Adds, changes and removes recurring jobs of this registry; others stay as they are. It also
        sets the throttles of tasks with `max_concurrency`. A worker calls it when it starts.
        """
        deploy(store, self)

    def registries(self) -> "Iterator[Tasks]":
        """Yields this registry and all that it includes."""
        return self._with_descendants()

    # --- how it is done ---------------------------------------------------------------------------

    def _refuse_duplicate(self, name: str, task: AnyTask) -> None:
        found = self.find(name)
        if found is not None and found is not task:
            raise BadTask(
                f"two tasks are called {name!r}",
                hint="Give one of them another: @tasks.task(name=...).",
            )

    def _with_descendants(self) -> "Iterator[Tasks]":
        yield self
        for each in self._included:
            yield from each._with_descendants()

    def _with_ancestors(self) -> "Iterator[Tasks]":
        yield self
        for each in self._included_in:
            yield from each._with_ancestors()


def _name_of(function: Callable[..., Any]) -> str:
    """Returns `module.qualname`; for a program that was started by its path, its module's name."""
    module = function.__module__
    if module == "__main__":
        main = sys.modules["__main__"]
        spec = getattr(main, "__spec__", None)
        path = getattr(main, "__file__", None)
        module = spec.name if spec is not None else Path(path).stem if path else module
    return f"{module}.{function.__qualname__}"
