"""Sandboxes: the files of a run go with it, and nothing else goes with them."""

import os
import threading
import time
from pathlib import Path

import pytest

from holdfast.errors import BadInput
from holdfast.store import Store, open
from holdfast.tasks import Run, Tasks, Worker
from holdfast.tasks.loading import WorkerSource
from holdfast.tasks.sandboxes import Sandboxes
from holdfast.testing import run_tasks
from tests.tasks import sample


@pytest.mark.parametrize("is_async", [False, True])
def test_the_sandbox_of_a_slot_is_empty_for_each_run_and_emptied_after_it(
    store: Store, tmp_path: Path, is_async: bool
) -> None:
    tasks = Tasks(queue="q")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").touch()
    seen: list[tuple[Path, list[str], int]] = []

    def use(run: Run) -> None:
        seen.append((run.sandbox, os.listdir(run.sandbox), run.sandbox.stat().st_mode & 0o777))
        (run.sandbox / "folder").mkdir()
        (run.sandbox / "folder" / "file").touch()
        (run.sandbox / "link").symlink_to(outside)
        raise OSError("half done")

    async def use_async(run: Run) -> None:
        use(run)

    task = tasks.task(name="use", retries=0)(use_async if is_async else use)
    for _ in range(2):
        task.put(store)
    run_tasks(store, tasks, keep_failures=True)

    assert [(files, mode) for _, files, mode in seen] == [([], 0o700)] * 2
    assert seen[0][0] == seen[1][0]
    assert not any(path.exists() or path.parent.exists() for path, _, _ in seen)
    assert (outside / "kept").exists()


def test_slots_that_run_at_a_time_have_a_sandbox_each(store: Store, tmp_path: Path) -> None:
    tasks, together = Tasks(queue="q"), threading.Barrier(2)
    seen: list[str] = []

    @tasks.task
    def use(run: Run) -> None:
        seen.append(run.sandbox.name)
        together.wait(30)

    use.put_many(store, [(), ()])
    Worker(store, tasks, threads=2, prefetch=0, workdir=str(tmp_path)).run_until_empty()

    assert sorted(seen) == ["sandbox-0", "sandbox-1"]
    assert os.listdir(tmp_path) == []


def test_a_run_that_was_given_up_keeps_its_sandbox_to_itself(tmp_path: Path) -> None:
    sandboxes = Sandboxes(str(tmp_path))
    left_behind = sandboxes.make(0)
    (left_behind / "half").touch()

    after = sandboxes.make(0)

    assert after != left_behind
    assert os.listdir(after) == []
    assert os.listdir(left_behind) == ["half"]
    sandboxes.close()


def test_the_sandbox_of_a_process_that_was_killed_is_removed(tmp_path: Path) -> None:
    workdir, told = tmp_path / "work", tmp_path / "told"
    workdir.mkdir()
    source = WorkerSource(targets=("tests.tasks.sample:tasks",), store=str(tmp_path / "data"))
    with open(tmp_path / "data", clock=time.time) as store:
        sample.litter.put(store, str(told))
        worker = Worker(store, sample.tasks, processes=1, source=source, workdir=str(workdir))
        worker.run_until_empty()

        assert store.jobs.failed() == {"sample-ProcessDied": 1}

    assert Path(told.read_text()).is_relative_to(workdir)
    assert os.listdir(workdir) == []


def test_what_a_run_put_in_place_of_its_sandbox_is_not_followed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").touch()
    sandboxes = Sandboxes(str(tmp_path))

    sandbox = sandboxes.make()
    sandbox.rmdir()
    sandbox.symlink_to(outside)
    sandboxes.remove(sandbox)
    sandboxes.close()

    assert "can't be removed" in caplog.text
    assert os.listdir(tmp_path) == ["outside"]
    assert (outside / "kept").exists()


def test_a_workdir_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="is not a folder"):
        Sandboxes(str(tmp_path / "absent"))
