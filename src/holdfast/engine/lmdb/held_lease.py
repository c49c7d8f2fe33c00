"""The thread that releases a lease held between commits once its process stops committing.

A process that commits in quick succession checks after each commit whether others wait
(log_lease.py). After its last commit nobody would: this thread does.
"""

import threading
from collections.abc import Callable

from holdfast.engine.lmdb.log_lease import LogLease
from holdfast.limits import LEASE_CHECK_SECONDS


class HeldLease:
    """Checks the lease while its process commits, and sleeps otherwise.

    Not often: each time, it may interrupt the thread that commits.
    """

    def __init__(
        self, lease: LogLease, lock: threading.Lock, *, is_running: Callable[[], bool]
    ) -> None:
        self._lease = lease
        self._lock = lock  # the overlay's
        self._is_running = is_running
        self._awake = threading.Event()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def watch(self) -> None:
        """Makes sure that the thread runs until the commits end."""
        if not self._awake.is_set():
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="holdfast-lease", daemon=True
                )
                self._thread.start()
            self._awake.set()

    def stop(self) -> None:
        """Stops the thread, and returns once it has ended."""
        self._stopped.set()
        self._awake.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        lease = self._lease
        while not self._stopped.wait(LEASE_CHECK_SECONDS):
            if lease.committed_just_now():
                continue
            with self._lock:
                lease.release_idle(self._is_running)
            if not lease.is_held():
                self._awake.clear()
                # Once more: `watch` may have been called just before.
                if not (lease.is_held() or self._stopped.is_set()):
                    self._awake.wait()
