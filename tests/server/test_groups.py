"""Writes of many clients in groups: who waits for whom, and who does not."""

import time
from pathlib import Path
from typing import Any

import pytest

from holdfast.engine import group_wait
from holdfast.limits import GROUP_WAIT_STEP_SECONDS
from tests.server.running import command
from tests.server.small_server import small_server

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


def test_a_client_alone_is_not_kept_waiting_for_company(
    tmp_path: Path, pauses: list[float]
) -> None:
    with small_server(tmp_path) as server, server.connect() as client:
        server.dispatcher._group_wait.commit_seconds = 60.0  # as if the disk were slow

        for _ in range(20):
            client.ask("JOBS.PUT", '{"queue":"q"}')

    assert pauses == []


def test_a_group_stops_waiting_for_those_who_do_not_come(
    tmp_path: Path, pauses: list[float]
) -> None:
    with small_server(tmp_path) as server, server.connect() as client:
        server.dispatcher._group_wait.commit_seconds = 60.0
        server.dispatcher._group_wait.in_play = 1_000

        client.ask("JOBS.PUT", '{"queue":"q"}')

    assert pauses == [GROUP_WAIT_STEP_SECONDS] * 2


def test_where_commits_are_quick_no_group_waits(tmp_path: Path, pauses: list[float]) -> None:
    with small_server(tmp_path) as server, server.connect() as client:
        server.dispatcher._group_wait.commit_seconds = GROUP_WAIT_STEP_SECONDS
        server.dispatcher._group_wait.in_play = 1_000

        client.ask("JOBS.PUT", '{"queue":"q"}')

    assert pauses == []


def test_those_who_come_while_others_are_written_share_the_next_group(tmp_path: Path) -> None:
    with small_server(tmp_path) as server:
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
