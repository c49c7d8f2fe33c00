"""The engine itself: groups of transactions for each space, views, and what is done when a commit
is in conflict or the server is gone."""

import os
import random
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

from holdfast.engine.contract import (
    Backup,
    Draws,
    EngineSubscription,
    Guard,
    Notice,
    Outcome,
    Reader,
    Transaction,
)
from holdfast.engine.group_commit import CommitRequest, Work
from holdfast.engine.notices import NoticeHub, notice_filter
from holdfast.engine.remote.protocol import (
    AddRefused,
    Backend,
    Commit,
    Conflicted,
    Locking,
    Page,
    Row,
    Session,
    SnapshotLost,
    Unreachable,
    Unsettled,
)
from holdfast.engine.remote.read_cache import LongKeyReader, ReadCache, ReadOnly
from holdfast.engine.remote.space_queue import SpaceQueues
from holdfast.engine.remote.transaction import Below, Writes
from holdfast.errors import (
    Conflict,
    HoldfastError,
    NotACounter,
    OutcomeUnknown,
    StoreClosed,
    StoreForked,
    StoreUnreachable,
    StoreUnusable,
)
from holdfast.limits import (
    CONTENDED_SECONDS,
    MAX_CONFLICT_PAUSE_SECONDS,
    MAX_CONFLICT_RUNS,
    MAX_GUESSING_RUNS,
    MAX_REMEMBERED_KEYS,
    RECONNECT_SECONDS,
    REMOTE_POLL_SECONDS,
)

T = TypeVar("T")

_FIRST_CONFLICT_PAUSE_SECONDS: Final = 0.001
_RECONNECT_PAUSE_SECONDS: Final = 0.05
_MAX_MEMORIES: Final = 1_000  # spaces

Publish = Callable[[list[Outcome[Any]]], None]  # tells the callers of a group what became of it


