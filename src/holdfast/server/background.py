"""Background work of a server: removes what has expired and continues long work.

A space in which nothing is due costs nothing. The server knows when each space has something due
next, and looks again at a space that was written to: by this server or, as far as notices tell, by
another process. A slow walk over all spaces finds the rest. Each round visits a bounded number of
spaces, so its work does not grow with the number of spaces.
"""

import asyncio
import heapq
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import cast

from holdfast import expiry
from holdfast.binding import EVERY_SPACE
from holdfast.engine.contract import Notice
from holdfast.entities.store import StoreEntities
from holdfast.errors import HoldfastError, UnknownSpace
from holdfast.events import StoreEvents
from holdfast.limits import (
    EXPIRED_PER_STEP,
    MAX_WATCHED_SPACES,
    SERVER_SWEEP_SECONDS,
    SWEEP_STEPS_PER_ROUND,
    SWEPT_SPACES_PER_ROUND,
    USERS_REFRESH_SECONDS,
)
from holdfast.server.dispatcher import Dispatcher
from holdfast.server.memory import FullCollections, MemoryWatch, return_memory
from holdfast.space_runner import SpaceRunner
from holdfast.spaces import DIRECTORY
from holdfast.store import Store
from holdfast.tables import EveryDomainTables
from holdfast.users import users_of


async def sweep(dispatcher: Dispatcher) -> None:
    """Removes what has expired in all spaces, a bounded step at a time, while the server runs."""
    await _resume_defaults(dispatcher)
    sweeper = Sweeper(dispatcher.store)
    end = dispatcher.notice_feed.listen(sweeper.on_notice, passive=True)
    loop = asyncio.get_running_loop()
    users_read = loop.time()
    memory = MemoryWatch(dispatcher.memory_budget, dispatcher.back_pressure)
    full_collections = FullCollections()
    with ThreadPoolExecutor(1, thread_name_prefix="holdfast-sweep") as thread:
        try:
            while True:
                await asyncio.sleep(0 if sweeper.is_building else SERVER_SWEEP_SECONDS)
                sweeper.touch(dispatcher.take_written())
                dispatcher.recorder.touch(sweeper.touched)
                try:
                    if (
                        dispatcher.authenticator.is_stale
                        or loop.time() > users_read + USERS_REFRESH_SECONDS
                    ):
                        users_read = loop.time()
                        users = await loop.run_in_executor(
                            thread, users_of, dispatcher.store.engine
                        )
                        dispatcher.authenticator.refresh(users)
                    await loop.run_in_executor(thread, sweeper.round)
                    is_large = memory.should_return_memory()
                    full_collections.collect_if_due(
                        is_worthwhile=is_large
                    )  # on the loop: most of it is its own
                    if is_large:
                        await loop.run_in_executor(thread, return_memory)
                        memory.note_returned()
                except HoldfastError as error:  # an engine that is away now may be back later
                    dispatcher.report(error)
        finally:
            end()
            sweeper.stop()


async def _resume_defaults(dispatcher: Dispatcher) -> None:
    """Finishes what a crash has interrupted in the space of all domains."""
    store = dispatcher.store

    def resume() -> None:
        if store.has_space(EVERY_SPACE):
            cast(EveryDomainTables, store.space(EVERY_SPACE).tables).resume()

    try:
        await dispatcher.in_thread(resume)
    except HoldfastError as error:
        dispatcher.report(error)


