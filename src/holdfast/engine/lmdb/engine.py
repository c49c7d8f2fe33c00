"""Opens and closes a store, and runs its transactions and views."""

import ctypes
import math
import os
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Final, TypeVar

import lmdb

from holdfast.engine import checkpoints
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
from holdfast.engine.folder import Folder, keeps_written_pages, sync_folder
from holdfast.engine.group_commit import CommitRequest, GroupCommit
from holdfast.engine.group_wait import GroupWait
from holdfast.engine.lmdb import backup, file_checks, redo_log
from holdfast.engine.lmdb.checkpointer import Checkpointer
from holdfast.engine.lmdb.commits import Commits
from holdfast.engine.lmdb.disk_reserve import Reserve
from holdfast.engine.lmdb.disk_space import DiskSpace, give_back
from holdfast.engine.lmdb.environment import (
    DATA_FILE,
    await_writer,
    create,
    explain,
    open_environment,
    refuse_unfinished,
)
from holdfast.engine.lmdb.notice_log import NoticeLog
from holdfast.engine.lmdb.overlay import Overlay, replay
from holdfast.engine.lmdb.redo_log import RedoLog
from holdfast.engine.lmdb.transaction import LmdbView
from holdfast.engine.lmdb.write_buffers import PendingView
from holdfast.engine.notices import NoticeHub, notice_filter
from holdfast.errors import (
    BadInput,
    HoldfastError,
    StoreBusy,
    StoreClosed,
    StoreDamaged,
    StoreForked,
    StoreFull,
    StoreUnusable,
)
from holdfast.limits import CHECKPOINT_SECONDS, EXAMINED_SECONDS

T = TypeVar("T")

