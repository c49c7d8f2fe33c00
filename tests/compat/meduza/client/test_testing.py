"""The disposable server of the public client's test kit."""

import sys
from pathlib import Path

import pytest

from holdfast import meduza
from holdfast.meduza.testing import DisposableMeduza, findUnusedPort, installSchema, waitPort
from tests.compat.meduza.client.test_session import SCHEMA, User


def test_a_server_starts_takes_a_schema_serves_and_vanishes() -> None:
    server = DisposableMeduza("/opt/meduza/run_mdz_docker.sh")
    server.start()
    try:
        assert server.port is not None
        folder = Path(str(server._folder))
        server.installSchema(SCHEMA)
        connector = meduza.customConnector("localhost", server.port, timeout=5)
        session = meduza.Session(connector, connector)

        [id] = session.put(User(name="ann", email="a@b.c"))
        assert [user.name for user in session.get(User, id)] == ["ann"]

        with pytest.raises(meduza.MeduzaError, match="Schema has no name!"):
            server.installSchema("tables: {}")
    finally:
        server.stop()

    assert not folder.exists()


def test_a_server_that_does_not_come_up_is_an_error() -> None:
    class Broken(DisposableMeduza):
        command = (sys.executable, "-c", "pass")

    broken = Broken()
    with pytest.raises(meduza.MeduzaError, match="was not started"):
        broken.installSchema(SCHEMA)
    with pytest.raises(meduza.MeduzaError, match="and the server has ended"):
        broken.start()
    with pytest.raises(meduza.MeduzaError, match="nobody listens"):
        waitPort("127.0.0.1", findUnusedPort(), timeout=0.05)
    with pytest.raises(ConnectionRefusedError):
        installSchema(SCHEMA, findUnusedPort())
