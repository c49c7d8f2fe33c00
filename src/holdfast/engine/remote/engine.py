"""The remote engine: a queue of transactions for each space, views, notices and maintenance."""

import os
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from holdfast.engine.contract import (
    Backup,
    EngineSubscription,
    Guard,
    Notice,
    Outcome,
    Reader,
    Transaction,
)
from holdfast.engine.group_commit import CommitRequest
from holdfast.engine.late_interrupts import Interrupt
from holdfast.engine.notices import NoticeHub, notice_filter
from holdfast.engine.remote.commit_counts import CommitCounts
from holdfast.engine.remote.group_runner import GroupRunner
from holdfast.engine.remote.protocol import Backend, ConnectionLost
from holdfast.engine.remote.reconnector import Reconnector
from holdfast.engine.remote.space_queue import SpaceQueues
from holdfast.engine.remote.views import RemoteView, Views
from holdfast.errors import (
    Conflict,
    HoldfastError,
    OutcomeUnknown,
    StoreClosed,
    StoreForked,
    StoreUnreachable,
)
from holdfast.limits import RECONNECT_SECONDS, REMOTE_POLL_SECONDS

T = TypeVar("T")


class RemoteEngine:
    """An engine on any backend."""

    is_remote = True

    def __init__(
        self,
        backend: Backend,
        *,
        clock: Callable[[], float],
        reconnect_seconds: float = RECONNECT_SECONDS,
    ) -> None:
        self.backend = backend
        self._clock = clock
        self._queues = SpaceQueues()
        self._reconnector = Reconnector(backend, reconnect_seconds)
        self._counts = CommitCounts()
        self._views = Views(backend, self._reconnector, self._counts, clock)
        self._notices = NoticeHub(self, poll_seconds=REMOTE_POLL_SECONDS)
        self._runner = GroupRunner(
            backend, clock, self._reconnector, self._views, self._notices.wake
        )
        self._listening = threading.Lock()
        self._listener: threading.Thread | None = None
        _close_in_forked_children(self)

    # --- transactions ----------------------------------------------------------------------------

    def view(self, *, space: bytes = b"", guard: Guard | None = None) -> RemoteView:
        return self._views.open(space, guard)

    def short_view(self, *, space: bytes = b"", guard: Guard | None = None) -> RemoteView:
        return self._views.open(space, guard)  # a thread that must not be blocked reads elsewhere

    def read(
        self,
        work: Callable[[Reader], T],
        *,
        space: bytes = b"",
        guard: Guard | None = None,
        kind: str = "",
    ) -> T:
        return self._views.read(work, space, guard, kind)

    def transact(
        self, work: Callable[[Transaction], T], *, space: bytes = b"", kind: str = ""
    ) -> T:
        [outcome] = self._serve(CommitRequest((work,), (space,), kind), space)
        result: T = outcome.unwrap()
        return result

    def transact_many(
        self,
        works: Sequence[Callable[[Transaction], Any]],
        *,
        spaces: Sequence[bytes] | None = None,
    ) -> list[Outcome[Any]]:
        if spaces is None:
            spaces = (b"",) * len(works)
        elif len(spaces) != len(works):
            raise ValueError(f"{len(works)} functions were given, but {len(spaces)} spaces")
        outcomes: list[Outcome[Any]] = [Outcome()] * len(works)
        for space, numbers in _parts(spaces):
            part = CommitRequest([works[number] for number in numbers], [space] * len(numbers))
            for number, outcome in zip(numbers, self._serve(part, space), strict=True):
                outcomes[number] = outcome
        return outcomes

    @contextmanager
    def transaction(self, *, space: bytes = b"") -> Iterator[Transaction]:
        request = CommitRequest()
        with self._queues.join(space, self._reconnector.refuse_unusable) as group_commit:
            try:
                group_commit.take(request)
                yield from self._runner.block(space)
            finally:
                group_commit.leave(request)

    def _serve(self, request: CommitRequest, space: bytes) -> list[Outcome[Any]]:
        """Runs a request, in this thread or in the one that leads its group."""
        with self._queues.join(space, self._reconnector.refuse_unusable) as group_commit:
            try:
                if group := group_commit.take(request):
                    interrupt = self._run_group(group, space)
                    if interrupt is not None:
                        raise interrupt
            finally:
                # After Ctrl-C in the leader's thread, the others' work is for the next leader.
                group_commit.leave(request)
        return request.outcomes  # type: ignore[return-value]  # set by the leader of its group

    def _run_group(self, group: list[CommitRequest], space: bytes) -> Interrupt:
        """Commits a group together. If that fails, commits each transaction alone: one that is too
        large for the server must not fail the others. Returns the exception of a signal handler
        that came too late to undo it."""
        works = [work for request in group for work in request.works]
        publish = partial(_publish, group)
        try:
            return self._runner.run(works, space, publish, group[0].kind)
        except HoldfastError as error:
            if len(works) < 2 or isinstance(error, StoreUnreachable | OutcomeUnknown | Conflict):
                publish([Outcome(error=error) for _ in works])
                return None
        interrupt: Interrupt = None
        for request in group:
            outcomes: list[Outcome[Any]] = []
            for work in request.works:
                try:
                    interrupt = self._runner.run([work], space, outcomes.extend) or interrupt
                except HoldfastError as error:
                    outcomes.append(Outcome(error=error))
            request.outcomes = outcomes  # at once: after Ctrl-C, it must not run again
        return interrupt

    # --- notices ---------------------------------------------------------------------------------

    def try_transact_many(
        self, works: Sequence[Callable[[Transaction], Any]], *, spaces: Sequence[bytes]
    ) -> list[Outcome[Any]] | None:
        return None  # every commit waits for a network

    def subscribe(
        self,
        *,
        topic_prefix: str = "",
        space: bytes | None = None,
        wanted: Callable[[Notice], bool] | None = None,
        may_want: Callable[[str], bool] | None = None,
    ) -> EngineSubscription:
        self._reconnector.refuse_unusable()
        with self._listening:
            if self._listener is None:
                self._listener = threading.Thread(
                    target=self.backend.listen,
                    args=(self._notices.wake, self._reconnector.stopped),
                    name="holdfast-listener",
                    daemon=True,
                )
                self._listener.start()
        return self._notices.subscribe(notice_filter(topic_prefix, space, wanted))

    def newest_notice(self) -> Any:
        return self._reconnector.call(self.backend.newest_notice)

    def notices_since(self, place: Any) -> tuple[Any, int, list[Notice]]:
        # The hub tries again by itself, and holds its lock meanwhile: do not wait here.
        try:
            return self.backend.notices_since(place)
        except ConnectionLost as error:
            raise self._reconnector.explain(error) from error

    # --- maintenance -----------------------------------------------------------------------------

    def read_clock(self) -> float:
        return self._clock()

    def checkpoint(self) -> None:
        self._queues.refuse_nested("a checkpoint was asked for inside a transaction: let it end")
        self._reconnector.call(self.backend.checkpoint)

    def backup(self, target: Path) -> Backup:
        self._reconnector.refuse_unusable()
        self.backend.backup(target)

    def refuse_full(self, *, space: bytes = b"") -> None:
        """Raises `StoreFull` if the server of `space` is known to refuse commits that grow it."""
        self._reconnector.call(partial(self.backend.refuse_full, space))

    def refuse_unreadable(self) -> None:
        """Does nothing: no reply of a server can end this process."""

    def check(self) -> list[str]:
        return self._reconnector.call(self.backend.problems)

    def stats(self) -> dict[str, int]:
        """Returns figures of the store, and of this process: `groups` that were committed,
        `transactions` in them, `conflicts`, and `round_trips` for reads and commits."""
        return {**self._reconnector.call(self.backend.stats), **self._counts.as_dict()}

    def shorten_waits(self) -> None:
        self._reconnector.shorten_waits()

    def close(self) -> None:
        """Waits for running writers, and closes the connections.

        A view that is still open raises `StoreClosed` when it is read from again.
        """
        if isinstance(self._reconnector.unusable, StoreForked):
            return
        reason = StoreClosed(f"{self.backend.name} is closed")
        if not self._queues.close(reason):
            return
        self._reconnector.unusable = reason
        self._reconnector.stopped.set()
        self._notices.close()
        if self._listener is not None:
            self._listener.join()
        self.backend.close()

    def forked(self) -> None:
        """Disables the store in a forked child, which must not touch the parent's."""
        if self._reconnector.unusable is None:
            self._reconnector.unusable = StoreForked(
                f"{self.backend.name} was opened by the parent process"
            )
            # The parent's locks may have been held at the moment of the fork.
            self._queues = SpaceQueues()
            self._counts.forked()
            self._views.without_snapshot = {}
            self._notices.forked()
            self.backend.forked()


def _parts(spaces: Sequence[bytes]) -> list[tuple[bytes, list[int]]]:
    """Returns the indexes of the transactions of each space. Spaces are independent, so one may
    follow the other; but the empty prefix covers all of them, and waits for those before it."""
    parts: dict[bytes, list[int]] = {}
    done: list[tuple[bytes, list[int]]] = []
    for number, space in enumerate(spaces):
        if (space == b"" and any(parts)) or (space != b"" and b"" in parts):
            done += parts.items()
            parts = {}
        parts.setdefault(space, []).append(number)
    return [*done, *parts.items()]


def _publish(group: list[CommitRequest], outcomes: list[Outcome[Any]]) -> None:
    begin = 0
    for request in group:
        end = begin + len(request.works)
        request.outcomes = outcomes[begin:end]
        begin = end


def _close_in_forked_children(engine: RemoteEngine) -> None:
    reference = weakref.ref(engine)

    def after_fork() -> None:
        if (engine := reference()) is not None:
            engine.forked()

    os.register_at_fork(after_in_child=after_fork)
