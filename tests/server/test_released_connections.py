"""A connection that has ended takes all that it held along, and leaves nothing to the collector."""

import gc
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.server.resp import RespConnection
from tests.server.running import RawClient, command
from tests.server.small_server import SmallServer, small_server


@pytest.fixture
def server(tmp_path: Path) -> Iterator[SmallServer]:
    with small_server(tmp_path) as server:
        yield server


@pytest.fixture
def no_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def open_batch(client: RawClient) -> None:
    client.socket.sendall(command("MULTI") + command("ECHO", b"x" * 100_000) * 20)
    for _ in range(21):
        client.receive()


def wait_for_a_job(client: RawClient) -> None:
    client.socket.sendall(command("JOBS.POP_WAIT", '{"queues":["q"],"worker":"w"}'))


def subscribe(client: RawClient) -> None:
    client.ask("SUBSCRIBE", "news")


def send_a_half(client: RawClient) -> None:
    client.socket.sendall(b"*1000000\r\n" + b"$2\r\naa\r\n" * 20_000)


@pytest.mark.usefixtures("no_collector")
@pytest.mark.parametrize("use", [open_batch, wait_for_a_job, subscribe, send_a_half])
def test_what_a_client_held_is_released_when_it_goes(
    server: SmallServer, use: Callable[[RawClient], None]
) -> None:
    client = server.connect()
    client.ask("PING")
    [connection] = [each for each in gc.get_objects() if type(each) is RespConnection]
    held: list[weakref.ref[Any]] = [weakref.ref(connection), weakref.ref(connection.session)]
    del connection

    use(client)
    client.close()

    server.until(lambda: all(each() is None for each in held))
