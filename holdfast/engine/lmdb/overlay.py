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
lease meanwhile. A process that comes marks the store as shared, and waits for the lease: it gets it
after the next flush, and as long as the mark stands all commit directly to LMDB.
"""

import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple, Protocol

import lmdb

from holdfast.engine.buffer import NO_KEYS, NOTHING_CLEARED, Buffer, Pair, Range, check_range
from holdfast.engine.contract import Notice, Reader
from holdfast.engine.folder import Folder
from holdfast.engine.lmdb.environment import explain
from holdfast.engine.lmdb.redo import RedoLog, Writes
from holdfast.engine.lmdb.room import Room
from holdfast.engine.lmdb.transaction import LmdbReader, LmdbTransaction, LmdbView, OnlyReads
from holdfast.engine.notices import NoticeHub
from holdfast.errors import HoldfastError, StoreFull
from holdfast.limits import (
    CLEARED_INTO_OVERLAY,
    COMMITS_WITHOUT_LOG,
    FEW_DELETED,
    FLUSH_SECONDS,
    MAX_DEFERRED_BYTES,
    MAX_DELETED_IN_OVERLAY,
    MAX_SEEN_BYTES,
    MAX_SEEN_IN_OVERLAY,
    MAX_WAITING_KEYS,
    MAX_WAITING_SECONDS,
    RESERVED_BYTES,
)

_HASTY_VIEWS: Final = 4
_NOTHING: Final[Writes] = {}
StoreNotices = Callable[[Any, list[Notice]], None]


class Below(Reader, Protocol):
    """What a transaction or the overlay may be stacked on."""

    def first(self, begin: bytes, end: bytes, reverse: bool) -> Pair | None: ...


class Draft(Buffer):
    """The writes of one transaction, or of one group, above the overlay."""

    __slots__ = ("_committed", "_seen")

    _below: Below

    def __init__(
        self,
        below: Below,
        space: bytes,
        now: float,
        committed: Writes = _NOTHING,
        seen: Writes = _NOTHING,
    ) -> None:
        # What makes a buffer, and what the reader below would look at first.
        self._below = below
        self.space = space
        self.now = now
        self.written = {}
        self.deletes = False
        self.cleared = NOTHING_CLEARED
        self.notices = []
        self._keys = NO_KEYS
        self._clears = 0
        self._committed = committed
        self._seen = seen

    def get(self, key: bytes) -> bytes | None:
        written = self.written
        if key in written:
            return written[key]
        if self.cleared and self._is_cleared(key):
            return None
        if key in self._committed:
            return self._committed[key]
        if key in self._seen:
            return self._seen[key]
        return self._below.get(key)

    def first(self, begin: bytes, end: bytes, reverse: bool) -> Pair | None:
        if self.written or self.cleared:
            return super().first(begin, end, reverse)
        return self._below.first(begin, end, reverse)

    def clear(self, begin: bytes, end: bytes) -> None:
        """Deletes what there is, if it is little: an overlay without cleared ranges reads faster,
        and what LMDB will need for it is known."""
        if begin < end and not self.cleared:
            check_range(begin, end, self.space)
            found = list(self.scan(begin, end, limit=CLEARED_INTO_OVERLAY + 1))
            if len(found) <= CLEARED_INTO_OVERLAY:
                for key, _ in found:
                    self.delete(key)
                return
        super().clear(begin, end)


class _Stacked(Buffer):
    """What waits for LMDB, above a snapshot of it."""

    __slots__ = ()

    _below: LmdbReader

    def scan(
        self, begin: bytes, end: bytes, *, limit: int | None = None, reverse: bool = False
    ) -> Iterator[Pair]:
        keys = self._in_order()
        place = bisect_left(keys, begin)
        if place == len(keys) or keys[place] >= end:
            return self._below.scan(begin, end, limit=limit, reverse=reverse)
        return super().scan(begin, end, limit=limit, reverse=reverse)


class Waiting(NamedTuple):
    """What waits at one moment, for views. Neither the dict nor the list ever changes."""

    above: int  # the LMDB commit
    written: Writes
    keys: list[bytes]


class WaitingView(OnlyReads, _Stacked):
    """A view that reads what waits, too."""

    __slots__ = ()

    def __init__(self, view: LmdbView, waiting: Waiting) -> None:
        # What makes a buffer, but for what a view never has: views are many.
        self._below = view
        self.space = view.space
        self.now = view.now
        _, self.written, self._keys = waiting
        self.cleared = NOTHING_CLEARED
        self._clears = 0

    def get(self, key: bytes) -> bytes | None:
        written = self.written
        return written[key] if key in written else self._below.get(key)

    def _in_order(self) -> list[bytes]:
        return self._keys


class Base(_Stacked):
    """A snapshot of LMDB, and what was committed since."""

    __slots__ = (
        "_bare",
        "_lock",
        "_waiting",
        "above",
        "commits",
        "deleted",
        "seen",
        "since",
        "txn",
    )

    def __init__(self, txn: Any) -> None:
        super().__init__(LmdbReader(txn, b"", 0.0), b"", 0.0)
        self.txn = txn
        self.above: int = txn.id()
        self.since = time.monotonic()
        self._waiting: Waiting | None = None  # made for the first view that asks
        self._lock = threading.RLock()  # held for moments: views freeze what others change
        self.commits = 0
        self.deleted = 0  # keys that hide one of the snapshot: every scan has to pass them
        self._bare: Range | None = None  # a range in which there is nothing
        self.seen: Writes = {}  # what was read of the snapshot

    def get(self, key: bytes) -> bytes | None:
        """What is read in each transaction is read from LMDB once: it lets go of Python's lock
        for every get, and whoever takes it then has to wait for the turn of the one who reads."""
        written = self.written
        if key in written:
            return written[key]
        seen = self.seen
        if key in seen:
            return seen[key]
        value = self._below.get(key)
        if len(seen) < MAX_SEEN_IN_OVERLAY and (value is None or len(value) <= MAX_SEEN_BYTES):
            seen[key] = value
        return value

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        return [self.get(key) for key in keys]

    def first(self, begin: bytes, end: bytes, reverse: bool) -> Pair | None:
        """Who takes the first of a range again and again leaves deleted keys behind, and they are
        passed once."""
        keys = self._keys if len(self._keys) == len(self.written) else self._in_order()
        bare = self._bare
        start = bare[1] if bare is not None and bare[0] == begin and not reverse else begin
        place = bisect_left(keys, start)
        pair: Pair | None
        if place == len(keys) or keys[place] >= end:
            pair = self._below.first(start, end, reverse) if start < end else None
        else:
            pair = super().first(start, end, reverse)
        if self.deleted > FEW_DELETED and not reverse:
            self._bare = begin, max(start, end if pair is None else pair[0])
        return pair

    def freeze(self) -> Waiting:
        """What waits now; the same for all views until the next commit."""
        waiting = self._waiting
        if waiting is None:
            with self._lock:
                keys = self._in_order()
                waiting = self._waiting = Waiting(self.above, self.written.copy(), keys)
        return waiting

    def _in_order(self) -> list[bytes]:
        if len(self._keys) != len(self.written):
            with self._lock:
                super()._in_order()
        return self._keys

    def take(self, other: Buffer) -> None:
        with self._lock:
            self.take_unseen(other)

    def take_unseen(self, other: Buffer) -> None:
        """The same where no view can come between."""
        if self._waiting is not None:
            self._keys = self._keys.copy()  # views keep theirs
            self._waiting = None
        written = other.written
        self.written.update(written)  # nothing was cleared: that is for LMDB itself
        self.commits += 1
        if self._bare is not None:
            begin, end = self._bare
            for key in written:
                if begin <= key < end:
                    self._bare = None
                    break
        if other.deletes:
            seen, below = self.seen, self._below.get
            for key, value in written.items():
                if value is None:
                    if (seen[key] if key in seen else below(key)) is None:
                        self._drop(key)  # put and deleted, and LMDB never hears of it
                    else:
                        self.deleted += 1

    def take_again(self, other: Buffer) -> None:
        """Takes a buffer whose taking was interrupted."""
        with self._lock:
            self._keys = []
            self.take_unseen(other)

    def _drop(self, key: bytes) -> None:
        keys = self._keys
        place = bisect_left(keys, key)
        if place < len(keys) and keys[place] == key:
            del keys[place]
        self.written.pop(key, None)


class Overlay:
    """Everything about it; its lock is held for the length of a commit or of a flush.

    With `synced`, a commit waits until the disk has its record, and so does a flush: LMDB's file
    and the log survive the machine at any moment. As a flush is dear then, views don't ask for one.
    """

    def __init__(
        self,
        env: Any,
        data: Any,
        *,
        folder: Folder,
        log: RedoLog,
        room: Room,
        synced: bool,
        look_seconds: float,
        store_notices: StoreNotices,
        notices: NoticeHub,
        look_if_alone: Callable[[], None],
        refuse_unusable: Callable[[], None],
    ) -> None:
        self._env = env
        self._data = data
        self._folder = folder
        self._log = log
        self._room = room
        self._synced = synced
        self._look_seconds = look_seconds
        self._store_notices = store_notices
        self._notices = notices
        self._look_if_alone = look_if_alone
        self._refuse_unusable = refuse_unusable
        self._lock = threading.Lock()
        self._base: Base | None = None
        self._replaced: list[Base] = []  # by a flush, and still read by the one who writes
        self._leased = False
        self._running = False  # someone writes, above a base
        self._hindered = False  # others want to open the store, or the log fails
        self._due = False  # what waits has waited long enough
        self._looked = False  # someone has opened a view since the last transaction began
        self._hasty = 0  # views in a row that came after a single commit
        self._most_reserved = (4 if synced else 1) * RESERVED_BYTES
        self._patience = MAX_WAITING_SECONDS if synced else 0.0
        self._without_log = COMMITS_WITHOUT_LOG if synced else 0  # still to come
        self._next_look = 0.0
        self._known = -1  # the last LMDB commit that is known to be on disk
        self._prepared = False  # the log has all its blocks
        self._broken = False  # the log could not be written to, and never is again
        self.closed = False
        self._armed = threading.Event()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    # --- for whoever has the turn ----------------------------------------------------------------

    def begin(self) -> Base | None:
        """What a transaction may be stacked on, or None: then it has to commit directly."""
        # In this order, and without the lock: who takes the base away does so before it looks if
        # someone is running.
        self._running = True
        base = self._base
        return base if base is not None and not self._hindered else self._begin()

    def _begin(self) -> Base | None:
        with self._lock:
            self._running = False
            self._end()
            if self._is_in_the_way():
                self._hand_over()
                return None
            if self._without_log:
                self._without_log -= 1  # a short program needs no log, and does not pay for one
                return None
            if self._hasty >= _HASTY_VIEWS and self._base is None:
                # Where every commit is looked at, waiting for company is only a detour.
                if self._looked:
                    self._looked = False
                    return None
                self._hasty = 0
                self._room.forget()
            if self._base is None and not self._open_base():
                return None
            self._running = True
            return self._base

    def _is_in_the_way(self) -> bool:
        """Whether others have the store open, or the log fails: then nothing may wait."""
        if self._broken:
            return True
        if not self._log.shared:
            return False
        now = time.monotonic()
        if not self._leased and now >= self._next_look:
            self._next_look = now + self._look_seconds
            self._look_if_alone()
        return self._log.shared

    def commit(self, tx: Buffer, publish: Callable[[], None]) -> bool:
        """Commits a transaction that `begin` was called for, and calls `publish` as soon as that
        is done. Says whether Ctrl-C struck when it was too late to undo it."""
        if self.closed:
            self._refuse_unusable()  # the work has forked
        with self._lock:
            # A process that is alone tells no one else: what nobody here listens to is not kept.
            if tx.notices and not self._notices.is_heard():
                tx.notices = []
            writes, log = tx.written, self._log
            if writes and not tx.cleared and self._base is not None:
                record = log.record(writes)
                size = len(record)
                if (
                    size <= MAX_DEFERRED_BYTES
                    and log.position + size <= log.end
                    and self._room.take(len(writes), size)
                ):
                    interrupted = self._defer(tx, record, publish)
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

    def _commit(self, tx: Buffer, publish: Callable[[], None]) -> bool:
        """Commits what has nothing to write, or too much for the overlay as it is."""
        writes, log = tx.written, self._log
        if not writes and not tx.notices and not tx.cleared:
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
        if not self._room.take(len(writes), len(record)):
            return self._commit_directly(tx, publish)
        return self._defer(tx, record, publish)

    def _defer(self, tx: Buffer, record: bytes | None, publish: Callable[[], None]) -> bool:
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
                if tx.notices:
                    base.notices[noted:] = tx.notices
                publish()
                break
            except KeyboardInterrupt:
                # None of it can be undone, and all of it can be done again.
                interrupted = True
                take = base.take_again
            except OSError:
                return self._commit_without_log(tx, position, publish) or interrupted
        if (
            self._due
            or self._room.needed > self._most_reserved
            or base.deleted > MAX_DELETED_IN_OVERLAY
            or len(base.notices) > MAX_WAITING_KEYS
            or (self._synced and len(base.written) > MAX_WAITING_KEYS)
        ):
            try:
                self._flush()
            except KeyboardInterrupt:
                interrupted = True
            except HoldfastError:
                pass  # this one is acknowledged; the next one that needs the room hears of it
        return interrupted

    def _commit_without_log(self, tx: Buffer, position: int, publish: Callable[[], None]) -> bool:
        """The disk has not taken a record, or does not say if it has: nobody may rely on the log
        from now on. LMDB gets what waits together with `tx`, which makes all records void."""
        self._broken = self._hindered = True
        with suppress(OSError):
            self._log.spoil(position)
        return self._commit_directly(tx, publish)

    def _commit_directly(self, tx: Buffer, publish: Callable[[], None]) -> bool:
        """Commits what is too large for the overlay, or has to be in LMDB's file at once, together
        with all that waits."""
        interrupted = self._write(tx, publish)
        self._room.forget()
        return interrupted

    def _end(self) -> None:
        while self._replaced:
            self._replaced.pop().txn.abort()

    # --- flushing --------------------------------------------------------------------------------

    def is_pending(self) -> bool:
        """Whether LMDB lacks something. Read without the lock: whoever saw a commit return sees
        it here."""
        base = self._base
        return base is not None and len(base.written) > 0

    def notices(self) -> tuple[int, list[Notice]]:
        """Those of the commits that wait, and the LMDB commit that they stand above."""
        base = self._base
        return (-1, []) if base is None else (base.above, base.notices)

    def flush(self) -> None:
        """Writes all that was committed into LMDB's file. It may find the disk full."""
        if self.is_pending():
            with self._lock:
                self._flush()

    def look(self) -> Waiting | None:
        """What a view must read besides a snapshot of LMDB that it takes after this. If that turns
        out to be newer than `above`, it has all of it."""
        if self._synced:
            base = self._base
            return base.freeze() if base is not None and base.written else None
        self._looked = True
        if self.is_pending():
            with self._lock:
                base = self._base
                if base is not None:
                    self._hasty = self._hasty + 1 if base.commits == 1 else 0
                    try:
                        self._flush()
                    except StoreFull:
                        return base.freeze()  # reading goes on where the disk is full
        return None

    def _flush(self) -> None:
        # The log may hold what has left the overlay again: it has to begin anew all the same.
        base = self._base
        if self.closed or base is None or (self._log.is_empty() and not base.notices):
            return
        if self._write(None, lambda: None):
            raise KeyboardInterrupt

    def _write(self, tx: Buffer | None, publish: Callable[[], None]) -> bool:
        """Writes what waits, and a transaction above it, into LMDB's file, in one LMDB commit: with
        it all records of the log are void. Says whether Ctrl-C struck when it was too late to undo
        it."""
        try:
            txn = self._env.begin(db=self._data, write=True)
        except lmdb.Error as error:
            raise explain(error, self._folder.path) from error
        try:
            self._write_out(txn, tx)
            txn.commit()
            self._begin_anew(publish)
        except KeyboardInterrupt:
            if is_open(txn):
                txn.abort()
                raise
            self._begin_anew(publish)
            return True
        except lmdb.Error as error:
            txn.abort()
            raise explain(error, self._folder.path) from error
        except BaseException:
            txn.abort()
            raise
        return False

    def _write_out(self, txn: Any, tx: Buffer | None) -> None:
        notices = [] if tx is None else tx.notices
        # LMDB makes no commit of nothing, and records that left nothing must be void all the same.
        touch = False
        if self._base is not None:
            notices = self._base.notices + notices
            touch = not self._base.written and not self._log.is_empty()
            write_out(txn, self._base)
        if tx is not None:
            write_out(txn, tx)
        if notices or touch:
            self._store_notices(txn, notices)

    def _begin_anew(self, publish: Callable[[], None]) -> None:
        """What follows a commit to LMDB. It can be done again."""
        self._log.empty()
        if self._leased:
            self._known = self._env.info()["last_txnid"]
        publish()
        base, self._base = self._base, None
        self._due = False
        if base is not None:
            if self._running:
                self._replaced.append(base)
            else:
                base.txn.abort()
        self._room.used()

    # --- the lease -------------------------------------------------------------------------------

    def _open_base(self) -> bool:
        if self.closed or (not self._leased and not self._take_lease()):
            return False
        try:
            txn = self._env.begin(db=self._data)
        except lmdb.ReadersFullError:
            return False  # all places are taken by views; a writer needs none
        self._base = Base(txn)
        self._log.begin_anew(self._base.above)
        return True

    def _take_lease(self) -> bool:
        if not self._folder.take_lease(wait=False):
            return False
        if self._log.shared or not self._prepare():
            self._folder.leave_lease()
            return False
        self._leased = True
        self._room.forget()
        self._arm()
        return True

    def _prepare(self) -> bool:
        """Makes sure that records may be relied on: they are worth nothing without the LMDB commit
        that they stand above, and who made that may have been killed in the middle.

        Then the meta page may be there, and its number not yet where readers look for it: the next
        writer puts that right. And the page may not be on disk.
        """
        try:
            self._env.begin(write=True).abort()
            if not self._synced:
                return True
            if self._env.info()["last_txnid"] != self._known:
                self._env.sync(True)
            if not self._prepared:
                self._log.prepare()
                self._prepared = True
        except (lmdb.Error, OSError):
            self._broken = True
            return False
        return True

    def _hand_over(self) -> None:
        """Leaves the lease to whoever waits for it, unless someone still writes."""
        if not self._leased or self._running:
            return
        self._flush()
        base, self._base = self._base, None
        if self._running:  # begun in this moment, and perhaps above it
            self._base = base
            return
        if base is not None:
            base.txn.abort()
        self._folder.leave_lease()
        self._leased = self._hindered = False

    def _arm(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="holdfast-flush", daemon=True)
            self._thread.start()
        self._armed.set()

    def _run(self) -> None:
        """Flushes what has waited long enough, and then sleeps until something waits."""
        newest, since = (0, 0), 0.0  # the last commit that was seen, and when it was seen first
        while True:
            self._armed.wait()
            self._armed.clear()  # before all else: whoever sets it from now on is heard
            if self._stopped.wait(FLUSH_SECONDS):
                return
            self._hindered = self._broken or self._log.shared
            base, now = self._base, time.monotonic()
            if base is not None and (base.above, base.commits) != newest:
                newest, since = (base.above, base.commits), now
            due = (
                base is None
                or now - base.since >= self._patience
                or now - since >= self._patience / 10  # nobody writes: who reads should pass less
            )
            if due and base is not None:
                # A busy writer does it by itself, with its next commit. If this thread did, the two
                # would take Python's lock from each other at every call of LMDB.
                self._due = True
                if self._stopped.wait(FLUSH_SECONDS / 8):
                    return
                if not self._due:
                    self._armed.set()
                    continue
            with self._lock:
                with suppress(HoldfastError):  # a full disk; the next try may succeed
                    if due or self._hindered:
                        self._hand_over()
                        if self._leased:
                            self._flush()
                self._due = False
                if self._leased:
                    self._armed.set()

    # --- its end ---------------------------------------------------------------------------------

    def close(self) -> None:
        """Writes all into LMDB's file, if it takes it; the log keeps what it does not take."""
        self._stopped.set()
        self._armed.set()
        if self._thread is not None:
            self._thread.join()
        with self._lock:
            try:
                self._flush()
            finally:
                self.closed = True
                if self._base is not None:
                    self._base.txn.abort()
                    self._base = None
                if self._leased:
                    self._folder.leave_lease()
                    self._leased = False

    def forked(self) -> list[Any]:
        """Called in a child process. Returns what must never be cleaned up there."""
        self._lock = threading.Lock()
        self.closed = True
        bases = self._replaced if self._base is None else [*self._replaced, self._base]
        return [base.txn for base in bases]

    def settle(self) -> None:
        """Returns when every commit that began to end has ended."""
        with self._lock:
            pass


def replay(env: Any, data: Any, log: RedoLog) -> None:
    """Writes what a process that was stopped has left in the log into LMDB's file."""
    if not log.counts():
        return
    writes: Writes = {}
    for each in log.records(env.info()["last_txnid"]):
        writes.update(each)
    if writes:
        with env.begin(db=data, write=True) as txn:
            _apply(LmdbTransaction(txn, b"", 0.0), writes)


def write_out(txn: Any, buffer: Buffer) -> None:
    """Makes all writes of a buffer in an LMDB transaction."""
    tx = LmdbTransaction(txn, b"", 0.0)
    for begin, end in buffer.cleared:
        tx.clear(begin, end)
    _apply(tx, buffer.written)


def _apply(tx: LmdbTransaction, writes: Writes) -> None:
    keys = sorted(writes)  # in the order of LMDB's pages
    tx.put_many([(key, value) for key in keys if (value := writes[key]) is not None])
    for key in keys:
        if writes[key] is None:
            tx.delete(key)


def is_open(txn: Any) -> bool:
    try:
        txn.id()
    except lmdb.Error:
        return False
    return True
