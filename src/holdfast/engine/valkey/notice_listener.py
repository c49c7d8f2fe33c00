"""The notices of all spaces, as the servers publish them.

A commit publishes its notices on one channel. Every primary is listened to, and a notice is taken
from the server that its space lives on, so those of a space come in the order of their commits. A
message names the previous version with notices, so a message that was lost with a connection is
noticed, and read from the log of its space.
"""

import select
import threading
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import msgspec

from holdfast.engine.contract import Notice
from holdfast.engine.notices import bytes_of
from holdfast.engine.remote import ConnectionLost
from holdfast.engine.valkey.address import Host, StoreAddress
from holdfast.engine.valkey.connections import FAILURES, NotSent, ResponseError, ServerConnection
from holdfast.engine.valkey.library import function
from holdfast.limits import KEPT_NOTICE_BYTES, KEPT_NOTICE_COMMITS

if TYPE_CHECKING:
    from holdfast.engine.valkey.backend import ValkeyBackend

_NOTICES: Final = msgspec.msgpack.Decoder(list[Notice])
_ATTEMPTS: Final = 3
_LOOK_SECONDS: Final = 0.1  # how soon a listener sees that it was stopped


class Listener:
    """Receives notices and numbers them; the numbers are the positions that a hub remembers."""

    def __init__(self, backend: "ValkeyBackend", address: StoreAddress) -> None:
        self._backend = backend
        self._address = address
        self._lock = threading.Lock()
        self._connections: dict[Host, ServerConnection] = {}
        self._changes = -1  # of the servers, when the links were made
        self._versions: dict[bytes, int] = {}  # space -> the last version whose notices were heard
        self._received: deque[list[Notice]] = deque()
        self._bytes = 0  # of what is in `_received`
        self._count = 0  # of all that was ever in `_received`
        self._lost = 0  # commits whose notices are lost
        self._closed = False

    def newest(self) -> tuple[int, int]:
        """Returns the position after all commits that have returned so far."""
        with self._lock:
            self._catch_up()
            return self._count, self._lost

    def since(self, place: tuple[int, int]) -> tuple[tuple[int, int], int, list[Notice]]:
        with self._lock:
            self._catch_up()
            behind = self._count - place[0]
            forgotten = max(0, behind - len(self._received)) + self._lost - place[1]
            recent = list(self._received)[-behind:] if behind else []
            return (self._count, self._lost), forgotten, [n for notices in recent for n in notices]

    def listen(self, wake: Callable[[], None], stopped: threading.Event) -> None:
        """Calls `wake` whenever something has arrived, until `stopped`."""
        while not stopped.is_set():
            with self._lock:
                connections = list(self._connections.values())
            files = [connection for connection in connections if connection.fileno() >= 0]
            if not files:
                stopped.wait(_LOOK_SECONDS)
                continue
            try:
                ready, _, _ = select.select(files, [], [], _LOOK_SECONDS)
            except (OSError, ValueError):  # one of them was closed meanwhile
                continue
            if not ready:
                continue
            with self._lock:
                for connection in ready:
                    self._take_waiting(connection)
            wake()

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._drop_connections()

    def forget(self) -> None:
        self._lock = threading.Lock()
        self._closed = True
        for connection in self._connections.values():
            connection.forget()
        self._connections = {}

    # --- hearing ---------------------------------------------------------------------------------

    def _catch_up(self) -> None:
        """Takes all that was published before this call. Connects again where needed, and
        again if it is lost at once: a server may have closed what was idle for long."""
        for attempt in range(_ATTEMPTS):
            if self._closed:
                raise ConnectionLost("the listener was closed")
            try:
                if self._changes != self._backend.servers.changes or not self._connections:
                    self._connect()
                self._take_all()
                return
            except (NotSent, ResponseError, ConnectionLost, *FAILURES) as failure:
                self._drop_connections()
                if attempt == _ATTEMPTS - 1:
                    raise ConnectionLost(str(failure)) from failure

    def _take_all(self) -> None:
        """Takes all messages up to the answer to a PING, which follows everything published
        before."""
        for connection in self._connections.values():
            connection.send(("PING",))
        for host, connection in list(self._connections.items()):
            while not self._take(host, connection.receive()):
                pass

    def _take_waiting(self, connection: ServerConnection) -> None:
        """Takes what has arrived so far."""
        host = next(
            (host for host, other in self._connections.items() if other is connection), None
        )
        if host is None:
            return
        try:
            while connection.has_message():
                self._take(host, connection.receive())
        except (ResponseError, *FAILURES):
            self._drop_connections()  # the next check connects again

    def _take(self, host: Host, message: list[bytes]) -> bool:
        """Takes one message; True if it is the answer to a PING."""
        if message[0] == b"pong":
            return True
        if message[0] == b"message":
            version, before, notices = message[2].split(b" ", 2)
            self._accept(host, int(version), int(before), _NOTICES.decode(notices))
        return False

    def _accept(self, host: Host, version: int, before: int, notices: list[Notice]) -> None:
        space = notices[0].space
        state = self._backend.state_of(space)
        if self._backend.servers.host_of(state.slot) != host:
            return  # passed on by a server that does not hold the space
        known = self._versions.get(space, 0)
        if version <= known:
            return  # it was in the log, which was read after it had been sent
        if before > known:
            self._ask_for_missing([space])  # this notice included
            return
        self._versions[space] = version
        self._keep(notices)

    def _keep(self, notices: list[Notice]) -> None:
        self._received.append(notices)
        self._count += 1
        self._bytes += sum([bytes_of(notice) for notice in notices])
        while len(self._received) > 1 and (
            len(self._received) > KEPT_NOTICE_COMMITS or self._bytes > KEPT_NOTICE_BYTES
        ):
            self._bytes -= sum([bytes_of(notice) for notice in self._received.popleft()])

    # --- connecting ------------------------------------------------------------------------------

    def _connect(self) -> None:
        """Subscribes to every primary, and finds out what was published while nobody listened."""
        first = self._changes < 0
        servers = self._backend.servers
        changes = servers.changes
        self._drop_connections()
        for host in servers.primaries():
            connection = ServerConnection(self._address, host)
            self._connections[host] = connection
            connection.send(("SUBSCRIBE", self._backend.names.channel))
            connection.receive()
        spaces = self._backend.spaces()
        if first:
            self._learn_versions(spaces)
        else:
            self._ask_for_missing(spaces)
        self._changes = changes

    def _learn_versions(self, spaces: list[bytes]) -> None:
        """Learns the version of each space when the first subscriber listens."""
        states = [self._backend.state_of(space) for space in spaces]
        replies = self._backend.ask_spaces(
            states, lambda state: ("HGET", state.names.state, "said")
        )
        for space, reply in zip(spaces, replies, strict=True):
            self._versions[space] = int(reply or 0)

    def _ask_for_missing(self, spaces: list[bytes]) -> None:
        """Reads from the logs what was not heard."""
        states = [self._backend.state_of(space) for space in spaces]
        replies = self._backend.ask_spaces(
            states,
            lambda state: (
                *("FCALL_RO", function("heard"), 2, state.names.state, state.names.log),
                self._versions.get(state.space, 0),
            ),
        )
        for space, (said, unknown, found) in zip(spaces, replies, strict=True):
            self._lost += unknown
            self._versions[space] = int(said)
            for notices in found:
                self._keep(_NOTICES.decode(notices))

    def _drop_connections(self) -> None:
        for connection in self._connections.values():
            connection.close()
        self._connections = {}
