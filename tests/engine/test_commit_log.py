"""Commit mode and its log: one wait for the disk, and what happens when the disk fails."""

import errno
import itertools
import os
import resource
import shutil
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.engine import open_engine
from holdfast.engine.contract import Engine, Notice, Transaction
from holdfast.engine.lmdb import (
    file_writes,
    flusher,
    log_lease,
    open_store,
    overlay,
    redo_log,
    unflushed_commits,
)
from holdfast.errors import StoreFull, ViewOnlyReads
from holdfast.limits import COMMITS_BEFORE_LOG
from tests.processes import start


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    monkeypatch.setattr(overlay, "COMMITS_BEFORE_LOG", 0)
    monkeypatch.setattr(overlay, "MAX_WAITING_SECONDS", 3600.0)
    engine = open_engine(tmp_path / "store")
    put(engine, b"first", b"1")
    yield engine
    assert engine.check() == []
    engine.close()


@pytest.fixture(scope="module")
def shared_engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(overlay, "COMMITS_BEFORE_LOG", 0)
        engine = open_engine(tmp_path_factory.mktemp("store"))
    yield engine
    engine.close()


def wait_at_once() -> None:
    """Lets commits wait at once, in a process of its own."""
    overlay.COMMITS_BEFORE_LOG = 0  # type: ignore[attr-defined]
    overlay.MAX_WAITING_SECONDS = 3600.0  # type: ignore[attr-defined]


def put(engine: Engine, key: bytes, value: bytes) -> None:
    engine.transact(lambda tx: tx.put(key, value))


def put_number(number: int) -> Callable[[Transaction], None]:
    return lambda tx: tx.put(b"%d" % number, b"")


def look(engine: Engine) -> dict[bytes, bytes]:
    with engine.view() as view:
        return dict(view.scan(b"", b"\xff"))


def lmdb_commits(engine: Engine) -> int:
    return int(engine._env.info()["last_txnid"])  # type: ignore[attr-defined]


def after_a_kill(path: Path, target: Path) -> dict[bytes, bytes]:
    """Returns the content of the store if its process were killed now."""
    shutil.copytree(path, target)
    engine = open_engine(target)
    found = look(engine)
    engine.close()
    return found


# --- one wait for the disk ------------------------------------------------------------------------


def test_a_commit_is_one_sync_of_the_log(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    before = lmdb_commits(engine)
    fdatasync, syncs = os.fdatasync, list[int]()

    def count(file: int) -> None:
        syncs.append(file)
        fdatasync(file)

    monkeypatch.setattr(os, "fdatasync", count)

    put(engine, b"a", b"1")
    engine.transact_many([put_number(number) for number in range(50)])

    assert len(syncs) == 2
    assert lmdb_commits(engine) == before
    assert len(look(engine)) == 52


def test_a_short_program_does_without_the_log(tmp_path: Path) -> None:
    engine = open_engine(tmp_path)
    before = lmdb_commits(engine)

    for number in range(COMMITS_BEFORE_LOG + 10):
        put(engine, b"%d" % number, b"")

    assert lmdb_commits(engine) == before + COMMITS_BEFORE_LOG
    engine.close()
    assert not (tmp_path / "redo").exists()


def test_what_has_waited_long_enough_gets_into_lmdb(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overlay, "COMMITS_BEFORE_LOG", 0)
    monkeypatch.setattr(overlay, "MAX_WAITING_SECONDS", 0.001)
    engine = open_engine(tmp_path)
    before = lmdb_commits(engine)

    put(engine, b"a", b"1")

    while lmdb_commits(engine) == before:  # ends when LMDB has got it
        pass
    engine.close()


def test_lmdb_gets_what_waits_sooner_when_no_more_is_committed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overlay, "COMMITS_BEFORE_LOG", 0)
    monkeypatch.setattr(overlay, "MAX_WAITING_SECONDS", 600.0)
    engine = open_engine(tmp_path)
    before = lmdb_commits(engine)
    seconds = itertools.count(step=30)  # between two looks at the clock
    clock = SimpleNamespace(monotonic=lambda: float(next(seconds)))
    monkeypatch.setattr(unflushed_commits, "time", clock)
    monkeypatch.setattr(flusher, "time", clock)

    put(engine, b"a", b"1")

    while lmdb_commits(engine) == before:  # ends when LMDB has got it
        pass
    assert next(seconds) < 600
    engine.close()


