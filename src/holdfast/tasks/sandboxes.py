"""Sandboxes: an empty directory for the files of one run, removed when the run has ended.

A directory is made when a task first asks for it, so that other tasks pay nothing. Its name can't
be guessed and only its owner may enter it. Links in it are removed and never followed.
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
    """The directories of all runs of one process, in a folder of its own below `workdir`.

    A worker that is killed with -9 leaves its folder behind; one that ends otherwise removes it.
    """

    def __init__(self, workdir: str | None = None) -> None:
        if workdir is not None and not os.path.isdir(workdir):
            raise BadInput(f"the workdir {workdir!r:.1000} is no folder", hint="Make it first.")
        self._workdir = workdir
        self._folder: Path | None = None
        self._lock = threading.Lock()

    def make(self) -> Path:
        """Returns a new, empty directory."""
        with self._lock:
            if self._folder is None:
                self._folder = _made_in(self._workdir)
            return _made_in(self._folder)

    def remove(self, directory: Path) -> None:
        """Removes a directory with all that is in it."""
        # `rmtree` goes by open directories, not by names: no link can lead it out of here.
        shutil.rmtree(directory, ignore_errors=True)
        if os.path.lexists(directory):
            _log.warning("the sandbox %s can't be removed", directory)

    def close(self) -> None:
        """Removes all that is left."""
        with self._lock:
            folder, self._folder = self._folder, None
        if folder is not None:
            self.remove(folder)


def _made_in(folder: str | Path | None) -> Path:
    return Path(tempfile.mkdtemp(prefix="holdfast-", dir=folder))
