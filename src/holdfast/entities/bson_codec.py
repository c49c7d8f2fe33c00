"""BSON documents: bytes in, Python out, and back.

The C codec of pymongo is used if it is installed. It does not know the unsigned 64-bit type of the
Go library (0x3F), and it decodes some types as others. Documents with such types are decoded by the
codec in Python below, which is slower and knows exactly the types of Meduza's protocol:

    01 double    03 document   05 binary    09 datetime   10 int32   3f unsigned 64-bit
    02 string    04 array      08 boolean   0a null       12 int64

A document is decoded as dict, an array as list, an integer as int or `Int64`, a datetime beyond the
years 1 to 9999 as `DatetimeMS`. A type that is not in the list is decoded as an `UnsupportedValue`,
which no entity can hold."""

import struct
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import Any, Final

from holdfast.entities.bson_types import HAS_PYMONGO, DatetimeMS, Int64
from holdfast.error_text import shown
from holdfast.errors import BadValue, Malformed
from holdfast.limits import MAX_BSON_DEPTH

if HAS_PYMONGO:
    from holdfast.entities import pymongo_codec

# pymongo decodes an undefined as null and a symbol as text. Their type bytes also occur in lengths
# and numbers; encoding the document again shows the difference. $ref must not become a DBRef.
_UNDEFINED, _SYMBOL, _REFERENCE = b"\x06", b"\x0e", b"$ref"
_DOCUMENT, _ARRAY = b"\x03", b"\x04"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MAX_INT: Final = 2**63 - 1
_OLD_BINARY: Final = 2  # the subtype whose data repeat their length

_double: Final = struct.Struct("<d")
_int32: Final = struct.Struct("<i")
_int64: Final = struct.Struct("<q")
_uint64: Final = struct.Struct("<Q")


