"""Slots in child processes: isolated, killed when they must be, replaced when they die."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.store import Store, open
from holdfast.tasks import Worker
from holdfast.tasks.loading import WorkerSource
from tests.tasks import sample
from tests.tasks.waiting import failure_of, found, state, until


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open(tmp_path / "data", clock=time.time) as store:
        yield store


def worker(store: Store, tmp_path: Path, processes: int = 1, **options: object) -> Worker:
    source = WorkerSource(targets=("tests.tasks.sample:tasks",), store=str(tmp_path / "data"))
    return Worker(store, sample.tasks, processes=processes, source=source, **options)  # type: ignore[arg-type]  # what is left of its options


def test_a_job_runs_in_another_process_and_its_result_is_kept(store: Store, tmp_path: Path) -> None:
    jobs = [sample.pid.put(store), sample.double.put(store, 21), sample.double.put(store, 2**70)]

    worker(store, tmp_path).run_until_empty()

    assert jobs[0].result() != os.getpid()
    assert [job.result() for job in jobs[1:]] == [42, 2**71]


def test_effects_and_completion_of_a_task_are_one_commit_in_a_process_too(
    store: Store, tmp_path: Path
) -> None:
    store.metrics.define({"done": {"lifetime": True}})
    for _ in range(5):
        sample.count.put(store, 2)

    worker(store, tmp_path, processes=2).run_until_empty()

    assert store.metrics.lifetime("done") == 10
    assert store.jobs.counts("sample").running == 0


def test_progress_and_log_lines_come_through_while_the_job_runs(
    store: Store, tmp_path: Path
) -> None:
    started = tmp_path / "started"
    job = sample.tell.put(store, str(started))

    with worker(store, tmp_path, name="w"):
        until(lambda: found(store, job.id).progress == 0.5)
        lines = [line.text for line in store.jobs.read_log(job.id)]
        started.with_suffix(".go").touch()

        assert job.result(timeout=30) == "w-0"
    assert lines == ["half of it"]


def test_a_job_whose_process_dies_is_retried_and_fails_when_no_retry_is_left(
    store: Store, tmp_path: Path
) -> None:
    marks = tmp_path / "marks"
    job = sample.die.put(store, str(marks))

    with worker(store, tmp_path):
        until(lambda: state(store, job.id) == "failed")

    failure = failure_of(store, job.id)
    assert failure.group == "sample-ProcessDied"
    assert "signal 9" in failure.message
    assert len(set(marks.read_text().split())) == 2


def test_a_run_beyond_its_timeout_is_killed(store: Store, tmp_path: Path) -> None:
    job = sample.hang.put(store, str(tmp_path / "started"))
    fine = sample.double.put(store, 1)

    with worker(store, tmp_path):
        until(lambda: state(store, job.id) == "failed")

        assert fine.result(timeout=30) == 2
    failure = failure_of(store, job.id)
    assert failure.group == "timeout"


def test_a_stopped_worker_hands_back_the_job_and_kills_its_process(
    store: Store, tmp_path: Path
) -> None:
    started = tmp_path / "started"
    job = sample.wait.put(store, str(started))
    running = worker(store, tmp_path)
    running.start()
    until(started.exists)
    [slot] = running.slots
    pid = slot.pid  # type: ignore[attr-defined]  # it is a process

    running.stop(drain_seconds=0)

    assert state(store, job.id) == "stalled"  # the next pop takes it
    until(lambda: not Path(f"/proc/{pid}").exists())


def test_a_process_is_replaced_after_so_many_jobs(store: Store, tmp_path: Path) -> None:
    jobs = [sample.pid.put(store) for _ in range(4)]

    worker(store, tmp_path, max_jobs=2).run_until_empty()

    pids = [job.result() for job in jobs]
    assert pids[0] == pids[1] != pids[2] == pids[3]
