"""The folder's lease, which a process needs to commit, and the states of that process.

Only the process that holds the lease may append to the redo log or commit to LMDB's file.

    state      lease       commits                           is followed by
    PASSING    per commit  go to the log that all processes  DEFERRING, FAILED, CLOSED
                           read, or to LMDB
    DEFERRING  kept        wait in the overlay and the log;  PASSING, YIELDING, FAILING, CLOSED
                           nobody else has the store open
    YIELDING   kept        end with the next flush: another  PASSING, DEFERRING, FAILING, CLOSED
                           process has opened the store
    FAILING    kept        go to LMDB: the log can't be      FAILED, CLOSED
                           written
    FAILED     per commit  go to LMDB, for ever              CLOSED
    CLOSED     no          are refused                       CLOSED

A process that is alone keeps the lease from its first commit that waits until nothing waits any
more. If other processes have the store open, it takes the lease for each commit, or group of them,
and first reads what the others have appended to the log. The turns are counted: a process whose
last turn was the one before has missed nothing, and reads nothing.
"""

import enum
import os
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

import lmdb

from holdfast.engine.folder import Folder
from holdfast.engine.lmdb.environment import explain
from holdfast.engine.lmdb.redo_log import RedoLog
from holdfast.engine.lmdb.shared_state import SharedState


class LeaseState(enum.Enum):
    """Where the commits of this process go, and how long it holds the lease."""

    PASSING = enum.auto()
    DEFERRING = enum.auto()
    YIELDING = enum.auto()
    FAILING = enum.auto()
    FAILED = enum.auto()
    CLOSED = enum.auto()


# Every commit compares states, and a module's name is looked up faster than an enum's member.
PASSING: Final = LeaseState.PASSING
DEFERRING: Final = LeaseState.DEFERRING
YIELDING: Final = LeaseState.YIELDING
FAILING: Final = LeaseState.FAILING
FAILED: Final = LeaseState.FAILED
CLOSED: Final = LeaseState.CLOSED

TRANSITIONS: Final[Mapping[LeaseState, frozenset[LeaseState]]] = {
    PASSING: frozenset({DEFERRING, FAILED, CLOSED}),
    DEFERRING: frozenset({PASSING, YIELDING, FAILING, CLOSED}),
    YIELDING: frozenset({PASSING, DEFERRING, FAILING, CLOSED}),
    FAILING: frozenset({FAILED, CLOSED}),
    FAILED: frozenset({CLOSED}),
    CLOSED: frozenset({CLOSED}),
}
_KEPT: Final = (DEFERRING, YIELDING, FAILING)


