"""Runs a group of transactions on a space until its commit succeeds.

The first run is on guesses. If it writes, its commit is sent on the condition that they were right:
most work costs one round trip. The answer to a wrong guess holds the real values, and the next run
starts with these. Work that only reads, or that others conflict with, reads a snapshot first.
"""

import random
import time
from collections.abc import Callable, Iterator
from typing import Any, Final, cast

from holdfast.engine.contract import Outcome, RepeatableRandom, Transaction
from holdfast.engine.group_commit import Work
from holdfast.engine.late_interrupts import Interrupt, is_of_handler
from holdfast.engine.remote.contention import Contention
from holdfast.engine.remote.long_key_reader import LongKeyReader
from holdfast.engine.remote.protocol import (
    AddRefused,
    Backend,
    BackendSession,
    Commit,
    Committed,
    Conflicted,
    ConnectionLost,
    RangeRead,
    TrialCommitSession,
    TurnBackend,
    Unsettled,
)
from holdfast.engine.remote.read_cache import GuessingEnded, ReadCache
from holdfast.engine.remote.reconnector import Reconnector
from holdfast.engine.remote.remembered_rows import RememberedRows, RememberedSpaces
from holdfast.engine.remote.transaction import BufferBase, Writes
from holdfast.engine.remote.views import Views
from holdfast.errors import Conflict, NotACounter, OutsideSpace, StoreFull
from holdfast.limits import (
    MAX_CONFLICT_PAUSE_SECONDS,
    MAX_CONFLICT_RUNS,
    MAX_GUESSED_COMMIT_BYTES,
    MAX_GUESSING_RUNS,
)

_FIRST_CONFLICT_PAUSE_SECONDS: Final = 0.001

Publish = Callable[[list[Outcome[Any]]], None]  # tells the callers of a group their outcomes


class _Group:
    """The transactions of a group, with the times and random bytes that each gets in every run."""

    def __init__(self, works: list[Work], clock: Callable[[], float], kind: str) -> None:
        self.works = works
        self.kind = kind if len(works) == 1 else ""
        self.times = [_read_time(clock) for _ in works]
        self.random_sources = [RepeatableRandom() for _ in works]
        self.reads_counters = False  # whether to read every counter before adding to it


class _Attempt:
    """A session, what was read through it, and its outcome."""

    outcomes: list[Outcome[Any]]  # of the last run
    commit: Commit | None = None
    made: Committed | None = None
    turn: frozenset[bytes] = (
        frozenset()
    )  # contended keys of its access pattern, for which it has its turn
    may_try = True  # whether it may commit what it has guessed
    has_snapshot = False  # whether its runs read one snapshot
    commits_sent = 0
    refusals = 0  # how often it was refused because others had changed what it remembered

    def __init__(
        self,
        backend: Backend,
        space: bytes,
        now: float,
        memory: RememberedRows,
        waiting: BackendSession | None,
    ) -> None:
        self.space = space
        self.memory = memory
        if waiting is not None:
            self.may_try = False
        self.session = session = waiting or backend.session(space)
        self.seen = seen = ReadCache(session, space, now, memory)
        self.rule = rule = backend.long_keys
        self.base: BufferBase = seen if rule is None else LongKeyReader(seen, rule)

    def writes(self, below: BufferBase, now: float, *, reads_counters: bool) -> Writes:
        return Writes(below, self.space, now, long_keys=self.rule, reads_counters=reads_counters)

    def change_session(self, session: BackendSession) -> None:
        self.session.close()
        self.session = session

    def close(self) -> None:
        self.session.close()


