"""Checks and backups in the background: how far they are, what they find, and their end."""

import threading
import time
from pathlib import Path

import pytest

import holdfast
from holdfast.admin import Maintenance, MaintenanceRuns
from holdfast.admin.maintenance import MaintenanceRun
from holdfast.errors import BadInput, ServerBusy
from holdfast.jobs import NewJob
from holdfast.limits import MAX_MAINTENANCE_KEPT, MAX_MAINTENANCE_RUNNING, MAX_SIZED_KEYS
from holdfast.store import Store

DEADLINE = 60.0


def ended(store: Store, id: str) -> Maintenance:
    """Waits until a check or a backup has ended."""
    limit = time.monotonic() + DEADLINE
    while True:
        [found] = [each for each in store.admin.maintenance() if each.id == id]
        if found.ended is not None:
            return found
        assert time.monotonic() < limit, found
        threading.Event().wait(0.005)


@pytest.mark.every_engine
def test_a_check_runs_to_its_end_without_anyone_waiting(store: Store) -> None:
    store.jobs.put_many([NewJob(queue="q") for _ in range(800)])  # several steps

    started = store.admin.check_start(engine=True)
    found = ended(store, started.id)

    assert (started.state, started.kind, started.space) == ("running", "check", "default")
    assert (found.state, found.done, found.found, found.problems) == ("done", 1.0, 0, [])
    assert found.keys > 800
    assert not store.admin.maintenance_stop(started.id)


def test_a_backup_is_made_in_the_background_and_says_what_it_holds(
    store: Store, tmp_path: Path
) -> None:
    store.jobs.put("q", id="kept")

    made = ended(store, store.admin.backup_start(str(tmp_path / "monday")).id)
    again = ended(store, store.admin.backup_start(str(tmp_path / "monday")).id)

    assert (made.state, made.done, len(made.digest) > 16) == ("done", 1.0, True)
    assert made.bytes > 0
    assert (again.state, "is not empty" in again.error) == ("failed", True)
    with holdfast.open(tmp_path / "monday") as copy:
        assert copy.jobs.get("kept") is not None


def test_a_check_is_stopped_a_backup_is_not_and_few_run_at_once() -> None:
    runs, go = MaintenanceRuns(time.time), threading.Event()

    def work(run: MaintenanceRun) -> None:
        assert run.stopped.wait(DEADLINE) or go.wait(DEADLINE)

    checks = [runs.start(work, kind="check") for _ in range(MAX_MAINTENANCE_RUNNING - 1)]
    backup = runs.start(lambda run: (go.wait(DEADLINE), None)[1], kind="backup")
    with pytest.raises(ServerBusy, match="already running"):
        runs.start(work, kind="check")
    with pytest.raises(BadInput, match="can't be stopped"):
        runs.stop(backup.id)
    stopped = [runs.stop(check.id) for check in checks]
    go.set()
    runs.close()

    assert stopped == [True] * len(checks)
    assert [each.state for each in runs.all() if each.kind == "check"] == ["stopped"] * len(checks)
    for _ in range(MAX_MAINTENANCE_KEPT + 5):
        runs.start(lambda run: None, kind="check")
        runs.close()
    assert len(runs.all()) == MAX_MAINTENANCE_KEPT


@pytest.mark.every_engine
def test_sizes_of_spaces_are_counted_up_to_a_bound(store: Store) -> None:
    store.space("large").jobs.put_many([NewJob(queue="q") for _ in range(MAX_SIZED_KEYS)])
    store.space("small").jobs.put("q", id="one")

    large, small = store.admin.space_sizes(after="default")

    assert (large.name, large.keys, large.complete) == ("large", MAX_SIZED_KEYS, False)
    assert (small.name, small.complete) == ("small", True)
    assert 0 < small.keys < 50 < small.bytes
    assert [each.name for each in store.admin.space_sizes(limit=1)] == ["default"]


def test_a_store_in_a_program_has_no_server(store: Store) -> None:
    facts = store.admin.server()

    assert (facts.settings, facts.figures, facts.backups) == ([], {}, None)
    assert facts.engine == store.engine_name
    assert store.admin.backups() == []
