"""The five ways to run Holdfast that the kill matrix attacks, each with what can die there."""

import random
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final, Protocol

import psycopg
import uvloop
from psycopg import sql

import holdfast
from holdfast.server.addresses import Address
from holdfast.server.server import ServerSettings, serve
from tests.campaign.load import Load, Place
from tests.processes import Child, Connection, start
from tests.servers import PostgresServer, ValkeyCluster, ValkeyServer
from tests.servers.process import free_ports

DURABILITIES: Final = ("commit", "interval")
START_ATTEMPTS: Final = 5


class Setup(Protocol):
    """Real processes that hold stores."""

    name: str
    durability: str

    def fresh(self, name: str) -> str:
        """The URL of an empty store, for the library."""
        ...

    def begin(self, url: str, backups: Path) -> Place:
        """Gets ready to serve a store, and says where clients find it."""
        ...

    def crash(self, load: Load, chance: random.Random) -> tuple[float, float] | None:
        """Kills something and brings it back.

        Returns a stretch of time if acknowledgements within it may be lost by what the store's
        durability says: from its last checkpoint to its return. None if nothing may be lost.
        """
        ...

    def end(self) -> None:
        """Stops serving the store that `begin` has named."""
        ...


class Processes:
    """Three processes that share a folder, and are killed alone or together."""

    name = "3 processes"

    def __init__(self, durability: str, folder: Path) -> None:
        self.durability = durability
        self._folder = folder

    def fresh(self, name: str) -> str:
        return f"lmdb:{self._folder / name}"

    def begin(self, url: str, backups: Path) -> Place:
        return Place(url=url, durability=self.durability)

    def crash(self, load: Load, chance: random.Random) -> None:
        if chance.random() < 0.3:
            load.kill_all()
        else:
            load.kill(chance.randrange(len(load)))

    def end(self) -> None:
        pass


def serve_store(
    url: str, durability: str, ports: list[int], backups: str, ours: Connection
) -> None:
    """Runs a server in a child process; says when it takes connections."""
    resp, http = (Address("127.0.0.1", port) for port in ports)
    settings = ServerSettings(resp=resp, http=http, backups=Path(backups))
    with holdfast.open(url, durability=durability) as store:  # type: ignore[arg-type]  # one of two words
        uvloop.run(serve(store, settings, ready=lambda resp, http: ours.send("ready")))


class Server(Processes):
    """A server on a folder, with clients of its RESP side; the server is what is killed."""

    name = "server"

    def begin(self, url: str, backups: Path) -> Place:
        self._url, self._backups = url, backups
        for attempt in range(START_ATTEMPTS):
            self._ports = free_ports(2)
            self._server = self._start()
            try:
                self._server.receive()
            except EOFError:  # another process may have taken a port meanwhile
                if attempt == START_ATTEMPTS - 1:
                    raise
            else:
                break
        return Place(url=f"holdfast://127.0.0.1:{self._ports[0]}", network=True)

    def _start(self) -> Child:
        return start(serve_store, self._url, self.durability, self._ports, str(self._backups))

    def crash(self, load: Load, chance: random.Random) -> None:
        if chance.random() < 0.1:
            load.kill(chance.randrange(len(load)))
            return
        self._server.kill()
        self._server = self._start()
        self._server.receive()

    def end(self) -> None:
        self._server.kill()


class Remote:
    """An engine on other machines: its server is killed, or one of the processes that use it."""

    name: str
    loses_in_interval_mode = True  # a killed server may lose what came after the last checkpoint

    def __init__(self, durability: str) -> None:
        self.durability = durability

    def begin(self, url: str, backups: Path) -> Place:
        self._url = url
        return Place(url=url, durability=self.durability)

    def crash(self, load: Load, chance: random.Random) -> tuple[float, float] | None:
        if chance.random() < 0.4:
            load.kill(chance.randrange(len(load)))
            return None
        if self.durability == "commit" or not self.loses_in_interval_mode:
            self.restart(chance)
            return None
        before = time.monotonic()
        with holdfast.open(self._url, durability="interval") as store:
            store.checkpoint()
        self.restart(chance)
        return before, time.monotonic()

    def restart(self, chance: random.Random) -> None:
        raise NotImplementedError

    def end(self) -> None:
        pass


class Postgres(Remote):
    """A PostgreSQL server that writes as one out of the box does; a store is a schema."""

    name = "PostgreSQL"

    def __init__(self, durability: str, stack: ExitStack) -> None:
        super().__init__(durability)
        self._server = stack.enter_context(PostgresServer(durable=True))

    def fresh(self, name: str) -> str:
        schema = name.replace("-", "_")
        with psycopg.connect(self._server.url(), autocommit=True) as connection:
            connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema)))
        return f"{self._server.url()}?options=-csearch_path%3D{schema}"

    def restart(self, chance: random.Random) -> None:
        self._server.restart_immediately()


class Valkey(Remote):
    """A Valkey server with an append-only file."""

    name = "Valkey"

    def __init__(self, durability: str, stack: ExitStack) -> None:
        super().__init__(durability)
        fsync = "always" if durability == "commit" else "everysec"
        self._server = stack.enter_context(ValkeyServer.started(durable=True, appendfsync=fsync))

    def fresh(self, name: str) -> str:
        return f"{self._server.url}?store={name}"

    def restart(self, chance: random.Random) -> None:
        self._server.kill()
        self._server.start()


class Cluster(Remote):
    """A Valkey cluster whose commits wait for one replica; primaries die and are replaced."""

    name = "cluster"
    loses_in_interval_mode = False  # the replica that takes over has confirmed every commit

    def __init__(self, durability: str, stack: ExitStack) -> None:
        super().__init__(durability)
        self._cluster = stack.enter_context(ValkeyCluster(durable=True, failover_seconds=1))

    def fresh(self, name: str) -> str:
        return f"{self._cluster.url}?replicas=1&store={name}"

    def restart(self, chance: random.Random) -> None:
        primary = chance.choice(self._cluster.primaries)
        replica = self._cluster.kill_primary(primary)
        self._cluster.await_promotion(replica)
        primary.start()  # and follows the new one
        self._cluster.await_replicas()


SETUPS: Final[dict[str, Any]] = {
    "server": Server,
    "3 processes": Processes,
    "PostgreSQL": Postgres,
    "Valkey": Valkey,
    "cluster": Cluster,
}


@contextmanager
def running(name: str, durability: str) -> Iterator[Setup]:
    """A setup for a block; its servers are started once for all cells of its row."""
    with ExitStack() as stack:
        if issubclass(SETUPS[name], Processes):
            folder = Path(tempfile.mkdtemp(prefix="holdfast-campaign-"))
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
            yield SETUPS[name](durability, folder)
        else:
            yield SETUPS[name](durability, stack)
