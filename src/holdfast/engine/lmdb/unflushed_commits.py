"""The commits that LMDB's file does not have yet, those of other processes included.

A base is a snapshot of LMDB plus the commits since. A process that has the store to itself adds
only its own. Processes that share a store append to one redo log: before each transaction and each
view, a process reads the records published since it last looked and adds them to its base. The next
LMDB commit of any process makes the base obsolete, and it is dropped.

A writer follows the log while it holds the lease, so the log does not change meanwhile. It reads
everything that was appended, on disk or not, and waits for the disk afterwards (disk_wait.py). A
view follows only what is on disk, without the lease. LMDB may commit meanwhile; the view then needs
no base, because the snapshot that it takes next has everything. Only a snapshot tells whether LMDB
has committed: while a commit waits for the disk, LMDB already reports its number, but new snapshots
still show the commit before it.
"""

import threading
import time
from collections.abc import Callable
from typing import Any

import lmdb

from holdfast.engine.folder import Folder
from holdfast.engine.late_interrupts import MAX_INTERRUPTS, Interrupt, is_of_system
from holdfast.engine.lmdb.disk_space import DiskSpace
from holdfast.engine.lmdb.environment import explain
from holdfast.engine.lmdb.log_lease import CLOSED, FAILED, PASSING, LogLease
from holdfast.engine.lmdb.redo_log import BEGIN, RedoLog, SharedRecord, Writes
from holdfast.engine.lmdb.shared_state import SharedState
from holdfast.engine.lmdb.write_buffers import CommittedBuffer, TransactionBuffer, UnflushedSnapshot
from holdfast.errors import LogDamaged


