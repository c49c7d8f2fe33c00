"""How values sort in an index: their bytes sort as the values do.

A value is written as parts of `keys`, so that `keys.describe` can print an index entry:

    0                                   null and missing; Set, List and Map count as null
    1, false | true                     Bool
    2, None                             NaN, before all other numbers
    2, nearest double, remainder        Int, Uint and Float as one family, by exact value
    3, milliseconds since 1970          Timestamp
    4, text, None                       Text, by the UTF-8 bytes of its normal form
    4, its beginning, digest            a Text longer than 256 bytes
    5, bytes, None                      Binary, and in the same way a longer one

Rounding an integer to the nearest double never swaps two of them, so (double, remainder) sorts
exactly: 2^53 comes before 2^53 + 1, and 3 equals 3.0."""

import struct
from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache
from hashlib import blake2b
from typing import Any, Final

from msgspec.msgpack import Ext

from holdfast.entities.text import normalise
from holdfast.keys import pack, pack_bytes, pack_float, pack_int, pack_str
from holdfast.limits import EXACT_TEXT_BYTES

SET_CODE: Final = 1  # the msgpack extension that holds a Set
INSTANT_CODE: Final = 2  # and that of a Timestamp outside the years 1 to 9999

_NULL, _BOOL, _NUMBER, _MOMENT, _TEXT, _BINARY = (pack(family) for family in range(6))
NULL: Final = _NULL
BEYOND_NULL: Final = _BOOL  # where the values that are not null begin
END: Final = pack(6)  # sorts after every value

_WHOLE: Final = pack(None)  # the end of a text that is not cut
_TEXT_BEGINS: Final = (_TEXT + pack_str("")[:-1]).decode()
_TEXT_ENDS: Final = (pack_str("")[-1:] + _WHOLE).decode()
_SHORT: Final = EXACT_TEXT_BYTES // 4  # characters that are not cut, whatever they are
_EXACT: Final = pack(0)  # the remainder of a number that equals its double
_NAN: Final = _NUMBER + pack(None)
_EXACT_INTS: Final = 2**53
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_instant_bytes: Final = struct.Struct(">q")


class Instant:
    """A Timestamp that no datetime can hold: milliseconds since 1970.

    Not a struct: msgspec would encode it as a map, without calling `enc_hook`.
    """

    __slots__ = ("milliseconds",)

    def __init__(self, milliseconds: int) -> None:
        self.milliseconds: Final = milliseconds

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Instant) and self.milliseconds == other.milliseconds

    def __hash__(self) -> int:
        return hash((Instant, self.milliseconds))

    def __repr__(self) -> str:
        return f"Instant({self.milliseconds})"


def write_instant(instant: Instant) -> Ext:
    return Ext(INSTANT_CODE, _instant_bytes.pack(instant.milliseconds))


def read_instant(data: bytes) -> Instant:
    return Instant(_instant_bytes.unpack(data)[0])


def entry_part(value: Any) -> bytes:
    """Returns the bytes of `value` in one column of an index."""
    writer = _WRITERS.get(type(value))
    return writer(value) if writer is not None else _NULL  # a Set, List or Map counts as null


def family(value: Any) -> bytes:
    """Returns the first byte of all values that `<` and `>` can compare with `value`."""
    return entry_part(value)[:1]


def identity(value: Any) -> bytes:
    """Returns bytes that identify an element of a Set and sort the elements. Case matters."""
    exact = value.encode() if type(value) is str else b""
    return entry_part(value) + exact


def milliseconds(moment: datetime) -> int:
    """Returns milliseconds since 1970, rounded down."""
    since = moment - _EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000 + since.microseconds // 1_000


def _null(value: None) -> bytes:
    return _NULL


def _bool(value: bool) -> bytes:
    return _BOOL + pack(value)


@lru_cache(maxsize=1024)  # ranks, ages and counts have few different values
def int_part(value: int) -> bytes:
    """Returns the bytes of an integer."""
    if -_EXACT_INTS <= value <= _EXACT_INTS:
        return _NUMBER + pack_float(float(value)) + _EXACT
    double = float(value)
    return _NUMBER + pack_float(double) + pack_int(value - int(double))


def _float(value: float) -> bytes:
    return _NUMBER + pack_float(value) + _EXACT if value == value else _NAN


def _moment(value: datetime) -> bytes:
    return _MOMENT + pack_int(milliseconds(value))


def _instant(value: Instant) -> bytes:
    return _MOMENT + pack_int(value.milliseconds)


def text_part(value: str) -> bytes:
    """Returns the bytes of a text."""
    if len(value) <= _SHORT and value.isascii() and value.isprintable() and "  " not in value:
        # Most texts, in one step: see `normalise` and `pack_str`.
        return f"{_TEXT_BEGINS}{value.lower()}{_TEXT_ENDS}".encode()
    plain = normalise(value)
    if len(plain) * 4 > EXACT_TEXT_BYTES:
        whole = plain.encode()
        if len(whole) > EXACT_TEXT_BYTES:
            # Cut after a whole character, so that describe() can read what is left of the text.
            begins = whole[: EXACT_TEXT_BYTES + 3].decode(errors="ignore")
            return _TEXT + pack_str(begins) + _digest(whole)
    if "\0" in plain or "\1" in plain:
        return _TEXT + pack_str(plain) + _WHOLE
    return f"{_TEXT_BEGINS}{plain}{_TEXT_ENDS}".encode()  # the same, in one step


def _binary(value: bytes) -> bytes:
    if len(value) > EXACT_TEXT_BYTES:
        return _BINARY + pack_bytes(value[:EXACT_TEXT_BYTES]) + _digest(value)
    return _BINARY + pack_bytes(value) + _WHOLE


def _digest(whole: bytes) -> bytes:
    return pack_bytes(blake2b(whole, digest_size=16).digest())


_WRITERS: Final[dict[type, Callable[[Any], bytes]]] = {
    type(None): _null,
    bool: _bool,
    int: int_part,
    float: _float,
    str: text_part,
    bytes: _binary,
    datetime: _moment,
    Instant: _instant,
}
