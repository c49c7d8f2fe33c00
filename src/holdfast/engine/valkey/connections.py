"""Connections to servers: one command or several, one round trip."""

import ssl
import threading
from collections.abc import Sequence
from typing import Any, Final

from valkey.connection import Connection, SSLConnection
from valkey.exceptions import AuthenticationError, InvalidResponse, ResponseError, ValkeyError
from valkey.exceptions import ConnectionError as Lost
from valkey.exceptions import TimeoutError as TimedOut

from holdfast.engine.valkey.address import Host, StoreAddress
from holdfast.errors import NotAuthenticated
from holdfast.limits import VALKEY_ANSWER_SECONDS, VALKEY_CONNECT_SECONDS

Command = Sequence[bytes | str | int]

_FREE_CONNECTIONS: Final = 32  # kept for later, to one server

# Failures of a connection. A reply that is not RESP comes from another program, or was damaged.
FAILURES: Final = (Lost, TimedOut, InvalidResponse, OSError)


class NotSent(Exception):
    """A connection could not be made: nothing has reached the server."""


class ServerConnection:
    """One connection."""

    def __init__(self, address: StoreAddress, host: Host) -> None:
        options: dict[str, Any] = {
            "host": host[0],
            "port": host[1],
            "db": address.database,
            "username": address.username,
            "password": address.password,
            "socket_timeout": VALKEY_ANSWER_SECONDS,
            "socket_connect_timeout": VALKEY_CONNECT_SECONDS,
            "socket_keepalive": True,
            "lib_name": None,
            "lib_version": None,
        }
        if address.tls:
            options["ssl_ca_certs"] = address.ca
            options["ssl_check_hostname"] = True
        connect: Any = SSLConnection if address.tls else Connection  # the driver has few types
        self._connection = connect(**options)
        try:
            self._connection.connect()
        except AuthenticationError as error:
            raise NotAuthenticated(
                f"{host[0]}:{host[1]} refuses the name or password: {error}",
                hint="Write them into the URL: valkey://user:password@host:port.",
            ) from error
        except (*FAILURES, ssl.SSLError) as error:
            raise NotSent(str(error)) from error

    def ask(self, commands: Sequence[Command]) -> list[Any]:
        """Returns the replies; a server's error is one of them, and is not raised."""
        connection = self._connection
        packed = [piece for command in commands for piece in connection.pack_command(*command)]
        connection.send_packed_command(packed)
        return [self._read() for _ in commands]

    def send(self, command: Command) -> None:
        self._connection.send_packed_command(self._connection.pack_command(*command))

    def receive(self) -> Any:
        """Returns the next message of a subscription; waits for it."""
        return self._connection.read_response()

    def has_message(self) -> bool:
        return bool(self._connection.can_read(0))

    def fileno(self) -> int:
        sock = self._connection._sock  # the driver has no public name for it
        return -1 if sock is None else int(sock.fileno())

    def close(self) -> None:
        self._connection.disconnect()

    def forget(self) -> None:
        """Called in a forked child, which shares the socket: closes it silently."""
        self._connection.pid = -1
        self._connection.disconnect()

    def _read(self) -> Any:
        try:
            return self._connection.read_response()
        except FAILURES:
            raise
        except ResponseError as error:
            return error


class Node:
    """One server, and the free connections to it."""

    def __init__(self, address: StoreAddress, host: Host) -> None:
        self.host = host
        self._address = address
        self._free: list[ServerConnection] = []
        self._lock = threading.Lock()
        self._closed = False

    def ask(self, commands: Sequence[Command]) -> list[Any]:
        """Makes one round trip. Raises `NotSent`, or one of `FAILURES` if it may have been
        received."""
        with self._lock:
            connection = self._free.pop() if self._free else None
        if connection is None:
            connection = ServerConnection(self._address, self.host)
        try:
            replies = connection.ask(commands)
        except BaseException:
            connection.close()
            self.drop_connections()  # connections made before are probably dead too
            raise
        self._give_back(connection)
        return replies

    def drop_connections(self) -> None:
        with self._lock:
            connections, self._free = self._free, []
        for connection in connections:
            connection.close()

    def close(self) -> None:
        self._closed = True
        self.drop_connections()

    def forget(self) -> None:
        self._lock = threading.Lock()
        self._closed = True
        for connection in self._free:
            connection.forget()
        self._free = []

    def _give_back(self, connection: ServerConnection) -> None:
        with self._lock:
            if not self._closed and len(self._free) < _FREE_CONNECTIONS:
                self._free.append(connection)
                return
        connection.close()


__all__ = [
    "FAILURES",
    "Command",
    "Node",
    "NotSent",
    "ResponseError",
    "ServerConnection",
    "ValkeyError",
]
