"""Views: consistent snapshots for `with` blocks, which take them with their first read."""

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from holdfast.engine.contract import Guard, Reader
from holdfast.engine.remote.counts import Counts
from holdfast.engine.remote.patience import Patience
from holdfast.engine.remote.protocol import (
    Backend,
    Commit,
    Committed,
    Page,
    Row,
    Session,
    Unreachable,
)
from holdfast.engine.remote.read_cache import LongKeyReader, ReadCache, ReadOnly
from holdfast.errors import StoreForked


class Views:
    """The views of an engine, above all those that have read nothing yet."""

    def __init__(
        self,
        backend: Backend,
        patience: Patience,
        counts: Counts,
        clock: Callable[[], float],
    ) -> None:
        self.backend = backend
        self.patience = patience
        self.counts = counts
        self.clock = clock
        self.unread: dict[int, ViewSession] = {}

    def open(self, space: bytes, guard: Guard | None) -> "View":
        return View(self, space, guard)

    def fix(self, space: bytes) -> None:
        """Has views take their snapshots before a commit of this process: a view takes its snapshot
        with its first read, which saves a round trip, and one that was opened before a commit must
        not see it."""
        if self.unread:
            for view in list(self.unread.values()):
                if view.space.startswith(space) or space.startswith(view.space):
                    view.fix()


class View:
    """A consistent snapshot for a `with` block."""

    __slots__ = ("_guard", "_session", "_space", "_views")

    def __init__(self, views: Views, space: bytes, guard: Guard | None) -> None:
        self._views = views
        self._space = space
        self._guard = guard

    def __enter__(self) -> Reader:
        views = self._views
        views.patience.refuse_unusable()
        self._session = ViewSession(views, self._space)
        seen = ReadCache(self._session, self._space, views.clock(), forgets=True)
        rule = views.backend.long_keys
        reader = ReadOnly(seen if rule is None else LongKeyReader(seen, rule), seen)
        if self._guard is not None:  # a read is a round trip: it goes along with the first one
            seen.guard(self._guard.key, self._guard.refuse, reader)
        return reader

    def __exit__(self, *exc: object) -> None:
        self._session.close()


class ViewSession:
    """A session that looks for a server that answers until it has read something. Later a lost
    connection means a lost snapshot, which can't be had again."""

    committed = False
    place: Any = None

    def __init__(self, views: Views, space: bytes) -> None:
        self._views = views
        self.space = space
        self._session: Session | None = None
        self._lock = threading.Lock()  # the snapshot may be fixed by a thread that commits
        self._closed = False
        views.unread[id(self)] = self

    def fetch(
        self, keys: Sequence[bytes], pages: Sequence[Page]
    ) -> tuple[list[Row | None], list[list[tuple[bytes, Row]]]]:
        views = self._views
        views.patience.refuse_unusable()
        views.counts.add("round_trips")
        if self._session is None:
            with self._lock:
                if self._session is None:
                    return views.patience.call(lambda: self._fetch_first(keys, pages))
        try:
            return self._session.fetch(keys, pages)
        except Unreachable as error:
            raise views.patience.explain(error) from error

    def fix(self) -> None:
        """Takes the snapshot, if there was none yet."""
        with self._lock:
            if self._session is None and not self._closed:
                self._views.counts.add("round_trips")
                self._fetch_first([self.space + b"\0"], [])

    def _fetch_first(
        self, keys: Sequence[bytes], pages: Sequence[Page]
    ) -> tuple[list[Row | None], list[list[tuple[bytes, Row]]]]:
        session = self._views.backend.session(self.space)
        try:
            found = session.fetch(keys, pages)
        except BaseException:
            session.close()
            raise
        self._session = session
        self._views.unread.pop(id(self), None)
        return found

    def commit(self, commit: Commit) -> Committed:
        raise NotImplementedError  # a view only reads

    def close(self) -> None:
        self._views.unread.pop(id(self), None)
        if isinstance(self._views.patience.unusable, StoreForked):
            return
        with self._lock:
            self._closed = True
            if self._session is not None:
                with suppress(Unreachable):
                    self._session.close()
