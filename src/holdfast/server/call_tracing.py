"""The interface of call tracers; by default a server has none."""

from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class TracedCall(Protocol):
    """One call, until it is answered."""

    @property
    def ids(self) -> Mapping[str, str]:
        """Returns the ids by which the log names the call: `trace_id` and `span_id`."""
        ...

    def around(self, work: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Wraps the work of the call's transaction, which may run more than once."""
        ...

    def end(self, error: BaseException | None) -> None:
        """Called when the call was answered, with an error or without."""
        ...


class CallTracer(Protocol):
    """Follows the calls of a server; see `holdfast.contrib.opentelemetry`."""

    def begin(
        self, operation: str, space: str, protocol: str, carrier: Mapping[str, str]
    ) -> TracedCall:
        """Begins a call; `carrier` has the HTTP headers, or the words of `TRACE`, that came with
        it."""
        ...

    def committed(self, transactions: int) -> None:
        """Called when the last group of writes is durable."""
        ...


async def ended_with(call: TracedCall | None, running: Coroutine[Any, Any, T]) -> T:
    """Returns the result of `running`, and ends the call with it."""
    if call is None:
        return await running
    try:
        result = await running
    except BaseException as error:
        call.end(error)
        raise
    call.end(None)
    return result
