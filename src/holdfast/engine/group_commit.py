"""Group commit: the thread whose turn it is runs the work of all waiting threads.

A store has one writer at a time, and a durable commit waits for the disk. Threads that arrive
while another one writes queue up; the first of them leads the next group, runs the work of all of
them, and one wait for the disk serves them all. First come, first served: nobody starves. If
commits take long, a group waits a moment for the writers of the last ones (group_wait.py).

Ctrl-C may come in the main thread between any two steps of this file. Therefore every change is
made so that `leave` can be called again and finish it: a request is recorded in its new place
before it is removed from the old one.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from holdfast.engine.contract import Outcome, Transaction
from holdfast.engine.group_wait import GroupWait
from holdfast.errors import StoreUnusable
from holdfast.limits import MAX_GROUP_TRANSACTIONS

Work = Callable[[Transaction], Any]


class CommitRequest(msgspec.Struct, eq=False):
    """The transactions of one caller, and their outcomes. Without transactions, it asks for the
    turn to write."""

    works: Sequence[Work] = ()
    spaces: Sequence[bytes] = ()
    kind: str = ""  # of its only transaction, if that is known
    thread: int = msgspec.field(default_factory=threading.get_ident)
    outcomes: list[Outcome[Any]] | None = None  # set once, after the commit
    _wakeup: Any = None  # a lock on which its caller sleeps while it waits

    def prepare_to_wait(self) -> None:
        self._wakeup = threading.Lock()
        self._wakeup.acquire()

    def wait(self) -> None:
        assert self._wakeup is not None  # made before the request was queued
        self._wakeup.acquire()

    def wake(self) -> None:
        if self._wakeup is not None and self._wakeup.locked():
            self._wakeup.release()


class GroupCommit:
    """The queue in front of the writer; with `group_wait` if commits may take long."""

    def __init__(self, group_wait: GroupWait | None = None) -> None:
        self._group_wait = group_wait
        self._begun = 0.0  # when the leader began
        self._lock = threading.Lock()  # guards the queue
        # The request that has the turn, if any; it stays first in the queue until it wakes. This is
        # a dict because taking a free turn, and returning one that nobody waits for, are atomic
        # operations of a dict. So they need no lock, which would cost more than all the rest.
        self._leader: dict[None, CommitRequest] = {}
        self._group: list[CommitRequest] = []  # the requests that the leader runs besides its own
        self.waiting: deque[CommitRequest] = deque()  # in the order of their arrival
        self._closed: StoreUnusable | None = None  # why new requests are refused

    def take(self, request: CommitRequest, *, last: bool = False) -> list[CommitRequest]:
        """Waits for the turn, and returns the group to run now: this request and the waiting ones,
        up to a limit, or up to one that asks for a turn of its own. An empty group means that
        another leader has done the work already.

        Whatever happens in it or after it, `leave` follows, unless the group was empty.
        """
        if self.waiting or self._leader.setdefault(None, request) is not request:
            return self._enqueue(request, last)
        if self._closed is not None and not last:
            raise self._closed.with_traceback(None)  # one shared error must not collect frames
        if self._group_wait is None:
            return [request]
        return self._gather_expected(request, self._group_wait, 1)

    def try_take(self, request: CommitRequest) -> bool:
        """Takes the turn if nobody has it or waits for it, and returns whether it did; then `leave`
        follows."""
        if self.waiting or self._closed is not None:
            return False
        if self._leader.setdefault(None, request) is not request:
            return False
        self._begun = time.perf_counter()
        return True

    def _enqueue(self, request: CommitRequest, last: bool) -> list[CommitRequest]:
        with self._lock:
            if self._closed is not None and not last:
                raise self._closed.with_traceback(None)
            self.refuse_nested(
                "a transaction was begun inside another one of the same store: "
                "use the transaction that the work was given"
            )
            request.prepare_to_wait()
            self.waiting.append(request)
            # The last leader may have left just now without seeing this request.
            self._grant_free_turn()
        request.wait()
        if self._leader.get(None) is not request:
            return []
        if self._group_wait is not None:
            return self._gather_expected(request, self._group_wait, 0)
        with self._lock:
            return self._group_of(request)

    def _gather_expected(
        self, request: CommitRequest, group_wait: GroupWait, not_queued: int
    ) -> list[CommitRequest]:
        """Leads a group: waits for the expected requests, then returns them.

        `not_queued` counts those that have arrived but are not in the queue.
        """
        if group_wait.expected_writers > 1 and request.works:
            group_wait.wait(lambda: not_queued + len(self.waiting))
        self._begun = time.perf_counter()
        with self._lock:
            return self._group_of(request)

    def _group_of(self, request: CommitRequest) -> list[CommitRequest]:
        """Returns the request and all that wait. The lock must be held."""
        if self._is_first(request):  # otherwise the turn was free
            self.waiting.popleft()
        size = len(request.works)
        return [request, *self._gather(size)] if size else [request]

    def _is_first(self, request: CommitRequest) -> bool:
        return len(self.waiting) > 0 and self.waiting[0] is request

    def gather_more(self) -> list[CommitRequest]:
        """Returns the waiting requests, for a leader that has run its group.

        A leader that has not waited for the disk may also run the work that arrived meanwhile:
        passing the turn on would put one thread to sleep and wake another, for each request.
        """
        if not self.waiting:
            return []
        with self._lock:
            return self._gather(0)

    def _gather(self, size: int) -> list[CommitRequest]:
        """Returns the waiting requests, for a group that already has `size` transactions."""
        more: list[CommitRequest] = []
        while self.waiting and self.waiting[0].works and size < MAX_GROUP_TRANSACTIONS:
            request = self.waiting[0]
            self._group.append(request)
            self.waiting.popleft()
            more.append(request)
            size += len(request.works)
        return more

    def leave(self, request: CommitRequest) -> None:
        """Passes the turn to the next request, and wakes the callers whose work this leader has
        done.

        For a caller that was interrupted in the queue or in its turn, it undoes what was begun.
        """
        leader = self._leader
        if self._group_wait is not None and leader.get(None) is request:
            expected_writers = 1 + len(self._group) + len(self.waiting)
            self._group_wait.note(expected_writers, time.perf_counter() - self._begun)
        if not self._group and not self.waiting and leader.get(None) is request:
            del leader[None]
            if not self.waiting:
                return
        while True:
            with self._lock:
                if leader.get(None) is request:
                    self._pass_turn(request)
                    return
                self._grant_free_turn()
                if request in self.waiting:
                    self.waiting.remove(request)
                    return
                if request not in self._group:
                    return
            # Its work is running; in a moment it is done or back in the queue.
            request.wait()

    def close(self, reason: StoreUnusable) -> None:
        """Refuses new requests. Those that already wait are still served."""
        self.refuse_nested("the store was closed inside one of its transactions: let it end first")
        with self._lock:
            self._closed = reason

    def refuse_nested(self, why: str) -> None:
        """Raises if this thread has the turn: it would wait for itself for ever."""
        leader = self._leader.get(None)
        if leader is not None and leader.thread == threading.get_ident():
            raise RuntimeError(why)

    def _pass_turn(self, request: CommitRequest) -> None:
        if self._is_first(request):  # interrupted while it woke
            self.waiting.popleft()
        for other in reversed(self._group):
            if other.outcomes is not None:
                other.wake()
            elif other not in self.waiting:
                # The leader could not run it; the next leader runs it first.
                self.waiting.appendleft(other)
        self._group = []
        if self.waiting:
            self._leader[None] = self.waiting[0]
            self._grant_free_turn()
        else:
            del self._leader[None]

    def _grant_free_turn(self) -> None:
        """Gives a free turn to the first request in the queue, and wakes it if it got the turn."""
        if self.waiting:
            first = self.waiting[0]
            if self._leader.setdefault(None, first) is first:
                first.wake()
