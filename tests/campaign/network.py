"""Network faults.

Sessions append to lists and read them, several steps in one transaction, while a proxy of ours
sits between client and server, over RESP and HTTP, and between Holdfast and PostgreSQL or Valkey:
it delays, splits, cuts, half-closes, swallows replies and sends the ends of connections twice, at
random. A cluster of Valkey is partitioned so that a primary loses sight of the others while clients
may still reach it, and a PostgreSQL primary dies and its synchronous standby takes over. Every
history is checked: it must be serializable in real time (no cycle of Adya's G0, G1 or G2), every
session must see its own writes and never go back, what was acknowledged is there once, and what was
reported as not done is not.
"""

import random
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import holdfast
from tests.campaign.appends import (
    Session,
    Workload,
    client_session,
    final_lists,
    http_session,
    library_session,
    prepare,
)
from tests.campaign.frame import Result
from tests.campaign.proxy import Proxy
from tests.campaign.serializability import check
from tests.campaign.setups import serve_store
from tests.processes import start
from tests.servers import PostgresServer, ValkeyCluster, ValkeyServer, await_true
from tests.servers.process import free_ports
from tests.servers.valkey import node_address

SESSIONS: Final = 4
RATE: Final = 0.03  # of the pieces that pass a proxy
DISTURB_EVERY_SECONDS: Final = 0.5
START_ATTEMPTS: Final = 5


class Scene(NamedTuple):
    """A store, ways to it that break, and a way that does not."""

    sessions: list[Session]
    proxies: list[Proxy]
    read: Callable[[], AbstractContextManager[Any]]
    disturb: Callable[[], None] = lambda: None  # on top of what the proxies do by chance


def run(random: random.Random, seconds: float) -> Result:
    """Plays every scene, each for the same time."""
    return run_scenes(SCENES, random, seconds)


def run_scenes(names: Iterable[str], chance: random.Random, seconds: float) -> Result:
    names = list(names)
    rows: dict[str, dict[str, int]] = {}
    broken: list[str] = []
    total: Counter[str] = Counter()
    for name in names:
        figures, sentences = _play(name, chance, seconds / len(names))
        total.update(figures)
        rows[name] = dict(figures)
        broken += [f"{name}: {sentence}" for sentence in sentences]
    return Result(tried={"scenes": len(names), **total}, broken=broken, rows=rows)


def _play(name: str, chance: random.Random, seconds: float) -> tuple[dict[str, int], list[str]]:
    with ExitStack() as stack:
        scene = SCENES[name](chance, stack)
        with scene.read() as store:
            prepare(store)
        workload = Workload(scene.sessions, chance)
        end = time.monotonic() + seconds
        while time.monotonic() < end or not workload.done():
            scene.disturb()
            _await_some(workload, min(end, time.monotonic() + DISTURB_EVERY_SECONDS))
        for proxy in scene.proxies:
            proxy.calm()
        workload.end()
        with scene.read() as store:
            final = final_lists(store, workload.keys)
    anomalies = check(workload.history, final)
    outcomes = Counter(each.outcome for each in workload.history)
    kinds = Counter(anomaly.kind for anomaly in anomalies)
    faults = sum((proxy.faults for proxy in scene.proxies), Counter[str]())
    figures = {
        "faults": faults.total(),
        "transactions": len(workload.history),
        "acknowledged": outcomes["done"],
        "of unknown outcome": outcomes["unknown"],
        "lost": kinds["lost"],
        "doubled": kinds["doubled"],
        "anomalies": len(anomalies),
    }
    return figures, [f"{each.kind}: {each.text[:600]}" for each in anomalies[:5]]


def _await_some(workload: Workload, until: float) -> None:
    """Returns after a while, or when a session has failed."""
    await_true(
        lambda: time.monotonic() >= until or bool(workload.errors), seconds=600, what="a moment"
    )
    if workload.errors:
        raise workload.errors[0]


# --- scenes ---------------------------------------------------------------------------------------


def _between_clients_and_a_server(
    chance: random.Random, stack: ExitStack, *, http: bool, engine: str | None = None
) -> Scene:
    """A server in a process of its own, reached through a proxy."""
    folder = Path(tempfile.mkdtemp(prefix="holdfast-campaign-"))
    stack.callback(shutil.rmtree, folder, ignore_errors=True)
    ports = _serve(engine or f"lmdb:{folder / 'store'}", folder, stack)
    proxy = stack.enter_context(Proxy(ports[1 if http else 0], chance, rate=RATE))
    if http:
        sessions = [http_session(proxy.port, stack) for _ in range(SESSIONS)]
    else:
        url = f"holdfast://127.0.0.1:{proxy.port}"
        sessions = [client_session(url, stack) for _ in range(SESSIONS)]
    direct = f"holdfast://127.0.0.1:{ports[0]}"
    return Scene(sessions, [proxy], lambda: holdfast.connect(direct))


def _serve(url: str, folder: Path, stack: ExitStack) -> list[int]:
    for attempt in range(START_ATTEMPTS):
        ports = free_ports(2)
        child = start(serve_store, url, "commit", ports, str(folder))
        stack.callback(child.kill)
        try:
            child.receive()
        except EOFError:  # another process may have taken a port meanwhile
            if attempt == START_ATTEMPTS - 1:
                raise
        else:
            break
    return ports


def _resp(chance: random.Random, stack: ExitStack) -> Scene:
    return _between_clients_and_a_server(chance, stack, http=False)


