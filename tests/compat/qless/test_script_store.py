"""A worker on a plain server that runs the original script, beside programs of Qless."""

import json
import logging
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.compat.qless.script_store import ScriptStore, read_script
from holdfast.errors import BadInput, BadTask, JobLost, StoreUnreachable
from holdfast.store import Tx
from holdfast.tasks import Fail, Run, Snooze, Tasks, Worker
from tests.forking import IMPORT_PATH, ROOT
from tests.job_import.conftest import OriginalQless, original, redis_server, redis_url
from tests.tasks.waiting import until

__all__ = ["original", "redis_server", "redis_url"]


LEGACY = """
class Move:
    @staticmethod
    def process(job):
        job.complete(job["to"])
"""


@pytest.fixture
def there(original: OriginalQless, redis_url: str) -> Iterator[ScriptStore]:
    with ScriptStore(redis_url, original.script.encode()) as store:
        yield store


def put(original: OriginalQless, jid: str, klass: str, data: Any = None, *options: Any) -> None:
    """Puts a job as a client of Qless does."""
    original("put", time.time(), "q", jid, klass, json.dumps(data or {}), 0, *options)


def shown(original: OriginalQless, jid: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(original("get", time.time(), jid))
    return found


def test_every_way_to_end_is_told_to_the_script(
    there: ScriptStore, original: OriginalQless
) -> None:
    tasks = Tasks(queue="q")
    ran: list[tuple[str, int]] = []

    @tasks.task(name="returns")
    def returns(run: Run, order: str) -> None:
        ran.append((order, run.job.attempt))
        other.put(run.store, order)

    @tasks.task(name="other", queue="later")
    def other(order: str) -> None: ...

    @tasks.task(name="raises", backoff=[0])
    def raises(run: Run) -> None:
        raise OSError(f"attempt {run.job.attempt}")

    @tasks.task(name="fails")
    def fails() -> None:
        raise Fail("bad-address", "no such street")

    @tasks.task(name="snoozes")
    def snoozes() -> None:
        raise Snooze(60)

    put(original, "a", "returns", {"order": "1001"})
    put(original, "b", "raises", {}, "retries", 2)
    put(original, "c", "fails")
    put(original, "d", "snoozes")
    put(original, "e", "unheard.of")
    Worker(there, tasks, threads=2, queues=["q"]).run_until_empty()  # type: ignore[arg-type]

    states = {jid: shown(original, jid)["state"] for jid in "abc"}
    assert (states["a"], states["b"], states["c"]) == ("complete", "failed", "failed")
    assert set(original("jobs", time.time(), "scheduled", "q")) == {b"d", b"e"}
    assert ran == [("1001", 1)]
    [put_by_it] = there.jobs.peek("later")
    assert put_by_it.data == {"order": "1001"}
    assert shown(original, "b")["failure"]["group"] == "q-OSError"
    reasons = [e["message"] for e in shown(original, "b")["history"] if e["what"] == "retried"]
    assert reasons == ["OSError: attempt 1", "OSError: attempt 2"]
    assert shown(original, "c")["failure"]["message"] == "no such street"
    assert shown(original, "d")["remaining"] == 5
    assert shown(original, "e")["history"][-1]["group"] == "q-unknown-task"
    assert json.loads(original("workers", time.time())) == {}


def test_a_lock_that_another_has_is_refused_and_what_is_left_is_handed_back(
    there: ScriptStore, original: OriginalQless
) -> None:
    for jid in "ab":
        put(original, jid, "returns")
    tasks = Tasks(queue="q")
    worker = Worker(there, tasks, queues=["q"], name="web-1")  # type: ignore[arg-type]
    original("pop", time.time(), "q", "web-1-0", 2)
    original("timeout", time.time(), "a")
    original("pop", time.time(), "q", "another", 1)

    with pytest.raises(JobLost, match="another worker"):
        there.jobs.fail("a", "web-1-0", "group", "message")
    assert worker.hand_back_left_over() == 1
    worker.run_until_empty()

    assert shown(original, "a")["worker"] == "another"


def test_what_the_script_can_not_do_is_refused_when_the_worker_starts(there: ScriptStore) -> None:
    counting, flowing, daily = Tasks(queue="q"), Tasks(queue="q"), Tasks(queue="q")

    @counting.task(name="count")
    def count(tx: Tx) -> None: ...

    @flowing.workflow(name="flow")
    def flow(run: Run) -> None: ...

    @daily.every(60)
    @daily.task(name="clean")
    def clean() -> None: ...

    with pytest.raises(BadTask, match="task count asks for Tx, and this worker is on a Redis"):
        Worker(there, counting)  # type: ignore[arg-type]
    with pytest.raises(BadTask, match="task flow asks for a workflow's memory"):
        Worker(there, flowing)  # type: ignore[arg-type]
    with pytest.raises(BadTask, match=r"clean .every 60 s. is a schedule"):
        Worker(there, daily).run_until_empty()  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="no option 'unique'"):
        there.jobs.put("q", "x", unique="1001", unique_for="running", unique_mode="keep")


def test_the_worker_comes_back_after_its_server_and_loads_the_script_again(
    there: ScriptStore, original: OriginalQless, caplog: pytest.LogCaptureFixture
) -> None:
    tasks = Tasks(queue="q")
    tasks.task(name="returns")(lambda: None)
    with Worker(there, tasks):  # type: ignore[arg-type]
        original.client.client_kill_filter(_type="normal", skipme=True)
        original.client.script_flush()
        original.load(original.script)
        put(original, "a", "returns")
        until(lambda: shown(original, "a")["state"] == "complete")

    assert [r for r in caplog.records if r.levelno > logging.ERROR] == []


def test_a_script_must_be_there_and_be_that_of_qless(tmp_path: Path, redis_url: str) -> None:
    (tmp_path / "other.lua").write_text("return 1")

    assert b"QlessAPI" in read_script("")
    with pytest.raises(BadInput, match="is not a file"):
        read_script(str(tmp_path / "absent.lua"))
    with pytest.raises(BadInput, match="not the script of Qless"):
        ScriptStore(redis_url, read_script(str(tmp_path / "other.lua")))
    with pytest.raises(BadInput, match="refuse the script as it was published"):
        ScriptStore(redis_url, read_script(""))  # as it was published, for servers of its time
    with pytest.raises(StoreUnreachable):
        ScriptStore("redis://127.0.0.1:1/0", read_script(""))


@pytest.mark.parametrize("slots", [(), ("--processes", "1")])
def test_the_worker_program_serves_it(
    original: OriginalQless, redis_url: str, tmp_path: Path, slots: tuple[str, ...]
) -> None:
    (tmp_path / "qless.lua").write_text(original.script)
    (tmp_path / "legacy.py").write_text(LEGACY)
    put(original, "task", "tests.tasks.sample.other")
    put(original, "class", "legacy.Move", {"to": "there"})

    told = subprocess.run(
        [
            *(sys.executable, "-m", "holdfast", "worker", "tests.tasks.sample:others", "--burst"),
            *("--url", redis_url, "--qless-script", str(tmp_path / "qless.lua"), "--queues", "q"),
            *("--path", str(tmp_path), "--allow", "legacy", *slots),
        ],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": IMPORT_PATH},
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert told.returncode == 0, told.stderr
    assert f"on the Redis {redis_url}\n" in told.stdout + told.stderr
    assert shown(original, "task")["state"] == "complete"
    assert (shown(original, "class")["state"], shown(original, "class")["queue"]) == (
        "waiting",
        "there",
    )
