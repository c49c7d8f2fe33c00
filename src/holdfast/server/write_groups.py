"""Commits the writes of all connections in groups.

All writes that have arrived while the engine was busy form the next group: one commit, one wait for
the disk, then all replies. Clients that were just answered usually return at once: if the disk
is slow, the next group waits a moment for them, instead of starting with the first. A write that
fails, fails alone. A group that takes only a moment is committed on the event loop, any other in
the writer's thread; if several requests together turn out to take longer, the loop commits them in
smaller groups, one in each turn.
"""

import asyncio
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from typing import Any, Final, NamedTuple, TypeAlias

from holdfast.engine.contract import Outcome
from holdfast.engine.group_wait import GroupWait
from holdfast.errors import HoldfastError, OutcomeUnknown, ServerBusy, StoreUnreachable
from holdfast.limits import (
    LOOP_COMMITS_PAUSE_SECONDS,
    MAX_GROUP_ON_LOOP,
    MAX_GROUP_TRANSACTIONS,
    MAX_QUEUED_WRITES,
    SMALL_GROUPS_SECONDS,
)
from holdfast.server.error_frames import forget_frames
from holdfast.server.group_time_limit import transact_in_parts
from holdfast.server.loop_turns import LoopTurns
from holdfast.server.notice_feed import NoticeFeed
from holdfast.server.recorder import Recorder
from holdfast.store import AnyStep, Space, Store

_TRIED_SECONDS: Final = 0.001  # it was begun on the loop, and turned out to be long
# Reading notices would make callers wait once more for an engine that does not answer.
_LOST: Final = (StoreUnreachable, OutcomeUnknown)

Answer: TypeAlias = Callable[[list[Outcome[Any]]], None]


class GroupedWrites(NamedTuple):
    """The transactions of one caller in the next group."""

    steps: Sequence[AnyStep]
    answer: Answer  # called on the loop
    # Called just before: returns False if the client is gone, and nothing should be written.
    is_wanted: Callable[[], bool] | None
    is_small: bool  # a request of a few kilobytes, which most likely takes no time


Group: TypeAlias = list[GroupedWrites]


