"""The states of a process: whether its commits may wait, and whether it holds the lease."""

import os
import re
import subprocess
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
from holdfast.limits import LEASE_GAP_SECONDS, LEASE_SLICE_COMMITS, LEASE_SLICE_SECONDS
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
            look_seconds=3600.0,
            note_if_alone=lambda: None,
        )

    def holds_the_lock(self) -> bool:
        if self.neighbour.take_lease(wait=False):
            self.neighbour.leave_lease()
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


class Clock:
    """Replaces the module `time` of the lease, and counts the pauses."""

    def __init__(self) -> None:
        self.now = 100.0
        self.pauses = 0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.pauses += 1


@pytest.fixture
def time_of_lease(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(log_lease, "time", clock)
    return clock


@pytest.fixture
def unsynced(tmp_path: Path, time_of_lease: Clock) -> Iterator[Process]:
    with closing(Process(tmp_path, synced=False)) as process:
        process.shared_state.shared = True
        process.lease.is_shared()  # so that it does not look for others soon
        yield process


def commit(process: Process) -> None:
    process.lease.acquire()
    process.lease.end_commit()


def test_a_lease_is_held_between_commits_in_quick_succession(
    unsynced: Process, time_of_lease: Clock
) -> None:
    commit(unsynced)
    after_one = unsynced.holds_the_lock()
    time_of_lease.now += LEASE_GAP_SECONDS / 2
    commit(unsynced)

    assert (after_one, unsynced.holds_the_lock(), unsynced.lease.held) == (False, True, True)


def test_a_lease_is_not_held_between_rare_commits(unsynced: Process, time_of_lease: Clock) -> None:
    for _ in range(3):
        time_of_lease.now += 2 * LEASE_GAP_SECONDS
        commit(unsynced)

    assert not unsynced.holds_the_lock()


def test_a_lease_is_not_held_while_a_commit_waits_for_the_disk(
    process: Process, time_of_lease: Clock
) -> None:
    for _ in range(3):
        commit(process)

    assert not process.holds_the_lock()


@pytest.mark.parametrize(
    ("commits", "seconds"), [(LEASE_SLICE_COMMITS - 1, 0.0), (0, LEASE_SLICE_SECONDS)]
)
def test_a_held_lease_is_released_for_a_process_that_waits_when_the_time_slice_ends(
    unsynced: Process, time_of_lease: Clock, commits: int, seconds: float
) -> None:
    commit(unsynced)
    commit(unsynced)
    unsynced.shared_state.note_waiting(os.getpid(), waits=True)
    for _ in range(commits):
        commit(unsynced)
    within = unsynced.holds_the_lock()
    time_of_lease.now += seconds
    commit(unsynced)

    assert (within, unsynced.holds_the_lock(), unsynced.lease.held) == (True, False, False)
    commit(unsynced)
    assert time_of_lease.pauses == 1  # in which the other one wakes up


def test_a_held_lease_is_released_at_once_for_a_process_that_commits_rarely(
    unsynced: Process,
) -> None:
    commit(unsynced)
    commit(unsynced)
    unsynced.shared_state.note_waiting(os.getpid(), waits=True)
    unsynced.shared_state.urgent = True
    commit(unsynced)

    assert not unsynced.holds_the_lock()


def test_a_process_is_urgent_only_if_it_has_not_committed_just_now(
    unsynced: Process, time_of_lease: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    urgent = []

    def take_lease(*, wait: bool) -> bool:
        if wait:
            urgent.append(unsynced.shared_state.urgent)
        return wait

    monkeypatch.setattr(unsynced.folder, "take_lease", take_lease)
    commit(unsynced)
    unsynced.lease.acquire()
    unsynced.lease.release()
    time_of_lease.now += 2 * LEASE_GAP_SECONDS
    commit(unsynced)

    assert urgent == [True, False, True]
    assert not unsynced.shared_state.urgent


def test_a_process_that_waited_long_for_its_turn_still_commits_in_quick_succession(
    unsynced: Process, time_of_lease: Clock
) -> None:
    commit(unsynced)
    unsynced.lease.acquire()
    time_of_lease.now += 10.0  # of which it has committed nothing
    unsynced.lease.end_commit()

    assert unsynced.lease.held


def test_a_lease_is_held_for_further_time_slices_while_nobody_waits(
    unsynced: Process, time_of_lease: Clock
) -> None:
    turns = unsynced.shared_state.take_turn(0)[1]
    for _ in range(LEASE_SLICE_COMMITS * 3):
        time_of_lease.now += LEASE_GAP_SECONDS / 2
        commit(unsynced)

    assert unsynced.holds_the_lock()
    assert unsynced.shared_state.is_turn(turns + 2)  # for the first commit, and for all others


def test_a_process_that_was_killed_while_it_waited_gets_no_more_pauses(
    unsynced: Process, time_of_lease: Clock
) -> None:
    unsynced.shared_state.note_waiting(gone_process(), waits=True)
    for _ in range(LEASE_SLICE_COMMITS * 3):
        commit(unsynced)

    assert time_of_lease.pauses == 1
    assert not unsynced.shared_state.does_anyone_wait()


def gone_process() -> int:
    with subprocess.Popen(["true"]) as process:
        return process.pid


def test_a_held_lease_stays_with_a_transaction_that_runs(unsynced: Process) -> None:
    commit(unsynced)
    commit(unsynced)

    unsynced.lease.release_idle(lambda: True)
    during = unsynced.lease.held, unsynced.holds_the_lock()
    unsynced.lease.release_idle(lambda: False)

    assert during == (True, True)
    assert (unsynced.lease.held, unsynced.holds_the_lock()) == (False, False)


def test_a_caller_that_must_not_wait_gets_no_lease_that_another_process_holds(
    process: Process,
) -> None:
    assert process.neighbour.take_lease(wait=False)

    assert not process.lease.acquire(wait=False)

    assert not process.lease.taken
    process.neighbour.leave_lease()
    assert process.lease.acquire(wait=False)
    process.lease.release()


def test_after_a_process_that_was_killed_with_the_lease_lmdb_is_synced_first(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced = []
    monkeypatch.setattr(LogLease, "_settle", lambda lease: synced.append("settled"))
    process.lease._is_settled = True
    process.lease.acquire()
    process.lease.release()
    assert synced == []

    process.shared_state.holder = 1

    process.lease.acquire()
    process.lease.release()
    assert synced == ["settled"]


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
    process.neighbour.leave_lease()  # as the system does for a killed process

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
