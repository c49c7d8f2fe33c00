"""Views: consistent snapshots for `with` blocks, taken with their first read."""

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final, TypeVar, cast

from holdfast.engine.contract import Guard, Reader
from holdfast.engine.remote.commit_counts import CommitCounts
from holdfast.engine.remote.long_key_reader import LongKeyReader
from holdfast.engine.remote.protocol import (
    Backend,
    BackendSession,
    Commit,
    Committed,
    ConnectionLost,
    RangeRead,
    Row,
    SingleReadSession,
)
from holdfast.engine.remote.read_cache import GuessingEnded, ReadCache, Rows
from holdfast.engine.remote.reconnector import Reconnector
from holdfast.errors import StoreForked, ViewOnlyReads
from holdfast.limits import MAX_PREFETCH_HINTS, MAX_REMEMBERED_VALUE_BYTES

T = TypeVar("T")

_NOTHING: Final = object()  # no result


class Views:
    """The views of an engine, in particular those that have read nothing yet."""

    def __init__(
        self,
        backend: Backend,
        reconnector: Reconnector,
        counts: CommitCounts,
        clock: Callable[[], float],
    ) -> None:
        self.backend = backend
        self.reconnector = reconnector
        self.counts = counts
        self.clock = clock
        self.without_snapshot: dict[int, ViewSession] = {}
        self.prefetch_hints: Rows = {}
        self._single: set[str] = set()  # kinds of reads that needed only one fetch

    def open(self, space: bytes, guard: Guard | None) -> "RemoteView":
        return RemoteView(self, space, guard)

    def read(self, work: Callable[[Reader], T], space: bytes, guard: Guard | None, kind: str) -> T:
        """Runs `work` on a view. If the last read of this `kind` needed one fetch, it gets the
        answer to a single fetch, for which a server keeps no snapshot."""
        if kind in self._single:
            try:
                return self._read_once(work, space, guard)
            except GuessingEnded:  # it read more than was predicted
                self._single.discard(kind)
        view = RemoteView(self, space, guard)
        with view as reader:
            result = self._run(work, reader, view.seen)
        self._learn(view.seen)
        if kind and view.seen.fetches == 1:
            self._single.add(kind)
        return result

    def _read_once(self, work: Callable[[Reader], T], space: bytes, guard: Guard | None) -> T:
        """Runs `work` on the answer to one fetch."""
        self.reconnector.refuse_unusable()
        session = cast(BackendSession, SingleFetch(self, space))
        seen = ReadCache(
            session, space, self.clock(), prefetch_hints=self.prefetch_hints, at_once=True
        )
        result = self._run(work, self.reader(seen, guard), seen)
        self._learn(seen)
        return result

    def _run(self, work: Callable[[Reader], T], reader: Reader, seen: ReadCache) -> T:
        """Runs `work`, first on the rows that led earlier reads to others; at the first row that is
        not among them, all are fetched. If these rows are unchanged, the run goes on; if not, it
        starts again."""
        if self.prefetch_hints:
            seen.begin_run(guessing=True)
            result = _guess(work, reader, seen)
            if result is not _NOTHING:
                return cast(T, result)
            seen.begin_run(guessing=False)
        return work(reader)

    def reader(self, seen: ReadCache, guard: Guard | None) -> "ReadOnly":
        rule = self.backend.long_keys
        reader = ReadOnly(seen if rule is None else LongKeyReader(seen, rule), seen)
        if guard is not None:  # checked along with the first read, which saves a round trip
            seen.guard(guard.key, guard.refuse, reader)
        return reader

    def _learn(self, seen: ReadCache) -> None:
        """Remembers the rows that told what to fetch next."""
        prefetch_hints = self.prefetch_hints
        for key, row in seen.first.items():
            if seen.fetches > 1 or key in prefetch_hints:
                if row is not None and len(row.value) > MAX_REMEMBERED_VALUE_BYTES:
                    prefetch_hints.pop(key, None)
                else:
                    prefetch_hints[key] = row
        if len(prefetch_hints) > MAX_PREFETCH_HINTS:
            self.prefetch_hints = {}

    def take_snapshots(self, space: bytes) -> None:
        """Makes open views take their snapshots before a commit of this process: a view takes its
        snapshot with its first read, which saves a round trip, but one that was opened before a
        commit must not see it."""
        if self.without_snapshot:
            for view in list(self.without_snapshot.values()):
                if view.space.startswith(space) or space.startswith(view.space):
                    view.take_snapshot()


