"""A real `holdfast serve` on free ports, and a small HTTP client that sees all of an answer."""

import http.client
import json
import logging
import os
import re
import signal
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
from click.testing import CliRunner, Result

from holdfast.cli import main
from tests.processes import Command

START_SECONDS = 30.0
ADDRESSES = re.compile(r"Redis clients on (\S+):(\d+) and for HTTP on (https?)://(\S+):(\d+)")


class Reply:
    """An answer: status, headers and body."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.status = response.status
        self.headers = {name.lower(): value for name, value in response.getheaders()}
        self.body = response.read()

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def result(self) -> Any:
        assert self.status == 200, self.body
        return self.json["result"]

    @property
    def error(self) -> Any:
        return self.json["error"]


class Server:
    """A running server."""

    def __init__(self, process: Command, line: str, data: Path, log: Path | None = None) -> None:
        found = ADDRESSES.search(line)
        assert found is not None, line
        self.process = process
        self.data = data
        self.log = log
        self.host = found[1].strip("[]")
        self.resp_port = int(found[2])
        self.http_port = int(found[5])
        self.url = f"{found[3]}://{found[4]}:{found[5]}"
        self.tls: ssl.SSLContext | None = None

    def connect(self) -> http.client.HTTPConnection:
        if self.tls is not None:
            return http.client.HTTPSConnection(
                self.host, self.http_port, timeout=30, context=self.tls
            )
        return http.client.HTTPConnection(self.host, self.http_port, timeout=30)

    def request(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> Reply:
        connection = self.connect()
        try:
            connection.request(method, path, body, headers or {})
            return Reply(connection.getresponse())
        finally:
            connection.close()

    def get(self, path: str, **headers: str) -> Reply:
        return self.request("GET", path, headers=_names(headers))

    def call(self, operation: str, *, space: str = "default", **arguments: Any) -> Reply:
        """Calls `jobs.put` and the like with JSON."""
        path = f"/{space}/{operation.replace('.', '/')}"
        return self.request("POST", path, json.dumps(arguments))

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Sends a signal and returns the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(START_SECONDS)

    def logged_errors(self) -> list[str]:
        """Returns the messages of all errors so far: a client should be able to cause none."""
        assert self.log is not None
        lines = [json.loads(line) for line in self.log.read_text().splitlines() if line[:1] == "{"]
        return [line["message"] for line in lines if line["level"] == "error"]

    def memory_bytes(self) -> int:
        """Returns the private memory of the process."""
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("RssAnon:"):
                return int(line.split()[1]) * 1024
        raise AssertionError("no RssAnon")


def _names(headers: dict[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in headers.items()}


def msgpack_headers() -> dict[str, str]:
    return {"Content-Type": "application/msgpack"}


def unpacked(reply: Reply) -> Any:
    return msgspec.msgpack.decode(reply.body)


def serve_words(data: Path, *options: str) -> list[str]:
    """`serve ...`, on free ports unless the options say otherwise."""
    words = ["serve", "--data", str(data), "--durability", "interval"]
    if "--resp" not in options:
        words += ["--resp", "127.0.0.1:0"]
    if "--http" not in options:
        words += ["--http", "127.0.0.1:0"]
    return [*words, *options]


@contextmanager
def serving(data: Path, *options: str, log: Path | None = None) -> Iterator[Server]:
    """Runs `holdfast serve` until the block ends."""
    process = Command(serve_words(data, *options), log=log or os.devnull)
    # A server that says nothing is ended, so that no test waits for it.
    alarm = threading.Timer(START_SECONDS, process.kill)
    alarm.start()
    try:
        line = process.stdout.readline()
        alarm.cancel()
        yield Server(process, line, data, log)
    finally:
        alarm.cancel()
        process.kill()
        process.wait()
        process.stdout.close()


def run_command(*words: str, stdin: str = "") -> Result:
    """Runs `holdfast ...` to its end, in this process: a start of Python takes a second."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        return CliRunner().invoke(main, words, input=stdin)
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
