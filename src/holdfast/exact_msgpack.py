"""Encodes Python values that msgpack has no type for, and decodes them to exactly the same.

A set, a UUID, a decimal and an integer beyond 64 bits become extensions. msgspec writes the first
three by itself, as an array or a text, so they are replaced before it sees them.

    1  a set: its elements, as an array          4  a decimal: its text
    2  an `Instant` of entities: milliseconds    5  an integer: its decimal digits
    3  a UUID: its 16 bytes                      6  a datetime without a time zone: its ISO text

The codes of the first two are those that entities store.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

import msgspec
from msgspec.msgpack import Ext

from holdfast.entities.order import INSTANT_CODE, SET_CODE, Instant, read_instant, write_instant
from holdfast.errors import BadInput
from holdfast.limits import MAX_EQUAL_HASHES

_UUID_CODE: Final = 3
_DECIMAL_CODE: Final = 4
_INTEGER_CODE: Final = 5
_NAIVE_DATETIME_CODE: Final = 6

_PLAIN: Final = frozenset({type(None), bool, float, str, bytes, Ext})
_INT64: Final = 2**63


def replaced(value: Any) -> Any:
    """Returns `value`, with extensions in place of everything that msgpack has no type for.

    >>> replaced([1, "a"]), replaced({"n": 2**70})["n"].code
    ([1, 'a'], 5)
    """
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is int:
        return value if -_INT64 <= value < _INT64 else Ext(_INTEGER_CODE, b"%d" % value)
    if kind is dict:
        return {name: replaced(item) for name, item in value.items()}
    if kind is list or kind is tuple:
        return [replaced(item) for item in value]
    return _replaced_other(value)


def _replaced_other(value: Any) -> Any:
    if isinstance(value, datetime):
        return value if value.tzinfo else Ext(_NAIVE_DATETIME_CODE, value.isoformat().encode())
    if isinstance(value, UUID):
        return Ext(_UUID_CODE, value.bytes)
    if isinstance(value, Decimal):
        return Ext(_DECIMAL_CODE, str(value).encode())
    if isinstance(value, set | frozenset):
        return Ext(SET_CODE, encode([replaced(item) for item in value]))
    if isinstance(value, msgspec.Struct):
        return msgspec.structs.replace(
            value, **{name: replaced(getattr(value, name)) for name in value.__struct_fields__}
        )
    if isinstance(value, Mapping):
        return {name: replaced(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [replaced(item) for item in value]
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    return replaced(written(value))


def written(value: Any) -> Any:
    """Converts a value that msgspec can't encode into one that it can: the `enc_hook`."""
    if isinstance(value, Instant):
        return write_instant(value)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, str):  # a subclass, such as an enumeration, whose own str() is its name
        return str.__str__(value)
    for plain in (int, float):
        if isinstance(value, plain):
            return plain(value)
    if isinstance(value, Iterable):
        return list(value)
    raise BadInput(
        f"a value of type {type(value).__name__} can't be sent to a server",
        hint="Send what JSON can hold, or bytes, sets, datetimes, decimals and UUIDs.",
    )


def extension(code: int, data: memoryview) -> Any:
    """Returns the value of a msgpack extension: the `ext_hook` of a decoder."""
    if code == SET_CODE:
        return _set_of(_decode(data))
    if code == _UUID_CODE:
        return UUID(bytes=bytes(data))
    if code == _DECIMAL_CODE:
        return Decimal(bytes(data).decode())
    if code == _INTEGER_CODE:
        return int(bytes(data))
    if code == _NAIVE_DATETIME_CODE:
        return datetime.fromisoformat(bytes(data).decode())
    if code == INSTANT_CODE:
        return read_instant(bytes(data))
    return Ext(code, bytes(data))


def _set_of(elements: list[Any]) -> set[Any]:
    """Returns the elements as a set; refuses many with the same hash, which take quadratic time.

    Anyone can find UUIDs, decimals and big integers with the same hash.
    """
    if len(elements) - len(set(map(hash, elements))) > MAX_EQUAL_HASHES:
        raise BadInput(f"more than {MAX_EQUAL_HASHES:,} elements of a set have the same hash")
    return set(elements)


encode: Final = msgspec.msgpack.Encoder(enc_hook=written).encode
_decode: Final = msgspec.msgpack.Decoder(list[Any], ext_hook=extension).decode
