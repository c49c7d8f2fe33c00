"""The connections of a client, and what happens to a request whose connection breaks.

A request is sent again only if it changes nothing, or if the server can't have received it, or
has said that it did not run it. Otherwise it raises `OutcomeUnknown`: nothing is ever done twice.
"""

import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from holdfast.client.batches import Pipeline
from holdfast.client.calls import INTERRUPTED, ConnectionBroken, is_busy, is_dropped_space
from holdfast.client.connection import Connection
from holdfast.client.replies import ReplyError
from holdfast.client.urls import ServerTarget
from holdfast.errors import ServerBusy, StoreClosed, Unreachable
from holdfast.limits import MAX_RETRY_SECONDS, RETRY_SECONDS

PIPELINE_STEP: Final = 500  # commands sent before replies are read, so that no buffer fills up


class Pool:
    """Connections that threads share: each is used by one of them at a time."""

    def __init__(
        self, target: ServerTarget, *, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self.target = target
        self._tls = target.tls()
        self._sleep = sleep
        self._begin()

    def _begin(self) -> None:
        self._process = os.getpid()
        # Guards everything below except the lists of idle connections.
        self._free = threading.Condition()
        self._waiting = 0  # threads that wait for a connection
        # By space, the last one used at the end. Appending and popping are atomic in Python, so
        # the usual call needs no lock.
        self._idle: dict[str, list[Connection]] = {}
        self._open = 0
        self._closed = False

    def exchange(
        self,
        data: bytes,
        space: str,
        *,
        timeout: float,
        only_reads: bool,
        replies: int = 1,
        apart: bool = False,
    ) -> Any:
        """Sends commands at once and returns the reply, or the replies.

        `timeout` covers everything, retries included; `only_reads` means that it may be sent again.
        `apart` changes nothing here: a thread has its connection to itself.
        """
        end = time.monotonic() + timeout
        tries = 0
        while True:
            tries += 1
            try:
                connection = self.take(space, end, is_checked=not only_reads)
            except Unreachable:
                if not self._may_retry(tries, end):
                    raise
                continue
            left = timeout if tries == 1 else max(0.001, end - time.monotonic())
            try:
                reply = connection.ask(data, replies, left)
            except ConnectionBroken as broken:
                self.drop(connection)
                is_safe = only_reads or not broken.was_sent
                if broken.is_late or not is_safe or not self._may_retry(tries, end):
                    raise broken.error(only_reads=only_reads) from None
                continue
            except BaseException:
                # A reply may still arrive, and would be taken for that of another call.
                self.drop(connection)
                raise
            last = reply if replies == 1 else reply[-1]
            if type(last) is ReplyError:
                if is_dropped_space(last):
                    self.forget(space)
                    self.drop(connection)
                    return reply
                if is_busy(last) and self._may_retry(tries, end):
                    self.give_back(connection)
                    continue
            self.give_back(connection)
            return reply

    def _may_retry(self, tries: int, end: float) -> bool:
        """Waits a little and returns True, unless there were enough tries or the time is over."""
        pause = retry_pause(tries)
        if tries > self.target.retries or time.monotonic() + pause >= end:
            return False
        self._sleep(pause)
        return True

    def send_pipeline(
        self, recording: Pipeline, space: str, *, timeout: float, before: bytes = b""
    ) -> None:
        """Sends what was recorded, step by step, and settles every handle.

        `before` is a command that is sent before each of them; its replies are dropped.
        """
        commands = recording._take_commands()
        each = 2 if before else 1  # replies
        end = time.monotonic() + timeout
        connection = self.take(space, end)
        replies: list[Any] = []
        try:
            for begin in range(0, len(commands), PIPELINE_STEP):
                step = commands[begin : begin + PIPELINE_STEP]
                left = end - time.monotonic()
                data = b"".join(before + command for command in step)
                connection.ask_each(data, each * len(step), left, replies)
        except BaseException as error:
            self.drop(connection)
            broken = error if isinstance(error, ConnectionBroken) else INTERRUPTED
            replies = replies[each - 1 :: each]
            recording._settle(replies)
            sent = (len(replies) // PIPELINE_STEP + 1) * PIPELINE_STEP
            recording._refuse_rest(len(replies), sent, broken)
            if broken is error:
                return
            raise
        if any(map(is_dropped_space, replies)):
            self.forget(space)
            self.drop(connection)
        else:
            self.give_back(connection)
        recording._settle(replies[each - 1 :: each])

    # --- connections -----------------------------------------------------------------------------

    def take(self, space: str, end: float, *, is_checked: bool = True) -> Connection:
        """Returns a connection in that space for the caller alone.

        If it `is_checked`, the server has not closed it meanwhile. A request that only reads needs
        no such check: it is sent again.
        """
        if os.getpid() != self._process:
            self._close_idle()  # connections from before a fork belong to the parent
            self._begin()
        while True:
            idle = self._idle.get(space)
            try:
                connection = idle.pop() if idle else self._next_free(end)
            except IndexError:
                continue  # another thread was faster
            if connection is None:
                return self._connect(space, end)
            if is_checked and connection.is_stale:
                self.drop(connection)
                continue
            if connection.space != space:
                self._enter(connection, space, end)
            return connection

    def _next_free(self, end: float) -> Connection | None:
        """Returns None if a new connection may be opened; otherwise the next free one, of any
        space."""
        with self._free:
            self._waiting += 1
            try:
                while True:
                    self._refuse_closed()
                    if self._open < self.target.connections:
                        self._open += 1
                        return None
                    for idle in list(self._idle.values()):
                        if idle:
                            return idle.pop(0)
                    if not self._free.wait(end - time.monotonic()):
                        raise ServerBusy(
                            f"all {self.target.connections} connections of this client are in use",
                            hint="Allow it more with `connections`, or more time with `timeout`.",
                        )
            finally:
                self._waiting -= 1

    def _refuse_closed(self) -> None:
        if self._closed:
            hint = "Connect again with `holdfast.connect`."
            raise StoreClosed("the client was closed", hint=hint)

    def _connect(self, space: str, end: float) -> Connection:
        try:
            connection = Connection(self.target, self._tls, self._seconds_left(end))
        except BaseException:
            self._note_closed()
            raise
        if connection.space != space:
            self._enter(connection, space, end)
        return connection

    def _seconds_left(self, end: float) -> float:
        """Returns the seconds that a call may still wait for a connection."""
        return min(self.target.connect_timeout, max(0.001, end - time.monotonic()))

    def _enter(self, connection: Connection, space: str, end: float) -> None:
        try:
            connection.enter(space, self._seconds_left(end))
        except ConnectionBroken as broken:
            self.drop(connection)
            raise Unreachable(broken.reason) from None
        except BaseException:
            self.drop(connection)
            raise

    def give_back(self, connection: Connection) -> None:
        """Returns a connection to the pool."""
        idle = self._idle.get(connection.space)
        if idle is None:
            idle = self._idle.setdefault(connection.space, [])
        idle.append(connection)
        if self._waiting:
            with self._free:
                self._free.notify()
        if self._closed:
            self._close_idle()

    def drop(self, connection: Connection) -> None:
        """Closes a connection that can no longer be used."""
        connection.close()
        self._note_closed()

    def _note_closed(self) -> None:
        with self._free:
            self._open -= 1
            self._free.notify()

    def forget(self, space: str) -> None:
        """Forgets a dropped space: a new one of the same name is a different space."""
        idle = self._idle.get(space, [])
        with suppress(IndexError):
            while True:
                self.drop(idle.pop())

    def close(self) -> None:
        """Closes idle connections now, and all others when they are returned."""
        with self._free:
            self._closed = True
            self._free.notify_all()
        self._close_idle()

    def _close_idle(self) -> None:
        for idle in list(self._idle.values()):
            with suppress(IndexError):
                while True:
                    idle.pop().close()


def retry_pause(tries: int) -> float:
    """Returns the pause before the next attempt, given the number of attempts."""
    return min(RETRY_SECONDS * 2.0 ** (tries - 1), MAX_RETRY_SECONDS)