class Sweeper:
    """Knows when each space has something due, and removes it then."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._touched: set[bytes] = {store.prefix}  # spaces to check in the next round
        self._next: dict[bytes, float] = {}  # when a space has something due, by its prefix
        self._queue: list[tuple[float, bytes]] = []  # the same as a heap, with outdated entries
        self._after: str | None = None  # where the walk over all spaces continues
        self._stopped = False
        self.is_building = False  # whether the last round left steps of work that are due

    def __len__(self) -> int:
        return len(self._next)

    def on_notice(self, notice: Notice) -> None:
        """Notes that some process has written to a space."""
        if notice.space != DIRECTORY:
            self._touched.add(notice.space)

    def touch(self, spaces: Iterable[bytes]) -> None:
        """Notes spaces that this server has written to."""
        self._touched.update(spaces)

    @property
    def touched(self) -> frozenset[bytes]:
        """The spaces that the next round checks."""
        return frozenset(self._touched)

    def stop(self) -> None:
        """Ends a running round after its current step."""
        self._stopped = True

    def round(self) -> None:
        """Removes what is due now. Reads 1 key for each space that it checks."""
        to_check, self._touched = self._touched, set()
        self.is_building = False
        to_check |= self._next_spaces()
        to_check |= self._due()
        while to_check and not self._stopped:
            prefix = to_check.pop()
            try:
                self._sweep_space(prefix)
            except UnknownSpace:
                self._next.pop(prefix, None)  # it has been dropped
            except HoldfastError:
                self._touched |= to_check | {prefix}
                raise
        if not self._stopped:
            self._store.resume_drops()

    def _next_spaces(self) -> set[bytes]:
        """Returns the next few of all spaces, in the order of their names."""
        page = self._store.page_of_spaces(after=self._after, limit=SWEPT_SPACES_PER_ROUND)
        self._after = page[-1][0] if len(page) == SWEPT_SPACES_PER_ROUND else None
        return {prefix for _, prefix in page}

    def _due(self) -> set[bytes]:
        now, found = self._store.engine.read_clock(), set()
        while self._queue and self._queue[0][0] <= now:
            at, prefix = heapq.heappop(self._queue)
            if self._next.get(prefix) == at:
                del self._next[prefix]
                found.add(prefix)
        return found

    def _sweep_space(self, prefix: bytes) -> None:
        runner = SpaceRunner(self._store.engine, prefix)
        with runner.view() as view:
            at, now = expiry.next_due(view), view.now
        if at is not None and at <= now:
            if self._sweep_due(runner):
                self._continue_at_once(prefix)
            self._build(prefix, runner)
            with runner.view() as view:
                at = expiry.next_due(view)
        self._watch(prefix, at)

    def _sweep_due(self, runner: SpaceRunner) -> bool:
        """Removes what is due, in steps; returns whether steps of work are left, which wait for no
        time to come."""
        has_steps = False
        for _ in range(SWEEP_STEPS_PER_ROUND):
            if self._stopped:
                return False
            has_steps = runner.sweep(EXPIRED_PER_STEP) < EXPIRED_PER_STEP
            if has_steps and not _has_due(runner):
                return False
        return has_steps

    def _build(self, prefix: bytes, runner: SpaceRunner) -> None:
        """Continues indexes and fan-outs at full speed; the sweep alone makes a step a second."""
        entities, events = StoreEntities(runner), StoreEvents(runner)
        for _ in range(SWEEP_STEPS_PER_ROUND):
            built = 0 if self._stopped else entities.build(most=1)
            if self._stopped or not (built + events.continue_fan_outs(most=1)):
                return
        self._continue_at_once(prefix)

    def _continue_at_once(self, prefix: bytes) -> None:
        self.is_building = True
        self._touched.add(prefix)  # so that the next round, which starts at once, checks it again

    def _watch(self, prefix: bytes, at: float | None) -> None:
        if at is None:
            self._next.pop(prefix, None)
            return
        if self._next.get(prefix) == at:
            return
        if prefix not in self._next and len(self._next) >= MAX_WATCHED_SPACES:
            return  # the walk over all spaces will get there
        self._next[prefix] = at
        heapq.heappush(self._queue, (at, prefix))
        if len(self._queue) > 2 * len(self._next) + 1_000:
            self._queue = [(at, prefix) for prefix, at in self._next.items()]
            heapq.heapify(self._queue)


def _has_due(runner: SpaceRunner) -> bool:
    with runner.view() as view:
        at = expiry.next_due(view)
        return at is not None and at <= view.now
