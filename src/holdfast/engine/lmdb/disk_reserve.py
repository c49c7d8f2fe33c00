"""Reserved disk blocks for transactions that free space, so that a full disk can be emptied again.

LMDB copies a page before it changes it, so even a delete needs new pages at first. They come from
the file `reserve`, a little at a time, and only for a transaction that leaves less behind than it
found. Later transactions use what it frees, and the reserve grows again when the disk has space.
"""

import errno
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from holdfast.engine.folder import open_file
from holdfast.engine.write_buffer import WriteBuffer
from holdfast.errors import StoreFull
from holdfast.limits import (
    MAX_ADDED_BY_DELETE_BYTES,
    MIN_FREE_BYTES,
    RESERVE_BYTES,
    RESERVE_STEP_BYTES,
)

FILE_NAME: Final = "reserve"
_FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class Reserve:
    """The reserve of one store."""

    def __init__(self, path: Path) -> None:
        self._folder = path
        self._path = path / FILE_NAME

    def fill(self) -> None:
        """Allocates the blocks, if the disk has them."""
        with suppress(OSError):
            self._take(RESERVE_BYTES)

    def release(self) -> bool:
        """Returns a part of the reserve to the disk, and returns whether there was anything
        left."""
        with suppress(OSError):
            size = self._path.stat().st_size
            os.truncate(self._path, max(0, size - RESERVE_STEP_BYTES))
            return size > 0
        return False

    def remove_if_larger(self, data_bytes: int) -> None:
        """Removes the reserve of a closed store if it would be larger than the store."""
        with suppress(OSError):
            if data_bytes < RESERVE_BYTES:
                self._path.unlink()

    def refuse_full(self) -> None:
        """Raises `StoreFull` if there is too little disk space for the next commits."""
        try:
            self._take(RESERVE_BYTES + MIN_FREE_BYTES)
            os.truncate(self._path, RESERVE_BYTES)
        except OSError as error:
            if error.errno in _FULL:
                raise StoreFull(
                    f"there is no space left for {self._folder}: {error.strerror}"
                ) from error

    def _take(self, size: int) -> None:
        file = open_file(self._path)
        try:
            before = os.fstat(file).st_size
            try:
                os.posix_fallocate(file, 0, size)
            except OSError:
                # The system may have allocated a part before it failed.
                os.ftruncate(file, before)
                raise
        finally:
            os.close(file)


def frees_space(tx: WriteBuffer, stored: Any) -> bool:
    """Returns whether a transaction frees space, or deletes something and adds only a little.

    `stored` is the state below its own writes.
    """
    if tx.cleared:
        return True
    written: Mapping[bytes, bytes | None] = tx.written
    grown = deleted = 0
    for key, value in written.items():
        old = stored.get(key)
        grown += len(value) + len(key) if value is not None else 0
        grown -= len(old) + len(key) if old is not None else 0
        deleted += value is None and old is not None
    return grown < 0 or (deleted > 0 and grown <= MAX_ADDED_BY_DELETE_BYTES)
