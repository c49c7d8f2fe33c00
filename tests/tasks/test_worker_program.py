"""`holdfast worker`: the program, in a process of its own, with real signals."""

import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from holdfast.store import Store, open
from tests.forking import IMPORT_PATH, ROOT
from tests.tasks import sample
from tests.tasks.waiting import state, until


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open(tmp_path / "data") as store:
        yield store


class Program:
    """A running `holdfast worker` and what it has said."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self.process = process
        self._log = log

    @property
    def said(self) -> str:
        return self._log.read_text()

    def signal(self, *numbers: int) -> None:
        for number in numbers:
            self.process.send_signal(number)

    def end(self) -> int:
        return self.process.wait(30)


@contextmanager
def working(
    tmp_path: Path, *options: str, target: str = "tests.tasks.sample:tasks"
) -> Iterator[Program]:
    log = tmp_path / f"worker-{len(list(tmp_path.glob('worker-*')))}.log"
    words = [target] if target else []
    with log.open("wb") as file:
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "holdfast",
                "worker",
                *words,
                "--data",
                str(tmp_path / "data"),
                *options,
            ],
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": IMPORT_PATH},
            stdout=file,
            stderr=file,
        )
    try:
        yield Program(process, log)
    finally:
        process.kill()
        process.wait()


def test_a_burst_runs_what_is_due_and_ends(store: Store, tmp_path: Path) -> None:
    job = sample.double.put(store, 21)

    with working(tmp_path, "--burst") as program:
        assert program.end() == 0, program.said

    assert job.result() == 42
    assert "queues     sample" in program.said
    assert "tests.tasks.sample.double" in program.said
    assert "1 run" in program.said


@pytest.mark.parametrize("slots", [(), ("--processes", "1")])
def test_the_log_shows_what_tasks_say_and_not_every_connection(
    store: Store, tmp_path: Path, slots: tuple[str, ...]
) -> None:
    sample.say.put(store, "order 1001 is packed")

    with working(tmp_path, "--burst", *slots) as program:
        assert program.end() == 0, program.said

    assert '"level":"info","logger":"shop.orders","message":"order 1001 is packed"' in program.said
    assert "a connection was made" not in program.said


def test_term_lets_the_running_job_finish_and_takes_no_other(store: Store, tmp_path: Path) -> None:
    started = tmp_path / "started"
    job = sample.wait.put(store, str(started))
    later = sample.double.put(store, 1)

    with working(tmp_path) as program:
        until(started.exists)
        program.signal(signal.SIGTERM)
        until(lambda: "SIGTERM" in program.said)
        started.with_suffix(".go").touch()

        assert program.end() == 0, program.said
    assert state(store, job.id) == "complete"
    assert state(store, later.id) == "waiting"


def test_what_is_not_done_in_time_is_handed_back(store: Store, tmp_path: Path) -> None:
    started = tmp_path / "started"
    job = sample.wait.put(store, str(started))

    with working(tmp_path, "--drain", "0") as program:
        until(started.exists)
        program.signal(signal.SIGTERM)

        assert program.end() == 0, program.said
    [taken] = store.jobs.pop("sample", "another")
    assert taken.id == job.id


def test_a_second_signal_hands_everything_back_at_once(store: Store, tmp_path: Path) -> None:
    started = tmp_path / "started"
    job = sample.wait.put(store, str(started))

    with working(tmp_path, "--drain", "600") as program:
        until(started.exists)
        program.signal(signal.SIGTERM)
        until(lambda: "SIGTERM" in program.said)
        program.signal(signal.SIGINT)

        assert program.end() == 1, program.said
    assert "SIGINT: handing back what runs" in program.said
    assert state(store, job.id) == "stalled"


def test_hup_starts_the_program_again(store: Store, tmp_path: Path) -> None:
    with working(tmp_path) as program:
        until(lambda: "queues     sample" in program.said)
        program.signal(signal.SIGHUP)
        until(lambda: program.said.count("queues     sample") == 2)
        job = sample.double.put(store, 4)

        assert job.result(timeout=30) == 8


def test_usr1_prints_stacks_and_usr2_pauses_until_cont(store: Store, tmp_path: Path) -> None:
    with working(tmp_path) as program:
        until(lambda: store.jobs.worker_programs())
        program.signal(signal.SIGUSR1)
        until(lambda: "Current thread" in program.said or "Thread 0x" in program.said)
        program.signal(signal.SIGUSR2)
        until(lambda: "paused: taking no jobs until SIGCONT" in program.said)
        first = sample.double.put(store, 1)
        program.signal(signal.SIGCONT)

        assert first.result(timeout=30) == 2
        assert "taking jobs again" in program.said


def test_the_record_of_a_worker_says_what_it_runs_and_goes_with_it(
    store: Store, tmp_path: Path
) -> None:
    started = tmp_path / "started"
    sample.wait.put(store, str(started))

    with working(tmp_path, "--name", "web", "--threads", "2") as program:
        until(lambda: store.jobs.worker_programs())
        [record] = store.jobs.worker_programs()
        assert (record.name, record.pid, record.queues) == ("web", program.process.pid, ("sample",))
        assert len(record.slots) == 2
        until(started.exists)
        started.with_suffix(".go").touch()
        program.signal(signal.SIGTERM)

        assert program.end() == 0, program.said
    assert store.jobs.worker_programs() == []


def test_probes_and_figures_are_served(store: Store, tmp_path: Path) -> None:
    job = sample.double.put(store, 1)

    with working(tmp_path, "--http", "127.0.0.1:0") as program:
        until(lambda: "http://" in program.said)
        job.result(timeout=30)
        match = re.search(r"http://\S+", program.said)
        assert match is not None

        def get(path: str) -> str:
            with urllib.request.urlopen(match[0] + path) as answer:
                return str(answer.read().decode())

        assert get("/livez") == get("/readyz") == "ok\n"
        until(lambda: 'outcome="complete"} 1' in get("/metrics"))
        figures = get("/metrics")
        assert 'holdfast_jobs{queue="sample",state="waiting"} 0' in figures
        assert 'holdfast_jobs_oldest_seconds{queue="sample"} 0.000' in figures
        assert 'holdfast_worker_run_seconds_count{queue="sample"} 1' in figures


def test_a_queue_that_nobody_serves_and_a_task_that_nobody_has_are_named(
    store: Store, tmp_path: Path
) -> None:
    store.jobs.put("forgotten", "x.y", {})
    store.jobs.put("sample", "gone.task", {})

    with working(tmp_path, "--burst") as program:
        assert program.end() == 0, program.said

    assert "no worker serves forgotten (1 waiting)" in program.said
    assert "tasks that are not here: gone.task" in program.said


def test_a_worker_with_a_name_takes_back_what_it_held_when_it_was_killed(
    store: Store, tmp_path: Path
) -> None:
    started = tmp_path / "started"
    job = sample.wait.put(store, str(started))
    with working(tmp_path, "--name", "web", "--lock", "600") as program:
        until(started.exists)
        program.signal(signal.SIGKILL)
        program.end()
    started.with_suffix(".go").touch()

    with working(tmp_path, "--name", "web", "--resume", "--burst") as program:
        assert program.end() == 0, program.said

    assert state(store, job.id) == "complete"


def test_classes_run_by_their_dotted_names_only_where_that_is_allowed(
    store: Store, tmp_path: Path
) -> None:
    (tmp_path / "old_jobs.py").write_text(
        "class Greet:\n    @staticmethod\n    def process(job):\n        job.complete()\n"
        "class Fetch:\n    @staticmethod\n    def crawl(job):\n        print('got', job['url'])\n"
    )
    greet = store.jobs.put("crawl", "old_jobs.Greet", {})
    fetch = store.jobs.put("crawl", "old_jobs.Fetch", {"url": "x"})
    other = store.jobs.put("crawl", "os.system", {})
    options = ("--queues", "crawl", "--path", str(tmp_path), "--burst")

    with working(tmp_path, *options, "--allow", "old_jobs", target="") as program:
        assert program.end() == 0, program.said

    states = [state(store, each) for each in (greet, fetch, other)]
    assert states == ["complete", "complete", "scheduled"]


def test_a_module_that_is_not_there_is_an_error_with_advice(store: Store, tmp_path: Path) -> None:
    with working(tmp_path, target="tests.nowhere") as program:
        assert program.end() == 1

    assert "there is no module 'tests.nowhere'" in program.said
    assert "--path" in program.said
