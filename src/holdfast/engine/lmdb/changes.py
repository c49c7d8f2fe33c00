"""Incremental backups: the pairs that differ from those of a full backup, the base.

    magic     "holdfast changes 1" and a line feed
    records   kind (1 put, 2 delete), bytes of key and value as two numbers of 32 bits, key, value
    tail      `Changes` as msgpack, its bytes as a number of 32 bits
    checksum  BLAKE2b of all before, 32 bytes

Every incremental backup is a difference from its base, never from another one: a restore needs two
files. It holds pairs, not pages: LMDB rewrites a whole page for each changed pair, and the pages
above it. With 1 % of 300,000 pairs changed, the pages are 17.4 MB and the pairs 0.7 MB.
"""

import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import IO, Any, Final

import lmdb
import msgspec

from holdfast.engine.folder import refuse_special_file
from holdfast.engine.lmdb.environment import CHANGES_FILE, DATA_FILE, LIB_VERSION
from holdfast.errors import StoreDamaged
from holdfast.limits import COPIED_BYTES_PER_STEP, COPIED_KEYS_PER_STEP

Pair = tuple[bytes, bytes]
Change = tuple[bytes, bytes | None]  # None: the key was deleted

_MAGIC: Final = b"holdfast changes 1\n"
_HEAD: Final = struct.Struct(">BII")
_LENGTH: Final = struct.Struct(">I")
_PUT, _DELETE = 1, 2
_CHECKSUM_BYTES: Final = 32
_PIECE_BYTES: Final = 1024 * 1024
_MAX_TAIL_BYTES: Final = 4_096
_SPARE_MAP_BYTES: Final = 64 * 1024 * 1024  # address space beyond the size of the pairs


class Changes(msgspec.Struct, frozen=True, kw_only=True):
    """The tail of the file: what it is a difference of, and what both together hold."""

    base: str  # the name of the folder, next to this one, that holds the full backup
    base_digest: bytes
    keys: int
    digest: bytes
    put: int
    deleted: int


# --- differences ---------------------------------------------------------------------------------


def differences(base: Iterator[Pair], new: Iterator[Pair]) -> Iterator[Change]:
    """Yields the changes that turn `base` into `new`; both are in order of their keys.

    >>> list(differences(iter([(b"a", b"1"), (b"b", b"1")]), iter([(b"b", b"2"), (b"c", b"1")])))
    [(b'a', None), (b'b', b'2'), (b'c', b'1')]
    """
    old = next(base, None)
    for key, value in new:
        while old is not None and old[0] < key:
            yield old[0], None
            old = next(base, None)
        if old is not None and old[0] == key:
            is_same = old[1] == value
            old = next(base, None)
            if is_same:
                continue
        yield key, value
    while old is not None:
        yield old[0], None
        old = next(base, None)


def applied(base: Iterator[Pair], changes: Iterator[Change]) -> Iterator[Pair]:
    """Yields the pairs of `base` with `changes` made to them.

    >>> list(applied(iter([(b"a", b"1"), (b"b", b"1")]), iter([(b"a", None), (b"b", b"2")])))
    [(b'b', b'2')]
    """
    change = next(changes, None)
    for pair in base:
        while change is not None and change[0] < pair[0]:
            if change[1] is not None:
                yield change[0], change[1]
            change = next(changes, None)
        if change is not None and change[0] == pair[0]:
            if change[1] is not None:
                yield change[0], change[1]
            change = next(changes, None)
        else:
            yield pair
    while change is not None:
        if change[1] is not None:
            yield change[0], change[1]
        change = next(changes, None)


# --- the file ------------------------------------------------------------------------------------


class ChangesWriter:
    """Writes the file from its beginning to its checksum."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._checksum = blake2b(digest_size=_CHECKSUM_BYTES)
        self.put = self.deleted = 0
        self._write(_MAGIC)

    def add(self, key: bytes, value: bytes | None) -> None:
        """Writes one change."""
        if value is None:
            self.deleted += 1
            self._write(_HEAD.pack(_DELETE, len(key), 0) + key)
        else:
            self.put += 1
            self._write(_HEAD.pack(_PUT, len(key), len(value)) + key)
            self._write(value)

    def close(self, tail: Changes) -> None:
        """Writes the tail and the checksum, to the disk."""
        encoded = msgspec.msgpack.encode(tail)
        self._write(encoded + _LENGTH.pack(len(encoded)))
        self._file.write(self._checksum.digest())
        self._file.flush()
        os.fsync(self._file.fileno())

    def _write(self, data: bytes) -> None:
        self._checksum.update(data)
        self._file.write(data)


def read_changes(path: Path) -> Changes:
    """Returns the tail of a file of changes; raises `StoreDamaged` if it can't be read."""
    refuse_special_file(path)
    with path.open("rb") as file:
        return _read_tail(file, path)[0]


