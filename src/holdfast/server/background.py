"""Background work of a server: removes what has expired and continues long work.

A space in which nothing is due costs nothing. The server knows when each space has something due
next, and looks again at a space that was written to: by this server or, as far as notices tell, by
another process. A slow walk over all spaces finds the rest. Each round visits a bounded number of
spaces, so its work does not grow with the number of spaces.
"""

import asyncio
import heapq
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import cast

from holdfast import expiry
from holdfast.binding import EVERY_SPACE
from holdfast.engine.contract import Notice
from holdfast.entities.store import StoreEntities
from holdfast.errors import Conflict, StoreUnusable, UnknownSpace
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
    sweeper = Sweeper(dispatcher.store)
    end = dispatcher.notice_feed.listen(sweeper.on_notice, passive=True)
    thread = ThreadPoolExecutor(1, thread_name_prefix="holdfast-sweep")
    tasks = _BackgroundTasks(dispatcher, sweeper, thread)
    try:
        await tasks.run(tasks.resume_defaults)
        while True:
            await asyncio.sleep(0 if sweeper.is_building else SERVER_SWEEP_SECONDS)
            await tasks.run(tasks.refresh_users)
            await tasks.run(tasks.remove_what_is_due)
            await tasks.run(tasks.return_memory)
    finally:
        end()
        sweeper.stop()
        # Not on the loop, which answers requests while the last step waits for its engine.
        await asyncio.get_running_loop().run_in_executor(None, thread.shutdown)


class _BackgroundTasks:
    """Runs the regular tasks of a server. One that fails is logged, and delays no other."""

    def __init__(
        self, dispatcher: Dispatcher, sweeper: "Sweeper", thread: ThreadPoolExecutor
    ) -> None:
        self._dispatcher, self._sweeper, self._thread = dispatcher, sweeper, thread
        self._loop = asyncio.get_running_loop()
        self._users_read = self._loop.time()
        self._memory = MemoryWatch(dispatcher.memory_budget, dispatcher.back_pressure)
        self._full_collections = FullCollections()

    async def run(self, task: Callable[[], Awaitable[None]]) -> None:
        try:
            await task()
        except Exception as error:  # an engine that is away now may be back later
            self._dispatcher.report(error)

    async def resume_defaults(self) -> None:
        """Finishes what a crash has interrupted in the space of all domains."""
        store = self._dispatcher.store

        def resume() -> None:
            if store.has_space(EVERY_SPACE):
                cast(EveryDomainTables, store.space(EVERY_SPACE).tables).resume()

        await self._dispatcher.in_thread(resume)

    async def refresh_users(self) -> None:
        """Reads the users again if they have changed, and from time to time."""
        dispatcher = self._dispatcher
        is_time = self._loop.time() > self._users_read + USERS_REFRESH_SECONDS
        if is_time or dispatcher.authenticator.is_stale:
            self._users_read = self._loop.time()
            users = await self._loop.run_in_executor(
                self._thread, users_of, dispatcher.store.engine
            )
            dispatcher.authenticator.refresh(users)

    async def remove_what_is_due(self) -> None:
        """Sweeps the spaces in which something may be due."""
        sweeper, dispatcher = self._sweeper, self._dispatcher
        sweeper.touch(dispatcher.take_written())
        dispatcher.recorder.touch(sweeper.touched)
        for error in await self._loop.run_in_executor(self._thread, sweeper.round):
            dispatcher.report(error)

    async def return_memory(self) -> None:
        """Returns free memory to the system, if there is much."""
        is_large = self._memory.should_return_memory()
        # On the loop: most of it is its own.
        self._full_collections.collect_if_due(is_worthwhile=is_large)
        if is_large:
            await self._loop.run_in_executor(self._thread, return_memory)
            self._memory.note_returned()


class Sweeper:
    """Knows when each space has something due, and removes it then."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._touched: set[bytes] = {store.prefix}  # spaces to check in the next round
        self._next: dict[bytes, float] = {}  # when a space has something due, by its prefix
        self._queue: list[tuple[float, bytes]] = []  # the same as a heap, with outdated entries
        self._after: str | None = None  # where the walk over all spaces continues
        # Spaces whose engine did not answer when they were last checked, in that order.
        self._unanswered: dict[bytes, None] = {}
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

    def round(self) -> list[Exception]:
        """Removes what is due now; returns what failed, which delays no other space.

        Reads 1 key for each space that it checks.
        """
        to_check, self._touched = self._touched, set()
        self.is_building = False
        to_check |= self._next_spaces()
        to_check |= self._due()
        errors: list[Exception] = []
        # A call may wait for the node of such a space for half a minute, so they come last.
        last = [prefix for prefix in reversed(self._unanswered) if prefix in to_check]
        waiting = [*last, *to_check.difference(last)]
        while waiting and not self._stopped:
            prefix = waiting.pop()
            self._unanswered.pop(prefix, None)
            try:
                self._sweep_space(prefix)
            except UnknownSpace:
                self._next.pop(prefix, None)  # it has been dropped
            except (StoreUnusable, Conflict) as error:
                errors.append(error)
                self._unanswered[prefix] = None
                self._touched.update(waiting, [prefix])
                break
            except Exception as error:  # a damaged record: what it belongs to is tried again later
                errors.append(error)
        if not self._stopped:
            self._store.resume_drops()
        return errors

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
