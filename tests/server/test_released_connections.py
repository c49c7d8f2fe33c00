"""A connection that has ended takes all that it held along, and leaves nothing to the collector."""

import asyncio
import gc
import json
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hiredis
import pytest

import holdfast
from holdfast.limits import MAX_JOB_DATA_BYTES
from holdfast.server.addresses import Address
from holdfast.server.application import make_dispatcher
from holdfast.server.http import HttpApi
from holdfast.server.options import DispatcherOptions
from holdfast.server.resp import RespConnection
from holdfast.server.uvicorn_server import BoundedProtocol, HttpServer
from tests.server.running import DEADLINE, RawClient, command
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


def send_much_that_is_refused(client: RawClient) -> None:
    with pytest.raises(hiredis.ReplyError, match="BAD_INPUT"):
        raise client.ask("JOBS.PUT", '{"queue": "q", "data": ' + "[" * 100_000)


def write_much(client: RawClient) -> None:
    client.ask("JOBS.PUT", json.dumps({"queue": "q", "data": [[]] * 50_000}))


def write_what_is_refused(client: RawClient) -> None:
    with pytest.raises(hiredis.ReplyError, match="JOB_TOO_LARGE"):
        raise client.ask("JOBS.PUT", json.dumps({"queue": "q", "data": "x" * MAX_JOB_DATA_BYTES}))


@pytest.mark.usefixtures("no_collector")
@pytest.mark.parametrize(
    "use",
    [
        open_batch,
        wait_for_a_job,
        subscribe,
        send_a_half,
        send_much_that_is_refused,
        write_much,
        write_what_is_refused,
    ],
)
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


@pytest.mark.usefixtures("no_collector")
def test_a_connection_over_http_is_released_when_it_ends(tmp_path: Path) -> None:
    async def connect_and_leave(port: int) -> weakref.ref[Any]:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        known = gc.get_objects()
        [protocol] = [each for each in known if issubclass(type(each), BoundedProtocol)]
        del known
        writer.close()
        await writer.wait_closed()
        return weakref.ref(protocol)

    async def run() -> None:
        with holdfast.open(tmp_path / "store", durability="interval") as store:
            dispatcher = make_dispatcher(store, DispatcherOptions())
            server = HttpServer(HttpApi(dispatcher), None)
            listening = Address.parse("127.0.0.1:0").listen()
            await server.open(listening)
            try:
                connection = await connect_and_leave(listening.getsockname()[1])
                async with asyncio.timeout(DEADLINE):
                    while connection() is not None:
                        await asyncio.sleep(0.002)
            finally:
                await server.close()
                await dispatcher.close()

    asyncio.run(run())
