"""Processes that share a folder, when one is killed, stopped or out of disk space at a bad moment.

Each test drives real processes, or the threads of one, to one order of steps in which a commit was
once lost, or a store could not be opened.
"""

import errno
import os
import resource
import shutil
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

from holdfast.engine import lock_wait
from holdfast.engine.contract import Engine, Notice, Transaction
from holdfast.engine.lmdb.file_writes import FileWriter
from holdfast.engine.lmdb.open_store import OpenStore
from holdfast.engine.lmdb.redo_log import RedoLog
from holdfast.engine.lmdb.shared_state import SharedState
from holdfast.errors import HoldfastError, StoreBusy, StoreFull
from tests.engine.test_shared_log import (
    ALL,
    commits_wait,
    durability,
    let_commits_wait,
    lmdb_commits,
    neighbour_on,
    obey,
    open_here,
    perform,
    put,
)
from tests.processes import start

__all__ = ["commits_wait", "durability"]  # fixtures


def look(engine: Engine) -> dict[bytes, bytes]:
    found: dict[bytes, bytes] = perform(engine, "look", b"", b"")
    return found


# --- a full disk ----------------------------------------------------------------------------------


def obey_without_log(path: str, durability: str, connection: Connection) -> None:
    """Like `obey`, in a process that found no space for a log when it opened the store."""
    RedoLog.__init__ = _limited(RedoLog.__init__)  # type: ignore[method-assign]
    obey(path, durability, connection)


def _limited(create: Callable[..., None]) -> Callable[..., None]:
    def limited(*arguments: Any, **options: Any) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (5_000, resource.RLIM_INFINITY))
        try:
            create(*arguments, **options)
        finally:
            unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
            resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)

    return limited


def test_beside_a_process_that_found_no_space_for_a_log_nobody_uses_one(
    tmp_path: Path, durability: str
) -> None:
    other = start(obey_without_log, str(tmp_path), durability)
    assert other.receive() == "open"
    with closing(open_here(tmp_path, durability)) as engine:
        put(engine, b"a", b"1")
        other.ask(("put", b"b", b"2"))

        assert look(engine) == other.ask(("look", b"", b"")) == {b"a": b"1", b"b": b"2"}
        assert other.ask(None) == "closed"


