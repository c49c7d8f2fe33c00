"""Feeds the notices of all commits to the listeners of this process.

One subscription to the engine serves all connections. Notices of this server's own commits are
delivered before the callers of these commits get their replies; those of other processes follow
within milliseconds.
"""

import asyncio
import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Final

from holdfast.engine.contract import Engine, Notice, WriteWatch
from holdfast.errors import StoreBusy, StoreUnreachable
from holdfast.limits import NOTICE_POLL_SECONDS, WATCHED_NOTICE_POLL_SECONDS
from holdfast.server.loop_turns import LoopTurns

_log = logging.getLogger(__name__)

_KNOWN_TOPICS: Final = 1_024  # with a cached answer
_KNOWN_TOPIC_LETTERS: Final = 128

# A listener that takes long returns steps, so that others get their turn in between.
Listener = Callable[[Notice], Iterator[None] | None]
_Listening = tuple[bytes | None, str, Listener]


class NoticeFeed:
    """Delivers notices to listeners, on the event loop and in the order of their commits."""

    def __init__(self, engine: Engine, loop: asyncio.AbstractEventLoop, turns: LoopTurns) -> None:
        self._loop = loop
        self._turns = turns
        self._listeners: dict[int, _Listening] = {}
        # A snapshot of the listeners. The engine does not even keep what none of them wants.
        self._asked: tuple[_Listening, ...] = ()
        # The topic prefixes that listeners want, and how many want each.
        self._wanted_topics: Counter[str] = Counter()
        self._active_topics: tuple[str, ...] = ()
        self._answers: dict[str, bool] = {}  # results of `_may_want`, by topic
        self._subscription = engine.subscribe(wanted=self._is_wanted, may_want=self._may_want)
        # A remote engine learns of its own commits from its server, as of all others.
        opened = self._subscription
        self._poll_own = opened.poll if engine.is_remote else opened.poll_own
        self._order = threading.Lock()  # the thread that takes notices also schedules them
        self._last = 0
        self._closed = False
        # Writers of this process call `catch_up`; this is for commits of other processes. A
        # waiting thread would be woken by each of our own commits, and compete with them.
        self._next_look: asyncio.TimerHandle | None = None
        self._watch: WriteWatch | None = None
        self._thread: threading.Thread | None = None
        if engine.is_remote:  # a look is a round trip, and the server says when to look
            self._thread = threading.Thread(target=self._follow, name="holdfast-notice-feed")
            self._thread.start()
        else:
            self._watch = opened.watch()
            self._await_writes()

    def listen(
        self,
        listener: Listener,
        *,
        space: bytes | None = None,
        topic_prefix: str = "",
        passive: bool = False,
    ) -> Callable[[], None]:
        """Calls `listener` for each notice from now on; returns the function that stops it.

        A `passive` listener gets only what others want anyway, or what comes from other processes.
        """
        self._last += 1
        number = self._last
        self._listeners[number] = (space, topic_prefix, listener)
        self._asked = tuple(self._listeners.values())
        if not passive:
            self._want(topic_prefix, 1)

        def leave() -> None:
            if self._listeners.pop(number, None) is not None:
                self._asked = tuple(self._listeners.values())
                if not passive:
                    self._want(topic_prefix, -1)

        return leave

    def catch_up(self) -> bool:
        """Schedules the notices of all commits of this process that have returned, and returns
        whether there are any. May be called from any thread."""
        return self._schedule(self._poll_own)

    def _schedule(self, poll: Callable[[], list[Notice]]) -> bool:
        with self._order:
            notices = poll()
            if not notices or self._closed:
                return False
            self._loop.call_soon_threadsafe(self._publish, notices)
            return True

    def _is_wanted(self, notice: Notice) -> bool:
        where, topic = notice.space, notice.topic
        for space, topic_prefix, _ in self._asked:
            if (space is None or space == where) and topic.startswith(topic_prefix):
                return True
        return False

    def _may_want(self, topic_prefix: str) -> bool:
        answers = self._answers  # before the topics, which change first
        answer = answers.get(topic_prefix)
        if answer is None:
            topics = self._active_topics
            answer = topic_prefix.startswith(topics) or any(
                [wanted.startswith(topic_prefix) for wanted in topics]
            )
            if len(answers) < _KNOWN_TOPICS and len(topic_prefix) <= _KNOWN_TOPIC_LETTERS:
                answers[topic_prefix] = answer
        return answer

    def _want(self, topic_prefix: str, more: int) -> None:
        self._wanted_topics[topic_prefix] += more
        if not self._wanted_topics[topic_prefix]:
            del self._wanted_topics[topic_prefix]
        if len(self._wanted_topics) != len(self._active_topics):
            self._active_topics = tuple(self._wanted_topics)
            self._answers = {}

    def close(self) -> None:
        self._closed = True
        if self._next_look is not None:
            self._next_look.cancel()
        if self._watch is not None:
            self._loop.remove_reader(self._watch)
            self._watch.close()
        self._subscription.close()
        if self._thread is not None:
            self._thread.join()

    def _await_writes(self) -> None:
        """Looks again when another process may have committed: some time after a write to its file,
        or by polling if writes are not reported."""
        if self._watch is None:
            self._poll_after(NOTICE_POLL_SECONDS)
        else:
            self._poll_after(WATCHED_NOTICE_POLL_SECONDS)  # in case the system missed a write
            self._loop.add_reader(self._watch, self._poll_soon, self._watch)

    def _poll_soon(self, watch: WriteWatch) -> None:
        """Looks in a moment. A write comes before the commit that it is part of, and usually not
        alone: until then further writes are ignored."""
        watch.forget()
        self._loop.remove_reader(watch)
        self._poll_after(NOTICE_POLL_SECONDS)

    def _poll_after(self, seconds: float) -> None:
        if self._next_look is not None:
            self._next_look.cancel()
        self._next_look = self._loop.call_later(seconds, self._poll)

    def _poll(self) -> None:
        if not self._turns.has_steps_left:  # otherwise earlier notices are still being delivered
            with suppress(StoreBusy):  # no more views can be opened: try again
                self._schedule(self._subscription.poll)
        self._await_writes()

    def _follow(self) -> None:
        while self._subscription.wait():
            with suppress(StoreUnreachable):  # the subscription continues when the engine is back
                self._schedule(self._subscription.poll)

    def _publish(self, notices: list[Notice]) -> None:
        self._turns.run_steps(self._deliver(notices))

    def _deliver(self, notices: list[Notice]) -> Iterator[None]:
        for notice in notices:
            where, topic = notice.space, notice.topic
            for space, topic_prefix, listener in self._asked:
                if (space is None or space == where) and topic.startswith(topic_prefix):
                    try:
                        yield from listener(notice) or ()
                    except Exception:
                        # A failing listener must not keep the others from hearing.
                        _log.exception("a listener failed")
                    yield
