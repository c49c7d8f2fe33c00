"""A few seconds of network faults, and the proxy that makes them."""

import random
import socket
import threading
from collections.abc import Iterator

import pytest

from tests.campaign.network import run_scenes
from tests.campaign.proxy import FAULTS, Proxy

SECONDS = 2.0


def play(name: str) -> None:
    result = run_scenes([name], random.Random(17), SECONDS)

    assert result.broken == []
    assert result.tried["faults"] > 0
    assert result.tried["acknowledged"] > 0


def test_clients_of_a_server_see_one_order_of_transactions_over_resp() -> None:
    play("client and server, RESP")


def test_clients_of_a_server_see_one_order_of_transactions_over_http() -> None:
    play("client and server, HTTP")


@pytest.mark.only_on("postgres")
def test_a_server_on_postgresql_keeps_one_order_when_both_its_sides_break() -> None:
    play("client, server and PostgreSQL")


@pytest.mark.only_on("postgres")
def test_a_synchronous_standby_that_takes_over_has_all_that_was_acknowledged() -> None:
    play("failover of PostgreSQL")


@pytest.mark.only_on("valkey")
def test_a_broken_way_to_valkey_loses_and_doubles_nothing() -> None:
    play("library and Valkey")


@pytest.mark.only_on("cluster")
def test_a_partitioned_cluster_has_one_order_of_transactions() -> None:
    play("partitions of a cluster")


# --- the proxy ------------------------------------------------------------------------------------


@pytest.fixture
def echo() -> Iterator[int]:
    """The port of a server that says what it hears."""
    listening = socket.create_server(("127.0.0.1", 0))

    def answer(connection: socket.socket) -> None:
        with connection:
            try:
                while data := connection.recv(1_000):
                    connection.sendall(data)
            except OSError:
                return

    def accept() -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            threading.Thread(target=answer, args=(connection,), daemon=True).start()

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    yield listening.getsockname()[1]
    listening.shutdown(socket.SHUT_RDWR)
    listening.close()
    thread.join()


def connect(proxy: Proxy) -> socket.socket:
    return socket.create_connection(("127.0.0.1", proxy.port), timeout=10)


def ask(connection: socket.socket, word: bytes) -> bytes:
    connection.sendall(word)
    heard = b""
    while len(heard) < len(word) and (more := connection.recv(100)):
        heard += more
    return heard


def test_a_calm_proxy_passes_everything_on(echo: int) -> None:
    with Proxy(echo, random.Random(1)) as proxy, connect(proxy) as connection:
        assert ask(connection, b"hello") == b"hello"


def test_a_partition_is_silence_until_it_is_healed(echo: int) -> None:
    with Proxy(echo, random.Random(1)) as proxy, connect(proxy) as connection:
        ask(connection, b"before")
        proxy.partition()
        connection.sendall(b"during")
        connection.settimeout(0.1)
        with pytest.raises(TimeoutError):
            connection.recv(100)

        proxy.heal()
        connection.settimeout(10)

        assert connection.recv(100) == b"during"


class Duplicates(random.Random):
    """Makes each piece the last of its connection."""

    def choices(self, *_: object, **__: object) -> list[str]:  # type: ignore[override]  # of one kind
        return ["duplicate"]


def test_the_end_of_a_connection_arrives_again_on_a_connection_of_its_own() -> None:
    heard: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(30)
        port = listening.getsockname()[1]
        with Proxy(port, Duplicates(1), rate=1.0) as proxy, connect(proxy) as connection:
            connection.sendall(b"a whole request")
            for _ in range(2):
                accepted, _ = listening.accept()
                with accepted:
                    accepted.settimeout(30)
                    heard.append(accepted.recv(100))

    whole, end = heard
    assert whole == b"a whole request"
    assert 0 < len(end) < len(whole)
    assert whole.endswith(end)


def test_every_kind_of_fault_comes_and_a_cut_connection_is_never_garbled(echo: int) -> None:
    with Proxy(echo, random.Random(1), rate=1.0) as proxy:
        for number in range(120):
            word = b"%020d" % number
            with connect(proxy) as connection:
                connection.settimeout(0.2)  # a direction that was closed alone answers nothing
                try:
                    heard = ask(connection, word)
                except OSError:
                    continue
                assert word.startswith(heard)

        assert set(proxy.faults) == set(FAULTS)
