"""Converts values of each type, plain Python or JSON forms, to the stored form.

A function here takes any object and returns the stored value, or raises ValueError with a sentence
about what the type accepts. A number never passes through a double on its way to an exact type: the
JSON parser returns numbers with a fraction or an exponent as `Decimal`, made from their text.
"""

import math
import re
import struct
from base64 import b64decode
from binascii import Error as Base64Error
from datetime import UTC, datetime, timedelta, timezone
from decimal import MAX_PREC, Context, Decimal, InvalidOperation
from typing import Any, Final
from uuid import UUID

from holdfast.limits import (
    MAX_DECIMAL_DIGITS,
    MAX_DECIMAL_EXPONENT,
    MAX_DECIMAL_ZEROS,
    MAX_JSON_DEPTH,
)

MAX_FLOAT: Final = 3.4028234663852886e38
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
EXACT: Final = Context(prec=min(MAX_PREC, 20_000))

_MAX_JSON_BITS: Final = 13_288  # 4,000 digits: a little less than Python refuses to print
_INTEGER: Final = re.compile(r"-?[0-9]+", re.ASCII)
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,9})?", re.ASCII)
_BASE64: Final = re.compile(r"[A-Za-z0-9+/]*={0,2}", re.ASCII)
_UUID: Final = re.compile(
    r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"
)
_TIMESTAMP: Final = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)"
    r"(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d+))?)?(?:(Z)|([+-])(\d\d)(?::?(\d\d))?)?)?",
    re.ASCII,
)
_FLOAT: Final = struct.Struct(">f")


def accept_string(value: Any) -> str:
    if type(value) is not str:
        raw = _node_buffer(value)
        if raw is None:
            raise ValueError("a string is expected")
        try:
            return raw.decode()
        except UnicodeDecodeError:
            raise ValueError("the buffer is not UTF-8") from None
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise ValueError("the string has a lone surrogate, which is not a character") from None
    return value


def accept_blob(value: Any) -> bytes:
    if type(value) is bytes:
        return value
    if isinstance(value, bytearray | memoryview | bytes):
        return bytes(value)
    if isinstance(value, str):
        return _from_base64(value)
    raw = _node_buffer(value)
    if raw is None:
        raise ValueError("bytes are expected: base64 text in JSON, bytes in Python")
    return raw


def _from_base64(text: str) -> bytes:
    standard = text.replace("-", "+").replace("_", "/")
    if not _BASE64.fullmatch(standard):
        raise ValueError("the text is not base64")
    digits = standard.rstrip("=")
    padding = -len(digits) % 4
    if padding == 3 or len(standard) - len(digits) not in (0, padding):
        raise ValueError("the text has a length that base64 can't have")
    try:
        return b64decode(digits + "=" * padding, validate=True)
    except Base64Error:
        raise ValueError("the text is not base64") from None


def _node_buffer(value: Any) -> bytes | None:
    """Returns the bytes of Node's `{"type": "Buffer", "data": [...]}`; else None."""
    if not isinstance(value, dict) or value.keys() != {"type", "data"} or value["type"] != "Buffer":
        return None
    data = value["data"]
    if not isinstance(data, list):
        return None
    if not all(type(byte) is int and 0 <= byte <= 255 for byte in data):
        raise ValueError("the data of a Buffer are numbers from 0 to 255")
    return bytes(data)


def is_node_buffer(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and value.keys() == {"type", "data"}
        and value["type"] == "Buffer"
        and isinstance(value["data"], list)
    )


def accept_boolean(value: Any) -> bool:
    if value is True or value is False:
        return bool(value)
    raise ValueError("true or false is expected")


def _accept_integer(value: Any) -> int:
    if type(value) is int:
        return value
    if isinstance(value, str):
        if len(value) > 4_000 or not _INTEGER.fullmatch(value):
            raise ValueError("an integer is expected")
        return int(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Decimal) and value.is_finite() and value.adjusted() > 2_000:
        raise ValueError("the number has more digits than any integer")
    if isinstance(value, Decimal) and value.is_finite() and value.adjusted() >= -2_000:
        integer = int(value)
        if integer == value:
            return integer
    if isinstance(value, int) and not isinstance(value, bool):
        return int(value)
    raise ValueError("an integer is expected")


def accept_int(value: Any) -> int:
    number = value if type(value) is int else _accept_integer(value)
    if not -0x8000_0000 <= number <= 0x7FFF_FFFF:
        raise ValueError("an int is between -2147483648 and 2147483647")
    return number


def accept_long(value: Any) -> int:
    number = _accept_integer(value)
    if not -0x8000_0000_0000_0000 <= number <= 0x7FFF_FFFF_FFFF_FFFF:
        raise ValueError("a long is between -9223372036854775808 and 9223372036854775807")
    return number


_MAX_VARINT: Final = 10**MAX_DECIMAL_DIGITS - 1


def accept_varint(value: Any) -> int:
    number = _accept_integer(value)
    if not -_MAX_VARINT <= number <= _MAX_VARINT:
        raise ValueError(f"a varint has at most {MAX_DECIMAL_DIGITS} digits")
    return number


def accept_decimal(value: Any) -> Decimal:
    """Returns a decimal with the scale that was written, so that it reads back as the same text."""
    number = _as_decimal(value)
    if not number.is_finite():
        raise ValueError("a decimal is finite")
    sign, digits, exponent = number.as_tuple()
    if _counted_digits(digits, int(exponent)) > MAX_DECIMAL_DIGITS or (
        abs(int(exponent)) > MAX_DECIMAL_EXPONENT
    ):
        raise ValueError(
            f"a decimal has at most {MAX_DECIMAL_DIGITS} digits and an exponent within "
            f"{MAX_DECIMAL_EXPONENT}"
        )
    if not number:
        return Decimal((0, (0,), min(0, int(exponent))))
    if 0 < int(exponent) <= MAX_DECIMAL_ZEROS:
        return Decimal((sign, digits + (0,) * int(exponent), 0))
    return number


