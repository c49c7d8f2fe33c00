"""The engine itself: transactions in groups, views, and its opening and closing."""

import ctypes
import os
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Final, TypeVar

import lmdb
import msgspec

from holdfast.engine import checkpoints
from holdfast.engine.buffer import Buffer
from holdfast.engine.contract import Notice, Outcome, Reader, Subscription, Transaction
from holdfast.engine.folder import Folder, keeps_written_pages, sync_folder
from holdfast.engine.lmdb import care, redo
from holdfast.engine.lmdb.checkpointer import Checkpointer
from holdfast.engine.lmdb.environment import DATA_FILE, explain, open_environment
from holdfast.engine.lmdb.overlay import Draft, Overlay, is_open, replay
from holdfast.engine.lmdb.redo import RedoLog
from holdfast.engine.lmdb.room import Room, give_back
from holdfast.engine.lmdb.transaction import LmdbReader, LmdbTransaction, LmdbView
from holdfast.engine.notices import NoticeHub
from holdfast.engine.turns import Request, Turns, Work
from holdfast.errors import (
    BadInput,
    HoldfastError,
    StoreClosed,
    StoreForked,
    StoreFull,
    StoreUnusable,
    ViewOnlyReads,
)
from holdfast.limits import CHECKPOINT_SECONDS, KEPT_NOTICE_COMMITS

T = TypeVar("T")

DURABILITIES: Final = ("commit", "interval")
_NOTICES: Final = msgspec.msgpack.Decoder(list[Notice])
_GROUPS_PER_READER_CHECK: Final = 256

Step = tuple[Work, bytes]  # one transaction of a group, and its space
Publish = Callable[[list[Outcome[Any]]], None]  # tells the callers of a group what became of it


def _publish_nothing(outcomes: list[Outcome[Any]]) -> None: ...


def _tell_no_one() -> None: ...


