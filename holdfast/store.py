"""A store: spaces, transactions, and the layers on them.

Where spaces live: space 0 is the directory, all others are numbered from 1 as they are created, so
that a name of any length costs two or three bytes in each key.

(0, "space", name)    -> number    the spaces that can be opened
(0, "last")           -> counter   the number given last; none is used twice
(0, "dropped", number)-> name      spaces that are being emptied
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, Self, TypeVar

from holdfast import entities, events, expiry, jobs, metrics, tables
from holdfast.engine import open_engine
from holdfast.engine.contract import (
    Engine,
    Notice,
    Outcome,
    Reader,
    Subscription,
    Transaction,
    read_counter,
)
from holdfast.entities import Entities, StoreEntities
from holdfast.errors import BadInput, RemovalFailed
from holdfast.events import Events, StoreEvents
from holdfast.jobs import Jobs, StoreJobs
from holdfast.keys import after, pack, prefix_range, unpack
from holdfast.limits import (
    CHECKPOINT_SECONDS,
    CLEARED_PER_STEP,
    EXPIRED_PER_STEP,
    EXPIRED_PER_WRITE,
    MAX_SPACE_NAME_BYTES,
)
from holdfast.metrics import Metrics, StoreMetrics
from holdfast.tables import EVERY_DOMAIN, EveryDomainTables, StoreTables, Tables, Versions

T = TypeVar("T")

DEFAULT_SPACE: Final = "default"
DIRECTORY: Final = pack(0)
_LAST: Final = pack(0, "last")
Durability = Literal["commit", "interval"]

# What each layer removes when it expires, by kind; see expiry.py.
REMOVERS: Final[dict[str, expiry.Remover]] = {
    # --- layers: **jobs.REMOVERS and its brothers -------------------------------------------------
    **metrics.REMOVERS,
    **entities.REMOVERS,
    **events.REMOVERS,
    **jobs.REMOVERS,
    **tables.REMOVERS,
}


def open(
    path_or_url: str | Path,
    *,
    durability: Durability = "commit",
    clock: Callable[[], float] = time.time,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
) -> "Store":
    """Opens the store in a folder, and creates it if there is none.

    With `durability="commit"` a call returns when its writes are on disk; with "interval" it
    returns sooner, and a power failure can cost the last `checkpoint_seconds`. `clock` gives the
    time to all that expires or is scheduled; tests turn it by hand.
    """
    engine = open_engine(
        path_or_url, durability=durability, clock=clock, checkpoint_seconds=checkpoint_seconds
    )
    try:
        return Store(engine)
    except BaseException:
        engine.close()
        raise


class View:
    """The layers on one consistent snapshot."""

    def __init__(self, reader: Reader, versions: Versions | None = None) -> None:
        self._tx = reader
        self._versions = versions  # makes the automatic versions of tables, for the whole store

    @property
    def now(self) -> float:
        return self._tx.now

    @property
    def raw(self) -> Transaction:
        """The engine's own transaction, below the layers: for those who build on the ground."""
        return self._tx  # type: ignore[return-value]  # a view refuses to write

    # --- layers: one property each; what a layer needs of a neighbour is handed to it here --------

    @cached_property
    def entities(self) -> Entities:
        return Entities(self.raw)

    @cached_property
    def events(self) -> Events:
        return _events(self.raw)

    @cached_property
    def jobs(self) -> Jobs:
        return Jobs(self.raw)

    @cached_property
    def metrics(self) -> Metrics:
        return Metrics(self.raw)

    @cached_property
    def tables(self) -> Tables:
        return Tables(self.raw, self._versions)


class Tx(View):
    """The layers on one transaction: all that is written here becomes durable together."""

    _tx: Transaction

    def publish(self, notice: Notice) -> None:
        """Tells everyone who listens to this space, in any process, once all this is durable."""
        self._tx.after_commit(notice)


