"""The overlay: commits that are in memory and in the redo log, but not in LMDB's file yet.

One LMDB transaction per commit would copy a dozen pages and, if it has to be durable, wait for the
disk twice; a hundred commits in one LMDB transaction cost hardly more. So a commit goes into memory
and into the redo log, and LMDB gets many of them at once.

    a transaction         a buffer: its own writes
    the overlay           a buffer: commits that LMDB does not have yet         <-> the redo log
    LMDB's snapshot       a read transaction, opened when the overlay was empty

A flush writes the overlay into LMDB's file, then starts with a new snapshot, an empty overlay and
an empty log. Nobody can see the difference, so it waits for nobody: a running transaction stays on
the snapshot and the overlay that it began with, and its writes go into the new overlay.

Every commit is made under the folder's lease: log_lease.py has its states. A process that is alone
keeps it. Processes that share a store take turns, append to one log, and follow each other's
records (unflushed_commits.py).
"""

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from holdfast.engine.contract import Notice
from holdfast.engine.late_interrupts import MAX_INTERRUPTS, Interrupt, is_of_system
from holdfast.engine.lmdb.deferral_policy import DeferralPolicy
from holdfast.engine.lmdb.disk_space import DiskSpace
from holdfast.engine.lmdb.disk_wait import DiskWait, Publish
from holdfast.engine.lmdb.file_writes import FileWriter
from holdfast.engine.lmdb.flusher import Flusher
from holdfast.engine.lmdb.log_lease import CLOSED, DEFERRING, FAILED, PASSING, LogLease
from holdfast.engine.lmdb.redo_log import BEGIN, RedoLog
from holdfast.engine.lmdb.shared_state import SharedState
from holdfast.engine.lmdb.unflushed_commits import UnflushedCommits
from holdfast.engine.lmdb.write_buffers import (
    NO_LATER_NOTICES,
    CommittedBuffer,
    TransactionBuffer,
    UnflushedSnapshot,
    assume_a_listener,
)
from holdfast.engine.notices import NoticeHub
from holdfast.engine.write_buffer import WriteBuffer
from holdfast.errors import HoldfastError, StoreFull
from holdfast.limits import (
    COMMITS_BEFORE_LOG,
    MAX_DEFERRED_BYTES,
    MAX_INTERVAL_WAITING_SECONDS,
    MAX_SYNC_ON_LOOP_SECONDS,
    MAX_WAITING_SECONDS,
)