def test_records_that_left_nothing_to_write_count_no_more_in_the_next_round_of_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overlay, "COMMITS_BEFORE_LOG", 0)
    monkeypatch.setattr(overlay, "MAX_WAITING_SECONDS", 3600.0)
    monkeypatch.setattr(redo_log, "REDO_LOG_BYTES", 10 * 4096)  # two for the header, eight records
    engine = open_engine(tmp_path / "store")
    for _ in range(4):
        put(engine, b"a", b"1")
        engine.transact(lambda tx: tx.delete(b"a"))
    put(engine, b"a", b"5")

    assert after_a_kill(tmp_path / "store", tmp_path / "killed") == {b"a": b"5"}
    engine.close()


def test_a_backup_has_what_waits(engine: Engine, tmp_path: Path) -> None:
    put(engine, b"a", b"1")

    engine.backup(tmp_path / "copy")

    copy = open_engine(tmp_path / "copy")
    assert look(copy) == {b"a": b"1", b"first": b"1"}
    assert copy.check() == []
    copy.close()


def test_interval_mode_syncs_what_the_log_promised_before_it_begins(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(engine, b"a", b"1")
    shutil.copytree(tmp_path / "store", tmp_path / "killed")
    synced = []

    def watched(env: Any, *arguments: Any) -> None:
        before = env.info()["last_txnid"]
        file_writes.replay(env, *arguments)
        if env.info()["last_txnid"] != before:
            synced.append(env.flags()["sync"])

    monkeypatch.setattr(open_store, "replay", watched)
    interval = open_engine(tmp_path / "killed", durability="interval")

    assert look(interval) == {b"a": b"1", b"first": b"1"}
    assert synced == [True]
    interval.close()


# --- views ----------------------------------------------------------------------------------------


def test_a_view_sees_what_waits_and_stays_at_its_moment(engine: Engine) -> None:
    put(engine, b"b", b"old")
    put(engine, b"c", b"old")
    engine.transact_many([put_number(number) for number in range(40)])

    with engine.view() as view:
        before = lmdb_commits(engine)
        put(engine, b"a", b"new")
        put(engine, b"b", b"new")
        engine.transact(lambda tx: tx.delete(b"c"))
        now = look(engine)
        assert lmdb_commits(engine) == before, "LMDB has it: nothing is tested"
        engine.stats()  # brings all into LMDB's file
        then = [(b"b", b"old"), (b"c", b"old"), (b"first", b"1")]
        assert list(view.scan(b"a", b"x")) == then
        assert list(view.scan(b"a", b"x", reverse=True, limit=2)) == then[:0:-1]
        assert len(list(view.scan(b"", b"\xff"))) == 43
        assert view.get_many([b"a", b"b", b"first"]) == [None, b"old", b"1"]
        with pytest.raises(ViewOnlyReads):
            view.put(b"a", b"2")  # type: ignore[attr-defined]  # that is the point

    assert sorted(now.items())[-3:] == [(b"a", b"new"), (b"b", b"new"), (b"first", b"1")]
    assert look(engine) == now


def test_a_view_that_is_opened_while_lmdb_gets_what_waits_sees_it_once(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(engine, b"a", b"1")
    begin_snapshot = engine._begin_snapshot  # type: ignore[attr-defined]

    def late() -> Any:
        monkeypatch.undo()
        monkeypatch.setattr(overlay, "COMMITS_BEFORE_LOG", 0)
        engine.transact_many([lambda tx: tx.put(b"a", b"2"), lambda tx: tx.put(b"b", b"2")])
        engine.stats()  # brings all into LMDB's file
        return begin_snapshot()

    monkeypatch.setattr(engine, "_begin_snapshot", late)

    assert look(engine) == {b"a": b"2", b"b": b"2", b"first": b"1"}


def test_a_view_waits_for_no_disk_and_sees_nothing_that_is_not_on_it(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(engine, b"a", b"old")
    reached, go_on = threading.Event(), threading.Event()
    fdatasync = os.fdatasync

    def slow(file: int) -> None:
        reached.set()
        assert go_on.wait(30)
        fdatasync(file)

    monkeypatch.setattr(os, "fdatasync", slow)
    with ThreadPoolExecutor(1) as pool:
        commit = pool.submit(put, engine, b"a", b"new")
        assert reached.wait(30)
        meanwhile = look(engine)[b"a"]
        go_on.set()
        commit.result(timeout=30)

    assert (meanwhile, look(engine)[b"a"]) == (b"old", b"new")


def test_views_of_many_threads_see_their_own_commits(engine: Engine) -> None:
    def work(name: int) -> None:
        for number in range(40):
            put(engine, b"%d/%02d" % (name, number), b"")
            with engine.view() as view:
                mine = list(view.scan(b"%d/" % name, b"%d0" % name))
            assert len(mine) == number + 1
            if number % 10 == name:
                engine.stats()  # brings all into LMDB's file

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(6)))

    assert len(look(engine)) == 241


# --- notices --------------------------------------------------------------------------------------


def note(number: int, *, writes: bool = True) -> Callable[[Transaction], None]:
    def work(tx: Transaction) -> None:
        if writes:
            tx.put(b"noted", b"%d" % number)
        tx.after_commit(Notice("n", b"%d" % number))

    return work


def test_a_subscriber_hears_of_a_commit_that_waits(engine: Engine) -> None:
    with engine.subscribe() as subscription:
        before = lmdb_commits(engine)
        engine.transact(note(1))
        engine.transact(note(2, writes=False))

        assert [subscription.get(timeout=30), subscription.get(timeout=30)] == [
            Notice("n", b"1"),
            Notice("n", b"2"),
        ]
        assert lmdb_commits(engine) == before, "LMDB has it: nothing is tested"


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.sampled_from(["commit", "commit", "notice", "clear", "flush", "leave", "poll"])),
)
def test_a_subscriber_hears_of_every_commit_once_and_in_order(
    shared_engine: Engine, steps: list[str]
) -> None:
    engine = shared_engine
    made, heard = [], []
    engine.transact(note(-1))
    with engine.subscribe() as subscription:
        for number, step in enumerate(steps):
            match step:
                case "commit" | "notice":
                    engine.transact(note(number, writes=step == "commit"))
                    made.append(b"%d" % number)
                case "clear":  # is committed directly
                    with engine.transaction() as tx:
                        tx.clear(b"x", b"y")
                        note(number)(tx)
                    made.append(b"%d" % number)
                case "flush":
                    engine.stats()
                case "leave":  # as for a process that comes
                    with engine._overlay._lock:  # type: ignore[attr-defined]
                        engine._overlay._release_kept_lease()  # type: ignore[attr-defined]
                case "poll":
                    heard += [notice.payload for notice in subscription.poll()]
                    assert heard == made
        heard += [notice.payload for notice in subscription.poll()]

    assert heard == made
    assert subscription.missed == 0


