"""The calls of a server, as the tracer of its owner follows them; by default there is none."""

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
        """Returns the work of its transaction, which may run more than once."""
        ...

    def end(self, error: BaseException | None) -> None:
        """Takes note that the call was answered, with an error or without."""
        ...


class CallTracer(Protocol):
    """Follows the calls of a server; see `holdfast.contrib.opentelemetry`."""

    def begin(
        self, operation: str, space: str, protocol: str, carrier: Mapping[str, str]
    ) -> TracedCall:
        """Begins a call; `carrier` has the headers, or the words of `TRACE`, that came with it."""
        ...

    def committed(self, transactions: int) -> None:
        """Takes note that the group which ran last is durable."""
        ...


async def ended_with(call: TracedCall | None, running: Coroutine[Any, Any, T]) -> T:
    """Returns what `running` returns, and ends the call with it."""
    if call is None:
        return await running
    try:
        result = await running
    except BaseException as error:
        call.end(error)
        raise
    call.end(None)
    return result
