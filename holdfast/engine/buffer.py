"""Writes that wait above a reader, until an engine applies them all at once.

A `Buffer` is a transaction on any reader: what was written is seen, and what lies below is never
touched. Whoever commits it applies `cleared` first, then `written`. Buffers can be stacked, as a
buffer is itself a reader.
"""

from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from holdfast.engine.contract import Notice, Reader, pack_counter, read_counter
from holdfast.errors import BadInput, KeyTooLong, NotACounter, OutsideSpace, ValueTooLarge
from holdfast.limits import MAX_COUNTER, MAX_KEY_BYTES, MAX_VALUE_BYTES, MIN_COUNTER

Pair = tuple[bytes, bytes]
Range = tuple[bytes, bytes]

_BEHIND_ALL: Final = b"\xff" * (MAX_KEY_BYTES + 1)


class Buffer:
    """A transaction whose writes stay in memory. `written` maps a key to its value, or to None if
    it was deleted; of what lies below, the ranges in `cleared` are gone."""

    __slots__ = ("_below", "_changes", "_keys", "cleared", "notices", "now", "space", "written")

    def __init__(self, below: Reader, space: bytes, now: float) -> None:
        self._below = below
        self.space = space
        self.now = now
        self.written: dict[bytes, bytes | None] = {}
        self.cleared: list[Range] = []
        self.notices: list[Notice] = []
        self._keys: list[bytes] = []  # of `written`, in order
        self._changes = 0  # counted so that a scan notices writes in its way

    # --- reading ---------------------------------------------------------------------------------

    def get(self, key: bytes) -> bytes | None:
        written = self.written
        if key in written:
            return written[key]
        if self.cleared and self._is_cleared(key):
            return None
        return self._below.get(key)

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        if not self.written and not self.cleared:
            return self._below.get_many(keys)
        unknown = [key for key in keys if key not in self.written and not self._is_cleared(key)]
        found = dict(zip(unknown, self._below.get_many(unknown), strict=True))
        return [found[key] if key in found else self.written.get(key) for key in keys]

    def scan(
        self, begin: bytes, end: bytes, *, limit: int | None = None, reverse: bool = False
    ) -> Iterator[Pair]:
        wanted = None if limit is None else max(0, limit)
        pairs = self._backward(begin, end, wanted) if reverse else self._forward(begin, end, wanted)
        return pairs if wanted is None else islice(pairs, wanted)

    def _forward(self, begin: bytes, end: bytes, wanted: int | None) -> Iterator[Pair]:
        keys = self._keys
        while begin < end:
            self._settle_range(begin, end)
            changes = self._changes
            first, last = bisect_left(keys, begin), bisect_left(keys, end)
            mine = keys[first:last]
            below = self._scan_below(begin, end, _with_room(wanted, mine), reverse=False)
            for pair in _merged(below, self._pairs(mine), reverse=False):
                begin = pair[0] + b"\0"
                if pair[1] is not None:
                    yield pair  # type: ignore[misc]  # its value is not None
                    if self._changes != changes:
                        break
            else:
                return

    def _backward(self, begin: bytes, end: bytes, wanted: int | None) -> Iterator[Pair]:
        keys = self._keys
        while begin < end:
            self._settle_range(begin, end)
            changes = self._changes
            first, last = bisect_left(keys, begin), bisect_left(keys, end)
            mine = keys[first:last][::-1]
            below = self._scan_below(begin, end, _with_room(wanted, mine), reverse=True)
            for pair in _merged(below, self._pairs(mine), reverse=True):
                end = pair[0]
                if pair[1] is not None:
                    yield pair  # type: ignore[misc]  # its value is not None
                    if self._changes != changes:
                        break
            else:
                return

    def _settle_range(self, begin: bytes, end: bytes) -> None:
        """Called before a scan looks at what is written in a range."""

    def _pairs(self, keys: list[bytes]) -> Iterator[tuple[bytes, bytes | None]]:
        written = self.written
        return ((key, written[key]) for key in keys)

    def _scan_below(
        self, begin: bytes, end: bytes, limit: int | None, *, reverse: bool
    ) -> Iterator[Pair]:
        """What is left of the range below, without what was cleared."""
        if not self.cleared:
            return self._below.scan(begin, end, limit=limit, reverse=reverse)
        return self._scan_parts(_without([(begin, end)], self.cleared), limit, reverse)

    def _scan_parts(self, parts: list[Range], limit: int | None, reverse: bool) -> Iterator[Pair]:
        for begin, end in reversed(parts) if reverse else parts:
            yield from self._below.scan(begin, end, limit=limit, reverse=reverse)

    def _is_cleared(self, key: bytes) -> bool:
        return any(begin <= key < end for begin, end in self.cleared)

    # --- writing ---------------------------------------------------------------------------------

    def put(self, key: bytes, value: bytes) -> None:
        if (
            type(value) is not bytes
            or not 0 < len(key) <= MAX_KEY_BYTES
            or len(value) > MAX_VALUE_BYTES
            or not key.startswith(self.space)
        ):
            key, value = check_pair(key, value, self.space)
        self._write(key, value)

    def delete(self, key: bytes) -> None:
        if not 0 < len(key) <= MAX_KEY_BYTES or not key.startswith(self.space):
            key, _ = check_pair(key, b"", self.space)
        self._write(key, None)

    def clear(self, begin: bytes, end: bytes) -> None:
        if begin >= end:
            return
        check_range(begin, end, self.space)
        self._changes += 1
        first, last = bisect_left(self._keys, begin), bisect_left(self._keys, end)
        for key in self._keys[first:last]:
            del self.written[key]
        del self._keys[first:last]
        self.cleared = [*_without(self.cleared, [(begin, end)]), (begin, end)]

    def add(self, key: bytes, delta: int) -> None:
        self.put(key, pack_counter(added(key, self.get(key), delta)))

    def after_commit(self, notice: Notice) -> None:
        self.notices.append(addressed(notice, self.space))

    def _write(self, key: bytes, value: bytes | None) -> None:
        written = self.written
        if key not in written:
            insort(self._keys, key)
        written[key] = value
        self._changes += 1

    # --- joining ---------------------------------------------------------------------------------

    def take(self, other: "Buffer") -> None:
        """Takes over the writes of a buffer that lay above this one. What they may be was checked
        there."""
        for begin, end in other.cleared:
            self.clear(begin, end)
        written = self.written
        keys = self._keys
        for key in other._keys:
            if key not in written:
                insort(keys, key)
        written.update(other.written)
        self._changes += 1


