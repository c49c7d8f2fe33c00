"""A real server process for the tests of its doors."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.server.running import RawClient, Server, serving


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that all tests share; each works in a space of its own."""
    data: Path = tmp_path_factory.mktemp("server") / "data"
    with serving(data, "--durability", "interval", "--allow-flush") as server:
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
