"""What the processes on one store tell each other, in a small file that all of them map.

Nothing in it has to survive the machine: the first process to open a store resets it. Each field is
one word, which is written and read at once.

shared     several processes have the store open
kept       a process keeps the lease, and its commits wait in its memory
holder     the process that holds the lease; if the lease is free, it was killed with it
listening  someone has subscribed to notices
prepared   the number of the redo log whose blocks were written
above, end the records of the redo log that count: those that follow the LMDB commit `above`, up to
           this place. Each is on disk before it is published, where commits are synced
"""

import mmap
import os
from pathlib import Path
from typing import Final

from holdfast.engine import folder

FILE_NAME: Final = "sharing"
_BYTES: Final = 4096
_SHARED, _KEPT, _HOLDER, _LISTENING, _PREPARED, _ABOVE, _END = range(7)


def _word(place: int) -> property:
    def read(sharing: "Sharing") -> int:
        return sharing._words[place]

    def write(sharing: "Sharing", value: int) -> None:
        sharing._words[place] = value

    return property(read, write)


def _flag(place: int) -> property:
    def read(sharing: "Sharing") -> bool:
        return sharing._words[place] != 0

    def write(sharing: "Sharing", value: bool) -> None:
        sharing._words[place] = value

    return property(read, write)


class Sharing:
    """The file of one store, mapped by this process."""

    __slots__ = ("_map", "_words", "path")

    def __init__(self, path: Path) -> None:
        self.path = path / FILE_NAME
        file = folder.open_file(self.path)
        try:
            # Real blocks, as for the redo log: a write to the map can't report a full disk.
            os.posix_fallocate(file, 0, _BYTES)
            self._map = mmap.mmap(file, _BYTES)
        finally:
            os.close(file)
        self._words = memoryview(self._map).cast("Q")  # one word is one store, and never torn

    shared = _flag(_SHARED)
    kept = _flag(_KEPT)
    holder = _word(_HOLDER)
    listening = _flag(_LISTENING)
    prepared = _word(_PREPARED)

    def published(self) -> tuple[int, int]:
        """Returns an LMDB commit, and the place in the log where the records after it end.

        It counts only for a reader that finds this commit to be LMDB's last: with the next one LMDB
        has all of them. That is looked at afterwards, so a pair that was read while it changed does
        no harm: it changes only after LMDB's commit.
        """
        words = self._words
        return words[_ABOVE], words[_END]

    def publish(self, above: int, end: int) -> None:
        """Lets all processes read the log up to `end`. Only for the lease holder."""
        words = self._words
        if words[_ABOVE] != above:
            words[_END] = 0
            words[_ABOVE] = above
        words[_END] = end

    def withdraw(self) -> None:
        """Publishes nothing more: the lease holder keeps its commits to itself."""
        self._words[_END] = self._words[_ABOVE] = 0

    def reset(self) -> None:
        """Forgets everything. Only for a process that has the store for itself."""
        self._map[:] = bytes(_BYTES)

    def close(self) -> None:
        self._words.release()
        self._map.close()

    def remove(self) -> None:
        """Removes the file. Only for the last process to close the store."""
        self.path.unlink(missing_ok=True)
