"""Reads the keys of a Redis that holds another queue; writes nothing there."""

from collections.abc import Iterator, Sequence

from holdfast.limits import IMPORTED_PER_STEP
from holdfast.redis_connection import RedisConnection, Word


class RedisReader(RedisConnection):
    """Reads keys, lists, sets and hashes in pages."""

    def keys(self, pattern: str | bytes) -> Iterator[bytes]:
        """Yields all keys that match a glob pattern, each once."""
        seen: set[bytes] = set()
        cursor = b"0"
        while True:
            cursor, found = self.call("SCAN", cursor, "MATCH", pattern, "COUNT", 1000)
            yield from (key for key in dict.fromkeys(found) if key not in seen)
            seen.update(found)
            if cursor == b"0":
                return

    def list_pages(self, key: Word) -> Iterator[list[bytes]]:
        """Yields the elements of a list, in pages."""
        begin = 0
        while page := self.call("LRANGE", key, begin, begin + IMPORTED_PER_STEP - 1):
            yield page
            begin += len(page)

    def list_pages_from_end(self, key: Word) -> Iterator[list[bytes]]:
        """Yields the elements of a list from its end, in pages: growth at its beginning is seen."""
        end = -1
        while page := self.call("LRANGE", key, end - IMPORTED_PER_STEP + 1, end):
            yield page[::-1]
            end -= len(page)

    def scored_pages(
        self, key: Word, *, reverse: bool = False
    ) -> Iterator[list[tuple[bytes, float]]]:
        """Yields the members of a sorted set with their scores, in pages."""
        begin = 0
        command = "ZREVRANGE" if reverse else "ZRANGE"
        while page := self.call(command, key, begin, begin + IMPORTED_PER_STEP - 1, "WITHSCORES"):
            yield [
                (member, float(score)) for member, score in zip(page[::2], page[1::2], strict=True)
            ]
            begin += len(page) // 2

    def hashes(self, keys: Sequence[Word]) -> list[dict[bytes, bytes]]:
        """Returns hashes; one that does not exist, or is not a hash, is empty."""
        replies = self.pipeline([("HGETALL", key) for key in keys])
        return [
            dict(zip(reply[::2], reply[1::2], strict=True)) if isinstance(reply, list) else {}
            for reply in replies
        ]
