"""What the processes on one store tell each other, in a small file that all of them map.

Nothing in it has to survive the machine: the first process to open a store resets it. Each field is
one word, which is written and read at once.

shared     several processes have the store open
kept       a process keeps the lease, and its commits wait in its memory
holder     the process that holds the lease; if the lease is free, it was killed with it
listening  someone has subscribed to notices
prepared   the number of the redo log whose blocks were written
above      the LMDB commit that the records of the redo log follow
appended   where they end
end        up to where they are on disk, where commits are synced: views read no further
failed     the disk has failed to sync the log: nobody relies on it any more
"""

import mmap
import os
from pathlib import Path
from typing import Final

from holdfast.engine import folder

FILE_NAME: Final = "sharing"
_BYTES: Final = 4096
_SHARED, _KEPT, _HOLDER, _LISTENING, _PREPARED, _ABOVE, _END, _APPENDED, _FAILED = range(9)


def _word(place: int) -> property:
    def read(shared_state: "SharedState") -> int:
        return shared_state._words[place]

    def write(shared_state: "SharedState", value: int) -> None:
        shared_state._words[place] = value

    return property(read, write)


def _flag(place: int) -> property:
    def read(shared_state: "SharedState") -> bool:
        return shared_state._words[place] != 0

    def write(shared_state: "SharedState", value: bool) -> None:
        shared_state._words[place] = value

    return property(read, write)


class SharedState:
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
    above = _word(_ABOVE)
    failed = _flag(_FAILED)

    def published(self) -> tuple[int, int]:
        """Returns an LMDB commit, and the place in the log where the records after it end.

        It counts only for a reader that finds this commit to be LMDB's last: with the next one LMDB
        has all of them. That is looked at afterwards, so a pair that was read while it changed does
        no harm: it changes only after LMDB's commit.
        """
        words = self._words
        return words[_ABOVE], words[_END]

    def publish(self, above: int, end: int) -> None:
        """Lets all processes read the log up to `end`. Only for the lease holder, where nothing is
        synced."""
        words = self._words
        if words[_ABOVE] != above:
            self.begin(above)
        words[_APPENDED] = words[_END] = end

    def begin(self, above: int) -> None:
        """Begins with records that follow another LMDB commit. Only for the lease holder; where
        commits are synced, while nobody else syncs."""
        words = self._words
        words[_END] = words[_APPENDED] = 0
        words[_ABOVE] = above

    def withdraw(self) -> None:
        """Publishes nothing more: the lease holder keeps its commits to itself."""
        self.begin(0)

    # --- where commits are synced ----------------------------------------------------------------

    def appended(self) -> tuple[int, int]:
        """Returns an LMDB commit, and the place where the records after it end, on disk or not."""
        words = self._words
        return words[_ABOVE], words[_APPENDED]

    def append(self, above: int, end: int) -> None:
        """Lets the writers of all processes build on the log up to `end`. Only for the lease
        holder."""
        assert self._words[_ABOVE] == above
        self._words[_APPENDED] = end

    def take_back(self) -> None:
        """Takes back what the disk may not have. Only for the lease holder."""
        self._words[_APPENDED] = self._words[_END]

    def is_synced(self, above: int, end: int) -> bool:
        """Returns whether the disk has the records up to `end`, in the log or in LMDB's file: no
        record follows another LMDB commit before that one is on disk."""
        words = self._words
        return words[_ABOVE] != above or words[_END] >= end

    def note_synced(self, end: int) -> None:
        """Lets all processes read the log up to `end`. Only for who has the turn to sync."""
        self._words[_END] = end

    def reset(self) -> None:
        """Forgets everything. Only for a process that has the store for itself."""
        self._map[:] = bytes(_BYTES)

    def close(self) -> None:
        self._words.release()
        self._map.close()

    def remove(self) -> None:
        """Removes the file. Only for the last process to close the store."""
        self.path.unlink(missing_ok=True)
