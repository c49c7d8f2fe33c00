"""A connection to a Redis that is only read from, on hiredis, which Holdfast has anyway."""

import socket
import ssl
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import unquote, urlsplit

import hiredis

from holdfast.errors import BadInput, StoreUnreachable
from holdfast.limits import IMPORT_READ_SECONDS, IMPORTED_PER_STEP

Word = bytes | str | int


class RedisReader:
    """Reads keys; the URL is `redis://user:password@host:port/database`, or `rediss://` for TLS."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._where = f"{parts.hostname or '127.0.0.1'}:{parts.port or 6379}"
        database = parts.path.strip("/") or "0"
        if not database.isdigit():
            raise BadInput(
                f"{database!r} is not the number of a database", hint="redis://host:6379/0"
            )
        address = (parts.hostname or "127.0.0.1", parts.port or 6379)
        try:
            self._socket = socket.create_connection(address, timeout=IMPORT_READ_SECONDS)
            if parts.scheme.endswith("ss"):
                context = ssl.create_default_context()
                self._socket = context.wrap_socket(self._socket, server_hostname=address[0])
        except OSError as error:
            raise StoreUnreachable(f"no Redis answers at {self._where}: {error}") from None
        self._replies = hiredis.Reader()
        if parts.password:
            self.call("AUTH", *map(unquote, filter(None, (parts.username, parts.password))))
        if database != "0":
            self.call("SELECT", database)

    def __enter__(self) -> "RedisReader":
        return self

    def __exit__(self, *exc: object) -> None:
        self._socket.close()

    def call(self, *words: Word) -> Any:
        """Returns the reply to one command; raises if it is an error."""
        [reply] = self.pipeline([words])
        if isinstance(reply, hiredis.ReplyError):
            raise BadInput(f"the Redis at {self._where} refused {words[0]!r}: {reply}")
        return reply

    def pipeline(self, commands: Sequence[Sequence[Word]]) -> list[Any]:
        """Returns the replies to several commands; an error is a reply like any other."""
        packed = (hiredis.pack_command(tuple(words)) for words in commands)  # type: ignore[arg-type]  # any number of words
        replies: list[Any] = []
        try:
            self._socket.sendall(b"".join(packed))
            while len(replies) < len(commands):
                reply = self._replies.gets()
                if reply is not False:
                    replies.append(reply)
                    continue
                received = self._socket.recv(65_536)
                if not received:
                    raise OSError("it closed the connection")
                self._replies.feed(received)
        except (OSError, hiredis.ProtocolError) as error:
            raise StoreUnreachable(f"the Redis at {self._where} broke off: {error}") from None
        return replies

    def keys(self, pattern: str | bytes) -> Iterator[bytes]:
        """Yields all keys that fit a glob pattern, each once."""
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
        """Returns hashes; one that does not exist, or is no hash, is empty."""
        replies = self.pipeline([("HGETALL", key) for key in keys])
        return [
            dict(zip(reply[::2], reply[1::2], strict=True)) if isinstance(reply, list) else {}
            for reply in replies
        ]
