"""Commits that wait for LMDB together: the overlay of a process that has its store for itself.

An LMDB transaction of its own copies a dozen pages for every commit, and waits for the disk twice
if it has to be durable; a hundred commits in one cost hardly more. So a commit goes into memory and
into the redo log, and LMDB gets many of them at once.

    a transaction         a Buffer: its own writes
    the overlay           a Buffer: what was committed and LMDB has not yet     <-> the redo log
    LMDB's snapshot       a read transaction, opened when the overlay was empty

A flush writes the overlay into LMDB's file and begins with a new snapshot, an empty overlay and an
empty log. It changes nothing that anyone could see, so it needs nobody's turn: a transaction that
runs meanwhile stays on the snapshot and the overlay that it began with, and its writes go into the
new overlay.

Only a process that is alone may do this, as the others read LMDB's file. It holds the folder's
lease meanwhile: log_lease.py has its states. A process that comes marks the store as shared, and
waits for the lease: it gets it after the next flush, and while the mark is set all processes commit
directly to LMDB.
"""

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

import lmdb

from holdfast.engine.contract import Notice
from holdfast.engine.folder import Folder
from holdfast.engine.lmdb.disk_space import DiskSpace
from holdfast.engine.lmdb.environment import explain
from holdfast.engine.lmdb.file_writes import is_open, write_out
from holdfast.engine.lmdb.flusher import Flusher
from holdfast.engine.lmdb.log_lease import CLOSED, DEFERRING, LogLease
from holdfast.engine.lmdb.redo_log import RedoLog, Writes
from holdfast.engine.lmdb.write_buffers import CommittedBuffer, PendingCommits, TransactionBuffer
from holdfast.engine.notices import NoticeHub, bytes_of
from holdfast.engine.write_buffer import WriteBuffer
from holdfast.errors import HoldfastError, StoreFull
from holdfast.limits import (
    COMMITS_WITHOUT_LOG,
    MAX_DEFERRED_BYTES,
    MAX_DELETED_IN_OVERLAY,
    MAX_INTERVAL_WAITING_SECONDS,
    MAX_SYNC_ON_LOOP_SECONDS,
    MAX_WAITING_KEYS,
    MAX_WAITING_NOTICE_BYTES,
    MAX_WAITING_SECONDS,
    RESERVED_BYTES,
)

_MAX_EARLY_VIEWS: Final = 4
StoreNotices = Callable[[Any, list[Notice]], None]


