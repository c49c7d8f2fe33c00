"""The signals of a server: SIGTERM and SIGINT stop it, a second one at once; SIGHUP reloads.

SIGHUP ends a process that has no handler yet. So it is blocked from the start of the program until
the server can reload: one that comes earlier is delivered then.
"""

import asyncio
import signal
from collections.abc import Callable

from holdfast.limits import SECOND_SIGNAL_SECONDS


def defer_reloads() -> None:
    """Lets SIGHUP wait for `accept_reloads`."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})


def accept_reloads() -> None:
    """Delivers SIGHUP from now on, and one that has waited."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGHUP})


class StopSignals:
    """Tells a second request to stop from a copy of the first."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._first: float | None = None

    def is_second(self) -> bool:
        """Notes a signal; returns whether the process should end at once."""
        if self._first is None:
            self._first = self._clock()
        return self._clock() > self._first + SECOND_SIGNAL_SECONDS


def handle_signals(reload: Callable[[], None]) -> asyncio.Event:
    """Returns what SIGTERM and SIGINT set; a second one ends the process at once."""
    loop = asyncio.get_running_loop()
    stopped = asyncio.Event()
    signals = StopSignals(loop.time)

    def stop() -> None:
        if signals.is_second():
            signal.raise_signal(signal.SIGKILL)
        stopped.set()

    loop.add_signal_handler(signal.SIGTERM, stop)
    loop.add_signal_handler(signal.SIGINT, stop)
    loop.add_signal_handler(signal.SIGHUP, reload)
    accept_reloads()
    return stopped
