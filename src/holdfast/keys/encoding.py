"""Encodes parts as bytes, by the ledger of codes. A stored part never changes its code.

A part begins with its code:

    00          ends a str, bytes, a tuple or the digits of a Decimal; never begins a part
    01          None
    02 03       False, True
    17          int below -(2^64 - 1): the complement of the bytes that 40 has
    18 .. 1f    int below 0 of 8 .. 1 bytes: the complement of its magnitude, big-endian
    20 .. 37    int 0 .. 23, with no further byte
    38 .. 3f    int of 1 .. 8 bytes, big-endian, as few bytes as hold it
    40          int above 2^64 - 1: the number of its bytes as an int part, then the bytes
    44          float: IEEE 754, big-endian, sign bit flipped, or all bits if it is below 0
    48          Decimal -Infinity
    49          Decimal below 0: the complement of the bytes that 4b has
    4a          Decimal 0
    4b          Decimal above 0: the exponent e of 0.ddd * 10^e as an int part, the digits ddd with
                no zero at either end, two to a byte (00 .. 99 as 01 .. 64), then 00
    4c          Decimal Infinity
    50          bytes, with 00 written as 01 01 and 01 as 01 02, then 00
    54          str: its UTF-8, written as bytes are
    58          UUID: its 16 bytes
    5c          TimeUUID: its bytes 6-7, 4-5, 0-3 (version and timestamp, high to low) and 8-15
    60          datetime: microseconds since 1970 UTC plus 2^63, 8 bytes, big-endian
    64          tuple: its parts, then 00
    80 .. fe    a descending part: the complement of all bytes of the ascending one
    ff          never begins a part

Codes below 80 that are not named are free. No part's bytes are the beginning of another part's, so
a complement reverses the order exactly.

Parts of different types sort by their codes, numbers too: every int before every float before every
Decimal. Equal values of a type have equal keys: -0.0 is packed as 0.0 and Decimal("1.00") as
Decimal("1"). NaN is refused: it is not equal to itself, so nothing would find it again.
"""

import struct
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Final, TypeAlias, Union
from uuid import UUID

from holdfast.errors import UnsupportedPart
from holdfast.limits import MAX_TUPLE_DEPTH

Part: TypeAlias = Union[  # a TimeUUID is a UUID
    "bool | int | float | Decimal | bytes | str | UUID | datetime | tuple[Part, ...] | Descending",
    None,
]
TUPLE: Final = 0x64  # the highest code of an ascending part
COMPLEMENT: Final = bytes(range(255, -1, -1))  # for bytes.translate
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

_EXPECTED: Final = (
    "A key part is None, bool, int, float, Decimal, bytes, str, UUID, TimeUUID, an aware datetime, "
    "or a tuple of these; desc(...) reverses the order of any of them."
)


class Descending:
    """A part whose keys sort in reverse; made by `desc`."""

    __slots__ = ("part",)

    def __init__(self, part: Part) -> None:
        self.part: Final = part

    def __eq__(self, other: object) -> bool:
        return self.part == other.part if isinstance(other, Descending) else NotImplemented

    def __hash__(self) -> int:
        return hash((Descending, self.part))

    def __repr__(self) -> str:
        return f"desc({self.part!r})"


class TimeUUID(UUID):
    """A version 1 UUID that sorts by its timestamp, then by clock sequence and node.

    >>> old = TimeUUID("ffffffff-0000-11ee-8000-000000000000")
    >>> new = TimeUUID("00000000-0001-11ee-8000-000000000000")
    >>> old < new, UUID(str(old)) < UUID(str(new))
    (True, False)
    """

    __slots__ = ()

    def __init__(self, uuid: UUID | str) -> None:
        try:
            super().__init__(int=uuid.int if isinstance(uuid, UUID) else UUID(uuid).int)
        except (ValueError, AttributeError, TypeError):
            raise UnsupportedPart(f"a TimeUUID is made from a UUID, not from {uuid!r}") from None
        if self.version != 1:
            raise UnsupportedPart(
                f"the UUID {self} has version {self.version}, a TimeUUID has version 1",
                hint="Use uuid.uuid1(), or keep it a plain UUID.",
            )

    def __lt__(self, other: object) -> bool:
        return _by_time(self) < _by_time(other) if isinstance(other, TimeUUID) else NotImplemented

    def __le__(self, other: object) -> bool:
        return _by_time(self) <= _by_time(other) if isinstance(other, TimeUUID) else NotImplemented

    def __gt__(self, other: object) -> bool:
        return _by_time(self) > _by_time(other) if isinstance(other, TimeUUID) else NotImplemented

    def __ge__(self, other: object) -> bool:
        return _by_time(self) >= _by_time(other) if isinstance(other, TimeUUID) else NotImplemented


