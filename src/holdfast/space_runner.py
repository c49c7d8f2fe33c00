"""Runs the layers' transactions and views in one space; writes also remove expired keys."""

import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from typing import Any, Final, TypeVar

from holdfast import expiry
from holdfast.binding import EVERY_SPACE, can_run_again
from holdfast.defaults import LAYERS
from holdfast.dry_run import dry_run
from holdfast.engine.contract import Engine, Guard, Outcome, Reader, Subscription, Transaction
from holdfast.errors import BadInput, RemovalFailed, UnknownSpace
from holdfast.keys import pack, prefix_range, unpack
from holdfast.lazy_loading import layer_package
from holdfast.limits import (
    EXPIRED_PER_WRITE,
    EXPIRY_CHECK_SECONDS,
    REMOTE_EXPIRY_CHECK_SECONDS,
)
from holdfast.spaces import DIRECTORY, NO_SPACE, find_number, find_or_create

T = TypeVar("T")


class Removers(dict[str, expiry.Remover]):
    """The functions that remove what expires, by kind; see expiry.py.

    A kind begins with the name of its layer, which is loaded when the first such entry is due.
    """

    def get(self, kind: str, default: Any = None) -> Any:
        if kind not in self:
            layer = kind.partition(".")[0]
            if layer in LAYERS:
                self.update(layer_package(layer).REMOVERS)
        return super().get(kind, default)


REMOVERS: Final = Removers()


class SpaceRunner:
    """One space of an engine, as the layers see it (`binding.Runner`)."""

    def __init__(self, engine: Engine, prefix: bytes) -> None:
        self._engine = engine
        self.prefix = prefix
        self.dropped_key = expiry.dropped_key(prefix)
        self.is_remote = engine.is_remote
        self._check_seconds = (
            REMOTE_EXPIRY_CHECK_SECONDS if engine.is_remote else EXPIRY_CHECK_SECONDS
        )
        self._guard = Guard(self.dropped_key, expiry.refuse_dropped)
        self._last_empty_check = -math.inf  # when nothing was last found to be due

    def transact(self, work: Callable[[Transaction], T], kind: str = "") -> T:
        """Runs `work`, and in the same transaction removes a little of what has expired.

        A removal that fails undoes the transaction. Then `work` runs again without removals, so
        that one damaged record does not stop the writes of its space.
        """

        try:
            # A `partial` would cost twice as much as a lambda, here and in store.py.
            return self._engine.transact(
                lambda tx: self.run_and_sweep(work, tx), space=self.prefix, kind=kind
            )
        except RemovalFailed as failure:
            self._postpone(failure)
            if not can_run_again(work):
                raise BadInput(
                    "nothing was changed: a damaged record forced the operation to start "
                    "again, and an iterator among its arguments is used up",
                    hint="Make the iterator again and repeat the call, or give lists.",
                ) from failure

        def run(tx: Transaction) -> T:
            expiry.refuse_dropped(tx)
            return work(tx)

        return self._engine.transact(run, space=self.prefix)

    def run_and_sweep(self, work: Callable[[Transaction], T], tx: Transaction) -> T:
        """Runs `work` and then, in the same transaction, removes a little of what has expired.

        A process that has just found nothing due does not check again at once: at a thousand writes
        a second that would cost more than all removals.
        """
        if tx.get(self.dropped_key) is not None:
            expiry.refuse_dropped(tx)
        result = work(tx)
        since = tx.now - self._last_empty_check
        # A remote engine runs work more than once at the same `now`, first on guesses: only what
        # the last run finds counts.
        if 0 <= since < self._check_seconds and (since or not self.is_remote):
            return result
        found = expiry.sweep(tx, REMOVERS, limit=EXPIRED_PER_WRITE)
        self._last_empty_check = -math.inf if found else tx.now
        return result

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """Opens a transaction for a `with` block; as it can't run again, it does not remove what
        expired."""
        with self._engine.transaction(space=self.prefix) as tx:
            expiry.refuse_dropped(tx)
            yield tx

    def sweep(self, limit: int) -> int:
        """Removes up to `limit` entries that have expired; those that fail are postponed, and
        count."""
        failed = 0
        while failed < limit:
            step = partial(expiry.sweep, removers=REMOVERS, limit=limit - failed)
            try:
                return failed + self._engine.transact(step, space=self.prefix)
            except RemovalFailed as failure:
                self._postpone(failure)
                failed += 1
        return failed

    def _postpone(self, failure: RemovalFailed) -> None:
        self._engine.transact(lambda tx: expiry.postpone_failed(tx, failure), space=self.prefix)

    def view(self) -> AbstractContextManager[Reader]:
        """Returns a view that refuses a dropped space, which would otherwise appear empty or half
        empty."""
        return self._engine.view(space=self.prefix, guard=self._guard)

    def short_view(self) -> AbstractContextManager[Reader]:
        """Like `view`, for a thread that must not be blocked; it may raise `TooLong`."""
        return self._engine.short_view(space=self.prefix, guard=self._guard)

    def read(self, work: Callable[[Reader], T], kind: str = "") -> T:
        """Runs `work` on a view, more than once if that saves round trips."""
        return self._engine.read(work, space=self.prefix, guard=self._guard, kind=kind)

    def subscribe(self, topic_prefix: str = "") -> Subscription:
        return self._engine.subscribe(topic_prefix=topic_prefix, space=self.prefix)

    def read_clock(self) -> float:
        return self._engine.read_clock()


