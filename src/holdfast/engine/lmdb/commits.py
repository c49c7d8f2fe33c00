"""Runs and commits the transactions of a group, for the leader of the group.

A group is committed in memory, if LMDB may get it later (overlay.py), or in one LMDB transaction.
Either way each transaction writes into its own buffer: if one raises, only its buffer is dropped.
In memory, a group that one caller has passed first tries one buffer for all of it.

After Ctrl-C, or another exception of a signal handler, group commit may run a group's work again.
So the step that makes a commit final also publishes its outcome to the callers, and nothing after
that step may raise.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

import lmdb

from holdfast.engine.contract import NotBegun, Notice, Outcome, TooLong, Transaction
from holdfast.engine.folder import WriteTurn
from holdfast.engine.group_commit import CommitRequest, Work
from holdfast.engine.late_interrupts import Interrupt, is_of_handler
from holdfast.engine.lmdb.disk_reserve import Reserve, frees_space
from holdfast.engine.lmdb.environment import Environment
from holdfast.engine.lmdb.file_writes import is_open, write_out
from holdfast.engine.lmdb.notice_log import NoticeLog
from holdfast.engine.lmdb.overlay import Overlay
from holdfast.engine.lmdb.redo_log import Writes
from holdfast.engine.lmdb.short_transactions import ShortBuffer
from holdfast.engine.lmdb.transaction import LmdbReader, LmdbTransaction
from holdfast.engine.lmdb.write_buffers import (
    NO_WRITES,
    CommittedBuffer,
    TransactionBuffer,
    assume_a_listener,
)
from holdfast.errors import HoldfastError, StoreFull, StoreUnusable
from holdfast.limits import MAX_SHORT_OPERATIONS, SEPARATE_GROUPS_AFTER_FAILURE

Group = Sequence[CommitRequest]  # their callers are told the outcome
Step = tuple[Work, bytes]  # one transaction of a group, and its space

_GROUPS_PER_READER_CHECK: Final = 256


class Commits:
    """Runs and commits transactions: everything that only one thread at a time may do."""

    def __init__(
        self,
        opened: Environment,
        overlay: Overlay | None,
        *,
        clock: Callable[[], float],
        write_turn: WriteTurn,
        notice_log: NoticeLog,
        wake: Callable[[], None],
        refuse_unusable: Callable[[], None],
        explained: Callable[[Exception], HoldfastError],
        reserve: Reserve,
        checkpoint: Callable[[], bool],
        note_written: Callable[[int], None],
    ) -> None:
        self.groups = 0
        self.transactions = 0
        self._env = opened.env
        self._data = opened.data
        self._overlay = overlay
        self._clock = clock
        self._write_turn = write_turn
        self._notice_log = notice_log
        self._wake = wake
        self._refuse_unusable = refuse_unusable
        self._explained = explained
        self._reserve = reserve
        self._checkpoint = checkpoint  # makes a checkpoint if that can help
        self._note_written = note_written
        self._separate_groups_left = 0  # how many more groups get a buffer for each transaction
        self.interrupt: Interrupt = None  # came too late to undo anything

    def run(self, group: list[CommitRequest], leader: CommitRequest) -> None:
        """Commits a group together. If that fails, commits each transaction alone: one that is too
        large for the disk must not fail the others."""
        request = group[0]
        if len(group) == 1 and len(request.works) == 1:
            [work], [space] = request.works, request.spaces
            # The leader finds its own outcome when this returns.
            told = None if request is leader else request
            outcome = self._run_once(work, space, told)
            if outcome.error is not None and type(outcome.error) is StoreFull:
                outcome = self._run_when_full(outcome, work, space, told)
            request.outcomes = [outcome]
            del outcome  # an error holds this frame, which must not hold the error
            self.groups += 1
            self.transactions += 1
            return
        steps = [
            step for request in group for step in zip(request.works, request.spaces, strict=True)
        ]
        try:
            self._run_together(steps, group)
        except (lmdb.Error, StoreUnusable):
            for request in group:  # each is told at once: after Ctrl-C, it must not run again
                mine = zip(request.works, request.spaces, strict=True)
                request.outcomes = [self._run_alone(*step) for step in mine]
        self.groups += 1
        self.transactions += len(steps)

    def try_run(self, request: CommitRequest) -> None:
        """Commits the transactions of a request together if they are short, and stores their
        outcomes in it. If it has no outcomes afterwards, nothing has happened."""
        overlay = self._overlay
        base = None if overlay is None else overlay.begin(waits=False)
        if overlay is None or base is None:
            return
        try:
            group_buffer, outcomes = self._run_short(base, request)
            publish = partial(setattr, request, "outcomes", outcomes)
            self._note(overlay.commit(group_buffer, publish, flushes=False))
        except (TooLong, lmdb.Error, HoldfastError):
            overlay.end()  # a caller that may wait runs it again, and gets the error
            return
        except BaseException:
            overlay.end()
            raise
        self.groups += 1
        self.transactions += len(outcomes)

    def _run_short(
        self, base: CommittedBuffer, request: CommitRequest
    ) -> tuple[TransactionBuffer, list[Outcome[Any]]]:
        """Runs short transactions, and returns their writes in one buffer. May raise `TooLong`."""
        if len(request.works) == 1:
            tx = ShortBuffer(base, request.spaces[0], self._clock(), base.written, base.seen)
            tx.left = MAX_SHORT_OPERATIONS
            outcome = tx.run(request.works[0])
            if outcome.error is None:
                return tx, [outcome]
            return TransactionBuffer(base, b"", 0.0), [outcome]
        if self._may_share_buffer(request.spaces):
            tx = ShortBuffer(base, request.spaces[0], 0.0, base.written, base.seen)
            tx.left = MAX_SHORT_OPERATIONS
            if (shared := self._run_in_one(tx, request.works)) is not None:
                return tx, shared
        group_buffer = TransactionBuffer(base, b"", 0.0, base.written, base.seen)
        outcomes, left = [], MAX_SHORT_OPERATIONS
        for work, space in zip(request.works, request.spaces, strict=True):
            tx = ShortBuffer(group_buffer, space, self._clock(), group_buffer.written, base.written)
            tx.left = left
            outcomes.append(tx.run(work))
            left = tx.left
            if outcomes[-1].error is None:
                group_buffer.merge(tx)
                group_buffer.merge_notices(tx)
        return group_buffer, outcomes

    # --- one buffer for a whole group ------------------------------------------------------------

    def _may_share_buffer(self, spaces: Sequence[bytes]) -> bool:
        """Returns whether to run a group in one buffer first: it is of one space, and no
        transaction has failed lately."""
        if self._separate_groups_left:
            self._separate_groups_left -= 1
            return False
        return len(set(spaces)) == 1

    def _run_in_one(
        self, tx: TransactionBuffer, works: Sequence[Work]
    ) -> list[Outcome[Any]] | None:
        """Runs the transactions of a group in one buffer, which costs less than one for each.

        If one of them fails, what it wrote can't be told from what the others did: the buffer is
        of no use then, and None tells the caller to run all of them again, each in its own.
        """
        outcomes = []
        for work in works:
            tx.now = self._clock()
            outcome = tx.run(work)
            if outcome.error is not None and not isinstance(outcome.error, NotBegun):
                self._separate_groups_left = SEPARATE_GROUPS_AFTER_FAILURE
                return None
            outcomes.append(outcome)
        return outcomes

    def raise_interrupt(self) -> None:
        """Raises the exception of a signal handler that came too late to undo anything."""
        interrupt, self.interrupt = self.interrupt, None
        if interrupt is not None:
            raise interrupt

    def _note(self, interrupt: Interrupt) -> None:
        if interrupt is not None:
            self.interrupt = interrupt

    @contextmanager
    def block(self, space: bytes) -> Iterator[Transaction]:
        """Runs a block as a transaction that is committed at its end."""
        overlay = self._overlay
        try:
            base = None if overlay is None else overlay.begin()
            if overlay is not None and base is not None:
                draft = TransactionBuffer(base, space, self._clock(), base.written, base.seen)
                yield draft
                self._note(overlay.commit(draft, _do_nothing))
                self.groups += 1
                return
        except BaseException:
            self._end_deferred()
            raise
        try:
            txn = self._begin()
            try:
                tx = LmdbTransaction(txn, space, self._clock())
                yield tx
            except BaseException:
                txn.abort()
                raise
            self._commit(txn, tx.notices, _do_nothing, tx.writes)
        finally:
            self._end_deferred()
        self.groups += 1

    # --- one transaction -------------------------------------------------------------------------

    def _run_alone(self, work: Work, space: bytes) -> Outcome[Any]:
        """Runs one transaction of a group that could not be committed together."""
        outcome = self._run_once(work, space, None)
        if type(outcome.error) is StoreFull:
            outcome = self._run_when_full(outcome, work, space, None)
        return outcome

    def _run_when_full(
        self, outcome: Outcome[Any], work: Work, space: bytes, request: CommitRequest | None
    ) -> Outcome[Any]:
        """Runs a transaction again that found the disk full; uses reserved blocks if it frees
        space."""
        # A checkpoint makes the pages that were deleted before it reusable.
        if self._checkpoint():
            outcome = self._run_once(work, space, request)
        if type(outcome.error) is not StoreFull or not self._would_free_space(work, space):
            return outcome
        while type(outcome.error) is StoreFull and self._reserve.release():
            outcome = self._run_once(work, space, request)
        if outcome.error is None:
            self._reserve.fill()
        return outcome

    def _would_free_space(self, work: Work, space: bytes) -> bool:
        """Runs a transaction only to see what it would write."""
        overlay = self._overlay
        try:
            base = None if overlay is None else overlay.begin()
            if base is not None:
                tx = TransactionBuffer(base, space, self._clock(), base.written, base.seen)
                work(tx)
                return frees_space(tx, base)
            with self._env.begin(db=self._data) as txn:
                reader = LmdbReader(txn, b"", 0.0)
                tx = TransactionBuffer(reader, space, self._clock())
                work(tx)
                return frees_space(tx, reader)
        except KeyboardInterrupt:
            raise
        except BaseException:
            return False
        finally:
            self._end_deferred()

    def _run_once(self, work: Work, space: bytes, request: CommitRequest | None) -> Outcome[Any]:
        """Runs one transaction. `request`, if given, tells another thread the outcome as soon as it
        is sure."""
        overlay = self._overlay
        try:
            base = None if overlay is None else overlay.begin()
            if overlay is None or base is None:
                outcome = self._run_directly(work, space, request)
                self._end_deferred()
                return outcome
            tx = TransactionBuffer(base, space, self._clock(), base.written, base.seen)
            outcome = Outcome(work(tx))
            # Inlines `_outcome_callback`.
            tell = (
                _do_nothing if request is None else partial(setattr, request, "outcomes", [outcome])
            )
            if (interrupt := overlay.commit(tx, tell)) is not None:
                self.interrupt = interrupt
            return outcome
        except KeyboardInterrupt:
            self._end_deferred()
            raise
        except lmdb.Error as error:
            self._end_deferred()
            return Outcome(error=self._explained(error))
        except BaseException as error:
            self._end_deferred()
            # An exception of a signal handler is not the outcome of another thread's work. After
            # the commit, the outcome that was told is true; before it, the work runs again.
            if request is not None and (request.outcomes is not None or is_of_handler(error)):
                raise
            return Outcome(error=error)

    def _run_directly(
        self, work: Work, space: bytes, request: CommitRequest | None
    ) -> Outcome[Any]:
        txn = self._begin()
        try:
            tx = LmdbTransaction(txn, space, self._clock())
            outcome = Outcome(result=work(tx))
        except BaseException:
            txn.abort()
            raise
        self._commit(txn, tx.notices, _outcome_callback(request, outcome), tx.writes)
        return outcome

    # --- several ---------------------------------------------------------------------------------

    def _run_together(self, steps: list[Step], group: Group) -> None:
        if self._run_together_deferred(steps, group):
            return
        try:
            txn = self._begin()
            try:
                group_buffer = TransactionBuffer(LmdbReader(txn, b"", 0.0), b"", 0.0)
                outcomes = [self._run_stacked(group_buffer, work, space) for work, space in steps]
                write_out(txn, self._data, group_buffer)
                group_buffer.make_notices(assume_a_listener)
            except BaseException:
                txn.abort()
                raise
            publish = partial(_publish, group, outcomes)
            self._commit(txn, group_buffer.notices, publish, len(group_buffer.written))
        finally:
            self._end_deferred()

    def _run_together_deferred(self, steps: list[Step], group: Group) -> bool:
        """Runs a group in memory; returns False, without running it, if it has to commit
        directly."""
        overlay = self._overlay
        try:
            base = None if overlay is None else overlay.begin()
            if overlay is None or base is None:
                return False
            group_buffer, outcomes = self._run_buffered(base, steps, group)
            self._note(overlay.commit(group_buffer, partial(_publish, group, outcomes)))
        except BaseException:
            self._end_deferred()
            raise
        return True

    def _run_buffered(
        self, base: CommittedBuffer, steps: list[Step], group: Group
    ) -> tuple[TransactionBuffer, list[Outcome[Any]]]:
        """Runs the transactions of a group, and returns what they write together."""
        # Only what one caller gave together: the work of one thread is not run twice because that
        # of another has failed.
        if len(group) == 1 and self._may_share_buffer(group[0].spaces):
            tx = TransactionBuffer(base, group[0].spaces[0], 0.0, base.written, base.seen)
            if (shared := self._run_in_one(tx, group[0].works)) is not None:
                return tx, shared
        group_buffer = TransactionBuffer(base, b"", 0.0, base.written, base.seen)
        return group_buffer, [
            self._run_stacked(group_buffer, work, space, base.written) for work, space in steps
        ]

    def _run_stacked(
        self,
        group_buffer: TransactionBuffer,
        work: Work,
        space: bytes,
        committed: Writes = NO_WRITES,
    ) -> Outcome[Any]:
        if group_buffer.cleared:
            tx = TransactionBuffer(group_buffer, space, self._clock())
        else:  # reads its dicts directly, without a call
            tx = TransactionBuffer(
                group_buffer, space, self._clock(), group_buffer.written, committed
            )
        outcome = tx.run(work)
        if outcome.error is None:
            group_buffer.merge(tx)
            group_buffer.merge_notices(tx)
        return outcome

    # --- committing ------------------------------------------------------------------------------

    def _end_deferred(self) -> None:
        if self._overlay is not None:
            self._overlay.end()

    def _begin(self) -> Any:
        self._refuse_unusable()
        with self._write_turn:
            return self._env.begin(db=self._data, write=True)

    def _commit(
        self, txn: Any, notices: list[Notice], publish: Callable[[], None], writes: int
    ) -> None:
        """Commits, and calls `publish` as soon as that has succeeded. After the commit nothing may
        raise: the work would run again."""
        try:
            if self.groups % _GROUPS_PER_READER_CHECK == 0:
                self._env.reader_check()
            if notices:
                self._notice_log.store(txn, notices)
            txn.commit()
            publish()
        except BaseException as error:
            # An exception that a signal handler raises right after the commit has returned finds
            # the work done, and durable.
            if isinstance(error, lmdb.Error) or is_open(txn):
                txn.abort()
                raise
            publish()
            self.interrupt = error
        self._note_written(writes)
        if notices:
            self._wake()


def _publish(group: Group, outcomes: list[Outcome[Any]]) -> None:
    begin = 0
    for request in group:
        end = begin + len(request.works)
        request.outcomes = outcomes[begin:end]
        begin = end


def _outcome_callback(request: CommitRequest | None, outcome: Outcome[Any]) -> Callable[[], None]:
    """Returns the callback that tells the caller of a single transaction; without a request, the
    caller is told later."""
    return _do_nothing if request is None else partial(setattr, request, "outcomes", [outcome])


def _do_nothing() -> None:
    """Does nothing: the caller of a block waits by itself."""
