"""Commits whose reply does not come: each is made once, or its caller is told that nobody knows."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import psycopg
import pytest

from holdfast.engine import open_engine
from holdfast.engine.contract import Transaction
from holdfast.engine.postgres import statements
from holdfast.engine.postgres.connection import PostgresConnection
from holdfast.engine.remote import ConnectionLost, RemoteEngine
from holdfast.engine.valkey.connections import Command, ServerConnection
from holdfast.engine.valkey.durability import Waits
from holdfast.engine.valkey.library import function
from holdfast.engine.valkey.servers import NoReply, Servers
from holdfast.errors import OutcomeUnknown, StoreUnusable
from tests.engine.memory_backend import MemoryBackend
from tests.engine.memory_engine import backend, engine, increment, open_memory
from tests.engine.postgres_engine import commit_of, url
from tests.stores import Stores

__all__ = ["backend", "engine", "url"]

SPACE = b"space"


class TimeLimit(Exception):
    """What a handler of SIGALRM may raise."""


RAISED = pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, TimeoutError, TimeLimit])


def count(tx: Transaction) -> int:
    """Adds 1 to a number by reading and writing it."""
    number = int(tx.get(tx.space + b"n") or b"0") + 1
    tx.put(tx.space + b"n", b"%d" % number)
    return number


def after_the_next_commit(patch: pytest.MonkeyPatch, do: Callable[[], None]) -> None:
    """Calls `do` as soon as the reply to the next commit has arrived."""
    exchange, ask = PostgresConnection.exchange, ServerConnection.ask
    left = [do]

    def exchanged(connection: PostgresConnection, **options: Any) -> Any:
        sent = [each for batch in connection._sent for each in batch]
        replies = exchange(connection, **options)
        if statements.CALL_COMMIT in sent and left:
            left.pop()()
        return replies

    def asked(connection: ServerConnection, commands: Sequence[Command]) -> list[Any]:
        replies = ask(connection, commands)
        if function("commit") in commands[0] and left:
            left.pop()()
        return replies

    patch.setattr(PostgresConnection, "exchange", exchanged)
    patch.setattr(ServerConnection, "ask", asked)


def transact_as_a_group(engine: RemoteEngine, number: int) -> list[Future[int]]:
    """Runs as many transactions, each of a thread of its own, as one group."""
    inside, go_on = threading.Event(), threading.Event()

    def hold(tx: Transaction) -> None:
        inside.set()
        go_on.wait()

    with ThreadPoolExecutor(number + 1) as pool:
        pool.submit(engine.transact, hold, space=SPACE)
        inside.wait()
        members = [pool.submit(engine.transact, count, space=SPACE) for _ in range(number)]
        while len(engine._queues._queues[SPACE].group_commit.waiting) < number:
            pass
        go_on.set()
    return members


# --- exceptions of signal handlers ----------------------------------------------------------------


@RAISED
@pytest.mark.only_on("postgres", "valkey")
def test_a_signal_handler_that_raises_while_a_reply_is_awaited_makes_no_work_run_twice(
    stores: Stores, monkeypatch: pytest.MonkeyPatch, kind: type[BaseException]
) -> None:
    def strike() -> None:
        raise kind

    with stores.open_engine() as opened:
        assert isinstance(opened, RemoteEngine)
        assert opened.transact(count, space=SPACE) == 1

        after_the_next_commit(monkeypatch, strike)
        members = transact_as_a_group(opened, 3)

        # A client of Valkey takes a TimeoutError for a lost connection, and sends the commit again.
        errors = [each.exception() for each in members]
        assert [type(error) for error in errors if error is not None] in ([kind], [])
        assert opened.transact(count, space=SPACE) == 5


def test_an_interrupted_wait_for_the_outcome_of_a_commit_leaves_it_unknown(
    engine: RemoteEngine, backend: MemoryBackend
) -> None:
    def fault(message: str) -> str:
        if message == "settle":
            raise KeyboardInterrupt
        return "lost after" if message == "commit" else ""

    backend.fault = fault
    with pytest.raises(OutcomeUnknown):
        engine.transact(increment)


def test_a_server_that_refuses_to_tell_the_outcome_of_a_commit_leaves_it_unknown(
    backend: MemoryBackend,
) -> None:
    """What is refused is the question, not the commit."""

    def fault(message: str) -> str:
        if message == "settle":
            raise StoreUnusable("MISCONF Errors writing to the AOF file")
        return "lost after" if message == "commit" else ""

    backend.fault = fault
    with pytest.raises(OutcomeUnknown, match="MISCONF"):
        open_memory(backend, seconds=0.1).transact(increment)


# --- PostgreSQL -----------------------------------------------------------------------------------


@pytest.mark.only_on("postgres")
def test_the_first_commit_of_a_connection_that_was_given_up_is_not_made_when_it_arrives_late(
    url: str,
) -> None:
    """The server knows the connection only by the message in front of that commit."""
    opened = open_engine(url, durability="interval")
    assert isinstance(opened, RemoteEngine)
    opened.transact(increment)
    remote: Any = opened.backend
    late = remote.session(b"")
    connection = late._connection = PostgresConnection(url, [])
    connection.prepare(statements.prepared_for(connection.server_version, flushes=False))

    assert remote.settle(connection.id, 1) is False
    with pytest.raises(ConnectionLost):
        late.commit(commit_of(b"n", b"too late"))

    assert opened.transact(increment) == 2
    opened.close()


@pytest.mark.only_on("postgres")
def test_a_commit_of_a_connection_of_last_week_is_known_while_others_open_the_store(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = open_engine(url, durability="interval")
    assert isinstance(opened, RemoteEngine)
    opened.transact(increment)
    with psycopg.connect(url, autocommit=True) as plain:
        plain.execute("UPDATE holdfast_client SET since = since - interval '8 days'")
    remote: Any = opened.backend
    for connection in remote._pool._idle:
        connection.enrolled_until -= 8 * 86_400

    def lose_the_reply() -> None:
        open_engine(url, durability="interval").close()
        raise ConnectionLost("the reply was lost")

    after_the_next_commit(monkeypatch, lose_the_reply)

    assert opened.transact(increment) == 2
    assert opened.transact(increment) == 3
    opened.close()


# --- Valkey ---------------------------------------------------------------------------------------


@pytest.mark.only_on("valkey")
@pytest.mark.parametrize("problem", [NoReply("away", sent=False), StoreUnusable("MISCONF")])
def test_a_commit_that_waits_for_replicas_while_its_server_goes_away_is_made_once(
    stores: Stores, monkeypatch: pytest.MonkeyPatch, problem: Exception
) -> None:
    commits: list[bytes] = []
    ask = Servers.ask

    def asked(servers: Servers, slot: int, commands: Sequence[Command]) -> list[Any]:
        if commands[0][0] == "FCALL" and commands[0][1] == function("commit"):
            commits.append(b"")
            if len(commits) == 2:
                raise problem
        return ask(servers, slot, commands)

    with stores.open_engine() as opened:
        assert opened.transact(count, space=SPACE) == 1
        monkeypatch.setattr(Servers, "ask", asked)
        # The replicas have not confirmed the commit when it is first answered.
        monkeypatch.setattr(
            Waits, "shortfall", lambda waits, replies: "late" if len(commits) == 1 else ""
        )

        assert opened.transact(count, space=SPACE) == 2
        assert opened.transact(count, space=SPACE) == 3