class Overlay:
    """The overlay of one store; its lock is held during a commit or a flush.

    With `synced`, commits and flushes wait until the disk has them. A flush is expensive then, so
    no view waits for one.
    """

    def __init__(
        self,
        env: Any,
        *,
        log: RedoLog,
        shared_state: SharedState,
        lease: LogLease,
        unflushed: UnflushedCommits,
        disk_wait: DiskWait,
        disk_space: DiskSpace,
        file_writer: FileWriter,
        synced: bool,
        notices: NoticeHub,
        refuse_unusable: Callable[[], None],
    ) -> None:
        self._env = env
        self._log = log
        self._shared_state = shared_state
        self._lease = lease
        self._unflushed = unflushed
        self._disk_space = disk_space
        self._file_writer = file_writer
        self._synced = synced
        self._notices = notices
        self._refuse_unusable = refuse_unusable
        self._lock = threading.Lock()
        self._replaced: list[CommittedBuffer] = []  # by a flush, and still read by the writer
        self._running = False  # someone writes, above a base
        self._listens = False  # someone of this process has subscribed to notices
        self._disk_wait = disk_wait
        without_log = COMMITS_BEFORE_LOG if synced else 0
        self._deferral = DeferralPolicy(without_log=without_log)
        self._flusher = Flusher(
            max_delay_seconds=MAX_WAITING_SECONDS if synced else MAX_INTERVAL_WAITING_SECONDS,
            waiting=lambda: unflushed.base,
            check_for_others=self._check_for_others,
            flush=self._flush_waiting,
        )
        unflushed.on_open = self._flusher.wake

    # --- for the leader of a group ---------------------------------------------------------------

    def begin(self, *, waits: bool = True) -> CommittedBuffer | None:
        """Returns the base for a transaction, or None if it has to commit directly. Either way the
        caller then calls `commit` or `end`, which release the lease if it was taken.

        Without `waits`, None means that nothing has begun.
        """
        # The order matters, as this runs without the lock: `_release_kept_lease` removes
        # the base before it checks whether someone is running.
        self._running = True
        base = self._unflushed.base
        if base is not None and self._lease.state is DEFERRING:
            return base
        self._running = False
        return self._begin() if waits else None

    def is_ready(self) -> bool:
        """Returns whether a short commit would only append to the log, without waiting."""
        base, log = self._unflushed.base, self._log
        return (
            base is not None
            and self._lease.state is DEFERRING
            and not (base.due or self._lock.locked())
            and log.position + MAX_DEFERRED_BYTES <= log.end
            and log.sync_seconds < MAX_SYNC_ON_LOOP_SECONDS
        )

    def _begin(self) -> CommittedBuffer | None:
        lease = self._lease
        with self._lock:
            if self._replaced or lease.taken:
                self._end_transaction()
                lease.note_other_processes()
                if lease.is_kept() and lease.state is not DEFERRING:
                    self._release_kept_lease()
            if lease.state is CLOSED:
                return None  # the caller finds out why
            try:
                lease.acquire()
                base = self._unflushed.current()
                if base is None or lease.state is not PASSING or not lease.is_shared():
                    base = self._choose_base()
            except BaseException:
                lease.release()
                raise
            self._running = True
            return base

    def _choose_base(self) -> CommittedBuffer | None:
        lease, unflushed = self._lease, self._unflushed
        if lease.state is DEFERRING and unflushed.base is not None:
            return unflushed.base  # another process has come, and gone again
        is_shared = lease.is_shared()
        base = unflushed.follow()
        if base is None or base.end == BEGIN:  # LMDB has all
            is_prepared = lease.is_log_prepared()
            if not self._deferral.should_defer(is_log_prepared=is_prepared, is_shared=is_shared):
                self._disk_space.forget()
                return None
            if not lease.prepare_log():
                return None
        if not is_shared and lease.state is PASSING:
            with suppress(StoreFull):
                self._flush()  # records of processes that have left; nobody reads the log from now
            if unflushed.base is None or unflushed.base.end == BEGIN:
                lease.keep()
        return unflushed.open()

    def commit(self, tx: TransactionBuffer, publish: Publish, *, flushes: bool = True) -> Interrupt:
        """Commits a transaction that `begin` was called for, and calls `publish` as soon as that
        is done. Returns the exception of a signal handler that came too late to undo the commit.

        Without `flushes` a flush that is due is left to the next commit.
        """
        lease, log, writes = self._lease, self._log, tx.written
        if lease.state is CLOSED:
            self._refuse_unusable()  # the work has forked
        with self._lock:
            try:
                base = self._unflushed.base
                if (
                    lease.state is DEFERRING
                    and writes
                    and not (tx.cleared or tx.has_large)
                    and base is not None
                ):
                    record = log.record(writes)
                    size = len(record)
                    if (
                        size <= MAX_DEFERRED_BYTES
                        and log.position + size <= log.end
                        and self._disk_space.reserve(len(writes), size)
                    ):
                        interrupt = self._defer(tx, base, record, publish)
                        if base.due or self._disk_space.should_flush:
                            return self._flush_if_due(base, flushes=flushes) or interrupt
                        return interrupt
                return self._commit_unusual(tx, publish)
            finally:
                self._running = False
                if self._replaced or lease.state is not DEFERRING:
                    self._end_transaction()

    def end(self) -> None:
        """Ends a transaction that is not committed, or was committed directly."""
        with self._lock:
            self._running = False
            self._disk_wait.end(self._write)
            self._end_transaction()

    def _end_transaction(self) -> None:
        while self._replaced:
            self._replaced.pop().txn.abort()
        self._lease.release()

    def _commit_unusual(self, tx: TransactionBuffer, publish: Publish) -> Interrupt:
        """Handles the unusual commits: those without writes, those that do not fit into the
        overlay, and those that other processes read from the log."""
        writes, log = tx.written, self._log
        if tx.notices or (tx.later_notices and self._lease.state is not DEFERRING):
            self._choose_notices(tx)
        if not (writes or tx.notices or tx.later_notices or tx.cleared):
            return self._disk_wait.publish(self._unflushed.base, publish, self._write)
        shared = self._lease.state is PASSING
        base = self._unflushed.open()
        # Not even encoded for the log if it has a large value: that holds Python's lock for long.
        if tx.cleared or tx.has_large or self._lease.state is FAILED or base is None:
            return self._commit_directly(tx, publish)
        if not writes and not shared:
            interrupt = self._defer(tx, base, None, publish)
            return self._flush_if_due(base) or interrupt
        record = self._unflushed.record(tx, base) if shared else log.record(writes)
        if len(record) > MAX_DEFERRED_BYTES:
            return self._commit_directly(tx, publish)
        if log.position + len(record) > log.end:
            self._flush()
            return self._commit_unusual(tx, publish)  # above another base
        if not self._disk_space.reserve(len(writes), len(record)):
            return self._commit_directly(tx, publish)
        interrupt = (self._share if shared else self._defer)(tx, base, record, publish)
        return self._flush_if_due(base) or interrupt

    def _share(
        self, tx: TransactionBuffer, base: CommittedBuffer, record: bytes, publish: Publish
    ) -> Interrupt:
        """Commits into the log that all processes read."""
        position = self._log.position
        try:
            interrupt = self._unflushed.append(tx, base, record)
        except OSError as error:
            if is_of_system(error):
                return self._commit_without_log(tx, position, publish)
            raise
        interrupt = self._disk_wait.publish(base, publish, self._write) or interrupt
        if tx.notices:
            self._unflushed.wake_notice_listeners()
            self._notices.wake()
        return interrupt

    def _choose_notices(self, tx: TransactionBuffer) -> None:
        """Drops notices without a subscriber. A process that is alone filters them for its own
        subscribers later, once the commit is visible."""
        if self._lease.is_kept():
            if not self._notices.has_listeners():
                tx.notices = []
        elif self._shared_state.listening:
            tx.make_notices(assume_a_listener)
        else:
            tx.notices, tx.later_notices = [], NO_LATER_NOTICES

    def _defer(
        self, tx: TransactionBuffer, base: CommittedBuffer, record: bytes | None, publish: Publish
    ) -> Interrupt:
        """Commits into the overlay and the log, which no other process reads."""
        log = self._log
        position = log.position
        noted = len(base.notices)
        interrupt: Interrupt = None
        interrupts = 0
        add = base.add_commit if self._synced else base.add_commit_unlocked
        hub = self._notices
        while True:
            try:
                if record is not None:
                    log.write(record, position)
                add(tx.written, tx.deletes)
                # Not before the commit is visible: a subscriber that comes after this check then
                # reads the committed state.
                if tx.later_notices and hub.has_listeners():
                    tx.make_notices(hub.may_want)
                if tx.notices:
                    tx.notices = hub.heard(tx.notices) if hub.has_listeners() else []
                    base.add_notices(tx.notices, noted)
                publish()
                break
            except BaseException as error:
                if is_of_system(error):
                    return self._commit_without_log(tx, position, publish) or interrupt
                if (interrupts := interrupts + 1) == MAX_INTERRUPTS:
                    raise
                # The steps can't be undone, but they can be repeated.
                interrupt, add = error, base.add_commit_again
        if tx.notices:
            hub.wake()
        return interrupt

    def _flush_if_due(self, base: CommittedBuffer, *, flushes: bool = True) -> Interrupt:
        """Flushes if enough commits wait. Returns the exception that came meanwhile."""
        base.due = base.due or self._disk_space.should_flush
        try:
            if base.due and flushes:
                self._flush_now()
        except HoldfastError:
            pass  # this commit is acknowledged; the next one that needs space gets the error
        except BaseException as error:
            return error
        return None

    def _commit_without_log(self, tx: TransactionBuffer, place: int, publish: Publish) -> Interrupt:
        """Commits `tx` after its record failed to be written, so that the log can't be trusted any
        more: LMDB gets `tx` with all waiting commits, which makes all records void."""
        self._lease.note_failure()
        with suppress(OSError):
            self._log.invalidate(place)
        return self._commit_directly(tx, publish)

    def _commit_directly(self, tx: TransactionBuffer, publish: Publish) -> Interrupt:
        """Commits a transaction to LMDB's file at once, together with all waiting commits."""
        tx.make_notices(lambda topics: self._notices.has_listeners())
        interrupt = self._write(tx, publish)
        self._unflushed.flushed = (-1, {})  # this LMDB commit holds more than the base
        self._disk_space.forget()
        if tx.notices:
            self._notices.wake()
        return interrupt

    # --- flushing --------------------------------------------------------------------------------

    def has_unflushed(self) -> bool:
        """Returns whether LMDB lacks a commit, of all commits that have returned."""
        base = self._unflushed.newest()
        return base is not None and len(base.written) > 0

    def notices(self) -> tuple[int, list[Notice]]:
        """Returns the notices of unflushed commits, and the LMDB commit that they follow."""
        base = self._unflushed.newest()
        return (-1, []) if base is None else (base.above, base.notices)

    def flush(self) -> None:
        """Writes all commits into LMDB's file. Raises `StoreFull` on a full disk."""
        if self.has_unflushed():
            with self._lock:
                self._flush_now()

    def _flush_now(self, *, wait: bool = True) -> None:
        """Flushes the commits of all processes; takes the lease for that if necessary."""
        if self._lease.taken:
            return self._flush()
        try:
            if self._lease.state is not CLOSED and self._lease.acquire(wait=wait):
                self._unflushed.follow()
                self._flush()
        finally:
            self._lease.release()

    def unflushed_for_view(self) -> UnflushedSnapshot | None:
        """Returns the commits that a view must read on top of the snapshot that it takes next. If
        that snapshot is newer than their `above`, it has all of them."""
        self._deferral.viewed = True
        unflushed = self._unflushed
        newest = unflushed.base if self._lease.state is DEFERRING else unflushed.newest()
        if newest is None or not newest.written:
            return None
        if isinstance(newest, UnflushedSnapshot):
            return newest
        if self._synced:
            return newest.freeze()
        with self._lock:  # in interval mode a flush does not wait for the disk
            base = self._unflushed.base
            if base is not None and self._lease.is_kept():  # otherwise all of it is flushed
                self._deferral.note_commits_before_view(base.commits)
                try:
                    self._flush()
                except StoreFull:
                    return base.freeze()  # reads still work on a full disk
        return None

    def _flush(self) -> None:
        # The log may hold records of keys that are no longer in the overlay; reset it anyway.
        base = self._unflushed.base
        if self._lease.state is CLOSED or base is None:
            return
        if self._log.is_empty() and not base.notices:
            return
        if (interrupt := self._write(None, lambda: None)) is not None:
            raise interrupt

    def _write(self, tx: WriteBuffer | None, publish: Publish) -> Interrupt:
        """Writes the waiting commits, and a transaction on top of them, in one LMDB commit, which
        makes all records of the log void. Returns what came too late to undo it."""
        base = self._unflushed.base
        if self._lease.state is PASSING:
            self._env.reader_check()  # snapshots of killed processes would keep pages for ever
        # Records whose writes cancelled out must become void, too.
        touch = base is not None and not base.written and not self._log.is_empty()
        buffers = [buffer for buffer in (base, tx) if buffer is not None]
        return self._file_writer.commit(buffers, touch=touch, done=lambda: self._restart(publish))

    def _restart(self, publish: Publish) -> None:
        """Starts over with an empty overlay after a commit to LMDB. It can be repeated."""
        self._log.empty()
        publish()
        base = self._unflushed.replace()
        if base is not None:
            self._unflushed.flushed = (self._env.info()["last_txnid"], base.written)
            if self._running:
                self._replaced.append(base)
            else:
                base.txn.abort()
        self._disk_space.note_flushed()

    # --- the lease -------------------------------------------------------------------------------

    def _release_kept_lease(self) -> None:
        """Stops keeping the lease, unless a commit is running."""
        if not self._lease.is_kept() or self._running:
            return
        self._flush()
        base = self._unflushed.replace()
        if self._running:  # a transaction began just now, perhaps on this base
            self._unflushed.base = base
            return
        if base is not None:
            base.txn.abort()
        self._lease.leave()

    def _check_for_others(self) -> None:
        """Looks for other processes; called by the flusher's thread."""
        if self._lease.have_other_processes_changed():
            with self._lock:
                self._lease.note_other_processes()
        if self._synced and self._lock.acquire(blocking=False):
            self._lease.note_end()
            self._lock.release()

    def _flush_waiting(self, due: bool) -> bool:
        """Flushes if it is due, or if another process waits for the lease. Returns whether the
        flusher has to look again."""
        with self._lock:
            lease = self._lease
            with suppress(HoldfastError):  # a full disk; the next try may succeed
                if lease.is_kept():
                    if due or lease.state is not DEFERRING:
                        self._release_kept_lease()
                        if lease.is_kept():
                            self._flush()
                elif not self._running:
                    self._unflushed.drop_outdated()
                    if due and self._unflushed.base is not None:
                        self._flush_now(wait=False)  # otherwise the lease holder does it later
            base = self._unflushed.base
            if base is not None and not self._running:
                base.due = False
            return lease.is_kept() or base is not None

    # --- its end ---------------------------------------------------------------------------------

    def close(self) -> None:
        """Writes all commits into LMDB's file; if that fails, they stay in the log."""
        self._flusher.stop()
        with self._lock:
            is_flushed = False
            try:
                if self._lease.is_kept() or self._unflushed.unflushed_for_view() is not None:
                    self._flush_now(wait=False)  # the lease holder has the same commits to flush
                is_flushed = True
            finally:
                self._unflushed.drop()
                self._lease.close(is_flushed=is_flushed)

    def forked(self) -> list[Any]:
        """Called in a child process. Returns the LMDB transactions that it must never clean up."""
        self._lock = threading.Lock()
        self._lease.forked()
        return [base.txn for base in self._replaced] + self._unflushed.forked()

    def settle(self) -> None:
        """Marks that someone listens, and waits for commits that may not have seen it yet."""
        with self._lock:
            if self._lease.state is CLOSED or self._listens:
                return
            self._listens = self._shared_state.listening = True
            if not self._lease.taken:
                try:
                    self._lease.acquire()
                    self._unflushed.follow()
                finally:
                    self._disk_wait.end(self._write)
