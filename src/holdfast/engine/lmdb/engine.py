"""The embedded engine: runs the transactions and views of an open store."""

import math
import os
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Final, TypeVar

import lmdb

from holdfast.engine.contract import (
    Backup,
    EngineSubscription,
    Guard,
    Notice,
    Outcome,
    Reader,
    Transaction,
    topics_overlap,
)
from holdfast.engine.durability import check_durability
from holdfast.engine.group_commit import CommitRequest, GroupCommit
from holdfast.engine.group_wait import GroupWait
from holdfast.engine.lmdb import backup, file_checks
from holdfast.engine.lmdb.commits import Commits
from holdfast.engine.lmdb.environment import DATA_FILE, explain, free_bytes
from holdfast.engine.lmdb.open_store import OpenStore, never_finalize
from holdfast.engine.lmdb.short_views import ShortReads, ShortUnflushedView, abandon
from holdfast.engine.lmdb.transaction import LmdbView
from holdfast.engine.lmdb.write_buffers import UnflushedView
from holdfast.engine.notices import notice_filter
from holdfast.errors import (
    BadInput,
    HoldfastError,
    StoreClosed,
    StoreDamaged,
    StoreForked,
    StoreFull,
    StoreUnusable,
)
from holdfast.limits import (
    CHECKPOINT_SECONDS,
    MAX_CHECKPOINT_SECONDS,
    MAX_READ_ON_LOOP_BYTES,
    MIN_FREE_BYTES,
    SOUND_PAGES_SECONDS,
)

T = TypeVar("T")

_MORE_GROUPS: Final = 4  # that a leader runs in a row where commits do not wait for the disk