class Overlay:
    """The overlay of one store; its lock is held during a commit or a flush.

    With `synced`, a commit waits until the disk has its record, and so does a flush: LMDB's file
    and the log survive the machine at any moment. A flush is expensive then, so views don't ask for
    one.
    """

    def __init__(
        self,
        env: Any,
        data: Any,
        *,
        folder: Folder,
        log: RedoLog,
        disk_space: DiskSpace,
        synced: bool,
        look_seconds: float,
        store_notices: StoreNotices,
        notices: NoticeHub,
        look_if_alone: Callable[[], None],
        refuse_unusable: Callable[[], None],
        note_written: Callable[[int], None],
    ) -> None:
        self._env = env
        self._data = data
        self._folder = folder
        self._log = log
        self._disk_space = disk_space
        self._synced = synced
        self._store_notices = store_notices
        self._notices = notices
        self._refuse_unusable = refuse_unusable
        self._note_written = note_written
        self._lock = threading.Lock()
        self._base: CommittedBuffer | None = None
        self._replaced: list[CommittedBuffer] = []  # by a flush, and still read by the writer
        self._running = False  # someone writes, above a base
        self._viewed = False  # someone has opened a view since the last transaction began
        self._early_views = 0  # views in a row that came after a single commit
        self._most_reserved = (4 if synced else 1) * RESERVED_BYTES
        self._without_log = COMMITS_WITHOUT_LOG if synced else 0  # still to come
        self._flushed: tuple[int, Writes] = (-1, {})  # an LMDB commit, and all that it has written
        self._lease = LogLease(
            env,
            folder,
            log,
            synced=synced,
            look_seconds=look_seconds,
            look_if_alone=look_if_alone,
        )
        self._flusher = Flusher(
            patience=MAX_WAITING_SECONDS if synced else MAX_INTERVAL_WAITING_SECONDS,
            waiting=lambda: self._base,
            look=self._look_around,
            flush=self._flush_waiting,
        )

    # --- for the leader of a group ---------------------------------------------------------------

    def begin(self) -> CommittedBuffer | None:
        """Returns what a transaction may be stacked on, or None: then it has to commit directly."""
        # In this order, and without the lock: `_hand_over` takes the base away before it looks if
        # someone is running.
        self._running = True
        base = self._base
        if base is not None and self._lease.state is DEFERRING:
            return base
        return self._begin()

    def is_ready(self) -> bool:
        """Returns whether a short commit would only append to the log, and wait for no one."""
        base, log = self._base, self._log
        return (
            base is not None
            and self._lease.state is DEFERRING
            and not (base.due or self._lock.locked())
            and log.position + MAX_DEFERRED_BYTES <= log.end
            and log.sync_seconds < MAX_SYNC_ON_LOOP_SECONDS
        )

    def _begin(self) -> CommittedBuffer | None:
        with self._lock:
            self._running = False
            self._end()
            if not self._lease.may_defer():
                self._hand_over()
                return None
            if self._without_log:
                self._without_log -= 1  # a short program needs no log, and does not pay for one
                return None
            if self._early_views >= _MAX_EARLY_VIEWS and self._base is None:
                # Where every commit is read at once, deferring it only costs time.
                if self._viewed:
                    self._viewed = False
                    return None
                self._early_views = 0
                self._disk_space.forget()
            if self._base is None and not self._open_base():
                return None
            self._running = True
            return self._base

    def commit(
        self, tx: TransactionBuffer, publish: Callable[[], None], *, flushes: bool = True
    ) -> bool:
        """Commits a transaction that `begin` was called for, and calls `publish` as soon as that
        is done. Says whether Ctrl-C struck when it was too late to undo it.

        Without `flushes` a flush that is due is left to the next commit.
        """
        if self._lease.state is CLOSED:
            self._refuse_unusable()  # the work has forked
        with self._lock:
            # A process that is alone tells no one else: what nobody here listens to is not kept.
            # `_defer` looks more closely, at who wants which.
            if tx.notices and not self._notices.is_heard():
                tx.notices = []
            writes, log = tx.written, self._log
            if writes and not tx.cleared and self._base is not None:
                record = log.record(writes)
                size = len(record)
                if (
                    size <= MAX_DEFERRED_BYTES
                    and log.position + size <= log.end
                    and self._disk_space.take(len(writes), size)
                ):
                    interrupted = self._defer(tx, record, publish, flushes)
                else:
                    interrupted = self._commit(tx, publish)
            else:
                interrupted = self._commit(tx, publish)
            self._running = False
            if self._replaced:
                self._end()
        if tx.notices:
            self._notices.wake()
        return interrupted

    def end(self) -> None:
        """Ends a transaction that is not committed."""
        with self._lock:
            self._running = False
            self._end()

    def _commit(self, tx: TransactionBuffer, publish: Callable[[], None]) -> bool:
        """Commits what has nothing to write, or too much for the overlay as it is."""
        writes, log = tx.written, self._log
        if not (writes or tx.notices or tx.later_notices or tx.cleared):
            publish()
            return False
        if tx.cleared or (self._base is None and not self._open_base()):
            return self._commit_directly(tx, publish)
        if not writes:
            return self._defer(tx, None, publish)
        record = log.record(writes)
        if len(record) > MAX_DEFERRED_BYTES:
            return self._commit_directly(tx, publish)
        if log.position + len(record) > log.end:
            self._flush()
            if not self._open_base():
                return self._commit_directly(tx, publish)
            record = log.record(writes)
        if not self._disk_space.take(len(writes), len(record)):
            return self._commit_directly(tx, publish)
        return self._defer(tx, record, publish)

    def _defer(
        self,
        tx: TransactionBuffer,
        record: bytes | None,
        publish: Callable[[], None],
        flushes: bool = True,
    ) -> bool:
        base, log = self._base, self._log
        assert base is not None
        position = log.position
        noted = len(base.notices)
        interrupted = False
        take = base.take if self._synced else base.take_unseen
        while True:
            try:
                if record is not None:
                    log.write(record, position)
                take(tx)
                # Only now that all can see the commit: a subscriber that comes after this look
                # reads what is there after it.
                if tx.later_notices:
                    tx.make_notices(self._notices.may_want)
                if tx.notices:
                    tx.notices = self._notices.heard(tx.notices)
                    base.notices[noted:] = tx.notices
                    base.notice_bytes += sum([bytes_of(notice) for notice in tx.notices])
                publish()
                break
            except KeyboardInterrupt:
                # None of it can be undone, and all of it can be done again.
                interrupted = True
                take = base.take_again
            except OSError:
                return self._commit_without_log(tx, position, publish) or interrupted
        if (
            base.due
            or self._disk_space.needed > self._most_reserved
            or base.deleted > MAX_DELETED_IN_OVERLAY
            or len(base.notices) > MAX_WAITING_KEYS
            or base.notice_bytes > MAX_WAITING_NOTICE_BYTES
            or (self._synced and len(base.written) > MAX_WAITING_KEYS)
        ):
            base.due = True
            if not flushes:
                return interrupted
            try:
                self._flush()
            except KeyboardInterrupt:
                interrupted = True
            except HoldfastError:
                pass  # this one is acknowledged; the next one that needs space gets the error
        return interrupted

    def _commit_without_log(
        self, tx: TransactionBuffer, position: int, publish: Callable[[], None]
    ) -> bool:
        """The disk has not taken a record, or does not say if it has: nobody may rely on the log
        from now on. LMDB gets what waits together with `tx`, which makes all records void."""
        self._lease.note_failure()
        with suppress(OSError):
            self._log.spoil(position)
        return self._commit_directly(tx, publish)

    def _commit_directly(self, tx: TransactionBuffer, publish: Callable[[], None]) -> bool:
        """Commits what is too large for the overlay, or has to be in LMDB's file at once, together
        with all that waits."""
        tx.make_notices(lambda topics: self._notices.is_heard())
        interrupted = self._write(tx, publish)
        self._flushed = (-1, {})  # it has written more than what waited
        self._disk_space.forget()
        return interrupted

    def _end(self) -> None:
        while self._replaced:
            self._replaced.pop().txn.abort()

    # --- flushing --------------------------------------------------------------------------------

    def is_pending(self) -> bool:
        """Returns whether LMDB lacks something. Read without the lock: after a commit has
        returned, it is seen here."""
        base = self._base
        return base is not None and len(base.written) > 0

    def notices(self) -> tuple[int, list[Notice]]:
        """Returns the notices of pending commits, and the LMDB commit that they follow."""
        base = self._base
        return (-1, []) if base is None else (base.above, base.notices)

    def flush(self) -> None:
        """Writes all that was committed into LMDB's file. It may find the disk full."""
        if self.is_pending():
            with self._lock:
                self._flush()

    def look(self) -> PendingCommits | None:
        """Returns what a view must read besides a snapshot of LMDB that it takes after this. If
        that snapshot is newer than `above`, it has all of it."""
        if self._synced:
            base = self._base
            return base.freeze() if base is not None and base.written else None
        self._viewed = True
        if self.is_pending():
            with self._lock:
                base = self._base
                if base is not None:
                    self._early_views = self._early_views + 1 if base.commits == 1 else 0
                    try:
                        self._flush()
                    except StoreFull:
                        return base.freeze()  # reading goes on where the disk is full
        return None

    def _flush(self) -> None:
        # The log may hold what has left the overlay again: it has to be reset all the same.
        base = self._base
        if (
            self._lease.state is CLOSED
            or base is None
            or (self._log.is_empty() and not base.notices)
        ):
            return
        if self._write(None, lambda: None):
            raise KeyboardInterrupt

    def _write(self, tx: WriteBuffer | None, publish: Callable[[], None]) -> bool:
        """Writes what waits, and a transaction above it, into LMDB's file, in one LMDB commit: with
        it all records of the log are void. Says whether Ctrl-C struck when it was too late to undo
        it."""
        try:
            with self._folder.write_turn:
                txn = self._env.begin(db=self._data, write=True)
        except lmdb.Error as error:
            raise explain(error, self._folder.path) from error
        try:
            keys = self._write_out(txn, tx)
            txn.commit()
            self._restart(publish)
            self._note_written(keys)
        except KeyboardInterrupt:
            if is_open(txn):
                txn.abort()
                raise
            self._restart(publish)
            return True
        except lmdb.Error as error:
            txn.abort()
            raise explain(error, self._folder.path) from error
        except BaseException:
            txn.abort()
            raise
        return False

    def _write_out(self, txn: Any, tx: WriteBuffer | None) -> int:
        """Writes what waits, and a transaction above it; returns how many keys that were."""
        keys = 0
        notices = [] if tx is None else tx.notices
        # LMDB makes no commit of nothing, and records that left nothing must be void all the same.
        touch = False
        if self._base is not None:
            notices = self._base.notices + notices
            touch = not self._base.written and not self._log.is_empty()
            write_out(txn, self._base)
            keys += len(self._base.written)
        if tx is not None:
            write_out(txn, tx)
            keys += len(tx.written)
        if notices or touch:
            self._store_notices(txn, notices)
        return keys

    def _restart(self, publish: Callable[[], None]) -> None:
        """Finishes after a commit to LMDB. It can be called again."""
        self._log.empty()
        self._lease.note_commit()
        publish()
        base, self._base = self._base, None
        if base is not None:
            if self._lease.is_held():
                self._flushed = (self._lease.known, base.written)
            if self._running:
                self._replaced.append(base)
            else:
                base.txn.abort()
        self._disk_space.used()

    # --- the lease -------------------------------------------------------------------------------

    def _open_base(self) -> bool:
        if not self._lease.is_held() and not self._take_lease():
            return False
        try:
            txn = self._env.begin(db=self._data)
        except lmdb.ReadersFullError:
            return False  # views have taken all places of readers; a direct commit needs none
        self._base = CommittedBuffer(txn, time.monotonic())
        flushed, written = self._flushed
        if flushed == self._base.above:
            # Nobody has written since: what is there is known, and most is soon asked for again.
            self._base.seen = written.copy()
            self._flushed = (-1, {})
        self._log.restart(self._base.above)
        return True

    def _take_lease(self) -> bool:
        if not self._lease.take():
            return False
        self._disk_space.forget()
        self._flusher.wake()
        return True

    def _hand_over(self) -> None:
        """Hands the lease to a process that waits for it, unless a commit is running."""
        if not self._lease.is_held() or self._running:
            return
        self._flush()
        base, self._base = self._base, None
        if self._running:  # begun in this moment, and perhaps above it
            self._base = base
            return
        if base is not None:
            base.txn.abort()
        self._lease.leave()

    def _look_around(self) -> None:
        """Called by the flusher's thread, and takes the lock only if there is something to note."""
        if self._lease.others_have_come_or_gone():
            with self._lock:
                self._lease.look_for_others()
        if self._synced and self._lock.acquire(blocking=False):
            self._log.note_end()
            self._lock.release()

    def _flush_waiting(self, due: bool) -> bool:
        """Flushes what is due, or what another process waits for. Returns whether the flusher has
        to look again."""
        with self._lock:
            with suppress(HoldfastError):  # a full disk; the next try may succeed
                if due or self._lease.state is not DEFERRING:
                    self._hand_over()
                    if self._lease.is_held():
                        self._flush()
            if self._base is not None:
                self._base.due = False
            return self._lease.is_held()

    # --- its end ---------------------------------------------------------------------------------

    def close(self) -> None:
        """Writes all into LMDB's file, if it takes it; the log keeps what it does not take."""
        self._flusher.stop()
        with self._lock:
            try:
                self._flush()
            finally:
                base, self._base = self._base, None
                if base is not None:
                    base.txn.abort()
                self._lease.close()

    def forked(self) -> list[Any]:
        """Called in a child process. Returns what must never be cleaned up there."""
        self._lock = threading.Lock()
        self._lease.forked()
        bases = self._replaced if self._base is None else [*self._replaced, self._base]
        return [base.txn for base in bases]

    def settle(self) -> None:
        """Returns when every commit that began to end has ended."""
        with self._lock:
            pass
