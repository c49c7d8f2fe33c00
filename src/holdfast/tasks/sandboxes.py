"""Sandboxes: a directory for each slot, empty when a run begins, emptied when it has ended.

A directory is made when a task first uses it, so other tasks pay nothing. Only its owner may
enter it. Links in it are removed, never followed. It does not become the current directory, which
all threads of a process share.
"""

import logging
import os
import shutil
import tempfile
import threading
from pathlib import Path
from typing import Final

from holdfast.errors import BadInput

__all__ = ["Sandboxes"]

_log: Final = logging.getLogger("holdfast.tasks")


class Sandboxes:
    """The directories of all slots of one process, in its own folder below `workdir`.

    A worker that is killed with -9 leaves its folder behind; one that ends otherwise removes it.
    """

    def __init__(self, workdir: str | None = None) -> None:
        if workdir is not None and not os.path.isdir(workdir):
            raise BadInput(f"the workdir {workdir!r:.1000} is not a folder", hint="Make it first.")
        self._workdir = workdir
        self._folder: Path | None = None
        self._used: set[Path] = set()
        self._lock = threading.Lock()

    def make(self, slot: int = 0) -> Path:
        """Returns the slot's directory, empty; a new one if an earlier run still uses the old."""
        with self._lock:
            if self._folder is None:
                self._folder = Path(tempfile.mkdtemp(prefix="holdfast-", dir=self._workdir))
            directory = self._folder / f"sandbox-{slot}"
            if directory in self._used or not self._try_to_create(directory):
                directory = Path(tempfile.mkdtemp(prefix=f"sandbox-{slot}-", dir=self._folder))
            self._used.add(directory)
            return directory

    def remove(self, directory: Path) -> None:
        """Removes a directory with all that is in it."""
        # `rmtree` works on open directories, not on names, so no link can lead it out of here.
        shutil.rmtree(directory, ignore_errors=True)
        if os.path.lexists(directory):
            _log.warning("the sandbox %s can't be removed", directory)
        self._used.discard(directory)

    def close(self) -> None:
        """Removes all that is left."""
        with self._lock:
            folder, self._folder = self._folder, None
        if folder is not None:
            self.remove(folder)

    def _try_to_create(self, directory: Path) -> bool:
        """Creates the directory, and returns whether that was possible."""
        try:
            directory.mkdir(mode=0o700)
        except OSError:  # something that could not be removed is in its place
            return False
        return True
