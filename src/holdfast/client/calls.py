"""Calls as bytes, and replies as results and errors: what a client says, without sockets."""

from collections.abc import Callable
from datetime import datetime
from typing import Any, Final, Generic, Literal, TypeAlias, TypeVar

import msgspec

from holdfast import exact_msgpack, wire
from holdfast.client.replies import ReplyError
from holdfast.errors import (
    BadInput,
    HoldfastError,
    LimitExceeded,
    NoAnswer,
    NotAuthenticated,
    OutcomeUnknown,
    RequestTooLarge,
    ServerBusy,
    ServerFailed,
    Unanswered,
    Unreachable,
    error_from_wire,
)
from holdfast.json_data import unfit_in
from holdfast.limits import MAX_REQUEST_BYTES

T = TypeVar("T")
Kind = Literal["read", "write", "long", "wait"]
Given: TypeAlias = dict[str, Any]

_WITH_VALUES: Final = frozenset({"entities", "tables"})  # layers that hold values of any type


class Call(Generic[T]):
    """An operation as a client calls it."""

    __slots__ = ("_begin", "_decode", "_encode", "kind", "name", "only_reads")

    def __init__(self, name: str, kind: Kind, *, only_reads: bool, result: Any) -> None:
        self.name = name
        self.kind = kind
        self.only_reads = only_reads
        self._begin = b"*2\r\n" + wire.bulk(name.upper().encode())
        layer, _, operation = name.partition(".")
        self._encode = _encoder_for(layer, operation)
        self._decode: Callable[[bytes], T] = msgspec.msgpack.Decoder(
            result, ext_hook=exact_msgpack.extension
        ).decode

    def command(self, given: Given) -> bytes:
        """The command for these arguments."""
        payload = self.payload(given)
        return b"%b$%d\r\n%b\r\n" % (self._begin, len(payload), payload)

    def payload(self, given: Given) -> bytes:
        """Returns these arguments as the bytes that are sent."""
        try:
            payload = self._encode(given)
        except (RecursionError, TypeError, ValueError, OverflowError) as error:
            raise BadInput(f"the arguments of {self.name} can't be sent: {error}") from None
        if len(payload) > MAX_REQUEST_BYTES:
            raise RequestTooLarge(
                f"the arguments of {self.name} have {len(payload)} bytes, "
                f"at most {MAX_REQUEST_BYTES} are taken"
            )
        return payload

    def result(self, reply: Any) -> T:
        """What a reply says: a result, or the error that it raises."""
        if type(reply) is not bytes:
            raise failure(reply)
        try:
            return self._decode(reply)
        except (msgspec.MsgspecError, ValueError, ArithmeticError) as error:
            raise ServerFailed(
                f"the answer to {self.name} can't be read: {error}",
                hint="Client and server should be of the same version.",
            ) from None


def _encoder_for(layer: str, operation: str) -> Callable[[Given], bytes]:
    if layer == "metrics":
        return _metrics_encoder()
    if layer == "jobs":
        return _jobs_encoder(operation)
    if layer == "events":
        return _encode_events
    return _encode_values if layer in _WITH_VALUES else _encode


def _encode(given: Given) -> bytes:
    try:
        return exact_msgpack.encode(given)
    except OverflowError:  # the data of a job may hold an integer of any size
        return _encode_values(given)


def _encode_values(given: Given) -> bytes:
    return exact_msgpack.encode(exact_msgpack.replaced(given))


def _jobs_encoder(operation: str) -> Callable[[Given], bytes]:
    """Refuses data that JSON can't give back here: once it is encoded, a set looks like a list."""
    from holdfast.jobs.arguments import CALLS, check_json

    call = CALLS.get(operation, operation.capitalize())

    def encode(given: Given) -> bytes:
        for argument in ("data", "result"):
            if argument in given:
                check_json(given[argument], call, argument)
        for job in given.get("jobs", ()):
            check_json(job.get("data") if isinstance(job, dict) else job.data, call)
        return _encode(given)

    return encode


def _encode_events(given: Given) -> bytes:
    """Lets values that no event can carry travel as what they are, for the store to refuse."""
    for event in given.get("events", ()) or [given.get("event")]:
        attributes = getattr(event, "attributes", None)
        if isinstance(event, dict):
            attributes = event.get("attributes")
        if attributes and unfit_in(attributes, "") is not None:
            return _encode_values(given)
    return _encode(given)


