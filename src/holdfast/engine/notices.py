"""Subscriptions to the notices of commits, from every process on a store.

The engine keeps notices in a log next to the data, written by the commit itself. The hub follows
that log for all subscribers of a process. A commit of its own process wakes it at once; of commits
of other processes it learns from a watch on the file, by polling every few milliseconds if there is
none, or from a server. A subscriber that only polls reads the log by itself; then the hub looks
rarely, only to keep up, and no commit wakes it.
"""

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, Protocol, Self

from holdfast.engine.contract import Notice
from holdfast.engine.file_watch import FileWatch
from holdfast.errors import StoreBusy, StoreClosed, StoreUnreachable
from holdfast.limits import MAX_QUEUED_NOTICE_BYTES, MAX_QUEUED_NOTICES

_logger = logging.getLogger(__name__)

POLL_SECONDS: Final = 0.002  # while someone waits, without a watch
WATCHED_POLL_SECONDS: Final = 0.05  # with a watch, in case the system missed a write
_NOTICE_BYTES: Final = 150  # memory of a notice, besides its payload and topic
IDLE_POLL_SECONDS: Final = 0.02  # while nobody waits


class Log(Protocol):
    """The engine's record of notices, in the order of their commits."""

    def newest_notice(self) -> Any:
        """Returns the position in the log after all commits that have returned."""
        ...

    def notices_since(self, place: Any) -> tuple[Any, int, list[Notice]]:
        """Returns the new position, how many commits in between were dropped, and the notices."""
        ...


class NoticeHub:
    """Follows the log while anyone is subscribed, and delivers each notice to those who want it."""

    def __init__(
        self, log: Log, *, poll_seconds: float = POLL_SECONDS, watched: tuple[Path, ...] = ()
    ) -> None:
        self._log = log
        self._watched = watched  # every commit of another process with notices writes to one
        self._watch: FileWatch | None = None  # of the thread that follows, while there is one
        self._poll_seconds = poll_seconds  # seconds between checks without a wake-up
        self._lock = threading.Lock()  # guards the position and the list of subscribers
        self._woken = threading.Event()
        self._subscriptions: tuple[NoticeSubscription, ...] = ()
        self._place: Any = None
        self.is_behind = False  # a commit of this process has left notices that nobody has read
        self._thread: threading.Thread | None = None
        self._closed = False

    def has_listeners(self) -> bool:
        """Returns whether anyone in this process listens."""
        return bool(self._subscriptions)

    def heard(self, notices: list[Notice]) -> list[Notice]:
        """Returns the notices that someone in this process wants right now."""
        subscriptions = self._subscriptions
        # A group has many notices with few topics, and mostly nobody wants any of these.
        for topic in {notice.topic for notice in notices}:
            for subscription in subscriptions:
                if subscription.may_want is None or subscription.may_want(topic):
                    return [
                        notice
                        for notice in notices
                        if any([each.wants_own(notice) for each in subscriptions])
                    ]
        return []

    def may_want(self, topic_prefix: str) -> bool:
        """Returns whether anyone in this process may want topics that begin with `topic_prefix`."""
        for subscription in self._subscriptions:
            if subscription.may_want is None or subscription.may_want(topic_prefix):
                return True
        return False

    def place(self) -> Any:
        """Returns the position up to which all subscribers of this process have received notices;
        None without subscribers.

        A subscriber that joins meanwhile starts after it.
        """
        place = self._place
        return place if self._subscriptions else None

    def wake(self) -> None:
        """Wakes the hub: a commit of this process left notices, or a subscriber begins to wait."""
        self.is_behind = True
        if self._someone_waits():
            self._wake_follower()

    def subscribe(
        self, wanted: Callable[[Notice], bool], may_want: Callable[[str], bool] | None = None
    ) -> "NoticeSubscription":
        subscription = NoticeSubscription(self, wanted, may_want)
        with self._lock:
            if self._closed:
                raise StoreClosed("the store was closed while a subscription was opened")
            if self._subscriptions:
                self._catch_up()
            else:
                self._place = self._log.newest_notice()
            self._subscriptions += (subscription,)
            if self._thread is None:
                self._start_following()
        return subscription

    def forget(self, subscription: "NoticeSubscription") -> None:
        with self._lock:
            self._subscriptions = tuple(s for s in self._subscriptions if s is not subscription)

    def _someone_waits(self) -> bool:
        return any([subscription.waiting for subscription in self._subscriptions])

    def watch(self) -> FileWatch | None:
        return FileWatch.of(*self._watched) if self._watched else None

    def catch_up(self) -> None:
        """Delivers the notices of all commits that have returned so far."""
        with self._lock:
            if not self._closed:
                self._catch_up()

    def close(self) -> None:
        with self._lock:
            self._closed = True
            subscriptions, self._subscriptions = self._subscriptions, ()
            thread = self._thread
        self._wake_follower()
        for subscription in subscriptions:
            subscription.end()
        if thread is not None and thread is not threading.current_thread():
            thread.join()
        if self._watch is not None:
            self._watch.close()

    def forked(self) -> None:
        """Called in a child process, where no thread follows and locks may be held for ever."""
        self._lock = threading.Lock()
        self._closed = True
        for subscription in self._subscriptions:
            subscription.forked()

    def _catch_up(self) -> None:
        self.is_behind = False  # before it reads, so that the next call reads what comes meanwhile
        self._place, forgotten, notices = self._log.notices_since(self._place)
        if notices or forgotten:
            for subscription in self._subscriptions:
                subscription.deliver(notices, forgotten)

    def _start_following(self) -> None:
        if self._watch is None:
            self._watch = self.watch()
        self._thread = threading.Thread(target=self._follow, name="holdfast-notices", daemon=True)
        self._thread.start()

    def _wake_follower(self) -> None:
        watch = self._watch
        if watch is None:
            self._woken.set()
        else:
            watch.wake()

    def _try_to_catch_up(self) -> Exception | None:
        """Catches up if possible, and returns an error that is worth reporting. This thread is the
        only one that reads the notices of other processes, so no failure may end it."""
        # If no more views can be opened, or no server answers, there is nothing to read from.
        try:
            self._catch_up()
        except (StoreBusy, StoreUnreachable):
            pass
        except Exception as error:
            return error
        return None

    def _follow(self) -> None:
        written = False
        reported: Exception | None = None
        while True:
            written = self._wait(written)
            with self._lock:
                # An idle hub keeps no thread: the next subscriber starts one again.
                if self._closed or not self._subscriptions:
                    self._thread = None
                    return
                failure = self._try_to_catch_up()
            if failure is not None and type(failure) is not type(reported):
                _logger.error("notices can't be read, and are tried again: %r", failure)
            reported = failure

    def _wait(self, written: bool) -> bool:
        """Returns when it is time to look, and whether that is because the file was written to.

        A write is noticed before its commit can be read, so a second check follows each one.
        Further writes are ignored until then, so that the number of checks is bounded.
        """
        seconds, watch = self._poll_seconds, self._watch
        is_awaited = self._someone_waits()
        if not is_awaited:
            seconds = max(seconds, IDLE_POLL_SECONDS)
        if watch is None:
            self._woken.wait(seconds)
            self._woken.clear()
            return False
        if written or not is_awaited:
            watch.wait(seconds, for_writes=False)
            return False
        return watch.wait(WATCHED_POLL_SECONDS)