class NewSpaceRunner(SpaceRunner):
    """A space that did not exist when it was opened: it reads as empty until a write creates it.

    If another process creates it first, the next read finds it.
    """

    def __init__(
        self, engine: Engine, find: Callable[[], bytes | None], create: Callable[[], bytes]
    ) -> None:
        super().__init__(engine, NO_SPACE)
        self._find = find
        self._create = create
        self._failure: Exception | None = None  # why it could not be created

    def exists(self) -> bool:
        """Returns whether the space exists by now. Reads 1 key until it does."""
        if self.prefix == NO_SPACE and (found := self._find()) is not None:
            self._set_prefix(found)
        return self.prefix != NO_SPACE

    def create(self) -> None:
        """Creates the space, unless it exists."""
        if self.prefix == NO_SPACE:
            self._set_prefix(self._create())

    def try_to_create(self) -> None:
        """Like `create`, for one transaction of a group: an error is raised by the transaction's
        own work."""
        try:
            self.create()
        except Exception as error:
            self._failure = error

    def _set_prefix(self, prefix: bytes) -> None:
        self.dropped_key = expiry.dropped_key(prefix)
        self._guard = Guard(self.dropped_key, expiry.refuse_dropped)
        self.prefix = prefix

    def dry_run(self, work: Callable[[Transaction], T]) -> Outcome[T] | None:
        """Returns the outcome of `work` if it needs no space; None if it has to run in one."""
        if self.exists():
            return None
        with self.view() as reader:
            return dry_run(work, reader)

    def transact(self, work: Callable[[Transaction], T], kind: str = "") -> T:
        if (outcome := self.dry_run(work)) is not None:
            return outcome.unwrap()
        self.create()
        return super().transact(work, kind)

    def run_and_sweep(self, work: Callable[[Transaction], T], tx: Transaction) -> T:
        if tx.space == NO_SPACE:
            raise self._failure or UnknownSpace("the space could not be created")
        return super().run_and_sweep(work, tx)

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        self.create()
        with super().transaction() as tx:
            yield tx

    def sweep(self, limit: int) -> int:
        return super().sweep(limit) if self.exists() else 0

    def view(self) -> AbstractContextManager[Reader]:
        if self.exists():
            return super().view()
        if find_number(self._engine, EVERY_SPACE) is None:
            return self._engine.view(space=NO_SPACE)
        return self._dry_run_view()

    def short_view(self) -> AbstractContextManager[Reader]:
        return super().short_view() if self.exists() else self.view()

    def read(self, work: Callable[[Reader], T], kind: str = "") -> T:
        if self.exists():
            return super().read(work, kind)
        with self.view() as reader:
            return work(reader)

    @contextmanager
    def _dry_run_view(self) -> Iterator[Reader]:
        """Opens a view of the space as if it were created now, with the default tables.

        The tables are written in a transaction that is always undone.
        """
        from holdfast.tables import EveryDomainTables

        copy = EveryDomainTables(Domains(self._engine)).copies()
        with suppress(_Undone), self._engine.transaction(space=NO_SPACE) as tx:
            copy(tx)
            yield tx
            raise _Undone

    def subscribe(self, topic_prefix: str = "") -> Subscription:
        self.create()
        return super().subscribe(topic_prefix)


class _Undone(Exception):
    """Ends a transaction whose writes are not wanted."""


class Domains:
    """The spaces of a store, as the tables see them (`tables.Domains`)."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def names(self) -> list[str]:
        with self._engine.view(space=DIRECTORY) as view:
            return [str(unpack(key)[2]) for key, _ in view.scan(*prefix_range(pack(0, "space")))]

    def find(self, domain: str) -> SpaceRunner | None:
        number = find_number(self._engine, domain)
        return None if number is None else SpaceRunner(self._engine, pack(number))

    def runner(self, domain: str) -> SpaceRunner:
        return SpaceRunner(self._engine, find_or_create(self._engine, domain))