def _http(chance: random.Random, stack: ExitStack) -> Scene:
    return _between_clients_and_a_server(chance, stack, http=True)


def _server_on_postgres(chance: random.Random, stack: ExitStack) -> Scene:
    """Both ways break: the clients' to the server, and the server's to its engine."""
    server = stack.enter_context(PostgresServer(durable=True))
    proxy = stack.enter_context(Proxy(server.port, chance))
    scene = _between_clients_and_a_server(chance, stack, http=False, engine=_through(server, proxy))
    proxy.rate = RATE  # from now on: a server that can't open its store does not start
    return scene._replace(proxies=[*scene.proxies, proxy], read=lambda: holdfast.open(server.url()))


def _library_on_postgres(chance: random.Random, stack: ExitStack) -> Scene:
    server = stack.enter_context(PostgresServer(durable=True))
    proxy = stack.enter_context(Proxy(server.port, chance))
    sessions = _library_sessions(_through(server, proxy), stack)
    proxy.rate = RATE
    return Scene(sessions, [proxy], lambda: holdfast.open(server.url()))


def _through(server: PostgresServer, proxy: Proxy) -> str:
    return server.url().replace(f":{server.port}/", f":{proxy.port}/")


def _library_on_valkey(chance: random.Random, stack: ExitStack) -> Scene:
    server = stack.enter_context(ValkeyServer.started(durable=True))
    proxy = stack.enter_context(Proxy(server.port, chance))
    sessions = _library_sessions(f"valkey://127.0.0.1:{proxy.port}", stack)
    proxy.rate = RATE
    return Scene(sessions, [proxy], lambda: holdfast.open(server.url))


def _library_sessions(url: str, stack: ExitStack) -> list[Session]:
    """Sessions of two processes' worth: stores of their own, each shared by two threads."""
    stores = [stack.enter_context(_opened(url)) for _ in range(SESSIONS // 2)]
    return [library_session(store) for store in stores for _ in range(2)]


@contextmanager
def _opened(url: str) -> Iterator[holdfast.Store]:
    with holdfast.open(url) as store:
        yield store


def _postgres_failover(chance: random.Random, stack: ExitStack) -> Scene:
    """The primary crashes, once, and the synchronous standby takes over."""
    primary = stack.enter_context(PostgresServer(durable=True))
    standby = stack.enter_context(PostgresServer(durable=True, standby_of=primary))
    primary.await_standby()
    url = f"postgresql://postgres@127.0.0.1:{primary.port},127.0.0.1:{standby.port}/postgres"
    crashes = Proxy(primary.port, chance)  # nothing passes it: it counts the failover as a fault
    stack.enter_context(crashes)
    calls = iter(range(1_000_000))

    def disturb() -> None:
        if next(calls) == 2:  # after a second of peace
            primary.stop_immediately()
            standby.promote()
            crashes.faults["failover"] += 1

    return Scene(_library_sessions(url, stack), [crashes], lambda: holdfast.open(url), disturb)


class _Partitions:
    """A cluster in which every link between two nodes, or a client and a node, can be silenced."""

    def __init__(self, chance: random.Random, stack: ExitStack) -> None:
        self._chance = chance
        self._stack = stack
        self._isolated: int | None = None
        self._clients_reach_it = True
        self.proxies: list[Proxy] = []
        self.cluster = stack.enter_context(
            ValkeyCluster(durable=True, failover_seconds=1, announce=self._announce)
        )

    def _announce(self, number: int, port: int) -> int:
        proxy = Proxy(port, self._chance, admits=lambda host: self._passes(host, number))
        self.proxies.append(self._stack.enter_context(proxy))
        return proxy.port

    def _passes(self, host: str, target: int) -> bool:
        isolated = self._isolated
        if isolated is None:
            return True
        sources = {node_address(number): number for number in range(6)}
        source = sources.get(host)
        if source is None:
            return target != isolated or self._clients_reach_it
        return (source == isolated) == (target == isolated)

    def disturb(self) -> None:
        """Cuts a primary off until its replica has taken over, and heals the cluster."""
        nodes = self.cluster.nodes
        primaries = self.cluster.primaries
        if self._chance.random() < 0.7:  # the one that the sessions need
            primaries = [max(primaries, key=lambda node: int(node.command("DBSIZE")))]
        primary = self._chance.choice(primaries)
        replica = self.cluster.replica_of(primary)
        self._clients_reach_it = self._chance.random() < 0.5
        self._isolated = nodes.index(primary)
        self.proxies[0].faults["partition"] += 1
        try:
            await_true(
                lambda: replica.command("ROLE")[0] == "master", seconds=60, what="a promotion"
            )
        finally:
            self._isolated = None
        self.cluster.await_promotion(replica)
        self.cluster.await_replicas()


def _cluster_partitions(chance: random.Random, stack: ExitStack) -> Scene:
    partitions = _Partitions(chance, stack)
    url = partitions.cluster.url + "?replicas=1"
    sessions = _library_sessions(url, stack)
    return Scene(sessions, partitions.proxies, lambda: holdfast.open(url), partitions.disturb)


SCENES: Final[dict[str, Callable[[random.Random, ExitStack], Scene]]] = {
    "client and server, RESP": _resp,
    "client and server, HTTP": _http,
    "client, server and PostgreSQL": _server_on_postgres,
    "library and PostgreSQL": _library_on_postgres,
    "library and Valkey": _library_on_valkey,
    "failover of PostgreSQL": _postgres_failover,
    "partitions of a cluster": _cluster_partitions,
}
