"""A connection to a Redis or Valkey server, on hiredis, which Holdfast has anyway."""

import socket
import ssl
from collections.abc import Sequence
from typing import Any, Self
from urllib.parse import unquote, urlsplit

import hiredis

from holdfast.errors import BadInput, StoreUnreachable
from holdfast.limits import REDIS_ANSWER_SECONDS

Word = bytes | str | int


class RedisConnection:
    """Sends commands. The URL is `redis://user:password@host:port/database`, with TLS `rediss://`."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._address = f"{parts.hostname or '127.0.0.1'}:{parts.port or 6379}"
        database = parts.path.strip("/") or "0"
        if not database.isdigit():
            raise BadInput(
                f"{database!r} is not the number of a database", hint="redis://host:6379/0"
            )
        address = (parts.hostname or "127.0.0.1", parts.port or 6379)
        try:
            self._socket = socket.create_connection(address, timeout=REDIS_ANSWER_SECONDS)
            if parts.scheme.endswith("ss"):
                context = ssl.create_default_context()
                self._socket = context.wrap_socket(self._socket, server_hostname=address[0])
        except OSError as error:
            raise StoreUnreachable(f"no Redis answers at {self._address}: {error}") from None
        self._replies = hiredis.Reader()
        try:
            if parts.password:
                self.call("AUTH", *map(unquote, filter(None, (parts.username, parts.password))))
            if database != "0":
                self.call("SELECT", database)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connection."""
        self._socket.close()

    def call(self, *words: Word) -> Any:
        """Returns the reply to one command; raises if it is an error."""
        [reply] = self.pipeline([words])
        if isinstance(reply, hiredis.ReplyError):
            raise BadInput(f"the Redis at {self._address} refused {words[0]!r}: {reply}")
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
            raise StoreUnreachable(
                f"the connection to the Redis at {self._address} broke: {error}"
            ) from None
        return replies