def check_pair(key: bytes, value: bytes, space: bytes) -> tuple[bytes, bytes]:
    """The pair as bytes, or the reason why it can't be stored."""
    if not isinstance(key, bytes | bytearray | memoryview):
        raise TypeError(f"a key is bytes, {type(key).__name__} was given")
    if not isinstance(value, bytes | bytearray | memoryview):
        raise TypeError(f"a value is bytes, {type(value).__name__} was given")
    key, value = bytes(key), bytes(value)
    if not key:
        raise BadInput("a key has at least one byte")
    if not key.startswith(space):
        raise OutsideSpace(f"the key {key[:64]!r} does not begin with {space!r}")
    if len(key) > MAX_KEY_BYTES:
        raise KeyTooLong(f"a key has {len(key)} bytes, at most {MAX_KEY_BYTES} fit")
    if len(value) > MAX_VALUE_BYTES:
        raise ValueTooLarge(f"a value has {len(value)} bytes, at most {MAX_VALUE_BYTES} fit")
    return key, value


def check_range(begin: bytes, end: bytes, space: bytes) -> None:
    """Raises if the range leaves the space."""
    if not begin.startswith(space) or not (end.startswith(space) or end == after_prefix(space)):
        raise OutsideSpace(f"the range from {begin!r} to {end!r} leaves {space!r}")


def added(key: bytes, value: bytes | None, delta: int) -> int:
    """The number of a counter after an addition."""
    if value is not None and len(value) != 8:
        raise NotACounter(f"the value of {key!r} has {len(value)} bytes, a counter has 8")
    number = read_counter(value) + delta
    if not MIN_COUNTER <= number <= MAX_COUNTER:
        raise NotACounter(f"{key!r} would become {number}, a counter has 64 bits")
    return number


def addressed(notice: Notice, space: bytes) -> Notice:
    """The notice with the space that it comes from."""
    if type(notice.topic) is not str or type(notice.payload) is not bytes:
        # One that can't be written would undo its neighbours, and one that can't be read again
        # would stop every subscriber.
        raise BadInput(f"{notice} is no notice", hint="The topic is a str, the payload bytes.")
    return Notice(notice.topic, notice.payload, space)


def after_prefix(prefix: bytes) -> bytes:
    """The first key behind all that begin with `prefix`."""
    stem = prefix.rstrip(b"\xff")
    return stem[:-1] + bytes([stem[-1] + 1]) if stem else _BEHIND_ALL


def _with_room(wanted: int | None, mine: list[bytes]) -> int | None:
    """How many pairs from below are enough: each of the buffer's own may hide one."""
    return None if wanted is None else wanted + len(mine)


def _merged(
    below: Iterator[Pair], mine: Iterator[tuple[bytes, bytes | None]], *, reverse: bool
) -> Iterator[tuple[bytes, bytes | None]]:
    """Both in order; of two pairs with one key, `mine`."""
    own = next(mine, None)
    if own is None:
        yield from below
        return
    for pair in below:
        while own is not None and (own[0] > pair[0] if reverse else own[0] < pair[0]):
            yield own
            own = next(mine, None)
        if own is not None and own[0] == pair[0]:
            yield own
            own = next(mine, None)
        else:
            yield pair
    while own is not None:
        yield own
        own = next(mine, None)


def _without(ranges: list[Range], gone: list[Range]) -> list[Range]:
    """What is left of ordered ranges, in order."""
    for begin, end in gone:
        ranges = [
            part
            for first, last in ranges
            for part in ((first, min(last, begin)), (max(first, end), last))
            if part[0] < part[1]
        ]
    return ranges