class RemoteEngine:
    """Any backend as an engine."""

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
        self._reconnect_seconds = reconnect_seconds
        self._lines = SpaceQueues()
        self._unread: dict[int, _ViewSession] = {}  # views that have not read anything yet
        self._exclusive = backend.exclusive_session if isinstance(backend, Locking) else None
        self._contended: dict[bytes, float] = {}  # until when others are expected in a space
        self._memories: dict[bytes, dict[bytes, bytes]] = {}
        self._unusable: StoreUnusable | None = None
        self._counted = threading.Lock()
        self._counts = dict.fromkeys(("groups", "transactions", "conflicts", "round_trips"), 0)
        self._notices = NoticeHub(self, poll_seconds=REMOTE_POLL_SECONDS)
        self._listener: threading.Thread | None = None
        self._stopped = threading.Event()
        _close_in_forked_children(self)

    # --- transactions ----------------------------------------------------------------------------

    def view(self, *, space: bytes = b"", guard: Guard | None = None) -> "_View":
        return _View(self, space, guard)

    def transact(self, work: Callable[[Transaction], T], *, space: bytes = b"") -> T:
        [outcome] = self._serve(CommitRequest((work,), (space,)), space)
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
            raise ValueError(f"{len(works)} works were given, and {len(spaces)} spaces for them")
        outcomes: list[Outcome[Any]] = [Outcome()] * len(works)
        for space, numbers in _parts(spaces):
            part = CommitRequest([works[number] for number in numbers], [space] * len(numbers))
            for number, outcome in zip(numbers, self._serve(part, space), strict=True):
                outcomes[number] = outcome
        return outcomes

    @contextmanager
    def transaction(self, *, space: bytes = b"") -> Iterator[Transaction]:
        request = CommitRequest()
        with self._lines.join(space, self._refuse_unusable) as group_commit:
            try:
                group_commit.take(request)
                yield from self._run_block(space)
            finally:
                group_commit.leave(request)

    def _run_block(self, space: bytes) -> Iterator[Transaction]:
        """A transaction that can't be run again: what would do so is an error here."""
        run = self._begin(space, self._clock())
        writes = run.writes(run.base, space, run.seen.now, careful=False)
        try:
            yield writes
            commit = writes.commit_of(run.seen, self.backend.long_keys)
            if commit.writes:
                self._fix_views(space)
                run.session.commit(commit)
        except Conflicted:
            self._count("conflicts")
            raise Conflict("what this transaction read was changed by another one") from None
        except AddRefused:
            raise NotACounter(
                "the transaction added to a value that is no counter, or beyond its 64 bits"
            ) from None
        except Unreachable as error:
            raise self._unreachable(error) from error
        except Unsettled as lost:
            if not self._settle(lost):
                raise Conflict("the connection was lost, and nothing was written") from lost
        finally:
            run.session.close()
            self._count("round_trips", run.seen.fetches + 1)
        self._committed(commit, 1)

    def _serve(self, request: CommitRequest, space: bytes) -> list[Outcome[Any]]:
        """Has a request run, by this thread or by the one that leads its group."""
        with self._lines.join(space, self._refuse_unusable) as group_commit:
            try:
                if group := group_commit.take(request):
                    interrupted = self._run_group(group, space)
                    if interrupted:
                        raise KeyboardInterrupt
            finally:
                # After Ctrl-C in the leader's thread, the others' work is for the next leader.
                group_commit.leave(request)
        return request.outcomes  # type: ignore[return-value]  # set by the leader of its group

    def _run_group(self, group: list[CommitRequest], space: bytes) -> bool:
        """Commits a group together. If that can't be done, each transaction alone: one that is too
        large for the server must not take the others with it. Says whether Ctrl-C came after all
        was done."""
        works = [work for request in group for work in request.works]

        def publish(outcomes: list[Outcome[Any]]) -> None:
            _publish(group, outcomes)

        try:
            return self._run_together(works, space, publish)
        except HoldfastError as error:
            if len(works) < 2 or isinstance(error, StoreUnreachable | OutcomeUnknown | Conflict):
                publish([Outcome(error=error) for _ in works])
                return False
        outcomes: list[Outcome[Any]] = []
        for work in works:
            try:
                self._run_together([work], space, outcomes.extend)
            except HoldfastError as error:
                outcomes.append(Outcome(error=error))
        publish(outcomes)
        return False

    def _run_together(self, works: list[Work], space: bytes, publish: Publish) -> bool:
        """Runs a group until its commit succeeds, and says whether Ctrl-C came right after it."""
        times = [self._read_time() for _ in works]
        draws = [Draws() for _ in works]
        careful = False
        conflicts = 0
        gone_until: float | None = None
        while True:
            self._refuse_unusable()
            run = self._begin(space, 0.0, exclusive=space in self._contended)
            interrupted = False
            try:
                outcomes, commit = self._run(run, works, times, draws, careful)
                if commit.writes:
                    self._fix_views(space)
                    self._count("round_trips")
                    run.session.commit(commit)
                publish(outcomes)
            except Conflicted:
                conflicts += 1
                self._count("conflicts")
                self._expect_others(space)
                self._pause(conflicts)
                continue
            except AddRefused:
                careful = True  # the transaction that is to blame will notice by itself
                continue
            except Unreachable as error:
                gone_until = self._wait_for_server(gone_until, error)
                continue
            except Unsettled as lost:
                interrupted = isinstance(lost.__cause__, KeyboardInterrupt)
                if not self._settle(lost):
                    if interrupted:
                        raise KeyboardInterrupt from lost
                    reason = Unreachable(str(lost.__cause__ or "the connection was lost"))
                    gone_until = self._wait_for_server(gone_until, reason)
                    continue
                publish(outcomes)
            except KeyboardInterrupt:
                if not run.session.committed:
                    raise
                publish(outcomes)
                interrupted = True
            finally:
                run.session.close()
                self._count("round_trips", run.seen.fetches)
            self._committed(commit, len(works))
            return interrupted

    def _run(
        self,
        run: "_Run",
        works: list[Work],
        times: list[float | BaseException],
        draws: list[Draws],
        careful: bool,
    ) -> tuple[list[Outcome[Any]], Commit]:
        """Runs the works of a group on one snapshot: first guessing, so that all reads share round
        trips, then for good."""
        seen = run.seen
        for _ in range(MAX_GUESSING_RUNS):
            seen.begin_run(guessing=True)
            outcomes, writes = self._run_once(run, works, times, draws, careful)
            if not seen.guessed:
                break
            seen.fetch_missed()
        else:
            seen.begin_run(guessing=False)
            outcomes, writes = self._run_once(run, works, times, draws, careful)
        seen.begin_end()
        return outcomes, writes.commit_of(seen, self.backend.long_keys)

    def _run_once(
        self,
        run: "_Run",
        works: list[Work],
        times: list[float | BaseException],
        draws: list[Draws],
        careful: bool,
    ) -> tuple[list[Outcome[Any]], Writes]:
        space = run.seen.space
        together = run.writes(run.base, space, 0.0, careful=careful)
        outcomes: list[Outcome[Any]] = []
        for work, now, chance in zip(works, times, draws, strict=True):
            if isinstance(now, BaseException):
                outcomes.append(Outcome(error=now))
                continue
            writes = run.writes(together, space, now, careful=careful)
            try:
                with chance:
                    outcome = Outcome(result=work(writes))
            except KeyboardInterrupt:
                raise
            except BaseException as error:
                outcomes.append(Outcome(error=error))
                continue
            finally:
                if run.seen.lost is not None:  # whatever the work has made of it
                    raise run.seen.lost
            together.take(writes)
            outcomes.append(outcome)
        return outcomes, together

    def _begin(self, space: bytes, now: float, *, exclusive: bool = False) -> "_Run":
        self._refuse_unusable()
        rule = self.backend.long_keys
        if exclusive and self._exclusive is not None and not self._is_alone_again(space):
            session = self._exclusive(space)
        else:
            session = self.backend.session(space)
        seen = ReadCache(session, space, now, self._memory(space))
        base: Below = seen if rule is None else LongKeyReader(seen, rule)

        def writes(below: Below, space: bytes, now: float, *, careful: bool) -> Writes:
            return Writes(below, space, now, long_keys=rule, careful=careful)

        return _Run(session, seen, base, writes)

    def _fix_views(self, space: bytes) -> None:
        """A view takes its snapshot with its first read, which saves a round trip. One that was
        opened before a commit of this process must not see it, so it takes it now."""
        if self._unread:
            for view in list(self._unread.values()):
                if view.space.startswith(space) or space.startswith(view.space):
                    view.fix()

    def _memory(self, space: bytes) -> dict[bytes, bytes]:
        memories = self._memories
        memory = memories.get(space)
        if memory is None:
            if len(memories) >= _MAX_MEMORIES:
                memories.clear()
            memory = memories.setdefault(space, {})
        elif len(memory) > MAX_REMEMBERED_KEYS:
            memory.clear()
        return memory

    def _read_time(self) -> float | BaseException:
        try:
            return self._clock()
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            return error

    def _committed(self, commit: Commit, transactions: int) -> None:
        self._count("transactions", transactions)
        self._count("groups")
        memory = self._memory(commit.space)
        for key in memory.keys() & commit.puts.keys():
            memory[key] = commit.puts[key]
        if commit.notices:
            self._notices.wake()

    # --- what goes wrong -------------------------------------------------------------------------

    def _pause(self, conflicts: int) -> None:
        if conflicts >= MAX_CONFLICT_RUNS:
            raise Conflict(
                f"other processes changed what this transaction read, {conflicts} times in a row",
                hint="Try again; if it happens often, let fewer processes write to this space.",
            )
        longest = _FIRST_CONFLICT_PAUSE_SECONDS * 2 ** min(conflicts, 16)
        time.sleep(random.uniform(0, min(MAX_CONFLICT_PAUSE_SECONDS, longest)))

    def _expect_others(self, space: bytes) -> None:
        """Makes transactions of a space lock it for a while, where the backend can: running them
        twice would take longer."""
        if self._exclusive is not None:
            self._contended[space] = time.monotonic() + CONTENDED_SECONDS

    def _is_alone_again(self, space: bytes) -> bool:
        if time.monotonic() < self._contended.get(space, 0.0):
            return False
        self._contended.pop(space, None)
        return True

    def _wait_for_server(self, gone_until: float | None, error: Unreachable) -> float:
        """Pauses before the next try, and says until when tries make sense."""
        if gone_until is None:
            gone_until = time.monotonic() + self._reconnect_seconds
        elif time.monotonic() > gone_until:
            raise self._unreachable(error) from error
        self._stopped.wait(_RECONNECT_PAUSE_SECONDS * random.uniform(0.5, 1.5))
        return gone_until

    def _unreachable(self, error: Unreachable) -> HoldfastError:
        if self._unusable is not None:
            return type(self._unusable)(self._unusable.message)
        if isinstance(error, SnapshotLost):
            return Conflict(
                f"{self.backend.name} can't give back what this has begun to read: {error}",
                hint="Read it again, in less time.",
            )
        return StoreUnreachable(f"{self.backend.name} could not be reached: {error}")

    def _settle(self, lost: Unsettled) -> bool:
        """Asks, until there is an answer, whether a commit was made whose reply was lost."""
        gone_until = time.monotonic() + self._reconnect_seconds
        while True:
            try:
                return lost.settle()
            except Unreachable as error:
                if time.monotonic() > gone_until:
                    raise OutcomeUnknown(
                        f"{self.backend.name} was lost in the middle of a commit: {error}"
                    ) from error
            self._stopped.wait(_RECONNECT_PAUSE_SECONDS * random.uniform(0.5, 1.5))

    def _patiently(self, call: Callable[[], T]) -> T:
        """Calls something that may be called again, until the server answers."""
        self._refuse_unusable()
        gone_until: float | None = None
        while True:
            try:
                return call()
            except Unreachable as error:
                self._refuse_unusable()
                gone_until = self._wait_for_server(gone_until, error)

    def _refuse_unusable(self) -> None:
        if self._unusable is not None:
            raise self._unusable.with_traceback(None)  # the same for all: no frames pile up

    def _count(self, what: str, number: int = 1) -> None:
        with self._counted:
            self._counts[what] += number

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
        self._refuse_unusable()
        with self._counted:
            if self._listener is None:
                self._listener = threading.Thread(
                    target=self.backend.listen,
                    args=(self._notices.wake, self._stopped),
                    name="holdfast-listener",
                    daemon=True,
                )
                self._listener.start()
        return self._notices.subscribe(notice_filter(topic_prefix, space, wanted))

    def newest_notice(self) -> Any:
        return self._patiently(self.backend.newest_notice)

    def notices_since(self, place: Any) -> tuple[Any, int, list[Notice]]:
        # The hub looks again by itself, and holds its lock meanwhile: no patience here.
        try:
            return self.backend.notices_since(place)
        except Unreachable as error:
            raise self._unreachable(error) from error

    # --- care ------------------------------------------------------------------------------------

    def read_clock(self) -> float:
        return self._clock()

    def checkpoint(self) -> None:
        self._lines.refuse_inside("a checkpoint was asked for inside a transaction: let it end")
        self._patiently(self.backend.checkpoint)

    def backup(self, target: Path) -> Backup:
        self._refuse_unusable()
        self.backend.backup(target)

    def refuse_full(self) -> None:
        """The server's disk is for the server to look at; a commit that it refuses says why."""

    def refuse_unreadable(self) -> None:
        """Nothing that a server sends can end this process."""

    def check(self) -> list[str]:
        return self._patiently(self.backend.problems)

    def stats(self) -> dict[str, int]:
        """Figures of the store, and of this process: `groups` that were committed, `transactions`
        in them, `conflicts`, and `round_trips` for reads and commits."""
        return {**self._patiently(self.backend.stats), **self._counts}

    def close(self) -> None:
        """Waits for those who already write, and lets go of the server.

        A view that is still open raises `StoreClosed` when it is read from again.
        """
        if isinstance(self._unusable, StoreForked):
            return
        reason = StoreClosed(f"{self.backend.name} is closed")
        if not self._lines.close(reason):
            return
        self._unusable = reason
        self._stopped.set()
        self._notices.close()
        if self._listener is not None:
            self._listener.join()
        self.backend.close()

    def forked(self) -> None:
        """Called in a child process: nothing of the parent's store may be touched from here."""
        if self._unusable is None:
            self._unusable = StoreForked(f"{self.backend.name} was opened by the parent process")
            self._lines = (
                SpaceQueues()
            )  # the parent's may have been locked in the moment of the fork
            self._counted = threading.Lock()
            self._unread = {}
            self._notices.forked()
            self.backend.forked()


