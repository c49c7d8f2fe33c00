"""Readers and transactions of the LMDB engine: the path that every operation takes.

Written for speed: the usual case of each method is its first lines, the rest is below.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from typing import Any, Final, NoReturn

from holdfast.engine.contract import Notice
from holdfast.engine.long_keys import LongKeys
from holdfast.engine.write_buffer import added, addressed, check_pair, check_range
from holdfast.errors import ViewOnlyReads
from holdfast.limits import MAX_VALUE_BYTES

LONG_KEYS: Final = LongKeys(511)  # LMDB's own limit
_WHOLE: Final = LONG_KEYS.whole
PAIRS_AT_ONCE: Final = 128  # that a scan of a view reads before it yields the first
SMALL_BYTES: Final = 1 << 13  # at most, of each value among them


class LmdbReader:
    """The common part of views and transactions."""

    __slots__ = ("_get", "_txn", "now", "space", "writes")

    def __init__(self, txn: Any, space: bytes, now: float) -> None:
        self._txn = txn
        self._get = txn.get
        self.space = space
        self.now = now
        self.writes = 0  # counted, so that a scan notices writes in its range

    def get(self, key: bytes) -> bytes | None:
        if 0 < len(key) < _WHOLE:
            value: bytes | None = self._get(key)
            return value
        return self._get_long(key)

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        if len(keys) > 1 and all(keys) and max(map(len, keys)) < _WHOLE:
            get = self._get
            return [get(key) for key in keys]
        return [self.get(key) for key in keys]

    def scan(
        self, begin: bytes, end: bytes, *, limit: int | None = None, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        if limit == 1:
            only = self.first(begin, end, reverse)
            return iter(()) if only is None else iter((only,))
        if limit is None or limit <= 0 or reverse or len(begin) >= _WHOLE or len(end) >= _WHOLE:
            return self._one_by_one(begin, end, limit, reverse)
        # A scan of a snapshot with a limit: a list costs a third of a generator.
        found: list[tuple[bytes, bytes]] = []
        cursor = self._txn.cursor()
        if not cursor.set_range(begin):
            return iter(found)
        for pair in islice(cursor, PAIRS_AT_ONCE if limit > PAIRS_AT_ONCE else limit):
            place, value = pair
            if place >= end:
                return iter(found)
            if len(value) > SMALL_BYTES or len(place) >= _WHOLE:
                break
            found.append(pair)
        else:
            if limit <= PAIRS_AT_ONCE or len(found) < PAIRS_AT_ONCE:
                return iter(found)
        # A long key, large values, or many pairs: read the rest one by one.
        begin = found[-1][0] + b"\0" if found else begin
        return chain(found, self._one_by_one(begin, end, limit - len(found), False))

    def first(self, begin: bytes, end: bytes, reverse: bool) -> tuple[bytes, bytes] | None:
        """Returns the first pair of a scan."""
        if not reverse and len(begin) < _WHOLE and len(end) < _WHOLE:
            cursor = self._txn.cursor()
            if not cursor.set_range(begin):
                return None
            pair: tuple[bytes, bytes] = cursor.item()
            if pair[0] >= end:
                return None
            if len(pair[0]) < _WHOLE:
                return pair
        return next(self._one_by_one(begin, end, 1, reverse), None)

    def _one_by_one(
        self, begin: bytes, end: bytes, limit: int | None, reverse: bool
    ) -> Iterator[tuple[bytes, bytes]]:
        pairs = self._backward(begin, end) if reverse else self._forward(begin, end)
        return pairs if limit is None else islice(pairs, limit)

    def _get_long(self, key: bytes) -> bytes | None:
        if not key:
            return None
        stored_value = self._get(LONG_KEYS.fold(key))
        return None if stored_value is None else LONG_KEYS.split(stored_value)[1]

    def _forward(self, begin: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        stored_begin, stored_end = LONG_KEYS.stored_range(begin, end)
        with self._txn.cursor() as cursor:
            found = cursor.set_range(stored_begin)
            while found:
                writes = self.writes
                for pair in cursor:
                    place = pair[0]
                    if place >= stored_end:
                        return
                    if len(place) >= _WHOLE:
                        place = place[:_WHOLE]
                        yield from self._group(place, begin, end)
                        place = LONG_KEYS.group_end(place)
                        break
                    yield pair
                    if self.writes != writes:
                        break
                else:
                    return
                # After a group of long keys, or after writes of the transaction, seek again.
                found = cursor.set_range(place + b"\0")

    def _backward(self, begin: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        stored_begin, stored_end = LONG_KEYS.stored_range(begin, end)
        with self._txn.cursor() as cursor:
            found = _set_before(cursor, stored_end)
            while found:
                writes = self.writes
                for pair in cursor.iterprev():
                    place = pair[0]
                    if place < stored_begin:
                        return
                    if len(place) >= _WHOLE:
                        place = place[:_WHOLE]
                        yield from self._group(place, begin, end, reverse=True)
                        break
                    yield pair
                    if self.writes != writes:
                        break
                else:
                    return
                found = _set_before(cursor, place)

    def _group(
        self, prefix: bytes, begin: bytes, end: bytes, *, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        """Yields the long keys that begin with `prefix`, in order; reads them again whenever they
        may have changed."""
        while True:
            writes = self.writes
            for pair in LONG_KEYS.ordered(self._stored_group(prefix), begin, end, reverse=reverse):
                yield pair
                if self.writes != writes:
                    begin, end = (begin, pair[0]) if reverse else (pair[0] + b"\0", end)
                    break
            else:
                return

    def _stored_group(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        with self._txn.cursor() as cursor:
            cursor.set_range(prefix)
            for pair in cursor:
                if not pair[0].startswith(prefix):
                    return
                yield pair

    def problems(self) -> list[str]:
        """Returns a sentence for each inconsistency among the pairs of the store."""
        found: list[str] = []
        last = b""
        count = count_back = 0
        for key, value in self._txn.cursor():
            count += 1
            if key <= last:
                found.append(f"the keys {last.hex()} and {key.hex()} are out of order")
            if len(key) >= _WHOLE and not LONG_KEYS.matches(key, value):
                found.append(f"the long key {key.hex()} does not match its digest")
            last = key
        for count_back, (key, _) in enumerate(self._txn.cursor().iterprev(), 1):
            if count_back == 1 and key != last:
                found.append("the last key differs when it is read from the other side")
        if count_back != count:
            found.append(f"{count} keys are there forwards and {count_back} backwards")
        return found


class OnlyReads:
    """Refuses every write.

    With methods, because `__getattr__` would slow down every attribute of the class.
    """

    __slots__ = ()

    def put(self, key: bytes, value: bytes) -> NoReturn:
        raise _only_reads("put")

    def put_all(self, pairs: dict[bytes, bytes], *, checked: bool = False) -> NoReturn:
        raise _only_reads("put")

    def delete(self, key: bytes) -> NoReturn:
        raise _only_reads("delete")

    def clear(self, begin: bytes, end: bytes) -> NoReturn:
        raise _only_reads("clear")

    def add(self, key: bytes, delta: int) -> NoReturn:
        raise _only_reads("add")

    def after_commit(self, notice: Notice) -> NoReturn:
        raise _only_reads("after_commit")


class LmdbView(OnlyReads, LmdbReader):
    """A view: a reader that can't write."""

    __slots__ = ("left", "spent")

    left: int  # bytes that a short view may still read; see short_views.py
    spent: Callable[[], int]  # called when it has read them; returns how many more it may read


