"""The state that all processes on one store share: the words of a small memory-mapped file.

None of it has to survive the machine: the first process to open a store resets it. Each field is
one word, which is read and written atomically.

shared     several processes have the store open
kept       a process keeps the lease, and its commits wait in its memory
holder     the process that holds the lease; if the lease is free, that process was killed
turn       how many times the lease was taken
listening  someone has subscribed to notices
prepared   the number of the redo log whose blocks were written
above      the LMDB commit that the records of the redo log follow
appended   where those records end
end        up to where they are on disk, if commits are synced: views read no further
failed     the disk has failed to sync the log: nobody relies on it any more
"""

import mmap
import os
from pathlib import Path
from typing import Final

from holdfast.engine import folder

FILE_NAME: Final = "sharing"
_BYTES: Final = 4096
_SHARED, _KEPT, _HOLDER, _LISTENING, _PREPARED, _ABOVE, _END, _APPENDED, _FAILED, _TURN = range(10)


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
        self._words = memoryview(self._map).cast("Q")  # writes of one word are never torn

    shared = _flag(_SHARED)
    kept = _flag(_KEPT)
    holder = _word(_HOLDER)
    listening = _flag(_LISTENING)
    prepared = _word(_PREPARED)
    above = _word(_ABOVE)
    failed = _flag(_FAILED)

    def take_turn(self, process: int) -> tuple[int, int]:
        """Notes that `process` holds the lease. Returns the process that was killed while it held
        the lease before, or 0, and the number of this turn."""
        words = self._words
        killed = words[_HOLDER]
        words[_HOLDER] = process
        words[_TURN] = turn = words[_TURN] + 1
        return killed, turn

    def end_turn(self) -> None:
        """Notes that the lease is released."""
        self._words[_HOLDER] = 0

    def published(self) -> tuple[int, int]:
        """Returns an LMDB commit, and where the log records that follow it end.

        The pair applies only if this commit is LMDB's last: the next LMDB commit holds all of the
        records. The caller checks that afterwards. So reading the pair while it changes does no
        harm, because it changes only after an LMDB commit.
        """
        words = self._words
        return words[_ABOVE], words[_END]

    def publish(self, above: int, end: int) -> None:
        """Lets all processes read the log up to `end`. Only for the lease holder, and only where
        commits are not synced."""
        words = self._words
        if words[_ABOVE] != above:
            self.begin(above)
        words[_APPENDED] = words[_END] = end

    def begin(self, above: int) -> None:
        """Starts over, with records that follow another LMDB commit. Only for the lease holder;
        where commits are synced, it must also hold the sync lock."""
        words = self._words
        words[_END] = words[_APPENDED] = 0
        words[_ABOVE] = above

    def withdraw(self) -> None:
        """Stops publishing: the lease holder keeps its commits to itself."""
        self.begin(0)

    # --- where commits are synced ----------------------------------------------------------------

    def appended(self) -> tuple[int, int]:
        """Returns an LMDB commit, and where the records that follow it end, on disk or not."""
        words = self._words
        return words[_ABOVE], words[_APPENDED]

    def append(self, above: int, end: int) -> None:
        """Lets the writers of all processes build on the log up to `end`. Only for the lease
        holder."""
        assert self._words[_ABOVE] == above
        self._words[_APPENDED] = end

    def withdraw_unsynced(self) -> None:
        """Withdraws the records that may not be on disk. Only for the lease holder."""
        self._words[_APPENDED] = self._words[_END]

    def is_synced(self, above: int, end: int) -> bool:
        """Returns whether the records up to `end` are on disk, in the log or in LMDB's file: an
        LMDB commit gets followers only once it is on disk."""
        words = self._words
        return words[_ABOVE] != above or words[_END] >= end

    def note_synced(self, end: int) -> None:
        """Lets all processes read the log up to `end`. Only for the holder of the sync lock."""
        self._words[_END] = end

    def reset(self) -> None:
        """Resets every field. Only for a process that has the store to itself."""
        self._map[:] = bytes(_BYTES)

    def close(self) -> None:
        self._words.release()
        self._map.close()

    def remove(self) -> None:
        """Removes the file. Only for the last process to close the store."""
        self.path.unlink(missing_ok=True)
