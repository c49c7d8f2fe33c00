"""A request that has been answered leaves nothing to the collector, also if it was refused.

An error holds the frames through which it was raised: one circle through them, and the arguments of
the call stay until the collector looks at all objects, which every client has to wait for.
"""

import asyncio
import gc
import json
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

import holdfast
from holdfast.engine.contract import Outcome
from holdfast.errors import BadInput
from holdfast.jobs import settlements
from holdfast.limits import ENDED_PER_TURN
from holdfast.server import group_time_limit, streams
from holdfast.server.addresses import Address
from holdfast.server.application import make_dispatcher
from holdfast.server.error_frames import forget_frames
from holdfast.server.http import HttpApi
from holdfast.server.options import DispatcherOptions
from holdfast.server.resp import RespConnection
from holdfast.server.resp_server import RespServer
from holdfast.server.uvicorn_server import BoundedProtocol, HttpServer
from tests.server.running import DEADLINE, command

VALUES: Final = 4_321  # of the list in each request, by which it is known again
PUT: Final = {"queue": "q", "data": [1] * VALUES}
UNKNOWN: Final = {"id": "nobody", "worker": "w", "data": [1] * VALUES}

Use = Callable[[int, int], Coroutine[Any, Any, bytes]]


@pytest.fixture(autouse=True)
def no_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


async def post(port: int, path: str, body: object) -> bytes:
    """Returns all of the answer."""
    sent = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"{head}Content-Length: {len(sent)}\r\n\r\n".encode() + sent)
    said = await reader.read()
    writer.close()
    return said


