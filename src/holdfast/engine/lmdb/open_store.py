"""The files of an open store: how they are opened, recovered, shared and closed."""

import ctypes
import os
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import lmdb

from holdfast.engine import checkpoints
from holdfast.engine.folder import Folder, keeps_written_pages, sync_folder
from holdfast.engine.lmdb import backup, failed_syncs, file_checks, redo_log
from holdfast.engine.lmdb.checkpointer import Checkpointer
from holdfast.engine.lmdb.disk_reserve import Reserve
from holdfast.engine.lmdb.disk_space import DiskSpace, free_reserved_blocks
from holdfast.engine.lmdb.disk_wait import DiskWait
from holdfast.engine.lmdb.environment import (
    DATA_FILE,
    await_writer,
    create,
    explain,
    open_environment,
    refuse_unfinished,
)
from holdfast.engine.lmdb.file_writes import FileWriter, replay
from holdfast.engine.lmdb.log_lease import LogLease
from holdfast.engine.lmdb.notice_log import NoticeLog
from holdfast.engine.lmdb.overlay import Overlay
from holdfast.engine.lmdb.redo_log import RedoLog
from holdfast.engine.lmdb.shared_state import SharedState
from holdfast.engine.lmdb.unflushed_commits import UnflushedCommits
from holdfast.engine.notices import NoticeHub
from holdfast.errors import HoldfastError, StoreBusy, StoreFull


