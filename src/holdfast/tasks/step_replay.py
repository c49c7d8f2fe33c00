"""Replay: a later run of a workflow gets the result of a remembered step, or its exception."""

import builtins
import sys
import typing
from collections.abc import Callable
from functools import partial
from typing import Any

from holdfast.errors import ChildFailed, StepFailed
from holdfast.jobs.records import COMPLETE, FAILED, Job
from holdfast.jobs.steps import Step
from holdfast.tasks.task import Task
from holdfast.tasks.values import from_plain

__all__ = [
    "child_failed",
    "gathered_value",
    "is_settled",
    "name_of",
    "replayed",
    "restored_error",
    "returned_by",
]


def replayed(known: Step, annotation: Any) -> Any:
    """Returns the result of a step that is done, or raises its exception."""
    if known.error:
        raise restored_error(known)
    if known.result is None or annotation in (Any, None, type(None)):
        return known.result
    return from_plain(known.result, annotation)


def restored_error(known: Step) -> Exception:
    """Returns the exception of a failed step, of its original class if that is loaded.

    Nothing is imported and no constructor is called: what is stored is only data.
    """
    module, _, name = known.error_class.partition(":")
    kind = getattr(sys.modules.get(module) or builtins, name, None)
    _, _, message = known.error.partition(": ")
    if not (isinstance(kind, type) and issubclass(kind, Exception)):
        return StepFailed(f"step {known.name} has failed: {known.error}")
    error: Exception = kind.__new__(kind)
    error.args = (message,)
    if hasattr(kind, "facts"):  # an error of Holdfast, which prints `message`
        error.message = message  # type: ignore[attr-defined]  # as its constructor does
    return error


def child_failed(child: dict[str, Any]) -> ChildFailed:
    """Returns the error for a child that has failed."""
    last = str(child["error"]).strip().rpartition("\n")[2]
    error = ChildFailed(f"child {child['id']} has failed in the group {child['group']}: {last}")
    error.id, error.group, error.failure = child["id"], child["group"], child["error"]
    return error


def gathered_value(child: dict[str, Any], decode: Callable[[Any], Any]) -> Any:
    """Returns the result of a child, or its error."""
    return child_failed(child) if "error" in child else decode(child["result"])


def is_settled(job: Job) -> bool:
    """Returns whether a child is complete or failed."""
    return job.state in (COMPLETE, FAILED)


def name_of(function: Callable[..., Any]) -> str:
    """Returns the name under which a step of this function is remembered."""
    if isinstance(function, Task):
        return function.name
    if isinstance(function, partial):
        return name_of(function.func)
    return str(getattr(function, "__qualname__", type(function).__qualname__))


def returned_by(function: Callable[..., Any]) -> Any:
    """Returns the function's return annotation; Any without one."""
    try:
        return typing.get_type_hints(function).get("return", Any)
    except (NameError, TypeError, AttributeError):
        return Any
