"""Buffers writes above a reader until an engine applies them all at once.

A `WriteBuffer` is a transaction on any reader: it sees its own writes, and what is below is never
touched. A commit applies `cleared` first, then `written`. Buffers can be stacked, as a
buffer is itself a reader.
"""

from bisect import bisect_left, insort
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Final

from holdfast.engine.contract import COUNTER, Notice, Reader
from holdfast.errors import BadInput, KeyTooLong, NotACounter, OutsideSpace, ValueTooLarge
from holdfast.limits import (
    MAX_COUNTER,
    MAX_DEFERRED_BYTES,
    MAX_KEY_BYTES,
    MAX_VALUE_BYTES,
    MIN_COUNTER,
)

Pair = tuple[bytes, bytes]
Range = tuple[bytes, bytes]

_BEHIND_ALL: Final = b"\xff" * (MAX_KEY_BYTES + 1)
_BYTES: Final = frozenset({bytes})
_pack_counter, _unpack_counter = COUNTER.pack, COUNTER.unpack
# The initial values of every buffer: neither is ever changed, only replaced.
NOTHING_CLEARED: Final[list[Range]] = []
NO_KEYS: Final[list[bytes]] = []


class WriteBuffer:
    """A transaction whose writes stay in memory. `written` maps a key to its value, or to None if
    it was deleted; the ranges in `cleared` hide what is below.

    Most reads and writes of every engine pass through here, so the usual case of each method is in
    its first lines. A write is one entry in a dict: keys are put in
    order when a scan asks for them.
    """

    __slots__ = (
        "_below",
        "_clears",
        "_keys",
        "cleared",
        "deletes",
        "has_large",
        "notices",
        "now",
        "space",
        "written",
    )

    def __init__(self, below: Reader, space: bytes, now: float) -> None:
        self._below = below
        self.space = space
        self.now = now
        self.written: dict[bytes, bytes | None] = {}
        self.deletes = False  # whether `written` holds keys that were deleted
        self.has_large = False  # whether a value was put that waits for no other commits
        self.cleared = NOTHING_CLEARED
        self.notices: list[Notice] = []
        self._keys = NO_KEYS  # of `written`, in order; the newest may still be missing
        self._clears = 0  # counted, so that a scan notices a clear in its range

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
        if limit is None:
            return self._walk(begin, end, None, reverse)
        if limit > 1:
            return islice(self._walk(begin, end, limit, reverse), limit)
        # Only one pair is wanted, so no write can come between this one and a next one.
        pair = self.first(begin, end, reverse) if limit == 1 else None
        return iter(() if pair is None else (pair,))

    def first(self, begin: bytes, end: bytes, reverse: bool) -> Pair | None:
        """Returns the first pair of a scan."""
        written = self.written
        keys = self._in_order() if written else self._keys
        at = bisect_left(keys, begin)
        if not self.cleared and (at == len(keys) or keys[at] >= end):
            return next(self._below.scan(begin, end, limit=1, reverse=reverse), None)
        if self.cleared or reverse:
            return next(self._walk(begin, end, 1, reverse), None)
        # The first written pair that was not deleted, or a pair below that comes before it and was
        # not deleted: each deleted key may hide one.
        own: Pair | None = None
        first = at
        while at < len(keys) and (key := keys[at]) < end:
            if (value := written[key]) is not None:
                own, end = (key, value), key
                break
            at += 1
        for pair in self._below.scan(begin, end, limit=at - first + 1):
            if pair[0] not in written:
                return pair
        return own

    def _walk(self, begin: bytes, end: bytes, wanted: int | None, reverse: bool) -> Iterator[Pair]:
        written = self.written
        while begin < end:
            self._settle_range(begin, end)
            keys = self._in_order()
            mine = keys[bisect_left(keys, begin) : bisect_left(keys, end)]
            # Each of the buffer's own keys may hide a pair from below.
            most = None if wanted is None else wanted + len(mine)
            pairs = self._scan_below(begin, end, most, reverse)
            if mine:
                pairs = _merged(pairs, mine, written, reverse)
            count, clears = len(written), self._clears
            for pair in pairs:
                yield pair
                # A new value of a key that was written before is read when the scan gets there;
                # only a changed set of keys makes it necessary to start over.
                if len(written) != count or self._clears != clears:
                    break
            else:
                return
            if reverse:
                end = pair[0]
            else:
                begin = pair[0] + b"\0"

    def _settle_range(self, begin: bytes, end: bytes) -> None:
        """Called before a scan looks at the writes of a range."""

    def _scan_below(
        self, begin: bytes, end: bytes, limit: int | None, reverse: bool
    ) -> Iterator[Pair]:
        """Scans the range below, without the cleared parts."""
        if not self.cleared:
            return self._below.scan(begin, end, limit=limit, reverse=reverse)
        return self._scan_parts(_without([(begin, end)], self.cleared), limit, reverse)

    def _scan_parts(self, parts: list[Range], limit: int | None, reverse: bool) -> Iterator[Pair]:
        for begin, end in reversed(parts) if reverse else parts:
            yield from self._below.scan(begin, end, limit=limit, reverse=reverse)

    def _is_cleared(self, key: bytes) -> bool:
        return any(begin <= key < end for begin, end in self.cleared)

    def _in_order(self) -> list[bytes]:
        """Returns all keys of `written`, in order.

        A dict keeps the order of its keys' arrival, so those that are missing in the list are the
        last ones. They are added oldest first: wherever Ctrl-C interrupts this, that stays true.
        """
        keys = self._keys
        missing = len(self.written) - len(keys)
        if missing:
            newest = list(islice(reversed(self.written), missing))
            if 8 * missing > len(keys):
                keys = self._keys = sorted(keys + newest)
            else:
                for key in reversed(newest):
                    insort(keys, key)
        return keys

    # --- writing ---------------------------------------------------------------------------------

    def put(self, key: bytes, value: bytes) -> None:
        if (
            type(key) is not bytes
            or type(value) is not bytes
            or len(key) + len(value) > MAX_KEY_BYTES  # otherwise neither can be too long
            or not key.startswith(self.space)
            or not key
        ):
            key, value = check_pair(key, value, self.space)
            if len(value) > MAX_DEFERRED_BYTES:
                self.has_large = True
        self.written[key] = value

    def put_all(self, pairs: dict[bytes, bytes], *, checked: bool = False) -> None:
        written = self.written
        if checked or not pairs:
            written |= pairs  # without the call, a quarter less than `update`
            return
        # All keys are between the first and the last one, so checking these two is enough.
        if (
            _BYTES.issuperset(map(type, pairs))
            and _BYTES.issuperset(map(type, pairs.values()))
            and max(map(len, pairs)) + max(map(len, pairs.values())) <= MAX_KEY_BYTES
            and min(pairs) >= self.space
            and max(pairs).startswith(self.space)
            and all(pairs)
        ):
            written |= pairs
        else:
            for key, value in pairs.items():
                self.put(key, value)

    def delete(self, key: bytes) -> None:
        if (
            type(key) is not bytes
            or len(key) > MAX_KEY_BYTES
            or not key.startswith(self.space)
            or not key
        ):
            key, _ = check_pair(key, b"", self.space)
        self.deletes = True
        self.written[key] = None

    def clear(self, begin: bytes, end: bytes) -> None:
        if begin >= end:
            return
        check_range(begin, end, self.space)
        self._clears += 1
        self._forget(begin, end)
        self.cleared = [*_without(self.cleared, [(begin, end)]), (begin, end)]

    def add(self, key: bytes, delta: int) -> None:
        self.put(key, added(key, self.get(key), delta))

    def after_commit(self, notice: Notice) -> None:
        if (
            notice.space != self.space
            or type(notice.topic) is not str
            or type(notice.payload) is not bytes
        ):
            notice = addressed(notice, self.space)
        self.notices.append(notice)

    def after_commit_many(self, topic_prefix: str, make: Callable[[], list[Notice]]) -> None:
        self.notices += [addressed(notice, self.space) for notice in make()]

    def _forget(self, begin: bytes, end: bytes) -> None:
        """Drops the writes in a range."""
        keys = self._in_order()
        first, last = bisect_left(keys, begin), bisect_left(keys, end)
        if first == last:
            return
        self._keys = []  # empty until it is correct again: Ctrl-C may come in between
        for key in keys[first:last]:
            del self.written[key]
        self._keys = keys[:first] + keys[last:]

    # --- joining ---------------------------------------------------------------------------------

    def merge(self, other: "WriteBuffer") -> None:
        """Adds the writes of a buffer that was stacked on this one, which has checked them.

        If interrupted, it can be called again.
        """
        for begin, end in other.cleared:
            self.clear(begin, end)
        if other.deletes:
            self.deletes = True
        if other.has_large:
            self.has_large = True
        self.written.update(other.written)


