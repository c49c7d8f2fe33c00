"""The stored form of a key: its record, and the packed list of its newest members.

A record is a header, optional parts, the digests of values that are not in a sketch yet, and the
head: the newest members of a set, or all entries of a small board. An entry of a set is

    at (6 bytes, each with its high bit set)  01  value  00        newest first

and an entry of a board is `01 value 00 count`, with the count in decimal digits. 00 and 01 occur
nowhere else (a value that contains one is escaped), so `head.find(b"\\x01" + value + b"\\x00")`
finds a member in one step, exactly. Slicing and joining bytes avoids decoding and encoding a tree
of objects for each write: this makes an event with twelve target keys cheap.
"""

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import msgspec

from holdfast.events.records import Kind
from holdfast.events.sketch import DIGEST_BYTES
from holdfast.limits import HEAD_MEMBERS

__all__ = [
    "UNBOUNDED",
    "KeyRecord",
    "Value",
    "decode",
    "encode_changed",
    "escaped",
    "pack_time",
    "prepare",
    "unescaped",
    "unpack_time",
]

UNBOUNDED: Final = 0xFFFF_FFFF

TIME_BYTES: Final = 6

_HEADER: Final = struct.Struct(">BBQIIH")  # flags, bundles, gross, bound, size, bytes of digests
_HEADER_BYTES: Final = _HEADER.size
_pack_header: Final = _HEADER.pack
_FLAGS: Final = struct.Struct(">H")  # the flags from 1 << 8 on
LIFE: Final = struct.Struct(">QQQ")  # expires_ms, lifetime_ms, scheduled_ms
_ROWS: Final = struct.Struct(">QQQQII")  # generation, sequence, floor, smallest, victims, victim
_DECAY: Final = struct.Struct(">qQ")  # landmark_ms, half_life_ms

# Flags of a key, a bit each. Hot paths test the bits, other code uses the properties.
BOARD: Final = 1  # it is a leaderboard
ROWS: Final = 2  # its members are rows of a generation, not entries of head and archive
PARTIAL: Final = 4  # something that was added is missing: distinct is not size
MIXED: Final = 8  # a value was added without being counted as distinct
DENSE: Final = 16  # there is a sketch; before that, all digests are kept
LIFE_FOLLOWS: Final = 64
_ROWS_FOLLOW: Final = 128
_MORE_FOLLOWS: Final = LIFE_FOLLOWS | _ROWS_FOLLOW
GROSS_OFF: Final = 1 << 8  # a value was added without being counted in the gross counter
FANNED_OUT: Final = 1 << 9  # a background fan-out reads its generation, see snapshots.py
WINDOWED: Final = 1 << 10  # its counters answer `since`, see timed_counters.py
SCORED: Final = 1 << 11  # a value was added with a score
KEPT: Final = 1 << 12  # a stored result of `keep_distinct`: counters without members
DECAYED: Final = 1 << 13  # the counts of the board lose half their weight every half-life
ORDERED: Final = 1 << 14  # the board has an index by count, see board_rows.py
ORDERING: Final = 1 << 15  # that index is being built
_NO_FAST_PATH: Final = BOARD | ROWS | MIXED  # sets with these flags don't take the fast path
_FLAGS_FOLLOW: Final = 0x80  # in the byte of bundles: further flags follow the header


