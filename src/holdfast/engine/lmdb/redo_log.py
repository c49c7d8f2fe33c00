"""The redo log: commits that are not in LMDB's file yet.

The next process to open the store writes what it finds there into LMDB's file. A record belongs to
one state of that file: it names the number of the LMDB commit that it follows. With the next LMDB
commit, which holds all of them, all records are void at once, and the log is reset.

page 0      a header: whose log it is, and a number of its own that its records are marked with
page 1      the end of the records, as of a moment ago
after it   records: length, checksum and mark, then the writes of one group of transactions, and
            its notices if other processes may hear them

In interval mode the file is mapped into memory: a record that was copied there, without a system
call, survives a crash of the process. In commit mode a record is written and synced, and survives a
crash of the machine too. There each record begins on a new page, so that no later write touches a
page that holds an acknowledged record.

An incomplete last record is one whose writer was stopped in the middle; it was never acknowledged.
An invalid record that others follow, or that is before the noted end, is damage. So is a missing
log that the file `redo-state` names. Then the store is not opened, as commits would be lost
silently.
"""

import errno
import mmap
import os
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple
from zlib import crc32

import msgspec

from holdfast.engine import checkpoints, folder
from holdfast.engine.contract import Notice
from holdfast.errors import StoreDamaged
from holdfast.limits import REDO_LOG_BYTES

FILE_NAME: Final = "redo"
STATE: Final = "redo-state"
_NEW_STATE: Final = "redo-state-new"  # until it is whole
Writes = dict[bytes, bytes | None]

_MAGIC: Final = b"HOLDFAST REDO 2\n"
_BOOT_ID: Final = slice(16, 52)
_NUMBER: Final = slice(56, 64)
_SYNCED: Final = 64
_PAGE: Final = 4096
_END_AT: Final = _PAGE + 64  # on a page of its own: no record shares it
_END: Final = slice(_END_AT, _END_AT + 16)  # the mark of the records, and where they end
BEGIN: Final = 2 * _PAGE  # of the first record
_HEAD: Final = struct.Struct("<IIQ")
_HEAD_BYTES: Final = _HEAD.size
_pack_head: Final = _HEAD.pack
_unpack_head: Final = _HEAD.unpack_from
_pack_end_into: Final = struct.Struct("<QQ").pack_into
_unpack_end: Final = struct.Struct("<QQ").unpack
_MASK: Final = 2**64 - 1
_encode: Final = msgspec.msgpack.Encoder().encode


class SharedRecord(msgspec.Struct, array_like=True):
    """A record that other processes read too."""

    writes: Writes
    notices: list[Notice]
    synced: int | None = None  # where the synced part ended at that time; None: right before it


_decode: Final = msgspec.msgpack.Decoder(Writes | SharedRecord).decode


class State(msgspec.Struct, frozen=True, kw_only=True):
    """Says which log must exist because it may hold commits."""

    number: bytes
    synced: bool
    boot_id: bytes

    def is_valid(self) -> bool:
        """Returns whether the log must exist: it was synced, or the machine has not restarted
        since."""
        return self.synced or self.boot_id == _boot_id()


class FoundRecords(NamedTuple):
    """The records of a log that follow an LMDB commit."""

    records: list[Writes]  # in the order of their commits, up to the first that is damaged
    problem: str = ""  # what is wrong with the log; empty if nothing
    lost: int = 0  # the least number of records that can't be used


class NewRecords(NamedTuple):
    """The records that other processes have appended, as one commit without states in between."""

    writes: Writes
    notices: list[Notice]
    end: int  # the position in the log after them