def check_pair(key: bytes, value: bytes, space: bytes) -> tuple[bytes, bytes]:
    """Returns the pair as bytes; raises if it can't be stored."""
    if not isinstance(key, bytes | bytearray | memoryview):
        raise TypeError(f"a key must be bytes, {type(key).__name__} was given")
    if not isinstance(value, bytes | bytearray | memoryview):
        raise TypeError(f"a value must be bytes, {type(value).__name__} was given")
    key, value = bytes(key), bytes(value)
    if not key:
        raise BadInput("a key must have at least one byte")
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


def added(key: bytes, value: bytes | None, delta: int) -> bytes:
    """Returns the value of a counter after an addition."""
    if value is None:
        number = delta
    elif len(value) == 8:
        number = _unpack_counter(value)[0] + delta
    else:
        raise NotACounter(f"the value of {key!r} has {len(value)} bytes, a counter has 8")
    if not MIN_COUNTER <= number <= MAX_COUNTER:
        raise NotACounter(f"{key!r} would become {number}, a counter has 64 bits")
    return _pack_counter(number)


def addressed(notice: Notice, space: bytes) -> Notice:
    """Returns the notice with the space of its transaction."""
    if type(notice.topic) is not str or type(notice.payload) is not bytes:
        # A notice that can't be encoded would undo the whole group, and one that can't be decoded
        # would stop every subscriber.
        raise BadInput(f"{notice} is not a notice", hint="The topic is a str, the payload bytes.")
    return notice if notice.space == space else Notice(notice.topic, notice.payload, space)