@dataclass(slots=True, eq=False)
class KeyRecord:
    """A key while it is read or written.

    It is a plain class because Python sets its attributes five times as fast as those of a msgspec
    struct, and a usual add sets six of them.
    """

    key: bytes
    stored_key: bytes
    known: bool = False  # whether there is anything at the key
    flags: int = 0
    bundles: int = 0  # of its archive
    gross: int = 0
    bound: int = UNBOUNDED  # of a set; K of a board
    size: int = 0  # entries in the head, or members in rows
    digests: bytes = b""
    head: bytes = b""
    dirty: bool = False
    expires_ms: int = 0
    lifetime_ms: int = 0
    scheduled_ms: int = 0  # when the remover runs next
    generation: int = 0
    sequence: int = 0
    floor: int = 0  # of a board: the highest count that was ever evicted
    smallest: int = 0  # of a board: the count of its listed smallest candidates
    smallest_listed: int = 0
    smallest_used: int = 0
    landmark_ms: int = 0  # of a decaying board: when a count of 1 weighed 1
    half_life_ms: int = 0
    beside: bool = False  # a leaderboard that may have a set at its key; not stored
    is_plain: bool = True  # it never had optional parts, so that `stored` holds everything
    # The bound with which `sets.add` may take its fast path; -1: it may not.
    fast_bound: int = -1
    newest: bytes = b""  # the time of the newest member, if `fast_bound` says a bound
    stored: bytes = (
        b""  # the bytes at its key, if they hold everything and nothing has changed since
    )

    def update_fast_bound(self) -> None:
        """Updates whether the next add to this set may take the fast path; see `sets.add`."""
        if (
            len(self.digests) == DIGEST_BYTES * self.size
            and not self.flags & _NO_FAST_PATH
            and self.bound > HEAD_MEMBERS
        ):
            self.fast_bound, self.newest = self.bound, self.head[:TIME_BYTES]
        else:
            self.fast_bound = -1

    @property
    def is_board(self) -> bool:
        return self.flags & BOARD != 0

    @property
    def kind(self) -> Kind:
        if self.flags & KEPT:
            return "count"
        return "leaderboard" if self.flags & BOARD else "set"

    @property
    def has_rows(self) -> bool:
        return self.flags & ROWS != 0

    @property
    def is_whole(self) -> bool:
        """Returns whether all that was ever added is still there."""
        return not self.flags & PARTIAL

    @property
    def is_dense(self) -> bool:
        return self.flags & DENSE != 0

    @property
    def is_count(self) -> bool:
        """Returns whether it is a stored result that has counters only."""
        return self.flags & KEPT != 0

    def encode(self) -> bytes:
        """Returns the bytes to store."""
        flags, digests = self.flags, self.digests
        if flags & _OPTIONAL_FLAGS or self.lifetime_ms or self.floor:
            return self._encode_with_parts()
        stored = (
            _pack_header(flags, self.bundles, self.gross, self.bound, self.size, len(digests))
            + digests
            + self.head
        )
        self.stored = stored if self.is_plain else b""
        return stored

    def _encode_with_parts(self) -> bytes:
        flags, bundles, extra = self.flags & 0xFF, self.bundles, b""
        if self.flags >> 8:
            bundles |= _FLAGS_FOLLOW
            extra = _FLAGS.pack(self.flags >> 8)
        if self.lifetime_ms:
            flags |= LIFE_FOLLOWS
            extra += LIFE.pack(self.expires_ms, self.lifetime_ms, self.scheduled_ms)
        if flags & ROWS or self.floor:
            flags |= _ROWS_FOLLOW
            extra += _ROWS.pack(
                self.generation,
                self.sequence,
                self.floor,
                self.smallest,
                self.smallest_listed,
                self.smallest_used,
            )
        if self.flags & DECAYED:
            extra += _DECAY.pack(self.landmark_ms, self.half_life_ms)
        digests = self.digests
        header = _pack_header(flags, bundles, self.gross, self.bound, self.size, len(digests))
        stored = header + extra + digests + self.head
        # Fields that are not stored are lost when the record is decoded: `stored` is not enough.
        says_all = flags & _ROWS_FOLLOW and not self.lifetime_ms
        self.is_plain, self.stored = False, stored if says_all else b""
        return stored


_OPTIONAL_FLAGS: Final = ~(BOARD | PARTIAL | MIXED | DENSE)  # of a record with optional parts
_PLAIN_SET: Final = PARTIAL | MIXED | DENSE  # the flags that a set without optional parts may have


def encode_changed(records: Iterable[KeyRecord], changed: dict[bytes, Any]) -> dict[bytes, bytes]:
    """Returns the bytes to store of all records that are dirty, by their stored keys.

    They are clean afterwards. The keys that they belong to are noted in `changed`, with the flags.
    """
    pairs = {}
    for record in records:
        if record.dirty:
            flags = record.flags
            if record.is_plain and flags | _PLAIN_SET == _PLAIN_SET:
                digests = record.digests
                stored = _pack_header(
                    flags, record.bundles, record.gross, record.bound, record.size, len(digests)
                )
                record.stored = stored = stored + digests + record.head
            else:
                stored = record.encode()
            pairs[record.stored_key] = stored
            record.dirty = False
            record.known = True
            changed[record.key] = flags
    return pairs


