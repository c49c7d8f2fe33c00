"""Transactions that are abandoned if they turn out to be long, for a server's event loop."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import lmdb

from holdfast.engine.contract import Outcome, TooLong
from holdfast.engine.late_interrupts import is_of_handler
from holdfast.engine.lmdb.write_buffers import TransactionBuffer
from holdfast.engine.write_buffer import Pair, WriteBuffer, check_pair
from holdfast.limits import MAX_KEY_BYTES


class ShortBuffer(TransactionBuffer):
    """A transaction that is abandoned if it turns out to be long: see `Engine.try_transact_many`.

    Each read and write counts as one step, and so does each kilobyte of a value.
    """

    __slots__ = ("left",)

    def run(self, work: Callable[[Any], Any]) -> Outcome[Any]:
        """Runs `work` for at most `left` steps; raises `TooLong` if it needs more."""
        try:
            outcome = Outcome(result=work(self))
        except (KeyboardInterrupt, TooLong, lmdb.Error):
            raise
        except BaseException as error:
            if is_of_handler(error):
                raise
            outcome = Outcome(error=error)
        if self.left < 0:  # the work has caught the `TooLong`
            raise TooLong
        return outcome

    def _spend(self, number: int) -> None:
        self.left -= number
        if self.left < 0:
            raise TooLong

    def get(self, key: bytes) -> bytes | None:
        self.left -= 1
        if self.left < 0:
            raise TooLong
        # Like TransactionBuffer.get, where nothing was cleared.
        if key in self.written:
            value = self.written[key]
        elif key in self._committed:
            value = self._committed[key]
        elif key in self._seen:
            value = self._seen[key]
        else:
            value = self._below.get(key)
        if value is not None and len(value) > 1024:
            self._spend(len(value) >> 10)
        return value

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        self._spend(len(keys))
        return super().get_many(keys)

    def scan(
        self, begin: bytes, end: bytes, *, limit: int | None = None, reverse: bool = False
    ) -> Iterator[Pair]:
        for pair in super().scan(begin, end, limit=limit, reverse=reverse):
            self.left -= 1 + (len(pair[1]) >> 10)
            if self.left < 0:
                raise TooLong
            yield pair

    def put(self, key: bytes, value: bytes) -> None:
        size = len(value)
        self.left -= 1 + (size >> 10)
        if self.left < 0:
            raise TooLong
        # Like WriteBuffer.put.
        if (
            type(key) is not bytes
            or type(value) is not bytes
            or len(key) + size > MAX_KEY_BYTES
            or not key.startswith(self.space)
            or not key
        ):
            key, value = check_pair(key, value, self.space)
        self.written[key] = value

    def put_all(self, pairs: dict[bytes, bytes], *, checked: bool = False) -> None:
        self._spend(len(pairs) + (sum(map(len, pairs.values())) >> 10))
        WriteBuffer.put_all(self, pairs, checked=checked)

    def delete(self, key: bytes) -> None:
        self.left -= 1
        if self.left < 0:
            raise TooLong
        WriteBuffer.delete(self, key)

    def clear(self, begin: bytes, end: bytes) -> None:
        super().clear(begin, end)
        if self.cleared:  # cleared ranges go to LMDB directly, in this commit
            self.left = -1
            raise TooLong