class LmdbEngine:
    """`durability="commit"` waits for the disk at every commit; "interval" does not, and makes a
    checkpoint every `checkpoint_seconds`."""

    def __init__(
        self,
        path: Path,
        *,
        clock: Callable[[], float],
        durability: str = "commit",
        checkpoint_seconds: float = CHECKPOINT_SECONDS,
    ) -> None:
        if durability not in DURABILITIES:
            raise BadInput(
                f"unknown durability {durability!r}",
                hint="Use 'commit' (wait for the disk) or 'interval' (a checkpoint every second).",
            )
        if not checkpoint_seconds > 0:
            raise BadInput(
                f"checkpoint_seconds is {checkpoint_seconds}", hint="Use a number above 0."
            )
        self.path = path
        self._clock = clock
        self._syncs = durability == "commit"
        self._turns = Turns()
        self._groups = 0
        self._transactions = 0
        self._interrupted = False
        self._unusable: StoreUnusable | None = None
        self._folder = Folder(path, durability)
        try:
            self._folder.lock_opening()
            self._open()
        except BaseException:
            self._folder.close()
            raise
        self._folder.unlock_opening()
        self._notices = NoticeHub(self)
        if self._checkpointer is not None:
            self._checkpointer.start(checkpoint_seconds)
        _close_in_forked_children(self)

    # --- opening and closing ---------------------------------------------------------------------

    def _open(self) -> None:
        data_file = self.path / DATA_FILE
        alone = self._folder.is_ours_alone()
        if alone and data_file.exists():
            checkpoints.recover(self.path, data_file)
        if not self._syncs and not data_file.exists():
            # A new file is made durable before the first commit that is not.
            open_environment(self.path, sync=True).env.close()
        self._folder.join(alone=alone)
        self._opened = open_environment(self.path, sync=self._syncs)
        self._env, self._data, self._log = self._opened
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

    def _settle(self, alone: bool) -> None:
        """Brings the folder in order for the way in which it was opened."""
        self._env.reader_check()
        sync_folder(self.path)
        if not self._syncs:
            self._open_overlay(alone)
            self._checkpointer = Checkpointer(
                self._env,
                self.path,
                self._folder,
                self._data_file,
                flush=self._flush,
                between=self._look_if_alone,
            )
            self._checkpointer.make()
        elif alone:
            if (self.path / redo.FILE_NAME).exists():
                self._take_over_redo(RedoLog(self.path), alone).remove()
            if checkpoints.load(self.path) is not None:
                # Left by an interval mode that crashed under the same system: all is there,
                # unsynced.
                self._env.sync(True)
                checkpoints.remove(self.path)
        if alone:
            self._forget_notices()

    def _open_overlay(self, alone: bool) -> None:
        if not keeps_written_pages(self.path):
            return
        self._redo = self._take_over_redo(RedoLog(self.path), alone)
        self._overlay = Overlay(
            self._env,
            self._data,
            folder=self._folder,
            log=self._redo,
            room=Room(self._env, self._data, self._data_file),
            store_notices=self._log_notices,
            is_heard=lambda: self._notices.is_heard(),
        )

    def _take_over_redo(self, log: RedoLog, alone: bool) -> RedoLog:
        """Brings into LMDB's file what others have committed and it has not got: by the flush of
        one who lives, or from the log of one who was killed."""
        try:
            if not alone:
                log.shared = True  # first, or a busy neighbour might never leave the lease
            self._folder.take_lease(wait=True)
            try:
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
        self._turns.close(reason)
        if self._checkpointer is not None:
            self._checkpointer.stop()
        request = Request()
        try:
            self._turns.take(request, last=True)
            if self._unusable is None:
                self._notices.close()
                self._unusable = reason
                self._leave()
        finally:
            self._turns.leave(request)

    def _leave(self) -> None:
        try:
            # Before anyone is waited for: who opens the store may wait for the lease.
            if self._overlay is not None:
                self._overlay.close()
        finally:
            self._leave_folder()

    def _leave_folder(self) -> None:
        try:
            self._folder.lock_opening()
            try:
                if self._checkpointer is not None:
                    self._checkpointer.close()
            finally:
                self._env.close()
                last = self._folder.is_ours_alone()
                if last:
                    give_back(self._data_file)
                os.close(self._data_file)
                if self._redo is not None:
                    self._redo.close()
            if self._checkpointer is not None and last:
                if self._redo is not None and self._redo.is_empty():
                    self._redo.remove()
                checkpoints.remove(self.path)
        finally:
            self._folder.close()

    def forked(self) -> None:
        """Called in a child process: nothing of the parent's store may be touched from here."""
        if self._unusable is None:
            self._unusable = StoreForked(f"{self.path} was opened by the parent process")
            self._turns = Turns()  # the parent's may have been locked in the moment of the fork
            self._turns.close(self._unusable)
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
        """What an error of LMDB means here: after the end of the store, nothing but that."""
        if self._unusable is not None:
            return type(self._unusable)(self._unusable.message)
        return explain(error, self.path)

    def is_forked(self) -> bool:
        return type(self._unusable) is StoreForked

    # --- transactions ----------------------------------------------------------------------------

    def view(self, *, space: bytes = b"") -> "_View":
        return _View(self, space)

    def transact(self, work: Callable[[Transaction], T], *, space: bytes = b"") -> T:
        [outcome] = self._serve(Request((work,), (space,)))
        result: T = outcome.unwrap()
        return result

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
        return self._serve(Request(works, spaces))

    @contextmanager
    def transaction(self, *, space: bytes = b"") -> Iterator[Transaction]:
        request = Request()
        try:
            self._turns.take(request)
            with self._block(space) as tx:
                yield tx
            self._raise_interrupt()
            self._turns.leave(request)
        except lmdb.Error as error:
            self._turns.leave(request)
            raise self.explained(error) from error
        except BaseException:
            self._turns.leave(request)
            raise

    @contextmanager
    def _block(self, space: bytes) -> Iterator[Transaction]:
        """A transaction that is committed at the end of the block, for whoever has the turn."""
        try:
            base = self._begin_deferred()
            if base is not None:
                draft = Draft(base, space, self._clock())
                yield draft
                self._defer(draft, _tell_no_one)
                return
        except BaseException:
            self._end_deferred()
            raise
        txn = self._begin()
        try:
            tx = LmdbTransaction(txn, space, self._clock())
            yield tx
        except BaseException:
            txn.abort()
            raise
        self._commit(txn, tx.notices)

    def _serve(self, request: Request) -> list[Outcome[Any]]:
        """Has a request run, by this thread or by the one that leads its group."""
        try:
            if self._turns.take(request):
                self._run_group(self._turns.gather(request))
                self._raise_interrupt()
                self._turns.leave(request)
        except BaseException:
            # Ctrl-C in the leader's thread: the others' work is for the next leader.
            self._turns.leave(request)
            raise
        return request.outcomes  # type: ignore[return-value]  # set by whoever ran it

    def _run_group(self, group: list[Request]) -> None:
        """Commits a group together. If that can't be done, each transaction alone: one that is too
        large for the disk must not take the others with it."""
        steps = [
            step for request in group for step in zip(request.works, request.spaces, strict=True)
        ]
        if len(steps) > 1:
            try:
                self._run_together(steps, partial(_publish, group))
            except (lmdb.Error, StoreUnusable):
                _publish(group, [self._run_alone(*step) for step in steps])
        else:
            _publish(group, [self._run_alone(*step, partial(_publish, group)) for step in steps])
        self._transactions += len(steps)

    def _run_alone(
        self, work: Work, space: bytes, publish: Publish = _publish_nothing
    ) -> Outcome[Any]:
        try:
            outcome = self._run_deferred(work, space, publish)
            if outcome is None:
                outcome = self._run_directly(work, space, publish)
        except KeyboardInterrupt:
            raise
        except lmdb.Error as error:
            return Outcome(error=self.explained(error))
        except BaseException as error:
            return Outcome(error=error)
        return outcome

    def _run_deferred(self, work: Work, space: bytes, publish: Publish) -> Outcome[Any] | None:
        """Runs a transaction in memory; None, and it was not run, if it has to commit directly."""
        try:
            base = self._begin_deferred()
            if base is None:
                return None
            tx = Draft(base, space, self._clock())
            outcome = Outcome(result=work(tx))
            self._defer(tx, partial(publish, [outcome]))
        except BaseException:
            self._end_deferred()
            raise
        return outcome

    def _run_directly(self, work: Work, space: bytes, publish: Publish) -> Outcome[Any]:
        txn = self._begin()
        try:
            tx = LmdbTransaction(txn, space, self._clock())
            outcome = Outcome(result=work(tx))
        except BaseException:
            txn.abort()
            raise
        self._commit(txn, tx.notices, partial(publish, [outcome]))
        return outcome

    def _run_together(self, steps: list[Step], publish: Publish) -> None:
        if self._run_together_deferred(steps, publish):
            return
        txn = self._begin()
        notices: list[Notice] = []
        try:
            outcomes = [self._run_nested(txn, work, space, notices) for work, space in steps]
        except BaseException:
            txn.abort()
            raise
        self._commit(txn, notices, partial(publish, outcomes))

    def _run_together_deferred(self, steps: list[Step], publish: Publish) -> bool:
        """Runs a group in memory; False, and it was not run, if it has to commit directly."""
        try:
            base = self._begin_deferred()
            if base is None:
                return False
            group = Draft(base, b"", 0.0)
            outcomes = [self._run_stacked(group, work, space) for work, space in steps]
            self._defer(group, partial(publish, outcomes))
        except BaseException:
            self._end_deferred()
            raise
        return True

    def _run_stacked(self, group: Draft, work: Work, space: bytes) -> Outcome[Any]:
        try:
            tx = Draft(group, space, self._clock())
            outcome = Outcome(result=work(tx))
        except (KeyboardInterrupt, lmdb.Error):
            raise
        except BaseException as error:
            return Outcome(error=error)
        group.take(tx)
        group.notices += tx.notices
        return outcome

    def _run_nested(
        self, txn: Any, work: Work, space: bytes, notices: list[Notice]
    ) -> Outcome[Any]:
        child = self._env.begin(db=self._data, parent=txn, write=True)
        try:
            tx = LmdbTransaction(child, space, self._clock())
            outcome = Outcome(result=work(tx))
        except (KeyboardInterrupt, lmdb.Error):
            raise
        except BaseException as error:
            child.abort()
            return Outcome(error=error)
        child.commit()
        notices += tx.notices
        return outcome

    def _begin_deferred(self) -> Reader | None:
        """What a transaction is stacked on if its commit may wait for others."""
        if self._overlay is None:
            return None
        self._refuse_unusable()
        return self._overlay.begin()

    def _defer(self, tx: Buffer, publish: Callable[[], None]) -> None:
        self._refuse_unusable()  # the work may have forked
        assert self._overlay is not None
        if self._overlay.commit(tx, publish):
            self._interrupted = True
        self._groups += 1
        if tx.notices:
            self._notices.wake()

    def _end_deferred(self) -> None:
        if self._overlay is not None:
            self._overlay.end()

    def _flush(self) -> None:
        if self._overlay is not None:
            self._overlay.flush()

    def _look_if_alone(self) -> None:
        """Whether the others have gone: then commits may wait for each other again."""
        if self._redo is None or not self._redo.shared or not self._folder.try_lock_opening():
            return
        try:
            if self._folder.is_ours_alone():
                self._env.reader_check()
                self._redo.shared = False
        finally:
            self._folder.stay()
            self._folder.unlock_opening()

    def _begin(self) -> Any:
        self._refuse_unusable()
        return self._env.begin(db=self._data, write=True)

    def _commit(
        self, txn: Any, notices: list[Notice], publish: Callable[[], None] = lambda: None
    ) -> None:
        """Commits, and calls `publish` if, and as soon as, that is done. After the commit nothing
        may raise: the work would be run again."""
        try:
            if self._groups % _GROUPS_PER_READER_CHECK == 0:
                self._env.reader_check()
            if notices:
                self._log_notices(txn, notices)
            txn.commit()
            publish()
        except KeyboardInterrupt:
            # It may come right after the commit has returned; then the work is done, and durable.
            if is_open(txn):
                txn.abort()
                raise
            publish()
            self._interrupted = True
        except BaseException:
            txn.abort()
            raise
        self._groups += 1
        if notices:
            self._notices.wake()

    def _raise_interrupt(self) -> None:
        if self._interrupted:
            self._interrupted = False
            raise KeyboardInterrupt

    # --- notices ---------------------------------------------------------------------------------

    def subscribe(self, *, topic_prefix: str = "", space: bytes | None = None) -> Subscription:
        def wanted(notice: Notice) -> bool:
            return notice.topic.startswith(topic_prefix) and space in (None, notice.space)

        self._refuse_unusable()
        subscription = self._notices.subscribe(wanted)
        if self._overlay is not None:
            # A commit that found nobody listening is seen by all who read from now on.
            self._overlay.settle()
        return subscription

    def _log_notices(self, txn: Any, notices: list[Notice]) -> None:
        """Writes the notices of a group under the number of its commit, and forgets old ones."""
        commit = txn.id()
        txn.put(_number(commit), msgspec.msgpack.encode(notices), db=self._log, append=True)
        bound = _number(max(0, commit - KEPT_NOTICE_COMMITS))
        with txn.cursor(db=self._log) as cursor:
            for _ in range(2):  # two for each one that is added: it shrinks after a long pause
                if cursor.first() and cursor.key() < bound:
                    cursor.delete()

    def _forget_notices(self) -> None:
        """Whoever opens a store alone finds no one who could still want the old ones."""
        with self._env.begin(write=True) as txn:
            if txn.stat(self._log)["entries"]:
                txn.drop(self._log, delete=False)

    def last_commit(self) -> int:
        return int(self._env.info()["last_txnid"])

    def notices_since(self, commit: int) -> tuple[int, int, list[Notice]]:
        notices: list[Notice] = []
        with self._begin_snapshot() as txn:  # notices that are heard wait for nothing
            last = txn.id()
            cursor = txn.cursor(db=self._log)
            if cursor.set_range(_number(commit + 1)):
                for _, value in cursor.iternext():
                    notices += _NOTICES.decode(value)
        return last, max(0, last - KEPT_NOTICE_COMMITS - commit), notices

    # --- care ------------------------------------------------------------------------------------

    def checkpoint(self) -> None:
        """Returns when everything committed so far would survive a power failure."""
        self._refuse_unusable()
        self._turns.refuse_inside("a checkpoint was asked for inside a transaction: let it end")
        if self._checkpointer is not None:
            self._checkpointer.make()

    def backup(self, target: Path) -> None:
        """Copies a snapshot into the folder `target`, and reads the copy back to compare."""
        try:
            with self.begin_view() as txn:
                care.back_up(self._opened, txn, target)
        except StoreUnusable:
            self._refuse_unusable()  # closed in the middle: that says more
            raise

    def check(self) -> list[str]:
        """Reads every key both ways and copies every page; see `Engine.check`."""
        try:
            with self.begin_view() as txn:
                return care.problems(self._opened, txn)
        except lmdb.Error as error:
            self._refuse_unusable()  # closed in the middle: no problem of the file
            return [f"LMDB can't read the file: {error}"]

    def stats(self) -> dict[str, int]:
        """Figures of the store (keys, file_bytes, readers) and of this process (the rest)."""
        try:
            with self.begin_view() as txn:
                return {
                    "keys": txn.stat(self._data)["entries"],
                    "file_bytes": (self.path / DATA_FILE).stat().st_size,
                    "readers": len(self._env.readers().splitlines()) - 1,
                    "commits": self.last_commit(),
                    "groups": self._groups,
                    "transactions": self._transactions,
                }
        except lmdb.Error as error:
            raise self.explained(error) from error

    def begin_view(self) -> Any:
        if self._overlay is not None and self._overlay.is_pending():
            self._overlay.flush()
        return self._begin_snapshot()

    def _begin_snapshot(self) -> Any:
        if self._unusable is not None:
            self._refuse_unusable()
        try:
            return self._env.begin(db=self._data)
        except lmdb.ReadersFullError:
            self._env.reader_check()
        except lmdb.Error as error:
            raise self.explained(error) from error
        try:
            return self._env.begin(db=self._data)
        except lmdb.Error as error:
            raise self.explained(error) from error

    def begin_view_of_waiting(self) -> tuple[Any, dict[bytes, bytes | None]]:
        """A snapshot and what it lacks: reading goes on where the disk is full."""
        if self._unusable is not None:
            self._refuse_unusable()
        assert self._overlay is not None
        try:
            return self._overlay.begin_view()
        except lmdb.Error as error:
            raise self.explained(error) from error

    def read_clock(self) -> float:
        return self._clock()


