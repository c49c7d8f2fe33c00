"""The commits that LMDB lacks, as this process knows them, and how it follows those of others.

A base is a snapshot of LMDB and the commits since. A process that is alone is the only one to add
to it. Beside other processes, the redo log has the commits of all: before a transaction and before
a view, a process reads what was published since it last looked, and adds it to its base. With the
next LMDB commit, of any process, the base is out of date, and is dropped.

A writer follows the log with the lease in hand, so nothing moves while it writes. A view follows it
without: it may find that LMDB has committed meanwhile, and then needs no base, because a snapshot
that is taken after that has it all. Only a snapshot tells: while a commit waits for the disk, LMDB
names its number already, and snapshots are still those of the commit before it.
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
from holdfast.engine.lmdb.redo_log import BEGIN, RedoLog, Writes
from holdfast.engine.lmdb.sharing import Sharing
from holdfast.engine.lmdb.write_buffers import CommittedBuffer, TransactionBuffer
from holdfast.errors import LogDamaged


class Pending:
    """The base of one process."""

    def __init__(
        self,
        env: Any,
        data: Any,
        log: RedoLog,
        sharing: Sharing,
        *,
        lease: LogLease,
        folder: Folder,
        disk_space: DiskSpace,
    ) -> None:
        self.base: CommittedBuffer | None = None
        self.flushed: tuple[int, Writes] = (-1, {})  # an LMDB commit, and all that it has written
        self._env = env
        self._data = data
        self._log = log
        self._sharing = sharing
        self._disk_space = disk_space
        self._folder = folder
        self._lease = lease
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

    def follow(self) -> CommittedBuffer | None:
        """Returns the base with all that was published, for the lease holder; None if LMDB has it
        all."""
        with self._lock:
            last = self._env.info()["last_txnid"]  # nobody is in the middle of a commit
            if self.base is not None and self.base.above != last:
                self._drop()
            above, end = self._sharing.published()
            if above == last and end > BEGIN:
                self._catch_up(above, end)
            return self.base  # which may be one without any record

    def newest(self) -> CommittedBuffer | None:
        """Returns the base with all that was committed, by any process, for who takes a snapshot
        of LMDB after this."""
        lease = self._lease
        while True:
            state = lease.state
            if state is not PASSING and state is not FAILED:
                return self.base
            try:
                base = self.look()
            except (OSError, ValueError, LogDamaged):
                if lease.state is not CLOSED:  # and with it the files
                    raise
            if lease.state is state:  # else what was published may be withdrawn by now
                return base

    def look(self) -> CommittedBuffer | None:
        """Returns the base with all that was published, for a view that takes a snapshot after
        this. It counts only if that is the base's own; None if the snapshot will have it all."""
        above, end = self._sharing.published()
        if end <= BEGIN or above == self._outdated:
            return None
        base = self.base
        if base is not None and base.above == above and base.end >= end:
            return base
        with self._lock:
            return self._catch_up(above, end)

    def _catch_up(self, above: int, end: int) -> CommittedBuffer | None:
        if self.base is not None and self.base.above < above:
            self._drop()
        base = self.base
        if base is None:
            try:
                base = self._new_base()
            except lmdb.Error as error:
                raise explain(error, self._log.path.parent) from error
            if base.above == above:
                self._adopt(base)  # no sooner: a writer takes the base that it finds
            else:
                base.txn.abort()
        if base.above > above:
            self._outdated = above
            return None  # if it is this process's base, a writer may be running on it
        return base if base.end >= end or self._read_to(base, end) else None

    def _read_to(self, base: CommittedBuffer, end: int) -> bool:
        """Adds the records up to `end`; False if LMDB has them by now. If interrupted, the base is
        dropped, and read again."""
        try:
            records = self._log.read_new(base.end, end)
            for record in records or ():
                base.take_record(record)
                self._disk_space.note(len(record.writes), record.size)
        except BaseException:
            self._drop()
            raise
        if records is None:
            above = base.above
            self._drop()
            if above == self._env.info()["last_txnid"]:  # else it was reset meanwhile
                raise LogDamaged(f"{self._log.path} is damaged: a record before {end} is not whole")
        return records is not None

    def append(
        self,
        tx: TransactionBuffer,
        base: CommittedBuffer,
        record: bytes,
        publish: Callable[[], None],
    ) -> bool:
        """Appends a transaction to the log, lets all processes read it, and calls `publish`. Only
        for the lease holder. Says whether Ctrl-C struck; raises OSError if the log fails."""
        position = self._log.position
        noted = len(base.notices)
        interrupted = False
        while True:
            try:
                self._log.write(record, position)
                base.take_published(tx, self._log.position, noted, self._sharing.publish)
                if tx.notices:
                    self._folder.tell_of_notices()
                publish()
                return interrupted
            except KeyboardInterrupt:
                interrupted = True  # none of it can be undone, and all of it can be done again
            except OSError:
                raise
            except BaseException:  # of a signal handler: whether it was published, the log tells
                self.drop()
                raise

    def drop_outdated(self) -> None:
        """Drops a base that LMDB has outlived: its snapshot would keep LMDB from reusing pages."""
        with self._lock:
            if self.base is not None and self.base.above != self._env.info()["last_txnid"]:
                self._drop()

    def drop(self) -> None:
        with self._lock:
            self._drop()

    def _drop(self) -> None:
        base, self.base = self.base, None
        self._log.empty()  # as far as this process knows
        self._disk_space.restart()
        if base is not None:
            base.txn.abort()

    def replace(self) -> CommittedBuffer | None:
        """Takes the base away after a commit to LMDB, and returns it to be closed."""
        with self._lock:
            base, self.base = self.base, None
            return base


def _tell_no_one() -> None:
    """Does nothing, until there is someone who drops what is outdated."""
