"""The redo log: commits that LMDB's file has not yet got.

Whoever opens the store next writes what it finds there into LMDB's file. A record belongs to one
state of that file: it names the number of the LMDB commit that it stands above. With the next LMDB
commit, which holds all of them, all records are void at once, and the log begins anew.

page 0      a header: whose log it is, and a number of its own that its records are marked with
page 1      a mark: whether several processes have the store open
behind it   records: length, checksum and mark, then the writes of one group of transactions

In interval mode the file is mapped into memory: a record is in the system's hands as soon as it is
copied there, without a system call, and the death of the process takes nothing away. In commit mode
a record is written and synced, and survives the machine too. There it begins on a page of its own,
so that no later write touches a page that holds what was acknowledged.
"""

import errno
import mmap
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from zlib import crc32

import msgspec

from holdfast.engine import folder
from holdfast.limits import REDO_LOG_BYTES

FILE_NAME: Final = "redo"
Writes = dict[bytes, bytes | None]

_MAGIC: Final = b"HOLDFAST REDO 2\n"
_BOOT_ID: Final = slice(16, 52)
_NUMBER: Final = slice(56, 64)
_SYNCED: Final = 64
_PAGE: Final = 4096
_SHARED: Final = _PAGE  # on a page of its own: others set it while the owner's records count
_BEGIN: Final = 2 * _PAGE
_HEAD: Final = struct.Struct("<IIQ")
_pack_head: Final = _HEAD.pack
_MASK: Final = 2**64 - 1
_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(Writes).decode


class RedoLog:
    """The log of one store. Who writes to it, or begins it anew, holds the folder's lease."""

    __slots__ = ("_file", "_map", "_mark", "_synced", "end", "path", "position")

    def __init__(self, path: Path, *, synced: bool) -> None:
        self.path = path / FILE_NAME
        self._file = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            # Real blocks, so that no write to the map finds the disk full: it could not even say
            # so. A log that is synced gets the rest of them when it is needed.
            os.posix_fallocate(self._file, 0, _BEGIN if synced else REDO_LOG_BYTES)
            if os.fstat(self._file).st_size < REDO_LOG_BYTES:
                os.ftruncate(self._file, REDO_LOG_BYTES)
            self._map = mmap.mmap(self._file, REDO_LOG_BYTES)
        except BaseException:
            os.close(self._file)
            raise
        self._synced = synced
        self._mark = 0
        self.position = _BEGIN  # where the next record goes
        self.end = REDO_LOG_BYTES

    # --- opening and closing ---------------------------------------------------------------------

    def counts(self) -> bool:
        """Whether all is there that was ever acknowledged: it was synced, or it was written since
        the machine was started."""
        return self._map[: len(_MAGIC)] == _MAGIC and (
            self.was_synced() or self._map[_BOOT_ID] == _boot_id()
        )

    def was_synced(self) -> bool:
        return self._map[_SYNCED] != 0

    def begin(self, *, shared: bool) -> None:
        """Makes it an empty log of this boot.

        Its number is random: any pages may be left of older ones, and none of their records may be
        taken for one of this.
        """
        self._map[: len(_MAGIC)] = bytes(len(_MAGIC))
        self._map[_NUMBER] = os.urandom(8)
        self._map[_BOOT_ID] = _boot_id()
        self._map[_SYNCED] = self._synced
        self._map[_SHARED] = shared
        self._map[: len(_MAGIC)] = _MAGIC
        self.position = _BEGIN

    def prepare(self) -> None:
        """Gives a log that is synced its blocks, and writes to all of them: from then on a sync
        has nothing to note but the record."""
        os.posix_fallocate(self._file, 0, REDO_LOG_BYTES)
        _write(self._file, bytes(REDO_LOG_BYTES - _BEGIN), _BEGIN)
        os.fsync(self._file)
        folder.sync_folder(self.path.parent)

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

    def begin_anew(self, above: int) -> None:
        """Begins with records that stand above the LMDB commit `above`. It holds all the others."""
        self._mark = self._mark_of(above)
        self.position = _BEGIN

    def empty(self) -> None:
        """LMDB has all of it."""
        self.position = _BEGIN

    def is_empty(self) -> bool:
        return self.position == _BEGIN

    def record(self, writes: Writes) -> bytes:
        """The bytes that stand for `writes` in the log."""
        body = _encode(writes)
        mark = self._mark
        record = _pack_head(len(body), crc32(body, mark & 0xFFFFFFFF), mark) + body
        return record + bytes(-len(record) % _PAGE) if self._synced else record

    def write(self, record: bytes, position: int) -> None:
        """Writes a record at the place where the log's `position` was; it can be done again."""
        end = position + len(record)
        if self._synced:
            _write(self._file, record, position)
            os.fdatasync(self._file)
        else:
            self._map[position:end] = record
        self.position = end

    def spoil(self, position: int) -> None:
        """Makes sure, as far as possible, that a record that could not be synced never counts."""
        _write(self._file, bytes(_HEAD.size), position)

    def records(self, above: int) -> Iterator[Writes]:
        """What one who was stopped has left above an LMDB commit, in the order of its commits."""
        mark = self._mark_of(above)
        step = _PAGE if self.was_synced() else 1
        position = _BEGIN
        while position + _HEAD.size <= REDO_LOG_BYTES:
            length, checksum, found = _HEAD.unpack_from(self._map, position)
            begin = position + _HEAD.size
            body = self._map[begin : begin + length]
            if found != mark or len(body) != length or crc32(body, mark & 0xFFFFFFFF) != checksum:
                return  # the end, or a record in whose middle its writer was stopped
            yield _decode(body)
            position = begin + length
            position += -position % step

    def _mark_of(self, above: int) -> int:
        return (int.from_bytes(self._map[_NUMBER]) + above) & _MASK


def _write(file: int, content: bytes, position: int) -> None:
    written = os.pwrite(file, content, position)
    if written != len(content):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _boot_id() -> bytes:
    return folder.boot_id().encode()[:36].ljust(36, b"\0")
