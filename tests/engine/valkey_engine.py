"""A store on Valkey, also through a faulty link, for the tests of that engine."""

from collections.abc import Iterator

import pytest

from holdfast.engine import open_engine
from holdfast.engine.contract import Transaction
from holdfast.engine.remote import RemoteEngine
from holdfast.engine.valkey.address import parse
from holdfast.engine.valkey.backend import ValkeyBackend
from tests.engine.faulty_link import FaultyLink
from tests.servers import Servers
from tests.stores import Stores


@pytest.fixture
def engine(stores: Stores) -> Iterator[RemoteEngine]:
    with stores.open_engine() as engine:
        assert isinstance(engine, RemoteEngine)
        yield engine


@pytest.fixture
def faulty(servers: Servers) -> Iterator[FaultyLink]:
    [(_, port)] = parse(servers.lend("valkey")).hosts
    with FaultyLink(port) as connection:
        yield connection


def through(connection: FaultyLink, options: str = "") -> RemoteEngine:
    url = f"valkey://127.0.0.1:{connection.port}?persistence=none{options}"
    engine = open_engine(url, durability="interval")
    assert isinstance(engine, RemoteEngine)
    return engine


def backend_of(engine: RemoteEngine) -> ValkeyBackend:
    assert isinstance(engine.backend, ValkeyBackend)
    return engine.backend


def increment(tx: Transaction) -> int:
    number = int(tx.get(tx.space + b"n") or b"0") + 1
    tx.put(tx.space + b"n", b"%d" % number)
    return number
