"""Clients of the public Meduza API: over a socket, or on a store in this process."""

import re
import socket
import ssl
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Final, Protocol

from holdfast import wire as resp
from holdfast.binding import Runner
from holdfast.client.urls import ServerTarget
from holdfast.compat.meduza import wire
from holdfast.compat.meduza.client.errors import ColumnValueError, MeduzaError, RequestError
from holdfast.compat.meduza.client.queries import RESPONSES, PingQuery, Query, Response
from holdfast.defaults import DEFAULT_SPACE, RESP_PORT
from holdfast.entities import bson_codec
from holdfast.errors import BadValue, HoldfastError

_HOLDFAST: Final = re.compile(r"^redis(?=s?://)")


class Client(Protocol):
    """The client that a connector yields."""

    def do(self, query: Query) -> Any: ...


Connector = Callable[[], AbstractContextManager[Client]]


class RedisClient:
    """A connection to a server. `send` and `receive` allow pipelining; replies keep the order."""

    def __init__(
        self,
        host: str = "localhost",
        port: int = RESP_PORT,
        timeout: float | None = None,
        *,
        user: str = "",
        password: str = "",
        tls: ssl.SSLContext | None = None,
        space: str = "",
    ) -> None:
        """`password` may be a token; `space` selects a space other than the server's default."""
        self._address = (host, port)
        self._timeout = timeout
        self._tls = tls
        self._handshake: list[tuple[str, ...]] = [("AUTH", user or "default", password)]
        if not user and not password:
            self._handshake = []
        if space:
            self._handshake.append(("SPACE", space))
        self._socket: socket.socket | None = None
        self._stream: Any = None

    def do(self, query: Query) -> Any:
        self.send(query)
        return self.receive()

    def send(self, query: Query) -> None:
        kind, body = query.type.encode(), _body(query)
        if self._socket is None:
            self._connect()
        assert self._socket is not None
        self._socket.sendall(
            b"*2\r\n$%d\r\n%b\r\n$%d\r\n%b\r\n" % (len(kind), kind, len(body), body)
        )

    def _connect(self) -> None:
        opened = socket.create_connection(self._address, self._timeout)
        if self._tls is not None:
            opened = self._tls.wrap_socket(opened, server_hostname=self._address[0])
        self._socket, self._stream = opened, opened.makefile("rb")
        for words in self._handshake:
            opened.sendall(resp.array(resp.bulk(word.encode()) for word in words))
            reply: bytes = self._stream.readline().rstrip(b"\r\n")
            if reply != b"+OK":
                self.close()
                raise RequestError(reply[1:].decode(errors="replace"))

    def receive(self) -> Response:
        if self._number(b"*") != 2:
            raise MeduzaError("the server's reply does not have two parts")
        kind, body = self._bulk().decode(), self._bulk()
        return RESPONSES[kind](**bson_codec.decode(body))

    def _bulk(self) -> bytes:
        length = self._number(b"$")
        data: bytes = self._stream.read(length + 2)
        if len(data) < length + 2:
            raise MeduzaError("the server closed the connection in the middle of a reply")
        return data[:length]

    def _number(self, mark: bytes) -> int:
        line: bytes = self._stream.readline().rstrip(b"\r\n")
        if line.startswith(b"-"):
            raise RequestError(line[1:].decode())
        if not line.startswith(mark) or not line[1:].isdigit():
            raise MeduzaError(f"the server answered {line!r}, not a reply of Meduza's")
        return int(line[1:])

    def close(self) -> None:
        if self._socket is not None:
            self._stream.close()
            self._socket.close()
            self._socket = None


class StoreClient:
    """A client on a store, or on a space of one, in this process."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._replies: deque[Response] = deque()

    def do(self, query: Query) -> Any:
        kind, body = query.type, _body(query)
        try:
            asked = wire.read_query(kind, body)
            if wire.is_read(asked):
                with self._runner.view() as reader:
                    result = wire.execute(reader, asked)  # type: ignore[arg-type]  # it only reads
            else:
                result = self._runner.transact(lambda tx: wire.execute(tx, asked))
            reply = wire.write_reply(asked, result)
        except HoldfastError as error:
            reply = wire.write_error(kind, error)
        return RESPONSES[wire.reply_type(kind)](**bson_codec.decode(reply))

    def send(self, query: Query) -> None:
        self._replies.append(self.do(query))

    def receive(self) -> Response:
        return self._replies.popleft()


def _body(query: Query) -> bytes:
    try:
        return bson_codec.encode(query.document())
    except BadValue as error:
        raise ColumnValueError(error.message) from None


def customConnector(
    host: str,
    port: int = RESP_PORT,
    timeout: float | None = 0.5,
    *,
    user: str = "",
    password: str = "",
) -> Connector:
    """Connects to this server, again for each call; `timeout` is in seconds per step.

    The host may be a URL with credentials, `holdfast://user:password@host:9977/space`, or
    `holdfasts://` for an encrypted connection; `redis://` and `rediss://` mean the same. A token is
    written in place of the password.
    """
    options: dict[str, Any] = {"user": user, "password": password}
    if "://" in host:
        target = ServerTarget.parse(_HOLDFAST.sub("holdfast", host, count=1))
        host, port = target.host, target.port
        options = {
            "user": user or target.user,
            "password": password or target.password,
            "tls": target.tls(),
            "space": "" if target.space == DEFAULT_SPACE else target.space,
        }

    @contextmanager
    def connector() -> Iterator[RedisClient]:
        client = RedisClient(host, port, timeout, **options)
        try:
            yield client
        finally:
            client.close()

    return connector


def defaultConnector() -> AbstractContextManager[Client]:
    """Connects to localhost:9977, without a timeout."""
    return customConnector("localhost", RESP_PORT, None)()


def storeConnector(store: Any) -> Connector:
    """Serves the calls from a store in this process, or from a space of one."""
    client = StoreClient(store.entities._runner)

    @contextmanager
    def connector() -> Iterator[StoreClient]:
        yield client

    return connector


def ping(client: Client) -> bool:
    """Returns whether the server answers."""
    return client.do(PingQuery()).error is None
