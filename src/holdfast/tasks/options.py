"""The options of tasks: a task's own, those of its registry, and the defaults."""

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias, TypedDict

import msgspec

from holdfast.errors import BadTask
from holdfast.jobs.records import Tag
from holdfast.tasks.backoff import Backoff, backoff_of, exponential

__all__ = ["DecoratorOptions", "DefaultOptions", "TaskOptions", "options_of"]

Unique: TypeAlias = bool | Callable[..., str]
Errors: TypeAlias = tuple[type[BaseException], ...]
DEFAULT_QUEUE: Final = "default"


class DefaultOptions(TypedDict, total=False):
    """Options that a registry can set for all of its tasks, and a task for itself."""

    queue: str
    priority: float
    retries: int
    backoff: Backoff | Sequence[float] | float
    timeout: float | None
    lock_seconds: float | None
    tags: Sequence[Tag]
    unique: Unique
    unique_for: str | float
    throttles: Sequence[str]
    retry_on: type[BaseException] | Errors
    fail_on: type[BaseException] | Errors
    result_ttl: float | None
    max_concurrency: int


class DecoratorOptions(DefaultOptions, total=False):
    """The options of `@tasks.task`: those that a registry can set, and the name."""

    name: str


class TaskOptions(msgspec.Struct, frozen=True, kw_only=True):
    """All options of one task."""

    queue: str = DEFAULT_QUEUE
    priority: float | None = None
    retries: int | None = None
    backoff: Backoff = exponential(first=1, most=300)
    timeout: float | None = None
    lock_seconds: float | None = None
    tags: tuple[Tag, ...] = ()
    unique: Unique = False
    unique_for: str | float = "running"
    throttles: tuple[str, ...] = ()
    retry_on: Errors = (Exception,)
    fail_on: Errors = ()
    result_ttl: float | None = None
    max_concurrency: int = 0


def options_of(defaults: DefaultOptions, given: DefaultOptions) -> TaskOptions:
    """Returns the options of a task; raises `BadTask` if one of them is invalid."""
    merged: dict[str, Any] = {**defaults, **given}
    merged.pop("name", None)
    unknown = merged.keys() - DefaultOptions.__annotations__.keys()
    if unknown:
        raise BadTask(
            f"a task has no option {min(unknown)!r}",
            hint=f"There are {', '.join(sorted(DecoratorOptions.__annotations__))}.",
        )
    for name in ("tags", "throttles"):
        if name in merged:
            merged[name] = _listed(name, merged[name])
    for name in ("retry_on", "fail_on"):
        if name in merged:
            merged[name] = _classes(name, merged[name])
    if "backoff" in merged:
        merged["backoff"] = backoff_of(merged["backoff"])
    for name in ("timeout", "lock_seconds"):
        if merged.get(name) is not None and merged[name] <= 0:
            raise BadTask(f"{name} of a task must be above 0, not {merged[name]!r:.100}")
    if merged.get("retries", 0) < 0 or merged.get("max_concurrency", 0) < 0:
        raise BadTask("retries and max_concurrency of a task must be 0 or more")
    return TaskOptions(**merged)


def _listed(name: str, given: Any) -> tuple[Any, ...]:
    if isinstance(given, str):
        raise BadTask(f"{name} of a task is a list, not the text {given!r:.100}")
    return tuple(given)


def _classes(name: str, given: Any) -> Errors:
    classes = given if isinstance(given, tuple) else (given,)
    if not all(isinstance(each, type) and issubclass(each, BaseException) for each in classes):
        raise BadTask(f"{name} of a task must be an exception class or several, not {given!r:.100}")
    return classes
