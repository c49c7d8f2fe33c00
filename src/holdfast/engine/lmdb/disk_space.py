"""Reserves disk space for a commit before it is acknowledged, while LMDB's file lacks it.

Only a transaction that is not yet acknowledged may fail because the disk is full. So space is
reserved after the end of LMDB's file, for the worst that the unflushed writes could need.
"""

import ctypes
import os
import resource
from typing import Any, Final

from holdfast.limits import RESERVED_BYTES

_FALLOC_FL_KEEP_SIZE: Final = 1  # allocate blocks without making the file longer
_PAGES_OF_A_FLUSH: Final = 64  # roots, the list of free pages
_PAGES_OF_A_KEY: Final = 3  # its leaf, the adjacent one, and what its leaf is split into


class DiskSpace:
    """The reserved blocks after the end of LMDB's file."""

    def __init__(self, env: Any, data: Any, data_file: int, *, synced: bool) -> None:
        self._env = env
        self._data = data
        self._file = data_file
        self._page_bytes = int(env.stat()["psize"])
        self._key_bytes = _PAGES_OF_A_KEY * self._page_bytes
        self._leaf_pages = 0  # at most
        self._branch_pages = 0  # at most
        self._end = 0  # of LMDB's file, at most
        self._keys = 0  # in unflushed commits
        self._value_bytes = 0
        self.needed = 0  # bytes, by the unflushed commits, at most
        self._flush_above = (4 if synced else 1) * RESERVED_BYTES
        self.should_flush = False  # the unflushed commits need so much that they should be flushed
        self._known_free = -1  # how many bytes are known to be reserved
        self._reserved = 0
        self._fallocate = _find_fallocate()

    def reserve(self, keys: int, value_bytes: int) -> bool:
        """Reserves space for more writes, and returns whether there is enough."""
        # An upper bound for each key. All keys together need less, which is computed only if it
        # matters.
        needed = self.needed + self._key_bytes * keys + 4 * value_bytes
        if needed <= self._known_free:
            self.needed = needed  # at most `RESERVED_BYTES`, which is not much
        elif not self._reserve_for(self._keys + keys, self._value_bytes + value_bytes):
            return False
        self._keys += keys
        self._value_bytes += value_bytes
        return True

    def _reserve_for(self, keys: int, value_bytes: int) -> bool:
        needed = self._bytes_needed(keys, value_bytes)
        if self._end + needed > self._reserved:
            self._read_tree_size()
            needed = self._bytes_needed(keys, value_bytes)
            if self._end + needed > self._reserved and not self._reserve(self._end + needed):
                return False
        self.needed = needed
        self.should_flush = needed > self._flush_above
        self._known_free = min(self._reserved - self._end, RESERVED_BYTES)
        return True

    def note(self, keys: int, value_bytes: int) -> None:
        """Notes a commit of another process, which has reserved space for it."""
        self._keys += keys
        self._value_bytes += value_bytes
        self._known_free = -1

    def restart(self) -> None:
        """Forgets the reservation: another process has flushed the unflushed commits."""
        self._keys = self._value_bytes = self.needed = 0
        self.should_flush = False
        self.forget()

    def note_flushed(self) -> None:
        """Notes that all unflushed commits are in LMDB's file, which grew by no more than they
        needed."""
        self._end += self.needed
        self._leaf_pages += self.needed // self._page_bytes
        self._keys = self._value_bytes = self.needed = 0
        self.should_flush = False
        self._known_free = -1

    def forget(self) -> None:
        """Forgets the reservation: others wrote to the file, or a commit needed none."""
        self._reserved = 0
        self._known_free = -1

    def _bytes_needed(self, keys: int, value_bytes: int) -> int:
        """Returns the most bytes that LMDB may need.

        A flush copies a page once, however many of its keys are written. A key may have its leaf
        and the adjacent one copied, and its leaf split; a leaf that was split is half empty, and
        only what is written to it makes it split again, or what is put back behind a run of keys
        (packed_puts.py). Branches may all be copied and split.
        """
        pages = min(_PAGES_OF_A_KEY * keys, 3 * self._leaf_pages)
        pages += 2 * self._branch_pages + _PAGES_OF_A_FLUSH
        return pages * self._page_bytes + 4 * value_bytes

    def _read_tree_size(self) -> None:
        """Reads where the file ends now, and how large its tree is."""
        self._end = (self._env.info()["last_pgno"] + 1) * self._page_bytes
        with self._env.begin() as txn:
            stat = txn.stat(self._data)
        self._leaf_pages, self._branch_pages = stat["leaf_pages"], stat["branch_pages"]

    def _reserve(self, end: int) -> bool:
        limit, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
        if limit != resource.RLIM_INFINITY and end > limit:
            return False  # the system can't allocate blocks beyond the end of the file
        if self._fallocate is None:
            return False
        end += RESERVED_BYTES
        if self._fallocate(self._file, _FALLOC_FL_KEEP_SIZE, self._end, end - self._end) != 0:
            return False
        self._reserved = end if limit == resource.RLIM_INFINITY else min(end, limit)
        return True


def free_reserved_blocks(data_file: int) -> None:
    """Frees the blocks after the end of the file. Nobody may have the file open."""
    os.ftruncate(data_file, os.fstat(data_file).st_size)


def _find_fallocate() -> Any:
    """Finds Linux's `fallocate`; the portable one would make the file longer."""
    library = ctypes.CDLL(None)
    function = getattr(library, "fallocate64", None) or getattr(library, "fallocate", None)
    if function is None:
        return None
    function.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]
    return function