class UnflushedCommits:
    """The base of one process."""

    def __init__(
        self,
        env: Any,
        data: Any,
        log: RedoLog,
        shared_state: SharedState,
        *,
        lease: LogLease,
        folder: Folder,
        disk_space: DiskSpace,
        synced: bool,
    ) -> None:
        self.base: CommittedBuffer | None = None
        # For views, while the base is ahead of the disk.
        self._synced_base: CommittedBuffer | None = None
        self.flushed: tuple[int, Writes] = (-1, {})  # an LMDB commit, and all that it has written
        self._env = env
        self._data = data
        self._log = log
        self._shared_state = shared_state
        self._disk_space = disk_space
        self._folder = folder
        self._lease = lease
        self._synced = synced
        self.on_open: Callable[[], None] = _do_nothing
        self._outdated = -1  # a published LMDB commit that is no longer the last one
        self._lock = threading.Lock()  # held briefly, and never during a wait for the disk

    def open(self) -> CommittedBuffer | None:
        """Returns the base, opened on LMDB's last commit if there is none yet; None if views occupy
        all of LMDB's reader slots. Only for the lease holder."""
        with self._lock:
            if self.base is None:
                try:
                    self._adopt(self._new_base())
                except lmdb.ReadersFullError:
                    return None  # a direct commit needs no base
            return self.base

    def _new_base(self) -> CommittedBuffer:
        try:
            txn = self._env.begin(db=self._data)
        except lmdb.ReadersFullError:
            self._env.reader_check()  # frees the slots of killed processes
            txn = self._env.begin(db=self._data)
        return CommittedBuffer(txn, time.monotonic())

    def _adopt(self, base: CommittedBuffer) -> None:
        flushed, written = self.flushed
        if flushed == base.above:
            # Nobody has written since, so these values are still current, and likely to be read.
            base.seen = written.copy()
            self.flushed = (-1, {})
        self._log.restart(base.above)
        self.base = base
        self.on_open()

    # --- following others ------------------------------------------------------------------------

    def current(self) -> CommittedBuffer | None:
        """Returns the base if it has records and is known to have them all, because nobody else has
        committed since this process did. Only for the lease holder."""
        base, lease = self.base, self._lease
        if (
            base is None
            or base.end == BEGIN
            or not lease.has_missed_nothing()
            or self._shared_state.appended() != (base.above, base.end)
        ):
            return None
        lease.note_read()
        return base

    def follow(self) -> CommittedBuffer | None:
        """Returns the base with every appended record, for the lease holder; None if LMDB has them
        all. They may not be on disk yet: a commit on top of them waits for them too."""
        with self._lock:
            last = self._env.info()["last_txnid"]  # nobody is in the middle of a commit
            above, end = (
                self._shared_state.appended() if self._synced else self._shared_state.published()
            )
            base = self.base
            if base is not None and (base.above != last or (above == last and base.end > end)):
                self._drop()  # LMDB has committed, or records that failed to sync were withdrawn
            if above == last and end > BEGIN:
                self._catch_up(above, end)
            self._lease.note_read()
            return self.base  # it may have no record yet

    def newest(self) -> CommittedBuffer | UnflushedSnapshot | None:
        """Returns the commits of all processes, for a caller that takes a snapshot of LMDB next:
        the base, if this process keeps the lease, or else what has been published."""
        lease = self._lease
        while True:
            state = lease.state
            if state is not PASSING and state is not FAILED:
                return self.base
            try:
                frozen = self.unflushed_for_view()
            except (OSError, ValueError, LogDamaged):
                if lease.state is not CLOSED:  # which closes the files, too
                    raise
            if lease.state is state:  # otherwise the published records may have been withdrawn
                return frozen

    def unflushed_for_view(self) -> UnflushedSnapshot | None:
        """Returns the published commits, for a view that takes its snapshot next. They apply only
        if that snapshot is the one that they follow; None if it will have them all."""
        above, end = self._shared_state.published()
        if end <= BEGIN or above == self._outdated:
            return None
        base = self.base
        if (
            base is not None
            and base.above == above
            and (base.end == end or (base.end > end and not self._synced))
        ):
            frozen = base.freeze()
            if frozen.end == end or not self._synced:
                return frozen
        with self._lock:
            return self._refresh_published(above, end)

    def _refresh_published(self, above: int, end: int) -> UnflushedSnapshot | None:
        base = self.base
        if base is None or base.above != above or base.end <= end:
            base = self._catch_up(above, end)
            if base is None:
                return None
            frozen = base.freeze()
            if frozen.end == end or not self._synced:
                return frozen
        # A writer of this process has read records that are not on disk yet. Views may not see
        # them, so they get a second base, which ends at what is on disk.
        synced_base = self._synced_base
        if synced_base is None or synced_base.above != above:
            self._drop_synced_base()
            synced_base = self._new_base_at(above)
            if synced_base is None:
                return None
            self._synced_base = synced_base
        return (
            synced_base.freeze()
            if synced_base.end >= end or self._read_to(synced_base, end)
            else None
        )

    def _new_base_at(self, above: int) -> CommittedBuffer | None:
        """Opens a base on LMDB's last commit; None if that is no longer `above`."""
        try:
            base = self._new_base()
        except lmdb.Error as error:
            raise explain(error, self._log.path.parent) from error
        if base.above == above:
            return base
        base.txn.abort()
        if base.above > above:
            self._outdated = above
        return None

    def _catch_up(self, above: int, end: int) -> CommittedBuffer | None:
        if self.base is not None and self.base.above < above:
            self._drop()
        base = self.base
        if base is None:
            base = self._new_base_at(above)
            if base is None:
                return None
            self._adopt(base)  # not before it is checked: a writer uses whatever base it finds
        if base.above > above:
            self._outdated = above
            return None  # a writer may be running on it
        return base if base.end >= end or self._read_to(base, end) else None

    def _read_to(self, base: CommittedBuffer, end: int) -> bool:
        """Adds the records up to `end`; False if LMDB has them by now. If this is interrupted, the
        base is dropped and read again later."""
        try:
            begin = base.end
            records = self._log.read_new(base.above, begin, end)
            if records is not None:
                base.add_records(records)
                if base is self.base:
                    self._disk_space.note(len(records.writes), end - begin)
                    self._log.position = end
        except BaseException:
            self._forget(base)
            raise
        if records is None:
            above = base.above
            self._forget(base)
            if above == self._env.info()["last_txnid"]:  # otherwise the log was reset meanwhile
                raise LogDamaged(f"{self._log.path} is damaged: a record before {end} is not whole")
        return records is not None

    # --- appending -------------------------------------------------------------------------------

    def record(self, tx: TransactionBuffer, base: CommittedBuffer) -> bytes:
        """Encodes a transaction as a record for all processes."""
        if not self._synced:
            return self._log.record(SharedRecord(tx.written, tx.notices))
        above, synced = self._shared_state.published()
        synced = synced if above == base.above else BEGIN
        return self._log.record(SharedRecord(tx.written, tx.notices, synced))

    def append(self, tx: TransactionBuffer, base: CommittedBuffer, record: bytes) -> Interrupt:
        """Appends a transaction to the log, so that writers of all processes can build on it. Only
        for the lease holder. Returns the exception that came too late to undo it; raises the
        system's error if the log fails."""
        shared_state, publish = self._shared_state, self._shared_state.publish
        if self._synced:
            publish = shared_state.append
            if shared_state.above != base.above:
                try:
                    self._folder.lock_syncing()  # its holder would record the end of older records
                    shared_state.begin(base.above)
                finally:
                    self._folder.unlock_syncing()
        position = self._log.position
        noted = len(base.notices)
        interrupt: Interrupt = None
        interrupts = 0
        while True:
            try:
                self._log.append(record, position)
                base.add_published(tx, self._log.position, noted, publish)
                return interrupt
            except BaseException as error:
                if is_of_system(error):
                    raise
                if (interrupts := interrupts + 1) == MAX_INTERRUPTS:
                    self.drop()  # the log tells whether it was appended
                    raise
                interrupt = error  # the steps can't be undone, but they can be repeated

    def wake_notice_listeners(self) -> None:
        """Wakes the processes that wait for notices."""
        self._folder.wake_notice_listeners()

    # --- its end ---------------------------------------------------------------------------------

    def drop_outdated(self) -> None:
        """Drops an obsolete base: its snapshot would keep LMDB from reusing pages."""
        with self._lock:
            if self.base is not None and self.base.above != self._env.info()["last_txnid"]:
                self._drop()
            elif self.base is None or self._shared_state.is_synced(self.base.above, self.base.end):
                self._drop_synced_base()

    def drop(self) -> None:
        with self._lock:
            self._drop()

    def _drop(self) -> None:
        base, self.base = self.base, None
        self._log.empty()  # as far as this process knows
        self._disk_space.restart()
        self._drop_synced_base()
        if base is not None:
            base.txn.abort()

    def _forget(self, base: CommittedBuffer) -> None:
        if base is self._synced_base:
            self._drop_synced_base()
        else:
            self._drop()

    def _drop_synced_base(self) -> None:
        synced_base, self._synced_base = self._synced_base, None
        if synced_base is not None:
            synced_base.txn.abort()

    def replace(self) -> CommittedBuffer | None:
        """Removes the base after a commit to LMDB, and returns it for the caller to close."""
        with self._lock:
            self._drop_synced_base()
            base, self.base = self.base, None
            return base

    def forked(self) -> list[Any]:
        """Returns the LMDB transactions that a child process must never clean up."""
        return [base.txn for base in (self.base, self._synced_base) if base is not None]


def _do_nothing() -> None:
    """Does nothing: the default until a flusher asks to be woken."""
