"""Views that count what they read: for a thread that must not be blocked, or block others.

Most reads of a server run on its event loop, and how much one reads is not known in advance. So the
view of the loop counts: large values by their bytes, and the pairs of a scan. A read that gets too
far is abandoned with `TooLong`, and runs again in a thread. There `spent` pauses it now and then.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from holdfast.engine.contract import TooLong
from holdfast.engine.lmdb.transaction import LONG_KEYS, PAIRS_AT_ONCE, SMALL_BYTES, LmdbView
from holdfast.engine.lmdb.write_buffers import UnflushedView
from holdfast.engine.write_buffer import Pair

_WHOLE: Final = LONG_KEYS.whole
_PAIR_BYTES: Final = 256  # of a value that takes as long to read as the pair besides its value


def abandon() -> int:
    """Gives up a read that is too long for its thread."""
    raise TooLong


class ShortReads(LmdbView):
    """Counts what a view reads. The usual case, a small value, costs one comparison."""

    __slots__ = ()

    def spend(self, size: int) -> None:
        """Counts bytes that were read, or that a value was expanded to."""
        self.left -= size
        if self.left < 0:
            self.left = self.spent()

    def get(self, key: bytes) -> bytes | None:
        value: bytes | None = self._get(key) if 0 < len(key) < _WHOLE else self._get_long(key)
        if value is not None and len(value) > SMALL_BYTES:
            self.spend(len(value))
        return value

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        return [self.get(key) for key in keys]

    def first(self, begin: bytes, end: bytes, reverse: bool) -> Pair | None:
        pair = LmdbView.first(self, begin, end, reverse)
        if pair is not None and len(pair[1]) > SMALL_BYTES:
            self.spend(len(pair[1]))
        return pair

    def scan(
        self, begin: bytes, end: bytes, *, limit: int | None = None, reverse: bool = False
    ) -> Iterator[Pair]:
        if limit is not None and limit > 1:
            self.left -= _PAIR_BYTES * (PAIRS_AT_ONCE if limit > PAIRS_AT_ONCE else limit)
            if self.left < 0:
                self.left = self.spent()
        return LmdbView.scan(self, begin, end, limit=limit, reverse=reverse)

    def _one_by_one(
        self, begin: bytes, end: bytes, limit: int | None, reverse: bool
    ) -> Iterator[Pair]:
        for pair in LmdbView._one_by_one(self, begin, end, limit, reverse):
            self.left -= _PAIR_BYTES + len(pair[1])
            if self.left < 0:
                self.left = self.spent()
            yield pair


class ShortUnflushedView(UnflushedView):
    """Counts what a view with unflushed commits reads: it counts these commits, and the view below
    counts the rest."""

    __slots__ = ()

    _below: ShortReads

    @property
    def left(self) -> int:
        return self._below.left

    @left.setter
    def left(self, left: int) -> None:
        self._below.left = left

    @property
    def spent(self) -> Callable[[], int]:
        return self._below.spent

    @spent.setter
    def spent(self, spent: Callable[[], int]) -> None:
        self._below.spent = spent

    def spend(self, size: int) -> None:
        self._below.spend(size)

    def get(self, key: bytes) -> bytes | None:
        written = self.written
        if key not in written:
            return self._below.get(key)
        value = written[key]
        if value is not None and len(value) > SMALL_BYTES:
            self._below.spend(len(value))
        return value

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        return [self.get(key) for key in keys]

    def first(self, begin: bytes, end: bytes, reverse: bool) -> Pair | None:
        pair = super().first(begin, end, reverse)
        if pair is not None and pair[0] in self.written:
            self._below.spend(len(pair[1]))
        return pair

    def _walk(self, begin: bytes, end: bytes, wanted: int | None, reverse: bool) -> Iterator[Pair]:
        for pair in super()._walk(begin, end, wanted, reverse):
            if pair[0] in self.written:
                self._below.spend(_PAIR_BYTES + len(pair[1]))
            yield pair