class RedoLog:
    """The log of one store. Only the lease holder may append to it or reset it."""

    __slots__ = (
        "_declared",
        "_file",
        "_has_blocks",
        "_map",
        "_mark",
        "_synced",
        "end",
        "path",
        "position",
        "problem",
        "sync_seconds",
    )

    def __init__(self, path: Path, *, synced: bool) -> None:
        self.path = path / FILE_NAME
        state = read_state(path)
        self.problem = "" if state is None else self._size_problem()
        # The log's number in `redo-state`.
        self._declared = b"" if state is None else state.number
        self._has_blocks = False  # whether every block was allocated and written
        existed = self.path.exists()
        self._file = folder.open_file(self.path)
        try:
            # Allocate real blocks, since a write to the map can't report that the disk is full.
            # A synced log gets the rest of its blocks when it is first needed.
            os.posix_fallocate(self._file, 0, BEGIN if synced else REDO_LOG_BYTES)
            if os.fstat(self._file).st_size < REDO_LOG_BYTES:
                os.ftruncate(self._file, REDO_LOG_BYTES)
            self._map = mmap.mmap(self._file, REDO_LOG_BYTES)
            if state is not None and not self.problem and not self._is(state):
                self.problem = "its first page is damaged"
        except BaseException:
            os.close(self._file)
            if not existed:  # other processes would take it for a log in use
                self.path.unlink(missing_ok=True)
            raise
        self._synced = synced
        self._mark = 0
        self.position = BEGIN  # where the next record goes
        self.end = REDO_LOG_BYTES
        self.sync_seconds = 0.0  # how long a sync takes, on average

    # --- opening and closing ---------------------------------------------------------------------

    def _size_problem(self) -> str:
        try:
            size = self.path.stat().st_size
        except FileNotFoundError:
            return "it is missing"
        return f"it has {size} bytes of {REDO_LOG_BYTES}" if size < REDO_LOG_BYTES else ""

    def _is(self, state: State) -> bool:
        return (
            self._map[: len(_MAGIC)] == _MAGIC
            and self._map[_NUMBER] == state.number
            and self.was_synced() == state.synced
            and self._map[_BOOT_ID] == state.boot_id
        )

    def is_valid(self) -> bool:
        """Returns whether the log holds everything that was acknowledged: it was synced, or it was
        written since the machine started."""
        return self._map[: len(_MAGIC)] == _MAGIC and (
            self.was_synced() or self._map[_BOOT_ID] == _boot_id()
        )

    def was_synced(self) -> bool:
        return self._map[_SYNCED] != 0

    @property
    def number(self) -> int:
        """Returns the random number that tells this log from older ones."""
        return int.from_bytes(self._map[_NUMBER])

    def begin(self) -> None:
        """Makes it an empty log of this boot.

        Its number is random: pages of older logs may be left in the file, and none of their records
        may pass for one of this log.
        """
        forget_state(self.path.parent)
        self.problem = ""
        self._map[: len(_MAGIC)] = bytes(len(_MAGIC))
        self._map[_NUMBER] = os.urandom(8)
        self._map[_BOOT_ID] = _boot_id()
        self._map[_SYNCED] = self._synced
        self._map[: len(_MAGIC)] = _MAGIC
        self._declared = b""
        self.position = BEGIN

    def prepare(self) -> None:
        """Allocates and writes all blocks of a synced log: from then on a sync updates nothing but
        the record. `declare` syncs them."""
        if not self._has_blocks:
            os.posix_fallocate(self._file, 0, REDO_LOG_BYTES)
            _write(self._file, bytes(REDO_LOG_BYTES - BEGIN), BEGIN)
            self._has_blocks = True

    def declare(self) -> None:
        """Records in `redo-state` that this log exists, before its first record."""
        number = self._map[_NUMBER]
        if number != self._declared:
            if self._synced:
                os.fsync(self._file)  # first: `redo-state` must not name a log that is not on disk
            state = State(number=number, synced=self._synced, boot_id=_boot_id())
            _save_state(self.path.parent, state)
            self._declared = number

    def close(self) -> None:
        self._map.close()
        os.close(self._file)

    def remove(self) -> None:
        """Removes the log. Only for an empty one, of a store that nobody else has open."""
        forget_state(self.path.parent)
        self.path.unlink(missing_ok=True)

    # --- records ---------------------------------------------------------------------------------

    def restart(self, above: int) -> None:
        """Resets the log for records that follow the LMDB commit `above`, which holds all older
        records."""
        self._mark = self._mark_of(above)
        self.position = BEGIN

    def empty(self) -> None:
        """Marks the log as empty: LMDB has all records."""
        self.position = BEGIN

    def is_empty(self) -> bool:
        return self.position == BEGIN

    def record(self, writes: Writes | SharedRecord) -> bytes:
        """Encodes `writes`, with notices if other processes read them, as a record of the log."""
        body = _encode(writes)
        mark = self._mark
        head = _pack_head(len(body), crc32(body, mark & 0xFFFFFFFF), mark)
        if self._synced:
            return b"".join((head, body, bytes(-(len(head) + len(body)) % _PAGE)))
        return b"".join((head, body))

    def write(self, record: bytes, position: int) -> None:
        """Writes a record at `position`, the log's position before it, and syncs it in commit mode.
        It can be repeated."""
        end = position + len(record)
        if self._synced:
            _write(self._file, record, position)
            self.sync()
        else:
            self._map[position:end] = record
            _pack_end_into(self._map, _END_AT, self._mark, end)
        self.position = end

    def append(self, record: bytes, position: int) -> None:
        """Like `write`, but without waiting for the disk: `sync` follows, in this process or in
        another one that has appended since."""
        if not self._synced:
            return self.write(record, position)
        _write(self._file, record, position)
        self.position = position + len(record)

    def sync(self) -> None:
        """Returns once all records of all processes are on disk."""
        begin = time.perf_counter()
        os.fdatasync(self._file)
        self._note_sync(time.perf_counter() - begin)

    def _note_sync(self, seconds: float) -> None:
        # Short ones count more: a measurement may include a wait for Python's lock.
        known = self.sync_seconds
        self.sync_seconds += (seconds - known) / (2 if seconds < known else 16)

    def note_end(self) -> None:
        """Records where the log ends. In commit mode this is done only now and then, as it costs
        every commit one more page."""
        if not self.is_empty():
            _pack_end_into(self._map, _END_AT, self._mark, self.position)

    def note_end_of(self, above: int, end: int) -> None:
        """Records where the records that follow the LMDB commit `above` end."""
        _pack_end_into(self._map, _END_AT, self._mark_of(above), end)

    def invalidate(self, position: int) -> None:
        """Makes sure, as far as possible, that a record that could not be synced is never used."""
        _write(self._file, bytes(_HEAD.size), position)

    def read_new(self, above: int, begin: int, end: int) -> NewRecords | None:
        """Returns the records between two positions that follow the LMDB commit `above`; None if
        they are incomplete."""
        content = os.pread(self._file, end - begin, begin)
        mark = self._mark_of(above)
        begin_checksum = mark & 0xFFFFFFFF
        pad = _PAGE - 1 if self._synced else 0
        writes: Writes = {}
        notices: list[Notice] = []
        position, size = 0, len(content)
        while position < size:  # inlines `_body`: each process reads the records of all others
            begin = position + _HEAD_BYTES
            if begin > size:
                return None
            length, checksum, found = _unpack_head(content, position)
            end_of_body = begin + length
            body = content[begin:end_of_body]
            if found != mark or end_of_body > size or crc32(body, begin_checksum) != checksum:
                return None
            record = _decode(body)
            if type(record) is SharedRecord:
                writes.update(record.writes)
                if record.notices:
                    notices += record.notices
            else:
                writes.update(record)
            position = (end_of_body + pad) & ~pad
        return NewRecords(writes, notices, end)

    def read(self, above: int) -> FoundRecords:
        """Returns the records that a stopped process has left after an LMDB commit."""
        if self.problem:
            return FoundRecords([], self.problem)
        if not self.is_valid():
            return FoundRecords([])
        # Not through the map: reading a page there that has no block allocates one, and on a full
        # tmpfs that would end the process.
        content = os.pread(self._file, REDO_LOG_BYTES, 0)
        mark = self._mark_of(above)
        step = _PAGE if self.was_synced() else 1
        records: list[Writes] = []
        position = BEGIN
        while (body := _body(content, position, mark)) is not None:
            records.append(_as_shared(body).writes)
            position += _HEAD.size + len(body)
            position += -position % step
        after = _count_after(content, position, mark)
        noted, end = _unpack_end(content[_END])
        if after:
            return FoundRecords(records, f"record {len(records) + 1} is damaged", after + 1)
        if noted == mark and end > position:
            return FoundRecords(records, f"it ends after record {len(records)}, and had more", 1)
        # The end, or records that were incomplete when the machine or their writer stopped.
        return FoundRecords(records)

    def records(self, above: int) -> Iterator[Writes]:
        """Returns the intact records after an LMDB commit, up to the first damaged one."""
        return iter(self.read(above).records)

    def _mark_of(self, above: int) -> int:
        return (self.number + above) & _MASK


