"""Processes that share a log share its waits for the disk, and show nothing that the disk lacks."""

import errno
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

from holdfast.engine.contract import Engine, Notice, Transaction
from holdfast.engine.folder import Folder
from holdfast.engine.lmdb.file_writes import FileWriter
from holdfast.errors import HoldfastError, StoreFull
from tests.engine.test_shared_log import (
    ALL,
    commits_wait,
    let_commits_wait,
    lmdb_commits,
    open_here,
    perform,
    put,
)
from tests.processes import Child, start

__all__ = ["commits_wait"]  # a fixture


def look(engine: Engine) -> dict[bytes, bytes]:
    found: dict[bytes, bytes] = perform(engine, "look", b"", b"")
    return found


def obey(path: str, connection: Connection) -> None:
    """Does what it is told, and answers with what it has read, or with the error."""
    let_commits_wait()
    engine = open_here(path, "commit")
    syncs = 0
    sync = os.fdatasync

    def counted(file: int) -> None:
        nonlocal syncs
        syncs += 1
        sync(file)

    os.fdatasync = counted  # type: ignore[assignment]
    commit = FileWriter.commit
    connection.send("open")
    while (step := connection.recv()) is not None:
        try:
            if step in ("break", "mend"):
                FileWriter.commit = full if step == "break" else commit  # type: ignore[method-assign]
            connection.send(syncs if isinstance(step, str) else perform(engine, *step))
        except HoldfastError as error:
            connection.send(type(error))
    engine.close()
    connection.send("closed")


class Pair:
    """A store that this process and another one have open."""

    def __init__(self, engine: Engine, other: Child) -> None:
        self.engine = engine
        self.other = other
        self.shared_state = engine._files.shared_state  # type: ignore[attr-defined]

    def let_other_append(self, *step: Any) -> None:
        """Lets the other process begin a commit, and returns when it waits for the disk."""
        appended = self.shared_state.appended()
        self.other.send(step)
        while self.shared_state.appended() == appended:  # ends when it has appended
            pass

    def at_next_sync(self, patch: pytest.MonkeyPatch, then: Callable[[], None]) -> None:
        """Calls `then` when this process has appended, and the disk does not have it yet."""
        sync = os.fdatasync

        def watched(file: int) -> None:
            patch.setattr(os, "fdatasync", sync)
            then()
            sync(file)

        patch.setattr(os, "fdatasync", watched)


@pytest.fixture
def pair(tmp_path: Path) -> Any:
    with closing(open_here(tmp_path, "commit")) as engine:
        other = start(obey, str(tmp_path))
        assert other.receive() == "open"
        put(engine, b"a", b"1")
        yield Pair(engine, other)
        assert other.ask(None) == "closed"


def fail(*arguments: object, **options: object) -> Any:
    raise OSError(errno.EIO, os.strerror(errno.EIO))


def full(*arguments: object, **options: object) -> Any:
    raise StoreFull("there is no space left")