def after_prefix(prefix: bytes) -> bytes:
    """Returns the first key after all that begin with `prefix`."""
    stem = prefix.rstrip(b"\xff")
    return stem[:-1] + bytes([stem[-1] + 1]) if stem else _BEHIND_ALL


def _merged(
    below: Iterator[Pair], mine: list[bytes], written: dict[bytes, bytes | None], reverse: bool
) -> Iterator[Pair]:
    """Yields the pairs below and those of `mine`, in order; if both have a key, that of `mine`."""
    own_keys = iter(mine if not reverse else mine[::-1])
    own: bytes | None = next(own_keys)
    for pair in below:
        key = pair[0]
        while own is not None and (own > key if reverse else own < key):
            if (value := written[own]) is not None:
                yield own, value
            own = next(own_keys, None)
        if own != key:
            yield pair
            continue
        if (value := written[key]) is not None:
            yield key, value
        own = next(own_keys, None)
    while own is not None:
        if (value := written[own]) is not None:
            yield own, value
        own = next(own_keys, None)


def _without(ranges: list[Range], gone: list[Range]) -> list[Range]:
    """Returns what is left of sorted ranges, in order."""
    for begin, end in gone:
        ranges = [
            part
            for first, last in ranges
            for part in ((first, min(last, begin)), (max(first, end), last))
            if part[0] < part[1]
        ]
    return ranges
