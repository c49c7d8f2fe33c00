"""Back-pressure: limits the size and age of answers and messages that clients have not read.

A client that reads slowly is served slowly. One that reads nothing is dropped after a while, on
both protocols, and so is one that reads a few bytes now and then. And all of them together may hold
only so much memory: when that limit is reached, those that have read nothing for longest are
dropped first.
"""

import asyncio
from typing import Final, Protocol

from holdfast.limits import (
    MAX_ALL_UNSENT_BYTES,
    MIN_ANSWER_BYTES_PER_SECOND,
    RECENT_READ_SECONDS,
    STALLED_SECONDS,
    STOPPING_STALLED_SECONDS,
)

_CHECK_SECONDS: Final = 0.25  # between two checks of slow clients
_OVERFLOW_CHECK_SECONDS: Final = 0.05  # between two checks while too much is unread


class SlowClient(Protocol):
    """The part of a connection that back-pressure uses."""

    def unsent_bytes(self) -> int:
        """Returns the bytes sent to the client that it has not read."""
        ...

    def drop(self) -> None:
        """Closes the connection at once, without sending the rest."""
        ...


class _Backlog:
    __slots__ = ("began", "bytes", "read", "since")

    def __init__(self, now: float) -> None:
        self.bytes = 0
        self.since = now  # when it last read something
        self.began = now  # when it fell behind
        self.read = 0  # bytes since then

    def is_too_slow(self, now: float, stalled_seconds: float) -> bool:
        if now - self.since >= stalled_seconds:
            return True
        return now - self.began >= stalled_seconds + self.read / MIN_ANSWER_BYTES_PER_SECOND


class BackPressure:
    """The connections of a server whose clients read too slowly."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        *,
        stalled_seconds: float = STALLED_SECONDS,
        size: int = MAX_ALL_UNSENT_BYTES,
    ) -> None:
        self.size = size  # in bytes; twice as much is never held
        self.total = 0
        self._loop = loop
        self._stalled_seconds = stalled_seconds
        self._backlogs: dict[SlowClient, _Backlog] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._last_overflow_check = 0.0

    def add(self, connection: SlowClient) -> None:
        """Watches a connection whose client is behind, until `remove`."""
        if connection not in self._backlogs:
            self._backlogs[connection] = _Backlog(self._loop.time())
            if self._timer is None:
                self._timer = self._loop.call_later(self._pause(), self._drop_stalled)
            self.note_written(connection, connection.unsent_bytes())

    def note_written(self, connection: SlowClient, written: int) -> None:
        """Counts bytes that were written to a connection, if it is watched."""
        backlog = self._backlogs.get(connection)
        if backlog is not None:
            self._measure(connection, backlog, written)
            if self.total > self.size:
                self._overflow()

    def remove(self, connection: SlowClient) -> None:
        """Stops watching a client that has caught up or left."""
        backlog = self._backlogs.pop(connection, None)
        if backlog is not None:
            self.total -= backlog.bytes

    def shorten_time_limit(self) -> None:
        """Shortens the time limit while the server stops, so that clients that read nothing delay
        it only briefly."""
        self._stalled_seconds = min(self._stalled_seconds, STOPPING_STALLED_SECONDS)

    def _pause(self) -> float:
        return min(_CHECK_SECONDS, self._stalled_seconds / 4)

    def _drop_stalled(self) -> None:
        """Drops the connections whose clients have read nothing for too long."""
        self._timer = None
        self._measure_all()
        now = self._loop.time()
        for connection, backlog in list(self._backlogs.items()):
            if backlog.is_too_slow(now, self._stalled_seconds):
                self._drop(connection)
        if self._backlogs:
            self._timer = self._loop.call_later(self._pause(), self._drop_stalled)

    def _measure_all(self) -> None:
        for connection, backlog in self._backlogs.items():
            self._measure(connection, backlog, 0)

    def _measure(self, connection: SlowClient, backlog: _Backlog, written: int) -> None:
        now, size = self._loop.time(), connection.unsent_bytes()
        read = backlog.bytes + written - size
        if not size:
            backlog.began = backlog.since = now
            backlog.read = 0
        elif read > 0:
            backlog.since = now
            if now - backlog.began >= RECENT_READ_SECONDS:  # before that, the kernel has taken it
                backlog.read += read
        self.total += size - backlog.bytes
        backlog.bytes = size

    def _overflow(self) -> None:
        """Drops the clients that have read nothing for longest; those that do read are spared if
        possible."""
        now = self._loop.time()
        if (
            self.total <= 2 * self.size
            and now - self._last_overflow_check < _OVERFLOW_CHECK_SECONDS
        ):
            return
        self._last_overflow_check = now
        self._measure_all()
        for connection, backlog in sorted(self._backlogs.items(), key=lambda each: each[1].since):
            if self.total <= self.size or now - backlog.since < RECENT_READ_SECONDS:
                break
            self._drop(connection)
        if self.total > 2 * self.size:
            for connection, _ in sorted(self._backlogs.items(), key=lambda each: -each[1].bytes):
                if self.total <= 2 * self.size:
                    break
                self._drop(connection)

    def _drop(self, connection: SlowClient) -> None:
        self.remove(connection)
        connection.drop()