class LmdbEngine:
    """`durability="commit"` waits for the disk at every commit; "interval" does not, and makes a
    checkpoint every `checkpoint_seconds`."""

    is_remote = False

    def __init__(
        self,
        path: Path,
        *,
        clock: Callable[[], float],
        durability: str = "commit",
        checkpoint_seconds: float = CHECKPOINT_SECONDS,
    ) -> None:
        check_durability(durability)
        is_number = isinstance(checkpoint_seconds, int | float)
        if not (is_number and 0 < checkpoint_seconds <= MAX_CHECKPOINT_SECONDS):
            raise BadInput(
                f"checkpoint_seconds is {checkpoint_seconds!r:.100}",
                hint=f"Use a number above 0, at most {MAX_CHECKPOINT_SECONDS:.0f}.",
            )
        self.path = path
        self._clock = clock
        self._syncs = durability == "commit"
        self._group_commit = GroupCommit(GroupWait() if self._syncs else None)
        self._unusable: StoreUnusable | None = None
        self._examined = -math.inf  # when all pages were last checked and sound
        self._files = OpenStore(
            path,
            durability=durability,
            checkpoint_seconds=checkpoint_seconds,
            refuse_unusable=self._refuse_unusable,
            explained=self.explained,
        )
        self._opened = self._files.opened
        self._env, self._data, _, _ = self._opened
        self._overlay, self._redo = self._files.overlay, self._files.redo
        self._notices, self._notice_log = self._files.notices, self._files.notice_log
        self._checkpointer = self._files.checkpointer
        self._begin_snapshot = self._files.begin_snapshot
        self._commits = Commits(
            self._opened,
            self._overlay,
            clock=clock,
            write_turn=self._files.folder.write_turn,
            notice_log=self._notice_log,
            wake=self._notices.wake,
            refuse_unusable=self._refuse_unusable,
            explained=self.explained,
            reserve=self._files.reserve,
            checkpoint=self._try_checkpoint,
            note_written=self._files.note_written,
        )
        if self._checkpointer is not None:
            self._checkpointer.start(checkpoint_seconds)
        _close_in_forked_children(self)

    # --- closing ---------------------------------------------------------------------------------

    def shorten_waits(self) -> None:
        """Does nothing: no call waits for a server."""

    def close(self) -> None:
        """Waits for running writers, syncs, and releases the folder.

        A view that is still open raises `StoreClosed` when it is read from again.
        """
        if self.is_forked():
            return
        reason = StoreClosed(f"{self.path} is closed")
        self._group_commit.close(reason)
        if self._checkpointer is not None:
            self._checkpointer.stop()
        request = CommitRequest()
        try:
            self._group_commit.take(request, last=True)
            if self._unusable is None:
                self._notices.close()
                self._unusable = reason
                self._files.is_usable = False
                self._files.leave()
        finally:
            self._group_commit.leave(request)

    def forked(self) -> None:
        """Disables the store in a forked child, which must not touch the parent's."""
        if self._unusable is None:
            self._unusable = StoreForked(f"{self.path} was opened by the parent process")
            self._files.is_usable = False
            self._group_commit = (
                GroupCommit()
            )  # the parent's may have been locked in the moment of the fork
            self._group_commit.close(self._unusable)
            self._files.forked()

    def _refuse_unusable(self) -> None:
        if self._unusable is not None:
            raise self._unusable.with_traceback(None)  # one shared error must not collect frames

    def explained(self, error: Exception) -> HoldfastError:
        """Returns the error to raise for an error of LMDB; once the store is closed, always that it
        is closed."""
        if self._unusable is not None:
            return type(self._unusable)(self._unusable.message)
        return explain(error, self.path)

    def is_forked(self) -> bool:
        return type(self._unusable) is StoreForked

    # --- transactions ----------------------------------------------------------------------------

    def view(self, *, space: bytes = b"", guard: Guard | None = None) -> "_View":
        return _View(self, space, guard)

    def short_view(self, *, space: bytes = b"", guard: Guard | None = None) -> "_ShortView":
        return _ShortView(self, space, guard)

    def read(
        self,
        work: Callable[[Reader], T],
        *,
        space: bytes = b"",
        guard: Guard | None = None,
        kind: str = "",
    ) -> T:
        with _View(self, space, guard) as reader:
            return work(reader)

    def transact(
        self, work: Callable[[Transaction], T], *, space: bytes = b"", kind: str = ""
    ) -> T:
        request = CommitRequest((work,), (space,))
        [outcome] = self._serve(request)
        if outcome.error is None:
            return outcome.result  # type: ignore[return-value]  # without an error it is a T
        # An error holds the frames that it passed, which must not hold the error.
        request.outcomes = None
        try:
            raise outcome.error
        finally:
            del outcome

    def transact_many(
        self,
        works: Sequence[Callable[[Transaction], Any]],
        *,
        spaces: Sequence[bytes] | None = None,
    ) -> list[Outcome[Any]]:
        if spaces is None:
            spaces = (b"",) * len(works)
        elif len(spaces) != len(works):
            raise ValueError(f"{len(works)} functions were given, but {len(spaces)} spaces")
        return self._serve(CommitRequest(works, spaces))

    def try_transact_many(
        self, works: Sequence[Callable[[Transaction], Any]], *, spaces: Sequence[bytes]
    ) -> list[Outcome[Any]] | None:
        overlay = self._overlay
        if overlay is None or not overlay.is_ready():
            return None
        group_commit, commits = self._group_commit, self._commits
        request = CommitRequest(works, spaces)
        if not group_commit.try_take(request):
            return None
        try:
            commits.try_run(request)
            if commits.interrupt is not None:
                commits.raise_interrupt()
        finally:
            group_commit.leave(request)
        return request.outcomes

    @contextmanager
    def transaction(self, *, space: bytes = b"") -> Iterator[Transaction]:
        request = CommitRequest()
        try:
            self._group_commit.take(request)
            with self._commits.block(space) as tx:
                yield tx
            self._commits.raise_interrupt()
            self._group_commit.leave(request)
        except lmdb.Error as error:
            self._group_commit.leave(request)
            raise self.explained(error) from error
        except BaseException:
            self._group_commit.leave(request)
            raise

    def _serve(self, request: CommitRequest) -> list[Outcome[Any]]:
        """Runs a request, in this thread or in the one that leads its group."""
        group_commit, commits = self._group_commit, self._commits
        try:
            if group := group_commit.take(request):
                commits.run(group, request)
                if group_commit.waiting and not self._syncs:
                    left = _MORE_GROUPS
                    while left and (group := group_commit.gather_more()):
                        commits.run(group, request)
                        left -= 1
                if commits.interrupt is not None:
                    commits.raise_interrupt()
                group_commit.leave(request)
        except BaseException:
            # Ctrl-C in the leader's thread: the others' work is for the next leader.
            self._group_commit.leave(request)
            raise
        return request.outcomes  # type: ignore[return-value]  # set by the leader of its group

    # --- notices ---------------------------------------------------------------------------------

    def subscribe(
        self,
        *,
        topic_prefix: str = "",
        space: bytes | None = None,
        wanted: Callable[[Notice], bool] | None = None,
        may_want: Callable[[str], bool] | None = None,
    ) -> EngineSubscription:
        self._refuse_unusable()
        subscription = self._notices.subscribe(
            notice_filter(topic_prefix, space, wanted),
            may_want or partial(topics_overlap, topic_prefix),
        )
        if self._overlay is not None:
            # Commits that saw no listener are visible to every read from now on.
            self._overlay.settle()
        return subscription

    # --- maintenance -----------------------------------------------------------------------------

    def checkpoint(self) -> None:
        """Returns when everything committed so far would survive a power failure."""
        self._refuse_unusable()
        self._group_commit.refuse_nested(
            "a checkpoint was asked for inside a transaction: let it end"
        )
        if self._checkpointer is not None:
            self._checkpointer.make()

    def _try_checkpoint(self) -> bool:
        """Makes a checkpoint in interval mode, and says whether it did."""
        if self._checkpointer is not None:
            with suppress(HoldfastError):
                self._checkpointer.make()
                return True
        return False

    def backup(
        self, target: Path, *, expected: Backup | None = None, changes_file: Path | None = None
    ) -> Backup:
        """Copies a snapshot into the folder `target`, and reads the copy back to compare it with
        the snapshot and, if given, with `expected`. `changes_file` holds changes to apply to the
        copy."""
        with self._backup_snapshot() as txn:
            return backup.back_up(self._opened, txn, self.path, target, expected, changes_file)

    def backup_changes(self, target: Path, base: Path) -> Backup:
        """Writes the differences from the full backup in the folder `base` into the folder
        `target`, and verifies that both together are this store."""
        with self._backup_snapshot() as txn:
            return backup.back_up_changes(self._opened, txn, self.path, target, base)[0]

    @contextmanager
    def _backup_snapshot(self) -> Iterator[Any]:
        try:
            with self.begin_view() as txn:
                yield txn
        except StoreUnusable:
            self._refuse_unusable()  # if it was closed meanwhile, say so instead
            raise

    def manifest(self) -> Backup | None:
        """Returns the manifest of a backup that was not written to since, or None."""
        self._files.flush()
        return backup.manifest_of(self._opened)

    def check(self) -> list[str]:
        """Walks all pages in a process of its own, then reads every key in both directions; see
        `Engine.check`."""
        try:
            with self.begin_view() as txn:
                if problems := file_checks.structural_problems(self.path, txn):
                    return problems
                return backup.problems(self._opened, txn)
        except StoreDamaged as error:
            # The flush failed; walking the file's pages tells more about why.
            return file_checks.problems_of_newest(self.path) or [error.message]
        except lmdb.Error as error:
            self._refuse_unusable()  # closed meanwhile: not a problem of the file
            return [f"LMDB can't read the file: {error}"]

    def refuse_unreadable(self) -> None:
        """Raises if a page is damaged, according to a recent check or a new one."""
        if time.monotonic() - self._examined > SOUND_PAGES_SECONDS:
            with self.begin_view() as txn:
                file_checks.refuse_unreadable(self.path, txn)
            self._examined = time.monotonic()

    def refuse_full(self, *, space: bytes = b"") -> None:
        """Raises `StoreFull` if there is too little disk space for the next commits."""
        self._refuse_unusable()
        try:
            self._files.reserve.refuse_full()
        except StoreFull:
            self._files.flush()
            if free_bytes(self._files.opened) < MIN_FREE_BYTES:
                raise

    def stats(self) -> dict[str, int]:
        """Returns figures of the store (keys, file_bytes, readers) and of this process (the
        rest)."""
        try:
            with self.begin_view() as txn:
                return {
                    "keys": txn.stat(self._data)["entries"],
                    "file_bytes": (self.path / DATA_FILE).stat().st_size,
                    "readers": len(self._env.readers().splitlines()) - 1,
                    "commits": self._notice_log.newest_commit(),
                    "groups": self._commits.groups,
                    "transactions": self._commits.transactions,
                    "durable": int(self._syncs),  # when a commit returns
                }
        except lmdb.Error as error:
            raise self.explained(error) from error

    def begin_view(self) -> Any:
        """Returns a snapshot of LMDB that has every commit."""
        self._files.flush()
        return self._begin_snapshot()

    def read_clock(self) -> float:
        return self._clock()


