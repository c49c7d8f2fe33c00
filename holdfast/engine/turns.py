"""Group commit: whoever gets the writer's turn runs all that wait.

A store has one writer at a time, and a durable commit costs a wait for the disk. Threads that come
while another one writes line up; the first of them leads the next group, runs the work of all of
them, and one wait for the disk serves them all. First come, first served: nobody starves.

Ctrl-C may strike in the main thread between any two steps of this file. Therefore every change is
made so that `leave` can be called again and finish it: a request is written down in its new place
before it is taken out of the old one.
"""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from holdfast.engine.contract import Outcome, Transaction
from holdfast.errors import StoreUnusable
from holdfast.limits import MAX_GROUP_TRANSACTIONS

Work = Callable[[Transaction], Any]


class Request:
    """The transactions of one caller, and what became of them. Without any, it asks for a turn."""

    __slots__ = ("_gate", "outcomes", "spaces", "thread", "works")

    def __init__(self, works: Sequence[Work] = (), spaces: Sequence[bytes] = ()) -> None:
        self.works = works
        self.spaces = spaces
        self.thread = threading.get_ident()
        self.outcomes: list[Outcome[Any]] | None = None  # set once, after the commit
        self._gate: threading.Lock | None = None  # what its caller sleeps on while it waits

    def close_gate(self) -> None:
        self._gate = threading.Lock()
        self._gate.acquire()

    def wait_at_gate(self) -> None:
        assert self._gate is not None  # closed before the request was put in the line
        self._gate.acquire()

    def open_gate(self) -> None:
        if self._gate is not None and self._gate.locked():
            self._gate.release()


class Turns:
    """The line in front of the writer."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._leading: Request | None = (
            None  # has the turn; still first in the line: until it wakes
        )
        self._group: list[Request] = []  # what the leader runs beside its own
        self._waiting: deque[Request] = deque()
        self._closed: StoreUnusable | None = None  # why no one is let in

    def take(self, request: Request, *, last: bool = False) -> bool:
        """Waits for the turn, and returns False if another one has done the work meanwhile.

        Whatever happens in it or after it, `leave` follows, unless the answer was False.
        """
        with self._lock:
            if self._closed is not None and not last:
                raise self._closed.with_traceback(None)  # the same for all: no frames pile up
            if self._leading is None:
                self._leading = request
                return True
            self.refuse_inside(
                "a transaction was begun inside another one of the same store: "
                "use the transaction that the work was given"
            )
            request.close_gate()
            self._waiting.append(request)
        request.wait_at_gate()
        if self._leading is not request:
            return False
        with self._lock:
            self._waiting.popleft()
        return True

    def gather(self, first: Request) -> list[Request]:
        """The group to run now: the leader's own request and all that wait, up to a bound, or up
        to one that asks for a turn of its own."""
        return [first, *self.gather_more(len(first.works))] if self._waiting else [first]

    def gather_more(self, size: int = 0) -> list[Request]:
        """Those who wait, for a leader that has run `size` transactions of the same group.

        A leader that has not waited for the disk may run the work of those who came meanwhile too:
        to pass the turn on would put it to sleep and wake another one, for each of them.
        """
        more: list[Request] = []
        with self._lock:
            while self._waiting and self._waiting[0].works and size < MAX_GROUP_TRANSACTIONS:
                request = self._waiting[0]
                self._group.append(request)
                self._waiting.popleft()
                more.append(request)
                size += len(request.works)
        return more

    def leave(self, request: Request) -> None:
        """Gives the turn to the next in line, and lets those go on whose work the caller has done.

        For a caller that was interrupted in the line or in its turn, it undoes what was begun.
        """
        while True:
            with self._lock:
                if self._leading is request:
                    self._pass_on(request)
                    return
                self._wake_appointed()
                if request in self._waiting:
                    self._waiting.remove(request)
                    return
                if request not in self._group:
                    return
            # Its work is being run, and is over or back in the line in a moment.
            request.wait_at_gate()

    def close(self, reason: StoreUnusable) -> None:
        """Lets no one in any more. Whoever already waits is still served."""
        self.refuse_inside("the store was closed inside one of its transactions: let it end first")
        with self._lock:
            self._closed = reason

    def refuse_inside(self, why: str) -> None:
        """Raises if this thread has the turn: it would wait for itself, for ever."""
        if self._leading is not None and self._leading.thread == threading.get_ident():
            raise RuntimeError(why)

    def _pass_on(self, request: Request) -> None:
        if self._waiting and self._waiting[0] is request:  # interrupted while it woke
            self._waiting.popleft()
        for other in reversed(self._group):
            if other.outcomes is not None:
                other.open_gate()
            elif other not in self._waiting:
                # The leader had to leave it undone; the next one does it first.
                self._waiting.appendleft(other)
        self._group = []
        self._leading = self._waiting[0] if self._waiting else None
        self._wake_appointed()

    def _wake_appointed(self) -> None:
        if self._waiting and self._waiting[0] is self._leading:
            self._leading.open_gate()
