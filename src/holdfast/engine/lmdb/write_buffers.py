"""The buffers between transactions and LMDB, stacked on a snapshot while it lacks commits.

    TransactionBuffer   the writes of a transaction, or of a group of them
    CommittedBuffer     what was committed and LMDB lacks; views read it frozen, as an UnflushedView
    LMDB's snapshot

Nearly every get and put of a store on LMDB passes through here, so the usual case of each method
is its first lines.
"""

import threading
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple, Protocol

import lmdb

from holdfast.engine.contract import COUNTER, Notice, Outcome, Reader
from holdfast.engine.late_interrupts import is_of_handler
from holdfast.engine.lmdb.redo_log import BEGIN, NewRecords, Writes
from holdfast.engine.lmdb.transaction import LmdbReader, LmdbView, OnlyReads
from holdfast.engine.notices import bytes_of
from holdfast.engine.write_buffer import (
    NO_KEYS,
    NOTHING_CLEARED,
    Pair,
    Range,
    WriteBuffer,
    addressed,
    check_range,
)
from holdfast.limits import (
    MAX_CLEARED_IN_OVERLAY,
    MAX_COUNTER,
    MAX_DELETED_IN_OVERLAY,
    MAX_OVERLAY_CACHE_PAIRS,
    MAX_OVERLAY_CACHED_VALUE_BYTES,
    MAX_SKIPPED_DELETED_KEYS,
    MAX_WAITING_KEYS,
    MAX_WAITING_NOTICE_BYTES,
    MIN_COUNTER,
)

NO_WRITES: Final[Writes] = {}
_FEW_WRITTEN: Final = 8  # keys
_pack_counter, _unpack_counter = COUNTER.pack, COUNTER.unpack


class LaterNotices(NamedTuple):
    """Notices that are created on commit, and only if somebody listens."""

    position: int  # among the notices that exist already
    topic_prefix: str
    space: bytes
    make: Callable[[], list[Notice]]


NO_LATER_NOTICES: Final[list[LaterNotices]] = []  # never changed, only replaced


def assume_a_listener(topic_prefix: str) -> bool:
    """Returns True: other processes have the store open, and may subscribe to anything."""
    return True


class BaseReader(Reader, Protocol):
    """A reader that a buffer can be stacked on."""

    def first(self, begin: bytes, end: bytes, reverse: bool) -> Pair | None: ...


class TransactionBuffer(WriteBuffer):
    """The writes of one transaction, or of one group, stacked on the committed ones."""

    __slots__ = ("_committed", "_seen", "later_notices")

    _below: BaseReader

    def __init__(
        self,
        below: BaseReader,
        space: bytes,
        now: float,
        committed: Writes = NO_WRITES,
        seen: Writes = NO_WRITES,
    ) -> None:
        # All fields, set here without a call, and the dicts that the reader below checks first.
        self._below = below
        self.space = space
        self.now = now
        self.written = {}
        self.deletes = False
        self.has_large = False
        self.cleared = NOTHING_CLEARED
        self.notices = []
        self._keys = NO_KEYS
        self._clears = 0
        self._committed = committed
        self._seen = seen
        self.later_notices = NO_LATER_NOTICES

    def run(self, work: Callable[[Any], Any]) -> Outcome[Any]:
        """Runs `work` on this buffer. If it fails, the buffer may hold a part of its writes."""
        try:
            return Outcome(result=work(self))
        except (KeyboardInterrupt, lmdb.Error):
            raise
        except BaseException as error:
            if is_of_handler(error):
                raise
            return Outcome(error=error)

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

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        if self.cleared:
            return [self.get(key) for key in keys]
        written, committed, seen, below = self.written, self._committed, self._seen, self._below.get
        if not written:
            return [
                committed[key] if key in committed else seen[key] if key in seen else below(key)
                for key in keys
            ]
        return [
            written[key]
            if key in written
            else committed[key]
            if key in committed
            else seen[key]
            if key in seen
            else below(key)
            for key in keys
        ]

    def first(self, begin: bytes, end: bytes, reverse: bool) -> Pair | None:
        written = self.written
        if self.cleared or len(written) > _FEW_WRITTEN:
            return super().first(begin, end, reverse)
        for key in written:  # comparing a few keys is cheaper than sorting them
            if begin <= key < end:
                return super().first(begin, end, reverse)
        return self._below.first(begin, end, reverse)

    def add(self, key: bytes, delta: int) -> None:
        written = self.written
        if key in written:
            value = written[key]
        elif key in self._committed and not self.cleared:
            value = self._committed[key]
        else:
            value = self.get(key)
        if value is not None and len(value) == 8 and key.startswith(self.space):
            number = _unpack_counter(value)[0] + delta
            if MIN_COUNTER <= number <= MAX_COUNTER:
                written[key] = _pack_counter(number)
                return
        super().add(key, delta)

    def after_commit_many(self, topic_prefix: str, make: Callable[[], list[Notice]]) -> None:
        later = LaterNotices(len(self.notices), topic_prefix, self.space, make)
        self.later_notices = [*self.later_notices, later]

    def merge_notices(self, other: "TransactionBuffer") -> None:
        """Adds the notices of a transaction that was stacked on this one."""
        if other.later_notices:
            begin = len(self.notices)
            moved = [each._replace(position=begin + each.position) for each in other.later_notices]
            self.later_notices = self.later_notices + moved
        self.notices += other.notices

    def make_notices(self, has_listeners: Callable[[str], bool]) -> None:
        """Creates the notices that somebody listens for. If interrupted, it can be called again."""
        notices = self.notices
        for position, topic_prefix, space, make in reversed(self.later_notices):
            if has_listeners(topic_prefix):
                made = [addressed(notice, space) for notice in make()]
                notices = notices[:position] + made + notices[position:]
        self.notices, self.later_notices = notices, NO_LATER_NOTICES

    def clear(self, begin: bytes, end: bytes) -> None:
        """Deletes the keys one by one if they are few: an overlay without cleared ranges reads
        faster, and the space that LMDB will need is known."""
        if begin < end and not self.cleared:
            check_range(begin, end, self.space)
            found = list(self.scan(begin, end, limit=MAX_CLEARED_IN_OVERLAY + 1))
            if len(found) <= MAX_CLEARED_IN_OVERLAY:
                for key, _ in found:
                    self.delete(key)
                return
        super().clear(begin, end)


