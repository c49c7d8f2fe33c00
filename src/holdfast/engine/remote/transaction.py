"""The writes of a transaction, and of the group that it is committed with.

A `Writes` is a buffer that can do one thing more: an `add` to a counter that was not read stays an
addition. The server applies it, so any number of transactions can add to one counter, and none of
them conflicts. A later read of the counter reads the value below; from then on it is an ordinary
value that was read and written.
"""

from collections.abc import Iterable, Sequence
from typing import Protocol, cast

from holdfast.engine.contract import Reader
from holdfast.engine.long_keys import LongKeys
from holdfast.engine.remote.protocol import AddRefused, Commit, WalkedRange
from holdfast.engine.remote.read_cache import ReadCache
from holdfast.engine.write_buffer import Pair, WriteBuffer, after_prefix, check_pair
from holdfast.errors import OutsideSpace
from holdfast.limits import MAX_COUNTER, MIN_COUNTER


class BufferBase(Reader, Protocol):
    """The base of a write buffer: a snapshot, or the writes of the transactions before."""

    def has_read(self, key: bytes) -> bool:
        """Returns whether reading `key` adds no check to the commit: it was read before, or the
        value is known without a read."""
        ...


class Writes(WriteBuffer):
    """A transaction on a snapshot, or on the writes of those before it in its group.

    With `reads_counters` it reads every counter before adding to it, so that the transaction that
    adds notices an invalid one.
    """

    __slots__ = ("_max_added_key_bytes", "_reads_counters", "adds")

    _below: BufferBase

    def __init__(
        self,
        below: BufferBase,
        space: bytes,
        now: float,
        *,
        long_keys: LongKeys | None,
        reads_counters: bool = False,
    ) -> None:
        super().__init__(below, space, now)
        self.adds: dict[bytes, int] = {}
        self._reads_counters = reads_counters
        # A long key is stored in front of its value: the server can't add to it.
        self._max_added_key_bytes = long_keys.whole if long_keys is not None else 1 << 62

    # --- reading ---------------------------------------------------------------------------------

    def get(self, key: bytes) -> bytes | None:
        if self.adds and key in self.adds:
            self._resolve(key)
        # As in `WriteBuffer`, without a call.
        written = self.written
        if key in written:
            return written[key]
        if self.cleared and self._is_cleared(key):
            return None
        return self._below.get(key)

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        if self.adds and (added_to := [key for key in keys if key in self.adds]):
            self._below.get_many(added_to)  # all in one round trip
            for key in added_to:
                if key in self.adds:  # a key may be listed twice
                    self._resolve(key)
        return super().get_many(keys)

    def has_read(self, key: bytes) -> bool:
        if key in self.adds:
            return False
        return key in self.written or self._is_cleared(key) or self._below.has_read(key)

    def first(self, begin: bytes, end: bytes, reverse: bool) -> Pair | None:
        self._settle_range(begin, end)
        return super().first(begin, end, reverse)

    def _settle_range(self, begin: bytes, end: bytes) -> None:
        if self.adds:
            for key in [key for key in self.adds if begin <= key < end]:
                self._resolve(key)

    def _resolve(self, key: bytes) -> None:
        """Turns an addition into a value, by reading what it is added to."""
        delta = self.adds.pop(key)
        try:
            super().add(key, delta)
        except BaseException:
            self.adds[key] = delta  # keeps what was accepted, and lets the commit refuse it
            raise

    # --- writing ---------------------------------------------------------------------------------

    def put(self, key: bytes, value: bytes) -> None:
        if self.adds and (type(key) is not bytes or key in self.adds):
            self._resolve_replaced((key,))
        super().put(key, value)

    def put_all(self, pairs: dict[bytes, bytes], *, checked: bool = False) -> None:
        if self.adds:
            self._resolve_replaced(pairs)
        super().put_all(pairs, checked=checked)

    def delete(self, key: bytes) -> None:
        if self.adds and (type(key) is not bytes or key in self.adds):
            self._resolve_replaced((key,))
        super().delete(key)

    def clear(self, begin: bytes, end: bytes) -> None:
        if self.adds:
            self.get_many([key for key in self.adds if begin <= key < end])
        super().clear(begin, end)

    def _resolve_replaced(self, keys: Iterable[bytes]) -> None:
        """Reads what was added to, before it is replaced: an addition that can't be made is an
        error all the same."""
        for key in keys:
            if type(key) is not bytes:
                key, _ = check_pair(key, b"", self.space)
            if key in self.adds:
                self._resolve(key)

    def add(self, key: bytes, delta: int) -> None:
        key, _ = check_pair(key, b"", self.space)
        if self._reads_counters or len(key) >= self._max_added_key_bytes or self.has_read(key):
            super().add(key, delta)
            return
        if MIN_COUNTER <= self._pending(key) + delta <= MAX_COUNTER:
            self.adds[key] = self.adds.get(key, 0) + delta
            self._clears += 1  # a scan that has the counter ahead starts over
        else:
            super().add(key, delta)  # only the counter's value tells whether it can take this

    def _pending(self, key: bytes) -> int:
        """Returns what is added to a counter here and in the buffers below."""
        below = self._below
        pending = self.adds.get(key, 0)
        return pending + below._pending(key) if isinstance(below, Writes) else pending

    # --- joining ---------------------------------------------------------------------------------

    def merge(self, other: WriteBuffer) -> None:
        """Adds the writes of the next transaction of the group. Raises `AddRefused` if it replaces
        what an earlier one has added to without a read, which may be an error of that one."""
        assert isinstance(other, Writes)
        if self.adds and (
            not self.adds.keys().isdisjoint(other.written)
            or (other.cleared and any(map(other._is_cleared, self.adds)))
        ):
            raise AddRefused
        super().merge(other)
        for key, delta in other.adds.items():
            if key in self.written or self._is_cleared(key):
                super().add(key, delta)
            else:
                self.adds[key] = self.adds.get(key, 0) + delta
        self.notices += other.notices

    def commit_of(self, seen: ReadCache, rule: LongKeys | None) -> Commit:
        """Returns all of it, in the backend's own keys. May read the edges of what was cleared."""
        written, adds = self.written, self.adds
        if self.cleared or (rule and written and max(map(len, written)) >= rule.whole):
            clears, puts, deletes = self._stored_writes(rule)
        elif self.deletes:
            clears = []
            puts = {key: value for key, value in written.items() if value is not None}
            deletes = [key for key, value in written.items() if value is None]
        else:
            clears, puts, deletes = [], cast(dict[bytes, bytes], written), []
        ranges = seen.read_ranges()
        keys = seen.read_keys(ranges)
        if puts or deletes or clears or adds or self.notices:
            self._refuse_outside(keys, ranges)
        if adds:
            adds = {key: delta for key, delta in adds.items() if key not in puts}
        return Commit(self.space, keys, ranges, clears, puts, deletes, adds, self.notices)

    def _stored_writes(
        self, rule: LongKeys | None
    ) -> tuple[list[tuple[bytes, bytes]], dict[bytes, bytes], list[bytes]]:
        """Returns what is cleared, put and deleted, as it is stored."""
        clears = list(self.cleared)
        gone: list[bytes] = []
        if rule is not None:
            clears = []
            for begin, end in self.cleared:
                clears += self._stored_clear(begin, end, rule, gone)
        puts: dict[bytes, bytes] = {}
        deletes: dict[bytes, None] = dict.fromkeys(gone)
        for key, value in self.written.items():
            stored = key
            if rule is not None and len(key) >= rule.whole:
                stored = rule.fold(key)
                value = None if value is None else rule.join(key, value)
            if value is None:
                deletes[stored] = None
            else:
                deletes.pop(stored, None)
                puts[stored] = value
        return clears, puts, list(deletes)

    def _refuse_outside(self, keys: dict[bytes, int], ranges: list[WalkedRange]) -> None:
        """Raises if something outside of the space was read: a commit excludes only those of its
        own space, so what was read elsewhere may change while it is checked."""
        space = self.space
        # All keys are between the first and the last one, so checking these two is enough.
        outside = (
            [key for key in (min(keys), max(keys)) if not key.startswith(space)] if keys else []
        )
        if ranges:
            end = after_prefix(space)
            outside += [each.begin for each in ranges if each.begin < space or each.end > end]
        if outside:
            raise OutsideSpace(f"the transaction in {space!r} has also read {outside[0][:64]!r}")

    def _stored_clear(
        self, begin: bytes, end: bytes, rule: LongKeys, gone: list[bytes]
    ) -> list[tuple[bytes, bytes]]:
        """Returns a cleared range in stored keys. Folded keys have no order among those with the
        same prefix: where the range ends within such a group, its members are named in `gone`."""
        middle_begin, middle_end = begin, end
        edges = []
        if len(begin) >= rule.whole:
            prefix = begin[: rule.whole]
            edges.append((begin, min(end, after_prefix(prefix))))
            middle_begin = rule.group_end(prefix)
        if len(end) >= rule.whole:
            prefix = end[: rule.whole]
            edges.append((max(begin, prefix), end))
            middle_end = prefix
        for edge_begin, edge_end in edges:
            gone += [rule.fold(key) for key, _ in self._below.scan(edge_begin, edge_end)]
        return [(middle_begin, middle_end)] if middle_begin < middle_end else []
