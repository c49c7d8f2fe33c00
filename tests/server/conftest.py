"""A real server process for the tests of its protocols."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.server.running import RawClient, Server, serving
from tests.stores import Stores


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory, stores: Stores) -> Iterator[Server]:
    """A server that all tests on one engine share; each works in a space of its own."""
    data: Path = tmp_path_factory.mktemp("server") / "data"
    options = ("--engine", stores.url(), "--durability", "interval", "--allow-flush")
    with serving(data, *options) as server:
        yield server


@pytest.fixture
def space(request: pytest.FixtureRequest) -> str:
    """The name of a space that no other test uses."""
    return f"test-{abs(hash(request.node.nodeid)):x}"


@pytest.fixture
def client(server: Server, space: str) -> Iterator[RawClient]:
    """A socket in that space."""
    with server.connect() as client:
        assert client.ask("SPACE", space) == b"OK"
        yield client
