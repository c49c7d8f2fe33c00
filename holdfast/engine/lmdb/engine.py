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
from holdfast.engine.contract import Notice, Outcome, Reader, Subscription, Transaction
from holdfast.engine.durability import check_durability
from holdfast.engine.folder import Folder, sync_folder
from holdfast.engine.lmdb import care
from holdfast.engine.lmdb.checkpointer import Checkpointer
from holdfast.engine.lmdb.environment import DATA_FILE, explain, open_environment
from holdfast.engine.lmdb.transaction import LmdbReader, LmdbTransaction
from holdfast.engine.notices import NoticeHub
from holdfast.engine.turns import Request, Turns, Work
from holdfast.errors import BadInput, HoldfastError, StoreClosed, StoreForked, StoreUnusable
from holdfast.limits import CHECKPOINT_SECONDS, KEPT_NOTICE_COMMITS

T = TypeVar("T")

_NOTICES: Final = msgspec.msgpack.Decoder(list[Notice])
_GROUPS_PER_READER_CHECK: Final = 256

Step = tuple[Work, bytes]  # one transaction of a group, and its space
Publish = Callable[[list[Outcome[Any]]], None]  # tells the callers of a group what became of it


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
        self._data_file = os.open(data_file, os.O_RDONLY)
        self._checkpointer: Checkpointer | None = None
        try:
            self._settle(alone)
        except BaseException as error:
            self._env.close()
            os.close(self._data_file)
            if isinstance(error, lmdb.Error | OSError):
                raise explain(error, self.path) from error
            raise

    def _settle(self, alone: bool) -> None:
        """Brings the folder in order for the way in which it was opened."""
        self._env.reader_check()
        sync_folder(self.path)
        if not self._syncs:
            self._checkpointer = Checkpointer(self._env, self.path, self._folder, self._data_file)
            self._checkpointer.make()
        elif alone and checkpoints.load(self.path) is not None:
            # Left by an interval mode that crashed under the same system: all is there, unsynced.
            self._env.sync(True)
            checkpoints.remove(self.path)
        if alone:
            self._forget_notices()

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
            self._folder.lock_opening()
            try:
                if self._checkpointer is not None:
                    self._checkpointer.close()
            finally:
                self._env.close()
                os.close(self._data_file)
            if self._checkpointer is not None and self._folder.is_ours_alone():
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
            txn = self._begin()
            try:
                tx = LmdbTransaction(txn, space, self._clock())
                yield tx
            except BaseException:
                txn.abort()
                raise
            self._commit(txn, tx.notices)
            self._raise_interrupt()
            self._turns.leave(request)
        except lmdb.Error as error:
            self._turns.leave(request)
            raise self.explained(error) from error
        except BaseException:
            self._turns.leave(request)
            raise

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
        self, work: Work, space: bytes, publish: Publish = lambda outcomes: None
    ) -> Outcome[Any]:
        try:
            txn = self._begin()
            try:
                tx = LmdbTransaction(txn, space, self._clock())
                outcome = Outcome(result=work(tx))
            except BaseException:
                txn.abort()
                raise
            self._commit(txn, tx.notices, partial(publish, [outcome]))
        except KeyboardInterrupt:
            raise
        except lmdb.Error as error:
            return Outcome(error=self.explained(error))
        except BaseException as error:
            return Outcome(error=error)
        return outcome

    def _run_together(self, steps: list[Step], publish: Publish) -> None:
        txn = self._begin()
        notices: list[Notice] = []
        try:
            outcomes = [self._run_nested(txn, work, space, notices) for work, space in steps]
        except BaseException:
            txn.abort()
            raise
        self._commit(txn, notices, partial(publish, outcomes))

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
            if _is_open(txn):
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
        return self._notices.subscribe(wanted)

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

    def newest_notice(self) -> int:
        return int(self._env.info()["last_txnid"])

    def notices_since(self, commit: int) -> tuple[int, int, list[Notice]]:
        notices: list[Notice] = []
        if self.newest_notice() == commit:
            return commit, 0, notices
        with self.begin_view() as txn:
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
                    "commits": self.newest_notice(),
                    "groups": self._groups,
                    "transactions": self._transactions,
                }
        except lmdb.Error as error:
            raise self.explained(error) from error

    def begin_view(self) -> Any:
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
        txn = self._txn = engine.begin_view()
        return LmdbReader(txn, self._space, engine._clock())

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


def _publish(group: list[Request], outcomes: list[Outcome[Any]]) -> None:
    begin = 0
    for request in group:
        end = begin + len(request.works)
        request.outcomes = outcomes[begin:end]
        begin = end


def _is_open(txn: Any) -> bool:
    try:
        txn.id()
    except lmdb.Error:
        return False
    return True


def _number(commit: int) -> bytes:
    return commit.to_bytes(8, "big")
