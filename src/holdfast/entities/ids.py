"""Makes ids: random ones, or ids computed from the columns of a compound primary key."""

import struct
from binascii import b2a_base64
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, Final

from holdfast.engine.contract import random_bytes
from holdfast.entities.order import Instant, milliseconds
from holdfast.entities.text import normalise
from holdfast.entities.types import COLUMN_KINDS
from holdfast.entities.values import MAX_UINT, MIN_INT
from holdfast.errors import BadKey
from holdfast.limits import MAX_ID_BYTES

_FNV_BASIS: Final = 0xCBF29CE484222325
_FNV_PRIME: Final = 0x100000001B3
_URL_SAFE: Final = bytes.maketrans(b"+/", b"-_")
_64_BITS: Final = 2**64 - 1
_SHARED_BYTES, _OWN_BYTES = 3, 5  # of a random id: all ids of a call share the first three
_bits: Final = struct.Struct(">d")


def random_id() -> str:
    """Returns eight random bytes as 11 characters of the URL-safe base64 alphabet."""
    return _as_text(random_bytes(8))


def random_ids(count: int) -> Iterator[str]:
    """Yields distinct random ids with a common beginning, so that entities that are put together
    are stored together. In a large table, each would otherwise be on a different page.

    Each id is eight random bytes, so collisions with other calls are as rare as between any two.
    """
    if count == 1:
        yield random_id()
        return
    begin = random_bytes(_SHARED_BYTES)
    rests: dict[bytes, None] = {}
    while missing := count - len(rests):
        drawn = random_bytes(_OWN_BYTES * missing)
        rests |= dict.fromkeys(
            [drawn[at : at + _OWN_BYTES] for at in range(0, len(drawn), _OWN_BYTES)]
        )
    for rest in rests:
        yield _as_text(begin + rest)


def _as_text(id: bytes) -> str:
    return b2a_base64(id, newline=False)[:11].translate(_URL_SAFE).decode()


def compound_id(values: Sequence[tuple[str, str | None, Any]], *, hashed: bool) -> str:
    """Returns the id of an entity whose key columns are `values`: (column, its type, value) each.

    >>> compound_id([("first", "Text", "John"), ("last", "Text", "Doe")], hashed=False)
    'john|doe|'
    >>> compound_id([("first", "Text", "John"), ("last", "Text", "Doe")], hashed=True)
    '8686e4d649bdf8b8'
    """
    joined = "".join(
        [_component(column, _in_type(value, kind)) + "|" for column, kind, value in values]
    )
    return f"{_fnv_1a(joined.encode()):x}" if hashed else joined


def plain_id(id: Any) -> str:
    """Returns `id` as a `str` itself, not a subclass such as an enum; else raises `BadKey`."""
    if not isinstance(id, str):
        raise BadKey(f"an id must be text, not {type(id).__name__}")
    return str.__str__(id)


def check_id(id: str) -> str:
    """Returns `id` if it is a valid id of an entity; raises otherwise."""
    if len(id) * 4 > MAX_ID_BYTES and len(id.encode()) > MAX_ID_BYTES:
        raise BadKey(
            f"the id {id[:40]!r}... has {len(id.encode())} bytes, at most {MAX_ID_BYTES} fit",
            hint="Use shorter key columns, or give the primary key the option `hashed: true`.",
        )
    return id


def _in_type(value: Any, kind: str | None) -> Any:
    known = COLUMN_KINDS[kind].python if kind else None
    if type(value) is float and known is int and value.is_integer():
        # Beyond 64 bits it stays a float: as an Int, its digits would not be unique.
        return int(value) if MIN_INT <= value <= MAX_UINT else value
    if type(value) is int and known is float and MIN_INT <= value <= MAX_UINT:
        return float(value)
    return value


def _component(column: str, value: Any) -> str:
    kind = type(value)
    if kind is str:
        return normalise(value).replace("\\", "\\\\").replace("|", "\\|")
    if kind is int:
        return _hex(value)
    if kind is float:
        return _float_hex(value)
    if kind is bool:
        return "b1" if value else "b0"
    if kind is datetime:
        return "t" + _hex(milliseconds(value))
    if kind is Instant:
        return "t" + _hex(value.milliseconds)
    if kind is bytes:
        return f"r{value.hex()}"
    if value is None:
        raise BadKey(f"Cannot index entity with missing/nil value for {column}")
    raise BadKey(
        f"Cannot index entity with a container as value for {column}",
        hint="The columns of a primary key hold numbers, texts, bools, times or bytes.",
    )


def _hex(number: int) -> str:
    return f"{number:016x}" if number >= 0 else f"-{number & _64_BITS:016x}"


def _float_hex(number: float) -> str:
    # Adding 0.0 turns -0.0 into 0.0.
    bits = int.from_bytes(_bits.pack(number + 0.0), "big")
    return f"{bits ^ _64_BITS if bits >> 63 else bits | 1 << 63:016x}"


def _fnv_1a(data: bytes) -> int:
    digest = _FNV_BASIS
    for byte in data:
        digest = (digest ^ byte) * _FNV_PRIME & _64_BITS
    return digest