def _only_reads(asked: str) -> ViewOnlyReads:
    return ViewOnlyReads(f"a view is read-only and can't {asked}")


class LmdbTransaction(LmdbReader):
    """A reader that also writes."""

    __slots__ = ("_put", "notices")

    def __init__(self, txn: Any, space: bytes, now: float) -> None:
        super().__init__(txn, space, now)
        self._put = txn.put
        self.notices: list[Notice] = []

    def scan(
        self, begin: bytes, end: bytes, *, limit: int | None = None, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        return self._one_by_one(begin, end, limit, reverse)

    def put(self, key: bytes, value: bytes) -> None:
        if (
            not 0 < len(key) < _WHOLE
            or len(value) > MAX_VALUE_BYTES
            or not key.startswith(self.space)
        ):
            key, value = self._check_long(key, value)
        self.writes += 1
        self._put(key, value)

    def put_all(self, pairs: dict[bytes, bytes], *, checked: bool = False) -> None:
        for key, value in pairs.items():
            self.put(key, value)

    def delete(self, key: bytes) -> None:
        if not 0 < len(key) < _WHOLE or not key.startswith(self.space):
            key, _ = self._check_long(key, b"")
        self.writes += 1
        self._txn.delete(key)

    def clear(self, begin: bytes, end: bytes) -> None:
        if begin >= end:
            return
        check_range(begin, end, self.space)
        self.writes += 1
        stored_begin, stored_end = LONG_KEYS.stored_range(begin, end)
        with self._txn.cursor() as cursor:
            found = cursor.set_range(stored_begin)
            while found and (key := cursor.key()) < stored_end:
                if len(key) >= _WHOLE and not begin <= LONG_KEYS.split(cursor.value())[0] < end:
                    found = cursor.next()
                    continue
                cursor.delete()  # which also moves to the next key
                found = bool(cursor.key())

    def add(self, key: bytes, delta: int) -> None:
        self.put(key, added(key, self.get(key), delta))

    def after_commit(self, notice: Notice) -> None:
        self.notices.append(addressed(notice, self.space))

    def after_commit_many(self, topic_prefix: str, make: Callable[[], list[Notice]]) -> None:
        self.notices += [addressed(notice, self.space) for notice in make()]

    def _check_long(self, key: bytes, value: bytes) -> tuple[bytes, bytes]:
        """Returns the stored form of a long pair; raises if it can't be stored."""
        key, value = check_pair(key, value, self.space)
        if len(key) < _WHOLE:
            return key, value
        return LONG_KEYS.fold(key), LONG_KEYS.join(key, value)


def _set_before(cursor: Any, end: bytes) -> bool:
    """Moves to the last key before `end`."""
    found = cursor.prev() if cursor.set_range(end) else cursor.last()
    return bool(found)
