"""The decorator `task`, typed so that `put` takes the parameters of the function except the
injected ones.

The types leave out `Run`, `Tx` and `Batch` only as the first parameters, which is where they
belong. The parameter of a provided object has the default `provided`, so that callers omit it.
"""

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeAlias, TypeVar, Unpack, overload

from holdfast.store import Tx
from holdfast.tasks.options import DecoratorOptions
from holdfast.tasks.run import Run
from holdfast.tasks.task import Task

if TYPE_CHECKING:
    from holdfast.client.batches import Batch

__all__ = ["TaskDecorator"]

P = ParamSpec("P")
R = TypeVar("R")
Coro: TypeAlias = Coroutine[Any, Any, R]


class TaskDecorator:
    """`@tasks.task`, and with options `@tasks.task(retries=5)`."""

    def __init__(
        self, declare: Callable[[Any, DecoratorOptions], Any], given: DecoratorOptions
    ) -> None:
        self._declare = declare
        self._given = given

    # Overloads with two injected parameters come before those with one, these before those with
    # none, and async before sync: type checkers take the first that matches.
    @overload
    def __call__(
        self, function: "Callable[Concatenate[Run, Batch, P], Coro[R]]", /
    ) -> "Task[Concatenate[Run, Batch, P], Coro[R], P, R]": ...
    @overload
    def __call__(
        self, function: "Callable[Concatenate[Batch, Run, P], Coro[R]]", /
    ) -> "Task[Concatenate[Batch, Run, P], Coro[R], P, R]": ...
    @overload
    def __call__(
        self, function: Callable[Concatenate[Run, P], Coro[R]], /
    ) -> Task[Concatenate[Run, P], Coro[R], P, R]: ...
    @overload
    def __call__(
        self, function: "Callable[Concatenate[Batch, P], Coro[R]]", /
    ) -> "Task[Concatenate[Batch, P], Coro[R], P, R]": ...
    @overload
    def __call__(self, function: Callable[P, Coro[R]], /) -> Task[P, Coro[R], P, R]: ...
    @overload
    def __call__(
        self, function: Callable[Concatenate[Run, Tx, P], R], /
    ) -> Task[Concatenate[Run, Tx, P], R, P, R]: ...
    @overload
    def __call__(
        self, function: Callable[Concatenate[Tx, Run, P], R], /
    ) -> Task[Concatenate[Tx, Run, P], R, P, R]: ...
    @overload
    def __call__(
        self, function: "Callable[Concatenate[Run, Batch, P], R]", /
    ) -> "Task[Concatenate[Run, Batch, P], R, P, R]": ...
    @overload
    def __call__(
        self, function: "Callable[Concatenate[Batch, Run, P], R]", /
    ) -> "Task[Concatenate[Batch, Run, P], R, P, R]": ...
    @overload
    def __call__(
        self, function: Callable[Concatenate[Run, P], R], /
    ) -> Task[Concatenate[Run, P], R, P, R]: ...
    @overload
    def __call__(
        self, function: Callable[Concatenate[Tx, P], R], /
    ) -> Task[Concatenate[Tx, P], R, P, R]: ...
    @overload
    def __call__(
        self, function: "Callable[Concatenate[Batch, P], R]", /
    ) -> "Task[Concatenate[Batch, P], R, P, R]": ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> Task[P, R, P, R]: ...
    @overload
    def __call__(self, /, **options: Unpack[DecoratorOptions]) -> "TaskDecorator": ...
    def __call__(self, function: Any = None, /, **options: Any) -> Any:
        """Turns the function into a task, or returns the decorator with these options."""
        if function is None:
            given: Any = {**self._given, **options}
            return TaskDecorator(self._declare, given)
        return self._declare(function, self._given)
