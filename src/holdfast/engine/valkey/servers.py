"""The servers of a store: one, or a cluster whose nodes come, go and take over from one another.

A call names the slot of its keys and is sent to the server that holds them. It waits, for a limited
time, for what passes by itself: a slot on the move, a failover, a lost connection. So a call may
reach a server twice, and must be idempotent.
"""

import random
import threading
import time
from binascii import crc_hqx
from collections.abc import Sequence
from typing import Any, Final

from holdfast.engine.valkey import library
from holdfast.engine.valkey.address import Host, StoreAddress
from holdfast.engine.valkey.connections import (
    FAILURES,
    Command,
    Node,
    NotSent,
    ResponseError,
    ValkeyError,
)
from holdfast.errors import HoldfastError, NotAuthenticated, StoreClosed, StoreFull, StoreUnusable

SLOTS: Final = 16_384
_TRANSIENT_ERRORS: Final = (
    *("TRYAGAIN", "CLUSTERDOWN", "LOADING", "MASTERDOWN", "READONLY", "BUSY", "NOREPLICAS"),
    *("UNBLOCKED", "Valkey is loading", "Redis is loading", "You can't write against a read only"),
)
_FIRST_PAUSE: Final = 0.005
_LONGEST_PAUSE: Final = 0.5
_SUSPECT_SECONDS: Final = 30.0
_REDIRECTS_AT_ONCE: Final = 5  # before a pause: two nodes may each point to the other for a while


class NoReply(Exception):
    """No server answered in time. If `sent` is true, one may have received the message all
    the same."""

    def __init__(self, message: str, *, sent: bool) -> None:
        super().__init__(message)
        self.sent = sent


def slot_of(tag: bytes) -> int:
    """Returns the slot of all keys with this hash tag."""
    return crc_hqx(tag, 0) % SLOTS


