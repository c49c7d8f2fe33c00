"""Reads keys by their full length from a read cache whose backend stores long keys folded."""

from collections.abc import Iterator, Sequence

from holdfast.engine.long_keys import LongKeys
from holdfast.engine.remote.read_cache import Pair, ReadCache


class LongKeyReader:
    """Shows full keys on top of a cache whose long keys are folded (see long_keys.py)."""

    def __init__(self, cache: ReadCache, rule: LongKeys) -> None:
        self._cache = cache
        self._rule = rule
        self._whole = rule.whole
        self.space = cache.space
        self.now = cache.now

    def get(self, key: bytes) -> bytes | None:
        if len(key) < self._whole:
            return self._cache.get(key)
        stored = self._cache.get(self._rule.fold(key))
        return None if stored is None else self._rule.split(stored)[1]

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        if max(map(len, keys), default=0) < self._whole:
            return self._cache.get_many(keys)
        self._cache.get_many(
            [key if len(key) < self._whole else self._rule.fold(key) for key in keys]
        )
        return [self.get(key) for key in keys]

    def has_read(self, key: bytes) -> bool:
        return self._cache.has_read(key)

    def scan(
        self, begin: bytes, end: bytes, *, limit: int | None = None, reverse: bool = False
    ) -> Iterator[Pair]:
        if begin >= end or (limit is not None and limit <= 0):
            return
        place, stop = self._rule.stored_range(begin, end)
        while place < stop:
            for key, value in self._cache.scan(place, stop, limit=limit, reverse=reverse):
                if len(key) >= self._whole:
                    break
                yield key, value
                if limit is not None:
                    limit -= 1
                    if limit <= 0:
                        return
            else:
                return
            prefix = key[: self._whole]
            group = self._cache.scan(prefix, self._rule.group_end(prefix))
            for pair in self._rule.ordered(group, begin, end, reverse=reverse):
                yield pair
                if limit is not None:
                    limit -= 1
                    if limit <= 0:
                        return
            if reverse:
                stop = prefix
            else:
                place = self._rule.group_end(prefix)
