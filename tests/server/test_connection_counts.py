"""One address can't have all connections, and an unfinished TLS handshake counts as one."""

import json
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import trustme

from holdfast.limits import HANDSHAKE_SECONDS
from holdfast.metrics.middleware import networks
from holdfast.server.client_limits import ClientLimits
from holdfast.server.connection_counts import ConnectionCounts
from tests.server.running import DEADLINE
from tests.server.serving import Server, serving
from tests.server.small_server import small_server

HERE = "127.0.0.1"
BUSY = "this address has reached its maximum of connections"
FULL = "the server has reached its maximum of connections"


def counts(*trusted: str, **bounds: int) -> ConnectionCounts:
    return ConnectionCounts(ClientLimits(**bounds), networks(trusted))


def test_half_of_all_connections_remain_for_other_addresses() -> None:
    counted = counts(connections=4)

    assert [counted.enter("192.0.2.1") for _ in range(3)] == [None, None, BUSY]
    assert [counted.enter("192.0.2.2") for _ in range(2)] == [None, None]
    assert counted.enter("192.0.2.3") == FULL

    counted.leave("192.0.2.1")
    assert counted.enter("192.0.2.1") is None


def test_how_many_one_address_may_have_can_be_set() -> None:
    counted = counts(connections=4, connections_per_address=1)

    assert [counted.enter("192.0.2.1") for _ in range(2)] == [None, BUSY]
    shared = ClientLimits(connections=100, connections_per_address=10).shared_by(4)
    assert (shared.of_one_address, ClientLimits(connections=100).of_one_address) == (3, 50)


def test_a_network_of_ipv6_is_one_address() -> None:
    counted = counts(connections=4)

    assert [counted.enter(f"2001:db8::{n}") for n in range(1, 4)] == [None, None, BUSY]
    assert counted.enter("2001:db8:0:1::1") is None


@pytest.mark.parametrize("address", [HERE, "127.0.0.2", "::1", "::ffff:127.0.0.1", "", "10.1.2.3"])
def test_this_machine_and_trusted_proxies_may_have_all_connections(address: str) -> None:
    counted = counts("10.0.0.0/8", connections=4)

    assert [counted.enter(address) for _ in range(5)] == [None, None, None, None, FULL]


def test_handshakes_count_beside_connections_and_become_connections() -> None:
    counted = counts(connections=4)

    assert [counted.enter_handshake("192.0.2.1") for _ in range(3)] == [True, True, False]
    assert counted.enter("192.0.2.1") is None  # the first is complete
    counted.leave_handshake("192.0.2.1")
    assert not counted.enter_handshake("192.0.2.1")
    counted.leave_handshake("192.0.2.1")
    assert counted.enter_handshake("192.0.2.1")
    assert counted.total == 1


def test_a_redis_client_of_an_address_with_too_many_is_told_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.server.connection_counts._counted", lambda address: address)
    with small_server(tmp_path, connections=4) as server:
        with server.connect() as first, server.connect() as second:
            assert first.ask("PING") == second.ask("PING") == b"PONG"
            with server.connect() as third:
                assert third.rest() == b"-ERR max number of clients reached\r\n"
        server.until(lambda: server.dispatcher.connections.total == 0)
        with server.connect() as another:
            assert another.ask("PING") == b"PONG"


@pytest.fixture
def secure(tmp_path: Path) -> Iterator[Server]:
    """A server with TLS that takes four connections."""
    authority = trustme.CA()
    certificate = authority.issue_cert(HERE)
    certificate.private_key_pem.write_to_path(str(tmp_path / "key.pem"))
    certificate.cert_chain_pems[0].write_to_path(str(tmp_path / "cert.pem"))
    files = ("--tls-cert", str(tmp_path / "cert.pem"), "--tls-key", str(tmp_path / "key.pem"))
    with serving(tmp_path / "data", *files, "--limit", "connections=4") as server:
        server.tls = ssl.create_default_context()
        authority.configure_trust(server.tls)
        yield server


@pytest.mark.parametrize("port", ["resp_port", "http_port"])
def test_a_handshake_beyond_the_allowed_connections_is_refused_at_once(
    secure: Server, port: str
) -> None:
    def silent() -> socket.socket:
        place = (HERE, getattr(secure, port))
        return opened.enter_context(socket.create_connection(place, HANDSHAKE_SECONDS / 2))

    with ExitStack() as opened:
        for _ in range(4):
            silent()
        refused = [silent() for _ in range(4)]

        assert [_received(each) for each in refused] == [b""] * 4
    assert _status_when_noticed(secure) == 200


def _status_when_noticed(server: Server) -> int:
    """Asks until the server has noticed that connections have ended."""
    deadline = time.monotonic() + DEADLINE
    while True:
        try:
            return server.get("/livez").status
        except OSError:
            assert time.monotonic() < deadline


def _received(connection: socket.socket) -> bytes:
    """What arrives in time; nothing if the server has closed the connection."""
    try:
        return connection.recv(1)
    except ConnectionError:
        return b""


FIT = """
import json, resource, sys
from holdfast.server.client_limits import ClientLimits
from holdfast.server.connection_counts import fitted_to_open_files
resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[1]), int(sys.argv[2])))
bounds = fitted_to_open_files(ClientLimits(connections=500))
print(json.dumps([bounds.connections, *resource.getrlimit(resource.RLIMIT_NOFILE)]))
"""


@pytest.mark.parametrize(
    ("soft", "hard", "fitted"),
    [
        (1_000, 2_000, [500, 1_000, 2_000]),
        (200, 2_000, [500, 628, 2_000]),
        (200, 300, [172, 300, 300]),
    ],
)
def test_the_limit_of_open_files_is_raised_or_fewer_connections_are_allowed(
    soft: int, hard: int, fitted: list[int]
) -> None:
    words = [sys.executable, "-c", FIT, str(soft), str(hard)]
    said = subprocess.run(words, capture_output=True, text=True, check=True)

    assert json.loads(said.stdout) == fitted
    assert ("172 connections are allowed, not 500" in said.stderr) is (fitted[0] == 172)
