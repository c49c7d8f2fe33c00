"""Notices of commits for event loops: one subscription and one thread for all listeners."""

import asyncio
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Any, NamedTuple, Self

from holdfast.engine.contract import Engine, Notice, Subscription, topics_overlap
from holdfast.errors import BadInput, StoreBusy, StoreUnusable
from holdfast.limits import MAX_QUEUED_NOTICES

_CHECK_SECONDS = 1.0  # how often the thread checks whether there are listeners


class _Listener(NamedTuple):
    space: bytes
    topic_prefix: str
    on_notice: Callable[[Notice], None]  # called in the thread of the notices

    def wants(self, notice: Notice) -> bool:
        return notice.space == self.space and notice.topic.startswith(self.topic_prefix)


class Notices:
    """Passes the notices of a store to any number of listeners, in the order of their commits."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._changed = threading.Condition()  # guards what follows
        self._listeners: dict[object, _Listener] = {}
        self._subscription: Subscription | None = None
        self._is_closed = False
        self._ends: dict[object, Callable[[], None]] = {}
        self._order = threading.Lock()  # held while notices are read and passed on in their order

    @property
    def is_closed(self) -> bool:
        """Returns whether the store is closed, so that no more notices will come."""
        return self._is_closed

    def listen(
        self,
        space: bytes,
        topic_prefix: str,
        on_notice: Callable[[Notice], None],
        end: Callable[[], None],
    ) -> Callable[[], None]:
        """Calls `on_notice` for each notice from now on, and `end` when the store is closed, both
        from another thread. Returns the function that ends it."""
        token = object()
        with self._changed:
            self._listeners = {**self._listeners, token: _Listener(space, topic_prefix, on_notice)}
            self._ends[token] = end
            if self._subscription is None and not self._is_closed:
                self._begin()
            self._changed.notify_all()

        def leave() -> None:
            with self._changed:
                self._listeners = {k: v for k, v in self._listeners.items() if k is not token}
                self._ends.pop(token, None)

        return leave

    def _begin(self) -> None:
        self._subscription = self._engine.subscribe(
            wanted=lambda notice: any(each.wants(notice) for each in self._listeners.values()),
            may_want=lambda topic: any(
                topics_overlap(topic, each.topic_prefix) for each in self._listeners.values()
            ),
        )
        threading.Thread(target=self._follow, name="holdfast-async-notices", daemon=True).start()

    def _follow(self) -> None:
        subscription = self._subscription
        assert subscription is not None
        while not self._is_closed:
            with self._changed:
                if not self._listeners:
                    self._changed.wait(_CHECK_SECONDS)
                    continue
            # An engine that can't be reached is tried again: the subscription continues then.
            with suppress(StoreUnusable):
                if subscription.wait(_CHECK_SECONDS):
                    self.deliver()

    def deliver(self) -> None:
        """Passes on the notices of all commits that have returned; call it from any thread."""
        with self._order, suppress(StoreBusy):  # too many open views: the next call tries again
            if self._subscription is None or self._is_closed:
                return
            for notice in self._subscription.poll():
                for listener in self._listeners.values():
                    if listener.wants(notice):
                        listener.on_notice(notice)

    def close(self) -> None:
        with self._changed:
            self._is_closed = True
            ends, self._ends, self._listeners = list(self._ends.values()), {}, {}
            self._changed.notify_all()
        with self._order:
            if self._subscription is not None:
                self._subscription.close()
        for end in ends:
            end()


def call_on_loop(loop: asyncio.AbstractEventLoop, call: Callable[..., Any], *values: Any) -> None:
    """Calls something on an event loop, from another thread, if the loop is still open."""
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(call, *values)


class StoreSubscription:
    """The notices of one space whose topics have a common prefix, from `async with` on.

    A subscriber that is too slow loses the oldest, and `missed` grows: read again what you follow.
    """

    def __init__(self, notices: Notices, space: Callable[[], Any], topic_prefix: str) -> None:
        self._notices = notices
        self._find_space = space
        self._topic = topic_prefix
        self._queue: deque[Notice] = deque()
        self._arrived = asyncio.Event()
        self._leave: Callable[[], None] | None = None
        self._is_closed = False
        self.missed = 0

    async def get(self, timeout: float | None = None) -> Notice | None:
        """Returns the next notice, or None after `timeout` seconds (None waits for ever) or when
        closed."""
        self._refuse_outside()
        try:
            async with asyncio.timeout(timeout):
                while not self._queue and not self._is_closed:
                    self._arrived.clear()
                    await self._arrived.wait()
        except TimeoutError:
            return None
        return self._queue.popleft() if self._queue else None

    async def poll(self) -> list[Notice]:
        """Returns all notices of finished commits that were not returned yet."""
        self._refuse_outside()
        await asyncio.to_thread(self._notices.deliver)
        notices = list(self._queue)
        self._queue.clear()
        return notices

    async def close(self) -> None:
        """Ends the subscription. A waiting `get` returns None."""
        if self._leave is not None:
            self._leave()
        self._end()

    async def __aenter__(self) -> Self:
        space = await self._find_space()
        loop = asyncio.get_running_loop()
        self._leave = self._notices.listen(
            space.prefix,
            self._topic,
            lambda notice: call_on_loop(loop, self._on_notice, notice),
            lambda: call_on_loop(loop, self._end),
        )
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    async def __aiter__(self) -> AsyncIterator[Notice]:
        while (notice := await self.get()) is not None:
            yield notice

    def _on_notice(self, notice: Notice) -> None:
        self._queue.append(notice)
        if len(self._queue) > MAX_QUEUED_NOTICES:
            self._queue.popleft()
            self.missed += 1
        self._arrived.set()

    def _end(self) -> None:
        self._is_closed = True
        self._arrived.set()

    def _refuse_outside(self) -> None:
        if self._leave is None:
            raise BadInput(
                "the subscription is not open yet", hint="Begin with `async with ... as notices`."
            )