def read_pairs(path: Path) -> Iterator[Change]:
    """Yields the changes of a file, after its checksum has been compared."""
    with path.open("rb") as file:
        _, end = _read_tail(file, path)
        _refuse_damaged(file, path)
        file.seek(len(_MAGIC))
        while file.tell() < end:
            kind, key_bytes, value_bytes = _HEAD.unpack(file.read(_HEAD.size))
            key = file.read(key_bytes)
            yield key, None if kind == _DELETE else file.read(value_bytes)


def _read_tail(file: IO[bytes], path: Path) -> tuple[Changes, int]:
    """Returns the tail, and where it begins."""
    size = file.seek(0, os.SEEK_END)
    end = size - _CHECKSUM_BYTES - _LENGTH.size
    try:
        file.seek(max(0, end))
        [length] = _LENGTH.unpack(file.read(_LENGTH.size))
        begin = end - length
        if begin < len(_MAGIC) or length > _MAX_TAIL_BYTES:
            raise _damaged(path)
        file.seek(begin)
        changes = msgspec.msgpack.decode(file.read(length), type=Changes)
    except (msgspec.MsgspecError, struct.error):
        raise _damaged(path) from None
    if "/" in changes.base or changes.base in ("", ".", ".."):
        raise _damaged(path)
    return changes, begin


def _refuse_damaged(file: IO[bytes], path: Path) -> None:
    left = file.seek(0, os.SEEK_END) - _CHECKSUM_BYTES
    file.seek(0)
    checksum = blake2b(digest_size=_CHECKSUM_BYTES)
    begin = file.read(len(_MAGIC))
    checksum.update(begin)
    left -= len(begin)
    while left > 0:
        piece = file.read(min(left, _PIECE_BYTES))
        checksum.update(piece)
        left -= len(piece)
    if begin != _MAGIC or file.read(_CHECKSUM_BYTES) != checksum.digest():
        raise _damaged(path)


def _damaged(path: Path) -> StoreDamaged:
    return StoreDamaged(
        f"the incremental backup {path} is damaged: it does not match its checksum",
        hint="Restore another backup; keep this one for examination.",
    )


# --- with a base ---------------------------------------------------------------------------------


def base_of(backup: Path) -> tuple[Changes, Path]:
    """Returns the tail of the incremental backup in a folder, and the folder of its base.

    Raises `StoreDamaged` if either of the two is missing or visibly damaged.
    """
    changes = read_changes(backup / CHANGES_FILE)
    base = backup.parent / changes.base
    if not (base / DATA_FILE).exists():
        raise StoreDamaged(
            f"the incremental backup {backup} needs the full backup {base}, which is missing",
            hint="Put that folder back next to it, or restore another backup.",
        )
    return changes, base


@contextmanager
def opened_file(path: Path, *, writes_bytes: int | None = None) -> Iterator[Any]:
    """Opens the LMDB file of a backup by itself: to read it, or to write up to `writes_bytes`."""
    refuse_special_file(path)
    reads = writes_bytes is None
    spare = _SPARE_MAP_BYTES + 4 * (writes_bytes or 0)
    with lmdb.open(
        str(path),
        subdir=False,
        lock=False,
        readonly=reads,
        create=False,
        sync=reads,
        max_dbs=4,
        map_size=2 * path.stat().st_size + spare,
        lib_version=LIB_VERSION,
    ) as env:
        yield env


def apply_to(file: Path, changes: Path) -> None:
    """Makes the changes to the LMDB file of a copy, in bounded transactions."""
    pairs = read_pairs(changes)
    with opened_file(file, writes_bytes=changes.stat().st_size) as env:
        data = env.open_db(b"data", create=False)
        while True:
            with env.begin(write=True, db=data) as txn:
                if not _apply_some(txn, pairs):
                    break
        env.sync(True)


def _apply_some(txn: Any, pairs: Iterator[Change]) -> bool:
    """Applies as many changes as one transaction should; returns whether there may be more."""
    size = 0
    for count, (key, value) in enumerate(pairs, 1):
        if value is None:
            txn.delete(key)
        else:
            txn.put(key, value)
            size += len(value)
        if count >= COPIED_KEYS_PER_STEP or size >= COPIED_BYTES_PER_STEP:
            return True
    return False
