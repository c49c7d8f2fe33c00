"""Operations that are recorded and sent together: as one transaction (a batch), or one each."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from holdfast.client import calls
from holdfast.client.calls import Call
from holdfast.client.replies import ReplyError
from holdfast.errors import BadInput, HoldfastError, RequestTooLarge, at_position
from holdfast.limits import MAX_BATCH_COMMANDS

if TYPE_CHECKING:
    from holdfast.client.entities import BatchEntities
    from holdfast.client.events import BatchEvents
    from holdfast.client.generated.jobs import RecordedJobs
    from holdfast.client.generated.tables import RecordedTables
    from holdfast.client.metrics import BatchMetrics

T = TypeVar("T")
U = TypeVar("U")

_NOTHING: Final = object()


class Handle(Generic[T]):
    """The result of a recorded operation, available once the recording has been sent."""

    __slots__ = ("_error", "_read", "_result")

    def __init__(self, read: Callable[[Any], T]) -> None:
        self._read: Callable[[Any], Any] = read
        self._result: Any = _NOTHING
        self._error: BaseException | None = None

    def result(self) -> T:
        """Returns the operation's result; raises its error if it failed alone, in a pipeline."""
        if self._error is not None:
            raise self._error
        if self._result is _NOTHING:
            raise BadInput(
                "there is no result yet: the operations were not sent",
                hint="Results are available after the `with` block, if it did not raise.",
            )
        result: T = self._result
        return result

    def settle(self, reply: Any) -> None:
        """Decodes the reply as the result. If it is an error, keeps and raises it."""
        try:
            self._result = self._read(reply)
        except Exception as error:
            self._error = error
            raise

    def refuse(self, error: BaseException) -> None:
        """Makes `result` raise this error."""
        self._error = error

    def _map(self, make: Callable[[T], U]) -> "Handle[U]":
        """Returns this handle, with a result that is computed from the operation's own."""
        read = self._read
        self._read = lambda reply: make(read(reply))
        changed: Any = self
        return changed  # type: ignore[no-any-return]  # it is the same object, of another result


class Recording:
    """The five layers, whose operations are recorded and return handles."""

    def __init__(self) -> None:
        self._commands: list[bytes] = []
        self._handles: list[Handle[Any]] = []
        self._calls: list[Call[Any]] = []
        self._is_sent = False

    @cached_property
    def entities(self) -> "BatchEntities":
        from holdfast.client.entities import BatchEntities

        return BatchEntities(self)

    @cached_property
    def events(self) -> "BatchEvents":
        from holdfast.client.events import BatchEvents

        return BatchEvents(self)

    @cached_property
    def jobs(self) -> "RecordedJobs":
        from holdfast.client.generated.jobs import RecordedJobs

        return RecordedJobs(self)

    @cached_property
    def metrics(self) -> "BatchMetrics":
        from holdfast.client.metrics import BatchMetrics

        return BatchMetrics(self)

    @cached_property
    def tables(self) -> "RecordedTables":
        from holdfast.client.generated.tables import RecordedTables

        return RecordedTables(self)

    def __len__(self) -> int:
        return len(self._commands)

    def record(self, call: Call[T], *values: Any) -> Handle[T]:
        """Records a call and returns the handle of its result."""
        if self._is_sent:
            raise BadInput("this batch or pipeline was already sent", hint="Begin a new one.")
        handle = Handle(call.result)
        self._commands.append(call.command(values))
        self._handles.append(handle)
        self._calls.append(call)
        return handle

    def _take_commands(self) -> list[bytes]:
        """Returns the recorded commands, to be sent once."""
        if self._is_sent:
            raise BadInput("this batch or pipeline was already sent", hint="Begin a new one.")
        self._is_sent = True
        return self._commands

    @property
    def _only_reads(self) -> bool:
        return all(call.only_reads for call in self._calls)


class Batch(Recording):
    """Operations that form one transaction: all of them are applied, or none."""

    def _refuse(self, error: BaseException) -> None:
        """Makes all handles raise the error that ended the call. After an interruption, such as a
        cancelled task, they say that the outcome is unknown."""
        if not isinstance(error, HoldfastError):
            error = calls.INTERRUPTED.error(only_reads=self._only_reads)
        for handle in self._handles:
            handle.refuse(error)

    def _request(self) -> bytes:
        commands = self._take_commands()
        if len(commands) > MAX_BATCH_COMMANDS:
            raise RequestTooLarge(
                f"a batch has {len(commands)} operations, at most {MAX_BATCH_COMMANDS} fit",
                hint="Others wait while it runs: send several smaller ones.",
            )
        return b"".join([calls.MULTI, *commands, calls.EXEC])

    def _settle(self, replies: Sequence[Any]) -> None:
        """Settles all handles, or raises the error that undid the batch, with its position."""
        try:
            for position, reply in enumerate(replies[1:-1]):
                if type(reply) is ReplyError:
                    error = calls.failure(reply)
                    at_position(error, position)
                    raise error
            if type(replies[-1]) is not list:
                raise calls.failure(replies[-1])
        except HoldfastError as error:
            self._refuse(error)
            raise
        for handle, reply in zip(self._handles, replies[-1], strict=True):
            handle.settle(reply)


class Pipeline(Recording):
    """Operations that are sent together, each succeeding or failing by itself."""

    def _settle(self, replies: Sequence[Any]) -> None:
        for handle, reply in zip(self._handles, replies, strict=False):
            with suppress(HoldfastError):  # the handle raises it when the result is asked for
                handle.settle(reply)

    def _settle_one(self, position: int, reply: Any) -> None:
        """Settles one handle with the reply, or with the reason why there is none."""
        handle = self._handles[position]
        if isinstance(reply, calls.ConnectionBroken):
            handle.refuse(reply.error(only_reads=self._calls[position].only_reads))
        elif isinstance(reply, BaseException) and not isinstance(reply, ReplyError):
            handle.refuse(reply)
        else:
            with suppress(HoldfastError):  # the handle raises it when the result is asked for
                handle.settle(reply)

    def _refuse_rest(self, begin: int, end: int, broken: calls.ConnectionBroken) -> None:
        """Refuses the rest: calls from `begin` were sent and not answered, those from `end` were
        never sent."""
        for position in range(begin, len(self._handles)):
            reason = calls.ConnectionBroken(
                broken.reason, was_sent=broken.was_sent and position < end
            )
            error = reason.error(only_reads=self._calls[position].only_reads)
            self._handles[position].refuse(error)
