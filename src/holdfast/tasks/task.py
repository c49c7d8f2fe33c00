"""A task: a function that is registered under a name, and the ways to put its jobs."""

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import cached_property, partial, update_wrapper
from typing import TYPE_CHECKING, Any, Final, Generic, ParamSpec, Protocol, TypeVar, overload

import msgspec

from holdfast.errors import BadTask
from holdfast.jobs.records import NewJob, Tag
from holdfast.tasks.handles import AsyncTaskJob, TaskJob
from holdfast.tasks.options import TaskOptions
from holdfast.tasks.parameters import TaskParameters
from holdfast.tasks.run import HEADER
from holdfast.tasks.values import from_plain

if TYPE_CHECKING:
    from holdfast.client.batches import Recording
    from holdfast.client.client import ClientSpace
    from holdfast.client.generated.async_space import AsyncSpace
    from holdfast.store import Space, Tx

__all__ = ["Puts", "Task", "TaskCall"]

C = ParamSpec("C")  # of a plain call
V = TypeVar("V")  # what a plain call returns: of an async function, a coroutine
P = ParamSpec("P")  # of `put`: without what is injected
R = TypeVar("R", covariant=True)  # what the task returns in the end


class Context(Protocol):
    """The part of a registry that its tasks use."""

    @property
    def providers(self) -> Mapping[Any, Callable[[], Any]]: ...

    def headers(self) -> dict[str, str]: ...


class TaskCall(msgspec.Struct, Generic[R], frozen=True):
    """A call of a task that has not been put yet."""

    job: NewJob
    decode: Callable[[Any], Any]