def _as_shared(body: bytes) -> SharedRecord:
    record = _decode(body)
    return record if isinstance(record, SharedRecord) else SharedRecord(record, [])


def _body(content: bytes, position: int, mark: int) -> bytes | None:
    """Returns the body of the record at `position`, if it has this mark and is intact."""
    begin = position + _HEAD.size
    if begin > len(content):
        return None
    length, checksum, found = _HEAD.unpack_from(content, position)
    if found != mark or begin + length > len(content):
        return None
    body = content[begin : begin + length]
    return body if crc32(body, mark & 0xFFFFFFFF) == checksum else None


def _count_after(content: bytes, position: int, mark: int) -> int:
    """Counts the intact records of this mark after a damaged position that held a record when they
    were written. Records that were not synced yet may have reached the disk in any order."""
    count = 0
    word = mark.to_bytes(8, "little")
    at = content.find(word, position)
    while at >= 0:
        body = _body(content, at - 8, mark)  # the mark is the last part of the head
        if body is not None:
            synced = _as_shared(body).synced
            count += synced is None or synced > position
        at = content.find(word, at + (8 if body is None else 8 + len(body)))
    return count


# --- what says that there is a log ---------------------------------------------------------------


def read_state(path: Path) -> State | None:
    """Returns which log must exist; None if none must, or if that is unknown."""
    state = _load_state(path)
    return state if state is not None and state.is_valid() else None


