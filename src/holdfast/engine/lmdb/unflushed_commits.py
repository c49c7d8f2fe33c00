"""The commits that LMDB lacks, as this process knows them, and how it follows those of others.

A base is a snapshot of LMDB and the commits since. A process that is alone is the only one to add
to it. Beside other processes, the redo log has the commits of all: before a transaction and before
a view, a process reads what was published since it last looked, and adds it to its base. With the
next LMDB commit, of any process, the base is out of date, and is dropped.

A writer follows the log with the lease in hand, so nothing moves while it writes. It reads all that
was appended, on disk or not, and waits for the disk afterwards (disk_wait.py). A view follows what
the disk has, without the lease: it may find that LMDB has committed meanwhile, and then needs no
base, because a snapshot that is taken after that has it all. Only a snapshot tells: while a commit
waits for the disk, LMDB names its number already, and snapshots are still those of the commit
before it.
"""

import threading
import time
from collections.abc import Callable
from typing import Any

import lmdb

from holdfast.engine.folder import Folder
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
        self._behind: CommittedBuffer | None = (
            None  # for views, while the base is ahead of the disk
        )
        self.flushed: tuple[int, Writes] = (-1, {})  # an LMDB commit, and all that it has written
        self._env = env
        self._data = data
        self._log = log
        self._shared_state = shared_state
        self._disk_space = disk_space
        self._folder = folder
        self._lease = lease
        self._synced = synced
        self.on_open: Callable[[], None] = _tell_no_one
        self._outdated = -1  # an LMDB commit that was published, and that others have followed
        self._lock = threading.Lock()  # held for moments, and never while the disk is waited for

    def open(self) -> CommittedBuffer | None:
        """Returns the base, and opens one on LMDB's last commit if there is none; None if views
        have taken all places of readers. Only for the lease holder."""
        with self._lock:
            if self.base is None:
                try:
                    self._adopt(self._new_base())
                except lmdb.ReadersFullError:
                    return None  # a direct commit needs none
            return self.base

    def _new_base(self) -> CommittedBuffer:
        try:
            txn = self._env.begin(db=self._data)
        except lmdb.ReadersFullError:
            self._env.reader_check()  # of processes that were killed
            txn = self._env.begin(db=self._data)
        return CommittedBuffer(txn, time.monotonic())

    def _adopt(self, base: CommittedBuffer) -> None:
        flushed, written = self.flushed
        if flushed == base.above:
            # Nobody has written since: what is there is known, and most is soon asked for again.
            base.seen = written.copy()
            self.flushed = (-1, {})
        self._log.restart(base.above)
        self.base = base
        self.on_open()

    # --- following others ------------------------------------------------------------------------

    def follow(self) -> CommittedBuffer | None:
        """Returns the base with all that was appended, for the lease holder; None if LMDB has it
        all. The disk may not have it yet: what is built on it waits for the disk too."""
        with self._lock:
            last = self._env.info()["last_txnid"]  # nobody is in the middle of a commit
            above, end = (
                self._shared_state.appended() if self._synced else self._shared_state.published()
            )
            base = self.base
            if base is not None and (base.above != last or (above == last and base.end > end)):
                self._drop()  # LMDB has moved on, or what the disk did not take was taken back
            if above == last and end > BEGIN:
                self._catch_up(above, end)
            return self.base  # which may be one without any record

    def newest(self) -> CommittedBuffer | UnflushedSnapshot | None:
        """Returns all that was committed, by any process, for who takes a snapshot of LMDB after
        this: the base of a process that keeps the lease, or what views of others may show."""
        lease = self._lease
        while True:
            state = lease.state
            if state is not PASSING and state is not FAILED:
                return self.base
            try:
                frozen = self.look()
            except (OSError, ValueError, LogDamaged):
                if lease.state is not CLOSED:  # and with it the files
                    raise
            if lease.state is state:  # else what was published may be withdrawn by now
                return frozen

    def look(self) -> UnflushedSnapshot | None:
        """Returns all that was published, for a view that takes a snapshot after this. It counts
        only above that snapshot; None if the snapshot will have it all."""
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
            return self._look_again(above, end)

    def _look_again(self, above: int, end: int) -> UnflushedSnapshot | None:
        base = self.base
        if base is None or base.above != above or base.end <= end:
            base = self._catch_up(above, end)
            if base is None:
                return None
            frozen = base.freeze()
            if frozen.end == end or not self._synced:
                return frozen
        # A writer of this process has taken what the disk has not: a second base is behind it.
        behind = self._behind
        if behind is None or behind.above != above:
            self._drop_behind()
            behind = self._new_base_at(above)
            if behind is None:
                return None
            self._behind = behind
        return behind.freeze() if behind.end >= end or self._read_to(behind, end) else None

    def _new_base_at(self, above: int) -> CommittedBuffer | None:
        """Opens a base on LMDB's last commit; None if that is another one by now."""
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
            self._adopt(base)  # no sooner: a writer takes the base that it finds
        if base.above > above:
            self._outdated = above
            return None  # a writer may be running on it
        return base if base.end >= end or self._read_to(base, end) else None

    def _read_to(self, base: CommittedBuffer, end: int) -> bool:
        """Adds the records up to `end`; False if LMDB has them by now. If interrupted, the base is
        dropped, and read again."""
        try:
            records = self._log.read_new(base.above, base.end, end)
            for record in records or ():
                base.take_record(record)
                if base is self.base:
                    self._disk_space.note(len(record.writes), record.size)
            if base is self.base:
                self._log.position = end
        except BaseException:
            self._forget(base)
            raise
        if records is None:
            above = base.above
            self._forget(base)
            if above == self._env.info()["last_txnid"]:  # else it was reset meanwhile
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

    def append(self, tx: TransactionBuffer, base: CommittedBuffer, record: bytes) -> bool:
        """Appends a transaction to the log, and lets the writers of all processes build on it. Only
        for the lease holder. Says whether Ctrl-C struck; raises OSError if the log fails."""
        shared_state, publish = self._shared_state, self._shared_state.publish
        if self._synced:
            publish = shared_state.append
            if shared_state.above != base.above:
                try:
                    self._folder.lock_syncing()  # or its holder would note an end of other records
                    shared_state.begin(base.above)
                finally:
                    self._folder.unlock_syncing()
        position = self._log.position
        noted = len(base.notices)
        interrupted = False
        while True:
            try:
                self._log.append(record, position)
                base.take_published(tx, self._log.position, noted, publish)
                return interrupted
            except KeyboardInterrupt:
                interrupted = True  # none of it can be undone, and all of it can be done again
            except OSError:
                raise
            except BaseException:  # of a signal handler: whether it was appended, the log tells
                self.drop()
                raise

    def tell_of_notices(self) -> None:
        """Wakes the processes that wait for notices."""
        self._folder.tell_of_notices()

    # --- its end ---------------------------------------------------------------------------------

    def drop_outdated(self) -> None:
        """Drops a base that LMDB has outlived: its snapshot would keep LMDB from reusing pages."""
        with self._lock:
            if self.base is not None and self.base.above != self._env.info()["last_txnid"]:
                self._drop()
            elif self.base is None or self._shared_state.is_synced(self.base.above, self.base.end):
                self._drop_behind()

    def drop(self) -> None:
        with self._lock:
            self._drop()

    def _drop(self) -> None:
        base, self.base = self.base, None
        self._log.empty()  # as far as this process knows
        self._disk_space.restart()
        self._drop_behind()
        if base is not None:
            base.txn.abort()

    def _forget(self, base: CommittedBuffer) -> None:
        if base is self._behind:
            self._drop_behind()
        else:
            self._drop()

    def _drop_behind(self) -> None:
        behind, self._behind = self._behind, None
        if behind is not None:
            behind.txn.abort()

    def replace(self) -> CommittedBuffer | None:
        """Takes the base away after a commit to LMDB, and returns it to be closed."""
        with self._lock:
            self._drop_behind()
            base, self.base = self.base, None
            return base

    def forked(self) -> list[Any]:
        """Returns what must never be cleaned up in a child process."""
        return [base.txn for base in (self.base, self._behind) if base is not None]


def _tell_no_one() -> None:
    """Does nothing, until there is someone who drops what is outdated."""