def notice_filter(
    topic_prefix: str, space: bytes | None, wanted: Callable[[Notice], bool] | None
) -> Callable[[Notice], bool]:
    """Returns the filter of a subscription: by topic, by space, and by the subscriber itself."""
    if wanted is not None and not topic_prefix and space is None:
        return wanted

    def accepts(notice: Notice) -> bool:
        return (
            notice.topic.startswith(topic_prefix)
            and space in (None, notice.space)
            and (wanted is None or wanted(notice))
        )

    return accepts


def bytes_of(notice: Notice) -> int:
    """Returns about how much memory a notice takes."""
    return len(notice.payload) + len(notice.topic) + _NOTICE_BYTES


class NoticeSubscription:
    """Notices in commit order, for one subscriber."""

    def __init__(
        self,
        hub: NoticeHub,
        wanted: Callable[[Notice], bool],
        may_want: Callable[[str], bool] | None = None,
    ) -> None:
        self._hub = hub
        self.wants = wanted
        self.may_want = may_want  # tells whether topics with a prefix are wanted; None: all are
        self._queue: deque[Notice] = deque()
        self._bytes = 0  # of what is in the queue
        self._arrived = threading.Condition()
        self.waiting = 0  # threads that wait for a notice
        self._missed = 0
        self._open = True

    @property
    def missed(self) -> int:
        return self._missed

    def wants_own(self, notice: Notice) -> bool:
        """Returns whether a notice of this process is to be kept for the subscriber."""
        # Usually not: the cheaper check comes first.
        return (self.may_want is None or self.may_want(notice.topic)) and self.wants(notice)

    def deliver(self, notices: list[Notice], forgotten: int) -> None:
        """Queues the notices, and drops the oldest if the subscriber does not keep up."""
        mine = [notice for notice in notices if self.wants(notice)]
        with self._arrived:
            self._missed += forgotten
            self._queue.extend(mine)
            self._bytes += sum([bytes_of(notice) for notice in mine])
            # The newest is kept, however large it is.
            while len(self._queue) > 1 and (
                len(self._queue) > MAX_QUEUED_NOTICES or self._bytes > MAX_QUEUED_NOTICE_BYTES
            ):
                self._bytes -= bytes_of(self._queue.popleft())
                self._missed += 1
            if mine and self.waiting:
                self._arrived.notify_all()

    def get(self, timeout: float | None = None) -> Notice | None:
        self._wait(timeout)
        with self._arrived:
            if not self._queue:
                return None
            notice = self._queue.popleft()
            self._bytes -= bytes_of(notice)
            return notice

    def wait(self, timeout: float | None = None) -> bool:
        self._wait(timeout)
        return self._open and bool(self._queue)

    def _wait(self, timeout: float | None) -> None:
        with self._arrived:
            if self._queue or not self._open:
                return
            self.waiting += 1
        try:
            self._hub.wake()  # the hub may have just checked, and be about to sleep for long
            with self._arrived:
                self._arrived.wait_for(lambda: self._queue or not self._open, timeout)
        finally:
            with self._arrived:
                self.waiting -= 1

    def watch(self) -> FileWatch | None:
        """Returns a watch on the file that every commit of another process writes to; None if there
        can be none. The caller closes it."""
        return self._hub.watch()

    def poll_own(self) -> list[Notice]:
        """Like `poll`, if a commit of this process has left notices."""
        return self.poll() if self._hub.is_behind or self._queue else []

    def poll(self) -> list[Notice]:
        self._hub.catch_up()
        if not self._queue:  # the usual case; `catch_up` has delivered what there is
            return []
        with self._arrived:
            notices = list(self._queue)
            self._queue.clear()
            self._bytes = 0
        return notices

    def __iter__(self) -> Iterator[Notice]:
        while (notice := self.get()) is not None:
            yield notice

    def forked(self) -> None:
        self._arrived = threading.Condition()
        self._open = False

    def end(self) -> None:
        with self._arrived:
            self._open = False
            self._arrived.notify_all()

    def close(self) -> None:
        self._hub.forget(self)
        self.end()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