class GroupRunner:
    """Runs the groups of an engine."""

    def __init__(
        self,
        backend: Backend,
        clock: Callable[[], float],
        reconnector: Reconnector,
        views: Views,
        wake: Callable[[], None],
    ) -> None:
        self._backend = backend
        self._clock = clock
        self._reconnector = reconnector
        self._views = views
        self._counts = views.counts
        self._wake = wake  # called after a commit with notices
        self._memories = RememberedSpaces()
        self._contention = Contention()
        self._open_turn_session = backend.turn_session if isinstance(backend, TurnBackend) else None

    # --- groups ----------------------------------------------------------------------------------

    def run(self, works: list[Work], space: bytes, publish: Publish, kind: str = "") -> Interrupt:
        """Runs a group until its commit succeeds. Returns the exception of a signal handler that
        came too late to undo it. `kind` is that of its only work."""
        group = _Group(works, self._clock, kind)
        conflicts = 0
        contended: list[bytes] | None = None  # after a conflict
        give_up_at: float | None = None
        while True:
            # Others changed what it read while it ran. Without the space to itself, a group that
            # takes longer than theirs would lose each time.
            attempt = self._begin(space, 0.0, contended)
            interrupt: Interrupt = None
            try:
                self._run(attempt, group)
                self._commit(attempt)
                publish(attempt.outcomes)
            except Conflicted:
                conflicts += 1
                contended = self._note_conflict(attempt)
                _pause(conflicts)
                continue
            except AddRefused:
                group.reads_counters = True  # the transaction at fault will notice it
                continue
            except ConnectionLost as error:
                give_up_at = self._reconnector.wait_for_server(give_up_at, error)
                continue
            except Unsettled as lost:
                interrupt = lost.interrupt
                attempt.memory.clear()
                if not self._reconnector.settle(lost):
                    if interrupt is not None:
                        raise interrupt from None
                    reason = ConnectionLost(str(lost.__cause__ or "the connection was lost"))
                    give_up_at = self._reconnector.wait_for_server(give_up_at, reason)
                    continue
                publish(attempt.outcomes)
            except BaseException as error:
                attempt.memory.clear()
                if not attempt.session.committed:
                    raise
                publish(attempt.outcomes)
                interrupt = error
            finally:
                attempt.close()
                self._counts.add("round_trips", attempt.seen.fetches + attempt.commits_sent)
            self._committed(attempt, len(works))
            return interrupt

    def _run(self, attempt: _Attempt, group: _Group) -> None:
        """Runs the works of a group: first guessing, so that all reads share round trips, then for
        good. Leaves the commit in `attempt`; it may have been sent and applied already."""
        seen = attempt.seen
        self._begin_in_turn(attempt, group)
        for _ in range(MAX_GUESSING_RUNS):
            seen.begin_run(guessing=True)
            writes = self._run_once(attempt, group)
            if attempt.has_snapshot:
                if not seen.guessed:
                    break
                seen.fetch_missed()
            elif self._is_over(attempt, group, writes):
                return
        else:
            if not attempt.has_snapshot:
                seen.fetch_asked(attempt.session)
            seen.begin_run(guessing=False)
            writes = self._run_once(attempt, group)
        seen.begin_end()
        attempt.commit = writes.commit_of(seen, attempt.rule)

    def _begin_in_turn(self, attempt: _Attempt, group: _Group) -> None:
        """Waits for its turn before the first run, if works of this kind usually have to."""
        if not group.kind or not attempt.may_try:
            return
        pattern = self._contention.pattern(attempt.space, group.kind)
        if pattern is None:
            return
        waiting = self._turn_session(attempt.space, [*pattern.contended], exclusive=False)
        if waiting is None or not hasattr(waiting, "try_commit"):
            return
        attempt.change_session(waiting)
        attempt.turn = pattern.contended
        found = attempt.seen.fetch_first(waiting, pattern.keys, pattern.pages)
        self._contention.note_turn(pattern.contended, found)

    def _is_over(self, attempt: _Attempt, group: _Group, writes: Writes) -> bool:
        """Commits a run on guesses if possible, and returns whether nothing is left to do.

        If not, what it read is known by then: from the server's reply, or from a snapshot.
        """
        seen = attempt.seen
        commit = _guessed_commit(writes, attempt)
        attempt.commit = commit
        if commit is not None and not commit.writes and not seen.guessed and not attempt.turn:
            return True  # the last reply is of one moment, and nothing else was read
        keys, pages = seen.asked()
        if commit is not None and commit.writes and attempt.may_try:
            contended = self._contention.contended_among(keys, pages)
            if attempt.turn and not attempt.turn.issubset(contended):
                self._contention.narrow_pattern(attempt.space, group.kind, contended, keys, pages)
            if contended and not attempt.turn.issuperset(contended):
                self._fetch_in_turn(attempt, group, contended, keys, pages)
                return False
            # For an object that is known to be a session, this is faster than `isinstance`.
            if _is_small(commit) and hasattr(attempt.session, "try_commit"):
                return self._try(attempt, group, commit, keys, pages)
        if attempt.turn and attempt.may_try:  # nobody should wait for work that writes nothing
            attempt.change_session(self._backend.session(attempt.space))
        attempt.has_snapshot = True
        seen.fetch_asked(attempt.session)
        return False

    def _fetch_in_turn(
        self,
        attempt: _Attempt,
        group: _Group,
        contended: list[bytes],
        keys: list[bytes],
        pages: list[RangeRead],
    ) -> None:
        """Waits for its turn, and fetches what a run on guesses has tried to read."""
        if waiting := self._turn_session(attempt.space, contended, exclusive=False):
            attempt.change_session(waiting)
        attempt.has_snapshot, attempt.may_try = True, False
        found = attempt.seen.fetch_first(attempt.session, keys, pages)
        self._contention.note_turn(contended, found)
        if group.kind and waiting:
            space = attempt.space
            self._contention.learn_pattern(space, group.kind, contended, keys, pages, found)

    def _try(
        self,
        attempt: _Attempt,
        group: _Group,
        commit: Commit,
        keys: list[bytes],
        pages: list[RangeRead],
    ) -> bool:
        """Commits a run on guesses, and returns whether they were right."""
        self._views.take_snapshots(attempt.space)
        attempt.commits_sent += 1
        session = cast(TrialCommitSession, attempt.session)
        try:
            answer = session.try_commit(commit, keys, pages, attempt.seen.place)
        except StoreFull:  # with wrong guesses, it may have left out what it would remove
            attempt.change_session(self._backend.session(attempt.space))
            attempt.has_snapshot = True
            attempt.seen.fetch_asked(attempt.session)
            return False
        if isinstance(answer, Committed):
            attempt.made = answer
            return True
        if attempt.turn:  # waiting for the keys that were contended before was not enough
            self._contention.forget_pattern(attempt.space, group.kind)
            attempt.may_try = False
        if changed := attempt.seen.refresh(keys, pages, answer):
            self._counts.add("conflicts")
            attempt.refusals += 1
            if attempt.refusals > 1:  # since the last reply, a moment ago
                self._contention.note(changed)
        return False

    def _commit(self, attempt: _Attempt) -> None:
        """Commits a run on a snapshot."""
        assert attempt.commit is not None  # left by the run
        if attempt.made is not None:
            return
        if attempt.commit.writes:
            self._views.take_snapshots(attempt.space)
            attempt.commits_sent += 1
            attempt.made = attempt.session.commit(attempt.commit)
        else:
            attempt.session.confirm()

    def _run_once(self, attempt: _Attempt, group: _Group) -> Writes:
        if len(group.works) == 1 and not isinstance(group.times[0], BaseException):
            return self._run_alone(attempt, group, group.times[0])
        group_writes = attempt.writes(attempt.base, 0.0, reads_counters=group.reads_counters)
        outcomes = attempt.outcomes = []
        for work, now, random_source in zip(
            group.works, group.times, group.random_sources, strict=True
        ):
            if isinstance(now, BaseException):
                outcomes.append(Outcome(error=now))
                continue
            writes = attempt.writes(group_writes, now, reads_counters=group.reads_counters)
            try:
                with random_source:
                    outcome = Outcome(result=work(writes))
            except KeyboardInterrupt:
                raise
            except BaseException as error:
                if is_of_handler(error):
                    raise
                outcomes.append(Outcome(error=error))
                continue
            finally:
                if attempt.seen.lost is not None:  # even if the work has caught the error
                    raise attempt.seen.lost
            group_writes.merge(writes)
            outcomes.append(outcome)
        return group_writes

    def _run_alone(self, attempt: _Attempt, group: _Group, now: float) -> Writes:
        """Runs the only work of a group, which needs no buffer for earlier ones."""
        writes = attempt.writes(attempt.base, now, reads_counters=group.reads_counters)
        try:
            with group.random_sources[0]:
                outcome = Outcome(result=group.works[0](writes))
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            if is_of_handler(error):
                raise
            outcome = Outcome(error=error)
            writes = attempt.writes(attempt.base, now, reads_counters=group.reads_counters)
        finally:
            if attempt.seen.lost is not None:  # even if the work has caught the error
                raise attempt.seen.lost
        attempt.outcomes = [outcome]
        return writes

    def _begin(self, space: bytes, now: float, contended: list[bytes] | None = None) -> _Attempt:
        """Begins an attempt; after a conflict, with the space to itself if the backend can do
        that."""
        self._reconnector.refuse_unusable()
        waiting = (
            None if contended is None else self._turn_session(space, contended, exclusive=True)
        )
        return _Attempt(self._backend, space, now, self._memories.of(space), waiting)

    def _turn_session(
        self, space: bytes, contended: list[bytes], *, exclusive: bool
    ) -> BackendSession | None:
        """Returns a session that waits for its turn, if the backend has such sessions."""
        return (
            None
            if self._open_turn_session is None
            else self._open_turn_session(space, contended, exclusive=exclusive)
        )

    def _committed(self, attempt: _Attempt, transactions: int) -> None:
        self._counts.add_group(transactions)
        assert attempt.commit is not None  # it was made
        if attempt.made is not None:
            try:
                attempt.memory.apply(attempt.commit, attempt.made)
            except BaseException:  # from a signal handler: half of it would be wrong guesses
                attempt.memory.clear()
                raise
        if attempt.commit.notices:
            self._wake()

    # --- conflicts -------------------------------------------------------------------------------

    def _note_conflict(self, attempt: _Attempt) -> list[bytes]:
        """Returns the keys, and starts of ranges, that may have been in conflict."""
        self._counts.add("conflicts")
        attempt.memory.clear()
        if (commit := attempt.commit) is None:
            return []
        # If many do the same, they conflict in keys that they both read and write. For keys that
        # they only read, such as settings, everyone else in the space would have to wait, too.
        written = {*commit.puts, *commit.deletes, *commit.adds}
        contended = [key for key in commit.keys if key in written]
        for walked in commit.ranges:
            if any(walked.begin <= key < walked.end for key in written):
                contended.append(walked.begin)
        self._contention.note(contended)
        return contended

    # --- blocks ----------------------------------------------------------------------------------

    def block(self, space: bytes) -> Iterator[Transaction]:
        """Runs a block as a transaction that can't be repeated: a conflict is an error here."""
        attempt = self._begin(space, self._clock())
        writes = attempt.writes(attempt.base, attempt.seen.now, reads_counters=False)
        interrupt: Interrupt = None
        try:
            yield writes
            attempt.commit = writes.commit_of(attempt.seen, attempt.rule)
            self._commit(attempt)
        except Conflicted:
            self._counts.add("conflicts")
            attempt.memory.clear()
            raise Conflict("what this transaction read was changed by another one") from None
        except AddRefused:
            raise NotACounter(
                "the transaction added to a value that is not a counter, or beyond its 64 bits"
            ) from None
        except ConnectionLost as error:
            raise self._reconnector.explain(error) from error
        except Unsettled as lost:
            attempt.memory.clear()
            interrupt = lost.interrupt
            if not self._reconnector.settle(lost):
                if interrupt is not None:
                    raise interrupt from None
                raise Conflict("the connection was lost, and nothing was written") from lost
        except BaseException:
            attempt.session.confirm()  # the error may reveal what was read
            raise
        finally:
            attempt.close()
            self._counts.add("round_trips", attempt.seen.fetches + attempt.commits_sent)
        self._committed(attempt, 1)
        if interrupt is not None:
            raise interrupt


def _guessed_commit(writes: Writes, attempt: _Attempt) -> Commit | None:
    """Returns the commit of a run on guesses, or None if they do not allow one."""
    if attempt.seen.is_unbounded:
        return None
    try:
        return writes.commit_of(attempt.seen, attempt.rule)
    except (GuessingEnded, OutsideSpace):
        return None  # a run on real values may succeed, and raises if not


def _is_small(commit: Commit) -> bool:
    size = sum(map(len, commit.puts.values())) + sum(map(len, commit.puts))
    return size <= MAX_GUESSED_COMMIT_BYTES


def _pause(conflicts: int) -> None:
    if conflicts >= MAX_CONFLICT_RUNS:
        raise Conflict(
            f"other processes changed what this transaction read, {conflicts} times in a row",
            hint="Try again; if it happens often, let fewer processes write to this space.",
        )
    longest = _FIRST_CONFLICT_PAUSE_SECONDS * 2 ** min(conflicts, 16)
    time.sleep(random.uniform(0, min(MAX_CONFLICT_PAUSE_SECONDS, longest)))


def _read_time(clock: Callable[[], float]) -> float | BaseException:
    try:
        return clock()
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return error