# --- interruption ---------------------------------------------------------------------------------


class TimeLimit(Exception):
    """What a handler of SIGALRM may raise."""


RAISED = pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, TimeoutError, TimeLimit])


@RAISED
def test_a_signal_handler_that_raises_while_the_disk_works_is_heard_after_the_commit(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: type[BaseException]
) -> None:
    before = lmdb_commits(engine)
    fdatasync, strikes = os.fdatasync, [1, 2, 3]

    def interrupted(file: int) -> None:
        if strikes:
            strikes.pop()
            raise kind
        fdatasync(file)

    monkeypatch.setattr(os, "fdatasync", interrupted)

    with pytest.raises(kind):
        engine.transact(lambda tx: tx.add(b"n", 1))

    assert strikes == []
    assert look(engine)[b"n"] == engine.transact(lambda tx: tx.get(b"n"))
    assert len(after_a_kill(tmp_path / "store", tmp_path / "killed")) == 2
    assert lmdb_commits(engine) == before  # the log is still trusted


@RAISED
def test_commits_after_a_flush_in_which_a_signal_handler_raised_are_seen_and_survive_a_kill(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: type[BaseException]
) -> None:
    """LMDB's commit is one system call after the other, so a signal is mostly handled right after
    it."""
    restart, strikes = engine._overlay._restart, [1]  # type: ignore[attr-defined]

    def interrupted(publish: Callable[[], None]) -> None:
        if strikes:
            strikes.pop()
            raise kind
        restart(publish)

    monkeypatch.setattr(engine._overlay, "_restart", interrupted)  # type: ignore[attr-defined]
    with pytest.raises(kind):
        engine.stats()

    put(engine, b"a", b"1")

    assert look(engine) == {b"first": b"1", b"a": b"1"}
    assert after_a_kill(tmp_path / "store", tmp_path / "killed") == look(engine)


