"""Backups with a manifest, and a check of every page of a store.

A copy knows what it is a copy of: its database `meta` holds a manifest, with the number of keys and
a digest of all pairs. It counts until the copy is opened as a store and written to.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import IO, Any, Final

import lmdb
import msgspec

from holdfast.engine.contract import Backup
from holdfast.engine.folder import create_folder, make_private, open_private, sync_folder
from holdfast.engine.lmdb import file_checks
from holdfast.engine.lmdb.environment import (
    DATA_FILE,
    LIB_VERSION,
    UNFINISHED_FILE,
    Environment,
    explain,
)
from holdfast.engine.lmdb.transaction import LmdbReader
from holdfast.errors import BadInput, StoreDamaged
from holdfast.limits import MAX_WALKED_BYTES

_MANIFEST: Final = b"backup"


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """The manifest of a backup: what it held when it was made."""

    transaction_id: int  # of the commit that wrote the manifest: a later one makes it void
    keys: int
    digest: bytes


def back_up(
    opened: Environment, txn: Any, path: Path, target: Path, expected: Backup | None = None
) -> Backup:
    """Copies the snapshot of `txn` into the folder `target`, and reads the copy back to compare.

    Until it has been compared, with `expected` too, the copy has another name, so nobody opens half
    of one.
    """
    file_checks.refuse_unreadable(path, txn)
    create_folder(target)
    unfinished = target / UNFINISHED_FILE
    _refuse_full(target)
    with _locked(unfinished) as file:
        try:
            _refuse_full(target)  # someone may have finished a backup meanwhile
            file.truncate(0)
            opened.env.copyfd(file.fileno(), compact=True, txn=txn)
            os.fsync(file.fileno())
            copied = _content(txn, opened.data)
            if expected is not None:
                refuse_other(copied, expected, path)
            if _finish(unfinished, copied) != copied:
                raise StoreDamaged(f"the copy in {target} differs from what was copied")
            os.fsync(file.fileno())
            unfinished.rename(target / DATA_FILE)
            make_private(target)
            sync_folder(target)
            return copied
        except (lmdb.Error, OSError) as error:
            raise explain(error, target) from error
        finally:
            unfinished.unlink(missing_ok=True)


def _refuse_full(target: Path) -> None:
    if any(entry.name != UNFINISHED_FILE for entry in target.iterdir()):
        raise BadInput(f"{target} is not empty", hint="Name a folder that is new or empty.")


@contextmanager
def _locked(unfinished: Path) -> Iterator[IO[bytes]]:
    """Opens the file of a copy for its writer: a file that another process reads back must not be
    cut.
    """
    try:
        file = open_private(unfinished, "ab")
    except OSError as error:
        raise explain(error, unfinished.parent) from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            is_ours = os.path.samestat(os.fstat(file.fileno()), unfinished.stat())
        except (BlockingIOError, FileNotFoundError):
            is_ours = False
        if not is_ours:
            raise BadInput(
                f"another backup is being written into {unfinished.parent}",
                hint="Name a folder that is new or empty.",
            )
        yield file


def problems(opened: Environment, txn: Any) -> list[str]:
    """Returns a sentence for each contradiction in the snapshot of `txn`."""
    found = LmdbReader(txn, b"", 0.0).problems()
    with open(os.devnull, "wb") as nowhere:
        # A compacting copy walks every page of every tree.
        opened.env.copyfd(nowhere.fileno(), compact=True, txn=txn)
    return found


# --- what a copy is compared with ----------------------------------------------------------------


def manifest_of(opened: Environment) -> Backup | None:
    """Returns the manifest of a backup; None if it was written to since, or is not a backup."""
    with opened.env.begin() as txn:
        content = txn.get(_MANIFEST, db=opened.meta)
        if content is None:
            return None
        try:
            manifest = msgspec.msgpack.decode(content, type=Manifest)
        except msgspec.MsgspecError:
            raise StoreDamaged("the manifest of this backup can't be read") from None
        if txn.id() != manifest.transaction_id:
            return None
        return Backup(keys=manifest.keys, digest=manifest.digest.hex())


def refuse_changed(opened: Environment, path: Path) -> None:
    """Raises if a small copy that was never written to is not what it was."""
    if (path / DATA_FILE).stat().st_size <= MAX_WALKED_BYTES:
        expected = manifest_of(opened)
        if expected is not None:
            with opened.env.begin() as txn:
                refuse_other(_content(txn, opened.data), expected, path)


def refuse_other(found: Backup, expected: Backup, path: Path) -> None:
    if found != expected:
        what = (
            f"it has {found.keys} keys, and {expected.keys} were backed up"
            if found.keys != expected.keys
            else f"the digest of its {found.keys} keys is not the one that was backed up"
        )
        raise StoreDamaged(
            f"the backup in {path} is damaged: {what}",
            hint="Restore another backup; keep this one for examination.",
        )


def _finish(file: Path, copied: Backup) -> Backup:
    """Writes the manifest into a copy, without the notices of the store, and reads it back."""
    with lmdb.open(
        str(file),
        subdir=False,
        lock=False,
        max_dbs=4,
        map_size=_map_bytes(file),
        lib_version=LIB_VERSION,
    ) as env:
        meta, notices, data = (env.open_db(name) for name in (b"meta", b"notices", b"data"))
        with env.begin(write=True) as txn:
            txn.drop(notices, delete=False)
            manifest = Manifest(
                transaction_id=txn.id(), keys=copied.keys, digest=bytes.fromhex(copied.digest)
            )
            txn.put(_MANIFEST, msgspec.msgpack.encode(manifest), db=meta)
        with env.begin() as txn:
            return _content(txn, data)


def _map_bytes(file: Path) -> int:
    return file.stat().st_size + 16 * 1024 * 1024


def _content(txn: Any, db: Any) -> Backup:
    """The number of all pairs of a database, and one digest of them."""
    digest = blake2b()
    keys = 0
    for key, value in txn.cursor(db=db):
        keys += 1
        digest.update(b"%d %d " % (len(key), len(value)))
        digest.update(key)
        digest.update(value)
    return Backup(keys=keys, digest=digest.hexdigest())