class RemoteView:
    """A consistent snapshot for a `with` block."""

    __slots__ = ("_guard", "_session", "_space", "_views", "seen")

    def __init__(self, views: Views, space: bytes, guard: Guard | None) -> None:
        self._views = views
        self._space = space
        self._guard = guard

    def __enter__(self) -> Reader:
        views = self._views
        views.reconnector.refuse_unusable()
        self._session = ViewSession(views, self._space)
        self.seen = ReadCache(
            self._session, self._space, views.clock(), prefetch_hints=views.prefetch_hints
        )
        return views.reader(self.seen, self._guard)

    def __exit__(self, *exc: object) -> None:
        self._session.close()


class ReadOnly:
    """The reader of a view, which explains why it can't write."""

    def __init__(self, below: Reader, seen: ReadCache) -> None:
        self.space = seen.space
        self.now = seen.now
        self.get = below.get
        self.get_many = below.get_many
        self.scan = below.scan

    def __getattr__(self, name: str) -> Any:
        if name in ("put", "delete", "clear", "add", "after_commit"):
            raise ViewOnlyReads(f"a view is read-only and can't {name}")
        raise AttributeError(name)


class SingleFetch:
    """The session of a read that is given one answer. It keeps no snapshot, so a commit of this
    process need not wait until it has one."""

    __slots__ = ("_space", "_views")

    place = None

    def __init__(self, views: Views, space: bytes) -> None:
        self._views = views
        self._space = space

    def fetch(
        self, keys: Sequence[bytes], pages: Sequence[RangeRead]
    ) -> tuple[list[Row | None], list[list[tuple[bytes, Row]]]]:
        self._views.counts.add("round_trips")
        return self._views.reconnector.call(lambda: self._fetch(keys, pages))

    def _fetch(
        self, keys: Sequence[bytes], pages: Sequence[RangeRead]
    ) -> tuple[list[Row | None], list[list[tuple[bytes, Row]]]]:
        session = self._views.backend.session(self._space)
        try:
            if hasattr(session, "fetch_once"):  # quicker than `isinstance`
                found = cast(SingleReadSession, session).fetch_once(keys, pages)
            else:
                found = session.fetch(keys, pages)
            session.confirm()
        finally:
            session.close()
        return found


class ViewSession:
    """A session that tries again to reach a server until it has read something. After that, a lost
    connection means a lost snapshot, which can't be recovered."""

    committed = False
    place: Any = None

    def __init__(self, views: Views, space: bytes) -> None:
        self._views = views
        self.space = space
        self._session: BackendSession | None = None
        self._lock = threading.Lock()  # a thread that commits may take the snapshot
        self._closed = False
        views.without_snapshot[id(self)] = self

    def fetch(
        self, keys: Sequence[bytes], pages: Sequence[RangeRead]
    ) -> tuple[list[Row | None], list[list[tuple[bytes, Row]]]]:
        views = self._views
        views.reconnector.refuse_unusable()
        views.counts.add("round_trips")
        if self._session is None:
            with self._lock:
                if self._session is None:
                    return views.reconnector.call(lambda: self._fetch_first(keys, pages))
        try:
            return self._session.fetch(keys, pages)
        except ConnectionLost as error:
            raise views.reconnector.explain(error) from error

    def take_snapshot(self) -> None:
        """Takes the snapshot, if there was none yet."""
        with self._lock:
            if self._session is None and not self._closed:
                self._views.counts.add("round_trips")
                self._fetch_first([self.space + b"\0"], [])

    def _fetch_first(
        self, keys: Sequence[bytes], pages: Sequence[RangeRead]
    ) -> tuple[list[Row | None], list[list[tuple[bytes, Row]]]]:
        session = self._views.backend.session(self.space)
        try:
            found = session.fetch(keys, pages)
            session.confirm()
        except BaseException:
            session.close()
            raise
        self._session = session
        self._views.without_snapshot.pop(id(self), None)
        return found

    def commit(self, commit: Commit) -> Committed:
        raise NotImplementedError  # a view only reads

    def confirm(self) -> None:
        """Does nothing: each reply to a view was confirmed."""

    def close(self) -> None:
        self._views.without_snapshot.pop(id(self), None)
        if isinstance(self._views.reconnector.unusable, StoreForked):
            return
        with self._lock:
            self._closed = True
            if self._session is not None:
                with suppress(ConnectionLost):
                    self._session.close()


def _guess(work: Callable[[Reader], Any], reader: Reader, seen: ReadCache) -> Any:
    """Returns the result of a run that began on guesses, or _NOTHING if some were wrong: then the
    real values are known."""
    try:
        result = work(reader)
    except GuessingEnded:
        if seen.guessing:
            seen.fetch_missed()
        return _NOTHING
    except Exception:
        if not seen.guessing:
            raise
        seen.fetch_missed()
        return _NOTHING
    if seen.guessing and seen.guessed:
        seen.fetch_missed()
        return result if seen.guessed_right() else _NOTHING
    return result
