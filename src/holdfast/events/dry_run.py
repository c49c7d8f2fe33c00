"""A transaction whose writes are discarded: `explain` runs the same code as `send`."""

from bisect import bisect_left, insort
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from holdfast.engine.contract import Notice, Reader, pack_counter, read_counter

__all__ = ["DryRun"]


class DryRun:
    """A transaction on a view that sees its own writes and discards them."""

    def __init__(self, reader: Reader) -> None:
        self.space = reader.space
        self.now = reader.now
        self._reader = reader
        self._written: dict[bytes, bytes | None] = {}
        self._order: list[bytes] = []  # the keys of _written, sorted

    def get(self, key: bytes) -> bytes | None:
        return self._written[key] if key in self._written else self._reader.get(key)

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        return [self.get(key) for key in keys]

    def scan(
        self, begin: bytes, end: bytes, *, limit: int | None = None, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        written = self._order[bisect_left(self._order, begin) : bisect_left(self._order, end)]
        below = (
            pair
            for pair in self._reader.scan(begin, end, reverse=reverse)
            if pair[0] not in self._written
        )
        return islice(self._merge(below, written[::-1] if reverse else written, reverse), limit)

    def _merge(
        self, below: Iterator[tuple[bytes, bytes]], written: list[bytes], reverse: bool
    ) -> Iterator[tuple[bytes, bytes]]:
        own = [(key, value) for key in written if (value := self._written[key]) is not None]
        for pair in below:
            while own and (own[0][0] < pair[0]) != reverse:
                yield own.pop(0)
            yield pair
        yield from own

    def put(self, key: bytes, value: bytes) -> None:
        self._write(key, value)

    def put_all(self, pairs: dict[bytes, bytes], *, checked: bool = False) -> None:
        for key, value in pairs.items():
            self._write(key, value)

    def delete(self, key: bytes) -> None:
        self._write(key, None)

    def clear(self, begin: bytes, end: bytes) -> None:
        for key, _ in list(self.scan(begin, end)):
            self._write(key, None)

    def add(self, key: bytes, delta: int) -> None:
        self._write(key, pack_counter(read_counter(self.get(key)) + delta))

    def after_commit(self, notice: Notice) -> None:
        """Publishes nothing: nothing is committed."""

    def after_commit_many(self, topic_prefix: str, make: Callable[[], list[Notice]]) -> None:
        """Publishes nothing, like `after_commit`."""

    def _write(self, key: bytes, value: bytes | None) -> None:
        if key not in self._written:
            insort(self._order, key)
        self._written[key] = value