class SpaceRunner:
    """One space of an engine, as the layers see it (`binding.Runner`)."""

    def __init__(self, engine: Engine, prefix: bytes) -> None:
        self._engine = engine
        self.prefix = prefix
        self._dropped_key = expiry.dropped_key(prefix)

    def transact(self, work: Callable[[Transaction], T]) -> T:
        """Runs `work`, and in the same transaction removes a little of what has expired.

        A removal that fails undoes the transaction. Then `work` runs again without removals, so
        that one damaged record does not stop the writes of its space.
        """

        try:
            return self._engine.transact(self.and_sweep(work), space=self.prefix)
        except RemovalFailed as failure:
            self._postpone(failure)

        def run(tx: Transaction) -> T:
            expiry.refuse_dropped(tx)
            return work(tx)

        return self._engine.transact(run, space=self.prefix)

    def and_sweep(self, work: Callable[[Transaction], T]) -> Callable[[Transaction], T]:
        """`work`, and behind it, in the same transaction, the removal of a little that expired."""

        def run_and_sweep(tx: Transaction) -> T:
            result = work(tx)
            expiry.sweep(tx, REMOVERS, limit=EXPIRED_PER_WRITE)
            return result

        return run_and_sweep

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """The same for a `with` block; as it can't run again, no removals ride on it."""
        with self._engine.transaction(space=self.prefix) as tx:
            expiry.refuse_dropped(tx)
            yield tx

    def sweep(self, limit: int) -> int:
        """Removes up to `limit` of what has expired; those that fail are postponed, and count."""
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
        if self._engine.is_remote:
            return _RemoteSpaceView(self._engine.view(space=self.prefix), self._dropped_key)
        return _SpaceView(self._engine.view(space=self.prefix), self._dropped_key)

    def subscribe(self, topic_prefix: str = "") -> Subscription:
        return self._engine.subscribe(topic_prefix=topic_prefix, space=self.prefix)

    def read_clock(self) -> float:
        return self._engine.read_clock()


class _SpaceView:
    """A view that refuses a dropped space: its reader would find it empty, or half empty.

    A context manager by hand: a generator would cost as much as the view itself.
    """

    __slots__ = ("_dropped_key", "_view")

    def __init__(self, view: AbstractContextManager[Reader], dropped_key: bytes) -> None:
        self._view = view
        self._dropped_key = dropped_key

    def __enter__(self) -> Reader:
        reader = self._view.__enter__()
        try:
            if reader.get(self._dropped_key) is not None:
                expiry.refuse_dropped(reader)
        except BaseException:
            self._view.__exit__(None, None, None)
            raise
        return reader

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> bool | None:
        return self._view.__exit__(kind, error, traceback)


class _RemoteSpaceView(_SpaceView):
    """The same where a read is a round trip: the engine looks together with the first read."""

    __slots__ = ()

    def __enter__(self) -> Reader:
        reader: Any = self._view.__enter__()
        reader.guard(self._dropped_key, expiry.refuse_dropped)
        return reader  # type: ignore[no-any-return]  # a reader with one method more


class _LayersView:
    """The layers on a view; by hand too, since a server opens one for each read."""

    __slots__ = ("_versions", "_view")

    def __init__(self, view: AbstractContextManager[Reader], versions: Versions) -> None:
        self._view = view
        self._versions = versions

    def __enter__(self) -> View:
        return View(self._view.__enter__(), self._versions)

    def __exit__(self, *exc: Any) -> bool | None:
        return self._view.__exit__(*exc)


class Step(NamedTuple):
    """One transaction of a group, in a space of its own."""

    space: "Space"
    work: Callable[[Tx], Any]


