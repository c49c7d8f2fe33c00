"""The verbs of a workflow: generators that yield what has to be done, and two ways to drive them.

So the logic of `step`, `sleep`, `wait` and the others is written once, for threads and for event
loops.
"""

import asyncio
import inspect
from collections.abc import Callable, Generator
from typing import Any, NamedTuple

from holdfast.errors import BadTask

__all__ = ["CallFunction", "CallStore", "Verb", "drive", "drive_async", "return_false"]


class CallFunction(NamedTuple):
    """Asks the driver to call the workflow's own function."""

    function: Callable[[], Any]


class CallStore(NamedTuple):
    """Asks the driver to call the store."""

    function: Callable[[], Any]


Verb = Generator[CallFunction | CallStore, Any, Any]


def drive(verb: Verb) -> Any:
    """Runs a verb in the workflow's thread."""
    try:
        effect = next(verb)
        while True:
            try:
                value = effect.function()
                if inspect.iscoroutine(value):
                    value.close()
                    raise BadTask("an async function can be a step of an async workflow only")
            except BaseException as error:
                effect = verb.throw(error)
            else:
                effect = verb.send(value)
    except StopIteration as end:
        return end.value


async def drive_async(verb: Verb) -> Any:
    """Runs a verb on the event loop; blocking calls run in a thread."""
    try:
        effect = next(verb)
        while True:
            try:
                if isinstance(effect, CallFunction) and inspect.iscoroutinefunction(
                    getattr(effect.function, "func", effect.function)
                ):
                    value = await effect.function()
                else:
                    value = await asyncio.to_thread(effect.function)
            except BaseException as error:
                effect = verb.throw(error)
            else:
                effect = verb.send(value)
    except StopIteration as end:
        return end.value


def return_false() -> Verb:
    """Returns False, for a version that the workflow does not have."""
    return False
    yield  # a generator, as all verbs are
