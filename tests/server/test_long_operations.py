"""Operations of several transactions: their results are encoded in the threads that they run in."""

import asyncio
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from holdfast.operations import OPERATIONS, Operation
from holdfast.server import payloads
from holdfast.server.commands import plan_of
from holdfast.server.dispatcher import Dispatcher
from holdfast.server.resp_session import Later, RespSession, Write
from tests.server.test_direct_answers import Connected, request, run_on_server


def test_over_resp_the_loop_gets_an_encoded_result(tmp_path: Path) -> None:
    async def use(dispatcher: Dispatcher) -> None:
        session = RespSession(dispatcher, lambda data: None)
        later = plan_of(session, [b"ADMIN.SPACES", b"{}"])
        assert isinstance(later, Later)

        reply = await later.start()

        assert isinstance(reply, bytes)
        assert reply.startswith(b"$")
        assert later.encode(reply) is reply

    run_on_server(tmp_path, use)


def test_the_result_of_a_write_with_many_records_is_encoded_where_it_was_made(
    tmp_path: Path,
) -> None:
    async def use(dispatcher: Dispatcher) -> None:
        session = RespSession(dispatcher, lambda data: None)
        write = plan_of(session, [b"ENTITIES.EXECUTE", b'{"queries": [{"type": "PING"}]}'])
        assert isinstance(write, Write)

        reply = await dispatcher.write(write.space, write.work)

        assert reply == b"$6\r\n[null]\r\n"
        assert write.encode(reply) is reply

    run_on_server(tmp_path, use)


def test_over_http_the_result_is_encoded_in_a_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoded: list[tuple[str, bool]] = []
    encoder = payloads.encoder

    def recording(operation: Operation, **options: Any) -> Any:
        encode = encoder(operation, **options)

        def record(result: Any) -> bytes:
            is_on_loop = threading.current_thread() is threading.main_thread()
            encoded.append((operation.full_name, is_on_loop))
            return encode(result)

        return record

    monkeypatch.setattr(payloads, "encoder", recording)

    async def use(dispatcher: Dispatcher) -> None:
        connected = Connected(dispatcher)
        for path in ("/default/admin/spaces", "/default/jobs/length"):
            body = b"{}" if "admin" in path else b'{"queue":"emails"}'
            answer = await connected.say(request(body, path=path))
            assert answer.startswith(b"HTTP/1.1 200 ")

    run_on_server(tmp_path, use)
    assert encoded == [("admin.spaces", False), ("jobs.length", True)]


def test_threads_encode_one_after_the_other(tmp_path: Path) -> None:
    operation = OPERATIONS["admin.spaces"]
    inside: list[object] = []
    most: list[int] = []

    def encode(result: object) -> None:
        inside.append(result)
        for _ in range(2_000):
            os.sched_yield()  # the others may begin
            most.append(len(inside))
        inside.pop()

    async def use(dispatcher: Dispatcher) -> None:
        arguments = operation.arguments()
        started = [dispatcher.start(dispatcher.store, operation, arguments, encode) for _ in "1234"]
        await asyncio.gather(*started)

    run_on_server(tmp_path, use)
    assert max(most) == 1
