"""The limiter object: single calls, batches, waits and a decorator on compiled conditions."""

import functools
import inspect
import time
from collections.abc import Callable, Iterable
from typing import Any, ParamSpec, Protocol, Self, TypeVar, cast

from holdfast.errors import BadLimit, DuplicateCondition
from holdfast.limits import ACQUIRE_SECONDS
from holdfast.metrics.conditions import LimiterPlan, check_amount
from holdfast.metrics.entity import (
    Components,
    EntityKey,
    EntityLike,
    GlobalEntityKey,
    LocalEntityKey,
)
from holdfast.metrics.limit_exceeded import exceeded
from holdfast.metrics.records import BatchResult, LimitResult, NamedBatchResult, Operation

P = ParamSpec("P")
R = TypeVar("R")
Sleep = Callable[[float], None]
TryOne = Callable[[str, EntityLike, int], LimitResult]


class LimitBackend(Protocol):
    """Makes a limiter's decisions: the layer on a transaction, a store, or a client."""

    def try_incr(
        self, operations: list[Any], conditions: Any, *, prefix: Any, namespace: str
    ) -> BatchResult: ...

    def peek(
        self, operations: list[Any], conditions: Any, *, prefix: Any, namespace: str
    ) -> BatchResult: ...

    def limit_incr(
        self, operations: list[Any], conditions: Any, *, prefix: Any, namespace: str
    ) -> None: ...


class Limiter:
    """Rate limits on entities; each call is a transaction, or part of the limiter's own one."""

    def __init__(
        self,
        backend: LimitBackend,
        plan: LimiterPlan,
        *,
        prefix: tuple[str, ...],
        namespace: str,
        clock: Callable[[], float],
        sleep: Sleep | None = time.sleep,
        try_one: TryOne | None = None,
    ) -> None:
        """`try_one`, if given, is a faster path for a single operation."""
        self.plan = plan
        self._backend = backend
        self._try_one: TryOne = try_one or self._try_listed
        self._where: dict[str, Any] = {"prefix": prefix, "namespace": namespace}
        self._clock = clock
        self._sleep = sleep

    def try_incr(self, condition: str, entity: EntityLike = None, amount: int = 1) -> LimitResult:
        """Counts `amount` if it is allowed. A denied attempt is not counted."""
        return self._try_one(condition, entity, amount)

    def _try_listed(self, condition: str, entity: EntityLike, amount: int) -> LimitResult:
        return self.try_all([operation_of(condition, entity, amount)]).results[0]

    def peek(self, condition: str, entity: EntityLike = None, amount: int = 1) -> LimitResult:
        """Returns the result `try_incr` would have; `amount=0` asks if the limit is exceeded."""
        return self.peek_all([operation_of(condition, entity, amount)]).results[0]

    def incr(self, condition: str, entity: EntityLike = None, amount: int = 1) -> None:
        """Counts `amount` without checking the limit."""
        self.incr_all([operation_of(condition, entity, amount)])

    charge = incr

    def require(self, condition: str, entity: EntityLike = None, amount: int = 1) -> LimitResult:
        """Like `try_incr`, but raises `LimitExceeded` if denied, which undoes a transaction."""
        result = self.try_incr(condition, entity, amount)
        if not result.allowed:
            raise exceeded(result, [result])
        return result

    # --- several operations -------------------------------------------------------------------

    def batch(self, default_amount: int = 1) -> "Batch":
        """Returns a batch, whose operations are admitted all together or not at all."""
        return Batch(self, check_amount(default_amount))

    def try_all(self, operations: Iterable[Operation | dict[str, Any]]) -> BatchResult:
        """Counts all operations if all are allowed. Entities are used as they are."""
        return self._backend.try_incr(list(operations), self.plan, **self._where)

    def peek_all(self, operations: Iterable[Operation | dict[str, Any]]) -> BatchResult:
        """Like `try_all`, but counts nothing."""
        return self._backend.peek(list(operations), self.plan, **self._where)

    def incr_all(self, operations: Iterable[Operation | dict[str, Any]]) -> None:
        """Counts all operations without checking the limits."""
        self._backend.limit_incr(list(operations), self.plan, **self._where)

    # --- waiting and decorating ---------------------------------------------------------------

    def acquire(
        self,
        condition: str,
        entity: EntityLike = None,
        amount: int = 1,
        timeout: float = ACQUIRE_SECONDS,
    ) -> LimitResult:
        """Waits until `amount` is allowed, for at most `timeout` seconds.

        Returns the last denied result as soon as the next attempt would come too late.
        """
        if self._sleep is None:
            raise BadLimit(
                "a limiter in a transaction can't wait",
                hint="Use store.metrics.limiter(...).acquire before the transaction.",
            )
        deadline = self._clock() + timeout
        while True:
            result = self.try_incr(condition, entity, amount)
            wait = result.retry_after
            if result.allowed or wait is None or self._clock() + wait > deadline:
                return result
            self._sleep(wait)

    def limit(
        self, condition: str, *, entity: Any = None, amount: int = 1
    ) -> Callable[[Callable[P, R]], Callable[P, R]]:
        """Decorates a function, sync or async: a call that is denied raises `LimitExceeded`.

        `entity` is an entity, or a function of the call's arguments that returns one.
        """

        def decorate(function: Callable[P, R]) -> Callable[P, R]:
            def check(*args: Any, **kwargs: Any) -> None:
                found = entity(*args, **kwargs) if callable(entity) else entity
                self.require(condition, found, amount)

            if inspect.iscoroutinefunction(function):

                @functools.wraps(function)
                async def limited_async(*args: P.args, **kwargs: P.kwargs) -> Any:
                    import asyncio  # takes 50 ms, so only async callers load it

                    await asyncio.to_thread(check, *args, **kwargs)
                    return await function(*args, **kwargs)

                return cast("Callable[P, R]", limited_async)

            @functools.wraps(function)
            def limited(*args: P.args, **kwargs: P.kwargs) -> R:
                check(*args, **kwargs)
                return function(*args, **kwargs)

            return limited

        return decorate