class Space:
    """An isolated set of everything, and the unit of atomicity: a transaction stays within one."""

    def __init__(
        self, engine: Engine, name: str, prefix: bytes, versions: Versions | None = None
    ) -> None:
        self.name = name
        self.prefix = prefix
        self._versions = versions or Versions()
        self._runner = SpaceRunner(engine, prefix)
        # --- layers: one attribute each, a transaction for every call -----------------------------
        self.entities = StoreEntities(self._runner)
        self.events: StoreEvents = StoreEvents(self._runner, _events)  # type: ignore[arg-type, call-arg]  # see per_call
        self.jobs = StoreJobs(self._runner)
        self.metrics = StoreMetrics(self._runner)
        self.tables = StoreTables(self._runner, self._versions)
        if name == EVERY_DOMAIN:
            self.tables = EveryDomainTables(_Domains(engine))

    def transact(self, work: Callable[[Tx], T]) -> T:
        """Runs `work(tx)` and returns its result once all that it wrote is durable.

        If it raises, nothing was written. It may run more than once, so it should touch nothing but
        its transaction.
        """
        return self._runner.transact(partial(_on_layers, work, self._versions))

    @contextmanager
    def transaction(self) -> Iterator[Tx]:
        """The same for a `with` block. On engines of several machines it may raise `Conflict`."""
        with self._runner.transaction() as tx:
            yield Tx(tx, self._versions)

    def view(self) -> AbstractContextManager[View]:
        """One consistent snapshot for any number of reads."""
        return _LayersView(self._runner.view(), self._versions)

    def subscribe(self, topic_prefix: str = "") -> Subscription:
        """The notices of this space from now on, in the order of their commits."""
        return self._runner.subscribe(topic_prefix)

    def sweep(self, *, limit: int = EXPIRED_PER_STEP) -> int:
        """Deals with up to `limit` of what has expired, and says with how many; fewer than `limit`
        means that nothing is left. Writes do so by themselves, a few each."""
        return self._runner.sweep(limit)


class Store(Space):
    """An open store: the space "default", and the way to all others."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        super().__init__(engine, DEFAULT_SPACE, _find_or_create(engine, DEFAULT_SPACE))

    def space(self, name: str) -> Space:
        """The space of that name, created if there is none.

        The space `*` stands for all: its tables are the defaults of every other space.
        """
        prefix = _find_or_create(self.engine, name)
        EveryDomainTables(_Domains(self.engine)).catch_up(name)
        return Space(self.engine, name, prefix, self._versions)

    def transact_many(self, steps: Sequence[Step]) -> list[Outcome[Any]]:
        """Runs each step as a transaction of its own, in order, with one wait for the disk.

        Each succeeds or fails alone.
        """
        runners = [step.space._runner for step in steps]
        outcomes = self.engine.transact_many(
            [
                runner.and_sweep(partial(_on_layers, step.work, step.space._versions))
                for runner, step in zip(runners, steps, strict=True)
            ],
            spaces=[runner.prefix for runner in runners],
        )
        for number, outcome in enumerate(outcomes):
            if isinstance(outcome.error, RemovalFailed):
                outcomes[number] = _again(steps[number])
        return outcomes

    def spaces(self) -> list[str]:
        """The names of all spaces."""
        return _Domains(self.engine).names()

    def drop_space(self, name: str, *, progress: Callable[[int], None] | None = None) -> None:
        """Removes a space with all that is in it, in bounded steps between which others write.

        It is gone for everyone before the first step: whoever still holds it gets `UnknownSpace`
        on the next call, and its name is free for a new space. It is no error if there is none.
        `progress` is told the number of keys removed after each step. After a crash in the middle,
        `resume_drops` goes on.
        """
        number = self.engine.transact(lambda tx: _move_to_dropped(tx, name), space=DIRECTORY)
        if number is not None:
            self._empty(number, progress)

    def resume_drops(self) -> None:
        """Goes on with the drops that a crash has interrupted; without any, reads no key."""
        with self.engine.view(space=DIRECTORY) as view:
            keys = [key for key, _ in view.scan(*prefix_range(pack(0, "dropped")))]
        for key in keys:
            self._empty(int(unpack(key)[2]), None)

    def _empty(self, number: int, progress: Callable[[int], None] | None) -> None:
        removed = 0
        self.engine.transact(expiry.mark_dropped, space=pack(number))
        while step := self.engine.transact(_clear_some, space=pack(number)):
            removed += step
            if progress is not None:
                progress(removed)
        self.engine.transact(lambda tx: tx.delete(pack(0, "dropped", number)), space=DIRECTORY)

    def checkpoint(self) -> None:
        """Returns when everything committed so far would survive a power failure."""
        self.engine.checkpoint()

    def backup(self, target: str | Path) -> None:
        """Writes a consistent copy into the folder `target` while others go on, and verifies it."""
        self.engine.backup(Path(target))

    def check(self) -> list[str]:
        """Reads everything and returns what is wrong with it; an empty list is a clean store."""
        return self.engine.check()

    def stats(self) -> dict[str, int]:
        """Figures about the store and about this process's use of it."""
        return self.engine.stats()

    def close(self) -> None:
        """Makes all durable and gives the folder free. A second call does nothing."""
        self.engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def _on_layers(work: Callable[[Tx], T], versions: Versions, tx: Transaction) -> T:
    return work(Tx(tx, versions))


