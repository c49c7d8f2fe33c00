"""Encodes calls as bytes and decodes replies as results and errors. Uses no sockets."""

from collections.abc import Callable
from datetime import datetime
from functools import cached_property
from inspect import CO_VARARGS
from typing import Any, Final, Generic, Literal, TypeAlias, TypeVar

import msgspec

from holdfast import exact_msgpack, wire
from holdfast.client.replies import ReplyError
from holdfast.declarations import public_name
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
from holdfast.json_data import json_problem_in
from holdfast.limits import MAX_REQUEST_BYTES

T = TypeVar("T")
Kind = Literal["read", "write", "long", "wait"]
Values: TypeAlias = tuple[Any, ...]  # an operation's arguments, in the order of `Call.names`
Encode: TypeAlias = Callable[[Values], bytes]

_LAYERS_OF_ANY_TYPE: Final = frozenset({"entities", "tables"})  # layers whose values have any type


class Call(Generic[T]):
    """An operation as a client calls it. Its method declares the arguments, defaults and result."""

    def __init__(
        self,
        name: str,
        kind: Kind,
        method: Callable[..., T],
        *,
        only_reads: bool | None = None,
        has_plain_result: bool = False,
    ) -> None:
        self.name = name
        self.kind = kind
        self.only_reads = kind == "read" if only_reads is None else only_reads
        self._method: Any = method
        self._has_plain_result = has_plain_result
        self._begin = b"*2\r\n" + wire.bulk(name.upper().encode())

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The arguments in the order in which a method passes them: *values last."""
        code = self._method.__code__
        count = code.co_argcount + code.co_kwonlyargcount
        return tuple(code.co_varnames[1 : count + bool(code.co_flags & CO_VARARGS)])

    @property
    def method_name(self) -> str:
        """The name of the method, which is also the name of the layer's method."""
        name: str = self._method.__name__
        return name

    @cached_property
    def in_order(self) -> int:
        """The number of arguments that the method takes by position."""
        count: int = self._method.__code__.co_argcount
        return count - 1

    @cached_property
    def has_star(self) -> bool:
        """Returns whether the last argument is one that the method takes as *values."""
        return bool(self._method.__code__.co_flags & CO_VARARGS)

    @cached_property
    def defaults(self) -> Values:
        """The default of each argument; a marker if it has none."""
        code, by_position = self._method.__code__, self._method.__defaults__ or ()
        placed = code.co_varnames[1 : code.co_argcount]
        known = dict(zip(placed[len(placed) - len(by_position) :], by_position, strict=True))
        known |= self._method.__kwdefaults__ or {}
        if code.co_flags & CO_VARARGS:
            known[self.names[-1]] = ()
        return tuple(known.get(name, _Required()) for name in self.names)

    def command(self, values: Values) -> bytes:
        """Returns the command for these arguments."""
        payload = self.payload(values)
        return b"%b$%d\r\n%b\r\n" % (self._begin, len(payload), payload)

    def payload(self, values: Values) -> bytes:
        """Returns these arguments as the bytes to send, without those that equal their defaults."""
        try:
            payload = self._encode(values)
        except (RecursionError, TypeError, ValueError, OverflowError) as error:
            raise BadInput(f"the arguments of {self.name} can't be sent: {error}") from None
        if len(payload) > MAX_REQUEST_BYTES:
            raise RequestTooLarge(
                f"the arguments of {self.name} have {len(payload)} bytes, "
                f"at most {MAX_REQUEST_BYTES} are accepted"
            )
        return payload

    def result(self, reply: Any) -> T:
        """Returns the result in a reply, or raises the error in it."""
        if type(reply) is not bytes:
            raise failure(reply)
        try:
            return self._decode(reply)
        except (msgspec.MsgspecError, ValueError, ArithmeticError) as error:
            raise ServerFailed(
                f"the answer to {self.name} can't be read: {error}",
                hint="Use the same version of client and server.",
            ) from None

    # Both are created when they are first used: a program uses few of the operations.

    @cached_property
    def _encode(self) -> Encode:
        return _encoder_for(self.name.partition(".")[0], self)

    @cached_property
    def _decode(self) -> Callable[[bytes], T]:
        result = Any if self._has_plain_result else self._method.__annotations__["return"]
        return msgspec.msgpack.Decoder(result, ext_hook=exact_msgpack.extension).decode

    def arguments(self) -> Callable[..., Any]:
        """Returns a record of the arguments without those equal to their defaults."""
        fields = [(n, Any, d) for n, d in zip(self.names, self.defaults, strict=True)]
        return msgspec.defstruct(
            "Arguments", fields, omit_defaults=True, rename=public_name, gc=False
        )

    def given(self, values: Values) -> dict[str, Any]:
        """Returns the arguments that differ from their defaults, by their public names."""
        every = zip(self._public_names, values, self.defaults, strict=True)
        return {name: value for name, value, default in every if value is not default}

    @cached_property
    def _public_names(self) -> tuple[str, ...]:
        return tuple(map(public_name, self.names))


class _Required:
    """Marks an argument that has no default."""


def _encoder_for(layer: str, call: Call[Any]) -> Encode:
    if layer in _LAYERS_OF_ANY_TYPE:
        return _exact_encoder(call)
    if layer == "metrics":
        return _metrics_encoder(call)
    if layer == "jobs":
        return _jobs_encoder(call)
    return _events_encoder(call) if layer == "events" else _plain_encoder(call)


