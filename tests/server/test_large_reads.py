"""Reads that would hold up all other clients: in a thread if they are large, and within bounds."""

import asyncio
import contextlib
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import pytest

import holdfast
from holdfast.limits import (
    DECODED_ON_LOOP_BYTES,
    MAX_ANSWER_ON_LOOP_BYTES,
)
from holdfast.operations import OPERATIONS
from holdfast.server.commands import plan_of
from holdfast.server.dispatcher import Dispatcher
from holdfast.server.large_reads import LargeReads
from holdfast.server.loop_turns import ThreadUsage
from holdfast.server.resp_session import Later, Plan, Read, RespSession
from tests.server.running import RawClient, command
from tests.server.serving import Server, serving


def _slowest_livez(server: Server, attack: Callable[[], object]) -> float:
    """Asks `/livez` again and again while `attack` runs; returns the longest time, in seconds."""
    running = threading.Thread(target=attack)
    running.start()
    slowest = 0.0
    while running.is_alive():
        begin = time.monotonic()
        assert server.get("/livez").status == 200
        slowest = max(slowest, time.monotonic() - begin)
    running.join()
    return slowest


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with enough jobs to read for a while."""
    data = tmp_path_factory.mktemp("full")
    with holdfast.open(data, durability="interval") as store:
        for step in range(10):
            numbers = range(step * 1_000, (step + 1) * 1_000)
            store.transact(
                lambda tx, numbers=numbers: [  # type: ignore[misc]  # bound now
                    tx.jobs.put("q", id=f"j{each}", data={"text": "y" * 2_000}) for each in numbers
                ]
            )
    with serving(data) as server:
        yield server


IDS: Final = [f"j{number}" for number in range(10_000)]


def _read_all(server: Server) -> None:
    reply = server.call("jobs.multiget", ids=IDS)
    assert (reply.status, len(reply.body) > 20_000_000) == (200, True)


def _read_all_in_a_batch(server: Server) -> None:
    steps = [{"operation": "jobs.get", "arguments": {"id": each}} for each in IDS]
    reply = server.request("POST", "/default/batch", json.dumps(steps))
    assert (reply.status, len(reply.body) > 20_000_000) == (200, True)


def _read_all_in_multi(server: Server) -> None:
    with RawClient(server.resp_port) as client:
        some = json.dumps({"ids": IDS[:2_500]})
        client.socket.sendall(command("MULTI") + command("JOBS.MULTIGET", some) * 4)
        client.send("EXEC")
        replies = [client.receive() for _ in range(6)]
    assert len(replies[-1]) == 4


@pytest.mark.parametrize("attack", [_read_all, _read_all_in_a_batch, _read_all_in_multi])
def test_a_large_read_lets_others_be_answered(
    full: Server, attack: Callable[[Server], None]
) -> None:
    begin = time.monotonic()
    slowest = _slowest_livez(full, lambda: attack(full))
    whole = time.monotonic() - begin

    # On a machine that is busy with other tests everything is slower: the read's own time is the
    # measure, because on the loop `/livez` would have waited for nearly all of it.
    assert slowest < max(0.1, 0.5 * whole)


def test_replies_that_a_batch_keeps_count_among_its_bytes(full: Server) -> None:
    with RawClient(full.resp_port) as client:
        client.socket.sendall(command("MULTI") + command("COMMAND", "DOCS") * 1_000)
        client.send("EXEC")
        replies = [client.receive() for _ in range(1_002)]

    refused = str(next(r for r in replies if isinstance(r, Exception)))
    assert "REQUEST_TOO_LARGE" in refused
    assert "Split the batch" in refused
    assert "EXECABORT" in str(replies[-1])


def test_a_million_commands_are_not_described_at_once(full: Server) -> None:
    with RawClient(full.resp_port) as client:
        reply = client.ask("COMMAND", "DOCS", *["get"] * 100_000)

    assert "REQUEST_TOO_LARGE" in str(reply)


def test_an_intersection_of_several_keys_is_a_large_read() -> None:
    distinct = OPERATIONS["events.distinct"].arguments
    reads = LargeReads()

    assert not reads.expects("events.distinct", distinct(key=["a", "b"], op="intersection"))
    assert not reads.expects("events.distinct", distinct(key=["a", "b", "c"], op="union"))
    assert reads.expects("events.distinct", distinct(key=["a", "b", "c"], op="intersection"))


def test_a_kind_of_read_that_took_long_is_run_in_a_thread_for_a_minute() -> None:
    now = 0.0
    reads = LargeReads(lambda: now, lambda: ThreadUsage(1.0, 0))

    reads.note_duration("metrics.top", 0.001)
    assert not reads.expects("metrics.top")
    reads.note_duration("metrics.top", 0.03)
    assert reads.expects("metrics.top")
    assert not reads.expects("jobs.get")
    now = 61.0
    assert not reads.expects("metrics.top")


def test_a_kind_of_read_with_a_large_answer_is_run_in_a_thread_for_a_minute() -> None:
    now = 0.0
    reads = LargeReads(lambda: now)

    reads.answered("jobs.get", MAX_ANSWER_ON_LOOP_BYTES)
    assert not reads.expects("jobs.get")
    reads.answered("jobs.get", MAX_ANSWER_ON_LOOP_BYTES + 1)
    assert reads.expects("jobs.get")
    now = 61.0
    assert not reads.expects("jobs.get")


@pytest.mark.parametrize(
    ("used", "is_large"),
    [(ThreadUsage(0.03, 0), True), (ThreadUsage(0.001, 100), True), (ThreadUsage(0.001, 0), False)],
    ids=["busy", "waiting for the disk", "held up by others"],
)
def test_a_long_read_goes_by_what_its_turn_has_used(used: ThreadUsage, is_large: bool) -> None:
    reads = LargeReads(lambda: 0.0, lambda: used)

    reads.note_duration("entities.get", 0.3)

    assert reads.expects("entities.get") == is_large


def test_a_read_that_asks_for_all_or_for_many_is_run_in_a_thread() -> None:
    select = OPERATIONS["entities.select"].arguments
    reads = LargeReads()

    assert not reads.expects("entities.select", select(table="t", filters=[], limit=10))
    assert reads.expects("entities.select", select(table="t", filters=[], limit=-1))
    assert reads.expects("entities.select", select(table="t", filters=[], limit=5_000))
    get = OPERATIONS["tables.get"].arguments
    assert not reads.expects("tables.get", get(table="t", limit=10.0))
    assert reads.expects("tables.get", get(table="t", limit=5_000.0))


def test_a_long_pipeline_is_answered_in_order_though_it_is_parsed_in_turns(full: Server) -> None:
    words = [f"{number} {'x' * (number % 300)}" for number in range(3_000)]
    with RawClient(full.resp_port) as client:
        client.socket.sendall(b"".join(command("ECHO", word) for word in words))
        client.socket.shutdown(socket.SHUT_WR)  # also what is not parsed yet is answered

        assert [client.receive() for _ in words] == [word.encode() for word in words]
        assert client.rest() == b""


def test_many_short_words_of_some_clients_let_others_be_answered(full: Server) -> None:
    def send() -> None:
        with RawClient(full.resp_port) as client:
            client.socket.sendall(b"*200000\r\n$4\r\nECHO\r\n" + b"$2\r\naa\r\n" * 199_999)
            assert "wrong number of arguments" in str(client.receive())

    def attack() -> None:
        with ThreadPoolExecutor(6) as threads:
            for sent in [threads.submit(send) for _ in range(6)]:
                sent.result()

    begin = time.monotonic()
    slowest = _slowest_livez(full, attack)

    assert slowest < max(0.1, 0.5 * (time.monotonic() - begin))


@pytest.mark.parametrize(
    "sent",
    [
        b"PING " + b"x" * 500_000,
        b"*1000000\r\n$4\r\nECHO\r\n" + b"$2\r\naa\r\n" * 20_000 + b">9\r\n" + b"y" * 90_000,
    ],
    ids=["a line without end", "another type among many words"],
)
def test_what_can_not_be_parsed_ends_the_connection_though_more_has_come(
    full: Server, sent: bytes
) -> None:
    with RawClient(full.resp_port) as client:
        client.socket.sendall(sent)
        with contextlib.suppress(ConnectionResetError):  # the rest of it was not read
            assert client.rest().startswith(b"-ERR Protocol error")


@pytest.mark.parametrize(("count", "is_large"), [(20, False), (21, True)])
def test_a_short_packet_may_still_ask_for_too_many(
    tmp_path: Path, count: int, is_large: bool
) -> None:
    ids = json.dumps({"ids": ["j"] * count}, separators=(",", ":")).encode()

    async def planned(store: holdfast.Store) -> Plan:
        dispatcher = Dispatcher(store)
        try:
            session = RespSession(dispatcher, lambda data: None)
            return plan_of(session, [b"JOBS.MULTIGET", ids])
        finally:
            await dispatcher.close()

    with holdfast.open(tmp_path) as store:
        plan = asyncio.run(planned(store))

    assert isinstance(plan, Read)
    assert plan.is_large == is_large


def test_a_read_with_a_long_text_is_run_in_a_thread(tmp_path: Path) -> None:
    filters = [{"property": "name", "op": "=", "values": ["x" * DECODED_ON_LOOP_BYTES]}]
    payload = json.dumps({"table": "shop.Users", "filters": filters}).encode()

    async def planned(store: holdfast.Store) -> Plan:
        dispatcher = Dispatcher(store)
        try:
            session = RespSession(dispatcher, lambda data: None)
            later = plan_of(session, [b"ENTITIES.SELECT", payload])
            assert isinstance(later, Later)
            return later.encode(await later.start())
        finally:
            await dispatcher.close()

    with holdfast.open(tmp_path) as store:
        plan = asyncio.run(planned(store))

    assert isinstance(plan, Read)
    assert plan.is_large
