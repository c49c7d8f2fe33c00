"""Waits for a server that can't be reached, and decides which error to raise in the end.

A server that restarts or fails over is back within seconds. Callers wait for that, up to
`RECONNECT_SECONDS`, and get an error only then.
"""

import math
import random
import threading
import time
from collections.abc import Callable
from typing import Final, TypeVar

from holdfast.engine.remote.protocol import Backend, ConnectionLost, SnapshotLost, Unsettled
from holdfast.errors import (
    Conflict,
    HoldfastError,
    OutcomeUnknown,
    StoreUnreachable,
    StoreUnusable,
)
from holdfast.limits import STOPPING_RECONNECT_SECONDS

T = TypeVar("T")

_RECONNECT_PAUSE_SECONDS: Final = 0.05


class Reconnector:
    """Waits for one backend."""

    def __init__(self, backend: Backend, reconnect_seconds: float) -> None:
        self.unusable: StoreUnusable | None = None  # why the store can't be used any more
        self.stopped = threading.Event()
        self._backend = backend
        self._reconnect_seconds = reconnect_seconds
        self._process_ends_at = math.inf  # when all waits end, in monotonic time

    def shorten_waits(self) -> None:
        """Lets no call wait long for the server from now on: this process is about to end."""
        self._process_ends_at = time.monotonic() + STOPPING_RECONNECT_SECONDS

    def refuse_unusable(self) -> None:
        if self.unusable is not None:
            raise self.unusable.with_traceback(None)  # one shared error must not collect frames

    def wait_for_server(self, give_up_at: float | None, error: ConnectionLost) -> float:
        """Pauses before the next attempt, and returns the time of the last one."""
        if give_up_at is None:
            give_up_at = time.monotonic() + self._reconnect_seconds
        if self._is_over(give_up_at):
            raise self.explain(error) from error
        self._pause()
        return give_up_at

    def explain(self, error: ConnectionLost) -> HoldfastError:
        """Returns the error to raise when there is no point in waiting any longer."""
        if self.unusable is not None:
            return type(self.unusable)(self.unusable.message)
        if isinstance(error, SnapshotLost):
            return Conflict(
                f"{self._backend.name} no longer has the snapshot that this began to read: {error}",
                hint="Read it again, in less time.",
            )
        return StoreUnreachable(f"{self._backend.name} could not be reached: {error}")

    def settle(self, lost: Unsettled) -> bool:
        """Asks, until there is an answer, whether a commit whose reply was lost was applied.

        Whatever ends that without an answer, the outcome is unknown.
        """
        give_up_at = time.monotonic() + self._reconnect_seconds
        while True:
            try:
                return lost.settle()
            except (ConnectionLost, HoldfastError) as error:
                if self._is_over(give_up_at):
                    raise self._unknown(error) from error
            except BaseException as interrupt:  # once more while it waits
                raise self._unknown(interrupt) from interrupt
            self._pause()

    def _unknown(self, error: BaseException) -> OutcomeUnknown:
        return OutcomeUnknown(
            f"{self._backend.name} was lost in the middle of a commit: "
            f"{str(error) or type(error).__name__}"
        )

    def call(self, call: Callable[[], T]) -> T:
        """Calls a function that may be repeated, until the server answers."""
        self.refuse_unusable()
        give_up_at = time.monotonic() + self._reconnect_seconds  # a server may be silent, not gone
        while True:
            try:
                return call()
            except ConnectionLost as error:
                self.refuse_unusable()
                give_up_at = self.wait_for_server(give_up_at, error)

    def _is_over(self, give_up_at: float) -> bool:
        return time.monotonic() > min(give_up_at, self._process_ends_at)

    def _pause(self) -> None:
        self.stopped.wait(_RECONNECT_PAUSE_SECONDS * random.uniform(0.5, 1.5))
