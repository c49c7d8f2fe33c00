"""Whether commits may wait in memory: the folder's lease, and the states that a process passes.

    state      lease  commits                               is followed by
    DIRECT     no     go to LMDB                            DEFERRING, FAILED, CLOSED
    DEFERRING  yes    wait in the overlay and the redo log  DIRECT, YIELDING, FAILING, CLOSED
    YIELDING   yes    go to LMDB: another process has       DIRECT, DEFERRING, FAILING, CLOSED
                      opened the store and waits for the
                      lease
    FAILING    yes    go to LMDB: the log can't be written  FAILED, CLOSED
    FAILED     no     go to LMDB, for ever                  CLOSED
    CLOSED     no     are refused                           CLOSED

A process takes the lease for its first commit that waits, and leaves it when nothing waits any
more. Only a process that is alone may take it: the redo log says if others have the store open.
"""

import enum
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

import lmdb

from holdfast.engine.folder import Folder
from holdfast.engine.lmdb.redo_log import RedoLog


class LeaseState(enum.Enum):
    """Where the commits of this process go, and who may write to the redo log."""

    DIRECT = enum.auto()
    DEFERRING = enum.auto()
    YIELDING = enum.auto()
    FAILING = enum.auto()
    FAILED = enum.auto()
    CLOSED = enum.auto()


# Every commit asks for one of them, and a name of this module is found sooner than a member.
DIRECT: Final = LeaseState.DIRECT
DEFERRING: Final = LeaseState.DEFERRING
YIELDING: Final = LeaseState.YIELDING
FAILING: Final = LeaseState.FAILING
FAILED: Final = LeaseState.FAILED
CLOSED: Final = LeaseState.CLOSED

TRANSITIONS: Final[Mapping[LeaseState, frozenset[LeaseState]]] = {
    DIRECT: frozenset({DEFERRING, FAILED, CLOSED}),
    DEFERRING: frozenset({DIRECT, YIELDING, FAILING, CLOSED}),
    YIELDING: frozenset({DIRECT, DEFERRING, FAILING, CLOSED}),
    FAILING: frozenset({FAILED, CLOSED}),
    FAILED: frozenset({CLOSED}),
    CLOSED: frozenset({CLOSED}),
}
_HELD: Final = (DEFERRING, YIELDING, FAILING)
_LOG_IS_USABLE: Final = (DIRECT, DEFERRING, YIELDING)


class LogLease:
    """The lease of one process on the redo log of its store.

    Its methods are called with the overlay's lock; `state` may be read without it.
    """

    def __init__(
        self,
        env: Any,
        folder: Folder,
        log: RedoLog,
        *,
        synced: bool,
        look_seconds: float,
        look_if_alone: Callable[[], None],
    ) -> None:
        self.state = DIRECT
        self._env = env
        self._folder = folder
        self._log = log
        self._synced = synced
        self._look_seconds = look_seconds
        self._look_if_alone = look_if_alone
        self._next_look = 0.0
        self.known = -1  # the last LMDB commit that is known to be on disk

    def is_held(self) -> bool:
        return self.state in _HELD

    def may_defer(self) -> bool:
        """Returns whether commits may wait: the log works, and nobody else has the store open."""
        if self.state not in _LOG_IS_USABLE:
            return False
        if self.state is DIRECT and self._log.shared:
            now = time.monotonic()
            if now >= self._next_look:
                self._next_look = now + self._look_seconds
                self._look_if_alone()
        self.look_for_others()
        return not self._log.shared

    def others_have_come_or_gone(self) -> bool:
        """Returns whether `look_for_others` would find news. May be called without the lock."""
        return self.state is (DEFERRING if self._log.shared else YIELDING)

    def look_for_others(self) -> None:
        """Notes if another process waits for the lease, or waits no more."""
        if self.others_have_come_or_gone():
            self._become(YIELDING if self.state is DEFERRING else DEFERRING)

    def take(self) -> bool:
        """Takes the lease if it is free and commits may wait; says whether it did."""
        if self.state is not DIRECT or not self._folder.take_lease(wait=False):
            return False
        if self._log.shared or not self._prepare():
            self._folder.leave_lease()
            return False
        self._become(DEFERRING)
        return True

    def _prepare(self) -> bool:
        """Makes sure that records may be relied on: they are worth nothing without the LMDB commit
        that they follow, and its process may have been killed in the middle.

        Then the meta page may be there, and its number not yet where readers look for it: the next
        writer puts that right. And the page may not be on disk.
        """
        try:
            with self._folder.write_turn:
                self._env.begin(write=True).abort()
            if self._synced:
                if self._env.info()["last_txnid"] != self.known:
                    self._env.sync(True)
                self._log.prepare()
            self._log.declare()
        except (lmdb.Error, OSError):
            self._become(FAILED)
            return False
        return True

    def note_commit(self) -> None:
        """Notes that the lease holder has committed to LMDB, which is then on disk."""
        if self.is_held():
            self.known = self._env.info()["last_txnid"]

    def note_failure(self) -> None:
        """Notes that the log could not be written: it is not used again."""
        if self.state is not FAILING:
            self._become(FAILING)

    def leave(self) -> None:
        """Leaves the lease to others, once LMDB has all that was in the log."""
        self._folder.leave_lease()
        self._become(FAILED if self.state is FAILING else DIRECT)

    def close(self) -> None:
        """Leaves the lease for the last time."""
        if self.is_held():
            self._folder.leave_lease()
        self._become(CLOSED)

    def forked(self) -> None:
        """Called in a child process: the lease stays with the parent."""
        self._become(CLOSED)

    def _become(self, state: LeaseState) -> None:
        assert state in TRANSITIONS[self.state], f"{self.state.name} is followed by {state.name}"
        self.state = state