def _counted_digits(digits: tuple[int, ...], exponent: int) -> int:
    """Returns how many digits a decimal has.

    Zeros that plain notation adds for an exponent do not count, so that a value that was read can
    be put back.
    """
    if len(digits) <= MAX_DECIMAL_DIGITS or exponent < 0:
        return len(digits)
    zeros = len(digits) - len("".join(map(str, digits)).rstrip("0"))
    return len(digits) - min(zeros, MAX_DECIMAL_ZEROS)


def _as_decimal(value: Any) -> Decimal:
    if isinstance(value, Decimal):
        return value
    if isinstance(value, str):
        if not _NUMBER.fullmatch(value):
            raise ValueError("a decimal number is expected")
        try:
            return Decimal(value)
        except InvalidOperation:
            raise ValueError("the exponent of the number is too long") from None
    if isinstance(value, float):
        return Decimal(repr(value))
    if isinstance(value, int) and not isinstance(value, bool):
        return Decimal(value)
    raise ValueError("a decimal number is expected")


def accept_key_decimal(value: Any) -> Decimal:
    """Returns 1.40 as 1.4: the form of a decimal in a key."""
    return accept_decimal(accept_decimal(value).normalize(EXACT))


def accept_double(value: Any) -> float:
    if type(value) is float:
        number = value
    elif isinstance(value, str):
        if not _NUMBER.fullmatch(value):
            raise ValueError("a number is expected")
        number = float(value)
    elif isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        try:
            number = float(value)
        except (OverflowError, ValueError):
            raise ValueError("the number is beyond the range of a double") from None
    else:
        raise ValueError("a number is expected")
    if not math.isfinite(number):
        raise ValueError("a finite number is expected")
    return number


def accept_float(value: Any) -> float:
    """Returns the nearest single-precision value, as a double."""
    number = accept_double(value)
    if abs(number) > MAX_FLOAT:
        raise ValueError(f"a float is within {MAX_FLOAT}")
    rounded: float = _FLOAT.unpack(_FLOAT.pack(number))[0]
    return rounded


def accept_uuid(value: Any) -> UUID:
    if isinstance(value, UUID):
        return value
    if isinstance(value, str) and _UUID.fullmatch(value):
        return UUID(value)
    raise ValueError("a UUID of 36 characters is expected")


def accept_timeuuid(value: Any) -> UUID:
    number = value if type(value) is UUID else accept_uuid(value)
    if (number.int >> 76) & 0xF != 1:
        raise ValueError("a version 1 UUID is expected (xxxxxxxx-xxxx-1xxx-xxxx-xxxxxxxxxxxx)")
    return number


def accept_timestamp(value: Any) -> datetime:
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise ValueError("a datetime with a time zone is expected, this one has none")
        try:
            moment = value.astimezone(UTC)
        except OverflowError:
            raise ValueError("a timestamp is in the years 1 to 9999") from None
        return moment.replace(microsecond=moment.microsecond // 1000 * 1000)
    if isinstance(value, str):
        return _from_iso(value)
    milliseconds = _accept_integer(value)
    try:
        return EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:
        raise ValueError("a timestamp is in the years 1 to 9999") from None


def _from_iso(text: str) -> datetime:
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        raise ValueError("an ISO 8601 time such as 2014-11-14T12:30:00.000Z is expected")
    year, month, day, hour, minute, second, fraction, _, sign, zone_hour, zone_minute = (
        match.groups()
    )
    zone = UTC
    try:
        if sign:
            if int(zone_hour) > 23 or int(zone_minute or 0) > 59:
                raise ValueError
            offset = timedelta(hours=int(zone_hour), minutes=int(zone_minute or 0))
            zone = timezone(-offset if sign == "-" else offset)
        milliseconds = int((fraction or "0")[:3].ljust(3, "0"))
        return datetime(
            int(year), int(month), int(day), int(hour or 0), int(minute or 0), int(second or 0),
            milliseconds * 1000, tzinfo=zone,
        ).astimezone(UTC)  # fmt: skip
    except (ValueError, OverflowError):
        raise ValueError(f"{text!r} is not a time between the years 1 and 9999") from None


def accept_json(value: Any, depth: int = MAX_JSON_DEPTH) -> Any:
    """Returns a JSON value as plain Python; a `Decimal` becomes the nearest double."""
    if value is None or value is True or value is False:
        return value
    if type(value) is int:
        if value.bit_length() > _MAX_JSON_BITS:
            raise ValueError("an integer in JSON has at most 4000 digits")
        return value
    if isinstance(value, str):
        return accept_string(str(value))
    if isinstance(value, float | Decimal):
        return accept_double(value)
    if depth == 0:
        raise ValueError(f"JSON is nested at most {MAX_JSON_DEPTH} levels deep")
    if isinstance(value, list | tuple):
        return [accept_json(each, depth - 1) for each in value]
    if isinstance(value, dict) and all(isinstance(name, str) for name in value):
        return {accept_string(name): accept_json(each, depth - 1) for name, each in value.items()}
    if isinstance(value, int):
        return accept_json(int(value))
    raise ValueError(f"a {type(value).__name__} is not a JSON value")


# --- from the text of a URL ----------------------------------------------------------------------


def text_boolean(text: str) -> bool:
    if text in ("true", "1"):
        return True
    if text in ("false", "0"):
        return False
    raise ValueError("true, false, 1 or 0 is expected")


def text_timestamp(text: str) -> datetime:
    return accept_timestamp(int(text) if len(text) < 20 and _INTEGER.fullmatch(text) else text)
