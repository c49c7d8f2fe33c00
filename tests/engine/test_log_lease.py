"""The states of a process: whether its commits may wait, and whether it holds the lease."""

import re
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import lmdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.engine import open_engine
from holdfast.engine.folder import Folder
from holdfast.engine.lmdb import log_lease
from holdfast.engine.lmdb.log_lease import (
    CLOSED,
    DEFERRING,
    DIRECT,
    FAILED,
    FAILING,
    TRANSITIONS,
    YIELDING,
    LeaseState,
    LogLease,
)
from holdfast.engine.lmdb.redo_log import RedoLog
from tests.repetitions import repeated


class Process:
    """A lease with its folder, log and LMDB environment, and another process beside it."""

    def __init__(self, path: Path, *, synced: bool) -> None:
        self.folder, self._other = Folder(path, "commit"), Folder(path, "commit")
        self.log = RedoLog(path, synced=synced)
        self.log.begin(shared=False)
        self._env = lmdb.open(str(path), subdir=True, map_size=2**20)
        self.lease = LogLease(
            self._env,
            self.folder,
            self.log,
            synced=synced,
            look_seconds=3600.0,
            look_if_alone=lambda: None,
        )

    def holds_the_lock(self) -> bool:
        if self._other.take_lease(wait=False):
            self._other.leave_lease()
            return False
        return True

    def close(self) -> None:
        self._env.close()
        self.log.close()
        self.folder.close()
        self._other.close()


@pytest.fixture
def process(tmp_path: Path) -> Iterator[Process]:
    with closing(Process(tmp_path, synced=True)) as process:
        yield process


def test_the_module_shows_the_table_of_transitions() -> None:
    rows = re.findall(r"^    ([A-Z]+) .*  ([A-Z, ]+)$", log_lease.__doc__ or "", re.MULTILINE)

    shown = {
        LeaseState[name]: {LeaseState[each] for each in after.split(", ")} for name, after in rows
    }
    assert shown == TRANSITIONS


def test_commits_wait_from_the_first_that_takes_the_lease_until_another_process_comes(
    process: Process,
) -> None:
    lease, log = process.lease, process.log
    assert (lease.state, lease.may_defer(), process.holds_the_lock()) == (DIRECT, True, False)

    assert lease.take()
    assert (lease.state, process.holds_the_lock()) == (DEFERRING, True)
    log.shared = True
    lease.look_for_others()
    assert (lease.state, lease.may_defer()) == (YIELDING, False)
    lease.leave()

    assert (lease.state, lease.take(), process.holds_the_lock()) == (DIRECT, False, False)


def test_a_process_that_gives_up_waiting_stops_nothing(process: Process) -> None:
    assert process.lease.take()
    process.log.shared = True
    process.lease.look_for_others()

    process.log.shared = False

    assert process.lease.may_defer()
    assert process.lease.state is DEFERRING


def test_a_log_that_failed_is_not_used_again(process: Process) -> None:
    assert process.lease.take()

    process.lease.note_failure()
    assert (process.lease.state, process.holds_the_lock()) == (FAILING, True)
    process.lease.leave()

    assert (process.lease.state, process.holds_the_lock()) == (FAILED, False)
    assert not process.lease.may_defer()
    assert not process.lease.take()


def test_a_log_that_can_not_be_prepared_is_not_used(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(log: RedoLog) -> None:
        raise OSError

    monkeypatch.setattr(RedoLog, "prepare", fail)

    assert not process.lease.take()
    assert (process.lease.state, process.holds_the_lock()) == (FAILED, False)


def test_a_forked_child_leaves_the_lease_to_its_parent(process: Process) -> None:
    assert process.lease.take()

    process.lease.forked()

    assert (process.lease.state, process.holds_the_lock()) == (CLOSED, True)
    assert not process.lease.take()


def test_a_step_that_the_table_does_not_have_is_an_error(process: Process) -> None:
    with pytest.raises(AssertionError, match="DIRECT is followed by FAILING"):
        process.lease.note_failure()


def if_held(process: Process, step: Callable[[LogLease], None]) -> None:
    if process.lease.is_held():
        step(process.lease)


STEPS: dict[str, Callable[[Process], object]] = {
    "take": lambda process: process.lease.take(),
    "come": lambda process: setattr(process.log, "shared", True),
    "go": lambda process: setattr(process.log, "shared", False),
    "look": lambda process: process.lease.look_for_others(),
    "ask": lambda process: process.lease.may_defer(),
    "fail": lambda process: if_held(process, LogLease.note_failure),
    "leave": lambda process: if_held(process, LogLease.leave),
}


@settings(max_examples=repeated(20, full=200), deadline=None)
@given(st.lists(st.sampled_from(sorted(STEPS)), max_size=30))
def test_whatever_happens_the_state_agrees_with_the_lock_of_the_folder(steps: list[str]) -> None:
    with TemporaryDirectory() as folder, closing(Process(Path(folder), synced=False)) as process:
        failed = False
        for step in steps:
            STEPS[step](process)
            state = process.lease.state
            assert process.holds_the_lock() is process.lease.is_held()
            failed = failed or state is FAILING
            assert not failed or state in (FAILING, FAILED)
        process.lease.close()
        assert (process.lease.state, process.holds_the_lock()) == (CLOSED, False)


def test_a_store_that_is_idle_holds_no_lease(tmp_path: Path) -> None:
    engine = open_engine(tmp_path, durability="interval", checkpoint_seconds=3600)
    lease = engine._overlay._lease  # type: ignore[attr-defined]
    before = lease.state

    with engine.transaction() as tx:
        during = lease.state
        tx.put(b"a", b"1")
    while lease.state is DEFERRING:  # ends when all is flushed
        pass

    assert (before, during, lease.state) == (DIRECT, DEFERRING, DIRECT)
    engine.close()
    assert lease.state is CLOSED
