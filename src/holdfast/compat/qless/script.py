"""Calls the original script in a Redis: `EVALSHA sha 0 command now ...`; loads it if necessary."""

import re
import threading
import time
from collections.abc import Sequence
from typing import Any, Final
from uuid import uuid4

import hiredis
import msgspec

from holdfast.compat.qless.dialects import dialect_of
from holdfast.errors import (
    BadInput,
    HoldfastError,
    JobLost,
    StoreUnreachable,
    UnknownJob,
    WrongState,
)
from holdfast.redis_connection import RedisConnection

__all__ = ["RefusedCommand", "Script"]

# `Error running script (call to f_SHA): @user_script:1: user_script:1: TEXT` up to Redis 6, and
# `user_script:1: TEXT script: SHA, on @user_script:1.` since.
_TEXT: Final = re.compile(r"user_script:\d+:\s*(\w.*?)(?: script: [0-9a-f]{40}.*)?$", re.DOTALL)
_ERRORS: Final[tuple[tuple[str, type[HoldfastError]], ...]] = (  # by parts of their texts
    ("does not exist", UnknownJob),
    ("another worker", JobLost),
    ("running", WrongState),
)
_READ_ONLY_TABLE: Final = "readonly table"
_READ_ONLY_TABLE_HINT: Final = (
    "Redis since 6.2.7, and Valkey, refuse the script as it was published: give a repaired one, "
    "such as that of the Ruby gem qless 0.14, with --qless-script."
)


class RefusedCommand:
    """The reply of a script that has refused a command: its text, and the corresponding error."""

    def __init__(self, reply: str) -> None:
        found = _TEXT.search(reply)
        self.text = found[1] if found else reply
        self.kind = next((kind for part, kind in _ERRORS if part in self.text), BadInput)


class Script:
    """The script in one database of a Redis; one call at a time, from any thread."""

    def __init__(self, url: str, body: bytes) -> None:
        dialect = dialect_of(body)
        if dialect is None:
            raise BadInput("the file is not the script of Qless: it defines no QlessAPI.put")
        self._url = url
        self._body = body
        self._takes_name = dialect == "G3"  # its `put` takes the caller's name first
        self._lock = threading.Lock()
        self._connection: RedisConnection | None = None
        self._digest = b""
        try:
            self.call("queues")  # fails here if the server can't run the script
        except BaseException:
            self.close()
            raise

    def call(self, *words: Any) -> Any:
        """Returns the reply to a command; raises if it was refused."""
        [reply] = self.call_all([words])
        if isinstance(reply, RefusedCommand):
            hint = _READ_ONLY_TABLE_HINT if _READ_ONLY_TABLE in reply.text else None
            raise reply.kind(reply.text, hint=hint)
        return reply

    def call_all(self, commands: Sequence[Sequence[Any]]) -> list[Any]:
        """Returns the replies to several commands in one round trip; refusals are among them."""
        if not commands:
            return []
        with self._lock:
            try:
                return self._send(commands)
            except StoreUnreachable:
                self._drop()
                raise

    def text(self, *words: Any) -> str:
        """Returns the reply to a command as text."""
        reply = self.call(*words)
        return reply.decode() if isinstance(reply, bytes) else str(reply or "")

    def decoded(self, *words: Any) -> Any:
        """Returns the reply to a command that answers with JSON; an empty list may be `{}`."""
        reply = self.call(*words)
        return msgspec.json.decode(reply) if reply else []

    @staticmethod
    def encoded(value: Any) -> str:
        """Returns a value as JSON."""
        return msgspec.json.encode(value).decode()

    def put(self, queue: str, klass: str, data: Any, *, id: str | None, **options: Any) -> str:
        """Puts a job; options that are None are left to the script."""
        delay = options.pop("delay")
        words: list[Any] = []
        for name, value in options.items():
            if value is not None:
                words += [name, value if isinstance(value, int | float) else self.encoded(value)]
        jid = id or uuid4().hex
        caller = ["holdfast"] if self._takes_name else []
        return self.text("put", *caller, queue, jid, klass, self.encoded(data), delay, *words)

    def close(self) -> None:
        """Closes the connection."""
        with self._lock:
            self._drop()

    # --- internals --------------------------------------------------------------------------------

    def _send(self, commands: Sequence[Sequence[Any]]) -> list[Any]:
        if self._connection is None:
            self._connection = RedisConnection(self._url)
            self._digest = self._connection.call("SCRIPT", "LOAD", self._body)
        replies = self._connection.pipeline([self._evalsha(*words) for words in commands])
        if any(_is_unknown(reply) for reply in replies):  # nothing ran: the script has been flushed
            self._digest = self._connection.call("SCRIPT", "LOAD", self._body)
            missing = [n for n, reply in enumerate(replies) if _is_unknown(reply)]
            done = self._connection.pipeline([self._evalsha(*commands[n]) for n in missing])
            for n, reply in zip(missing, done, strict=True):
                replies[n] = reply
        return [
            RefusedCommand(str(reply)) if isinstance(reply, hiredis.ReplyError) else reply
            for reply in replies
        ]

    def _evalsha(self, command: str, *words: Any) -> list[str | bytes]:
        given = [word if isinstance(word, str | bytes) else _number(word) for word in words]
        return ["EVALSHA", self._digest, "0", command, _number(time.time()), *given]

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


def _number(value: float) -> str:
    return f"{value:.6f}" if isinstance(value, float) else str(value)


def _is_unknown(reply: Any) -> bool:
    return isinstance(reply, hiredis.ReplyError) and str(reply).startswith("NOSCRIPT")