class _UnflushedBuffer(WriteBuffer):
    """A buffer of unflushed commits, above a snapshot of LMDB."""

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


class UnflushedSnapshot(NamedTuple):
    """The unflushed commits at one moment, for views. None of it ever changes."""

    above: int  # the LMDB commit that they follow
    written: Writes
    keys: list[bytes]
    notices: list[Notice]
    end: int  # the position in the log up to which they are included


class UnflushedView(OnlyReads, _UnflushedBuffer):
    """A view that also reads unflushed commits."""

    __slots__ = ()

    def __init__(self, view: LmdbView, waiting: UnflushedSnapshot) -> None:
        # The fields of a buffer except those that a view never uses: views are opened often.
        self._below = view
        self.space = view.space
        self.now = view.now
        _, self.written, self._keys, _, _ = waiting
        self.cleared = NOTHING_CLEARED
        self._clears = 0

    def get(self, key: bytes) -> bytes | None:
        written = self.written
        return written[key] if key in written else self._below.get(key)

    def _in_order(self) -> list[bytes]:
        return self._keys


class CommittedBuffer(_UnflushedBuffer):
    """A snapshot of LMDB, and the commits since."""

    __slots__ = (
        "_empty_range",
        "_lock",
        "_waiting",
        "above",
        "commits",
        "deleted",
        "due",
        "end",
        "notice_bytes",
        "seen",
        "since",
        "txn",
    )

    def __init__(self, txn: Any, since: float) -> None:
        super().__init__(LmdbReader(txn, b"", 0.0), b"", 0.0)
        self.txn = txn
        self.above: int = txn.id()
        self.since = since
        self._waiting: UnflushedSnapshot | None = None  # made for the first view that asks
        self._lock = threading.RLock()  # held briefly: views freeze what writers change
        self.commits = 0
        self.end = (
            BEGIN  # the position in the log up to which it is included, if processes share it
        )
        self.due = False  # has waited long enough or grown large enough: the next commit flushes it
        self.notice_bytes = 0  # the approximate size of the notices
        self.deleted = 0  # deletions of keys in the snapshot: every scan has to skip them
        self._empty_range: Range | None = None  # a range that is known to be empty
        self.seen: Writes = {}  # values that were read from the snapshot

    def get(self, key: bytes) -> bytes | None:
        """Reads a key of the snapshot from LMDB only once: LMDB releases Python's lock for every
        get, and another thread may then hold on to it."""
        written = self.written
        if key in written:
            return written[key]
        seen = self.seen
        if key in seen:
            return seen[key]
        value = self._below.get(key)
        if len(seen) < MAX_OVERLAY_CACHE_PAIRS and (
            value is None or len(value) <= MAX_OVERLAY_CACHED_VALUE_BYTES
        ):
            seen[key] = value
        return value

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        return [self.get(key) for key in keys]

    def first(self, begin: bytes, end: bytes, reverse: bool) -> Pair | None:
        """Returns the first pair. A caller that repeatedly takes and deletes the first one leaves
        deleted keys behind; they are skipped once, not every time."""
        keys = self._keys if len(self._keys) == len(self.written) else self._in_order()
        empty_range = self._empty_range
        start = (
            empty_range[1]
            if empty_range is not None and empty_range[0] == begin and not reverse
            else begin
        )
        place = bisect_left(keys, start)
        pair: Pair | None
        if place == len(keys) or keys[place] >= end:
            pair = self._below.first(start, end, reverse) if start < end else None
        else:
            pair = super().first(start, end, reverse)
        if self.deleted > MAX_SKIPPED_DELETED_KEYS and not reverse:
            self._empty_range = begin, max(start, end if pair is None else pair[0])
        return pair

    def freeze(self) -> UnflushedSnapshot:
        """Returns the unflushed commits; the same object for all views until the next commit."""
        waiting = self._waiting
        if waiting is None:
            with self._lock:
                keys = self._in_order()
                waiting = self._waiting = UnflushedSnapshot(
                    self.above, self.written.copy(), keys, self.notices.copy(), self.end
                )
        return waiting

    def _in_order(self) -> list[bytes]:
        if len(self._keys) != len(self.written):
            with self._lock:
                super()._in_order()
        return self._keys

    def add_commit(self, written: Writes, deletes: bool) -> None:
        """Adds the writes of a commit; `deletes` says whether there are deletions among them."""
        with self._lock:
            self.add_commit_unlocked(written, deletes)
            self._note_keys()

    def add_published(
        self,
        other: WriteBuffer,
        end: int,
        noted: int,
        publish: Callable[[int, int], None],
    ) -> None:
        """Adds what this process has appended to the log up to `end`, and publishes it at the same
        moment: no view here may show what a later view of another process does not. It can be
        repeated."""
        with self._lock:
            if self.end == end:
                self._keys = []  # an interrupted call may have left them incomplete
            self.end = end
            if other.notices:
                self.add_notices(other.notices, noted)
            self.add_commit_unlocked(other.written, other.deletes)
            self._note_keys()
            publish(self.above, end)

    def add_records(self, records: NewRecords) -> None:
        """Adds commits of other processes."""
        writes, notices, end = records
        with self._lock:
            self.add_commit_unlocked(writes, None in writes.values())
            self._note_keys()
            self.add_notices(notices)
            self.end = end

    def add_notices(self, notices: list[Notice], place: int | None = None) -> None:
        """Adds notices after the first `place` ones, so that it can be repeated."""
        if notices:
            self.notices[len(self.notices) if place is None else place :] = notices
            self.notice_bytes += sum([bytes_of(notice) for notice in notices])
            if len(self.notices) > MAX_WAITING_KEYS or self.notice_bytes > MAX_WAITING_NOTICE_BYTES:
                self.due = True

    def _note_keys(self) -> None:
        """Makes a flush due when many keys wait. In interval mode, a process that is alone does
        without: there only the space that they need counts."""
        if len(self.written) > MAX_WAITING_KEYS:
            self.due = True

    def add_commit_unlocked(self, written: Writes, deletes: bool) -> None:
        """Like `add_commit`, for a caller that no view can interrupt."""
        if self._waiting is not None:
            self._keys = self._keys.copy()  # frozen views keep the old list
            self._waiting = None
        own = self.written
        own |= written  # nothing was cleared: such transactions go to LMDB directly
        self.commits += 1
        if self._empty_range is not None:
            begin, end = self._empty_range
            for key in written:
                if begin <= key < end:
                    self._empty_range = None
                    break
        if deletes:
            seen, below, keys = self.seen, self._below.get, self._keys
            for key, value in written.items():
                if value is None:
                    if (seen[key] if key in seen else below(key)) is not None:
                        self.deleted += 1
                        if self.deleted > MAX_DELETED_IN_OVERLAY:
                            self.due = True
                        continue
                    # Put and deleted again before LMDB got it.
                    place = bisect_left(keys, key)
                    if place < len(keys) and keys[place] == key:
                        del keys[place]
                    own.pop(key, None)

    def add_commit_again(self, written: Writes, deletes: bool) -> None:
        """Adds the writes of a commit again after the first attempt was interrupted."""
        with self._lock:
            self._keys = []
            self.add_commit_unlocked(written, deletes)
