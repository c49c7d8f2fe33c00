"""Checks a store's file before LMDB maps it, so that damage raises an error and crashes nothing.

Size and meta pages are checked whenever a store is opened. A store that was closed properly has a
seal, a file of checksums, and is compared with it; other small stores are walked page by page.
Opening a store breaks its seal: while it is open, nothing says what the file should contain.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final
from zlib import crc32

import msgspec

from holdfast.engine.folder import open_private, read_small, sync_folder
from holdfast.engine.lmdb import pages
from holdfast.engine.lmdb.environment import DATA_FILE
from holdfast.errors import StoreDamaged, UnsupportedFormat
from holdfast.limits import (
    MAX_CHECKED_IN_PROCESS_BYTES,
    MAX_SEALED_BYTES,
    MAX_UNWRITTEN_BYTES,
    MAX_WALKED_BYTES,
)

SEAL: Final = "seal"
_NEW_SEAL: Final = "seal-new"
_BLOCK: Final = 1024 * 1024
# Files that exist only if a data file has existed.
_TRACES: Final = ("lock.mdb", "redo", "redo-state", "checkpoint", SEAL)


class Seal(msgspec.Struct, frozen=True, kw_only=True):
    """The state of the data file when the store was closed."""

    transaction_id: int  # of the last commit; a later commit makes the seal void
    bytes: int
    checksums: list[int]  # of each MiB


def refuse_missing(path: Path) -> None:
    """Raises if a store has lost its data file: it would otherwise open as an empty store."""
    traces = [name for name in _TRACES if (path / name).exists()]
    if traces and not (path / DATA_FILE).exists():
        raise StoreDamaged(
            f"{path / DATA_FILE} is missing, and {traces[0]} shows that it was there",
            hint="Put it back, or restore the newest backup into a new folder.",
        )


def refuse_damaged(path: Path, *, alone: bool) -> None:
    """Raises if the data file can't be what a store has written. Breaks its seal.

    While other processes have the store open, only its meta pages are checked: they may change the
    rest.
    """
    with _opened(path / DATA_FILE) as file:
        size = os.fstat(file).st_size
        if size == 0:
            raise _damaged(path, "it is empty")
        try:
            newest = pages.read_metas(file)[0]
        except pages.ForeignFile as why:
            raise UnsupportedFormat(
                f"{path} holds something that is not a Holdfast store: {why}"
            ) from None
        except pages.Damaged as why:
            raise _damaged(path, str(why)) from None
        if not alone:
            return
        if newest.file_bytes - size > MAX_UNWRITTEN_BYTES:
            raise _damaged(path, f"it has {size} bytes of {newest.file_bytes}")
        if not _is_sealed(path, file, newest):
            walks = size < newest.file_bytes or size <= MAX_WALKED_BYTES
            found = pages.PageCheck(file, newest).run(roots_only=not walks)
            if found:
                raise _damaged(path, found[0])
    break_seal(path)


def refuse_any_damage(path: Path) -> None:
    """Raises if any page is damaged, however large the file is. Nobody may have it open."""
    with _opened(path / DATA_FILE) as file:
        if found := pages.problems_of(file):
            raise _damaged(path, found[0])


def refuse_unreadable(path: Path, txn: Any) -> None:
    """Raises if a page of the snapshot of `txn` is damaged: reading it could end the process."""
    if found := structural_problems(path, txn):
        raise _damaged(path, found[0])


def _damaged(path: Path, what: str) -> StoreDamaged:
    return StoreDamaged(f"{path / DATA_FILE} is damaged: {what}")


@contextmanager
def _opened(file: Path) -> Iterator[int]:
    descriptor = os.open(file, os.O_RDONLY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


# --- all pages -----------------------------------------------------------------------------------


def structural_problems(path: Path, txn: Any) -> list[str]:
    """Returns the problems of the pages of the snapshot of `txn`.

    A child process walks a large file, so that the walk does not block this one. Pages are read,
    never mapped: damage can't end either process.
    """
    with _opened(path / DATA_FILE) as file:
        meta = _meta_of(file, txn)
        if meta is None:
            return ["the meta page of the last commit is damaged"]
        if os.fstat(file).st_size <= MAX_CHECKED_IN_PROCESS_BYTES:
            return pages.problems_of(file, meta)
        command = [sys.executable, "-I", pages.__file__, str(path / DATA_FILE), pages.encode(meta)]
        try:
            done = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL)
        except (OSError, ValueError):
            return pages.problems_of(file, meta)  # without a Python executable, in this process
    if done.returncode == 0:
        with suppress(ValueError):
            return [str(problem) for problem in json.loads(done.stdout)]
    if done.returncode < 0:
        return [f"the process that read the file was ended by signal {-done.returncode}"]
    return [f"the file can't be read: {done.stderr.decode(errors='replace')[-200:].strip()}"]


def problems_of_newest(path: Path) -> list[str]:
    """Returns the problems of the pages of the newest commit in the file, without a snapshot."""
    with _opened(path / DATA_FILE) as file:
        return pages.problems_of(file)


def _meta_of(file: int, txn: Any) -> pages.Meta | None:
    """Returns the meta page of a snapshot, unless two later commits have replaced it."""
    try:
        metas = pages.read_metas(file)
    except pages.Damaged:
        return None
    for meta in metas:
        if meta.transaction_id == txn.id():
            return meta
    return metas[0]


# --- the seal ------------------------------------------------------------------------------------


def seal(path: Path) -> None:
    """Records the checksums of the data file. Only for a file that is synced and that nobody has
    open.

    Nothing waits for the disk here: a seal that a power failure has damaged counts as missing.
    """
    with suppress(OSError, pages.Damaged), _opened(path / DATA_FILE) as file:
        size = os.fstat(file).st_size
        if size > MAX_SEALED_BYTES:
            return
        sealed = Seal(
            transaction_id=pages.read_metas(file)[0].transaction_id,
            bytes=size,
            checksums=list(_checksums(file, size)),
        )
        body = msgspec.msgpack.encode(sealed)
        new = path / _NEW_SEAL
        with open_private(new, "wb") as written:
            written.write(crc32(body).to_bytes(4) + body)
        new.replace(path / SEAL)


def break_seal(path: Path) -> None:
    """Removes the seal, and syncs the folder before the first write to the file."""
    if (path / SEAL).exists():
        (path / SEAL).unlink()
        sync_folder(path)


def _is_sealed(path: Path, file: int, newest: pages.Meta) -> bool:
    """Returns whether the file matches its seal. Raises if it does not.

    Without a seal, with a damaged one, or after a commit by a version that knows no seals, nothing
    can be said, and it returns False.
    """
    sealed = _read_seal(path)
    if sealed is None or newest.transaction_id > sealed.transaction_id:
        return False
    size = os.fstat(file).st_size
    if size != sealed.bytes:
        raise _changed(path, f"it has {size} bytes, and had {sealed.bytes}")
    for number, checksum in enumerate(_checksums(file, size)):
        if checksum != sealed.checksums[number]:
            raise _changed(path, f"between the bytes {number * _BLOCK} and {(number + 1) * _BLOCK}")
    return True


class SealBroken(StoreDamaged):
    """A data file has an intact structure, but differs from what was closed."""


def _changed(path: Path, where: str) -> StoreDamaged:
    return SealBroken(
        f"{path / DATA_FILE} has changed since its store was closed: {where}",
        hint="Restore the newest backup. If you have put the file there yourself, or want what is "
        f"left of it, run `holdfast recover {path} --accept-loss`.",
    )


def _read_seal(path: Path) -> Seal | None:
    try:
        content = read_small(path / SEAL)
        if crc32(content[4:]).to_bytes(4) != content[:4]:
            return None
        return msgspec.msgpack.decode(content[4:], type=Seal)
    except (OSError, msgspec.MsgspecError):
        return None


def _checksums(file: int, size: int) -> Iterator[int]:
    for begin in range(0, size, _BLOCK):
        yield crc32(os.pread(file, _BLOCK, begin))
