"""Decodes bytes back into parts, by the ledger in `encoding.py`.

A reader takes the key and where a part begins, and returns the part and where the next one begins.
It accepts only what `pack` makes, so that a key and its parts determine each other.
"""

import struct
from collections.abc import Callable
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Final, NoReturn, TypeAlias, TypeVar
from uuid import UUID, SafeUUID

from holdfast.keys.encoding import COMPLEMENT, EPOCH, TUPLE, TimeUUID
from holdfast.limits import MAX_TUPLE_DEPTH

_U = TypeVar("_U", bound=UUID)
Reader: TypeAlias = Callable[[bytes, int], tuple[Any, int]]

# The exceptions of readers on bytes that `pack` does not make. A key that ends too soon raises an
# IndexError or a struct.error, so a complete key pays for no check.
MALFORMED: Final = (ValueError, IndexError, ArithmeticError, struct.error)


def read_part(data: bytes, flipped: bytes, at: int, depth: int = 0) -> tuple[Any, int]:
    """Reads any part; `flipped` is the complement of `data`, where descending parts are plain."""
    code = data[at]
    if code >= 0x80:
        data, flipped, code = flipped, data, 255 - code
    if code != TUPLE:
        return READERS[code](data, at)
    if depth == MAX_TUPLE_DEPTH:
        raise ValueError("tuples are nested too deep")
    parts: list[Any] = []
    at += 1
    while data[at]:
        value, at = read_part(data, flipped, at, depth + 1)
        parts.append(value)
    return tuple(parts), at + 1


def _read_small_int(data: bytes, at: int) -> tuple[int, int]:
    return data[at] - 0x20, at + 1


def _read_positive(data: bytes, at: int) -> tuple[int, int]:
    end = at + data[at] - 0x36
    number = int.from_bytes(data[at + 1 : end], "big")
    if data[at + 1] == 0 or number < 24 or end > len(data):
        raise ValueError("an int is cut off or not in its shortest form")
    return number, end


def _read_negative(data: bytes, at: int) -> tuple[int, int]:
    end = at + 0x21 - data[at]
    if data[at + 1] == 0xFF or end > len(data):
        raise ValueError("an int is cut off or not in its shortest form")
    return -int.from_bytes(data[at + 1 : end].translate(COMPLEMENT), "big"), end


def _read_int(data: bytes, at: int) -> tuple[int, int]:
    """Reads an int of up to 8 bytes within another part."""
    if not 0x18 <= data[at] < 0x40:
        raise ValueError("expected an int of up to 8 bytes")
    return READERS[data[at]](data, at)


def _read_big_positive(data: bytes, at: int) -> tuple[int, int]:
    size, begin = _read_int(data, at + 1)
    end = begin + size
    if size <= 8 or data[begin] == 0 or end > len(data):
        raise ValueError("an int is cut off or not in its shortest form")
    return int.from_bytes(data[begin:end], "big"), end


def _read_big_negative(data: bytes, at: int) -> tuple[int, int]:
    size, length = _read_int(data[at + 1 : at + 10].translate(COMPLEMENT), 0)
    begin = at + 1 + length
    end = begin + size
    if size <= 8 or data[begin] == 0xFF or end > len(data):
        raise ValueError("an int is cut off or not in its shortest form")
    return -int.from_bytes(data[begin:end].translate(COMPLEMENT), "big"), end


def _read_float(data: bytes, at: int) -> tuple[float, int]:
    if data[at + 1] >= 0x80:
        number = -_unpack_float(data, at + 1)[0]
    else:
        number = _unpack_float(data[at + 1 : at + 9].translate(COMPLEMENT))[0]
        if number == 0:
            raise ValueError("-0.0 is never packed")
    if number != number:
        raise ValueError("NaN is never packed")
    return number, at + 9