_MORE_GROUPS: Final = 4  # that a leader runs where no commit waits for the disk


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
        if not checkpoint_seconds > 0:
            raise BadInput(
                f"checkpoint_seconds is {checkpoint_seconds}", hint="Use a number above 0."
            )
        self.path = path
        self._clock = clock
        self._syncs = durability == "commit"
        self._checkpoint_seconds = checkpoint_seconds
        self._group_commit = GroupCommit(GroupWait() if self._syncs else None)
        self._unusable: StoreUnusable | None = None
        refuse_unfinished(path)  # before the folder gets files that a backup would refuse
        self._examined = -math.inf  # when all pages were last found to be sound
        self._folder = Folder(path, durability)
        self._reserve = Reserve(path)
        try:
            self._folder.lock_opening()
            self._open_with_reserve()
        except BaseException:
            self._folder.close()
            raise
        self._folder.unlock_opening()
        self._commits = Commits(
            self._opened,
            self._overlay,
            clock=clock,
            write_turn=self._folder.write_turn,
            notice_log=self._notice_log,
            wake=self._notices.wake,
            refuse_unusable=self._refuse_unusable,
            explained=self.explained,
            reserve=self._reserve,
            checkpoint=self._try_checkpoint,
        )
        if self._checkpointer is not None:
            self._checkpointer.start(checkpoint_seconds)
        _close_in_forked_children(self)

    # --- opening and closing ---------------------------------------------------------------------

    def _open_with_reserve(self) -> None:
        """Opens it; on a full disk, with the blocks that were set aside for that."""
        while True:
            try:
                self._open()
                break
            except StoreFull:
                if not self._reserve.release():
                    raise
            except OSError as error:
                raise explain(error, self.path) from error
        self._reserve.fill()

    def _open(self) -> None:
        data_file = self.path / DATA_FILE
        alone = self._folder.is_ours_alone()
        file_checks.refuse_missing(self.path)
        if not data_file.exists():
            create(self.path)
        elif alone and not checkpoints.recover(self.path, data_file):
            redo_log.refuse_lost_checkpoint(self.path)
        file_checks.refuse_damaged(self.path, alone=alone)
        if alone and not self._syncs:
            self._make_durable()
        self._folder.join(alone=alone)
        if not alone:
            await_writer(self.path)
        with self._folder.write_turn:  # LMDB opens its databases in a transaction that writes
            self._opened = open_environment(self.path, sync=self._syncs)
        self._env, self._data, notices, _ = self._opened
        self._notice_log = NoticeLog(
            self._env,
            notices,
            begin_snapshot=self._begin_snapshot,
            waiting=lambda: (-1, []) if self._overlay is None else self._overlay.notices(),
            read_by_all=self._read_by_all,
        )
        self._notices = NoticeHub(self._notice_log, watched=data_file)
        self._data_file = os.open(data_file, os.O_RDWR)
        self._checkpointer: Checkpointer | None = None
        self._redo: RedoLog | None = None
        self._overlay: Overlay | None = None
        try:
            self._settle(alone)
        except BaseException as error:
            self._env.close()
            os.close(self._data_file)
            if self._redo is not None:
                self._redo.close()
            if isinstance(error, lmdb.Error | OSError):
                raise explain(error, self.path) from error
            raise

    def _make_durable(self) -> None:
        """Syncs what a log of commit mode promised before the first commit in interval mode."""
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
        """Brings the folder in order for the way in which it was opened."""
        self._env.reader_check()
        sync_folder(self.path)
        self._open_overlay(alone)
        if not self._syncs:
            self._checkpointer = Checkpointer(
                self._env,
                self.path,
                self._folder,
                self._data_file,
                flush=self._flush,
                reserve=self._reserve,
            )
            self._checkpointer.make()
        elif alone and checkpoints.load(self.path) is not None:
            # Left by an interval mode that crashed under the same system: all is there, unsynced.
            self._env.sync(True)
            checkpoints.remove(self.path)
        if alone:
            with self._folder.write_turn:
                self._notice_log.forget_all()
            backup.refuse_changed(self._opened, self.path)

    def _open_overlay(self, alone: bool) -> None:
        log = self._open_redo(alone)
        if log is None:
            return
        self._redo = self._take_over_redo(log, alone)
        if not keeps_written_pages(self.path):
            return
        self._overlay = Overlay(
            self._env,
            self._data,
            folder=self._folder,
            log=self._redo,
            disk_space=DiskSpace(self._env, self._data, self._data_file),
            synced=self._syncs,
            look_seconds=self._checkpoint_seconds,
            store_notices=self._notice_log.store,
            notices=self._notices,
            refuse_unusable=self._refuse_unusable,
            look_if_alone=self._look_if_alone,
        )

    def _open_redo(self, alone: bool) -> RedoLog | None:
        """The log, if there is one or should be one."""
        exists = (self.path / redo_log.FILE_NAME).exists() or redo_log.read_state(
            self.path
        ) is not None
        if not exists and not keeps_written_pages(self.path):
            return None
        try:
            return RedoLog(self.path, synced=self._syncs)
        except OSError:
            if exists:
                raise
            return None  # a disk that is full; without a log, all commits are direct

    def _take_over_redo(self, log: RedoLog, alone: bool) -> RedoLog:
        """Brings into LMDB's file what others have committed and it has not got: by the flush of
        one who lives, or from the log of one who was killed."""
        try:
            if not alone:
                log.shared = True  # first, or a busy process might never release the lease
            self._folder.take_lease(wait=True)
            try:
                with self._folder.write_turn:
                    replay(self._env, self._data, log)
                log.begin(shared=not alone)
            finally:
                self._folder.leave_lease()
        except BaseException:
            log.close()
            raise
        return log

    def close(self) -> None:
        """Waits for those who already write, makes all durable and gives the folder free.

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
                self._leave()
        finally:
            self._group_commit.leave(request)

    def _leave(self) -> None:
        try:
            # Before anyone is waited for: who opens the store may wait for the lease.
            if self._overlay is not None:
                self._overlay.close()
        finally:
            self._leave_folder()

    def _leave_folder(self) -> None:
        try:
            in_order = self._lock_closing()
            try:
                if self._checkpointer is not None:
                    self._checkpointer.close()
            finally:
                self._env.close()
                last = in_order and self._folder.is_ours_alone()
                if last:
                    give_back(self._data_file)
                os.close(self._data_file)
                if self._redo is not None:
                    self._redo.close()
            if last:
                if self._redo is not None and self._redo.is_empty():
                    self._redo.remove()
                if self._checkpointer is not None:
                    checkpoints.remove(self.path)
                if self._redo is None or self._redo.is_empty():
                    file_checks.seal(self.path)
                self._reserve.remove_if_larger((self.path / DATA_FILE).stat().st_size)
        finally:
            self._folder.close()

    def _lock_closing(self) -> bool:
        """Returns whether nobody else opens or closes the store meanwhile. Someone who was stopped
        in the middle of that keeps nobody from leaving, who then leaves the folder as it is."""
        try:
            self._folder.lock_opening()
        except StoreBusy:
            return False
        return True

    def forked(self) -> None:
        """Called in a child process: nothing of the parent's store may be touched from here."""
        if self._unusable is None:
            self._unusable = StoreForked(f"{self.path} was opened by the parent process")
            self._group_commit = (
                GroupCommit()
            )  # the parent's may have been locked in the moment of the fork
            self._group_commit.close(self._unusable)
            self._notices.forked()
            self._folder.close()
            _keep_for_ever(self._env)
            if self._checkpointer is not None:
                _keep_for_ever(self._checkpointer.pin)
            if self._overlay is not None:
                for txn in self._overlay.forked():
                    _keep_for_ever(txn)

    def _refuse_unusable(self) -> None:
        if self._unusable is not None:
            raise self._unusable.with_traceback(None)  # the same for all: no frames pile up

    def explained(self, error: Exception) -> HoldfastError:
        """Returns the error to raise for an error of LMDB; after the store was closed, only
        that."""
        if self._unusable is not None:
            return type(self._unusable)(self._unusable.message)
        return explain(error, self.path)

    def is_forked(self) -> bool:
        return type(self._unusable) is StoreForked

    # --- transactions ----------------------------------------------------------------------------

    def view(self, *, space: bytes = b"", guard: Guard | None = None) -> "_View":
        return _View(self, space, guard)

    def transact(self, work: Callable[[Transaction], T], *, space: bytes = b"") -> T:
        [outcome] = self._serve(CommitRequest((work,), (space,)))
        if outcome.error is not None:
            raise outcome.error
        return outcome.result  # type: ignore[return-value]  # without an error it is a T

    def transact_many(
        self,
        works: Sequence[Callable[[Transaction], Any]],
        *,
        spaces: Sequence[bytes] | None = None,
    ) -> list[Outcome[Any]]:
        if spaces is None:
            spaces = (b"",) * len(works)
        elif len(spaces) != len(works):
            raise ValueError(f"{len(works)} works were given, and {len(spaces)} spaces for them")
        return self._serve(CommitRequest(works, spaces))

    def try_transact_many(
        self, works: Sequence[Callable[[Transaction], Any]], *, spaces: Sequence[bytes]
    ) -> list[Outcome[Any]] | None:
        overlay = self._overlay
        if overlay is None or not overlay.is_ready():
            return None
        group_commit, commits = self._group_commit, self._commits
        request = CommitRequest(works, spaces)
        if not group_commit.take_free(request):
            return None
        try:
            commits.try_run(request)
            if commits.interrupted:
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
        """Has a request run, by this thread or by the one that leads its group."""
        group_commit, commits = self._group_commit, self._commits
        try:
            if group := group_commit.take(request):
                commits.run(group)
                if not self._syncs:
                    left = _MORE_GROUPS
                    while left and (group := group_commit.gather_more()):
                        commits.run(group)
                        left -= 1
                if commits.interrupted:
                    commits.raise_interrupt()
                group_commit.leave(request)
        except BaseException:
            # Ctrl-C in the leader's thread: the others' work is for the next leader.
            self._group_commit.leave(request)
            raise
        return request.outcomes  # type: ignore[return-value]  # set by the leader of its group

    def _flush(self) -> None:
        if self._overlay is not None:
            self._overlay.flush()

    def _look_if_alone(self) -> None:
        """Returns whether the others have gone: then commits may wait for each other again."""
        if self._redo is None or not self._redo.shared or not self._folder.try_lock_opening():
            return
        try:
            if self._folder.is_ours_alone():
                self._env.reader_check()
                self._redo.shared = False
        finally:
            self._folder.stay()
            self._folder.unlock_opening()

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
            # A commit that found nobody listening is seen by all who read from now on.
            self._overlay.settle()
        return subscription

    def _read_by_all(self) -> int | None:
        """Up to which LMDB commit nobody needs notices any more; None: nobody needs any."""
        if self._redo is None or self._redo.shared:
            return 0  # others may listen, and nobody knows how far they are
        place = self._notices.place()
        return None if place is None else int(place.commit)

    # --- care ------------------------------------------------------------------------------------

    def checkpoint(self) -> None:
        """Returns when everything committed so far would survive a power failure."""
        self._refuse_unusable()
        self._group_commit.refuse_inside(
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

    def backup(self, target: Path, *, expected: Backup | None = None) -> Backup:
        """Copies a snapshot into the folder `target`, and reads the copy back to compare; with
        `expected`, to that too."""
        try:
            with self.begin_view() as txn:
                return backup.back_up(self._opened, txn, self.path, target, expected)
        except StoreUnusable:
            self._refuse_unusable()  # closed in the middle: that says more
            raise

    def manifest(self) -> Backup | None:
        """Returns the manifest of a backup that nobody has written to, or None."""
        self._flush()
        return backup.manifest_of(self._opened)

    def check(self) -> list[str]:
        """Walks all pages in a process of its own, then reads every key both ways; see
        `Engine.check`."""
        try:
            with self.begin_view() as txn:
                if problems := file_checks.structural_problems(self.path, txn):
                    return problems
                return backup.problems(self._opened, txn)
        except StoreDamaged as error:
            # Commits that wait in the log could not be written to it: the file says more itself.
            return file_checks.problems_of_newest(self.path) or [error.message]
        except lmdb.Error as error:
            self._refuse_unusable()  # closed in the middle: no problem of the file
            return [f"LMDB can't read the file: {error}"]

    def refuse_unreadable(self) -> None:
        """Raises if a page is damaged, as a look a moment ago has found or one now finds."""
        if time.monotonic() - self._examined > EXAMINED_SECONDS:
            with self.begin_view() as txn:
                file_checks.refuse_unreadable(self.path, txn)
            self._examined = time.monotonic()

    def refuse_full(self) -> None:
        """Raises `StoreFull` if there is too little disk space for the next commits."""
        self._refuse_unusable()
        self._reserve.refuse_full()

    def stats(self) -> dict[str, int]:
        """Figures of the store (keys, file_bytes, readers) and of this process (the rest)."""
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
        """A snapshot of LMDB that has all that was committed."""
        self._flush()
        return self._begin_snapshot()

    def _begin_snapshot(self) -> Any:
        if self._unusable is not None:
            self._refuse_unusable()
        try:
            return self._env.begin(self._data)
        except lmdb.ReadersFullError:
            self._env.reader_check()
        except lmdb.Error as error:
            raise self.explained(error) from error
        try:
            return self._env.begin(db=self._data)
        except lmdb.Error as error:
            raise self.explained(error) from error

    def read_clock(self) -> float:
        return self._clock()


class _View(LmdbView):
    """A view and what opens it, in one object: views are many, and cost 1 µs."""

    __slots__ = ("_engine", "_guard")

    def __init__(self, engine: LmdbEngine, space: bytes, guard: Guard | None) -> None:
        self._engine = engine
        self._guard = guard
        self.space = space
        self.writes = 0

    def __enter__(self) -> Reader:
        engine, guard = self._engine, self._guard
        overlay = engine._overlay
        waiting = None if overlay is None else overlay.look()
        self._txn = txn = engine._begin_snapshot()
        self._get = txn.get
        self.now = engine._clock()
        try:
            snapshot = txn.id()
            if waiting is not None and waiting.above == snapshot:  # the snapshot lacks it
                view = PendingView(self, waiting)
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

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._engine._unusable is not None and self._engine.is_forked():
            _keep_for_ever(self._txn)
        else:
            self._txn.abort()
        if error is not None and isinstance(error, lmdb.Error):
            raise self._engine.explained(error) from error


def _close_in_forked_children(engine: LmdbEngine) -> None:
    reference = weakref.ref(engine)

    def after_fork() -> None:
        if (engine := reference()) is not None:
            engine.forked()

    os.register_at_fork(after_in_child=after_fork)


def _keep_for_ever(thing: object) -> None:
    """Lets a forked child end without the clean-up of what it has inherited.

    LMDB's table of readers is shared memory: a child that closed the parent's transactions would
    take away their places in it, and with them the pages that the parent still reads.
    """
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))
