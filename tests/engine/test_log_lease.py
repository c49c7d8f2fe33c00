"""The states of a process: whether its commits may wait, and whether it holds the lease."""

import os
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
    FAILED,
    FAILING,
    PASSING,
    TRANSITIONS,
    YIELDING,
    LeaseState,
    LogLease,
)
from holdfast.engine.lmdb.redo_log import RedoLog
from holdfast.engine.lmdb.shared_state import SharedState
from tests.repetitions import repeated


class Process:
    """A lease with its folder, log and LMDB environment, and another process beside it."""

    def __init__(self, path: Path, *, synced: bool) -> None:
        self.folder, self.neighbour = Folder(path, "commit"), Folder(path, "commit")
        self.log = RedoLog(path, synced=synced)
        self.log.begin()
        self.shared_state = SharedState(path)
        self._env = lmdb.open(str(path), subdir=True, map_size=2**20)
        self.lease = self._lease_on(self.folder, synced)
        self.other_lease = self._lease_on(self.neighbour, synced)

    def _lease_on(self, folder: Folder, synced: bool) -> LogLease:
        return LogLease(
            self._env,
            folder,
            self.log,
            self.shared_state,
            synced=synced,
            check_seconds=3600.0,
            note_if_alone=lambda: None,
        )

    def holds_the_lock(self) -> bool:
        if self.neighbour.take_lease(wait=False):
            self.neighbour.release_lease()
            return False
        return True

    def close(self) -> None:
        self._env.close()
        self.log.close()
        self.shared_state.close()
        self.folder.close()
        self.neighbour.close()


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


def keep(process: Process) -> bool:
    """Keeps the lease for commits that wait, as the first of them does."""
    lease = process.lease
    kept = lease.acquire() and lease.prepare_log() and lease.keep()
    lease.release()
    return kept


def test_the_lease_is_kept_from_the_first_commit_that_waits_until_another_process_comes(
    process: Process,
) -> None:
    lease, shared_state = process.lease, process.shared_state
    assert (lease.state, process.holds_the_lock()) == (PASSING, False)

    assert keep(process)
    assert (lease.state, shared_state.kept, process.holds_the_lock()) == (DEFERRING, True, True)
    shared_state.shared = True
    lease.note_other_processes()
    assert (lease.state, process.holds_the_lock()) == (YIELDING, True)
    lease.leave()

    assert (lease.state, shared_state.kept, process.holds_the_lock()) == (PASSING, False, False)
    assert not keep(process)


def test_beside_other_processes_the_lease_is_held_for_a_commit(process: Process) -> None:
    process.shared_state.shared = True

    process.lease.acquire()
    during = process.holds_the_lock(), process.shared_state.holder
    process.lease.release()

    assert during == (True, os.getpid())
    assert (process.holds_the_lock(), process.shared_state.holder) == (False, 0)


def test_a_caller_that_must_not_wait_gets_no_lease_that_another_process_holds(
    process: Process,
) -> None:
    assert process.neighbour.take_lease(wait=False)

    assert not process.lease.acquire(wait=False)

    assert not process.lease.taken
    process.neighbour.release_lease()
    assert process.lease.acquire(wait=False)
    process.lease.release()