class _View(LmdbView):
    """A view and its context manager in one object: views are opened often, and cost 1 µs."""

    __slots__ = ("_engine", "_guard", "_snapshot", "_waiting")

    _unflushed: type[UnflushedView] = UnflushedView

    def __init__(self, engine: LmdbEngine, space: bytes, guard: Guard | None) -> None:
        self._engine = engine
        self._guard = guard
        self.space = space
        self.writes = 0

    def __enter__(self) -> Reader:
        engine, guard = self._engine, self._guard
        overlay = engine._overlay
        waiting = self._waiting = None if overlay is None else overlay.unflushed_for_view()
        txn = self._txn = engine._begin_snapshot()
        self._get = txn.get
        self.now = engine._clock()
        try:
            snapshot = self._snapshot = txn.id()
            if (
                waiting is not None and waiting.above == snapshot
            ):  # the snapshot lacks these commits
                view = self._unflushed(self, waiting)
                if guard is not None and view.get(guard.key) is not None:
                    guard.refuse(view)
                return view
            if guard is not None and guard.absent_from != snapshot:
                if txn.get(guard.key) is not None:
                    guard.refuse(self)
                guard.absent_from = snapshot
        except BaseException as error:
            self.__exit__(type(error), error, None)
            raise
        return self

    def is_current(self) -> bool:
        """Returns whether a view opened now would show the same: no process has committed since."""
        engine = self._engine
        overlay = engine._overlay
        if engine._unusable is not None or (
            (None if overlay is None else overlay.unflushed_for_view()) is not self._waiting
        ):
            return False
        newest = (
            engine._begin_snapshot()
        )  # `info` has this number, too, but takes four times as long
        snapshot = newest.id()
        newest.abort()
        return snapshot == self._snapshot  # type: ignore[no-any-return]  # lmdb has no types

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._engine._unusable is not None and self._engine.is_forked():
            never_finalize(self._txn)
        else:
            self._txn.abort()
        if error is not None and isinstance(error, lmdb.Error):
            raise self._engine.explained(error) from error


class _ShortView(ShortReads, _View):
    """A view that calls `spent` when it has read more than `left` bytes: it raises `TooLong`."""

    __slots__ = ()

    _unflushed = ShortUnflushedView

    def __init__(self, engine: LmdbEngine, space: bytes, guard: Guard | None) -> None:
        _View.__init__(self, engine, space, guard)
        self.left = MAX_READ_ON_LOOP_BYTES
        self.spent = abandon


def _close_in_forked_children(engine: LmdbEngine) -> None:
    reference = weakref.ref(engine)

    def after_fork() -> None:
        if (engine := reference()) is not None:
            engine.forked()

    os.register_at_fork(after_in_child=after_fork)
