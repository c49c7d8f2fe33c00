"""Workflows: tasks whose steps are remembered, so that a crash resumes them."""

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Generic,
    Literal,
    ParamSpec,
    TypeVar,
    Unpack,
    overload,
)
from uuid import UUID

import msgspec

from holdfast.errors import BadTaskArgument, UnknownJob
from holdfast.jobs.records import Job
from holdfast.jobs.steps import Signal, Step
from holdfast.tasks.backoff import Backoff
from holdfast.tasks.options import DecoratorOptions
from holdfast.tasks.run import Run
from holdfast.tasks.task import Task, TaskCall
from holdfast.tasks.values import UNFIT, to_plain

if TYPE_CHECKING:
    from holdfast.client.client import ClientSpace
    from holdfast.errors import ChildFailed
    from holdfast.store import Space, Tx

__all__ = ["AsyncRun", "Workflow", "WorkflowDecorator", "WorkflowStatus"]

C = ParamSpec("C")
P = ParamSpec("P")
V = TypeVar("V")
R = TypeVar("R", covariant=True)
T = TypeVar("T")


class WorkflowStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a workflow: its job, its steps, and the signals that it has not taken."""

    job: Job
    steps: tuple[Step, ...] = ()
    signals: tuple[Signal, ...] = ()


class Workflow(Task[C, V, P, R], Generic[C, V, P, R]):
    """A task whose steps are remembered."""

    def signal(
        self, where: "Tx | Space | ClientSpace", id: str, name: str, value: Any = None
    ) -> None:
        """Sends a signal to a workflow that waits for it, now or later; see `Run.wait`."""
        try:
            plain = to_plain(value)
        except UNFIT as error:
            raise BadTaskArgument(f"the value of signal {name} can't be stored: {error}") from None
        where.jobs.signal(id, name, plain)

    def status(self, where: "Space | ClientSpace", id: str) -> WorkflowStatus:
        """Returns what the workflow has done so far, step by step."""
        job = where.jobs.get(id)
        if job is None:
            raise UnknownJob(f"workflow {id} does not exist")
        steps: list[Step] = []
        while page := where.jobs.steps(id, after=steps[-1].number if steps else -1):
            steps += page
        return WorkflowStatus(job=job, steps=tuple(steps), signals=tuple(where.jobs.signals(id)))


class AsyncRun(Run):
    """The run of an async workflow: the verbs of `Run`, with `await`."""

    # The same verbs return what has to be awaited, so each of them differs from that of `Run`.
    if TYPE_CHECKING:

        @overload  # type: ignore[override]
        def step(
            self,
            function: Callable[..., Coroutine[Any, Any, T]],
            *args: Any,
            retries: int = 0,
            backoff: Backoff | None = None,
            **kwargs: Any,
        ) -> Awaitable[T]: ...
        @overload
        def step(
            self,
            function: Callable[..., T],
            *args: Any,
            retries: int = 0,
            backoff: Backoff | None = None,
            **kwargs: Any,
        ) -> Awaitable[T]: ...
        def step(self, *args: Any, **kwargs: Any) -> Any: ...
        def transact(  # type: ignore[override]
            self, function: Callable[..., T], *args: Any, **kwargs: Any
        ) -> Awaitable[T]: ...
        def sleep(  # type: ignore[override]
            self, seconds: float = 0, *, minutes: float = 0, hours: float = 0, days: float = 0
        ) -> Awaitable[None]: ...
        def wait(
            self, signal: str, *, timeout: float | None = None, default: Any = None
        ) -> Awaitable[Any]: ...
        @overload  # type: ignore[override]
        def gather(self, calls: Sequence[TaskCall[T]]) -> Awaitable[list[T]]: ...
        @overload
        def gather(
            self, calls: Sequence[TaskCall[T]], *, return_errors: Literal[True]
        ) -> "Awaitable[list[T | ChildFailed]]": ...
        def gather(self, *args: Any, **kwargs: Any) -> Any: ...
        def version(self, name: str) -> Awaitable[bool]: ...  # type: ignore[override]
        def now(self) -> Awaitable[float]: ...  # type: ignore[override]
        def uuid(self) -> Awaitable[UUID]: ...  # type: ignore[override]
        def random(self) -> Awaitable[float]: ...  # type: ignore[override]


class WorkflowDecorator:
    """`@tasks.workflow`, and with options `@tasks.workflow(retries=10)`."""

    def __init__(
        self, declare: Callable[[Any, DecoratorOptions], Any], given: DecoratorOptions
    ) -> None:
        self._declare = declare
        self._given = given

    @overload
    def __call__(
        self, function: Callable[Concatenate[AsyncRun, P], Coroutine[Any, Any, T]], /
    ) -> Workflow[Concatenate[AsyncRun, P], Coroutine[Any, Any, T], P, T]: ...
    @overload
    def __call__(
        self, function: Callable[Concatenate[Run, P], T], /
    ) -> Workflow[Concatenate[Run, P], T, P, T]: ...
    @overload
    def __call__(self, /, **options: Unpack[DecoratorOptions]) -> "WorkflowDecorator": ...
    def __call__(self, function: Any = None, /, **options: Any) -> Any:
        """Turns the function into a workflow, or returns the decorator with these options."""
        if function is None:
            given: Any = {**self._given, **options}
            return WorkflowDecorator(self._declare, given)
        return self._declare(function, self._given)
