"""Order-preserving tuples: the bytes of a key sort as the parts that it was packed from.

A part is None, bool, int, float, Decimal, bytes, str, UUID, TimeUUID, an aware datetime or a tuple
of these, ascending or within `desc(...)`. `encoding.py` begins with the ledger of codes;
`decoding.py` turns bytes back into parts.

No part's bytes are the beginning of another part's. Therefore parts concatenate,
`pack(a) + pack(b) == pack(a, b)`, and the keys that begin with `pack(a)` are those whose first part
is `a`.
"""

from typing import Any, Final

from holdfast.errors import BadInput
from holdfast.keys.decoding import MALFORMED, READERS, read_part
from holdfast.keys.encoding import (
    COMPLEMENT,
    PACKERS,
    TUPLE,
    Descending,
    Part,
    TimeUUID,
    brief,
    pack_any,
    pack_bytes,
    pack_bytes_desc,
    pack_float,
    pack_float_desc,
    pack_int,
    pack_int_desc,
    pack_str,
    pack_str_desc,
    pack_time_uuid_desc,
)
from holdfast.limits import MAX_KEY_BYTES

__all__ = [
    "Descending",
    "Part",
    "Subspace",
    "TimeUUID",
    "after",
    "desc",
    "describe",
    "pack",
    "pack_bytes",
    "pack_bytes_desc",
    "pack_float",
    "pack_float_desc",
    "pack_int",
    "pack_int_desc",
    "pack_str",
    "pack_str_desc",
    "pack_time_uuid_desc",
    "prefix_range",
    "unpack",
    "unpack_first",
]


def pack(*parts: Part) -> bytes:
    """Encodes `parts` so that the bytes sort as the parts do.

    >>> pack("jobs", -1) < pack("jobs", 0) < pack("jobs", 0, "a") < pack("jobs", 1)
    True
    >>> pack("score", desc(10)) < pack("score", desc(9))
    True
    >>> unpack(pack("jobs", -1, b"raw"))
    ('jobs', -1, b'raw')

    A part of a subclass (an IntEnum, a named tuple) is packed, and comes back, as its base.
    """
    key = b""
    try:
        for part in parts:  # a third faster than to join, for the few parts that keys have
            key += PACKERS[type(part)](part)
    except KeyError:
        return b"".join([pack_any(part) for part in parts])
    return key


def unpack(key: bytes, begin: int = 0) -> tuple[Any, ...]:
    """Returns the parts of `key` from byte `begin` on; a descending part comes back plain.

    >>> unpack(pack("score", desc(10), ("a", None)))
    ('score', 10, ('a', None))
    """
    parts: list[Any] = []
    at = begin
    size = len(key)
    flipped = b""
    try:
        while at < size:
            code = key[at]
            if code < TUPLE:
                value, at = READERS[code](key, at)
            else:
                flipped = flipped or key.translate(COMPLEMENT)
                value, at = read_part(key, flipped, at)
            parts.append(value)
    except MALFORMED as error:
        raise BadInput(
            f"the key {_hex(key)} has no complete part at byte {at}",
            hint="Only what `pack` made can be unpacked.",
        ) from error
    return tuple(parts)


def unpack_first(key: bytes, begin: int = 0) -> tuple[Any, int]:
    """Returns the part that begins at byte `begin`, and where the next one begins.

    >>> unpack_first(pack("jobs", 7) + b"no part")
    ('jobs', 6)
    """
    try:
        value, end = read_part(key, key.translate(COMPLEMENT), begin)
    except MALFORMED as error:
        raise BadInput(f"the key {_hex(key)} has no complete part at byte {begin}") from error
    return value, end


def desc(part: Part) -> Part:
    """Returns `part` for a key that sorts it in reverse; descending twice is ascending.

    >>> pack(desc("b")) < pack(desc("ab")) < pack(desc("a")) < pack(desc(""))
    True
    """
    return part.part if isinstance(part, Descending) else Descending(part)


def prefix_range(prefix: bytes) -> tuple[bytes, bytes]:
    """Returns begin and end of all keys that begin with `prefix`, `prefix` itself included.

    >>> prefix_range(b"a"), prefix_range(b"a\\xff")
    ((b'a', b'b'), (b'a\\xff', b'b'))

    Without its last byte a packed str is the prefix of all that begin with it:

    >>> begin, end = prefix_range(pack_str("wiki")[:-1])
    >>> begin < pack("wikipedia") < end, begin < pack("wild") < end
    (True, False)
    """
    kept = prefix
    if not prefix or prefix[-1] == 0xFF:
        kept = prefix.rstrip(b"\xff")
        if not kept:
            return prefix, _END
    return prefix, kept[:-1] + _BYTES[kept[-1] + 1]


_BYTES: Final = [bytes((byte,)) for byte in range(256)]
_END: Final = b"\xff" * (MAX_KEY_BYTES + 1)  # no key is as long, so every key sorts before it


def after(key: bytes) -> bytes:
    """Returns the smallest key after `key`: where a scan continues after `key`."""
    return key + b"\0"


class Subspace:
    """All keys that begin with `prefix`.

    >>> jobs = Subspace(pack(7)).sub("jobs")
    >>> jobs.unpack(jobs.pack("emails", 3))
    ('emails', 3)
    """

    __slots__ = ("prefix",)

    def __init__(self, prefix: bytes = b"") -> None:
        self.prefix: Final = prefix

    def pack(self, *parts: Part) -> bytes:
        """Returns the key of `parts` in this subspace."""
        return self.prefix + pack(*parts)

    def unpack(self, key: bytes) -> tuple[Any, ...]:
        """Returns the parts of `key` after the prefix."""
        if not key.startswith(self.prefix):
            raise BadInput(f"the key {_hex(key)} does not begin with {_hex(self.prefix)}")
        return unpack(key, len(self.prefix))

    def range(self, *parts: Part) -> tuple[bytes, bytes]:
        """Returns begin and end of all keys that begin with `parts`, their own key included."""
        return prefix_range(self.prefix + pack(*parts))

    def sub(self, *parts: Part) -> "Subspace":
        """Returns the subspace of all keys whose first parts are `parts`."""
        return Subspace(self.prefix + pack(*parts))

    def __contains__(self, key: bytes) -> bool:
        return key.startswith(self.prefix)

    def __eq__(self, other: object) -> bool:
        return self.prefix == other.prefix if isinstance(other, Subspace) else NotImplemented

    def __hash__(self) -> int:
        return hash((Subspace, self.prefix))

    def __repr__(self) -> str:
        return f"<Subspace {describe(self.prefix)}>"


def describe(key: bytes) -> str:
    """Returns `key` as text for people: its parts, and the rest in hex. Never fails.

    >>> describe(pack(7, "jobs", desc(3)) + b"\\xff\\x01")
    "(7, 'jobs', desc(3), 0xff01)"
    """
    flipped = key.translate(COMPLEMENT)
    shown: list[str] = []
    at = 0
    while at < len(key):
        try:
            value, end = read_part(key, flipped, at)
        except MALFORMED:
            shown.append(_hex(key[at:]))
            break
        shown.append(f"desc({_shown(value)})" if key[at] >= 0x80 else _shown(value))
        at = end
    return f"({', '.join(shown)})"


def _shown(value: Any) -> str:
    try:
        return brief(repr(value))
    except ValueError:  # Python writes no int of more than 4,300 digits
        return brief(hex(value)) if isinstance(value, int) else "(a tuple with a huge int)"


def _hex(data: bytes) -> str:
    return brief(f"0x{data.hex()}")
