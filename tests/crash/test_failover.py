"""The servers of an engine crash under load from eight clients, and come back or are replaced.

Nothing that was acknowledged is lost, nothing is applied twice, and the clients go on by
themselves. The servers run with the settings that docs/howto/scale.md asks for.
"""

import time
from collections.abc import Callable

import pytest

import holdfast
from tests.crash.load import Load, check
from tests.servers import PostgresServer, ValkeyCluster, ValkeyServer

CRASHES = 3
RECOVERY_SECONDS = 10.0  # after the server is back; far more than an idle machine needs


def crash_under_load(url: str, crash: Callable[[], None]) -> None:
    load = Load(url)
    load.await_acknowledgements(5)

    for _ in range(CRASHES):
        crash()
        back = time.monotonic()
        assert load.await_acknowledgements(5, since=back) - back < RECOVERY_SECONDS, load.errors()

    told = load.end()
    with holdfast.open(url) as store:
        assert check(store, told) >= 8 * 5 * (CRASHES + 1)
        assert store.check() == []


@pytest.mark.only_on("postgres")
def test_a_postgresql_server_that_crashes_loses_nothing_and_its_clients_go_on() -> None:
    with PostgresServer(durable=True) as server:
        crash_under_load(server.url(), server.restart_immediately)


@pytest.mark.only_on("valkey")
def test_a_valkey_server_that_crashes_loses_nothing_and_its_clients_go_on() -> None:
    with ValkeyServer.started(durable=True) as server:

        def crash() -> None:
            server.kill()
            server.start()

        crash_under_load(server.url, crash)


@pytest.mark.only_on("cluster")
def test_a_primary_that_crashes_is_replaced_and_nothing_that_its_replica_had_is_lost() -> None:
    with ValkeyCluster(durable=True, failover_seconds=1) as cluster:

        def crash() -> None:
            primary = max(cluster.primaries, key=lambda node: int(node.command("DBSIZE")))
            replica = cluster.kill_primary(primary)
            cluster.await_promotion(replica)
            primary.start()  # and follows the new one
            cluster.await_replicas()

        crash_under_load(cluster.url + "?replicas=1", crash)
