"""The base classes of the generated operations: called, awaited, or recorded for a batch.

A generated method passes its arguments to `self._call`. So the same function serves all three,
and returns whatever the `_call` of its class returns.
"""

import inspect
import sys
from collections.abc import Callable, Coroutine
from types import FunctionType, GenericAlias
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from holdfast.client.batches import Handle

if TYPE_CHECKING:
    from holdfast.client.batches import Recording
    from holdfast.client.client import ClientSpace
    from holdfast.client.generated.async_space import AsyncSpace

P = ParamSpec("P")
T = TypeVar("T")


class CalledLayer:
    """Operations that call a server and return the result."""

    def __init__(self, space: "ClientSpace") -> None:
        self._space = space
        self._call = space.call

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._space!r}>"


class AwaitedLayer:
    """Operations that return coroutines."""

    def __init__(self, space: "AsyncSpace") -> None:
        self._space = space
        self._call = space.call

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._space!r}>"


class RecordedLayer:
    """Operations that are recorded and return handles."""

    def __init__(self, recording: "Recording") -> None:
        self._call = recording.record

    if not TYPE_CHECKING:  # otherwise every attribute would type-check

        def __getattr__(self, name: str) -> Any:
            """Raises an error that says why a call can't be part of a batch."""
            from holdfast.error_text import no_attribute

            advice = {}
            for base in type(self).__mro__:
                called = base.__name__.replace("Recorded", "Called")
                if hasattr(getattr(sys.modules[base.__module__], called, None), name):
                    advice[name] = (
                        "It takes several transactions or waits, and so can't be part of a batch: "
                        "call it on the client, before or after the batch."
                    )
            raise no_attribute(self, name, advice)


def awaited(
    method: Callable[Concatenate[Any, P], T],
) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]:
    """Returns a method of a `CalledLayer` as one of an `AwaitedLayer`."""
    copy: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]] = _copy(method, _unchanged)
    if sys.version_info >= (3, 12):
        inspect.markcoroutinefunction(copy)
    return copy


def recorded(
    method: Callable[Concatenate[Any, P], T],
) -> Callable[Concatenate[Any, P], Handle[T]]:
    """Returns a method of a `CalledLayer` as one of a `RecordedLayer`."""
    copy: Callable[Concatenate[Any, P], Handle[T]] = _copy(method, _handle_of)
    return copy


def _unchanged(result: Any) -> Any:
    return result


def _handle_of(result: Any) -> Any:
    return GenericAlias(Handle, result)


def _copy(method: Any, make_result: Callable[[Any], Any]) -> Any:
    """Returns a copy, not a wrapper: it costs no extra call, and `help` shows signature and
    docstring."""
    copy = FunctionType(method.__code__, method.__globals__, method.__name__, method.__defaults__)
    copy.__kwdefaults__ = method.__kwdefaults__
    copy.__doc__ = method.__doc__
    copy.__annotations__ = {
        **method.__annotations__,
        "return": make_result(method.__annotations__["return"]),
    }
    return copy