def _by_time(uuid: UUID) -> bytes:
    raw = uuid.int.to_bytes(16, "big")
    return raw[6:8] + raw[4:6] + raw[:4] + raw[8:]


# --- fast paths for the usual types ---------------------------------------------------------


def pack_str(text: str) -> bytes:
    """Like `pack(text)`, but faster. The type is not checked."""
    if "\0" in text or "\1" in text:
        text = text.replace("\1", "\1\2").replace("\0", "\1\1")
    try:
        # Not an f-string, which would hold the name of an Enum's member in place of its value.
        return b"\x54%b\0" % text.encode()
    except UnicodeEncodeError as error:
        raise UnsupportedPart(
            f"the str {brief(ascii(text))} holds a lone surrogate, {text[error.start]!a}",
            hint="Pack bytes where text may not be Unicode.",
        ) from None


def pack_bytes(data: bytes) -> bytes:
    """Like `pack(data)`, but faster. The type is not checked."""
    return b"\x50" + data.replace(b"\1", b"\1\2").replace(b"\0", b"\1\1") + b"\0"


def pack_int(number: int) -> bytes:
    """Like `pack(number)`, but faster. The type is not checked."""
    if -_TABLE_SIZE < number < _TABLE_SIZE:
        return _INTS[number]
    size = (number.bit_length() + 7) >> 3
    if size <= 8:
        bases = _POSITIVE if number > 0 else _NEGATIVE
        return (number + bases[size]).to_bytes(size + 1, "big")
    if number > 0:
        return b"\x40" + pack_int(size) + number.to_bytes(size, "big")
    return b"\x17" + pack_int(-number)[1:].translate(COMPLEMENT)


def pack_float(number: float) -> bytes:
    """Like `pack(number)` for a float, but faster. The type is not checked."""
    if number > 0.0:
        return _pack_float(0x44, -number)  # to negate a float is to flip its sign bit
    if number < 0.0:
        return b"\x44" + _pack_float(0, number)[1:].translate(COMPLEMENT)
    if number == 0.0:
        return b"\x44\x80\0\0\0\0\0\0\0"
    raise UnsupportedPart("NaN has no place in an order, so no key holds it")


def pack_str_desc(text: str) -> bytes:
    """Like `pack(desc(text))`, but faster. The type is not checked."""
    return pack_str(text).translate(COMPLEMENT)


def pack_bytes_desc(data: bytes) -> bytes:
    """Like `pack(desc(data))`, but faster. The type is not checked."""
    return pack_bytes(data).translate(COMPLEMENT)


def pack_int_desc(number: int) -> bytes:
    """Like `pack(desc(number))`, but faster. The type is not checked."""
    return pack_int(number).translate(COMPLEMENT)


def pack_float_desc(number: float) -> bytes:
    """Like `pack(desc(number))` for a float, but faster. The type is not checked."""
    return pack_float(number).translate(COMPLEMENT)


def pack_time_uuid_desc(uuid: UUID) -> bytes:
    """Like `pack(desc(TimeUUID(uuid)))`, but faster. Neither type nor version are checked."""
    raw = (uuid.int ^ _ALL_BITS).to_bytes(16, "big")
    return b"\xa3" + raw[6:8] + raw[4:6] + raw[:4] + raw[8:]


_ALL_BITS: Final = 2**128 - 1
_pack_float: Final = struct.Struct(">Bd").pack
# By the number of bytes: what is added to an int so that its own bytes follow its code. A negative
# int becomes the complement of its magnitude by adding it to as many bytes ff.
_POSITIVE: Final = [(0x37 + size) << (8 * size) for size in range(9)]
_NEGATIVE: Final = [((0x21 - size) << (8 * size)) - 1 for size in range(9)]
_TABLE_SIZE: Final = 1_024  # ints nearer to 0 than this are looked up


