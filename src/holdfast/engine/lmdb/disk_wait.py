"""Waits for the disk, for processes that append to one log.

A process releases the lease as soon as its record is appended, so that others run and append while
it waits. One process at a time syncs, and that covers what all of them have appended before: the
others find it done when it is their turn. No commit is acknowledged, and no view shows it, before
it is on disk. A transaction that has read an unsynced commit waits too, even if it only reads, or
fails.

If a sync fails, nobody knows what is on disk. Then one LMDB commit writes everything that was
appended into LMDB's file; if that fails too, the records are withdrawn, and every waiting caller
gets the error.
"""

import errno
import os
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from holdfast.engine.folder import Folder
from holdfast.engine.late_interrupts import MAX_INTERRUPTS, Interrupt, is_of_system
from holdfast.engine.lmdb.log_lease import LogLease
from holdfast.engine.lmdb.redo_log import BEGIN, RedoLog
from holdfast.engine.lmdb.shared_state import SharedState
from holdfast.engine.lmdb.unflushed_commits import UnflushedCommits
from holdfast.engine.lmdb.write_buffers import CommittedBuffer
from holdfast.errors import HoldfastError, StoreFull

Publish = Callable[[], None]
Write = Callable[[None, Publish], Interrupt]


class DiskWait:
    """The waits of one process. Its methods are called with the overlay's lock."""

    def __init__(
        self,
        env: Any,
        folder: Folder,
        log: RedoLog,
        shared_state: SharedState,
        *,
        lease: LogLease,
        unflushed: UnflushedCommits,
        synced: bool,
    ) -> None:
        self._env = env
        self._folder = folder
        self._log = log
        self._shared_state = shared_state
        self._lease = lease
        self._unflushed = unflushed
        self._synced = synced

    def publish(self, base: CommittedBuffer | None, publish: Publish, write: Write) -> Interrupt:
        """Calls `publish` once everything in the base is on disk, whichever process wrote it;
        releases the lease before that. Returns the exception of a signal handler that came
        meanwhile.

        `write` writes the base into LMDB's file. Without a base, LMDB has everything.
        """
        if not self._synced or base is None or base.end == BEGIN:
            publish()
            return None
        above, end = base.above, base.end
        interrupt: Interrupt = None
        interrupts = 0
        while True:
            try:
                self._lease.release()
                self._sync(above, end)
                publish()
                return interrupt
            except BaseException as error:
                if is_of_system(error):
                    return self._flush_unsynced_records(above, end, publish, write) or interrupt
                if (interrupts := interrupts + 1) == MAX_INTERRUPTS:
                    raise
                interrupt = error  # too late: others may have built on this commit

    def end(self, write: Write) -> None:
        """Releases the lease after a failed transaction, once the disk has what it read: its caller
        may act on that."""
        lease = self._lease
        if not lease.taken or lease.is_kept():
            return
        try:
            with suppress(HoldfastError):
                interrupt = self.publish(self._unflushed.base, _do_nothing, write)
                if interrupt is not None:
                    raise interrupt
        finally:
            lease.release()

    def _sync(self, above: int, end: int) -> None:
        """Returns once the records up to `end` are on disk, synced by this process or another."""
        shared_state, folder = self._shared_state, self._folder
        if shared_state.is_synced(above, end):
            return
        try:
            folder.lock_syncing()
            if shared_state.is_synced(above, end):
                return
            if shared_state.failed:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            _, appended = shared_state.appended()
            try:
                self._log.sync()
            except OSError as error:
                shared_state.failed |= is_of_system(error)
                raise
            shared_state.note_synced(appended)
        finally:
            folder.unlock_syncing()

    def _flush_unsynced_records(
        self, above: int, end: int, publish: Publish, write: Write
    ) -> Interrupt:
        """Writes the records of all processes that failed to sync into LMDB's file, or withdraws
        them."""
        self._lease.note_failure()
        self._lease.acquire()
        base = self._unflushed.follow()
        if self._env.info()["last_txnid"] > above:  # another process has done it
            publish()
            return None
        try:
            if base is None or base.end < end:
                raise StoreFull(f"the disk has failed to sync {self._log.path}")
            return write(None, publish)
        except HoldfastError:
            self._shared_state.withdraw_unsynced()
            with suppress(OSError):
                self._log.invalidate(max(BEGIN, self._shared_state.published()[1]))
            self._unflushed.drop()
            raise


def _do_nothing() -> None:
    """Does nothing: a failed transaction has nothing to publish."""
