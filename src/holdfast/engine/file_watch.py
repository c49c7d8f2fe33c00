"""Watches a file, so that a thread can sleep until another process commits.

Linux reports every write to a file (inotify). On other systems, and if no more watches are allowed,
there is no watch, and the waiting thread polls.
"""

import ctypes
import os
import select
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Self

_IN_MODIFY: Final = 0x2
_MANY_EVENTS: Final = 65_536  # bytes of events that are read and discarded at once


class FileWatch:
    """Waits until a file is written to, by anyone, or until `wake` is called."""

    def __init__(self, events: int) -> None:
        self._events = events
        self._is_open = True
        self._lock = (
            threading.Lock()
        )  # a closed descriptor's number may belong to another file by now
        self._woken = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._either = _polling(self._woken, events)
        self._only_woken = _polling(self._woken)

    @classmethod
    def of(cls, *paths: Path) -> Self | None:
        """Returns a watch on files, or None if there can be none."""
        library: Any = ctypes.CDLL(None, use_errno=True)
        if not hasattr(library, "inotify_init1") or not hasattr(os, "eventfd"):
            return None
        events = library.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if events < 0:
            return None  # the user's limit is reached
        if any(
            library.inotify_add_watch(events, os.fsencode(path), _IN_MODIFY) < 0 for path in paths
        ):
            os.close(events)
            return None
        try:
            return cls(events)
        except OSError:
            os.close(events)
            return None

    def wait(self, seconds: float, *, for_writes: bool = True) -> bool:
        """Returns whether the file was written to, after up to `seconds`."""
        if not self._is_open:
            return False
        polling = self._either if for_writes else self._only_woken
        ready = {number for number, _ in polling.poll(seconds * 1000)}
        if self._woken in ready:
            os.eventfd_read(self._woken)
        if self._events not in ready:
            return False
        os.read(self._events, _MANY_EVENTS)
        return True

    def fileno(self) -> int:
        """Returns the descriptor that is readable after a write, for an event loop; then call
        `forget`."""
        return self._events

    def forget(self) -> None:
        """Forgets the writes up to now."""
        with suppress(BlockingIOError):
            os.read(self._events, _MANY_EVENTS)

    def wake(self) -> None:
        """Ends a wait, or the next one, from any thread."""
        with self._lock:
            if self._is_open:
                os.eventfd_write(self._woken, 1)

    def close(self) -> None:
        """Ends the watch; nobody may be waiting."""
        with self._lock:
            if self._is_open:
                self._is_open = False
                os.close(self._events)
                os.close(self._woken)


def _polling(*numbers: int) -> select.poll:
    polling = select.poll()
    for number in numbers:
        polling.register(number, select.POLLIN)
    return polling