def _packed_ints() -> list[bytes]:
    """Returns the packed ints by their number: a negative index finds its own number, too."""
    small = [0x20 + number for number in range(24)]
    one_byte = [_POSITIVE[1] + number for number in range(24, 256)]
    two_bytes = [_POSITIVE[2] + number for number in range(256, _TABLE_SIZE)]
    below_one_byte = [_NEGATIVE[2] + number for number in range(1 - _TABLE_SIZE, -255)]
    below_zero = [_NEGATIVE[1] + number for number in range(-255, 0)]
    return [
        number.to_bytes((number.bit_length() + 7) >> 3, "big")
        for number in small + one_byte + two_bytes + below_one_byte + below_zero
    ]


_INTS: Final = _packed_ints()


# --- all others -------------------------------------------------------------------------------


def pack_any(part: Any, depth: int = 0) -> bytes:
    """Packs a part of any type, at `depth` tuples down."""
    kind = type(part)
    if kind is tuple:
        if depth == MAX_TUPLE_DEPTH:
            raise UnsupportedPart(f"a key holds tuples at most {MAX_TUPLE_DEPTH} deep")
        return b"\x64" + b"".join([pack_any(inner, depth + 1) for inner in part]) + b"\0"
    if kind is Descending:
        return pack_any(part.part, depth).translate(COMPLEMENT)
    if kind in PACKERS:
        return PACKERS[kind](part)
    if isinstance(part, tuple):
        return pack_any(tuple(part), depth)
    if isinstance(part, str):
        return pack_str(part)
    for base in (int, bytes, float, Decimal, datetime, TimeUUID, UUID):
        if isinstance(part, base):
            return PACKERS[base](part)
    raise UnsupportedPart(
        f"a key can't hold {brief(repr(part))} of type {kind.__name__}", hint=_EXPECTED
    )


def _pack_decimal(number: Decimal) -> bytes:
    # Not Decimal.normalize, which would round to the precision of the thread's context.
    sign, digits, exponent = number.as_tuple()
    if exponent == "F":
        return b"\x48" if sign else b"\x4c"
    if isinstance(exponent, str):
        raise UnsupportedPart("a Decimal NaN has no place in an order, so no key holds it")
    text = "".join(map(str, digits))
    significant = text.strip("0")
    if not significant:
        return b"\x4a"
    point = exponent + len(text.lstrip("0"))
    if len(significant) % 2:
        significant += "0"
    pairs = bytes(int(significant[i : i + 2]) + 1 for i in range(0, len(significant), 2))
    rest = pack_int(point) + pairs + b"\0"
    return b"\x49" + rest.translate(COMPLEMENT) if sign else b"\x4b" + rest


def _pack_datetime(moment: datetime) -> bytes:
    if moment.utcoffset() is None:
        raise UnsupportedPart(
            f"the datetime {moment.isoformat()} is naive: it names no moment without a time zone",
            hint="Give it a tzinfo, for example with datetime.now(UTC).",
        )
    since = moment - EPOCH
    micros = (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
    if not _MIN_MICROS <= micros <= _MAX_MICROS:
        raise UnsupportedPart(f"the datetime {moment.isoformat()} is outside the years 1-9999 UTC")
    return _pack_micros(0x60, micros + 2**63)


_pack_micros: Final = struct.Struct(">BQ").pack
_MIN_MICROS: Final = (datetime.min.replace(tzinfo=UTC) - EPOCH) // timedelta(microseconds=1)
_MAX_MICROS: Final = (datetime.max.replace(tzinfo=UTC) - EPOCH) // timedelta(microseconds=1)

PACKERS: Final[dict[type, Callable[[Any], bytes]]] = {
    type(None): lambda part: b"\x01",
    bool: lambda part: b"\x03" if part else b"\x02",
    int: pack_int,
    float: pack_float,
    Decimal: _pack_decimal,
    bytes: pack_bytes,
    str: pack_str,
    UUID: lambda part: b"\x58" + part.int.to_bytes(16, "big"),
    TimeUUID: lambda part: b"\x5c" + _by_time(part),
    datetime: _pack_datetime,
    tuple: pack_any,
    Descending: pack_any,
}


def brief(text: str) -> str:
    """Returns `text`, cut so that it fits an error message."""
    return text if len(text) <= 80 else f"{text[:79]}…"
