"""A throw-away server, for the tests of programs that use the public Meduza API."""

import http.client
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import ClassVar, Final, Self

from holdfast.compat.meduza.client.errors import MeduzaError
from holdfast.defaults import HTTP_PORT

DEFAULT_CONNECT_TIMEOUT: Final = 30.0  # starting a server takes long on a busy machine
_POLL_SECONDS: Final = 0.02


class DisposableMeduza:
    """A Holdfast server in a temporary folder, on free ports of this machine.

    The path of a Meduza server, which the public class requires, is accepted and ignored.
    """

    command: ClassVar[tuple[str, ...]] = (sys.executable, "-m", "holdfast")

    def __init__(self, meduzaExecutable: str | None = None) -> None:
        self.port: int | None = None
        self.ctlPort: int | None = None
        self._folder: str | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, connectTimeout: float = DEFAULT_CONNECT_TIMEOUT) -> None:
        """Starts the server and returns when it answers on both ports."""
        self._folder = tempfile.mkdtemp(prefix="holdfast-")
        self.port, self.ctlPort = findUnusedPort(), findUnusedPort()
        listen = ("--resp", f"127.0.0.1:{self.port}", "--http", f"127.0.0.1:{self.ctlPort}")
        words = [*self.command, "serve", "--data", self._folder, *listen]
        self._process = process = subprocess.Popen(words)
        try:
            for port in (self.port, self.ctlPort):
                waitPort("127.0.0.1", port, connectTimeout, lambda: process.poll() is None)
        except MeduzaError:
            self.stop()
            raise

    def stop(self) -> None:
        """Stops the server and removes its folder."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait()
            self._process = None
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def installSchema(self, schema: str) -> None:
        """Deploys a schema to the server."""
        if self.ctlPort is None:
            raise MeduzaError("the server was not started")
        installSchema(schema, self.ctlPort)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()


def installSchema(schema: str, port: int = HTTP_PORT) -> None:
    """Deploys a schema to the server whose control port this is."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("POST", "/deploy", schema.encode(), {"Content-Type": "text/yaml"})
        response = connection.getresponse()
        answer = response.read()
    finally:
        connection.close()
    if response.status != 200 or answer != b"OK":
        raise MeduzaError(f"Failed to install schema: {answer.decode(errors='replace').strip()}")


def findUnusedPort() -> int:
    """Returns a port of this machine that is not in use."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def waitPort(
    host: str,
    port: int,
    timeout: float = DEFAULT_CONNECT_TIMEOUT,
    hopes: Callable[[], bool] = lambda: True,
) -> None:
    """Returns when a server listens on the port; raises `MeduzaError` after `timeout` seconds, or
    as soon as `hopes` returns False."""
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline and hopes():
        try:
            socket.create_connection((host, port), timeout=timeout).close()
        except OSError:
            time.sleep(_POLL_SECONDS)
        else:
            return
    waited = f"after {timeout} seconds" if hopes() else "and the server has ended"
    raise MeduzaError(f"nobody listens on port {port} {waited}")