async def ask(port: int, *commands: bytes) -> bytes:
    """Returns all answers, and that of the `QUIT` behind the commands."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"".join(commands) + command("QUIT"))
    said = await reader.read()
    writer.close()
    return said


async def a_refused_write(resp: int, http: int) -> bytes:
    return await post(http, "/default/jobs/complete", UNKNOWN)


async def a_refused_batch(resp: int, http: int) -> bytes:
    step = {"operation": "jobs.complete", "arguments": UNKNOWN}
    return await post(http, "/default/batch", [step, step])


async def a_refused_command(resp: int, http: int) -> bytes:
    return await ask(resp, command("JOBS.COMPLETE", json.dumps(UNKNOWN)))


async def a_refused_transaction(resp: int, http: int) -> bytes:
    refused = command("JOBS.COMPLETE", json.dumps(UNKNOWN))
    return await ask(resp, command("MULTI"), refused, command("EXEC"))


async def a_group_that_takes_long(resp: int, http: int) -> bytes:
    """All but the first of its writes are undone, and run again with the next group."""
    return await ask(resp, *[command("JOBS.PUT", json.dumps(PUT))] * 6)


def values_held() -> int:
    """Returns how many decoded requests there are."""
    known = gc.get_objects()
    return sum(type(each) is list and len(each) == VALUES for each in known)


def connections_held() -> int:
    """Returns how many connections over HTTP there are."""
    return sum(issubclass(type(each), BoundedProtocol) for each in gc.get_objects())


def waits_for_an_event(task: asyncio.Task[Any]) -> bool:
    """Returns whether it is the task of a stream that waits for what comes next."""
    return getattr(task.get_coro(), "__qualname__", "") in ("Queue.get", "Event.wait")


def held_after(folder: Path, use: Use) -> tuple[bytes, int]:
    """Returns the answers of a server, and how many decoded requests it holds afterwards."""

    async def run() -> tuple[bytes, int]:
        before = values_held()
        with holdfast.open(folder / "store", durability="interval") as store:
            dispatcher = make_dispatcher(store, DispatcherOptions())
            http_server, resp_server = HttpServer(HttpApi(dispatcher), None), RespServer(dispatcher)
            listening = Address.parse("127.0.0.1:0").listen()
            await http_server.open(listening)
            opened = await resp_server.open("127.0.0.1", 0)
            resp_port = opened.sockets[0].getsockname()[1]
            try:
                async with asyncio.timeout(DEADLINE):
                    said = await use(resp_port, listening.getsockname()[1])
                looks = 200  # at tasks that have sent their answer, and are about to end
                while (held := values_held() - before) and (looks := looks - 1):
                    await asyncio.sleep(0.01)
            finally:
                await resp_server.close()
                await http_server.close()
                await dispatcher.close()
        return said, held

    return asyncio.run(run())


@pytest.mark.parametrize(
    "use", [a_refused_write, a_refused_batch, a_refused_command, a_refused_transaction]
)
def test_a_refused_write_is_not_held_by_its_error(tmp_path: Path, use: Use) -> None:
    said, held = held_after(tmp_path, use)

    assert b"there is no job 'nobody'" in said
    assert held == 0


def test_a_write_that_was_postponed_is_not_held_by_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_time_limit, "MAX_GROUP_SECONDS", 0.0)

    said, held = held_after(tmp_path, a_group_that_takes_long)

    assert said.count(b"$34\r\n") == 6
    assert held == 0


@pytest.mark.parametrize("use", [a_refused_write, a_refused_command])
def test_a_mistake_of_ours_is_logged_and_not_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, use: Use
) -> None:
    monkeypatch.setattr(settlements, "complete", lambda *arguments: 1 // 0)

    said, held = held_after(tmp_path, use)

    assert b"something went wrong" in said
    assert "ZeroDivisionError in" in caplog.text
    assert held == 0


@pytest.mark.parametrize("path", ["/default/notices", "/ui/default/-/live"])
def test_a_stream_whose_client_has_gone_leaves_no_task(tmp_path: Path, path: str) -> None:
    async def listen_and_leave(resp: int, http: int) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", http)
        writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        said = await reader.readuntil(b": listening\n\n")
        while not any(map(waits_for_an_event, asyncio.all_tasks())):
            await asyncio.sleep(0.01)
        writer.close()
        looks = 200
        while (left := [*filter(waits_for_an_event, asyncio.all_tasks())]) and (looks := looks - 1):
            await asyncio.sleep(0.01)
        assert left == []
        return said

    said, _ = held_after(tmp_path, listen_and_leave)

    assert said.startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize(
    "head", ["GET /" + "a" * 40_000, "GET /livez HTTP/1.1\r\nHost: a\r\nHost: b"]
)
def test_a_refused_head_does_not_hold_its_connection(tmp_path: Path, head: str) -> None:
    async def send_and_leave(resp: int, http: int) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", http)
        writer.write(head.encode() + b"\r\n\r\n")
        said = await reader.read()
        writer.close()
        looks = 200
        while (left := connections_held()) and (looks := looks - 1):
            await asyncio.sleep(0.01)
        assert left == 0
        return said

    said, _ = held_after(tmp_path, send_and_leave)

    assert said.startswith(b"HTTP/1.1 4")


def test_an_outcome_is_not_held_by_the_error_that_it_raises() -> None:
    refused = BadInput("no")
    with pytest.raises(BadInput):
        Outcome(error=refused).unwrap()

    found = [each for each in gc.get_objects() if type(each) is Outcome and each.error is refused]

    assert found == []


def test_the_frames_of_all_errors_that_led_to_one_are_forgotten() -> None:
    def fail() -> None:
        try:
            _ = 1 // 0
        except ZeroDivisionError as error:
            raise BadInput("no") from error

    with pytest.raises(BadInput) as raised:
        fail()
    error, cause = raised.value, raised.value.__cause__
    assert cause is not None

    forget_frames(error)

    assert error.__traceback__ is None
    assert cause.__traceback__ is None
    assert error.__cause__ is None
    assert error.__context__ is None


def test_a_notice_is_encoded_once_for_all_streams_and_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoded: list[int] = []
    lines_of = streams._lines

    def counted(payload: bytes) -> list[str]:
        encoded.append(len(payload))
        return lines_of(payload)

    monkeypatch.setattr(streams, "_lines", counted)
    text = b"x" * 100_000

    async def listen(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /default/notices HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await reader.readuntil(b": listening\n\n")
        return reader, writer

    async def publish_to_five(resp: int, http: int) -> bytes:
        listeners = [await listen(http) for _ in range(5)]
        await ask(resp, command("PUBLISH", "news", text))
        heard = [await reader.readuntil(b"data: " + text + b"\n") for reader, _ in listeners]
        looks = 200  # at streams that have sent it, and are about to wait for the next one
        while len(streams._events) and (looks := looks - 1):
            await asyncio.sleep(0.01)
        assert len(streams._events) == 0
        for _, writer in listeners:
            writer.close()
        return heard[-1]

    held_after(tmp_path, publish_to_five)

    assert encoded == [len(text)]


@pytest.mark.parametrize("kind", [RespConnection, BoundedProtocol])
def test_connections_that_are_lost_together_are_forgotten_over_several_turns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: Any
) -> None:
    forgotten: list[Any] = []
    forget = kind._forget

    def counted(self: Any, *arguments: Any) -> None:
        forgotten.append(self)
        forget(self, *arguments)

    monkeypatch.setattr(kind, "_forget", counted)
    count = 3 * ENDED_PER_TURN

    async def lose_all(resp: int, http: int) -> bytes:
        def known() -> list[Any]:
            return [each for each in gc.get_objects() if issubclass(type(each), kind)]

        before = known()
        port = resp if kind is RespConnection else http
        clients = [await asyncio.open_connection("127.0.0.1", port) for _ in range(count)]
        while len(found := [each for each in known() if each not in before]) < count:
            await asyncio.sleep(0.01)
        for each in found:
            (each._transport if kind is RespConnection else each.transport).abort()
        await asyncio.sleep(0)  # all of them are lost in this turn
        assert len(forgotten) == ENDED_PER_TURN
        while len(forgotten) < count:
            await asyncio.sleep(0)
        for _, writer in clients:
            writer.close()
        return b""

    held_after(tmp_path, lose_all)

    assert len(forgotten) == count
