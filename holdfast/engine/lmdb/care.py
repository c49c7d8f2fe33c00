"""A copy of a store that can be trusted, and a look at every page of it."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import IO, Any

import lmdb

from holdfast.engine.folder import create_folder, sync_folder
from holdfast.engine.lmdb.environment import DATA_FILE, UNFINISHED_FILE, Environment, explain
from holdfast.engine.lmdb.transaction import LmdbReader
from holdfast.errors import BadInput, StoreDamaged


def back_up(opened: Environment, txn: Any, target: Path) -> None:
    """Copies the snapshot of `txn` into the folder `target`, and reads the copy back to compare.

    Until it has been compared the copy has another name, so nobody opens half of one.
    """
    create_folder(target)
    unfinished = target / UNFINISHED_FILE
    _refuse_full(target)
    with _locked(unfinished) as file:
        try:
            _refuse_full(target)  # someone may have finished a backup meanwhile
            file.truncate(0)
            opened.env.copyfd(file.fileno(), compact=True, txn=txn)
            os.fsync(file.fileno())
            if _digest_of(unfinished) != _digest(txn, opened.data):
                raise StoreDamaged(f"the copy in {target} differs from what was copied")
            unfinished.rename(target / DATA_FILE)
            sync_folder(target)
        except (lmdb.Error, OSError) as error:
            raise explain(error, target) from error
        finally:
            unfinished.unlink(missing_ok=True)


def _refuse_full(target: Path) -> None:
    if any(entry.name != UNFINISHED_FILE for entry in target.iterdir()):
        raise BadInput(f"{target} is not empty", hint="Name a folder that is new or empty.")


@contextmanager
def _locked(unfinished: Path) -> Iterator[IO[bytes]]:
    """The file for a copy, for one who writes it: what another reads back must not be cut short."""
    try:
        file = unfinished.open("ab")
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
    """What contradicts itself in the snapshot of `txn`, a sentence each."""
    found = LmdbReader(txn, b"", 0.0).problems()
    with open(os.devnull, "wb") as nowhere:
        # A compacting copy walks every page of every tree.
        opened.env.copyfd(nowhere.fileno(), compact=True, txn=txn)
    return found


def _digest_of(file: Path) -> bytes:
    with lmdb.open(str(file), subdir=False, max_dbs=4, readonly=True, lock=False) as copy:
        data = copy.open_db(b"data", create=False)
        with copy.begin() as txn:
            return _digest(txn, data)


def _digest(txn: Any, db: Any) -> bytes:
    """One digest of all pairs of a database."""
    digest = blake2b()
    for key, value in txn.cursor(db=db):
        digest.update(b"%d %d " % (len(key), len(value)))
        digest.update(key)
        digest.update(value)
    return digest.digest()
