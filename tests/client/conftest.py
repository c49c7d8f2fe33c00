"""A real server for the tests of the clients, and a sync or async client in its own space."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.client.both_clients import connected
from tests.server.running import Server, serving


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that all tests share; each works in a space of its own."""
    data: Path = tmp_path_factory.mktemp("server") / "data"
    with serving(data, "--durability", "interval") as server:
        yield server


@pytest.fixture
def url(server: Server, request: pytest.FixtureRequest) -> str:
    """The server, in a space that no other test uses."""
    return f"holdfast://127.0.0.1:{server.resp_port}/test-{abs(hash(request.node.nodeid)):x}"


@pytest.fixture(params=["sync", "async"])
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def client(url: str, mode: str) -> Iterator[Any]:
    """A sync or async client, to be used without `await`."""
    with connected(mode, url) as client:
        yield client