def _plain_encoder(call: Call[Any]) -> Encode:
    make, encode, encode_exactly = call.arguments(), exact_msgpack.encode, _exact_encoder(call)

    def encode_values(values: Values) -> bytes:
        try:
            return encode(make(*values))
        except OverflowError:  # the data of a job may hold an integer of any size
            return encode_exactly(values)

    return encode_values


def _exact_encoder(call: Call[Any]) -> Encode:
    given, encode, replaced = call.given, exact_msgpack.encode, exact_msgpack.replaced
    return lambda values: encode(replaced(given(values)))


def _jobs_encoder(call: Call[Any]) -> Encode:
    """Returns an encoder that refuses data that JSON can't represent: a set would become a list."""
    from holdfast.jobs.arguments import check_json

    encode = _plain_encoder(call)
    names, defaults = call.names, call.defaults
    checked = [(names.index(each), each) for each in ("data", "result") if each in names]
    listed = names.index("jobs") if "jobs" in names else None
    if not checked and listed is None:
        return encode

    def check_and_encode(values: Values) -> bytes:
        for position, argument in checked:
            if values[position] is not defaults[position]:
                check_json(values[position], argument)
        for job in values[listed] if listed is not None else ():
            # What is no job has no data, and the server refuses it.
            check_json(job.get("data") if isinstance(job, dict) else getattr(job, "data", None))
        return encode(values)

    return check_and_encode


def _events_encoder(call: Call[Any]) -> Encode:
    """Returns an encoder that keeps values that no event can have: the store refuses them."""
    encode, encode_exactly = _plain_encoder(call), _exact_encoder(call)
    position = next((at for at, name in enumerate(call.names) if name in ("event", "events")), None)
    if position is None:
        return encode
    is_list = call.names[position] == "events"

    def encode_events(values: Values) -> bytes:
        for event in values[position] if is_list else (values[position],):
            attributes = getattr(event, "attributes", None)
            if isinstance(event, dict):
                attributes = event.get("attributes")
            if attributes and json_problem_in(attributes, "") is not None:
                return encode_exactly(values)
        return encode(values)

    return encode_events


def _metrics_encoder(call: Call[Any]) -> Encode:
    from holdfast.metrics.entity import EntityKey, entity_object

    def written(value: Any) -> Any:
        if isinstance(value, EntityKey):
            return entity_object(value)
        return exact_msgpack.written(value)

    make, encode = call.arguments(), msgspec.msgpack.Encoder(enc_hook=written).encode

    def encode_values(values: Values) -> bytes:
        arguments = make(*values)
        try:
            return encode(arguments)
        except OverflowError:  # an entity may have an integer of any size
            plain = msgspec.to_builtins(arguments, enc_hook=written, builtin_types=(bytes,))
            return exact_msgpack.encode(exact_msgpack.replaced(plain))

    return encode_values


def as_text(value: Any) -> Any:
    """Returns bytes and timestamps as text that an operation accepts as well."""
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


# --- other commands ------------------------------------------------------------------------------

PING: Final = b"*1\r\n$4\r\nPING\r\n"
MULTI: Final = b"*1\r\n$5\r\nMULTI\r\n"
EXEC: Final = b"*1\r\n$4\r\nEXEC\r\n"
EXACT: Final = b"*1\r\n$5\r\nEXACT\r\n"


def words(*given: str | bytes) -> bytes:
    """Returns any other command.

    >>> words("SPACE", "shop")
    b'*2\\r\\n$5\\r\\nSPACE\\r\\n$4\\r\\nshop\\r\\n'
    """
    try:
        encoded = [word.encode() if isinstance(word, str) else word for word in given]
    except UnicodeEncodeError:
        raise BadInput(f"{given[-1]!r} is not text that can be sent") from None
    return wire.array(map(wire.bulk, encoded))


def require_text(given: Any, what: str) -> None:
    """Raises if something that is sent as text is not a string."""
    if not isinstance(given, str):
        raise BadInput(f"{what} must be text, not {given!r:.100}")


# --- errors --------------------------------------------------------------------------------------


def failure(reply: Any) -> HoldfastError:
    """Returns the error that the store has raised, from the reply that reports it."""
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
        return ServerBusy("the server has reached its maximum of connections")
    if code == "ERR":
        return ServerFailed(text, hint="Is it a Holdfast server of this version?")
    return error_from_wire(code.lower(), {"message": text})


def _with_record(error: LimitExceeded) -> LimitExceeded:
    """Returns the error, with the limiter's result as a record again."""
    from holdfast.metrics.records import BatchResult

    if error.result is not None:
        error.result = msgspec.convert(error.result, BatchResult)
    return error


def is_error(reply: Any) -> bool:
    return type(reply) is ReplyError


def is_busy(reply: Any) -> bool:
    """Returns whether a busy server has refused the command, without running it."""
    return type(reply) is ReplyError and str(reply).startswith("BUSY ")


def is_dropped_space(reply: Any) -> bool:
    """Returns whether the space of the connection was dropped."""
    return type(reply) is ReplyError and str(reply).startswith("UNKNOWN_SPACE ")


class ConnectionBroken(Exception):
    """A connection gave no reply. `was_sent` means that the server may have all of the request,
    `is_late` that time ran out."""

    def __init__(self, reason: str, *, was_sent: bool, is_late: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.was_sent = was_sent
        self.is_late = is_late

    def error(self, *, only_reads: bool) -> Unanswered:
        """Returns the error for the caller."""
        if not self.was_sent:
            return Unreachable(self.reason)
        return NoAnswer(self.reason) if only_reads else OutcomeUnknown(self.reason)


INTERRUPTED: Final = ConnectionBroken("the call was interrupted", was_sent=True)
