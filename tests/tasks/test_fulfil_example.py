"""The workflow of examples/fulfil, killed in the middle."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

import holdfast
from examples.fulfil import fulfil as example
from holdfast.tasks import Worker
from tests.processes import Connection, start


def work(folder: str, dies_at: str, has_begun: bool, _: Connection) -> None:
    """Works until nothing is due, or dies at a step: before its work, or right after it."""
    os.chdir(folder)
    if dies_at:
        step: Callable[..., object] = getattr(example, dies_at)

        def die(*args: object) -> None:
            if has_begun:
                step(*args)
            os.kill(os.getpid(), signal.SIGKILL)

        die.__qualname__ = dies_at
        setattr(example, dies_at, die)
    with holdfast.open("data") as store:
        Worker(store, example.tasks).run_until_empty()


def run_process(folder: Path, dies_at: str = "", *, has_begun: bool = False) -> int | None:
    return start(work, str(folder), dies_at, has_begun).join()


@pytest.mark.parametrize("has_begun", [False, True])
def test_a_workflow_that_is_killed_at_every_step_ends_right(
    tmp_path: Path, has_begun: bool
) -> None:
    with holdfast.open(tmp_path / "data") as store:
        example.prepare(store)
        job = example.fulfil.put(store, "1001")

        for step in ("charge_card", "mark_paid", "ship"):
            if step == "ship":
                assert run_process(tmp_path) == 0
                example.fulfil.signal(store, job.id, "approved", "ann")
            assert run_process(tmp_path, step, has_begun=has_begun) == -signal.SIGKILL
            store.jobs.timeout(job.id)  # as the parent of a worker does, or the end of the lock
        assert run_process(tmp_path) == 0

        assert job.result(timeout=0) == "payment of 1001, approved by ann, parcel of 1001"
        assert store.metrics.lifetime("paid") == 1, "exactly once"
        payments = (tmp_path / "payments.txt").read_text().split()
        assert payments == ["1001"] * (2 if has_begun else 1), "at least once"