class PutOptions(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Options of a single put, in addition to the arguments of the task."""

    queue: str | None = None
    id: str | None = None
    delay: float = 0
    at: float | None = None
    expires: float | None = None
    timeout: float | None = None
    priority: float | None = None
    retries: float | None = None
    tags: tuple[Tag, ...] | None = None
    depends: tuple[str, ...] | None = None
    throttles: tuple[str, ...] | None = None
    unique: str | None = None
    unique_for: str | float | None = None
    unique_mode: str = "keep"
    rate_key: str | None = None
    batch: str | None = None


class Puts(Generic[P, R]):
    """The ways to put jobs of a task, with the options of `Task.options`."""

    def __init__(self, task: "Task[Any, Any, Any, Any]", given: PutOptions) -> None:
        self._task = task
        self._given = given

    @overload
    def put(
        self, where: "AsyncSpace", /, *args: P.args, **kwargs: P.kwargs
    ) -> Awaitable[AsyncTaskJob[R]]: ...
    @overload
    def put(
        self, where: "Tx | Space | ClientSpace | Recording", /, *args: P.args, **kwargs: P.kwargs
    ) -> TaskJob[R]: ...
    def put(self, where: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Puts a job that calls the task with these arguments.

        `where` is a transaction, a store, a space, a client, a batch, or an async client; with the
        last one, await the call. Costs what `jobs.put` does.
        """
        new = self._build_job(args, kwargs)
        named = {
            name: value for name in _PUT_ARGUMENTS if (value := getattr(new, name)) is not None
        }
        if new.delay:
            named["delay"] = new.delay
        if new.unique is not None:
            named |= {"unique_for": new.unique_for, "unique_mode": new.unique_mode}
        return self._handle(where, where.jobs.put(new.queue, new.klass, new.data, **named))

    def put_many(self, where: Any, calls: "Iterable[Sequence[Any] | Mapping[str, Any]]", /) -> Any:
        """Puts a job for each of `calls`, all in one commit; returns their handles in order.

        A call is a sequence of arguments, or a mapping of them by name.
        """
        if self._given.id is not None:
            raise BadTask("several jobs can't have one id")
        jobs = [
            self._build_job((), each)
            if isinstance(each, Mapping)
            else self._build_job(tuple(each), {})
            for each in calls
        ]
        put = where.jobs.put_many(jobs)
        if inspect.isawaitable(put):
            return self._awaited_many(where, put)
        if isinstance(put, list):
            return [self._new_handle(TaskJob, where, id) for id in put]
        return [
            self._new_handle(TaskJob, where, partial(_result_at, put, at))
            for at in range(len(jobs))
        ]

    def new_job(self, *args: P.args, **kwargs: P.kwargs) -> NewJob:
        """Returns the job that `put` would put, for `jobs.put_many`."""
        return self._build_job(args, kwargs)

    def call(self, *args: P.args, **kwargs: P.kwargs) -> TaskCall[R]:
        """Returns a call that a workflow can pass to `run.gather`."""
        return TaskCall(self._build_job(args, kwargs), self._task.decode_result)

    def job(self, where: "Space | ClientSpace", id: str) -> TaskJob[R]:
        """Returns a handle on a job of this task that was put earlier."""
        return TaskJob(where, id, self._task.decode_result)

    # --- how it is done ---------------------------------------------------------------------------

    def _build_job(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> NewJob:
        task, given = self._task, self._given
        options = task.options_given
        data: dict[str, Any] = task.parameters.encode(args, kwargs)
        unique = task.unique_key(given.unique, args, kwargs)
        for name, value in task.context.headers().items():
            data[HEADER + name] = value
        return NewJob(
            queue=given.queue or options.queue,
            klass=task.name,
            data=data,
            id=given.id,
            delay=given.delay,
            priority=options.priority if given.priority is None else given.priority,
            tags=(options.tags or None) if given.tags is None else given.tags,
            retries=options.retries if given.retries is None else given.retries,
            depends=given.depends,
            throttles=task.throttles if given.throttles is None else given.throttles,
            unique=unique,
            unique_for=options.unique_for if given.unique_for is None else given.unique_for,
            unique_mode=given.unique_mode,
            at=given.at,
            expires=given.expires,
            timeout=given.timeout,
            rate_key=given.rate_key,
            batch=given.batch,
        )

    def _handle(self, where: Any, put: Any) -> Any:
        if isinstance(put, str):
            return self._new_handle(TaskJob, where, put)
        if inspect.isawaitable(put):
            return self._awaited(where, put)
        return self._new_handle(TaskJob, where, put.result)

    async def _awaited(self, where: Any, put: Awaitable[str]) -> AsyncTaskJob[R]:
        return AsyncTaskJob(where, await put, self._task.decode_result)

    async def _awaited_many(self, where: Any, put: Awaitable[list[str]]) -> list[AsyncTaskJob[R]]:
        return [self._new_handle(AsyncTaskJob, where, id) for id in await put]

    def _new_handle(self, kind: Any, where: Any, id: str | Callable[[], str]) -> Any:
        return kind(where, id, self._task.decode_result)


_PUT_ARGUMENTS: Final = (
    *("id", "priority", "tags", "retries", "depends", "throttles", "unique"),
    *("at", "expires", "timeout", "rate_key", "batch"),
)


class Task(Puts[P, R], Generic[C, V, P, R]):
    """A function that workers run, under its name."""

    def __init__(
        self, function: Callable[C, V], name: str, options: TaskOptions, context: Context
    ) -> None:
        super().__init__(self, PutOptions())
        self.function = function
        self.name = name
        self.options_given = options
        self.context = context
        self.is_async = inspect.iscoroutinefunction(function)
        update_wrapper(self, function)

    def __call__(self, *args: C.args, **kwargs: C.kwargs) -> V:
        """Calls the function itself, without a job."""
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"Task({self.name!r})"

    def options(
        self,
        *,
        queue: str | None = None,
        id: str | None = None,
        delay: float = 0,
        at: float | None = None,
        expires: float | None = None,
        timeout: float | None = None,
        priority: float | None = None,
        retries: float | None = None,
        tags: Sequence[Tag] | None = None,
        depends: "Sequence[str | TaskJob[Any] | AsyncTaskJob[Any]] | None" = None,
        throttles: Sequence[str] | None = None,
        unique: str | None = None,
        unique_for: str | float | None = None,
        unique_mode: str = "keep",
        rate_key: str | None = None,
        batch: str | None = None,
    ) -> Puts[P, R]:
        """Returns an object with the same `put` calls, whose jobs have these options instead.

        A job starts after `delay` seconds or at the time `at`, is dropped if it has not started by
        `expires`, and may run for `timeout` seconds. `rate_key` is the key of the queue's rate, and
        `batch` the id of an open batch; see `jobs.put`.
        """
        given = PutOptions(
            queue=queue,
            id=id,
            delay=delay,
            at=at,
            expires=expires,
            timeout=timeout,
            priority=priority,
            retries=retries,
            tags=None if tags is None else tuple(tags),
            depends=None if depends is None else tuple(map(_id_of, depends)),
            throttles=None if throttles is None else (*throttles, *self._own_throttle),
            unique=unique,
            unique_for=unique_for,
            unique_mode=unique_mode,
            rate_key=rate_key,
            batch=batch,
        )
        return Puts(self, given)

    @cached_property
    def parameters(self) -> TaskParameters:
        """The parameters, read from the annotations when they are first needed."""
        return TaskParameters(self.function, self.name, self.context.providers.keys())

    def decode_result(self, stored: Any) -> Any:
        """Returns a stored result as the type that the task returns."""
        annotation = self.parameters.result
        if stored is None or annotation is None or annotation is type(None):
            return None
        return stored if annotation is Any else from_plain(stored, annotation)

    @property
    def _own_throttle(self) -> tuple[str, ...]:
        return (f"task:{self.name}",) if self.options_given.max_concurrency else ()

    @property
    def throttles(self) -> tuple[str, ...] | None:
        """The throttles of its jobs; `max_concurrency` is one that only they have."""
        return (*self.options_given.throttles, *self._own_throttle) or None

    def unique_key(
        self, given: str | None, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> str | None:
        """Returns the unique key of a job with these arguments, within the task's own keys."""
        key: str | None = given
        option = self.options_given.unique
        if key is None and callable(option):
            key = str(option(*args, **kwargs))
        elif key is None and option:
            key = self.parameters.digest(args, kwargs)
        return None if key is None else f"{self.name}:{key}"


def _result_at(put: Any, at: int) -> str:
    id: str = put.result()[at]
    return id


def _id_of(job: "str | TaskJob[Any] | AsyncTaskJob[Any]") -> str:
    return job if isinstance(job, str) else job.id