class LogLease:
    """The lease of one process on its store.

    Its methods are called with the overlay's lock; `state` may be read without it.
    """

    def __init__(
        self,
        env: Any,
        folder: Folder,
        log: RedoLog,
        shared_state: SharedState,
        *,
        synced: bool,
        check_seconds: float,
        note_if_alone: Callable[[], None],
    ) -> None:
        self.state = PASSING
        self.taken = False  # this process holds the lease at this moment
        self._turn = 0  # the number of this process's last turn with the lease
        self._read_turn = -1  # the last turn up to which it has read what others committed
        self._env = env
        self._folder = folder
        self._log = log
        self._shared_state = shared_state
        self._synced = synced
        self._check_seconds = check_seconds
        self._note_if_alone = note_if_alone
        self._next_check = 0.0
        self._process = os.getpid()
        self._is_repaired = False  # LMDB's last commit is known to be whole, and on disk

    # --- for each commit -------------------------------------------------------------------------

    def acquire(self, *, wait: bool = True) -> bool:
        """Takes the lease, unless this process holds it already; returns whether it holds it
        now."""
        if self.taken:
            return True
        self.taken = (
            True  # set first: if interrupted, a lease too many is released, a forgotten one is not
        )
        try:
            if not self._folder.take_lease(wait=wait):
                self.taken = False
                return False
            killed, self._turn = self._shared_state.take_turn(self._process)
            if killed or not self._is_repaired:
                self._repair_last_commit()
            if self._shared_state.failed and self.state is PASSING:
                self._enter_state(FAILED)  # whichever process it was: nobody knows what is on disk
        except BaseException as error:
            self._folder.release_lease()
            self.taken = False
            if isinstance(error, lmdb.Error):
                raise explain(error, self._folder.path) from error
            raise
        return True

    def has_missed_nothing(self) -> bool:
        """Returns whether nobody else has held the lease since this process has read everything.
        Only for the lease holder."""
        return self._turn <= self._read_turn + 1

    def note_read(self) -> None:
        """Notes that this process has read everything that others have committed. Called only
        afterwards, so that a process interrupted while reading reads again. Only for the lease
        holder."""
        self._read_turn = self._turn

    def _repair_last_commit(self) -> None:
        """Repairs LMDB's last commit, whose process may have been killed in the middle.

        Its meta page may be written while readers still see the number of the commit before; the
        next write transaction corrects that. The page may also not be on disk yet.
        """
        with self._folder.write_turn:
            self._env.begin(write=True).abort()
        if self._synced:
            self._env.sync(True)
        else:
            self._log.note_end_of(*self._shared_state.published())  # and for no later commit
        self._is_repaired = True

    def release(self) -> None:
        """Releases the lease, unless the process keeps it."""
        if self.taken and self.state not in _KEPT:
            self._shared_state.end_turn()
            self._folder.release_lease()
            self.taken = False

    # --- keeping it ------------------------------------------------------------------------------

    def is_kept(self) -> bool:
        return self.state in _KEPT

    def is_shared(self) -> bool:
        """Returns whether other processes have the store open; checks now and then whether they
        left."""
        if not self._shared_state.shared:
            return False
        now = time.monotonic()
        if now < self._next_check:
            return True
        self._next_check = now + self._check_seconds
        self._note_if_alone()
        return bool(self._shared_state.shared)

    def keep(self) -> bool:
        """Keeps the lease if nobody else has the store open; returns whether it does."""
        assert self.taken
        if self.state is not PASSING:
            return self.state is DEFERRING
        self._shared_state.kept = True
        os.getppid()  # a memory barrier: a new process sets its mark, then reads this one
        if self._shared_state.shared:
            self._shared_state.kept = False
            return False
        # In this order: a view that finds nothing published checks the state again.
        self._enter_state(DEFERRING)
        self._shared_state.withdraw()
        return True

    def prepare_log(self) -> bool:
        """Makes sure that the log can be written; returns whether it can."""
        if self.state is FAILED:
            return False
        try:
            if self._synced and self._shared_state.prepared != self._log.number:
                self._log.prepare()
                self._shared_state.prepared = self._log.number
            self._log.declare()
        except OSError:
            self._enter_state(FAILED)
            return False
        return True

    def is_log_prepared(self) -> bool:
        """Returns whether any process has written to the log before."""
        return bool(self._shared_state.prepared == self._log.number)

    def have_other_processes_changed(self) -> bool:
        """Returns whether `note_other_processes` would change the state. May be called without the
        lock."""
        return self.state is (DEFERRING if self._shared_state.shared else YIELDING)

    def note_other_processes(self) -> None:
        """Notes that another process now waits for the lease, or no longer does."""
        if self.have_other_processes_changed():
            self._enter_state(YIELDING if self.state is DEFERRING else DEFERRING)

    def note_end(self) -> None:
        """Records where the synced records end."""
        if self.is_kept():
            self._log.note_end()
        else:
            self._log.note_end_of(*self._shared_state.published())

    def note_failure(self) -> None:
        """Notes that the log can't be written: this process stops using it."""
        if self.state is PASSING:
            self._enter_state(FAILED)
        elif self.state is not FAILED and self.state is not FAILING:
            self._enter_state(FAILING)

    def leave(self) -> None:
        """Stops keeping the lease, once LMDB has every record of the log."""
        self._enter_state(FAILED if self.state is FAILING else PASSING)
        self._shared_state.kept = False
        self.release()

    def close(self, *, is_flushed: bool = True) -> None:
        """Gives up the lease for good. Commits that were kept but not flushed stay marked, as if
        this process had been killed: the next one brings them into LMDB's file."""
        if self.is_kept() and is_flushed:
            self._shared_state.kept = False
        self._enter_state(CLOSED)
        self.release()

    def forked(self) -> None:
        """Called in a child process: the lease stays with the parent."""
        self.taken = False
        self._enter_state(CLOSED)

    def _enter_state(self, state: LeaseState) -> None:
        assert state in TRANSITIONS[self.state], f"{self.state.name} is followed by {state.name}"
        self.state = state
