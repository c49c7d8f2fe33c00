"""The servers that other tests stand on."""

from multiprocessing.connection import Connection

import psycopg
import pytest

from tests.processes import start
from tests.servers import PostgresServer, Servers, ValkeyServer, await_true
from tests.servers.process import is_listening


def lend_and_wait(connection: Connection) -> None:
    servers = Servers()
    for engine in ("postgres", "valkey"):
        servers.lend(engine)
    with ValkeyServer.started() as another:
        connection.send([servers.postgres.port, another.port])
        connection.recv()


@pytest.mark.only_on("postgres", "valkey")
def test_servers_end_with_the_process_that_started_them_even_if_it_is_killed() -> None:
    child = start(lend_and_wait)
    ports = child.receive()
    assert all(map(is_listening, ports))

    child.kill()

    await_true(lambda: not any(map(is_listening, ports)), seconds=30, what="the servers' end")


@pytest.mark.only_on("postgres")
def test_a_postgresql_server_comes_back_on_its_port_with_its_data_after_a_crash() -> None:
    with PostgresServer(durable=True) as server:
        with psycopg.connect(server.url()) as connection:
            connection.execute("CREATE TABLE kept AS SELECT 1 AS one")

        server.restart_immediately()

        with psycopg.connect(server.url()) as connection:
            assert connection.execute("SELECT one FROM kept").fetchone() == (1,)


@pytest.mark.only_on("valkey")
def test_a_valkey_server_comes_back_on_its_port_with_its_data_after_a_crash() -> None:
    with ValkeyServer.started(durable=True) as server:
        server.command("SET", "kept", "1")

        server.kill()
        server.start()

        assert server.command("GET", "kept") == "1"


@pytest.mark.only_on("postgres")
def test_a_server_that_can_not_start_shows_its_log() -> None:
    with pytest.raises(Exception, match="no_such_setting"):
        PostgresServer(no_such_setting="1")


@pytest.mark.only_on("valkey")
def test_lent_places_are_emptied_and_lent_again(servers: Servers) -> None:
    first = servers.lend("valkey")
    second = servers.lend("valkey")
    servers.give_back(first)

    assert second != first
    assert servers.lend("valkey") == first


@pytest.mark.only_on("valkey")
def test_a_place_that_is_lent_for_a_block_goes_back_alone(servers: Servers) -> None:
    longer = servers.lend("valkey")
    with servers.lending("valkey") as url:
        assert {longer, url} <= servers.lent()

    assert longer in servers.lent()
    assert servers.lend("valkey") == url
