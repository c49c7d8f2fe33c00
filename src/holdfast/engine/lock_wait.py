"""Waits for a file lock, and names the process that holds it if that takes too long.

A process that was stopped (Ctrl-Z, a debugger, a frozen container) keeps its locks. A process that
waits for one of them would hang silently.
"""

import fcntl
import logging
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from holdfast.errors import StoreBusy
from holdfast.limits import MAX_OPENING_SECONDS, STOPPED_PROCESS_SECONDS

_MAX_PAUSE_SECONDS = 0.02
_log = logging.getLogger(__name__)


def try_lock(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def lock(file: int, path: Path) -> None:
    """Locks a file of the store in `path`, or raises `StoreBusy`."""
    await_free(lambda: try_lock(file), lambda: holder_of(file), path)


def await_free(is_free: Callable[[], bool], holder: Callable[[], int], path: Path) -> None:
    """Returns once `is_free` does. Raises `StoreBusy` if the process that holds it is stopped, or
    does not release it for a long time."""
    begin = time.monotonic()
    pause = 0.0005
    while not is_free():
        time.sleep(pause)
        pause = min(2 * pause, _MAX_PAUSE_SECONDS)
        waited = time.monotonic() - begin
        if waited > MAX_OPENING_SECONDS:
            raise _busy(holder(), path, waited)
        if waited > STOPPED_PROCESS_SECONDS and is_stopped(pid := holder()):
            raise _busy(pid, path, waited)


class BlockingLocks:
    """Locks files of a store however long that takes, and logs a warning when the process that
    holds one is stopped meanwhile.

    For locks that are held for less than a millisecond and taken all the time. A thread that waits
    for one sleeps in the kernel, without a timeout.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._waiting: dict[int, float] = {}  # files, with the time since when
        self._watch: threading.Thread | None = None
        self._closed = threading.Event()

    def lock(self, file: int) -> None:
        if try_lock(file):
            return
        self._waiting[file] = time.monotonic()
        if self._watch is None:
            self._watch = threading.Thread(target=self._run, name="holdfast-locks", daemon=True)
            self._watch.start()
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
        finally:
            self._waiting.pop(file, None)

    def close(self) -> None:
        """Ends the watch. Called before the files are closed."""
        self._closed.set()
        if self._watch is not None:
            self._watch.join()

    def _run(self) -> None:
        warned: dict[int, float] = {}
        while not self._closed.wait(STOPPED_PROCESS_SECONDS):
            for file, since in list(self._waiting.items()):
                waited = time.monotonic() - since
                if waited < STOPPED_PROCESS_SECONDS or warned.get(file) == since:
                    continue
                if is_stopped(pid := holder_of(file)):
                    warned[file] = since
                    _log.warning("%s", _busy(pid, self._path, waited))


def _busy(pid: int, path: Path, waited: float) -> StoreBusy:
    stopped = is_stopped(pid)
    who = f"process {pid} ({_command(pid)})" if pid else "another process"
    state = "is stopped, and has" if stopped else "has had"
    return StoreBusy(
        f"{path} can't be used: {who} {state} it locked for {waited:.0f} seconds",
        hint=f"Continue it (kill -CONT {pid}) or end it; nothing that it acknowledged is lost."
        if stopped
        else "Let it finish, or end it; nothing that it acknowledged is lost.",
    )


def holder_of(file: int) -> int:
    """Returns the process that has a file locked; 0 if the system does not say."""
    found = os.fstat(file)
    name = f"{os.major(found.st_dev):02x}:{os.minor(found.st_dev):02x}:{found.st_ino}"
    with suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/locks").read_text().splitlines():
            words = line.split()
            if "->" not in words and words[1] == "FLOCK" and words[5] == name:
                return max(int(words[4]), 0)
    return 0


def is_stopped(pid: int) -> bool:
    with suppress(OSError, IndexError):
        # The state follows the name, which may hold anything but ends with the last parenthesis.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "Tt"
    return False


def _command(pid: int) -> str:
    with suppress(OSError):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        if text := b" ".join(words).decode(errors="replace").strip():
            return text[:100]
    return "unknown"


def process_of(thread: int) -> int:
    """Returns the process that a thread belongs to; 0 if there is no such thread."""
    with suppress(OSError, ValueError):
        for line in Path(f"/proc/{thread}/status").read_text().splitlines():
            if line.startswith("Tgid:"):
                return int(line.split()[1])
    return 0
