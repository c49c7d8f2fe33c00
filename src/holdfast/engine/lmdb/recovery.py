"""Recovers a store whose small files are damaged: `holdfast recover`.

It does not repair the data file; restore a backup for that. It lets a store continue without a log,
a seal or a checkpoint that is damaged, and reports what is lost.
"""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import lmdb
import msgspec

from holdfast.engine import checkpoints
from holdfast.engine.folder import Folder
from holdfast.engine.lmdb import file_checks, redo_log
from holdfast.engine.lmdb.checkpointer import Checkpointer
from holdfast.engine.lmdb.disk_reserve import Reserve
from holdfast.engine.lmdb.environment import DATA_FILE, explain, open_environment
from holdfast.engine.lmdb.file_writes import replay
from holdfast.engine.lmdb.redo_log import FoundRecords, RedoLog
from holdfast.errors import StoreBusy, StoreDamaged


class Recovery(msgspec.Struct, frozen=True, kw_only=True):
    """The report of a recovery: what was wrong with the store, and what was done about it."""

    problems: list[str]  # a sentence each; empty if nothing was wrong
    applied: int  # records of the log that were, or would be, written into the data file
    lost: int  # the least number of records of the log that can't be used
    recovered: bool  # whether the store opens now


def recover(path: Path, *, accept_loss: bool) -> Recovery:
    """Examines the small files of a store; with `accept_loss`, continues without those that are
    damaged. Raises `StoreDamaged` if the data file itself is damaged."""
    file_checks.refuse_missing(path)
    folder = Folder(path, "commit")
    try:
        folder.lock_opening()
        if not folder.is_ours_alone():
            raise StoreBusy(f"{path} is open in another process", hint="Close it there first.")
        problems = _side_files(path, accept_loss=accept_loss)
        found = _log(folder, accept_loss=accept_loss)
    except (lmdb.Error, OSError) as error:
        raise explain(error, path) from error
    finally:
        folder.close()
    if found.problem:
        problems.append(f"{path / redo_log.FILE_NAME} is damaged: {found.problem}")
    return Recovery(
        problems=problems,
        applied=len(found.records),
        lost=found.lost,
        recovered=accept_loss or not problems,
    )


def _side_files(path: Path, *, accept_loss: bool) -> list[str]:
    """Returns the problems of the checkpoint and the seal; removes them if the loss is accepted."""
    problems: list[str] = []
    try:
        if not checkpoints.recover(path, path / DATA_FILE):
            redo_log.refuse_lost_checkpoint(path)
    except StoreDamaged as error:
        problems.append(error.message)
        if accept_loss:
            checkpoints.remove(path)
    try:
        file_checks.refuse_damaged(path, alone=True)
    except file_checks.SealBroken as error:
        problems.append(error.message)
        if accept_loss:
            file_checks.break_seal(path)
    if accept_loss:
        file_checks.refuse_any_damage(path)
    return problems


def _log(folder: Folder, *, accept_loss: bool) -> FoundRecords:
    path = folder.path
    if not (path / redo_log.FILE_NAME).exists() and redo_log.read_state(path) is None:
        return FoundRecords([])
    env, data, _, _ = open_environment(path, sync=True)
    try:
        with closing(RedoLog(path, synced=True)) as log:
            if not accept_loss:
                return log.read(env.info()["last_txnid"])
            with _protected_checkpoint(env, folder):
                found = replay(env, data, log, accept_loss=True)
            log.begin()
            return found
    finally:
        env.close()


@contextmanager
def _protected_checkpoint(env: Any, folder: Folder) -> Iterator[None]:
    """Makes a new checkpoint if a crash in interval mode has left one: nobody protects its pages
    any more, and what is replayed might be written over them."""
    path = folder.path
    if checkpoints.load(path) is None:
        yield
        return
    with (path / DATA_FILE).open("r+b") as file:
        checkpointer = Checkpointer(
            env, path, folder, file.fileno(), flush=lambda: None, reserve=Reserve(path)
        )
        checkpointer.make()
        yield
        checkpointer.pin.abort()