class UnsupportedValue:
    """A value of a type that Meduza does not have. It is ignored in fields that nobody reads."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name


def decode(body: bytes) -> dict[str, Any]:
    """Decodes the document in `body`; raises `Malformed` if it is not one."""
    if HAS_PYMONGO and _REFERENCE not in body:
        try:
            document = pymongo_codec.decode(body)
            _check_depth(body, document)
            is_unambiguous = _UNDEFINED not in body and _SYMBOL not in body
            if is_unambiguous or pymongo_codec.encode(document) == body:
                return document
        except (pymongo_codec.BSONError, RecursionError, ValueError, OverflowError):
            pass  # the codec below knows more types, and has better error messages
    return _decode_in_python(body)


def _check_depth(body: bytes, document: dict[str, Any]) -> None:
    """Raises `BadValue` if the document is nested too deeply.

    The depth at which pymongo stops depends on the version of Python.
    """
    if body.count(_DOCUMENT) + body.count(_ARRAY) < MAX_BSON_DEPTH:
        return  # with fewer type bytes than levels, it can't be that deep
    level: list[Any] = [document]
    for _ in range(MAX_BSON_DEPTH):
        values = chain.from_iterable(
            each.values() if type(each) is dict else each for each in level
        )
        level = [value for value in values if type(value) in (dict, list)]
        if not level:
            return
    raise _too_deep()


def _too_deep() -> BadValue:
    return BadValue(f"a value is nested deeper than {MAX_BSON_DEPTH} lists and maps")


def encode(document: dict[str, Any]) -> bytes:
    """Returns the document as bytes, or raises `BadValue`.

    Integers should be `Int64`; the codec chooses the size of any other.
    """
    if not HAS_PYMONGO:
        return _encode_in_python(document)
    try:
        return pymongo_codec.encode(document)
    except OverflowError:
        return _encode_in_python(document)
    except (pymongo_codec.BSONError, UnicodeEncodeError) as error:
        raise BadValue(f"no message can hold it: {error}") from None


# --- the codec in Python: decoding ------------------------------------------------------------


def _decode_in_python(body: bytes) -> dict[str, Any]:
    try:
        document, end = _read_document(body, 0, 1)
    except (struct.error, IndexError):
        raise Malformed("Malformed message: it ends too early") from None
    except UnicodeDecodeError:
        raise Malformed("Malformed message: a text is not UTF-8") from None
    if end != len(body):
        raise Malformed(f"Malformed message: {len(body)} bytes came, its length says {end}")
    return document


def _read_document(body: bytes, at: int, depth: int) -> tuple[dict[str, Any], int]:
    elements, end = _read_elements(body, at, depth)
    return dict(elements), end


def _read_elements(body: bytes, at: int, depth: int) -> tuple[list[tuple[str, Any]], int]:
    if depth > MAX_BSON_DEPTH:
        raise _too_deep()
    begin = at
    end = at + _int32.unpack_from(body, at)[0]
    if end < at + 5 or end > len(body) or body[end - 1]:
        raise Malformed("Malformed message: a document has a wrong length")
    elements: list[tuple[str, Any]] = []
    at += 4
    while at < end - 1:
        kind = body[at]
        name, at = _read_name(body, at + 1)
        reader = _READERS.get(kind)
        if reader is None:
            raise Malformed(f"Malformed message: unknown BSON type 0x{kind:02x}")
        value, at = reader(body, at, depth)
        elements.append((name, value))
    if at != end - 1:
        raise Malformed(f"Malformed message: the document at byte {begin} runs over its end")
    return elements, end


def _read_name(body: bytes, at: int) -> tuple[str, int]:
    end = body.find(b"\0", at)
    if end < 0:
        raise Malformed("Malformed message: a name does not end")
    return body[at:end].decode(), end + 1


def _read_array(body: bytes, at: int, depth: int) -> tuple[list[Any], int]:
    # The names of an array's elements are ignored: some encoders leave them empty, or all equal.
    elements, end = _read_elements(body, at, depth + 1)
    return [value for _, value in elements], end


def _read_inner(body: bytes, at: int, depth: int) -> tuple[dict[str, Any], int]:
    return _read_document(body, at, depth + 1)


def _read_string(body: bytes, at: int, depth: int) -> tuple[str, int]:
    size = _int32.unpack_from(body, at)[0]
    end = at + 4 + size
    if size < 1 or end > len(body) or body[end - 1]:
        raise Malformed("Malformed message: a text has a wrong length")
    return body[at + 4 : end - 1].decode(), end


def _read_binary(body: bytes, at: int, depth: int) -> tuple[bytes, int]:
    size = _int32.unpack_from(body, at)[0]
    end = at + 5 + size
    if size < 0 or end > len(body):
        raise Malformed("Malformed message: a binary value has a wrong length")
    if body[at + 4] != _OLD_BINARY:
        return body[at + 5 : end], end
    if size < 4 or _int32.unpack_from(body, at + 5)[0] != size - 4:
        raise Malformed("Malformed message: a binary value has a wrong length inside")
    return body[at + 9 : end], end


def _read_bool(body: bytes, at: int, depth: int) -> tuple[bool, int]:
    if body[at] > 1:
        raise Malformed("Malformed message: a boolean is neither true nor false")
    return bool(body[at]), at + 1


def _read_datetime(body: bytes, at: int, depth: int) -> tuple[Any, int]:
    milliseconds = _int64.unpack_from(body, at)[0]
    try:
        return _EPOCH + timedelta(milliseconds=milliseconds), at + 8
    except OverflowError:
        return DatetimeMS(milliseconds), at + 8


def _skip(name: str, size: int) -> Callable[[bytes, int, int], tuple[Any, int]]:
    """Returns a reader that skips a type of fixed size; `_read_elements` checks the end."""
    return lambda body, at, depth: (UnsupportedValue(name), at + size)


def _skip_texts(name: str, size: int = 0) -> Callable[[bytes, int, int], tuple[Any, int]]:
    def read(body: bytes, at: int, depth: int) -> tuple[Any, int]:
        _, at = _read_string(body, at, depth)
        return UnsupportedValue(name), at + size

    return read


def _skip_regex(body: bytes, at: int, depth: int) -> tuple[Any, int]:
    _, at = _read_name(body, at)
    _, at = _read_name(body, at)
    return UnsupportedValue("Regex"), at


def _skip_code_with_scope(body: bytes, at: int, depth: int) -> tuple[Any, int]:
    size = _int32.unpack_from(body, at)[0]
    if size < 14:
        raise Malformed("Malformed message: a code has a wrong length")
    return UnsupportedValue("Code"), at + size


def _read_number(form: struct.Struct) -> Callable[[bytes, int, int], tuple[Any, int]]:
    return lambda body, at, depth: (form.unpack_from(body, at)[0], at + form.size)


_READERS: Final[dict[int, Callable[[bytes, int, int], tuple[Any, int]]]] = {
    0x01: _read_number(_double),
    0x02: _read_string,
    0x03: _read_inner,
    0x04: _read_array,
    0x05: _read_binary,
    0x08: _read_bool,
    0x09: _read_datetime,
    0x0A: lambda body, at, depth: (None, at),
    0x10: _read_number(_int32),
    0x12: _read_number(_int64),
    0x3F: _read_number(_uint64),
    0x06: _skip("Undefined", 0),
    0x07: _skip("ObjectId", 12),
    0x0B: _skip_regex,
    0x0C: _skip_texts("DBPointer", 12),
    0x0D: _skip_texts("Code"),
    0x0E: _skip_texts("Symbol"),
    0x0F: _skip_code_with_scope,
    0x11: _skip("Timestamp", 8),
    0x13: _skip("Decimal128", 16),
    0x7F: _skip("MaxKey", 0),
    0xFF: _skip("MinKey", 0),
}


# --- the codec in Python: encoding ------------------------------------------------------------


def _encode_in_python(document: dict[str, Any]) -> bytes:
    try:
        return _document(document)
    except struct.error:
        raise BadValue("no message can hold an integer of more than 64 bits") from None
    except UnicodeEncodeError as error:
        raise BadValue(f"no message can hold it: {error}") from None


def _document(document: dict[str, Any]) -> bytes:
    inner = b"".join([_element(name, value) for name, value in document.items()])
    return _int32.pack(len(inner) + 5) + inner + b"\0"


def _element(name: str, value: Any) -> bytes:
    writer = _WRITERS.get(type(value))
    if writer is None:
        raise BadValue(f"Type {type(value).__name__} not allowed for entities")
    if "\0" in name:
        raise BadValue(f"no message can hold a name with a zero byte: {shown(name)}")
    kind, data = writer(value)
    return kind + name.encode() + b"\0" + data


def _write_int(value: int) -> tuple[bytes, bytes]:
    if value > _MAX_INT:
        return b"\x3f", _uint64.pack(value)
    return b"\x12", _int64.pack(value)


def _write_string(value: str) -> tuple[bytes, bytes]:
    data = value.encode()
    return b"\x02", _int32.pack(len(data) + 1) + data + b"\0"


def _write_array(value: list[Any]) -> tuple[bytes, bytes]:
    return b"\x04", _document({str(position): item for position, item in enumerate(value)})


def _write_moment(value: datetime) -> tuple[bytes, bytes]:
    since = value - _EPOCH
    return b"\x09", _int64.pack(since // timedelta(milliseconds=1))


_WRITERS: Final[dict[type, Callable[[Any], tuple[bytes, bytes]]]] = {
    type(None): lambda value: (b"\x0a", b""),
    bool: lambda value: (b"\x08", b"\1" if value else b"\0"),
    int: _write_int,
    Int64: _write_int,
    float: lambda value: (b"\x01", _double.pack(value)),
    str: _write_string,
    bytes: lambda value: (b"\x05", _int32.pack(len(value)) + b"\0" + value),
    datetime: _write_moment,
    DatetimeMS: lambda value: (b"\x09", _int64.pack(int(value))),
    list: _write_array,
    dict: lambda value: (b"\x03", _document(value)),
}