class Batch:
    """Operations under different conditions, then `try_incr`, `peek` or `incr` for all of them.

    The entity of an operation begins with its condition's name, as in the original.
    """

    def __init__(self, limiter: Limiter, default_amount: int) -> None:
        self._limiter = limiter
        self._default_amount = default_amount
        self._operations: dict[str, Operation] = {}

    def local_op(
        self, condition: str, components: "Components | int" = (), amount: int | None = None
    ) -> Self:
        """Adds an operation on a local entity."""
        return self._add(condition, LocalEntityKey(named(condition, components)), amount)

    def global_op(
        self, condition: str, components: "Components | int" = (), amount: int | None = None
    ) -> Self:
        """Adds an operation on a global entity."""
        return self._add(condition, GlobalEntityKey(named(condition, components)), amount)

    def try_incr(self) -> NamedBatchResult:
        """Counts all operations if all are allowed, none otherwise."""
        return self.by_name(self._limiter.try_all(self.operations))

    def peek(self) -> NamedBatchResult:
        """Returns the result that `try_incr` would have."""
        return self.by_name(self._limiter.peek_all(self.operations))

    def incr(self) -> None:
        """Counts all operations without checking the limits."""
        self._limiter.incr_all(self.operations)

    def require(self) -> NamedBatchResult:
        """Like `try_incr`, but raises `LimitExceeded` if it is denied."""
        result = self.try_incr()
        if not result.allowed:
            raise exceeded(result, result.failed.values())
        return result

    def _add(self, condition: str, entity: EntityKey, amount: int | None) -> Self:
        self._limiter.plan.find(condition)
        if condition in self._operations:
            raise DuplicateCondition(f"the batch already has an operation under {condition!r}")
        wanted = self._default_amount if amount is None else check_amount(amount)
        self._operations[condition] = operation_of(condition, entity, wanted)
        return self

    @property
    def operations(self) -> list[Operation]:
        """Returns the operations in the order in which they were added."""
        return list(self._operations.values())

    def by_name(self, result: BatchResult) -> NamedBatchResult:
        """Returns the results of these operations by the names of their conditions."""
        return NamedBatchResult(
            allowed=result.allowed,
            retry_after=result.retry_after,
            results=dict(zip(self._operations, result.results, strict=True)),
        )


def operation_of(condition: str, entity: Any, amount: int) -> Operation:
    return Operation(condition=condition, entity=entity, amount=amount)


def named(condition: str, components: Any) -> list[Any]:
    """Returns the condition's name and the components; a single value counts as a list."""
    if isinstance(components, list | tuple):
        return [condition, *components]
    if isinstance(components, dict):
        return [condition, *[part for item in components.items() for part in item]]
    return [condition, components]
