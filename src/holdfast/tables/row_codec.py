"""The bytes of a stored row, static record or index entry: header, expiry, policy generation,
fallbacks, values.

The header byte has the codec in its low bits and flags for what follows. Rows that never expire,
are not compressed and were written under the table's first policy have the header 0: their values
follow at once.
"""

import struct
from typing import Final, NamedTuple

from holdfast.tables import compression

MAX_CODE: Final = 0x0F  # a header up to it is the codec, and nothing but the values follows
_CODEC: Final = MAX_CODE
_EXPIRES: Final = 0x10
_GENERATION: Final = 0x20
_FALLBACKS: Final = 0x40  # of the newest row of a record; see revisions.py
_UNCERTAIN: Final = 0x80  # of an index entry; see revisions.py
_EXPIRY: Final = struct.Struct(">Q")
_NUMBER: Final = struct.Struct(">I")


class StoredRow(NamedTuple):
    """A stored value, decoded. `expires_ms` is 0 if it never expires."""

    value: bytes
    expires_ms: int
    generation: int
    codec: int
    packed: bytes  # the values, still compressed by `codec`
    fallbacks: bytes = b""  # of a row: revisions that become current when it has expired
    is_uncertain: bool = False  # of an index entry: whether readers must check its record

    @property
    def body(self) -> bytes:
        return (
            self.packed
            if self.codec == compression.PLAIN
            else compression.expand(self.codec, self.packed)
        )

    def is_live(self, now_ms: int) -> bool:
        return not self.expires_ms or self.expires_ms > now_ms

    def with_expiry(self, expires_ms: int) -> "StoredRow":
        """Returns the row with another expiry."""
        return _join(self.codec, self.packed, expires_ms, self.generation)

    def with_generation(self, generation: int) -> "StoredRow":
        return _join(self.codec, self.packed, self.expires_ms, generation, self.fallbacks)

    def with_fallbacks(self, fallbacks: bytes) -> "StoredRow":
        """Returns the row with another list of fallbacks."""
        if fallbacks == self.fallbacks:
            return self
        return _join(self.codec, self.packed, self.expires_ms, self.generation, fallbacks)


def decode(value: bytes) -> StoredRow:
    header = value[0]
    if not header:
        return StoredRow(value, 0, 0, 0, value[1:])
    at, expires_ms, generation = 1, 0, 0
    if header & _EXPIRES:
        [expires_ms] = _EXPIRY.unpack_from(value, at)
        at += 8
    if header & _GENERATION:
        [generation] = _NUMBER.unpack_from(value, at)
        at += 4
    fallbacks = b""
    if header & _FALLBACKS:
        [size] = _NUMBER.unpack_from(value, at)
        fallbacks = value[at + 4 : at + 4 + size]
        at += 4 + size
    uncertain = bool(header & _UNCERTAIN)
    return StoredRow(
        value, expires_ms, generation, header & _CODEC, value[at:], fallbacks, uncertain
    )


def encode(
    body: bytes,
    *,
    codec: int = 0,
    expires_ms: int = 0,
    generation: int = 0,
    uncertain: bool = False,
) -> StoredRow:
    """Returns `body` in its stored form, compressed if the codec makes it smaller."""
    if codec:
        codec, body = compression.compress(codec, body)
    elif not (expires_ms or generation or uncertain):
        return StoredRow(b"\0" + body, 0, 0, 0, body)
    return _join(codec, body, expires_ms, generation, uncertain=uncertain)


def _join(
    codec: int,
    packed: bytes,
    expires_ms: int,
    generation: int,
    fallbacks: bytes = b"",
    *,
    uncertain: bool = False,
) -> StoredRow:
    if not (codec or expires_ms or generation or fallbacks or uncertain):
        return StoredRow(b"\0" + packed, 0, 0, 0, packed)
    header, numbers = codec, b""
    if expires_ms:
        header |= _EXPIRES
        numbers = _EXPIRY.pack(expires_ms)
    if generation:
        header |= _GENERATION
        numbers += _NUMBER.pack(generation)
    if fallbacks:
        header |= _FALLBACKS
        numbers += _NUMBER.pack(len(fallbacks)) + fallbacks
    if uncertain:
        header |= _UNCERTAIN
    value = bytes((header,)) + numbers + packed
    return StoredRow(value, expires_ms, generation, codec, packed, fallbacks, uncertain)
