"""Backups with a manifest, and a check of every page of a store.

A copy knows what it is a copy of: its database `meta` holds a manifest, with the number of keys and
a digest of all pairs. The manifest is valid until the copy is opened as a store and written to.
"""

import fcntl
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import IO, Any, Final

import lmdb
import msgspec

from holdfast.engine.contract import Backup
from holdfast.engine.folder import (
    create_folder,
    make_private,
    open_private,
    refuse_special_file,
    sync_folder,
)
from holdfast.engine.lmdb import file_checks
from holdfast.engine.lmdb.changes import (
    Changes,
    ChangesWriter,
    Pair,
    applied,
    apply_to,
    differences,
    opened_file,
    read_changes,
    read_pairs,
)
from holdfast.engine.lmdb.environment import (
    CHANGES_FILE,
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

    transaction_id: int  # of the commit that wrote the manifest, which a later commit invalidates
    keys: int
    digest: bytes


def back_up(
    opened: Environment,
    txn: Any,
    path: Path,
    target: Path,
    expected: Backup | None = None,
    changes_file: Path | None = None,
) -> Backup:
    """Copies the snapshot of `txn` into the folder `target`, and reads the copy back to compare.

    The copy has a temporary name until it has been compared, with `expected` too, so nobody can
    open an unfinished one. `changes_file` holds changes to apply to the copy, and says what the
    result must hold.
    """
    file_checks.refuse_unreadable(path, txn)
    with _new_backup_file(target, DATA_FILE) as file:
        unfinished = target / UNFINISHED_FILE
        opened.env.copyfd(file.fileno(), compact=True, txn=txn)
        os.fsync(file.fileno())
        copied = _digest_pairs(txn.cursor(db=opened.data))
        if expected is not None:
            refuse_mismatch(copied, expected, path)
        if changes_file is not None:
            apply_to(unfinished, changes_file)
            copied = _expected_result(read_changes(changes_file))
        if _write_manifest(unfinished, copied) != copied:
            raise StoreDamaged(f"the copy in {target} differs from what was copied")
        return copied


def back_up_changes(
    opened: Environment, txn: Any, path: Path, target: Path, base: Path
) -> tuple[Backup, Changes]:
    """Writes the differences from the full backup in the folder `base` into the folder `target`,
    reads them back, and compares both together with the snapshot of `txn`."""
    file_checks.refuse_unreadable(path, txn)
    with _new_backup_file(target, CHANGES_FILE) as file, opened_file(base / DATA_FILE) as env:
        meta, data = (env.open_db(name, create=False) for name in (b"meta", b"data"))
        of_base = manifest_of(Environment(env=env, data=data, notices=None, meta=meta))
        if of_base is None:
            raise BadInput(
                f"{base} is not a full backup, or was written to", hint="Make a full backup first."
            )
        content = _PairDigest()
        writer = ChangesWriter(file)
        with env.begin(db=data) as old:
            pairs = content.counted(txn.cursor(db=opened.data))
            for key, value in differences(iter(old.cursor()), pairs):
                writer.add(key, value)
            copied = content.result()
            tail = Changes(
                base=base.name,
                base_digest=bytes.fromhex(of_base.digest),
                keys=copied.keys,
                digest=bytes.fromhex(copied.digest),
                put=writer.put,
                deleted=writer.deleted,
            )
            writer.close(tail)
            written = read_pairs(target / UNFINISHED_FILE)
            if _digest_pairs(applied(iter(old.cursor()), written)) != copied:
                raise StoreDamaged(f"{base} and {target} differ from what was backed up")
        return copied, tail


def _expected_result(changes: Changes) -> Backup:
    return Backup(keys=changes.keys, digest=changes.digest.hex())


@contextmanager
def _new_backup_file(target: Path, name: str) -> Iterator[IO[bytes]]:
    """Opens the file of a new backup, which gets its final name when the block has ended."""
    create_folder(target)
    unfinished = target / UNFINISHED_FILE
    _refuse_nonempty(target)
    refuse_special_file(unfinished)
    with _locked_file(unfinished) as file:
        try:
            _refuse_nonempty(target)  # another process may have finished a backup meanwhile
            file.truncate(0)
            yield file
            os.fsync(file.fileno())
            unfinished.rename(target / name)
            make_private(target)
            sync_folder(target)
        except (lmdb.Error, OSError) as error:
            raise explain(error, target) from error
        finally:
            unfinished.unlink(missing_ok=True)


def _refuse_nonempty(target: Path) -> None:
    if any(entry.name != UNFINISHED_FILE for entry in target.iterdir()):
        raise BadInput(f"{target} is not empty", hint="Name a folder that is new or empty.")


@contextmanager
def _locked_file(unfinished: Path) -> Iterator[IO[bytes]]:
    """Opens the file of a copy for its writer, and locks it: another process must not truncate it
    while it is read back."""
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
    """Returns a sentence for each inconsistency in the snapshot of `txn`."""
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
    """Raises if a small backup that was never written to differs from its manifest."""
    if (path / DATA_FILE).stat().st_size <= MAX_WALKED_BYTES:
        expected = manifest_of(opened)
        if expected is not None:
            with opened.env.begin() as txn:
                refuse_mismatch(_digest_pairs(txn.cursor(db=opened.data)), expected, path)


def refuse_mismatch(found: Backup, expected: Backup, path: Path) -> None:
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


def _write_manifest(file: Path, copied: Backup) -> Backup:
    """Writes the manifest into a copy, removes the notices of the store from it, and reads it
    back."""
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
            return _digest_pairs(txn.cursor(db=data))


def _map_bytes(file: Path) -> int:
    return file.stat().st_size + 16 * 1024 * 1024


def _digest_pairs(pairs: Iterable[Pair]) -> Backup:
    """Returns the number of pairs and one digest of them, in key order."""
    content = _PairDigest()
    for _ in content.counted(pairs):
        pass
    return content.result()


class _PairDigest:
    """Counts and digests the pairs that pass through it."""

    def __init__(self) -> None:
        self._digest = blake2b()
        self._keys = 0

    def counted(self, pairs: Iterable[Pair]) -> Iterator[Pair]:
        update = self._digest.update
        for key, value in pairs:
            self._keys += 1
            update(b"%d %d " % (len(key), len(value)))
            update(key)
            update(value)
            yield key, value

    def result(self) -> Backup:
        return Backup(keys=self._keys, digest=self._digest.hexdigest())