def _again(step: Step) -> Outcome[Any]:
    """The removal that rode on a step failed: the step is run once more, by itself."""
    try:
        return Outcome(result=step.space.transact(step.work))
    except Exception as error:
        return Outcome(error=error)


def _events(tx: Transaction) -> Events:
    """A handler that enqueues puts its job in the transaction of its event."""
    return Events(tx, enqueue=Jobs(tx).put)


class _Domains:
    """The spaces of a store, as the tables see them (`tables.Domains`)."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def names(self) -> list[str]:
        with self._engine.view(space=DIRECTORY) as view:
            return [str(unpack(key)[2]) for key, _ in view.scan(*prefix_range(pack(0, "space")))]

    def find(self, domain: str) -> SpaceRunner | None:
        number = _find(self._engine, domain)
        return None if number is None else SpaceRunner(self._engine, pack(number))

    def runner(self, domain: str) -> SpaceRunner:
        return SpaceRunner(self._engine, _find_or_create(self._engine, domain))


def _find_or_create(engine: Engine, name: str) -> bytes:
    # What is no Unicode text is measured all the same: `pack` says what is wrong with it.
    size = len(name.encode(errors="surrogatepass")) if isinstance(name, str) else 0
    if not 0 < size <= MAX_SPACE_NAME_BYTES:
        raise BadInput(
            f"{name!r} can't name a space",
            hint=f"Use a string of 1 to {MAX_SPACE_NAME_BYTES} bytes.",
        )
    number = _find(engine, name)
    if number is None:
        number = engine.transact(lambda tx: _create(tx, name), space=DIRECTORY)
    return pack(number)


def _find(engine: Engine, name: str) -> int | None:
    with engine.view(space=DIRECTORY) as view:
        value = view.get(pack(0, "space", name))
    return None if value is None else int(value)


def _create(tx: Transaction, name: str) -> int:
    found = tx.get(pack(0, "space", name))
    if found is not None:
        return int(found)
    tx.add(_LAST, 1)
    number = read_counter(tx.get(_LAST))
    tx.put(pack(0, "space", name), b"%d" % number)
    return number


def _move_to_dropped(tx: Transaction, name: str) -> int | None:
    """Takes the name away before anything is removed, so a crash leaves no space half empty."""
    found = tx.get(pack(0, "space", name))
    if found is None:
        return None
    tx.delete(pack(0, "space", name))
    tx.put(pack(0, "dropped", int(found)), name.encode())
    return int(found)


def _clear_some(tx: Transaction) -> int:
    """Clears a bounded number of keys of a dropped space, all but its marker."""
    begin, end = after(expiry.dropped_key(tx.space)), prefix_range(tx.space)[1]
    keys = [key for key, _ in tx.scan(begin, end, limit=CLEARED_PER_STEP)]
    if keys:
        tx.clear(begin, after(keys[-1]))
    return len(keys)