class WriteGroups:
    """The writes that wait, and those that are being committed. Lives on one event loop."""

    def __init__(
        self,
        store: Store,
        loop: asyncio.AbstractEventLoop,
        turns: LoopTurns,
        recorder: Recorder,
        notice_feed: NoticeFeed,
        report: Callable[[BaseException], None],
    ) -> None:
        self._store = store
        self._loop = loop
        self._turns = turns
        self._recorder = recorder
        self._notice_feed = notice_feed
        self._report = report
        self.group_wait = GroupWait()
        self.written: set[Space] = set()  # spaces, since `take_written`
        self._waiting: deque[GroupedWrites] = deque()
        self._enqueued = 0  # the number of writes so far, counted by the loop
        self._dequeued = 0  # and by the writer: each number is changed by one thread only
        self._committing = False
        self._loop_commits_after = 0.0  # in monotonic time
        self._loop_requests = MAX_GROUP_ON_LOOP  # of a group on the loop, at most
        self._small_groups_until = 0.0  # in monotonic time
        self._signals: queue.SimpleQueue[bool] = queue.SimpleQueue()  # the writer's; False ends it
        self._writer = threading.Thread(target=self._write_groups, name="holdfast-writer")
        self._writer.start()

    @property
    def queued(self) -> int:
        """Returns how many writes wait."""
        return self._enqueued - self._dequeued

    def take_written(self) -> set[Space]:
        """Returns the spaces that were written to since the last call."""
        written, self.written = self.written, set()
        return written

    def put(
        self,
        steps: Sequence[AnyStep],
        answer: Answer,
        is_wanted: Callable[[], bool] | None = None,
        *,
        is_small: bool = False,
    ) -> None:
        """Runs transactions in the next group, in this order, each for itself."""
        enqueued = self._enqueued + len(steps)
        if enqueued - self._dequeued > MAX_QUEUED_WRITES:
            raise ServerBusy(f"{self.queued} writes are already waiting")
        self._waiting.append(GroupedWrites(steps, answer, is_wanted, is_small))
        self._enqueued = enqueued
        if not self._committing:
            self._committing = True
            # Later in this turn of the loop, so that everything that arrived with it joins.
            self._loop.call_soon(self._begin_group)

    async def close(self) -> None:
        """Commits and answers what has arrived, and ends the writer's thread."""
        while self._waiting or self._committing or self._turns.has_steps_left:
            await asyncio.sleep(0.001)
        self._signals.put(False)
        await self._loop.run_in_executor(None, self._writer.join)

    def _write_groups(self) -> None:
        """Runs in the writer's thread: commits one group after the other, and notifies the loop
        once for each."""
        while self._signals.get():
            self.group_wait.wait(lambda: len(self._waiting))
            self._write_group()

    def _write_group(self) -> None:
        # A function of its own, so that the writer, which may wait for hours, refers to none of it.
        group = self._next_group()
        steps = _steps_of(group)
        begin = time.perf_counter()
        try:
            outcomes = transact_in_parts(self._store, steps)
        except BaseException as error:
            outcomes = [Outcome(error=error)] * len(steps)
        seconds = time.perf_counter() - begin
        self.group_wait.note(len(group) + len(self._waiting), seconds)
        self._recorder.note_commit(len(steps), seconds)
        if not all(isinstance(outcome.error, _LOST) for outcome in outcomes):
            self.deliver_notices()  # subscribers get the notices before callers get their answers
        self._loop.call_soon_threadsafe(self._answer, group, outcomes)

    def _begin_group(self) -> None:
        """Commits what waits: on the loop if that takes only a moment, otherwise in the writer's
        thread. Waking a thread and being woken by it costs more than a short commit."""
        if not self._may_commit_on_loop() or not self._commit_on_loop():
            self._signals.put(True)

    def _may_commit_on_loop(self) -> bool:
        return (
            self.queued <= MAX_GROUP_ON_LOOP
            and all([request.is_small for request in self._waiting])
            and time.monotonic() >= self._loop_commits_after
        )

    def _commit_on_loop(self) -> bool:
        begin = time.monotonic()
        if begin > self._small_groups_until:
            self._loop_requests = MAX_GROUP_ON_LOOP
        group = self._next_group(self._loop_requests)
        steps = _steps_of(group)
        outcomes: list[Outcome[Any]] | None
        try:
            outcomes = self._store.try_transact_many(steps) if steps else []
        except Exception as error:  # of the engine itself; later writes must not wait for ever
            outcomes = [Outcome(error=error)] * len(steps)
        if outcomes is None:
            self._waiting.extendleft(reversed(group))
            self._dequeued -= len(steps)
            is_long = time.monotonic() - begin > _TRIED_SECONDS
            return is_long and self._divide(len(group)) and self._commit_on_loop()
        self._recorder.note_commit(len(steps), time.monotonic() - begin)
        if self.deliver_notices():
            self._loop.call_soon(self._answer, group, outcomes)
        elif len(group) == 1 and not self._turns.has_steps_left:
            deque(self._answers(group, outcomes), 0)  # all of it: there is nothing to divide
        else:
            self._answer(group, outcomes)
        return True

    def _divide(self, requests: int) -> bool:
        """Makes groups on the loop smaller for a while, after one with so many requests took too
        long. Returns False if it had only one: then all commits go to the writer's thread."""
        now = time.monotonic()
        if requests == 1:
            self._loop_commits_after = now + LOOP_COMMITS_PAUSE_SECONDS
            return False
        self._loop_requests = requests // 2
        self._small_groups_until = now + SMALL_GROUPS_SECONDS
        return True

    def deliver_notices(self) -> bool:
        """Delivers the notices of what was committed, and returns whether there are any. Whatever
        fails here, the commits are done, and are answered as done."""
        try:
            return self._notice_feed.catch_up()
        except StoreUnreachable:
            pass  # they are delivered when the engine is back
        except Exception as error:
            self._report(error)
        return False

    def _next_group(self, most_requests: int = MAX_GROUP_TRANSACTIONS) -> Group:
        group: Group = []
        size, waiting = 0, self._waiting
        while waiting and size < MAX_GROUP_TRANSACTIONS and len(group) < most_requests:
            request = waiting.popleft()
            steps, _, is_wanted, _ = request
            size += len(steps)
            # A write whose client left before its turn is not made.
            if is_wanted is None or is_wanted():
                group.append(request)
        self._dequeued += size
        return group

    def _answer(self, group: Group, outcomes: list[Outcome[Any]]) -> None:
        self._turns.run_steps(self._answers(group, outcomes))

    def _answers(self, group: Group, outcomes: list[Outcome[Any]]) -> Iterator[None]:
        """Answers one request after the other; the next group is committed meanwhile, and answered
        when all of this one are."""
        for outcome in outcomes:
            if isinstance(outcome.error, HoldfastError):  # other errors still have to be logged
                forget_frames(outcome.error)
        if self._waiting:
            self._loop.call_soon(self._begin_group)
        else:
            self._committing = False
        self.written.update(map(_space_of, _steps_of(group)))
        begin = 0
        for steps, answer, _, _ in group:
            end = begin + len(steps)
            try:
                answer(outcomes[begin:end])
            except Exception as error:
                self._report(error)  # a failed answer must not prevent the others
            begin = end
            yield


def _steps_of(group: Group) -> Sequence[AnyStep]:
    if len(group) == 1:
        return group[0].steps
    return [step for request in group for step in request.steps]


_space_of = attrgetter("space")
