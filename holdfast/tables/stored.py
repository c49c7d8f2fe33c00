"""The bytes of a stored row, static record or index entry: header, expiry, policy generation,
values.

The header byte has the codec in its low bits and says which of the two numbers follow. Values that
never expire, are not compressed and were written under the table's first policy have the header 0,
and nothing but it is looked at.
"""

import struct
from typing import Final, NamedTuple

from holdfast.tables import codecs

_CODEC: Final = 0x0F
_EXPIRES: Final = 0x10
_GENERATION: Final = 0x20
_EXPIRY: Final = struct.Struct(">Q")
_NUMBER: Final = struct.Struct(">I")


class Stored(NamedTuple):
    """A stored value, taken apart. `expires_ms` is 0 if it never expires."""

    value: bytes
    expires_ms: int
    generation: int
    codec: int
    packed: bytes  # the values, still compressed by `codec`

    @property
    def body(self) -> bytes:
        return self.packed if self.codec == codecs.PLAIN else codecs.expand(self.codec, self.packed)

    def is_live(self, now_ms: int) -> bool:
        return not self.expires_ms or self.expires_ms > now_ms

    def expiring(self, expires_ms: int) -> "Stored":
        """The same values with another expiry."""
        return _join(self.codec, self.packed, expires_ms, self.generation)

    def of_generation(self, generation: int) -> "Stored":
        return _join(self.codec, self.packed, self.expires_ms, generation)


def read(value: bytes) -> Stored:
    header = value[0]
    if not header:
        return Stored(value, 0, 0, 0, value[1:])
    at, expires_ms, generation = 1, 0, 0
    if header & _EXPIRES:
        [expires_ms] = _EXPIRY.unpack_from(value, at)
        at += 8
    if header & _GENERATION:
        [generation] = _NUMBER.unpack_from(value, at)
        at += 4
    return Stored(value, expires_ms, generation, header & _CODEC, value[at:])


def write(body: bytes, *, codec: int = 0, expires_ms: int = 0, generation: int = 0) -> Stored:
    """`body` in its stored form, compressed if the codec makes it smaller."""
    if codec:
        codec, body = codecs.compress(codec, body)
    elif not (expires_ms or generation):
        return Stored(b"\0" + body, 0, 0, 0, body)
    return _join(codec, body, expires_ms, generation)


def _join(codec: int, packed: bytes, expires_ms: int, generation: int) -> Stored:
    if not (codec or expires_ms or generation):
        return Stored(b"\0" + packed, 0, 0, 0, packed)
    header, numbers = codec, b""
    if expires_ms:
        header |= _EXPIRES
        numbers = _EXPIRY.pack(expires_ms)
    if generation:
        header |= _GENERATION
        numbers += _NUMBER.pack(generation)
    value = bytes((header,)) + numbers + packed
    return Stored(value, expires_ms, generation, codec, packed)