def decode(key: bytes, stored_key: bytes, stored: bytes) -> KeyRecord:
    """Returns the record that `Record.encode` made."""
    flags, bundles, gross, bound, size, digests = _HEADER.unpack_from(stored)
    if flags < LIFE_FOLLOWS and bundles < _FLAGS_FOLLOW:
        end = _HEADER_BYTES + digests
        pending, head = stored[_HEADER_BYTES:end], stored[end:]
        record = KeyRecord(key, stored_key, True, flags, bundles, gross, bound, size, pending, head)
        record.stored = stored
        record.update_fast_bound()
        return record
    at = _HEADER_BYTES
    record = KeyRecord(key, stored_key, True, flags & ~_MORE_FOLLOWS, bundles, gross, bound, size)
    record.is_plain = False
    if bundles & _FLAGS_FOLLOW:
        record.bundles = bundles & ~_FLAGS_FOLLOW
        record.flags |= _FLAGS.unpack_from(stored, at)[0] << 8
        at += _FLAGS.size
    if flags & LIFE_FOLLOWS:
        life = LIFE.unpack_from(stored, at)
        record.expires_ms, record.lifetime_ms, record.scheduled_ms = life
        at += LIFE.size
    if flags & _ROWS_FOLLOW:
        (
            record.generation,
            record.sequence,
            record.floor,
            record.smallest,
            record.smallest_listed,
            record.smallest_used,
        ) = _ROWS.unpack_from(stored, at)
        at += _ROWS.size
    if record.flags & DECAYED:
        record.landmark_ms, record.half_life_ms = _DECAY.unpack_from(stored, at)
        at += _DECAY.size
    record.digests = stored[at : at + digests]
    record.head = stored[at + digests :]
    if flags & _MORE_FOLLOWS == _ROWS_FOLLOW:
        record.stored = stored
    return record


class Value(msgspec.Struct, gc=False, frozen=True, eq=False):
    """A value to add to sets or boards, prepared once for all target keys of an event."""

    raw: bytes
    digest: bytes
    at: int
    time: bytes
    pattern: bytes
    entry: bytes


def prepare(raw: bytes, digest: bytes, at: int) -> Value:
    time = pack_time(at)
    pattern = b"\x01%b\x00" % escaped(raw)
    return Value(raw, digest, at, time, pattern, time + pattern)


@lru_cache(maxsize=256)  # the events of a batch share one clock reading
def pack_time(ms: int) -> bytes:
    """Encodes a time as 6 bytes of 7 bits, which sort as times do and are never 00 or 01.

    >>> unpack_time(pack_time(1344427200000))
    1344427200000
    """
    low = ms & 0x7F | (ms & 0x3F80) << 1 | (ms & 0x1F_C000) << 2
    high = ms >> 21 & 0x7F | (ms >> 21 & 0x3F80) << 1 | (ms >> 21 & 0x1F_C000) << 2
    return (high << 24 | low | 0x8080_8080_8080).to_bytes(6, "big")


def unpack_time(time: bytes) -> int:
    ms = 0
    for byte in time:
        ms = ms << 7 | byte & 0x7F
    return ms


def escaped(value: bytes) -> bytes:
    """Escapes 00 and 01, which end and begin the values of a head."""
    if 0 in value or 1 in value or 2 in value:  # a search for bytes costs ten times as much
        value = value.replace(b"\x02", b"\x02\x05")
        return value.replace(b"\x00", b"\x02\x03").replace(b"\x01", b"\x02\x04")
    return value


def unescaped(value: bytes) -> bytes:
    """Reverses `escaped`.

    >>> unescaped(escaped(b"a\\x00\\x01\\x02b"))
    b'a\\x00\\x01\\x02b'
    """
    if 2 in value:
        value = value.replace(b"\x02\x03", b"\x00").replace(b"\x02\x04", b"\x01")
        return value.replace(b"\x02\x05", b"\x02")
    return value