class OpenStore:
    """The folder, LMDB's file, the log, the overlay and the checkpoints of one open store."""

    def __init__(
        self,
        path: Path,
        *,
        durability: str,
        checkpoint_seconds: float,
        refuse_unusable: Callable[[], None],
        explained: Callable[[Exception], HoldfastError],
    ) -> None:
        self.path = path
        self._syncs = durability == "commit"
        self._checkpoint_seconds = checkpoint_seconds
        self.is_usable = True  # until it is closed, or inherited by a forked child
        self._refuse_unusable = refuse_unusable
        self._explained = explained
        refuse_unfinished(path)  # before this creates files that would make a later backup fail
        self.folder = Folder(path, durability)
        self.reserve = Reserve(path)
        try:
            self.folder.lock_opening()
            self._open_with_reserve()
        except BaseException:
            self.folder.close()
            raise
        self.folder.unlock_opening()

    # --- opening ---------------------------------------------------------------------------------

    def _open_with_reserve(self) -> None:
        """Opens the store; on a full disk, with the help of the reserved blocks."""
        while True:
            try:
                self._open()
                break
            except StoreFull:
                if not self.reserve.release():
                    raise
            except OSError as error:
                raise explain(error, self.path) from error
        self.reserve.fill()

    def _open(self) -> None:
        data_file = self.path / DATA_FILE
        alone = self.folder.is_ours_alone()
        file_checks.refuse_missing(self.path)
        if not data_file.exists():
            create(self.path)
        elif alone and not checkpoints.recover(self.path, data_file):
            redo_log.refuse_lost_checkpoint(self.path)
        file_checks.refuse_damaged(self.path, alone=alone)
        if alone and not self._syncs:
            self._make_durable()
        self.folder.join(alone=alone)
        if not alone:
            await_writer(self.path)
        with self.folder.write_turn:  # LMDB opens its databases in a transaction that writes
            self.opened = open_environment(self.path, sync=self._syncs)
        self.env, self.data, notices, _ = self.opened
        self.notice_log = NoticeLog(
            self.env,
            notices,
            begin_snapshot=self.begin_snapshot,
            waiting=lambda: (-1, []) if self.overlay is None else self.overlay.notices(),
            read_by_all=self._read_by_all,
        )
        self.notices = NoticeHub(self.notice_log, watched=(data_file, self.folder.lease_file))
        self._data_file = os.open(data_file, os.O_RDWR)
        self.checkpointer: Checkpointer | None = None
        self.redo: RedoLog | None = None
        self.shared_state: SharedState | None = None
        self.overlay: Overlay | None = None
        try:
            self._settle(alone)
        except BaseException as error:
            self.env.close()
            os.close(self._data_file)
            self._close_log()
            if isinstance(error, lmdb.Error | OSError):
                raise explain(error, self.path) from error
            raise

    def _make_durable(self) -> None:
        """Writes what a log of commit mode holds into LMDB's file, before the first commit in
        interval mode."""
        if not (self.path / redo_log.FILE_NAME).exists() and redo_log.read_state(self.path) is None:
            return
        env, data, _, _ = open_environment(self.path, sync=True)
        try:
            with closing(RedoLog(self.path, synced=False)) as log:
                if log.was_synced() or log.problem:
                    replay(env, data, log)
        except (lmdb.Error, OSError) as error:
            raise explain(error, self.path) from error
        finally:
            env.close()

    def _settle(self, alone: bool) -> None:
        """Prepares the folder for the mode in which it was opened."""
        self.env.reader_check()
        sync_folder(self.path)
        # First of all: no process protects the pages of the last checkpoint any more, and what is
        # replayed from the log might be written over them.
        checkpointer = self._make_checkpoint(alone)
        self._open_overlay(alone)
        if checkpointer is not None and not self._syncs:
            self.checkpointer = checkpointer
            checkpointer.make()
        elif checkpointer is not None:
            self.env.sync(True)
            checkpoints.remove(self.path)
            checkpointer.pin.abort()
        if alone:
            with self.folder.write_turn:
                self.notice_log.forget_all()
            backup.refuse_changed(self.opened, self.path)

    def _make_checkpoint(self, alone: bool) -> Checkpointer | None:
        """Makes a checkpoint in interval mode, or if a crash in that mode has left one."""
        if self._syncs and not (alone and checkpoints.load(self.path) is not None):
            return None
        checkpointer = Checkpointer(
            self.env,
            self.path,
            self.folder,
            self._data_file,
            flush=self.flush,
            reserve=self.reserve,
        )
        checkpointer.make()
        return checkpointer

    def _open_overlay(self, alone: bool) -> None:
        self.redo = self._open_log(alone)
        if self.redo is None:
            return
        self.shared_state = SharedState(self.path)
        if alone:
            self._take_over_log()
        else:
            self._join_log()
        if not keeps_written_pages(self.path):
            return
        disk_space = DiskSpace(self.env, self.data, self._data_file, synced=self._syncs)
        lease = LogLease(
            self.env,
            self.folder,
            self.redo,
            self.shared_state,
            synced=self._syncs,
            check_seconds=self._checkpoint_seconds,
            note_if_alone=self._note_if_alone,
        )
        unflushed = UnflushedCommits(
            self.env,
            self.data,
            self.redo,
            self.shared_state,
            lease=lease,
            folder=self.folder,
            disk_space=disk_space,
            synced=self._syncs,
        )
        self.overlay = Overlay(
            self.env,
            log=self.redo,
            shared_state=self.shared_state,
            lease=lease,
            unflushed=unflushed,
            disk_wait=DiskWait(
                self.env,
                self.folder,
                self.redo,
                self.shared_state,
                lease=lease,
                unflushed=unflushed,
                synced=self._syncs,
            ),
            disk_space=disk_space,
            file_writer=FileWriter(
                self.env,
                self.data,
                self.folder,
                store_notices=self.notice_log.store,
                note_written=self.note_written,
            ),
            synced=self._syncs,
            notices=self.notices,
            refuse_unusable=self._refuse_unusable,
        )

    def _open_log(self, alone: bool) -> RedoLog | None:
        """Returns the log, if it exists or should be created."""
        exists = (self.path / redo_log.FILE_NAME).exists() or redo_log.read_state(
            self.path
        ) is not None
        # If the processes that have the store open use no log, all commits go to LMDB directly:
        # they would not see commits in a log.
        if not exists and not (alone and keeps_written_pages(self.path)):
            return None
        try:
            return RedoLog(self.path, synced=self._syncs)
        except OSError:
            if exists:
                raise
            return None  # the disk is full; without a log, all commits go to LMDB directly

    def _take_over_log(self) -> None:
        """Writes what killed processes have left in the log into LMDB's file."""
        assert self.redo is not None
        assert self.shared_state is not None
        self.shared_state.reset()
        self.folder.take_lease(wait=True)
        try:
            self._replay()
            if self._syncs and self.redo.is_valid():
                # Its process may have been killed in the middle of LMDB's last commit, which voids
                # the records of the log but may not be on disk.
                self.env.sync(True)
            self.redo.begin()
        finally:
            self.folder.release_lease()

    def _join_log(self) -> None:
        """Waits until no other process keeps its commits to itself; if such a process was killed,
        writes what it left into LMDB's file."""
        shared_state = self.shared_state
        assert shared_state is not None
        shared_state.shared = True
        os.getppid()  # a memory barrier: the lease holder sets its mark, then reads this one
        if self.folder.await_lease(lambda: not shared_state.kept):
            try:
                above, _ = shared_state.published()
                if above != self._last_commit():
                    self._replay()
                shared_state.kept = False
            finally:
                self.folder.release_lease()
        else:
            self.folder.refuse_stopped_holder()

    def _last_commit(self) -> int:
        """Returns the number of LMDB's last commit, even if its process was killed in the
        middle."""
        with self.folder.write_turn:
            self.env.begin(write=True).abort()
        return int(self.env.info()["last_txnid"])

    def _replay(self) -> None:
        assert self.redo is not None
        with self.folder.write_turn:
            replay(self.env, self.data, self.redo)

    def _close_log(self) -> None:
        if self.redo is not None:
            self.redo.close()
        if self.shared_state is not None:
            self.shared_state.close()

    def begin_snapshot(self) -> Any:
        """Returns a snapshot of LMDB's file; unflushed commits may be missing from it."""
        if not self.is_usable:  # inlined: views are opened often, and a call is not free
            self._refuse_unusable()
        try:
            return self.env.begin(self.data)
        except lmdb.ReadersFullError:
            self.env.reader_check()
        except lmdb.Error as error:
            raise self._explained(error) from error
        try:
            return self.env.begin(db=self.data)
        except lmdb.Error as error:
            raise self._explained(error) from error

    # --- with other processes --------------------------------------------------------------------

    def _note_if_alone(self) -> None:
        """Notes that the other processes have left, so that commits may be deferred again."""
        if self.shared_state is None or not self.folder.try_lock_opening():
            return
        try:
            if self.folder.is_ours_alone():
                self.env.reader_check()
                self.shared_state.shared = False
        finally:
            self.folder.stay_registered()
            self.folder.unlock_opening()

    def _read_by_all(self) -> int | None:
        """Returns the last LMDB commit whose notices every subscriber has read; None if there is no
        subscriber."""
        if self.shared_state is None or self.shared_state.shared:
            return 0  # other processes may listen, and how far they have read is unknown
        place = self.notices.place()
        return None if place is None else int(place.commit)

    # --- closing ---------------------------------------------------------------------------------

    def flush(self) -> None:
        """Writes the commits that wait in memory to LMDB's file."""
        if self.overlay is not None:
            self.overlay.flush()

    def note_written(self, keys: int) -> None:
        """Makes an early checkpoint once commits to LMDB's file have copied half of its pages.

        LMDB can't reuse the pages of the last checkpoint, so in interval mode a store that is
        filled quickly would grow by a copy of itself with each flush.
        """
        if self.checkpointer is None:
            return
        with suppress(lmdb.Error):  # all reader slots are taken: a later commit checks again
            with self.env.begin() as txn:
                stat = txn.stat(self.data)
            live = stat["leaf_pages"] + stat["branch_pages"]
            self.checkpointer.note_copied(min(keys, live), live)

    def leave(self) -> None:
        """Flushes, syncs, and releases the folder."""
        try:
            # Before waiting for anyone: a process that opens the store may wait for the lease.
            if self.overlay is not None:
                self.overlay.close()
        finally:
            self._leave_folder()

    def _leave_folder(self) -> None:
        try:
            last = self._lock_closing() and self.folder.is_ours_alone()
            try:
                is_flushed = last and self._flush_last()
                if self.checkpointer is not None:
                    self.checkpointer.close()
            finally:
                self._leave_file(last)
            if is_flushed:
                if self.redo is not None:
                    self.redo.remove()
                if self.shared_state is not None:
                    self.shared_state.remove()
                if self.checkpointer is not None:
                    checkpoints.remove(self.path)
                file_checks.seal(self.path)
            if last:
                self.reserve.remove_if_larger((self.path / DATA_FILE).stat().st_size)
        finally:
            self.folder.close()

    def _flush_last(self) -> bool:
        """Writes the rest of the log into LMDB's file, for the last process to close the store:
        another one may have committed after this one's flush, and been killed. Returns whether the
        log is empty then."""
        if self.redo is None:
            return True
        try:
            self._last_commit()
            self._replay()
            if self._syncs and self.shared_state is not None and self.shared_state.holder:
                self.env.sync(True)  # as in `_take_over_log`
        except (lmdb.Error, HoldfastError):
            return False  # the next process to open the store tries again
        return True

    def _leave_file(self, last: bool) -> None:
        """Closes the files; the last process to use them tidies up."""
        self.env.close()
        try:
            if last:
                free_reserved_blocks(self._data_file)
                if self.checkpointer is not None:
                    # Another process may have committed after the last checkpoint, and been killed.
                    self._sync_data_file()
        finally:
            os.close(self._data_file)
            self._close_log()

    def _sync_data_file(self) -> None:
        try:
            os.fsync(self._data_file)
        except OSError:
            failed_syncs.note(self.path)
            raise

    def _lock_closing(self) -> bool:
        """Returns whether this process got the lock for opening and closing. If a stopped process
        holds it, this one leaves without it, and leaves the folder as it is."""
        try:
            self.folder.lock_opening()
        except StoreBusy:
            return False
        return True

    def forked(self) -> None:
        """Releases the folder in a forked child, and nothing that the parent still uses."""
        self.notices.forked()
        self.folder.close()
        never_finalize(self.env)
        if self.checkpointer is not None:
            never_finalize(self.checkpointer.pin)
        if self.overlay is not None:
            for txn in self.overlay.forked():
                never_finalize(txn)


def never_finalize(thing: object) -> None:
    """Lets a forked child exit without cleaning up what it has inherited.

    LMDB's reader table is shared memory: a child that closed the parent's transactions would free
    their slots, and with them the pages that the parent still reads.
    """
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))