class Servers:
    """Finds the server of a slot and asks it."""

    def __init__(self, address: StoreAddress, *, patience: float) -> None:
        self._address = address
        self._patience = patience
        self._lock = threading.Lock()
        self._nodes: dict[Host, Node] = {}
        self._slots: list[Node] = []  # one for each slot, or one for all
        self._closed = False
        self.is_cluster = False
        self.round_trips = 0  # counted for tests and figures
        self.changes = 0  # how often a server was lost, or another one took its place
        self._looks = 0  # how often the servers were looked up
        self._silent: dict[Host, float] = {}  # when a server did not answer
        self._find(first=True)

    # --- asking ----------------------------------------------------------------------------------

    def ask(self, slot: int, commands: Sequence[Command]) -> list[Any]:
        """Returns the replies of the server that holds `slot`. The first command decides: if it is
        answered with an error that does not pass, that is raised."""
        end = time.monotonic() + self._patience
        pause, redirects, sent = _FIRST_PAUSE, 0, False
        while True:
            looks, lost = self._looks, False
            node = self._node(slot)
            try:
                replies = node.ask(commands)
                self.round_trips += 1
                if not isinstance(replies[0], ResponseError):
                    return replies
                problem = str(replies[0])
                if problem.startswith("ASK "):
                    replies = self._ask_elsewhere(problem, commands)
                    if not isinstance(replies[0], ResponseError):
                        return replies
                elif self._may_ask_again(slot, replies[0], sent):
                    redirects += 1
                    if redirects <= _REDIRECTS_AT_ONCE:
                        continue
            except NotSent as failure:
                problem, lost = str(failure), True
            except FAILURES as failure:
                problem, lost, sent = str(failure), True, True
            if lost:
                self._silent[node.host] = time.monotonic()
            if self._closed:
                raise StoreClosed(f"{self._address.name} is closed")
            is_over = time.monotonic() > end
            if not is_over:
                time.sleep(pause * random.uniform(0.5, 1))
                pause = min(2 * pause, _LONGEST_PAUSE)
            self._refresh(looks, lost=lost)  # also for the next caller
            if is_over:
                raise NoReply(problem, sent=sent)

    def first_slots(self) -> list[int]:
        """Returns a slot of each primary."""
        if not self.is_cluster:
            return [0]
        seen: dict[int, int] = {}
        for slot, node in enumerate(self._slots):
            seen.setdefault(id(node), slot)
        return list(seen.values())

    def primaries(self) -> dict[Host, Node]:
        return {node.host: node for node in dict.fromkeys(self._slots)}

    def host_of(self, slot: int) -> Host:
        return self._node(slot).host

    def _node(self, slot: int) -> Node:
        slots = self._slots
        return slots[slot] if len(slots) > 1 else slots[0]

    def _may_ask_again(self, slot: int, error: ResponseError, sent: bool) -> bool:
        """Returns whether sending again at once can help. Raises errors that will not pass."""
        problem = str(error)
        if "Function not found" in problem:
            _load_library(self._node(slot))
            return True
        if problem.startswith("MOVED "):
            self._refresh(self._looks, lost=False)
            return True
        if problem.startswith(_TRANSIENT_ERRORS):
            return False
        if sent:  # the answer to the first message was lost, and may have been a different one
            raise NoReply(problem, sent=True)
        raise explain(error, self._address.name)

    def _ask_elsewhere(self, problem: str, commands: Sequence[Command]) -> list[Any]:
        """Asks the new server of a slot that is being moved."""
        host, _, port = problem.split()[2].rpartition(":")
        node = self._at((host.strip("[]"), int(port)))
        replies = node.ask([("ASKING",), *commands])[1:]
        self.round_trips += 1
        if isinstance(replies[0], ResponseError) and "Function not found" in str(replies[0]):
            _load_library(node)
        return replies

    # --- finding ---------------------------------------------------------------------------------

    def _refresh(self, looks: int, *, lost: bool) -> None:
        """Looks for the servers again, unless another thread has done so since."""
        with self._lock:
            if self._looks != looks or self._closed:
                return
            self._looks += 1
            self.changes += lost  # a server that was away may have lost what came last
        try:
            self._find(first=False)
        except (StoreUnusable, ValkeyError, OSError, NotSent):
            return  # the caller tries again, until its patience ends

    def _find(self, *, first: bool) -> None:
        """Asks a known server for the map of slots."""
        problems: list[str] = []
        known = [*self._nodes, *(host for host in self._address.hosts if host not in self._nodes)]
        if not first:
            random.shuffle(known)
            known.sort(key=self._was_silent)
        for host in known:
            try:
                found = self._ask_for_map(host)
            except (NotSent, *FAILURES) as failure:
                problems.append(f"{host[0]}:{host[1]}: {failure}")
            except ValkeyError as error:
                if first:
                    raise explain(error, self._address.name) from error
                problems.append(str(error))
            else:
                if found is not None:
                    self._settle(found)
                    return
                problems.append(f"{host[0]}:{host[1]} does not know a primary for every slot")
        raise StoreUnusable(
            f"no server of {self._address.name} can be used: {'; '.join(problems)}",
            hint="Start the servers, or correct the URL.",
        )

    def _was_silent(self, host: Host) -> bool:
        """Returns whether a server hung recently: it is asked last, because each try costs its
        timeout."""
        return time.monotonic() - self._silent.get(host, -_SUSPECT_SECONDS) < _SUSPECT_SECONDS

    def _ask_for_map(self, host: Host) -> list[Host] | None:
        """Returns the primary of each slot, one for all without a cluster, or None if `host` can't
        tell."""
        cluster, replication = self._at(host).ask([("INFO", "cluster"), ("INFO", "replication")])
        for reply in (cluster, replication):
            if isinstance(reply, ResponseError):
                raise reply
        if b"cluster_enabled:1" not in cluster:
            return [host] if b"role:master" in replication else None
        [slots] = self._at(host).ask([("CLUSTER", "SLOTS")])
        if isinstance(slots, ResponseError):
            raise slots
        primaries: list[Host | None] = [None] * SLOTS
        for begin, end, (name, port, *_), *_ in slots:
            primaries[begin : end + 1] = [(name.decode() if name else host[0], port)] * (
                end + 1 - begin
            )
        whole = [primary for primary in primaries if primary is not None]
        return whole if len(whole) == SLOTS else None

    def _settle(self, hosts: list[Host]) -> None:
        nodes = {host: self._at(host) for host in dict.fromkeys(hosts)}
        slots = [nodes[host] for host in hosts]
        with self._lock:
            self.is_cluster = len(hosts) > 1
            if slots != self._slots:
                self._slots = slots
                self.changes += 1

    def _at(self, host: Host) -> Node:
        with self._lock:
            if self._closed:
                raise StoreClosed(f"{self._address.name} is closed")
            if host not in self._nodes:
                self._nodes[host] = Node(self._address, host)
            return self._nodes[host]

    # --- the end ---------------------------------------------------------------------------------

    def close(self) -> None:
        with self._lock:
            self._closed = True
        for node in self._nodes.values():
            node.close()

    def forget(self) -> None:
        """Called in a forked child: the sockets are the parent's."""
        self._lock = threading.Lock()
        self._closed = True
        for node in self._nodes.values():
            node.forget()


def _load_library(node: Node) -> None:
    [reply] = node.ask([("FUNCTION", "LOAD", library.source())])
    if isinstance(reply, ResponseError) and "already exists" not in str(reply):
        raise explain(reply, f"{node.host[0]}:{node.host[1]}")


def explain(error: Exception, name: str) -> HoldfastError:
    """Returns the error to raise for an error of a server."""
    text = str(error)
    kind = type(error).__name__
    if kind == "OutOfMemoryError" or text.startswith("OOM"):
        return StoreFull(f"{name} has no memory left: {text}")
    if text.startswith(("NOAUTH", "Authentication required")):
        return NotAuthenticated(
            f"{name} requires a name or password: {text}",
            hint="Write them into the URL: valkey://user:password@host:port.",
        )
    return StoreUnusable(f"{name} answers: {text}")
