"""Workers whose server goes away and comes back, as in every deployment."""

import logging
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.client import Client
from holdfast.errors import Unreachable
from holdfast.tasks import Tasks, Worker
from holdfast.testing import temporary_server
from tests.server.running import Server, serving
from tests.tasks.waiting import until

tasks = Tasks(queue="q")


@tasks.task
def ring(bell: str) -> str:
    return bell


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with serving(tmp_path / "data") as server:
        yield server


def started_again(server: Server, data: Path) -> Any:
    """Serves the same folder at the same address."""
    return serving(data, "--resp", f"127.0.0.1:{server.resp_port}")


def connected(server: Server) -> Client:
    return holdfast.connect(f"holdfast://127.0.0.1:{server.resp_port}")


def test_an_idle_worker_runs_what_was_put_while_its_server_was_away(
    server: Server, tmp_path: Path
) -> None:
    with connected(server) as client, Worker(client, tasks):
        assert ring.put(client, "before").result(timeout=20) == "before"

        server.stop()
        with holdfast.open(tmp_path / "data") as store:
            id = ring.put(store, "meanwhile").id
        with started_again(server, tmp_path / "data"):
            settled = client.jobs.result_wait(id, timeout=20)

            assert settled is not None
            assert settled.state == "complete"
            assert ring.put(client, "after").result(timeout=20) == "after"


def test_a_worker_that_stops_settles_its_last_run_when_its_server_is_back(
    server: Server, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    slow, begun, go_on = Tasks(queue="q"), threading.Event(), threading.Event()

    @slow.task
    def work() -> str:
        begun.set()
        go_on.wait(30)
        return "done"

    caplog.set_level(logging.WARNING, "holdfast.tasks")
    with connected(server) as client:
        worker = Worker(client, slow, drain_seconds=60)
        worker.start()
        job = work.put(client)
        assert begun.wait(20)

        server.stop()
        stopping = threading.Thread(target=worker.stop)
        stopping.start()
        go_on.set()
        until(lambda: "could not reach its store" in caplog.text)
        with started_again(server, tmp_path / "data"):
            stopping.join(60)

            assert client.jobs.result_wait(job.id, timeout=0).state == "complete"


def test_a_worker_whose_first_subscription_breaks_runs_jobs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with temporary_server() as url, holdfast.connect(url) as client:
        subscribe, broken = client.subscribe, list[str]()

        def broken_at_first(topic_prefix: str) -> Any:
            if not broken:
                broken.append(topic_prefix)
                raise Unreachable("the connection broke")
            return subscribe(topic_prefix)

        monkeypatch.setattr(client, "subscribe", broken_at_first)
        with Worker(client, tasks):
            assert ring.put(client, "at last").result(timeout=20) == "at last"