class _Run(NamedTuple):
    """A session, what was seen through it, and what makes writes above that."""

    session: Session
    seen: ReadCache
    base: Below
    writes: Callable[..., Writes]


class _View:
    """A consistent snapshot for a `with` block."""

    __slots__ = ("_engine", "_guard", "_session", "_space")

    def __init__(self, engine: RemoteEngine, space: bytes, guard: Guard | None) -> None:
        self._engine = engine
        self._space = space
        self._guard = guard

    def __enter__(self) -> Reader:
        engine = self._engine
        engine._refuse_unusable()
        self._session = _ViewSession(engine, self._space)
        seen = ReadCache(self._session, self._space, engine._clock(), forgets=True)
        rule = engine.backend.long_keys
        reader = ReadOnly(seen if rule is None else LongKeyReader(seen, rule), seen)
        if self._guard is not None:  # a read is a round trip: it goes along with the first one
            seen.guard(self._guard.key, self._guard.refuse, reader)
        return reader

    def __exit__(self, *exc: object) -> None:
        self._session.close()


class _ViewSession:
    """A session that looks for a server that answers until it has read something. Later a lost
    connection means a lost snapshot, which can't be had again."""

    committed = False

    def __init__(self, engine: RemoteEngine, space: bytes) -> None:
        self._engine = engine
        self.space = space
        self._session: Session | None = None
        self._lock = threading.Lock()  # the snapshot may be fixed by a thread that commits
        self._closed = False
        engine._unread[id(self)] = self

    def fetch(
        self, keys: Sequence[bytes], pages: Sequence[Page]
    ) -> tuple[list[Row | None], list[list[tuple[bytes, Row]]]]:
        engine = self._engine
        engine._refuse_unusable()
        engine._count("round_trips")
        if self._session is None:
            with self._lock:
                if self._session is None:
                    return engine._patiently(lambda: self._fetch_first(keys, pages))
        try:
            return self._session.fetch(keys, pages)
        except Unreachable as error:
            raise engine._unreachable(error) from error

    def fix(self) -> None:
        """Takes the snapshot, if there was none yet."""
        with self._lock:
            if self._session is None and not self._closed:
                self._engine._count("round_trips")
                self._fetch_first([self.space + b"\0"], [])

    def _fetch_first(
        self, keys: Sequence[bytes], pages: Sequence[Page]
    ) -> tuple[list[Row | None], list[list[tuple[bytes, Row]]]]:
        session = self._engine.backend.session(self.space)
        try:
            found = session.fetch(keys, pages)
        except BaseException:
            session.close()
            raise
        self._session = session
        self._engine._unread.pop(id(self), None)
        return found

    def commit(self, commit: Commit) -> None:
        raise NotImplementedError  # a view only reads

    def close(self) -> None:
        self._engine._unread.pop(id(self), None)
        if isinstance(self._engine._unusable, StoreForked):
            return
        with self._lock:
            self._closed = True
            if self._session is not None:
                with suppress(Unreachable):
                    self._session.close()


def _parts(spaces: Sequence[bytes]) -> list[tuple[bytes, list[int]]]:
    """The numbers of the transactions of each space. As no one sees into two spaces, spaces may
    go one after the other; but the empty prefix is all of them, and waits for those before it."""
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