def test_one_sync_serves_the_commits_of_several_processes(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    syncs: list[int] = []
    sync, take_turn = os.fdatasync, Folder.lock_syncing

    def let_other_come_first(folder: Folder) -> None:
        monkeypatch.setattr(Folder, "lock_syncing", take_turn)
        pair.let_other_append("put", b"c", b"3")
        take_turn(folder)

    def counted(file: int) -> None:
        syncs.append(file)
        sync(file)

    monkeypatch.setattr(Folder, "lock_syncing", let_other_come_first)
    monkeypatch.setattr(os, "fdatasync", counted)
    before = pair.other.ask("syncs")
    put(pair.engine, b"b", b"2")

    assert pair.other.receive() is None
    assert len(syncs) + pair.other.ask("syncs") - before == 1
    assert look(pair.engine) == {b"a": b"1", b"b": b"2", b"c": b"3"}


def test_what_is_appended_while_the_disk_is_waited_for_waits_for_the_next_sync(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = pair.other.ask("syncs")
    pair.at_next_sync(monkeypatch, lambda: pair.let_other_append("put", b"c", b"3"))

    put(pair.engine, b"b", b"2")

    assert pair.other.receive() is None
    assert pair.other.ask("syncs") == before + 1


def test_no_view_shows_what_the_disk_does_not_have_and_none_waits_for_it(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[object] = []
    with ThreadPoolExecutor(1) as pool, pair.engine.subscribe() as subscription:

        def look_around() -> None:
            pair.let_other_append("put", b"c", b"3")
            seen.append(pool.submit(look, pair.engine).result(timeout=60))
            seen.append(pool.submit(subscription.poll).result(timeout=60))
            other = start(obey, str(pair.engine.path))  # type: ignore[attr-defined]
            assert other.receive() == "open"
            seen.append(other.ask(("look", b"", b"")))
            other.kill()

        def work(tx: Transaction) -> None:
            tx.put(b"b", b"2")
            tx.after_commit(Notice("b"))

        pair.at_next_sync(monkeypatch, look_around)
        pair.engine.transact(work)

        assert seen == [{b"a": b"1"}, [], {b"a": b"1"}]
        assert [notice.topic for notice in subscription.poll()] == ["b"]
    assert pair.other.receive() is None
    assert look(pair.engine) == {b"a": b"1", b"b": b"2", b"c": b"3"}
    assert pair.other.ask(("look", b"", b"")) == look(pair.engine)


def test_if_the_disk_fails_all_that_was_appended_is_brought_into_lmdb(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    def append_and_fail() -> None:
        pair.let_other_append("put", b"c", b"3")
        fail()

    pair.at_next_sync(monkeypatch, append_and_fail)

    put(pair.engine, b"b", b"2")

    assert pair.other.receive() is None
    before = lmdb_commits(pair.engine)
    put(pair.engine, b"d", b"4")
    assert pair.other.ask(("put", b"e", b"5")) is None
    assert lmdb_commits(pair.engine) == before + 2, "someone relies on the log"
    assert sorted(look(pair.engine)) == [b"a", b"b", b"c", b"d", b"e"]
    assert pair.other.ask(("look", b"", b"")) == look(pair.engine)


@pytest.mark.parametrize("step", ["put", "read", "fail"])
def test_if_the_disk_takes_nothing_at_all_what_was_built_on_the_lost_fails_too(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    def append_and_fail() -> None:
        if step == "put":
            pair.let_other_append("put", b"c", b"3")
        else:
            pair.other.send((step, b"c", b"3"))
        monkeypatch.setattr(FileWriter, "commit", full)
        fail()

    pair.other.ask("break")
    pair.at_next_sync(monkeypatch, append_and_fail)

    with pytest.raises(StoreFull):
        put(pair.engine, b"b", b"2")

    answer = pair.other.receive()
    possible: dict[str, list[object]] = {
        "put": [StoreFull],
        "read": [StoreFull, {b"a": b"1"}],
        "fail": [None],
    }
    assert answer in possible[step]
    monkeypatch.undo()
    let_commits_wait()
    pair.other.ask("mend")
    assert look(pair.engine) == pair.other.ask(("look", b"", b"")) == {b"a": b"1"}
    put(pair.engine, b"d", b"4")
    assert pair.other.ask(("put", b"e", b"5")) is None
    expected = {b"a": b"1", b"d": b"4", b"e": b"5"}
    assert look(pair.engine) == pair.other.ask(("read", b"", b"")) == expected


def die_after_appending(path: str, connection: Connection) -> None:
    let_commits_wait()
    engine = open_here(path, "commit")
    os.fdatasync = lambda file: os._exit(1)  # type: ignore[assignment]
    put(engine, b"b", b"2")


@pytest.mark.parametrize("step", ["put", "read"])
def test_what_a_killed_process_has_appended_is_on_disk_with_the_next_transaction(
    pair: Pair, step: str
) -> None:
    assert start(die_after_appending, str(pair.engine.path)).join() == 1  # type: ignore[attr-defined]
    assert look(pair.engine) == {b"a": b"1"}

    perform(pair.engine, step, b"c", b"3")

    expected = {b"a": b"1", b"b": b"2"} | ({b"c": b"3"} if step == "put" else {})
    assert look(pair.engine) == pair.other.ask(("look", b"", b"")) == expected
    assert pair.engine.transact(lambda tx: dict(tx.scan(*ALL))) == expected
