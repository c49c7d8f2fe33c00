"""Writes of many clients in groups: who waits for whom, and who does not."""

import asyncio
import json
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest

import holdfast
from holdfast.engine import group_wait
from holdfast.engine.contract import Outcome
from holdfast.engine.late_interrupts import Interrupt
from holdfast.engine.lmdb.overlay import Overlay
from holdfast.limits import (
    GROUP_WAIT_STEP_SECONDS,
    MAX_GROUP_ON_LOOP,
    MAX_SHORT_OPERATIONS,
    MAX_SMALL_REQUEST_BYTES,
)
from holdfast.server import group_time_limit, write_groups
from holdfast.server.dispatcher import Dispatcher
from holdfast.server.group_time_limit import Postponed, within_time
from holdfast.store import Step
from tests.server.running import command
from tests.server.small_server import SmallServer, small_server

PUT = command("JOBS.PUT", '{"queue":"q"}')


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses that the writer makes; none of them takes any time."""
    made: list[float] = []

    class Time:
        perf_counter, time = staticmethod(time.perf_counter), staticmethod(time.time)
        sleep = staticmethod(made.append)

    monkeypatch.setattr(group_wait, "time", Time)
    return made


def in_threads(server: SmallServer) -> None:
    """No commit is made on the loop."""
    server.dispatcher.store.try_transact_many = lambda steps: None  # type: ignore[method-assign]


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the threads that commit, in order."""
    names: list[str] = []
    commit = Overlay.commit

    def noted(overlay: Overlay, *arguments: Any, **options: Any) -> Interrupt:
        names.append(threading.current_thread().name)
        return commit(overlay, *arguments, **options)

    monkeypatch.setattr(Overlay, "commit", noted)
    return names


def test_a_short_write_is_committed_on_the_loop(tmp_path: Path, threads: list[str]) -> None:
    with small_server(tmp_path) as server, server.connect() as client:
        client.ask("JOBS.PUT", '{"queue":"q"}')
        threads.clear()

        for _ in range(50):
            client.ask("JOBS.PUT", '{"queue":"q"}')
        assert client.ask("JOBS.LENGTH", '{"queue":"q"}') == b"51"

    assert {*threads} - {"holdfast-writer"}  # which does those that come while LMDB is written


@pytest.mark.parametrize(
    "request_",
    [
        command("JOBS.PUT", json.dumps({"queue": "q", "data": "x" * MAX_SMALL_REQUEST_BYTES})),
        command("METRICS.INCR", '{"metric":"m"}') * (MAX_GROUP_ON_LOOP + 1),
    ],
    ids=["large", "many"],
)
def test_what_is_large_is_committed_by_the_thread(
    tmp_path: Path, threads: list[str], request_: bytes
) -> None:
    with small_server(tmp_path) as server, server.connect() as client:
        client.ask("METRICS.DEFINE", '{"specs":{"m":{}}}')
        client.ask("JOBS.PUT", '{"queue":"q"}')
        threads.clear()

        client.socket.sendall(request_)
        for _ in range(request_.count(b"*2")):
            client.receive()

    assert threads[0] == "holdfast-writer"


def test_a_write_that_turns_out_to_be_long_is_done_by_the_thread(
    tmp_path: Path, threads: list[str]
) -> None:
    ids = [f"{number}" for number in range(MAX_SHORT_OPERATIONS)]
    with small_server(tmp_path) as server, server.connect() as client:
        for id in ids:
            client.send("JOBS.PUT", json.dumps({"queue": "q", "id": id}))
        for _ in ids:
            client.receive()
        client.ask("JOBS.PUT", '{"queue":"q"}')
        threads.clear()

        client.ask("JOBS.POP", json.dumps({"queue": "q", "worker": "w", "count": len(ids)}))

    assert threads[0] == "holdfast-writer"


def test_writes_that_take_long_together_are_committed_on_the_loop_in_smaller_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(write_groups, "_TRIED_SECONDS", -1.0)  # a refused group was a long one
    tried: list[list[int]] = []

    def commit_two(steps: Any) -> list[Outcome[int]] | None:
        tried.append([step.work for step in steps])
        return [Outcome(result=step.work) for step in steps] if len(steps) <= 2 else None

    async def go() -> list[int | None]:
        with holdfast.open(tmp_path / "data") as store:
            dispatcher = Dispatcher(store)
            store.try_transact_many = commit_two  # type: ignore[method-assign]
            answered: list[int | None] = []
            for number in cast(Any, range(5)):
                step, answer = Step(store, number), lambda done: answered.append(done[0].result)
                dispatcher.write_groups.put([step], answer, is_small=True)
            while len(answered) < 5:
                await asyncio.sleep(0)
            await dispatcher.close()
            return answered

    answered = asyncio.run(go())

    assert tried == [[0, 1, 2, 3, 4], [0, 1], [2, 3], [4]]
    assert answered == [0, 1, 2, 3, 4]


