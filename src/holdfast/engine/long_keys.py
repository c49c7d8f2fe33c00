"""Long keys on an engine whose own keys are short, in exact byte order.

A key of fewer than `whole` bytes is stored as it is. A longer one is stored as its first `whole`
bytes and a digest of the whole key, and the whole key is stored in front of the value. Long keys
all have the same stored length, which no short key has, so the two kinds can't be mixed up. Those
with the same first bytes are adjacent, no short key is among them, and a scan puts each such
group in order before it continues.
"""

import struct
from collections.abc import Iterable
from hashlib import blake2b
from typing import Final

DIGEST_BYTES: Final = 16
_LENGTH: Final = struct.Struct(">I")


class LongKeys:
    """The rule for an engine that takes keys of at most `native_limit` bytes."""

    __slots__ = ("stored_bytes", "whole")

    def __init__(self, native_limit: int) -> None:
        self.stored_bytes = native_limit  # the length of every stored long key
        self.whole = native_limit - DIGEST_BYTES  # keys of fewer bytes are stored as they are

    def fold(self, key: bytes) -> bytes:
        """Returns the stored form of a long key."""
        return key[: self.whole] + blake2b(key, digest_size=DIGEST_BYTES).digest()

    def join(self, key: bytes, value: bytes) -> bytes:
        """Returns the stored value of a long key: the whole key, then its value."""
        return _LENGTH.pack(len(key)) + key + value

    def split(self, stored_value: bytes) -> tuple[bytes, bytes]:
        """Returns the whole key and its value.

        >>> rule = LongKeys(511)
        >>> rule.split(rule.join(b"k" * 600, b"v")) == (b"k" * 600, b"v")
        True
        """
        [length] = _LENGTH.unpack_from(stored_value)
        end = _LENGTH.size + length
        return stored_value[_LENGTH.size : end], stored_value[end:]

    def matches(self, stored_key: bytes, stored_value: bytes) -> bool:
        """Returns whether the whole key in front of a value is the one that it is stored under."""
        if len(stored_value) < _LENGTH.size:
            return False
        return self.fold(self.split(stored_value)[0]) == stored_key

    def stored_range(self, begin: bytes, end: bytes) -> tuple[bytes, bytes]:
        """Returns a range of stored keys that holds all keys with begin <= key < end, and perhaps
        others."""
        if len(begin) >= self.whole:
            begin = begin[: self.whole]
        if len(end) >= self.whole:
            end = self.group_end(end[: self.whole])
        return begin, end

    def group_end(self, prefix: bytes) -> bytes:
        """Returns the end of the stored long keys that begin with the `whole` bytes of `prefix`."""
        return prefix + b"\xff" * (DIGEST_BYTES + 1)

    def ordered(
        self,
        group: Iterable[tuple[bytes, bytes]],
        begin: bytes,
        end: bytes,
        *,
        reverse: bool = False,
    ) -> list[tuple[bytes, bytes]]:
        """Yields the pairs with begin <= key < end of a group of stored long keys, in order."""
        pairs = (self.split(stored_value) for _, stored_value in group)
        return sorted((pair for pair in pairs if begin <= pair[0] < end), reverse=reverse)
