"""Notices of commits for a client."""

import threading
import time
from collections import deque
from collections.abc import Iterator
from typing import Any, Self

from holdfast import wire
from holdfast.client import calls
from holdfast.client.calls import ConnectionBroken
from holdfast.client.connection import Connection
from holdfast.client.pool import Pool, retry_pause
from holdfast.engine.contract import Notice
from holdfast.errors import Unreachable


class ClientSubscription:
    """The notices of one space whose topics have a common prefix, on a connection of its own.

    When the connection breaks, it connects again, and `missed` grows by one. Notices in between are
    lost, so read again what you follow.
    """

    def __init__(self, pool: Pool, space: str, topic_prefix: str) -> None:
        calls.require_text(topic_prefix, "a topic")
        self._target = pool.target
        self._tls = pool.target.tls()
        self._space = space
        self._topic = topic_prefix
        self._queue: deque[Notice] = deque()
        # One thread reads at a time. A signal handler may close what its own thread reads from.
        self._turn = threading.RLock()
        self._missed = 0
        self._is_broken = False  # the connection broke: connect again
        self._closed = False
        self._connection = self._connect()

    @property
    def missed(self) -> int:
        """Returns how often the connection broke; each time, notices may have been missed."""
        return self._missed

    def get(self, timeout: float | None = None) -> Notice | None:
        """Returns the next notice, or None after `timeout` seconds (None waits for ever) or when
        closed."""
        end = None if timeout is None else time.monotonic() + timeout
        if not self._take_turn(timeout):
            return None
        try:
            return self._queue.popleft() if self._wait(end) else None
        finally:
            self._turn.release()

    def wait(self, timeout: float | None = None) -> bool:
        """Waits until there is something to `get`; False after `timeout` seconds or when closed."""
        end = None if timeout is None else time.monotonic() + timeout
        if not self._take_turn(timeout):
            return False
        try:
            return self._wait(end)
        finally:
            self._turn.release()

    def poll(self) -> list[Notice]:
        """Returns at once all notices that were not returned yet, of all commits that have
        returned."""
        with self._turn:
            if not self._closed:
                self._catch_up()
            notices = list(self._queue)
            self._queue.clear()
        return notices

    def close(self) -> None:
        """Ends the subscription. A waiting `get` returns None."""
        self._closed = True
        self._connection.shut_down()
        with self._turn:
            self._connection.close()

    def __iter__(self) -> Iterator[Notice]:
        while (notice := self.get()) is not None:
            yield notice

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    # --- the connection --------------------------------------------------------------------------

    def _take_turn(self, timeout: float | None) -> bool:
        """Waits for another thread that reads; returns whether it ended within `timeout`."""
        if timeout is None:
            return self._turn.acquire()
        return self._turn.acquire(timeout=min(max(0.0, timeout), threading.TIMEOUT_MAX))

    def _wait(self, end: float | None) -> bool:
        while not self._queue and not self._closed:
            left = None if end is None else end - time.monotonic()
            if left is not None and left <= 0:
                break
            self._listen(left)
        return bool(self._queue) and not self._closed

    def _connect(self, seconds: float | None = None) -> Connection:
        end = time.monotonic() + (self._target.connect_timeout if seconds is None else seconds)
        connection = Connection(self._target, self._tls, seconds)
        try:
            if connection.space != self._space:
                connection.enter(self._space, end - time.monotonic())
            command = calls.words("NOTICES", wire.bytes_of(self._topic))
            reply = connection.ask(command, 1, end - time.monotonic())
            if type(reply) is not list:
                raise calls.failure(reply)
        except ConnectionBroken as broken:
            connection.close()
            raise Unreachable(broken.reason) from None
        except BaseException:
            connection.close()
            raise
        return connection

    def _listen(self, timeout: float | None) -> None:
        """Receives what arrives within `timeout`."""
        end = None if timeout is None else time.monotonic() + timeout
        if self._is_broken:
            self._connect_again(end)
            return
        try:
            reply = self._connection.receive(timeout)
        except ConnectionBroken as broken:
            if not broken.is_late:
                self._connect_again(end)
            return
        self._take(reply)

    def _catch_up(self) -> None:
        """Pings the server: everything committed before arrives before the answer."""
        end = time.monotonic() + self._target.timeout
        if self._is_broken:
            self._connect_again(end)
            return
        try:
            self._connection.send_only(calls.PING, self._target.timeout)
            while self._take(self._connection.receive(end - time.monotonic())):
                pass
        except ConnectionBroken:
            self._connect_again(end)

    def _take(self, reply: Any) -> bool:
        """Keeps a notice; False if it is something else."""
        if type(reply) is list and reply[:1] == [b"notice"]:
            self._queue.append(Notice(wire.text_of(reply[1]), reply[2]))
            return True
        return False

    def _connect_again(self, end: float | None) -> None:
        """Connects again; if no time is left for that, the next call does."""
        self._connection.close()
        if self._closed:
            return
        self._missed += not self._is_broken
        self._is_broken = True
        for tries in range(self._target.retries + 1):
            seconds = self._target.connect_timeout
            if end is not None:
                seconds = min(seconds, end - time.monotonic())
            if seconds <= 0 or self._closed:
                return
            try:
                self._connection = self._connect(seconds)
            except Unreachable:
                if tries == self._target.retries:
                    raise
                left = seconds if end is None else end - time.monotonic()
                time.sleep(max(0.0, min(retry_pause(tries + 1), left)))
            else:
                self._is_broken = False
                break
        if self._closed:
            self._connection.close()
