"""One open server and one with users, for all tests of the dashboard."""

from collections.abc import Iterator

import pytest

import holdfast
from holdfast.client.client import Client
from tests.dashboard.seeding import seed_hostile, seed_jobs
from tests.dashboard.visitor import Visitor
from tests.server.serving import Server, run_command, serving

USERS = {"root": "admin", "clerk": "write:default", "guest": "read:default"}
PASSWORD = "correct horse battery staple"


@pytest.fixture(scope="package")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server without users, which is open to everyone on this machine."""
    with serving(tmp_path_factory.mktemp("dashboard") / "data") as server:
        yield server


@pytest.fixture(scope="package")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with the users of `USERS`, all with the same password."""
    data = tmp_path_factory.mktemp("guarded") / "data"
    for name, grant in USERS.items():
        words = ("user", "add", "--data", str(data), name, "--grant", grant, "--password")
        added = run_command(*words, stdin=f"{PASSWORD}\n{PASSWORD}\n")
        assert added.exit_code == 0, added.output
    with serving(data) as server:
        yield server


@pytest.fixture(scope="package")
def client(server: Server) -> Iterator[Client]:
    """A client of the open server, which has a shop and a space of hostile data."""
    with holdfast.connect(f"holdfast://127.0.0.1:{server.resp_port}") as client:
        seed_jobs(client.space("shop"))
        seed_hostile(client.space("hostile"))
        yield client


@pytest.fixture
def visitor(server: Server) -> Visitor:
    return Visitor(server)
