"""Remembers that LMDB's file failed to sync, for checkpoints in interval mode.

After a failed sync, Linux forgets that the pages were to be written: the next sync succeeds, and
the disk lacks them. So every page of the file is written again before the next checkpoint. Until
that has succeeded, a file in the folder tells all processes, and those that come later. It need not
survive the machine: a store that returns to its last checkpoint has nothing that was not synced.

Until they are written again, the pages are only in the system's memory, as before. If it drops some
of them meanwhile, they are lost, for every reader.
"""

import errno
import os
from contextlib import suppress
from pathlib import Path
from typing import Final

from holdfast.engine.folder import open_file

FILE_NAME: Final = "sync-failed"
_PIECE_BYTES: Final = 1024 * 1024


def note(path: Path) -> None:
    """Notes that a sync of the store in `path` has failed."""
    os.close(open_file(path / FILE_NAME))


def has_failed(path: Path) -> bool:
    return (path / FILE_NAME).exists()


def forget(path: Path) -> None:
    """Notes that all of the file is on the disk."""
    if has_failed(path):
        with suppress(FileNotFoundError):
            (path / FILE_NAME).unlink()


def write_again(data_file: int) -> None:
    """Writes every page of a file again, as it is. Nobody else may write to it meanwhile.

    Raises `OSError` if a piece can't be written whole: the disk might lack the rest of it.
    """
    size = os.fstat(data_file).st_size
    for begin in range(0, size, _PIECE_BYTES):
        piece = os.pread(data_file, _PIECE_BYTES, begin)
        if os.pwrite(data_file, piece, begin) != len(piece):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
