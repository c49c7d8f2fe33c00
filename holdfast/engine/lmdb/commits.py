"""How the transactions of a group are run and committed, by whoever has the writer's turn.

In memory, where LMDB may get a commit later (overlay.py), or in one LMDB transaction. In both
cases each transaction of a group writes into a buffer of its own, so that one that raises is
dropped and its neighbours are not disturbed.

The engine's turns may run a group's work again if Ctrl-C strikes. So its callers are told what
became of it by the very step that makes it sure, and after that nothing may raise.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

import lmdb

from holdfast.engine.buffer import Buffer
from holdfast.engine.contract import Notice, Outcome, Reader, Transaction
from holdfast.engine.lmdb.environment import Environment
from holdfast.engine.lmdb.noticelog import NoticeLog
from holdfast.engine.lmdb.overlay import Draft, Overlay, is_open, write_out
from holdfast.engine.lmdb.transaction import LmdbReader, LmdbTransaction
from holdfast.engine.turns import Request, Work
from holdfast.errors import HoldfastError, StoreUnusable

Group = Sequence[Request]  # whose callers hear what became of their work
Step = tuple[Work, bytes]  # one transaction of a group, and its space

_GROUPS_PER_READER_CHECK: Final = 256


class Commits:
    """Everything that only one thread at a time does."""

    def __init__(
        self,
        opened: Environment,
        overlay: Overlay | None,
        *,
        clock: Callable[[], float],
        notice_log: NoticeLog,
        wake: Callable[[], None],
        refuse_unusable: Callable[[], None],
        explained: Callable[[Exception], HoldfastError],
    ) -> None:
        self.groups = 0
        self.transactions = 0
        self._env = opened.env
        self._data = opened.data
        self._overlay = overlay
        self._clock = clock
        self._notice_log = notice_log
        self._wake = wake
        self._refuse_unusable = refuse_unusable
        self._explained = explained
        self._interrupted = False

    def run(self, group: list[Request]) -> None:
        """Commits a group together. If that can't be done, each transaction alone: one that is too
        large for the disk must not take the others with it."""
        if len(group) == 1 and len(group[0].works) == 1:
            [request] = group
            outcome = self._run_alone(request.works[0], request.spaces[0], group)
            request.outcomes = [outcome]
            self.transactions += 1
            return
        steps = [
            step for request in group for step in zip(request.works, request.spaces, strict=True)
        ]
        try:
            self._run_together(steps, group)
        except (lmdb.Error, StoreUnusable):
            _publish(group, [self._run_alone(*step, ()) for step in steps])
        self.transactions += len(steps)

    def raise_interrupt(self) -> None:
        """Raises the Ctrl-C that came too late to undo anything."""
        if self._interrupted:
            self._interrupted = False
            raise KeyboardInterrupt

    @contextmanager
    def block(self, space: bytes) -> Iterator[Transaction]:
        """A transaction that is committed at the end of the block."""
        try:
            base = self._begin_deferred()
            if base is not None:
                draft = Draft(base, space, self._clock())
                yield draft
                self._defer(draft, _tell_no_one)
                return
        except BaseException:
            self._end_deferred()
            raise
        txn = self._begin()
        try:
            tx = LmdbTransaction(txn, space, self._clock())
            yield tx
        except BaseException:
            txn.abort()
            raise
        self._commit(txn, tx.notices, _tell_no_one)

    # --- one transaction -------------------------------------------------------------------------

    def _run_alone(self, work: Work, space: bytes, group: Group) -> Outcome[Any]:
        try:
            outcome = self._run_deferred(work, space, group)
            return self._run_directly(work, space, group) if outcome is None else outcome
        except KeyboardInterrupt:
            raise
        except lmdb.Error as error:
            return Outcome(error=self._explained(error))
        except BaseException as error:
            return Outcome(error=error)

    def _run_deferred(self, work: Work, space: bytes, group: Group) -> Outcome[Any] | None:
        """Runs a transaction in memory; None, and it was not run, if it has to commit directly."""
        try:
            base = self._begin_deferred()
            if base is None:
                return None
            tx = Draft(base, space, self._clock())
            outcome = Outcome(result=work(tx))
            self._defer(tx, partial(_publish, group, [outcome]))
        except BaseException:
            self._end_deferred()
            raise
        return outcome

    def _run_directly(self, work: Work, space: bytes, group: Group) -> Outcome[Any]:
        txn = self._begin()
        try:
            tx = LmdbTransaction(txn, space, self._clock())
            outcome = Outcome(result=work(tx))
        except BaseException:
            txn.abort()
            raise
        self._commit(txn, tx.notices, partial(_publish, group, [outcome]))
        return outcome

    # --- several ---------------------------------------------------------------------------------

    def _run_together(self, steps: list[Step], group: Group) -> None:
        if self._run_together_deferred(steps, group):
            return
        txn = self._begin()
        try:
            together = Draft(LmdbReader(txn, b"", 0.0), b"", 0.0)
            outcomes = [self._run_stacked(together, work, space) for work, space in steps]
            write_out(txn, together)
        except BaseException:
            txn.abort()
            raise
        self._commit(txn, together.notices, partial(_publish, group, outcomes))

    def _run_together_deferred(self, steps: list[Step], group: Group) -> bool:
        """Runs a group in memory; False, and it was not run, if it has to commit directly."""
        try:
            base = self._begin_deferred()
            if base is None:
                return False
            together = Draft(base, b"", 0.0)
            outcomes = [self._run_stacked(together, work, space) for work, space in steps]
            self._defer(together, partial(_publish, group, outcomes))
        except BaseException:
            self._end_deferred()
            raise
        return True

    def _run_stacked(self, together: Draft, work: Work, space: bytes) -> Outcome[Any]:
        try:
            tx = Draft(together, space, self._clock())
            outcome = Outcome(result=work(tx))
        except (KeyboardInterrupt, lmdb.Error):
            raise
        except BaseException as error:
            return Outcome(error=error)
        together.take(tx)
        together.notices += tx.notices
        return outcome

    # --- commits in memory -----------------------------------------------------------------------

    def _begin_deferred(self) -> Reader | None:
        """What a transaction is stacked on if its commit may wait for others."""
        if self._overlay is None:
            return None
        self._refuse_unusable()
        return self._overlay.begin()

    def _defer(self, tx: Buffer, publish: Callable[[], None]) -> None:
        self._refuse_unusable()  # the work may have forked
        assert self._overlay is not None
        if self._overlay.commit(tx, publish):
            self._interrupted = True
        self.groups += 1
        if tx.notices:
            self._wake()

    def _end_deferred(self) -> None:
        if self._overlay is not None:
            self._overlay.end()

    # --- commits to LMDB -------------------------------------------------------------------------

    def _begin(self) -> Any:
        self._refuse_unusable()
        return self._env.begin(db=self._data, write=True)

    def _commit(self, txn: Any, notices: list[Notice], publish: Callable[[], None]) -> None:
        """Commits, and calls `publish` if, and as soon as, that is done. After the commit nothing
        may raise: the work would be run again."""
        try:
            if self.groups % _GROUPS_PER_READER_CHECK == 0:
                self._env.reader_check()
            if notices:
                self._notice_log.store(txn, notices)
            txn.commit()
            publish()
        except KeyboardInterrupt:
            # It may come right after the commit has returned; then the work is done, and durable.
            if is_open(txn):
                txn.abort()
                raise
            publish()
            self._interrupted = True
        except BaseException:
            txn.abort()
            raise
        self.groups += 1
        if notices:
            self._wake()


def _publish(group: Group, outcomes: list[Outcome[Any]]) -> None:
    begin = 0
    for request in group:
        end = begin + len(request.works)
        request.outcomes = outcomes[begin:end]
        begin = end


def _tell_no_one() -> None:
    """The caller of a block is there itself."""
