"""The redo log: commits that the operating system has, and LMDB's file has not yet.

The log is a file that is mapped into memory, so a record is in the system's hands as soon as it is
copied there, without a system call, and the death of the process takes nothing away. Whoever opens
the store next writes what it finds there into LMDB's file; doing so twice does no harm.

page 0      a header: whose log it is, its generation, and whether several processes share the store
behind it   records: length, checksum and generation, then the writes of one group of transactions

When LMDB has got all of it, the log begins anew: the generation in the header is raised, and
records of older ones count no more.
"""

import mmap
import os
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from holdfast.engine import folder
from holdfast.limits import REDO_LOG_BYTES

FILE_NAME: Final = "redo"
Writes = dict[bytes, bytes | None]

_MAGIC: Final = b"HOLDFAST REDO 1\n"
_BOOT_ID: Final = slice(16, 52)
_GENERATION: Final = slice(56, 64)
_SHARED: Final = 64  # a byte of its own: others set it while the owner writes
_BEGIN: Final = 4096
_HEAD: Final = struct.Struct("<IIQ")
_NUMBER: Final = struct.Struct("<Q")
_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(Writes).decode


class RedoLog:
    """The log of one store. Who writes to it, or begins it anew, holds the folder's lease."""

    __slots__ = ("_file", "_generation", "_map", "path", "position")

    def __init__(self, path: Path) -> None:
        self.path = path / FILE_NAME
        self._file = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            # Real blocks, so that no record finds the disk full: a map could not even say so.
            os.posix_fallocate(self._file, 0, REDO_LOG_BYTES)
            self._map = mmap.mmap(self._file, REDO_LOG_BYTES)
        except BaseException:
            os.close(self._file)
            raise
        self.position = _BEGIN  # where the next record goes
        self._generation = 0

    # --- opening and closing ---------------------------------------------------------------------

    def is_of_this_boot(self) -> bool:
        """Whether what it holds was written since the machine was started: all of it is there."""
        return self._map[: len(_MAGIC)] == _MAGIC and self._map[_BOOT_ID] == _boot_id()

    def begin(self, *, shared: bool) -> None:
        """Makes it an empty log of this boot.

        Its generation is random: after a power failure any pages may be left of older ones, and
        none of their records may be taken for one of this.
        """
        self.begin_anew(int.from_bytes(os.urandom(8)) >> 1)
        self._map[_SHARED] = shared
        self._map[_BOOT_ID] = _boot_id()
        self._map[: len(_MAGIC)] = _MAGIC

    def take_up(self) -> None:
        """Goes on with an empty log, which another process may have begun anew meanwhile."""
        [self._generation] = _NUMBER.unpack(self._map[_GENERATION])
        self.position = _BEGIN

    def close(self) -> None:
        self._map.close()
        os.close(self._file)

    def remove(self) -> None:
        """Only for a log that holds nothing, and a store that nobody else has open."""
        self.path.unlink(missing_ok=True)

    # --- sharing ---------------------------------------------------------------------------------

    @property
    def shared(self) -> bool:
        """Whether several processes have the store open: then nobody may write to the log."""
        return self._map[_SHARED] != 0

    @shared.setter
    def shared(self, shared: bool) -> None:
        self._map[_SHARED] = shared

    # --- records ---------------------------------------------------------------------------------

    def record(self, writes: Writes) -> bytes:
        """The bytes that stand for `writes` in the log."""
        body = _encode(writes)
        generation = self._generation
        checksum = zlib.crc32(body, generation & 0xFFFFFFFF)
        return _HEAD.pack(len(body), checksum, generation) + body

    def has_room_for(self, record: bytes) -> bool:
        return self.position + len(record) <= REDO_LOG_BYTES

    def write(self, record: bytes, position: int) -> None:
        """Writes a record at the place where the log's `position` was; it can be done again."""
        end = position + len(record)
        self._map[position:end] = record
        self.position = end

    @property
    def generation(self) -> int:
        return self._generation

    def is_empty(self) -> bool:
        return self.position == _BEGIN

    def begin_anew(self, generation: int) -> None:
        """Forgets all records. LMDB has them. It can be done again."""
        self._map[_GENERATION] = _NUMBER.pack(generation)
        self._generation = generation
        self.position = _BEGIN

    def records(self) -> Iterator[Writes]:
        """What a process that is gone has left, in the order of its commits."""
        [generation] = _NUMBER.unpack(self._map[_GENERATION])
        position = _BEGIN
        while position + _HEAD.size <= REDO_LOG_BYTES:
            length, checksum, found = _HEAD.unpack_from(self._map, position)
            begin = position + _HEAD.size
            body = self._map[begin : begin + length]
            if (
                found != generation
                or len(body) != length
                or zlib.crc32(body, generation & 0xFFFFFFFF) != checksum
            ):
                return  # the end, or a record in whose middle its writer was killed
            yield _decode(body)
            position = begin + length


def _boot_id() -> bytes:
    return folder.boot_id().encode()[:36].ljust(36, b"\0")
