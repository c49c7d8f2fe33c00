"""PostgreSQL: what is its own. The conformance suite is in test_conformance.py."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import pairwise
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import psycopg
import pytest

import holdfast
from holdfast.engine import open_engine
from holdfast.engine.contract import Engine, Notice, Transaction
from holdfast.engine.postgres import functions, statements
from holdfast.engine.postgres.connection import PostgresConnection
from holdfast.engine.remote import ConnectionLost, RemoteEngine
from holdfast.errors import (
    BadInput,
    Conflict,
    StoreForked,
    StoreUnreachable,
    StoreUnusable,
)
from tests.engine.postgres_engine import commit_of, engine, exchanges, increment, url
from tests.processes import start
from tests.servers import PostgresServer
from tests.stores import Stores

__all__ = ["engine", "exchanges", "url"]

pytestmark = pytest.mark.only_on("postgres")


# --- round trips ----------------------------------------------------------------------------------


def test_a_job_is_put_popped_completed_and_read_in_one_round_trip_each(
    url: str, exchanges: list[int]
) -> None:
    with holdfast.open(url, durability="interval") as store:

        def cycle(id: str) -> list[int]:
            begins = [len(exchanges)]
            store.jobs.put("emails", "Welcome", {"to": "ann"}, id=id)
            begins.append(len(exchanges))
            [job] = store.jobs.pop("emails", worker="one")
            begins.append(len(exchanges))
            store.jobs.complete(job.id, worker="one", lock=job.lock)
            begins.append(len(exchanges))
            assert store.jobs.get(id) is not None
            begins.append(len(exchanges))
            return [after - before for before, after in pairwise(begins)]

        cycle("first")
        assert cycle("second") == [1, 1, 1, 1]


def test_a_job_that_another_process_has_put_is_popped_in_two_round_trips(
    url: str, exchanges: list[int]
) -> None:
    with (
        holdfast.open(url, durability="interval") as producer,
        holdfast.open(url, durability="interval") as worker,
    ):
        for id in ("first", "second"):
            producer.jobs.put("emails", "Welcome", {"to": "ann"}, id=f"{id}-job")
            exchanges.clear()
            [job] = worker.jobs.pop("emails", worker="one")
            popped_in = len(exchanges)
            worker.jobs.complete(job.id, worker="one", lock=job.lock)

        assert job.id == "second-job"
        assert popped_in == 2


def test_a_hundred_jobs_of_a_group_are_put_in_one_round_trip(
    url: str, exchanges: list[int]
) -> None:
    with holdfast.open(url, durability="interval") as store:
        store.jobs.put("emails")
        exchanges.clear()

        steps = [holdfast.store.Step(store, lambda tx: tx.jobs.put("emails")) for _ in range(100)]
        outcomes = store.transact_many(steps)

        assert all(outcome.error is None for outcome in outcomes)
        assert len(exchanges) == 1


def test_a_single_read_is_one_round_trip_and_a_blind_write_one(
    engine: Engine, exchanges: list[int]
) -> None:
    engine.transact(increment, space=b"")
    exchanges.clear()

    with engine.view() as view:
        view.get(b"n")
    assert len(exchanges) == 1

    engine.transact(lambda tx: tx.add(b"counter", 1))
    assert len(exchanges) == 2


# --- conflicts between processes ------------------------------------------------------------------


def test_a_with_block_in_conflict_with_another_process_says_so(engine: Engine, url: str) -> None:
    other = open_engine(url, durability="interval")

    def overtaken(read: Callable[[Transaction], Any], write: Callable[[Transaction], Any]) -> None:
        with engine.transaction(space=b"s") as tx:
            read(tx)
            other.transact(write, space=b"s")
            tx.put(b"s-mine", b"")

    with pytest.raises(Conflict):
        overtaken(lambda tx: tx.get(b"s1"), lambda tx: tx.put(b"s1", b""))
    with pytest.raises(Conflict):
        overtaken(lambda tx: list(tx.scan(b"s", b"t")), lambda tx: tx.put(b"s2", b""))
    with pytest.raises(Conflict):
        overtaken(lambda tx: list(tx.scan(b"s", b"t")), lambda tx: tx.delete(b"s2"))
    with pytest.raises(Conflict):
        overtaken(lambda tx: tx.get(b"s1"), lambda tx: tx.put(b"s1", b""))  # the same value again
    overtaken(lambda tx: tx.get(b"s1"), lambda tx: tx.put(b"s3", b""))
    overtaken(lambda tx: tx.add(b"s4", 1), lambda tx: tx.add(b"s4", 1))
    other.close()


def test_a_transaction_of_the_whole_store_excludes_those_of_its_spaces(
    engine: Engine, url: str
) -> None:
    other = open_engine(url, durability="interval")

    def overtaken(mine: bytes, theirs: bytes) -> None:
        with engine.transaction(space=mine) as tx:
            tx.get(b"s1")
            other.transact(lambda tx: tx.put(b"s1", os.urandom(4)), space=theirs)
            tx.put(b"s2", b"")

    with pytest.raises(Conflict):
        overtaken(b"", b"s")
    with pytest.raises(Conflict):
        overtaken(b"s", b"")
    other.close()


def test_spaces_that_lie_one_within_the_other_are_refused(engine: Engine) -> None:
    engine.transact(lambda tx: tx.put(b"ab1", b""), space=b"ab")

    for space in (b"a", b"abc"):
        with pytest.raises(BadInput, match="one is inside the other"):
            engine.transact(lambda tx, key=space + b"z": tx.put(key, b""), space=space)  # type: ignore[misc]
    engine.transact(lambda tx: tx.put(b"ac1", b""), space=b"ac")


def test_after_a_conflict_what_was_read_is_locked_for_a_while_and_nothing_is_lost(
    engine: RemoteEngine, url: str
) -> None:
    other = open_engine(url, durability="interval")
    rounds = 40

    def run(each: Engine) -> None:
        for _ in range(rounds):
            each.transact(increment)

    threads = [threading.Thread(target=run, args=(each,)) for each in (engine, other)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert engine.transact(increment) == 2 * rounds + 1
    other.close()


def test_a_space_that_is_locked_costs_one_round_trip_more_and_is_released_at_the_end(
    engine: RemoteEngine, url: str, exchanges: list[int]
) -> None:
    other = open_engine(url, durability="interval")
    engine.transact(increment)
    other.transact(increment)
    engine._runner._contention._until[b"n"] = float("inf")
    exchanges.clear()

    assert engine.transact(increment) == 3
    assert len(exchanges) == 2

    def fails(tx: Transaction) -> None:
        increment(tx)
        raise ZeroDivisionError

    assert engine.transact(lambda tx: tx.get(b"n")) == b"3"  # reads only
    assert other.transact(increment) == 4
    with pytest.raises(ZeroDivisionError):
        engine.transact(fails)
    assert other.transact(increment) == 5
    assert engine.transact(increment) == 6
    other.close()


def test_a_refused_statement_leaves_no_transaction_open_behind_it(engine: RemoteEngine) -> None:
    backend: Any = engine.backend

    def divide_by_zero() -> None:
        with backend.borrowed() as connection:
            connection.send(statements.BEGIN)
            connection.send_sql("SELECT 1 / 0")
            connection.sync()
            connection.exchange()

    with pytest.raises(StoreUnusable, match="division by zero"):
        divide_by_zero()

    assert engine.transact(increment) == 1


def test_a_wrong_guess_is_answered_with_the_truth_and_leaves_nothing_behind(
    engine: RemoteEngine, url: str, exchanges: list[int]
) -> None:
    other = open_engine(url, durability="interval")
    engine.transact(lambda tx: tx.put(b"a1", b"before"))
    other.transact(lambda tx: tx.put(b"a1", b"after"))
    other.transact(lambda tx: tx.put(b"a2", b"new"))
    other.transact(lambda tx: tx.add(b"a3", 7))
    commits = engine.stats()["commits"]
    exchanges.clear()

    def work(tx: Transaction) -> Any:
        found = [list(tx.scan(b"a", b"b", limit=2)), list(tx.scan(b"a", b"b", reverse=True))]
        tx.put(b"b", b"written")
        return found, tx.get(b"a1"), tx.get(b"a9")

    (forward, backward), first, absent = engine.transact(work)

    assert forward == [(b"a1", b"after"), (b"a2", b"new")]
    assert backward == [(b"a3", (7).to_bytes(8)), *forward[::-1]]
    assert (first, absent) == (b"after", None)
    assert len(exchanges) == 2
    assert engine.stats()["commits"] == commits + 1
    other.close()


@pytest.mark.parametrize(("most", "trips"), [(70, 2), (69, 3)])
@pytest.mark.parametrize("is_scanned", [False, True])
def test_what_is_too_large_for_an_answer_is_read_by_statements(
    is_scanned: bool, most: int, trips: int, engine: RemoteEngine, url: str, exchanges: list[int]
) -> None:
    other = open_engine(url, durability="interval")
    engine.transact(lambda tx: tx.put(b"a", b"before"))
    other.transact(lambda tx: tx.put_all({b"a": b"after" * 12, b"b": b"x" * 10}))

    def append(tx: Transaction) -> list[bytes | None]:
        scanned = dict(tx.scan(b"a", b"c")) if is_scanned else {}
        tx.put(b"c", b"written")
        return [*scanned.values()] if is_scanned else tx.get_many([b"a", b"b"])

    with psycopg.connect(url, autocommit=True) as plain:
        plain.execute(functions.CREATE_COMMIT.replace(str(functions.MAX_ANSWER_BYTES), str(most)))
        exchanges.clear()
        try:
            assert engine.transact(append) == [b"after" * 12, b"x" * 10]
        finally:
            plain.execute(functions.CREATE_COMMIT)
    assert len(exchanges) == trips
    other.close()


# --- lost connections -----------------------------------------------------------------------------


def cut_all(url: str) -> None:
    """Ends all connections of stores to the database, as an administrator may."""
    with psycopg.connect(url, autocommit=True) as plain:
        plain.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND application_name = 'holdfast'"
        )


def test_idle_connections_that_were_cut_are_replaced(engine: Engine, url: str) -> None:
    assert engine.transact(increment) == 1
    cut_all(url)

    assert engine.transact(increment) == 2
    cut_all(url)
    with engine.view() as view:
        assert view.get(b"n") == b"2"


def test_a_view_whose_connection_is_cut_in_the_middle_says_so(engine: Engine, url: str) -> None:
    engine.transact(increment)
    with engine.view() as view:
        view.get(b"n")
        cut_all(url)
        with pytest.raises(StoreUnreachable):
            view.get(b"other")


def test_a_commit_whose_reply_is_lost_is_made_once(
    engine: RemoteEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.transact(increment)
    exchange = PostgresConnection.exchange
    lose = iter([True])

    def losing(self: PostgresConnection, **options: Any) -> Any:
        replies = exchange(self, **options)
        if next(lose, False):
            raise self._lost(psycopg.OperationalError("the reply was lost"))
        return replies

    monkeypatch.setattr(PostgresConnection, "exchange", losing)

    assert engine.transact(increment) == 2
    assert engine.transact(increment) == 3


def test_a_commit_that_was_given_up_is_never_made_even_if_it_arrives_late(
    engine: RemoteEngine,
) -> None:
    """A message on a connection that seemed lost may still be in its buffers."""
    engine.transact(increment)
    backend: Any = engine.backend
    late = backend.session(b"")
    connection = late._taken()
    connection.enrol()
    connection.exchange()
    connection.attempts += 1

    assert backend.settle(connection.id, connection.attempts) is False
    assert backend.settle(connection.id, connection.attempts) is False
    connection.attempts -= 1  # now the message arrives
    with pytest.raises(Exception):  # noqa: B017, PT011  # whatever it is called: it is not made
        late.commit(commit_of(b"n", b"too late"))

    assert engine.transact(increment) == 2


# --- processes ------------------------------------------------------------------------------------


def publish(url: str, connection: Connection) -> None:
    engine = open_engine(url, durability="interval")
    connection.send("open")
    connection.recv()
    engine.transact(lambda tx: tx.after_commit(Notice("n", b"x" * 100_000)), space=b"s")
    engine.close()


def test_a_notice_of_any_size_wakes_the_subscribers_of_other_processes(
    engine: Engine, url: str
) -> None:
    child = start(publish, url)
    assert child.receive() == "open"
    with engine.subscribe() as subscription:
        child.send("go")

        notice = subscription.get(30)

    child.join()
    assert notice == Notice("n", b"x" * 100_000, b"s")


def test_a_notice_of_a_commit_that_was_overtaken_by_another_is_not_missed(
    engine: Engine, url: str
) -> None:
    """Two commits may become visible in another order than their numbers were given in."""
    with psycopg.connect(url) as slow, engine.subscribe() as subscription:
        slow.execute("INSERT INTO holdfast_notice (body) VALUES (%s)", [_notices("slow")])
        engine.transact(lambda tx: tx.after_commit(Notice("fast")))
        assert [notice.topic for notice in subscription.poll()] == ["fast"]
        slow.commit()

        assert [notice.topic for notice in subscription.poll()] == ["slow"]


def _notices(topic: str) -> bytes:
    import msgspec

    return msgspec.msgpack.encode([Notice(topic)])


def test_a_forked_child_is_told_to_open_its_own_and_leaves_the_parents_alone(
    engine: Engine,
) -> None:
    engine.transact(increment)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        with suppress(BaseException):
            try:
                engine.transact(increment)
            except StoreForked:
                os.write(writing, b"forked")
            engine.close()
        os._exit(0)
    os.waitpid(child, 0)
    os.close(writing)

    assert os.read(reading, 10) == b"forked"
    os.close(reading)
    assert engine.transact(increment) == 2


def test_old_notices_are_forgotten_and_those_who_missed_them_are_told(
    engine: RemoteEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.engine.postgres.backend.KEPT_NOTICE_COMMITS", 5)
    monkeypatch.setattr("holdfast.engine.postgres.backend._COMMITS_PER_CLEANING", 1)
    backend: Any = engine.backend
    engine.transact(lambda tx: tx.after_commit(Notice("before")))
    place = backend.newest_notice()
    for number in range(20):
        engine.transact(lambda tx, n=number: tx.after_commit(Notice("n", b"%d" % n)))  # type: ignore[misc]

    _, forgotten, notices = backend.notices_since(place)

    assert [int(notice.payload) for notice in notices] == [15, 16, 17, 18, 19]
    assert forgotten == 15


def test_the_table_is_read_by_its_index_whatever_the_planner_thought_of_it_first(
    engine: RemoteEngine, url: str, stores: Stores
) -> None:
    backend: Any = engine.backend
    with backend.borrowed() as connection:
        for statement in ("GET", "PAGE", "PAGE_BACK"):
            prepared = getattr(statements, statement)
            arguments = "'{}'" if statement == "GET" else r"'\x00', '\xff', 10"
            connection.send_sql(f"EXPLAIN EXECUTE {prepared.name.decode()} ({arguments})")
            connection.sync()
            [[plan]] = connection.exchange()
            lines = [plan.get_value(n, 0).decode() for n in range(plan.ntuples)]
            assert any("Index Scan" in line for line in lines), lines
            assert not any("Sort" in line for line in lines), lines


# --- a server that is silent ----------------------------------------------------------------------


def test_a_server_that_stopped_without_a_word_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its kernel keeps its connections and confirms what they send: calls waited for ever."""
    monkeypatch.setattr("holdfast.engine.postgres.connection._SILENT_MS", 10)
    monkeypatch.setattr("holdfast.engine.postgres.connection.POSTGRES_PROBE_SECONDS", 1)
    with PostgresServer() as server:
        connection = PostgresConnection(server.url(), [])
        with frozen(server), pytest.raises(ConnectionLost, match="no answer for"):
            run(connection, "SELECT 1")
        assert connection.broken
        connection.close()


def test_a_long_statement_is_waited_for(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.engine.postgres.connection._SILENT_MS", 10)
    connection = PostgresConnection(url, [])

    assert run(connection, "SELECT 7 FROM pg_sleep(0.2)").ntuples == 1
    connection.close()


def run(connection: PostgresConnection, statement: str) -> Any:
    connection.send_sql(statement)
    connection.sync()
    [[reply]] = connection.exchange()
    return reply


@contextmanager
def frozen(server: PostgresServer) -> Iterator[None]:
    """Stops the processes of a server, as a hypervisor or an overloaded disk does."""
    children = Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()
    processes = [server.pid, *map(int, children)]
    for process in processes:
        os.kill(process, signal.SIGSTOP)
    try:
        yield
    finally:
        for process in processes:
            os.kill(process, signal.SIGCONT)