class _View:
    """A context manager by hand: a view costs 1 µs, a generator would double that."""

    __slots__ = ("_engine", "_space", "_txn")

    def __init__(self, engine: LmdbEngine, space: bytes) -> None:
        self._engine = engine
        self._space = space

    def __enter__(self) -> Reader:
        engine = self._engine
        try:
            txn = self._txn = engine.begin_view()
        except StoreFull:
            txn, waiting = engine.begin_view_of_waiting()
            self._txn = txn
            return _ViewOfWaiting(LmdbReader(txn, self._space, engine._clock()), waiting)
        return LmdbView(txn, self._space, engine._clock())

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


class _ViewOfWaiting(Buffer):
    """A view of commits that LMDB can't take at the moment."""

    __slots__ = ()

    def __init__(self, reader: LmdbReader, waiting: dict[bytes, bytes | None]) -> None:
        super().__init__(reader, reader.space, reader.now)
        self.written = waiting

    def __getattribute__(self, name: str) -> Any:
        if name in ("put", "delete", "clear", "add", "after_commit"):
            raise ViewOnlyReads(f"a view only reads, and was asked to {name}")
        return super().__getattribute__(name)


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


def _publish(group: list[Request], outcomes: list[Outcome[Any]]) -> None:
    begin = 0
    for request in group:
        end = begin + len(request.works)
        request.outcomes = outcomes[begin:end]
        begin = end


def _number(commit: int) -> bytes:
    return commit.to_bytes(8, "big")