def _read_decimal(data: bytes, at: int) -> tuple[Decimal, int]:
    below_zero = data[at] == 0x49
    head = data[at + 1 : at + 10]  # the exponent, an int of at most 9 bytes in all
    point, length = _read_int(head.translate(COMPLEMENT) if below_zero else head, 0)
    begin = at + 1 + length
    end = data.index(b"\xff" if below_zero else b"\0", begin)
    pairs = data[begin:end].translate(COMPLEMENT) if below_zero else data[begin:end]
    if pairs[0] <= 10 or pairs[-1] == 1:
        raise ValueError("a Decimal begins or ends with a zero")
    digits = "".join([_PAIRS[pair] for pair in pairs]).removesuffix("0")
    # Made from a str, a Decimal is exact; arithmetic would round it to the context's precision.
    number = Decimal(f"{'-' if below_zero else ''}{digits}E{point - len(digits)}")
    if not number.is_finite():
        raise ValueError("the exponent is beyond what a Decimal holds")
    return number, end + 1


_PAIRS: Final = ["", *(f"{pair:02}" for pair in range(100))]


def _read_bytes(data: bytes, at: int) -> tuple[bytes, int]:
    end = data.index(0, at)
    raw = data[at + 1 : end]
    if 1 not in raw:
        return raw, end + 1
    plain = raw.replace(b"\1\1", b"\0").replace(b"\1\2", b"\1")
    if plain.replace(b"\1", b"\1\2").replace(b"\0", b"\1\1") != raw:
        raise ValueError("a byte 01 is followed by neither 01 nor 02")
    return plain, end + 1


def _read_str(data: bytes, at: int) -> tuple[str, int]:
    end = data.index(0, at)
    raw = data[at + 1 : end]
    return (_read_bytes(data, at)[0] if 1 in raw else raw).decode(), end + 1


def _read_uuid(data: bytes, at: int) -> tuple[UUID, int]:
    raw = data[at + 1 : at + 17]
    if len(raw) != 16:
        raise ValueError("a UUID is cut off")
    return _uuid(UUID, raw), at + 17


def _read_time_uuid(data: bytes, at: int) -> tuple[TimeUUID, int]:
    raw = data[at + 1 : at + 17]
    if len(raw) != 16 or raw[0] >> 4 != 1 or raw[8] >> 6 != 0b10:
        raise ValueError("a TimeUUID is cut off or not of version 1")
    return _uuid(TimeUUID, raw[4:8] + raw[2:4] + raw[:2] + raw[8:]), at + 17


def _uuid(kind: type[_U], raw: bytes) -> _U:
    # A quarter of the cost of the constructor, whose checks a key need not repeat.
    uuid = _new(kind)
    _set(uuid, "int", int.from_bytes(raw, "big"))
    _set(uuid, "is_safe", _UNKNOWN)
    return uuid


_new: Final = object.__new__
_set: Final = object.__setattr__  # a UUID refuses to be changed by its own
_UNKNOWN: Final = SafeUUID.unknown


def _read_datetime(data: bytes, at: int) -> tuple[datetime, int]:
    micros = _unpack_micros(data, at + 1)[0] - 2**63
    return EPOCH + timedelta(microseconds=micros), at + 9


def _read_unknown(data: bytes, at: int) -> NoReturn:
    raise ValueError(f"no part begins with {data[at]:02x}")


_unpack_float: Final = struct.Struct(">d").unpack_from
_unpack_micros: Final = struct.Struct(">Q").unpack_from


def _constant(value: Any) -> Reader:
    return lambda data, at: (value, at + 1)


def _readers() -> list[Reader]:
    readers: list[Reader] = [_read_unknown] * 0x80
    readers[0x01:0x04] = [_constant(None), _constant(False), _constant(True)]
    readers[0x17] = _read_big_negative
    readers[0x18:0x20] = [_read_negative] * 8
    readers[0x20:0x38] = [_read_small_int] * 24
    readers[0x38:0x40] = [_read_positive] * 8
    readers[0x40] = _read_big_positive
    readers[0x44] = _read_float
    readers[0x48] = _constant(Decimal("-Infinity"))
    readers[0x49] = readers[0x4B] = _read_decimal
    readers[0x4A] = _constant(Decimal(0))
    readers[0x4C] = _constant(Decimal("Infinity"))
    readers[0x50] = _read_bytes
    readers[0x54] = _read_str
    readers[0x58] = _read_uuid
    readers[0x5C] = _read_time_uuid
    readers[0x60] = _read_datetime
    return readers


READERS: Final = _readers()  # by the code of an ascending part