def test_after_a_process_that_was_killed_with_the_lease_lmdb_is_synced_first(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced = []
    monkeypatch.setattr(LogLease, "_repair_last_commit", lambda lease: synced.append("repaired"))
    process.lease._is_repaired = True
    process.lease.acquire()
    process.lease.release()
    assert synced == []

    process.shared_state.holder = 1

    process.lease.acquire()
    process.lease.release()
    assert synced == ["repaired"]


# --- turns ----------------------------------------------------------------------------------------


def take_turn(lease: LogLease, *, reads: bool = True) -> bool:
    """Takes the lease for a moment; returns whether this process had missed nothing."""
    lease.acquire()
    missed_nothing = lease.has_missed_nothing()
    if reads:
        lease.note_read()
    lease.release()
    return missed_nothing


def test_a_process_that_held_the_lease_last_has_missed_nothing(process: Process) -> None:
    first = take_turn(process.lease)

    assert not first
    assert take_turn(process.lease)
    assert take_turn(process.lease)


def test_a_process_has_missed_something_once_another_one_has_held_the_lease(
    process: Process,
) -> None:
    take_turn(process.lease)
    take_turn(process.other_lease)

    assert not take_turn(process.lease)
    assert not take_turn(process.other_lease)


def test_a_process_has_missed_something_once_another_one_was_killed_with_the_lease(
    process: Process,
) -> None:
    take_turn(process.lease)
    process.other_lease.acquire()
    process.neighbour.release_lease()  # as the system does for a killed process

    assert not take_turn(process.lease)


def test_a_process_that_was_interrupted_before_it_had_read_everything_looks_again(
    process: Process,
) -> None:
    take_turn(process.lease)
    take_turn(process.other_lease)
    take_turn(process.lease, reads=False)

    assert not take_turn(process.lease)
    assert take_turn(process.lease)


def test_a_process_that_gives_up_waiting_stops_nothing(process: Process) -> None:
    assert keep(process)
    process.shared_state.shared = True
    process.lease.note_other_processes()

    process.shared_state.shared = False
    process.lease.note_other_processes()

    assert process.lease.state is DEFERRING


def test_a_log_that_failed_is_not_used_again(process: Process) -> None:
    assert keep(process)

    process.lease.note_failure()
    assert (process.lease.state, process.holds_the_lock()) == (FAILING, True)
    process.lease.leave()

    assert (process.lease.state, process.holds_the_lock()) == (FAILED, False)
    assert not process.lease.prepare_log()


def test_a_log_that_can_not_be_prepared_is_not_used(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(log: RedoLog) -> None:
        raise OSError

    monkeypatch.setattr(RedoLog, "prepare", fail)

    assert not keep(process)
    assert (process.lease.state, process.holds_the_lock()) == (FAILED, False)


def test_a_forked_child_leaves_the_lease_to_its_parent(process: Process) -> None:
    assert keep(process)

    process.lease.forked()

    assert (process.lease.state, process.holds_the_lock()) == (CLOSED, True)


def test_a_step_that_the_table_does_not_have_is_an_error(process: Process) -> None:
    with pytest.raises(AssertionError, match="PASSING is followed by PASSING"):
        process.lease.leave()


def leave(process: Process) -> None:
    if process.lease.is_kept():
        process.lease.leave()


STEPS: dict[str, Callable[[Process], object]] = {
    "keep": keep,
    "take": lambda process: process.lease.acquire(),
    "release": lambda process: process.lease.release(),
    "come": lambda process: setattr(process.shared_state, "shared", True),
    "go": lambda process: setattr(process.shared_state, "shared", False),
    "look": lambda process: process.lease.note_other_processes(),
    "fail": lambda process: process.lease.note_failure(),
    "leave": leave,
}


@settings(max_examples=repeated(20, full=200), deadline=None)
@given(st.lists(st.sampled_from(sorted(STEPS)), max_size=30))
def test_whatever_happens_the_state_agrees_with_the_lock_of_the_folder(steps: list[str]) -> None:
    with TemporaryDirectory() as folder, closing(Process(Path(folder), synced=False)) as process:
        lease, failed = process.lease, False
        for step in steps:
            STEPS[step](process)
            assert process.holds_the_lock() is lease.taken
            assert lease.taken or not lease.is_kept()
            assert process.shared_state.kept is lease.is_kept()
            failed = failed or step == "fail"
            assert not failed or lease.state in (FAILING, FAILED)
        lease.close()
        assert (lease.state, process.holds_the_lock()) == (CLOSED, False)


def test_a_store_that_is_idle_holds_no_lease(tmp_path: Path) -> None:
    engine = open_engine(tmp_path, durability="interval", checkpoint_seconds=3600)
    lease = engine._overlay._lease  # type: ignore[attr-defined]
    before = lease.state

    with engine.transaction() as tx:
        during = lease.state
        tx.put(b"a", b"1")
    while lease.state is DEFERRING:  # ends when all is flushed
        pass

    assert (before, during, lease.state) == (PASSING, DEFERRING, PASSING)
    engine.close()
    assert lease.state is CLOSED
