"""What the generated operations stand on: a call now, a call to await, a call kept for later."""

import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

from holdfast.client.calls import Call, Given
from holdfast.errors import BadInput

T = TypeVar("T")
S = TypeVar("S")


class Line(Protocol):
    """One space of a server, for calls that return."""

    def call(self, call: Call[T], given: Given, *, timeout: float | None = None) -> T: ...


class AsyncLine(Protocol):
    """One space of a server, for calls that are awaited."""

    def call(
        self, call: Call[T], given: Given, *, timeout: float | None = None
    ) -> Awaitable[T]: ...


class Record(Protocol):
    """Calls that are kept, to be sent together."""

    def keep(self, call: Call[Any], given: Given, read: Callable[[Any], T]) -> "Handle[T]": ...


class CallFace:
    """Operations that call."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self._call = line.call


class AwaitFace:
    """Operations that are awaited."""

    def __init__(self, line: AsyncLine) -> None:
        self._line = line
        self._call = line.call


class RecordFace:
    """Operations that are kept."""

    def __init__(self, record: Record) -> None:
        self._recorder = record

    if not TYPE_CHECKING:  # or every name would be one

        def __getattr__(self, name: str) -> Any:
            """Says why a call of the client is no part of a batch."""
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

    def _record(self, call: Call[T], given: Given) -> "Handle[T]":
        return self._recorder.keep(call, given, call.result)


_NOTHING: Final = object()


class Handle(Generic[T]):
    """The result of an operation that was recorded: there once all of them were sent."""

    __slots__ = ("_error", "_read", "_result")

    def __init__(self, read: Callable[[Any], T]) -> None:
        self._read = read
        self._result: Any = _NOTHING
        self._error: BaseException | None = None

    def result(self) -> T:
        """What the operation returned; raises its error if it failed alone, as in a pipeline."""
        if self._error is not None:
            raise self._error
        if self._result is _NOTHING:
            raise BadInput(
                "there is no result yet: the operations were not sent",
                hint="Results are there behind the `with` block that records, if it did not raise.",
            )
        result: T = self._result
        return result

    def settle(self, reply: Any) -> None:
        """Takes the reply; raises, and keeps, the error that it stands for."""
        try:
            self._result = self._read(reply)
        except Exception as error:
            self._error = error
            raise

    def refuse(self, error: BaseException) -> None:
        self._error = error
