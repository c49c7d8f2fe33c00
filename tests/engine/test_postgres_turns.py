"""PostgreSQL: transactions that wait for their turn in what others change too."""

import threading
from typing import Any

import psycopg
import pytest

from holdfast.engine import open_engine
from holdfast.engine.contract import Notice, Transaction
from holdfast.engine.postgres.connection import PostgresConnection as PostgresConnection
from holdfast.engine.remote import Conflicted, RemoteEngine
from tests.engine.postgres_engine import commit_of, engine, increment, url

__all__ = ["engine", "url"]

pytestmark = pytest.mark.only_on("postgres")


def test_who_has_a_turn_holds_up_only_those_that_want_the_same(
    engine: RemoteEngine, url: str
) -> None:
    other = open_engine(url, durability="interval")
    engine.transact(increment)
    engine._runner._contention._until[b"n"] = float("inf")
    runs = []

    def work(tx: Transaction) -> int:
        runs.append(1)
        if len(runs) == 2:  # the first run was on guesses
            other.transact(lambda tx: tx.put(b"m", b"not held up"))
        return increment(tx)

    assert engine.transact(work) == 2
    assert len(runs) == 2
    assert engine.stats()["conflicts"] == 0
    other.close()


def test_transactions_take_turns_in_what_they_read_and_write(
    engine: RemoteEngine, url: str
) -> None:
    engine.transact(increment)
    backend: Any = engine.backend
    session = backend.turn_session(b"", [b"n"])
    [[_, version]], _ = session.fetch([b"n"], [])
    read: list[Any] = []

    def wait_and_read() -> None:
        waiting = backend.turn_session(b"", [b"n", b"other"])
        read.append(waiting.fetch([b"n"], [])[0][0].value)
        waiting.close()

    thread = threading.Thread(target=wait_and_read)
    thread.start()
    with psycopg.connect(url, autocommit=True) as plain:
        waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
        while plain.execute(waiting).fetchone() == (0,):
            assert not read
    session.commit(commit_of(b"n", b"5", {b"n": version}))
    thread.join()

    assert read == [b"5"]


def test_a_turn_that_reads_two_moments_and_writes_nothing_is_run_again(
    engine: RemoteEngine, url: str
) -> None:
    other = open_engine(url, durability="interval")
    numbers = iter(range(10))

    def change(tx: Transaction) -> None:
        number = b"%d" % next(numbers)
        tx.put(b"a", number)
        tx.put(b"b", number)

    engine.transact(change)
    other.transact(change)
    engine._runner._contention._until[b"a"] = float("inf")
    runs = []

    def work(tx: Transaction) -> Any:
        runs.append(1)
        first = tx.get(b"a")
        if first == b"0":  # as remembered
            tx.put(b"c", b"")
            return None
        if len(runs) == 2:
            other.transact(change)
        return first, tx.get(b"b")

    assert engine.transact(work) == (b"2", b"2")
    other.close()


def test_a_turn_that_is_refused_leaves_no_transaction_open_behind_it(
    engine: RemoteEngine, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.engine.postgres.backend._COMMITS_PER_CLEANING", 1)
    other = open_engine(url, durability="interval")
    engine.transact(increment)
    backend: Any = engine.backend
    session = backend.turn_session(b"", [b"n"])
    [[_, version]], _ = session.fetch([b"n"], [])
    other.transact(lambda tx: tx.put(b"n", b"9"))

    with pytest.raises(Conflicted):
        session.commit(commit_of(b"n", b"5", {b"n": version}, notices=[Notice("changed")]))

    turn = backend.turn_session(b"", [b"n"])
    assert turn.fetch([b"n"], [])[0][0].value == b"9"
    turn.close()
    other.close()


def test_a_process_that_is_alone_again_commits_by_one_statement(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, other = open_engine(url), open_engine(url)
    assert isinstance(engine, RemoteEngine)
    for each in (engine, other, engine, other, engine):
        each.transact(increment)
    engine._runner._contention.note([b"n"])
    sent: list[str] = []
    send = PostgresConnection.send

    def noting(self: PostgresConnection, statement: Any, *parameters: bytes | None) -> None:
        sent.append(statement.name.decode().removeprefix("holdfast_"))
        send(self, statement, *parameters)

    monkeypatch.setattr(PostgresConnection, "send", noting)

    engine.transact(increment)
    beside_others = sent[:]
    for _ in range(12):
        engine.transact(increment)
    sent.clear()
    engine.transact(increment)

    assert {"turn", "flush"} <= set(beside_others)
    assert sent == ["call_commit"]
    engine.close()
    other.close()
