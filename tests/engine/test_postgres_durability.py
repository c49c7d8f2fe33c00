"""PostgreSQL: a commit releases its space before it is on the disk, and nobody hears of it earlier.

The server of these tests flushes its log only when it is asked to, so that a crash takes back what
nobody waited for.
"""

from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest

from holdfast.engine import open_engine
from holdfast.engine.contract import Notice, Transaction
from holdfast.engine.postgres import statements
from holdfast.engine.postgres.connection import PostgresConnection
from holdfast.engine.postgres.functions import CHANNEL, LISTENERS_LOCK
from holdfast.engine.remote import RemoteEngine
from tests.engine.conformance import Conformance
from tests.engine.postgres_engine import increment
from tests.servers import PostgresServer, Servers

pytestmark = pytest.mark.only_on("postgres")

SPACE = b"s"


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    # Its background writer sleeps between two looks, and looks for a large part of the log only.
    with PostgresServer(
        durable=True, wal_writer_delay="10s", wal_writer_flush_after="1GB", autovacuum="off"
    ) as server:
        yield server


@pytest.fixture
def url(server: PostgresServer) -> str:
    with psycopg.connect(server.url(), autocommit=True) as plain:
        for table in ("data", "space", "client", "notice", "meta"):
            plain.execute(f"DROP TABLE IF EXISTS holdfast_{table}")
    return server.url()


def opened(url: str) -> RemoteEngine:
    engine = open_engine(url, durability="commit")
    assert isinstance(engine, RemoteEngine)
    return engine


@pytest.fixture
def engine(url: str) -> Iterator[RemoteEngine]:
    engine = opened(url)
    yield engine
    engine.close()


@pytest.fixture
def hasty(engine: RemoteEngine) -> Iterator[RemoteEngine]:
    """Another process that commits, and is held up before it waits for the disk."""
    hasty = opened(engine.backend._url)  # type: ignore[attr-defined]
    hasty.transact(lambda tx: tx.put(SPACE + b"first", b"1"), space=SPACE)
    hasty.backend.flushes = False  # type: ignore[attr-defined]
    yield hasty
    hasty.close()


def write(tx: Transaction) -> None:
    tx.put(SPACE + b"key", b"value")
    tx.after_commit(Notice("told", b"", SPACE))


def read(tx: Any) -> bytes | None:
    value: bytes | None = tx.get(SPACE + b"key")
    return value


def read_in_a_view(engine: RemoteEngine) -> object:
    with engine.view(space=SPACE) as view:
        return read(view)


def scan_in_a_view(engine: RemoteEngine) -> object:
    with engine.view(space=SPACE) as view:
        return dict(view.scan(SPACE, SPACE + b"\xff")).get(SPACE + b"key")


def read_in_a_block(engine: RemoteEngine) -> object:
    with engine.transaction(space=SPACE) as tx:
        return read(tx)


READS: dict[str, Callable[[RemoteEngine], object]] = {
    "a read": lambda engine: engine.read(read, space=SPACE, kind="read"),
    "a view": read_in_a_view,
    "a scan": scan_in_a_view,
    "the whole store": lambda engine: engine.read(read),
    "a transaction": lambda engine: engine.transact(read, space=SPACE),
    "a block": read_in_a_block,
}


def test_a_commit_that_nobody_waited_for_is_lost_by_a_crash(
    hasty: RemoteEngine, engine: RemoteEngine, server: PostgresServer
) -> None:
    """Else the other tests would show nothing."""
    hasty.transact(write, space=SPACE)

    server.restart_immediately()

    assert engine.transact(read, space=SPACE) is None