# --- a disk that fails ----------------------------------------------------------------------------


def fail(file: int) -> None:
    raise OSError(errno.EIO, os.strerror(errno.EIO))


def test_after_a_failed_sync_all_commits_go_to_lmdb(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(engine, b"a", b"1")
    before = lmdb_commits(engine)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fdatasync", fail)
        put(engine, b"b", b"2")
    put(engine, b"c", b"3")
    engine.transact_many([lambda tx: tx.put(b"d", b"4"), lambda tx: tx.put(b"e", b"5")])

    assert lmdb_commits(engine) == before + 3
    expected = {b"first": b"1", b"a": b"1", b"b": b"2", b"c": b"3", b"d": b"4", b"e": b"5"}
    assert look(engine) == expected
    assert after_a_kill(tmp_path / "store", tmp_path / "killed") == expected


def fail_altogether(path: str, connection: Connection) -> None:
    """First the log can't be synced, and then LMDB's file not be written."""
    wait_at_once()
    flusher.FLUSH_SECONDS = 3600  # type: ignore[attr-defined]  # no other thread puts anything right meanwhile
    engine = open_engine(path)
    put(engine, b"a", bytes(100_000))
    engine.stats()  # brings it into LMDB's file, which is longer now than it may be
    put(engine, b"a", b"1")
    put(engine, b"b", b"2")
    fdatasync = os.fdatasync
    os.fdatasync = fail  # type: ignore[assignment]  # in this process only
    resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, resource.RLIM_INFINITY))
    works: list[Callable[[Transaction], None]] = [
        lambda tx: tx.put(b"a", b"not"),
        lambda tx: tx.put(b"c", b"not"),
    ]
    outcomes = [*engine.transact_many(works), *engine.transact_many(works[:1])]
    connection.send([type(outcome.error) for outcome in outcomes])
    connection.send(look(engine))
    connection.recv()
    os.fdatasync = fdatasync
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    before = lmdb_commits(engine)
    put(engine, b"d", b"4")
    connection.send((lmdb_commits(engine) - before, look(engine)))
    connection.recv()


def test_what_fails_is_not_kept_and_what_was_acknowledged_is(tmp_path: Path) -> None:
    child = start(fail_altogether, str(tmp_path / "store"))

    assert child.receive() == [StoreFull] * 3
    assert child.receive() == {b"a": b"1", b"b": b"2"}
    assert after_a_kill(tmp_path / "store", tmp_path / "1") == {b"a": b"1", b"b": b"2"}
    expected = {b"a": b"1", b"b": b"2", b"d": b"4"}
    # What waited, then this one, both in LMDB at once: nobody relies on a log that has failed.
    assert child.ask("room again") == (2, expected)
    assert after_a_kill(tmp_path / "store", tmp_path / "2") == expected
    child.kill()


def fill_the_log(path: str, limit: int, connection: Connection) -> None:
    wait_at_once()
    engine = open_engine(path)
    if limit > 2**20:
        put(engine, b"0", b"")  # the log is whole before the disk is full
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    for number in range(600):
        put(engine, b"%d" % (number % 50), b"%d" % number)
    failed = engine._overlay._lease.state is log_lease.FAILED  # type: ignore[attr-defined]
    connection.send((failed, look(engine)))
    connection.recv()


@pytest.mark.parametrize("limit", [2**19, 2**20 + 1])
def test_a_log_on_a_full_disk_stops_no_writer(tmp_path: Path, limit: int) -> None:
    """There is none for the whole log when it is made, or none for one record."""
    child = start(fill_the_log, str(tmp_path / "store"), limit)

    failed, content = child.receive()
    child.kill()

    assert failed
    assert content == {b"%d" % key: b"%d" % (550 + key) for key in range(50)}
    assert after_a_kill(tmp_path / "store", tmp_path / "killed") == content