def _metrics_encoder() -> Callable[[Given], bytes]:
    from holdfast.metrics.entity import EntityKey, entity_object

    def written(value: Any) -> Any:
        return (
            entity_object(value) if isinstance(value, EntityKey) else exact_msgpack.written(value)
        )

    return msgspec.msgpack.Encoder(enc_hook=written).encode


def as_text(value: Any) -> Any:
    """Bytes and moments as the text that an operation takes as well."""
    if isinstance(value, bytes | bytearray):
        try:
            return value.decode()
        except UnicodeDecodeError:
            raise BadInput("a text is not UTF-8") from None
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, str | msgspec.Struct | dict) or not hasattr(value, "__iter__"):
        return value
    return [as_text(each) for each in value] if not hasattr(value, "keys") else value


# --- what is said around calls -------------------------------------------------------------------

PING: Final = b"*1\r\n$4\r\nPING\r\n"
MULTI: Final = b"*1\r\n$5\r\nMULTI\r\n"
EXEC: Final = b"*1\r\n$4\r\nEXEC\r\n"
EXACT: Final = b"*1\r\n$5\r\nEXACT\r\n"


def words(*given: str | bytes) -> bytes:
    """Any other command.

    >>> words("SPACE", "shop")
    b'*2\\r\\n$5\\r\\nSPACE\\r\\n$4\\r\\nshop\\r\\n'
    """
    try:
        encoded = [word.encode() if isinstance(word, str) else word for word in given]
    except UnicodeEncodeError:
        raise BadInput(f"{given[-1]!r} is no text that can be sent") from None
    return wire.array(map(wire.bulk, encoded))


def refuse_no_text(given: Any, what: str) -> None:
    """Raises if something that is sent as a word is none."""
    if not isinstance(given, str):
        raise BadInput(f"{what} is text, not {given!r:.100}")


# --- errors --------------------------------------------------------------------------------------


def failure(reply: Any) -> HoldfastError:
    """The error that a reply stands for: the very one that the store has raised."""
    if type(reply) is not ReplyError:
        return ServerFailed(f"the server answered {reply!r:.100}, which no call asks for")
    code, _, text = str(reply).partition(" ")
    if text.startswith("{"):
        try:
            error = error_from_wire(code.lower(), msgspec.json.decode(text, type=dict[str, Any]))
            return _with_record(error) if isinstance(error, LimitExceeded) else error
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return ServerFailed(text)
    if code == "WRONGPASS":
        return NotAuthenticated(text, hint="The URL names both: holdfast://user:password@host.")
    if text.startswith("max number of clients"):
        return ServerBusy("the server has as many connections as it takes")
    if code == "ERR":
        return ServerFailed(text, hint="Is it a server of Holdfast, and of this version?")
    return error_from_wire(code.lower(), {"message": text})


def _with_record(error: LimitExceeded) -> LimitExceeded:
    """The error with the result of the limiter as the record that the store has raised it with."""
    from holdfast.metrics.records import BatchResult

    if error.result is not None:
        error.result = msgspec.convert(error.result, BatchResult)
    return error


def is_error(reply: Any) -> bool:
    return type(reply) is ReplyError


def is_busy(reply: Any) -> bool:
    """Whether a server has refused it because of others: it was not done."""
    return type(reply) is ReplyError and str(reply).startswith("BUSY ")


def is_dropped_space(reply: Any) -> bool:
    """Whether the space of the connection is gone."""
    return type(reply) is ReplyError and str(reply).startswith("UNKNOWN_SPACE ")


class Broken(Exception):
    """A connection gave no reply. `was_sent` says whether the server may have all of the request,
    `is_late` whether time ran out."""

    def __init__(self, reason: str, *, was_sent: bool, is_late: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.was_sent = was_sent
        self.is_late = is_late

    def error(self, *, only_reads: bool) -> Unanswered:
        """What its caller is told."""
        if not self.was_sent:
            return Unreachable(self.reason)
        return NoAnswer(self.reason) if only_reads else OutcomeUnknown(self.reason)
