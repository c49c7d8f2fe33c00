"""Commands as people type them: words instead of an object.

`JOBS.PUT emails app.SendMail {"to":"ann"}` assigns the words to the operation's arguments in their
order. If text is expected, a word is text; otherwise it is JSON, or text if it is not valid JSON.
"""

import types
import typing
from functools import cache
from typing import Any, Final, Literal, NamedTuple, Union

import msgspec

from holdfast import wire
from holdfast.errors import BadInput
from holdfast.operations import Operation
from holdfast.server import payloads

_MAPS: Final = frozenset(bytes([first]) for first in (*range(0x80, 0x90), 0xDE, 0xDF))  # in msgpack


def form_of(payload: bytes) -> Literal["json", "msgpack", "words"]:
    """Returns the format of a single argument by its first byte: no word begins like an object."""
    first = payload[:1]
    if first == b"{" or payload.lstrip()[:1] == b"{":
        return "json"
    return "msgpack" if first in _MAPS else "words"


def read_words(operation: Operation, words: wire.Command) -> Any:
    """Returns the arguments of an operation, one word each; a list takes all remaining words."""
    if operation.full_name == "events.send" and len(words) <= 2:
        return _event(operation, words)
    slots = _slots(operation.arguments)
    if len(words) > len(slots) and operation.star is None:
        raise BadInput(f"{operation.full_name} takes at most {len(slots)} words")
    given: dict[str, Any] = {}
    for position, (slot, word) in enumerate(zip(slots, words, strict=False)):
        if slot.name == operation.star:
            given[slot.wire_name] = [_text(each) for each in words[position:]]
            break
        given[slot.wire_name] = _text(word) if slot.takes_text else _value(operation, word)
    return _convert(operation, given)


class _Slot(NamedTuple):
    """The argument that a word fills."""

    name: str
    wire_name: str
    takes_text: bool


@cache
def _slots(arguments: type[msgspec.Struct]) -> list[_Slot]:
    """Returns the arguments in their order, cached because msgspec reads the annotations each
    time."""
    return [
        _Slot(field.name, field.encode_name, _takes_text(field.type))
        for field in msgspec.structs.fields(arguments)
    ]


def _event(operation: Operation, words: wire.Command) -> Any:
    """`EVENTS.SEND name [attributes]`."""
    try:
        attributes = msgspec.json.decode(words[1]) if len(words) > 1 else {}
    except RecursionError:
        raise BadInput("the attributes are nested too deeply") from None
    except UnicodeDecodeError:
        raise BadInput("a text of the attributes is not UTF-8") from None
    return _convert(operation, {"event": {"name": _text(words[0]), "attributes": attributes}})


def _convert(operation: Operation, given: dict[str, Any]) -> Any:
    arguments = payloads.convert_arguments(operation, given, is_json=False)
    return payloads.with_json_values(operation, arguments)  # words are answered in JSON


def _value(operation: Operation, word: bytes) -> Any:
    try:
        return msgspec.json.Decoder(float_hook=payloads.number_hook(operation)).decode(word)
    except (ValueError, RecursionError):
        return _text(word)


def _takes_text(expected: Any) -> bool:
    origin = typing.get_origin(expected)
    if origin in (Union, types.UnionType):
        return any(map(_takes_text, typing.get_args(expected)))
    return expected is str or origin is Literal


def _text(word: bytes) -> str:
    try:
        return word.decode()
    except UnicodeDecodeError:
        raise BadInput("a word is not UTF-8") from None
