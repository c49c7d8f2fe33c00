"""Runs the thread that flushes commits which have waited long enough."""

import threading
import time
from collections.abc import Callable

from holdfast.engine.lmdb.write_buffers import CommittedBuffer
from holdfast.limits import FLUSH_SECONDS


class Flusher:
    """Checks every `FLUSH_SECONDS` whether commits are due, and sleeps while none wait.

    Commits are due after `max_delay_seconds`, or after a tenth of that without a new one: then
    nobody writes, and a flush gives readers less to merge.
    """

    def __init__(
        self,
        *,
        max_delay_seconds: float,
        waiting: Callable[[], CommittedBuffer | None],
        check_for_others: Callable[[], None],
        flush: Callable[[bool], bool],
    ) -> None:
        self._max_delay_seconds = max_delay_seconds
        self._waiting = waiting
        self._check_for_others = check_for_others
        self._flush = flush  # takes whether a flush is due, returns whether to look again
        self._awake = threading.Event()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self._newest = (0, 0)  # the last commit that was seen
        self._since = 0.0  # when it was first seen

    def wake(self) -> None:
        """Starts the thread if necessary, and makes it look until no commit waits."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="holdfast-flush", daemon=True)
            self._thread.start()
        self._awake.set()

    def stop(self) -> None:
        """Stops the thread, and returns once it has ended."""
        self._stopped.set()
        self._awake.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while True:
            self._awake.wait()
            self._awake.clear()  # first of all, so that no later call is missed
            if self._stopped.wait(FLUSH_SECONDS):
                return
            self._check_for_others()
            waiting = self._waiting()
            due = waiting is None or self._is_due(waiting)
            if due and waiting is not None:
                # A busy writer flushes by itself, with its next commit. With this thread, it
                # would compete for Python's lock at every call of LMDB.
                waiting.due = True
                if self._stopped.wait(FLUSH_SECONDS / 8):
                    return
                if self._waiting() is not waiting:
                    self._awake.set()
                    continue
            if self._flush(due):
                self._awake.set()

    def _is_due(self, waiting: CommittedBuffer) -> bool:
        now = time.monotonic()
        if (waiting.above, waiting.commits) != self._newest:
            self._newest, self._since = (waiting.above, waiting.commits), now
        return (
            now - waiting.since >= self._max_delay_seconds
            or now - self._since >= self._max_delay_seconds / 10
        )
