"""A server that is killed under load: what it has acknowledged is there."""

import itertools
import random
import threading

import msgspec
import pytest
import uvloop

import holdfast
from holdfast.server.addresses import Address
from holdfast.server.serving import Settings, serve
from tests.processes import Child, Connection, start
from tests.server.running import DEADLINE, RawClient
from tests.stores import Stores

CONNECTIONS = 16
KILLS = 15  # in each kind of durability


def _serve(url: str, durability: str, connection: Connection) -> None:
    settings = Settings(resp=Address.parse("127.0.0.1:0"), http=Address.parse("127.0.0.1:0"))
    with holdfast.open(url, durability=durability) as store:  # type: ignore[arg-type]
        ready = lambda resp, http: connection.send(resp.port)  # noqa: E731
        uvloop.run(serve(store, settings, ready=ready))


class _Load:
    """Sixteen clients that put jobs as fast as they can, and note what was acknowledged."""

    def __init__(self, port: int, prefix: str) -> None:
        self.acknowledged: list[str] = []
        self._more = threading.Condition()
        self._threads = [
            threading.Thread(target=self._put, args=(port, f"{prefix}-{number}"))
            for number in range(CONNECTIONS)
        ]
        for thread in self._threads:
            thread.start()

    def _put(self, port: int, prefix: str) -> None:
        try:
            with RawClient(port) as client:
                for number in itertools.count():
                    jid = f"{prefix}-{number}"
                    reply = client.ask("JOBS.PUT", f'{{"queue":"q","id":"{jid}"}}')
                    assert reply == f'"{jid}"'.encode()
                    with self._more:
                        self.acknowledged.append(jid)
                        self._more.notify_all()
        except (EOFError, ConnectionError):
            pass

    def wait_for(self, count: int) -> None:
        with self._more:
            assert self._more.wait_for(lambda: len(self.acknowledged) >= count, DEADLINE)

    def end(self) -> list[str]:
        for thread in self._threads:
            thread.join(DEADLINE)
        return self.acknowledged


def _missing(port: int, jids: list[str]) -> set[str]:
    with RawClient(port) as client:
        found = msgspec.json.decode(client.ask("JOBS.MULTIGET", msgspec.json.encode({"ids": jids})))
    return set(jids) - {job["id"] for job in found}


@pytest.mark.parametrize("durability", ["commit", "interval"])
def test_what_was_acknowledged_survives_a_killed_server(stores: Stores, durability: str) -> None:
    rng, url = random.Random(durability), stores.url()

    def begin() -> tuple[Child, int]:
        child = start(_serve, url, durability)
        return child, child.receive()

    child, port = begin()
    for round_number in range(KILLS):
        load = _Load(port, f"r{round_number}")
        load.wait_for(rng.randrange(1, 200))
        child.kill()
        acknowledged = load.end()

        child, port = begin()
        assert _missing(port, acknowledged) == set()
    child.kill()