def test_a_commit_whose_notice_wakes_nobody_for_want_of_a_block_is_a_commit(
    tmp_path: Path, durability: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(open_here(tmp_path, durability)) as engine:
        other = neighbour_on(tmp_path, durability)
        write = os.pwrite

        def full(file: int, content: bytes, position: int) -> int:
            if content == b"n":
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return write(file, content, position)

        def work(tx: Transaction) -> None:
            tx.put(b"a", b"1")
            tx.after_commit(Notice("heard"))

        with engine.subscribe() as subscription:
            before = lmdb_commits(engine)
            monkeypatch.setattr(os, "pwrite", full)
            engine.transact(work)
            monkeypatch.undo()
            let_commits_wait()

            assert [notice.topic for notice in subscription.poll()] == ["heard"]
        assert lmdb_commits(engine) == before, "the log was given up"
        assert other.ask(("look", b"", b"")) == {b"a": b"1"}
        assert other.ask(None) == "closed"


def test_who_opens_a_store_finds_what_another_could_not_flush_when_it_closed(
    tmp_path: Path, durability: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = open_here(tmp_path, durability)
    put(engine, b"a", b"1")

    def full(*arguments: object, **options: object) -> bool:
        raise StoreFull("there is no space left")

    monkeypatch.setattr(FileWriter, "commit", full)
    other = start(obey, str(tmp_path), durability)
    shared_state = engine._files.shared_state  # type: ignore[attr-defined]
    while not shared_state.shared:  # ends when it waits for what this process keeps
        pass
    with pytest.raises(StoreFull):
        engine.close()

    assert other.receive() == "open"
    other.ask(("put", b"b", b"2"))
    assert other.ask(("look", b"", b"")) == {b"a": b"1", b"b": b"2"}
    assert other.ask(None) == "closed"


# --- threads and other processes ------------------------------------------------------------------


class AwaitedLock:
    """A lock that tells when another thread waits for it."""

    def __init__(self, lock: Any) -> None:
        self._lock = lock
        self.awaited = threading.Event()

    def __enter__(self) -> None:
        self.awaited.set()
        self._lock.acquire()

    def __exit__(self, *exc: object) -> None:
        self._lock.release()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._lock, name)


def write_when_told(path: str, durability: str, connection: Connection) -> None:
    """Opens the store, commits once, and holds the lease until it is told to commit again."""
    let_commits_wait()
    engine = open_here(path, durability)
    put(engine, b"b", b"2")
    connection.send("committed")
    with engine.transaction() as tx:
        tx.put(b"c", b"3")
        connection.send("holds the lease")
        connection.recv()
    connection.send("committed")
    connection.recv()
    engine.close()
    connection.send("closed")


def test_a_view_that_waited_while_the_lease_was_given_away_flushes_nothing(tmp_path: Path) -> None:
    with (
        closing(open_here(tmp_path, "interval")) as engine,
        ThreadPoolExecutor(1) as pool,
    ):
        overlay = engine._overlay  # type: ignore[attr-defined]
        put(engine, b"a", b"1")
        lock = overlay._lock = AwaitedLock(overlay._lock)
        lock.acquire()
        seen = pool.submit(look, engine)  # would flush, and finds the lock taken
        assert lock.awaited.wait(timeout=60)
        overlay._release_kept_lease()
        other = start(write_when_told, str(tmp_path), "interval")
        assert other.receive() == "committed"
        assert other.receive() == "holds the lease"
        assert overlay.has_unflushed()  # this process has read what the other has committed
        before = lmdb_commits(engine)

        lock.release()

        assert seen.result(timeout=60)[b"a"] == b"1"
        assert lmdb_commits(engine) == before, "it has committed without the lease"
        assert other.ask("commit") == "committed"
        assert look(engine) == {b"a": b"1", b"b": b"2", b"c": b"3"}
        assert other.ask("close") == "closed"


def test_no_view_shows_a_commit_before_other_processes_can_see_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(open_here(tmp_path, "interval")) as engine, ThreadPoolExecutor(1) as pool:
        other = neighbour_on(tmp_path, "interval")
        put(engine, b"a", b"1")
        base = engine._overlay._unflushed.base  # type: ignore[attr-defined]
        can_be_frozen: list[bool] = []
        publish = SharedState.publish

        def watched(shared_state: SharedState, above: int, end: int) -> None:
            can_be_frozen.append(pool.submit(base._lock.acquire, blocking=False).result())
            publish(shared_state, above, end)

        monkeypatch.setattr(SharedState, "publish", watched)
        put(engine, b"b", b"2")

        assert can_be_frozen == [False]
        assert look(engine) == other.ask(("look", b"", b"")) == {b"a": b"1", b"b": b"2"}
        assert other.ask(None) == "closed"


@pytest.mark.parametrize("is_published", [False, True])
def test_an_exception_of_a_signal_handler_in_a_commit_leaves_it_whole_or_undone(
    tmp_path: Path, durability: str, monkeypatch: pytest.MonkeyPatch, is_published: bool
) -> None:
    with closing(open_here(tmp_path, durability)) as engine:
        other = neighbour_on(tmp_path, durability)
        put(engine, b"a", b"1")
        name = "append" if durability == "commit" else "publish"
        publish = getattr(SharedState, name)

        def raise_exit(shared_state: SharedState, above: int, end: int) -> None:
            if is_published:
                publish(shared_state, above, end)
            raise SystemExit

        monkeypatch.setattr(SharedState, name, raise_exit)
        with pytest.raises(SystemExit):
            put(engine, b"b", b"2")
        monkeypatch.undo()
        let_commits_wait()

        expected = {b"a": b"1", b"b": b"2"} if is_published else {b"a": b"1"}
        assert engine.transact(lambda tx: dict(tx.scan(*ALL))) == expected  # and waits for the disk
        assert look(engine) == other.ask(("look", b"", b"")) == expected
        other.ask(("put", b"c", b"3"))
        assert engine.transact(lambda tx: dict(tx.scan(*ALL))) == {**expected, b"c": b"3"}
        assert other.ask(None) == "closed"


# --- kills ----------------------------------------------------------------------------------------


def die_before_publishing(path: str, durability: str, connection: Connection) -> None:
    let_commits_wait()
    engine = open_here(path, durability)
    SharedState.publish = SharedState.append = lambda *arguments: os._exit(1)  # type: ignore[method-assign]
    put(engine, b"unpublished", b"x" * 5_000)


def test_a_store_opens_whose_last_two_writers_were_killed_in_the_same_place_of_the_log(
    tmp_path: Path, durability: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(open_here(tmp_path / "store", durability)) as engine:
        other = neighbour_on(tmp_path / "store", durability)
        put(engine, b"a", b"1")
        assert start(die_before_publishing, str(tmp_path / "store"), durability).join() == 1

        def write_half(log: RedoLog, record: bytes, position: int) -> None:
            log._map[position : position + 20] = record[:20]
            shutil.copytree(tmp_path / "store", tmp_path / "killed")  # in this moment

        monkeypatch.setattr(RedoLog, "append", write_half)
        put(engine, b"half", b"x" * 500)
        monkeypatch.undo()
        other.kill()

    with closing(open_here(tmp_path / "killed", durability)) as engine:
        assert look(engine) == {b"a": b"1"}


def view_for_ever(path: str, durability: str, connection: Connection) -> None:
    engine = open_here(path, durability)
    with engine.view():
        connection.send(os.getpid())
        connection.recv()


def test_the_snapshot_of_a_killed_process_is_cleared_by_those_that_go_on(
    tmp_path: Path, durability: str
) -> None:
    with closing(open_here(tmp_path, durability)) as engine:
        other = neighbour_on(tmp_path, durability)
        victim = start(view_for_ever, str(tmp_path), durability)
        pid = victim.receive()
        assert f" {pid} " in engine._env.readers()  # type: ignore[attr-defined]
        victim.kill()

        put(engine, b"a", b"1")
        engine.stats()  # brings it into LMDB's file

        assert f" {pid} " not in engine._env.readers()  # type: ignore[attr-defined]
        assert other.ask(None) == "closed"


class SyncedEnvironment:
    """An LMDB environment that notes when it is synced."""

    def __init__(self, env: Any, steps: list[str]) -> None:
        self._env = env
        self._steps = steps

    def __getattr__(self, name: str) -> Any:
        return getattr(self._env, name)

    def sync(self, force: bool) -> None:
        self._env.sync(force)
        self._steps.append("sync")


def test_the_log_of_a_killed_process_is_given_up_only_when_lmdb_is_on_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may have been killed in its last LMDB commit: no record follows that, and the disk may
    not have it."""
    other = neighbour_on(tmp_path, "commit")
    other.ask(("put", b"a", b"1"))
    other.ask(("flush", b"", b""))
    other.kill()
    steps: list[str] = []
    take_over, begin = OpenStore._take_over_log, RedoLog.begin

    def watched(files: OpenStore) -> None:
        env = files.env
        files.env = SyncedEnvironment(env, steps)
        take_over(files)
        files.env = env

    monkeypatch.setattr(OpenStore, "_take_over_log", watched)
    monkeypatch.setattr(RedoLog, "begin", lambda log: steps.append("begin") or begin(log))  # type: ignore[func-returns-value]
    open_here(tmp_path, "commit").close()

    assert steps == ["sync", "begin"]


# --- a process that is stopped --------------------------------------------------------------------


def hold_the_lease(path: str, durability: str, connection: Connection) -> None:
    let_commits_wait()
    engine = open_here(path, durability)
    with engine.transaction() as tx:
        tx.put(b"b", b"2")
        connection.send(os.getpid())
        connection.recv()
    engine.close()
    connection.send("closed")


def try_to_open(path: str, durability: str, connection: Connection) -> None:
    lock_wait.STOPPED_PROCESS_SECONDS = 0.1  # type: ignore[attr-defined]
    try:
        open_here(path, durability).close()
        connection.send("opened")
    except HoldfastError as error:
        connection.send((type(error), str(error)))


def test_opening_beside_a_process_that_was_stopped_in_a_commit_to_the_log_names_it(
    tmp_path: Path, durability: str
) -> None:
    with closing(open_here(tmp_path, durability)) as engine:
        put(engine, b"a", b"1")
        stopped = start(hold_the_lease, str(tmp_path), durability)
        pid = stopped.receive()
        stopped.stop()

        kind, message = start(try_to_open, str(tmp_path), durability).receive()

        assert kind is StoreBusy
        assert f"process {pid} " in message
        stopped.go_on()
        assert stopped.ask("commit") == "closed"
        assert start(try_to_open, str(tmp_path), durability).receive() == "opened"
