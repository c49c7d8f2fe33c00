"""The connections of one process: as many as are used at the same time, up to a bound."""

import ctypes
import threading
import time
from collections.abc import Callable

from holdfast.engine.postgres.connection import PostgresConnection
from holdfast.errors import StoreBusy
from holdfast.limits import CONNECTION_WAIT_SECONDS, MAX_POSTGRES_CONNECTIONS


class ConnectionPool:
    """Lends connections; the one that was used last goes first."""

    def __init__(self, connect: Callable[[], PostgresConnection]) -> None:
        self._connect = connect
        self._lock = threading.Lock()
        self._returned = threading.Condition(self._lock)
        self._waiting = 0  # threads that wait for a connection
        self._idle: list[PostgresConnection] = []
        self._used = 0
        self._generation = 0  # counts losses: a connection made before the last one is not trusted
        self._closed = False

    def take(self, *, more: bool = False) -> PostgresConnection:
        """Waits for a free connection while all are in use. With `more` it makes one beyond the
        bound instead: the caller has one already, and all might wait for each other."""
        with self._lock:
            if not self._idle and self._used >= MAX_POSTGRES_CONNECTIONS and not more:
                self._wait_for_free()
            self._used += 1
            if self._idle:
                return self._idle.pop()
            generation = self._generation
        try:
            connection = self._connect()
        except BaseException:
            with self._lock:
                self._used -= 1
                self._returned.notify()
            raise
        connection.generation = generation
        return connection

    def _wait_for_free(self) -> None:
        """Waits until a connection is free or may be made; the lock is held."""
        deadline = time.monotonic() + CONNECTION_WAIT_SECONDS
        self._waiting += 1
        try:
            while not self._idle and self._used >= MAX_POSTGRES_CONNECTIONS:
                if not self._returned.wait(deadline - time.monotonic()):
                    raise StoreBusy(
                        f"all {MAX_POSTGRES_CONNECTIONS} connections to PostgreSQL are in use",
                        hint="Close views soon after they were opened, and use fewer threads.",
                    )
        finally:
            self._waiting -= 1

    def give_back(self, connection: PostgresConnection) -> None:
        """Returns a connection to the pool; with a broken one all idle ones are closed, which are
        probably broken too."""
        closing: list[PostgresConnection] = []
        with self._lock:
            self._used -= 1
            trusted = connection.generation == self._generation
            if trusted and not connection.broken and not self._closed:
                self._idle.append(connection)
            else:
                closing.append(connection)
                if trusted and connection.broken:
                    self._generation += 1
                    closing += self._idle
                    self._idle = []
            if self._waiting:
                self._returned.notify()
        for each in closing:
            each.close()

    def close(self) -> None:
        """Closes idle connections now, and the others when they are given back."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def forked(self) -> None:
        """Keeps connections open in a child process: closing its copies would end the parent's."""
        self._closed = True
        for connection in self._idle:
            never_finalize(connection)


def never_finalize(thing: object) -> None:
    """Keeps an inherited object alive in a forked child, so that its clean-up never runs there."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))