def test_what_was_read_is_on_the_disk_of_a_server_before_17_too(
    hasty: RemoteEngine,
    engine: RemoteEngine,
    server: PostgresServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(statements, "_FLUSHES_AT_ONCE_FROM", 1_000_000)
    older = opened(server.url())
    hasty.transact(write, space=SPACE)

    assert read_in_a_view(older) == b"value"
    older.close()
    server.restart_immediately()

    assert engine.transact(read, space=SPACE) == b"value"


@pytest.mark.parametrize("way", READS)
def test_what_was_read_is_on_the_disk(
    way: str, hasty: RemoteEngine, engine: RemoteEngine, server: PostgresServer
) -> None:
    engine.read(read, space=SPACE, kind="read")  # from now on known to need one fetch
    hasty.transact(write, space=SPACE)

    assert READS[way](engine) == b"value"
    server.restart_immediately()

    assert engine.transact(read, space=SPACE) == b"value"


def run_as_work(engine: RemoteEngine, work: Callable[[Transaction], None]) -> None:
    engine.transact(work, space=SPACE)


def run_in_a_block(engine: RemoteEngine, work: Callable[[Transaction], None]) -> None:
    with engine.transaction(space=SPACE) as tx:
        work(tx)


@pytest.mark.parametrize("run", [run_as_work, run_in_a_block])
def test_an_error_that_work_raised_on_what_it_read_is_true_after_a_crash(
    run: Callable[..., None], hasty: RemoteEngine, engine: RemoteEngine, server: PostgresServer
) -> None:
    def refuse(tx: Transaction) -> None:
        if read(tx) is not None:
            raise KeyError("it is there already")
        tx.put(SPACE + b"key", b"mine")

    hasty.transact(write, space=SPACE)

    with pytest.raises(KeyError):
        run(engine, refuse)
    server.restart_immediately()

    assert engine.transact(read, space=SPACE) == b"value"


def test_a_commit_that_returned_is_on_the_disk_with_all_that_it_has_seen(
    hasty: RemoteEngine, engine: RemoteEngine, server: PostgresServer
) -> None:
    def copy(tx: Transaction) -> None:
        tx.put(SPACE + b"copy", read(tx) or b"nothing")

    hasty.transact(write, space=SPACE)

    engine.transact(copy, space=SPACE)
    server.restart_immediately()

    with engine.view(space=SPACE) as view:
        assert view.get_many([SPACE + b"copy", SPACE + b"key"]) == [b"value", b"value"]


def test_a_notice_that_was_heard_is_of_a_commit_on_the_disk(
    hasty: RemoteEngine, engine: RemoteEngine, server: PostgresServer
) -> None:
    subscription = engine.subscribe()
    hasty.transact(write, space=SPACE)

    heard = subscription.get(timeout=10)
    server.restart_immediately()

    assert heard is not None
    assert heard.topic == "told"
    assert engine.transact(read, space=SPACE) == b"value"
    subscription.close()


def test_a_commit_whose_reply_was_lost_is_on_the_disk_when_that_is_known(
    engine: RemoteEngine, server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.transact(increment)
    backend: Any = engine.backend
    exchange = PostgresConnection.exchange
    lose = iter([True])

    def losing(self: PostgresConnection, **options: Any) -> Any:
        replies = exchange(self, **options)
        if next(lose, False):
            backend.flushes = True
            raise self._lost(psycopg.OperationalError("the reply was lost"))
        return replies

    monkeypatch.setattr(PostgresConnection, "exchange", losing)
    backend.flushes = False

    assert engine.transact(increment) == 2
    server.restart_immediately()

    assert engine.transact(increment) == 3


def test_a_wait_for_the_disk_that_fails_does_not_make_a_commit_twice(
    engine: RemoteEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commit is made when its wait fails."""
    engine.transact(increment)
    engine.backend.register(b"").note_others()  # type: ignore[attr-defined]
    send = PostgresConnection.send
    fail = iter([True])

    def failing(self: PostgresConnection, statement: Any, *parameters: bytes) -> None:
        if statement.name == b"holdfast_flush" and next(fail, False):
            self._pq.send_query_params(b"SELECT 1 / 0", None)
            self._sent[-1].append(statement)
        else:
            send(self, statement, *parameters)

    monkeypatch.setattr(PostgresConnection, "send", failing)

    assert engine.transact(increment) == 2
    assert next(fail, None) is None
    assert engine.transact(increment) == 3


def test_work_that_writes_nothing_on_the_answer_to_a_refused_commit_waits_for_the_disk(
    hasty: RemoteEngine, engine: RemoteEngine, server: PostgresServer
) -> None:

    def write_once(tx: Transaction) -> None:
        if read(tx) is None:
            tx.put(SPACE + b"key", b"mine")

    hasty.transact(write, space=SPACE)
    engine.transact(write_once, space=SPACE)
    server.restart_immediately()

    assert engine.transact(read, space=SPACE) == b"value"


def test_a_space_is_free_for_the_next_commit_while_one_waits_for_the_disk(
    hasty: RemoteEngine, engine: RemoteEngine
) -> None:
    """The commit of a process that was held up before its wait is in nobody's way."""
    hasty.transact(increment)
    assert engine.transact(increment) == 2


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Grows by the name of each statement that is sent."""
    names: list[str] = []
    send = PostgresConnection.send

    def noting(self: PostgresConnection, statement: Any, *parameters: bytes | None) -> None:
        names.append(statement.name.decode().removeprefix("holdfast_"))
        send(self, statement, *parameters)

    monkeypatch.setattr(PostgresConnection, "send", noting)
    return names


def test_who_writes_alone_sends_one_statement_and_releases_a_space_early_beside_others(
    engine: RemoteEngine, url: str, sent: list[str]
) -> None:
    other = opened(url)
    engine.transact(increment)
    sent.clear()

    engine.transact(increment)
    assert sent == ["call_commit"]

    other.transact(increment)
    engine.transact(increment)
    sent.clear()
    engine.transact(increment)
    assert sent == ["begin_commit", "call_commit", "commit", "flush"]
    other.close()


@pytest.mark.parametrize("is_early", [False, True])
def test_a_commit_wakes_those_who_listen_and_nobody_else(
    is_early: bool, engine: RemoteEngine, url: str, sent: list[str]
) -> None:
    backend: Any = engine.backend
    backend.releases_before_sync = lambda space: is_early
    with psycopg.connect(url, autocommit=True) as listener:
        listener.execute(f"LISTEN {CHANNEL}")
        engine.transact(write, space=SPACE)
        assert list(listener.notifies(timeout=0)) == []
        assert "notify" not in sent

        listener.execute(f"SELECT pg_advisory_lock_shared({LISTENERS_LOCK})")
        engine.transact(write, space=SPACE)

        assert len(list(listener.notifies(timeout=30, stop_after=1))) == 1
        assert ("notify" in sent) is not is_early


def test_where_replicas_are_waited_for_a_commit_waits_before_it_is_seen(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as plain:
        plain.execute("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
        plain.execute("SELECT pg_reload_conf()")
    try:
        with psycopg.connect(url) as plain:
            plain.execute("SET synchronous_commit = local")
            [[names]] = plain.execute("SHOW synchronous_standby_names").fetchall()
            assert names == "nobody"
        engine = open_engine(url + "?options=-csynchronous_commit%3Dlocal", durability="commit")
        backend: Any = engine.backend  # type: ignore[attr-defined]
        assert (backend.flushes, backend.early) == (False, False)
        engine.transact(increment)
        assert engine.read(lambda reader: reader.get(b"n")) == b"1"
        engine.close()
    finally:
        with psycopg.connect(url, autocommit=True) as plain:
            plain.execute("SET synchronous_commit = local")
            plain.execute("ALTER SYSTEM RESET synchronous_standby_names")
            plain.execute("SELECT pg_reload_conf()")


class TestConformanceWithCommitsThatWait(Conformance):
    """Those of test_conformance.py do not wait for a disk."""

    @pytest.fixture
    def url(self, servers: Servers) -> str:
        return servers.lend("postgres")

    @pytest.fixture(params=["alone", "beside others"])
    def engine(self, url: str, request: pytest.FixtureRequest) -> Iterator[RemoteEngine]:
        engine = opened(url)
        backend: Any = engine.backend
        assert backend.flushes
        backend.releases_before_sync = lambda space: request.param != "alone"
        yield engine
        assert engine.check() == []
        engine.close()