def test_after_an_engine_has_failed_on_the_loop_later_writes_are_made(tmp_path: Path) -> None:
    def fail(steps: Any) -> None:
        raise OSError("on purpose")

    async def go() -> list[Outcome[Any]]:
        with holdfast.open(tmp_path / "data") as store:
            dispatcher = Dispatcher(store)
            commit, answered = store.try_transact_many, list[Outcome[Any]]()
            for number, transact in enumerate((fail, commit)):
                store.try_transact_many = transact  # type: ignore[method-assign]
                step = Step(store, lambda tx: tx.jobs.put("q"))
                dispatcher.write_groups.put([step], answered.extend, is_small=True)
                while len(answered) == number:
                    await asyncio.sleep(0)
            await dispatcher.close()
            return answered

    failed, made = asyncio.run(go())

    assert isinstance(failed.error, OSError)
    assert made.error is None


def test_listeners_hear_of_a_commit_on_the_loop_before_its_caller(tmp_path: Path) -> None:
    with small_server(tmp_path) as server, server.connect() as client:
        client.ask("JOBS.PUT", '{"queue":"q"}')
        client.ask("HELLO", "3")
        client.ask("SUBSCRIBE", "news")

        for number in range(20):
            client.send("PUBLISH", "news", f"{number}")
            assert client.receive() == [b"message", b"news", b"%d" % number]
            assert client.receive() == 1


def test_a_single_client_does_not_wait_for_others(tmp_path: Path, pauses: list[float]) -> None:
    with small_server(tmp_path) as server, server.connect() as client:
        in_threads(server)
        server.dispatcher.write_groups.group_wait.commit_seconds = 60.0  # as if the disk were slow

        for _ in range(20):
            client.ask("JOBS.PUT", '{"queue":"q"}')

    assert pauses == []


def test_a_group_stops_waiting_for_those_who_do_not_come(
    tmp_path: Path, pauses: list[float]
) -> None:
    with small_server(tmp_path) as server, server.connect() as client:
        in_threads(server)
        server.dispatcher.write_groups.group_wait.commit_seconds = 60.0
        server.dispatcher.write_groups.group_wait.expected_writers = 1_000

        client.ask("JOBS.PUT", '{"queue":"q"}')

    assert pauses == [GROUP_WAIT_STEP_SECONDS] * 2


def test_where_commits_are_quick_no_group_waits(tmp_path: Path, pauses: list[float]) -> None:
    with small_server(tmp_path) as server, server.connect() as client:
        in_threads(server)
        server.dispatcher.write_groups.group_wait.commit_seconds = GROUP_WAIT_STEP_SECONDS
        server.dispatcher.write_groups.group_wait.expected_writers = 1_000

        client.ask("JOBS.PUT", '{"queue":"q"}')

    assert pauses == []


def test_those_who_come_while_others_are_written_share_the_next_group(tmp_path: Path) -> None:
    with small_server(tmp_path) as server:
        in_threads(server)
        clients = [server.connect() for _ in range(8)]
        groups: list[int] = []
        transact_many = server.dispatcher.store.transact_many

        def counted(steps: Any) -> Any:
            groups.append(len(steps))
            if len(groups) == 1:  # the first one takes until all others have come
                server.until(lambda: server.dispatcher.figures()["queued_writes"] == 7)
            return transact_many(steps)

        server.dispatcher.store.transact_many = counted  # type: ignore[method-assign]  # to look over its shoulder
        clients[0].socket.sendall(PUT)
        server.until(lambda: groups == [1])
        for client in clients[1:]:
            client.socket.sendall(PUT)

        assert all(isinstance(client.receive(), bytes) for client in clients)
        assert groups == [1, 7]
        for client in clients:
            client.close()


def _note(seen: list[int], number: int, tx: Any) -> None:
    seen.append(number)


def test_a_group_that_takes_long_is_committed_in_parts() -> None:
    now = [0.0]

    def work(tx: Any) -> str:
        now[0] += 0.4
        return "done"

    steps = within_time([Step(cast(Any, None), work)] * 10, lambda: now[0])
    outcomes = []
    for step in steps:
        try:
            outcomes.append(step.work(cast(Any, None)))
        except Postponed:
            outcomes.append("later")

    assert outcomes == ["done"] * 3 + ["later"] * 7


def test_writes_that_take_long_together_are_all_done_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_time_limit, "MAX_GROUP_SECONDS", 0.0)

    async def go() -> list[Any]:
        with holdfast.open(tmp_path / "data") as store:
            dispatcher = Dispatcher(store)
            outcomes: asyncio.Future[list[Any]] = asyncio.get_running_loop().create_future()
            seen: list[int] = []
            steps = [Step(store, partial(_note, seen, number)) for number in range(50)]
            dispatcher.write_groups.put(steps, outcomes.set_result)
            found = [each.error for each in await outcomes]
            await dispatcher.close()
            return [found, seen]

    found, seen = asyncio.run(go())

    assert found == [None] * 50
    assert seen == list(range(50))