def _load_state(path: Path) -> State | None:
    try:
        content = folder.read_small(path / STATE)
        if crc32(content[4:]).to_bytes(4) != content[:4]:
            return None
        return msgspec.msgpack.decode(content[4:], type=State)
    except (FileNotFoundError, msgspec.MsgspecError):
        return None


def refuse_lost_checkpoint(path: Path) -> None:
    """Raises if the machine stopped in interval mode and the checkpoint to return to is missing:
    the file may then hold anything."""
    state = _load_state(path)
    if state is not None and not state.is_valid() and checkpoints.load(path) is None:
        raise StoreDamaged(
            f"{path / checkpoints.FILE_NAME} is missing, the state to return to after a power "
            "failure"
        )


def _save_state(path: Path, state: State) -> None:
    body = msgspec.msgpack.encode(state)
    with folder.open_private(path / _NEW_STATE, "wb") as file:
        file.write(crc32(body).to_bytes(4) + body)
        file.flush()
        if state.synced:
            os.fsync(file.fileno())
    (path / _NEW_STATE).replace(path / STATE)
    if state.synced:
        folder.sync_folder(path)


def forget_state(path: Path) -> None:
    """Removes `redo-state`, since nothing depends on the log any more, and syncs the folder."""
    if (path / STATE).exists():
        (path / STATE).unlink()
        folder.sync_folder(path)


def _write(file: int, content: bytes, position: int) -> None:
    written = os.pwrite(file, content, position)
    if written != len(content):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _boot_id() -> bytes:
    return folder.boot_id().encode()[:36].ljust(36, b"\0")
