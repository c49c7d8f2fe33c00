"""Task names: which task runs a function of RQ or Celery, and the names of its parameters."""

import json
from pathlib import Path
from typing import Any

import msgspec

from holdfast.errors import BadInput
from holdfast.limits import MAX_IMPORTED_VALUES


class TaskName(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The task that runs a function: its name, the names of its positional parameters, a queue."""

    name: str
    parameters: tuple[str, ...] = ()
    queue: str | None = None


class TaskNames:
    """The mapping file: a JSON object from names there to names here.

    A value is the task's name, or an object with `name`, `parameters` and `queue`, or null for jobs
    that stay where they are. A function that is not in it keeps its name.
    """

    def __init__(self, names: dict[str, TaskName | str | None]) -> None:
        self._names = {
            name: TaskName(name=found) if isinstance(found, str) else found
            for name, found in names.items()
        }

    @classmethod
    def read(cls, path: str | None) -> "TaskNames":
        if path is None:
            return cls({})
        try:
            found = msgspec.json.decode(
                Path(path).read_bytes(), type=dict[str, TaskName | str | None]
            )
        except (OSError, msgspec.MsgspecError) as error:
            raise BadInput(
                f"the mapping file {path} can't be read: {error}",
                hint='It looks like {"app.send": "send", "app.old": null}.',
            ) from None
        return cls(found)

    def get(self, name: str) -> TaskName | None:
        """Returns the task for a function; None if its jobs are left out."""
        return self._names.get(name, TaskName(name=name))


class UnfitArguments(Exception):
    """Raised for a job that can't be imported, with the reason."""


def data_of(task: TaskName, args: Any, kwargs: Any) -> str:
    """Returns the data of a task's job as JSON: its arguments by name."""
    if not isinstance(args, list | tuple) or not isinstance(kwargs, dict):
        raise UnfitArguments("its arguments are not a list and an object")
    if len(args) > len(task.parameters):
        raise UnfitArguments(
            f"it has {len(args)} positional arguments, and the mapping file names "
            f"{len(task.parameters)} parameters of {task.name}"
        )
    named = {**dict(zip(task.parameters, args, strict=False)), **kwargs}
    _refuse_too_many(named)
    try:
        return json.dumps(named, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise UnfitArguments(f"its arguments are not JSON: {error}") from None


def _refuse_too_many(value: Any) -> None:
    """Refuses more values than `MAX_IMPORTED_VALUES`: a few bytes of pickle can be many."""
    left = MAX_IMPORTED_VALUES
    waiting = [value]
    while waiting:
        left -= 1
        if left < 0:
            raise UnfitArguments(f"its arguments hold more than {MAX_IMPORTED_VALUES} values")
        each = waiting.pop()
        if isinstance(each, dict):
            waiting += each.values()
        elif isinstance(each, list | tuple):
            waiting += each
