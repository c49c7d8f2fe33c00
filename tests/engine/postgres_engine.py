"""A store on PostgreSQL, and its round trips, for the tests of that engine."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from holdfast.engine import open_engine
from holdfast.engine.contract import Notice, Transaction
from holdfast.engine.postgres.connection import PostgresConnection as PostgresConnection
from holdfast.engine.remote import Commit, RemoteEngine
from tests.servers import Servers


@pytest.fixture
def url(servers: Servers) -> str:
    return servers.lend("postgres")


@pytest.fixture
def engine(url: str) -> Iterator[RemoteEngine]:
    engine = open_engine(url, durability="interval")
    assert isinstance(engine, RemoteEngine)
    yield engine
    engine.close()


@pytest.fixture
def exchanges(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows by one with each time that someone waits for the server."""
    counted: list[int] = []
    exchange = PostgresConnection.exchange

    def counting(self: PostgresConnection, **options: Any) -> Any:
        counted.append(1)
        return exchange(self, **options)

    monkeypatch.setattr(PostgresConnection, "exchange", counting)
    return counted


def increment(tx: Transaction) -> int:
    number = int(tx.get(b"n") or b"0") + 1
    tx.put(b"n", b"%d" % number)
    return number


def commit_of(
    key: bytes,
    value: bytes,
    read: dict[bytes, int] | None = None,
    notices: Sequence[Notice] = (),
) -> Commit:
    """Returns a commit to the whole store that puts one pair."""
    return Commit(
        space=b"",
        keys=read or {},
        ranges=[],
        clears=[],
        puts={key: value},
        deletes=[],
        adds={},
        notices=list(notices),
    )
