"""A store: spaces, transactions, and the layers on them."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Protocol, Self, TypeVar

from holdfast.binding import EVERY_SPACE
from holdfast.bounded_cache import forget_spaces
from holdfast.defaults import DEFAULT_SPACE
from holdfast.engine import open_engine
from holdfast.engine.contract import Backup, Engine, Outcome, Subscription, Transaction
from holdfast.errors import RemovalFailed
from holdfast.keys import after as after_key
from holdfast.keys import pack, prefix_range, unpack
from holdfast.lazy_loading import Once
from holdfast.limits import CHECKPOINT_SECONDS, EXPIRED_PER_STEP
from holdfast.space_runner import Domains, NewSpaceRunner, SpaceRunner
from holdfast.spaces import (
    DIRECTORY,
    NO_SPACE,
    ShownInRepl,
    clear_dropped,
    find_number,
    find_or_create,
    move_to_dropped,
    prefix_of,
    refuse_bad_name,
    refuse_unfinished_copy,
)
from holdfast.transactions import LayersView, Shared, events_on, jobs_maker
from holdfast.transactions import Tx as Tx  # public, like the store
from holdfast.transactions import View as View

# A layer is loaded when it is first used: most programs use one or two of the five, and all of them
# together take three times as long to load as the rest of Holdfast.
if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.admin import MaintenanceRuns, Server, StoreAdmin
    from holdfast.async_store import AsyncStore, AsyncStoreSpace
    from holdfast.entities import StoreEntities
    from holdfast.events import StoreEvents
    from holdfast.jobs import StoreJobs
    from holdfast.metrics import StoreMetrics
    from holdfast.tables import StoreTables

T = TypeVar("T")
Durability = Literal["commit", "interval"]


def open(
    path_or_url: "str | Path",
    *,
    durability: Durability = "commit",
    clock: Callable[[], float] = time.time,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
) -> "Store":
    """Opens the store in a folder, and creates it if it does not exist.

    With `durability="commit"` a call returns when its writes are on disk; with "interval" it
    returns sooner, and a power failure can cost the last `checkpoint_seconds`. `clock` is the time
    for everything that expires or is scheduled; tests set it by hand.
    """
    engine = open_engine(
        path_or_url, durability=durability, clock=clock, checkpoint_seconds=checkpoint_seconds
    )
    try:
        return Store(engine)
    except BaseException:
        engine.close()
        raise


# Advice for names that only a client has.
_ELSEWHERE: Final = {
    **dict.fromkeys(
        ("batch", "pipeline"),
        "Here several steps are `store.transact(work)`, or `with store.transaction() as tx:`.",
    ),
    "connect": "A store in a folder needs no connection; `holdfast.connect(url)` goes to a server.",
}


class Step(NamedTuple):
    """One transaction of a group, in its own space."""

    space: "Space"
    work: Callable[[Tx], Any]


class AnyStep(Protocol):
    """Anything with a space and the work of a transaction in it, such as a `Step`."""

    @property
    def space(self) -> "Space": ...

    @property
    def work(self) -> Callable[[Tx], Any]: ...


class Space(ShownInRepl):
    """An isolated set of everything, and the unit of atomicity: a transaction stays within one."""

    if not TYPE_CHECKING:  # otherwise every attribute would type-check

        def __getattr__(self, name: str) -> Any:
            from holdfast.error_text import no_attribute

            raise no_attribute(self, name, _ELSEWHERE)

    def __init__(
        self,
        engine: Engine,
        name: str,
        prefix: bytes,
        shared: Shared | None = None,
        store: "Store | None" = None,
        runner: SpaceRunner | None = None,
    ) -> None:
        self.name = name
        self._engine = engine
        self._shared = shared or Shared()
        self._runner = runner or SpaceRunner(engine, prefix)
        self._store = store

    @property
    def prefix(self) -> bytes:
        """The prefix of every key of this space."""
        return self._runner.prefix

    @property
    def is_new(self) -> bool:
        """Returns whether the space did not exist when it was opened."""
        return isinstance(self._runner, NewSpaceRunner)

    def exists(self) -> bool:
        """Returns whether the space has been created; one opened with `create=False` may not exist
        yet."""
        runner = self._runner
        return runner.exists() if isinstance(runner, NewSpaceRunner) else True

    def create(self) -> None:
        """Creates the space, if it was opened with `create=False` and does not exist yet."""
        if isinstance(self._runner, NewSpaceRunner):
            self._runner.create()

    # --- layers: one attribute each, a transaction for every call ---------------------------------

    @Once
    def entities(self) -> "StoreEntities":
        from holdfast.entities import StoreEntities

        return StoreEntities(self._runner)

    @Once
    def events(self) -> "StoreEvents":
        from holdfast.events import StoreEvents

        return StoreEvents(self._runner, events_on)

    @Once
    def jobs(self) -> "StoreJobs":
        from holdfast.jobs import StoreJobs

        return StoreJobs(self._runner, jobs_maker())

    @Once
    def metrics(self) -> "StoreMetrics":
        from holdfast.metrics import StoreMetrics

        return StoreMetrics(self._runner)

    @Once
    def tables(self) -> "StoreTables":
        from holdfast.tables import EveryDomainTables, StoreTables

        if self.name == EVERY_SPACE:
            return EveryDomainTables(Domains(self._engine))
        return StoreTables(self._runner, self._shared.versions)

    @Once
    def admin(self) -> "StoreAdmin":
        """Returns the administration of this space and its store."""
        from holdfast.admin import StoreAdmin

        return StoreAdmin(self._store or Store(self._engine), self, self._runner)

    @Once
    def aio(self) -> "AsyncStoreSpace":
        """The same layers for programs that `await`: `await store.aio.jobs.put("emails")`.

        Calls do not block the event loop, and those of many tasks share a commit.
        """
        from holdfast.async_store import AsyncStoreSpace

        store = self._store or Store(self._engine)
        return AsyncStoreSpace(store.aio.runs, self.name, self)

    # --- transactions -----------------------------------------------------------------------------

    def transact(self, work: Callable[[Tx], T]) -> T:
        """Runs `work(tx)` and returns its result once everything it wrote is durable.

        If it raises, nothing was written. It may run more than once, so it should touch nothing but
        its transaction.
        """
        return self._runner.transact(lambda tx: work(Tx(tx, self._shared)))

    @contextmanager
    def transaction(self) -> Iterator[Tx]:
        """Opens a transaction for a `with` block. On remote engines it may raise `Conflict`."""
        with self._runner.transaction() as tx:
            yield Tx(tx, self._shared)

    def view(self) -> AbstractContextManager[View]:
        """Opens one consistent snapshot for any number of reads."""
        return LayersView(self._runner.view(), self._shared)

    def read(self, work: Callable[[View], T], *, kind: str = "") -> T:
        """Runs `work(view)` on one consistent snapshot and returns its result.

        On remote engines it may run more than once, which saves round trips; so it should touch
        nothing but its view. Works that read alike may share a `kind`, a name of your choice, from
        which the engine learns what the next one will need.
        """
        return self._runner.read(lambda reader: work(View(reader, self._shared)), kind)

    def subscribe(self, topic_prefix: str = "") -> Subscription:
        """Returns the notices of this space from now on, in the order of their commits."""
        return self._runner.subscribe(topic_prefix)

    def read_clock(self) -> float:
        """Returns the time by the store's clock, in seconds since 1970."""
        return self._runner.read_clock()

    def sweep(self, *, limit: int = EXPIRED_PER_STEP) -> int:
        """Removes up to `limit` entries that have expired, and returns how many; fewer than `limit`
        means that none is left, 0 that no step of background work is due either. Writes do this by
        themselves, a few each."""
        return self._runner.sweep(limit)


def short_view(space: Space) -> AbstractContextManager[View]:
    """Opens a view for a server's event loop, which must not be blocked: a long read may raise
    `TooLong`, and has to run again in a thread."""
    return LayersView(space._runner.short_view(), space._shared)


class Store(Space):
    """An open store: the space "default", and access to all other spaces."""

    keeps_admin = False  # whether users are changed over the network; set by a server
    server: "Server | None" = None  # the server that has opened the store

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._maintenance: MaintenanceRuns | None = None
        self._maintenance_lock = threading.Lock()
        refuse_unfinished_copy(engine)
        prefix = find_or_create(engine, DEFAULT_SPACE)
        super().__init__(engine, DEFAULT_SPACE, prefix, store=self)

    @Once
    def aio(self) -> "AsyncStore":
        """Returns this store for programs that `await`: `await store.aio.jobs.put("emails")`.

        Calls do not block the event loop, and those of many tasks share a commit.
        """
        from holdfast.async_store import AsyncStore

        return AsyncStore(self)

    def space(self, name: str, *, create: bool = True) -> Space:
        """Returns the space of that name, created if it does not exist.

        With `create=False` the first write creates it, and until then it reads as empty. The space
        `*` means all spaces: its tables are the defaults of every other space.
        """
        refuse_bad_name(name)
        if not create and find_number(self.engine, name) is None:
            runner = NewSpaceRunner(
                self.engine,
                partial(prefix_of, self.engine, name),
                partial(self._find_or_create, name),
            )
            return Space(self.engine, name, NO_SPACE, self._shared, self, runner)
        return Space(self.engine, name, self._find_or_create(name), self._shared, self)

    def _find_or_create(self, name: str) -> bytes:
        """Returns the prefix of a space, created with the tables that all spaces have."""
        prefix = find_or_create(self.engine, name)
        if find_number(self.engine, EVERY_SPACE) is not None:
            from holdfast.tables import EveryDomainTables

            EveryDomainTables(Domains(self.engine)).catch_up(name)
        return prefix

    def has_space(self, name: str) -> bool:
        """Returns whether there is a space of that name."""
        return find_number(self.engine, name) is not None

    def transact_many(self, steps: Sequence[AnyStep]) -> list[Outcome[Any]]:
        """Runs each step as its own transaction, in order, with one wait for the disk.

        Each succeeds or fails alone.
        """
        if NO_SPACE in [step.space._runner.prefix for step in steps]:
            return self._transact_many_in_new(steps)
        return self._transact_many(steps)

    def try_transact_many(self, steps: Sequence[AnyStep]) -> list[Outcome[Any]] | None:
        """Like `transact_many`, for a thread that must not be blocked: returns None, without having
        written anything, if it would take more than a moment."""
        prefixes = [step.space._runner.prefix for step in steps]
        if NO_SPACE in prefixes:
            return None
        outcomes = self.engine.try_transact_many(_works_of(steps), spaces=prefixes)
        return None if outcomes is None else _retry_failed_removals(outcomes, steps)

    def _transact_many(self, steps: Sequence[AnyStep]) -> list[Outcome[Any]]:
        prefixes = [step.space._runner.prefix for step in steps]
        return _retry_failed_removals(
            self.engine.transact_many(_works_of(steps), spaces=prefixes), steps
        )

    def _transact_many_in_new(self, steps: Sequence[AnyStep]) -> list[Outcome[Any]]:
        """Runs steps of which some are in spaces that did not exist when they were opened.

        Each of these is tried first: its space is created only if it writes something.
        """
        answered: dict[int, Outcome[Any]] = {}
        for number, step in enumerate(steps):
            runner = step.space._runner
            if isinstance(runner, NewSpaceRunner):
                outcome = runner.dry_run(partial(_on_layers, step.work, step.space._shared))
                if outcome is None:
                    runner.try_to_create()
                else:
                    answered[number] = outcome
        rest = self._transact_many([s for n, s in enumerate(steps) if n not in answered])
        others = iter(rest)
        return [answered[n] if n in answered else next(others) for n in range(len(steps))]

    def spaces(self) -> list[str]:
        """Returns the names of all spaces."""
        return Domains(self.engine).names()

    def page_of_spaces(self, *, after: str | None, limit: int) -> list[tuple[str, bytes]]:
        """Returns up to `limit` spaces after the name `after`, with their prefixes. Reads as many
        keys."""
        begin, end = prefix_range(pack(0, "space"))
        if after is not None:
            begin = after_key(pack(0, "space", after))
        with self.engine.view(space=DIRECTORY) as view:
            pairs = list(view.scan(begin, end, limit=limit))
        return [(str(unpack(key)[2]), pack(int(number))) for key, number in pairs]

    def drop_space(self, name: str, *, progress: Callable[[int], None] | None = None) -> None:
        """Removes a space with everything in it, in bounded steps between which others can write.

        It is gone for everyone before the first step: code that still holds it gets `UnknownSpace`
        on the next call, and its name is free for a new space. It is no error if it does not exist.
        `progress` gets the number of removed keys after each step. After a crash in the middle,
        `resume_drops` continues.
        """
        number = self.engine.transact(lambda tx: move_to_dropped(tx, name), space=DIRECTORY)
        if number is not None:
            self._empty(number, progress)
            forget_spaces()

    def resume_drops(self) -> None:
        """Continues the drops that a crash has interrupted; without any, reads no key."""
        with self.engine.view(space=DIRECTORY) as view:
            keys = [key for key, _ in view.scan(*prefix_range(pack(0, "dropped")))]
        for key in keys:
            self._empty(int(unpack(key)[2]), None)

    def _empty(self, number: int, progress: Callable[[int], None] | None) -> None:
        removed = 0
        while step := self.engine.transact(clear_dropped, space=pack(number)):
            removed += step
            if progress is not None:
                progress(removed)
        self.engine.transact(lambda tx: tx.delete(pack(0, "dropped", number)), space=DIRECTORY)

    @property
    def engine_name(self) -> str:
        """The kind of engine: lmdb, postgres or valkey."""
        kind = type(getattr(self.engine, "backend", self.engine))
        return kind.__module__.split(".")[2]

    @property
    def maintenance(self) -> "MaintenanceRuns":
        """The checks and backups that this process runs in the background."""
        from holdfast.admin import MaintenanceRuns

        with self._maintenance_lock:
            if self._maintenance is None:
                self._maintenance = MaintenanceRuns(self.engine.read_clock)
            return self._maintenance

    def checkpoint(self) -> None:
        """Returns when everything committed so far would survive a power failure."""
        self.engine.checkpoint()

    def backup(self, target: "str | Path") -> Backup:
        """Writes a consistent copy into the folder `target` while others continue to write, and
        verifies it.

        Returns how many keys it has, and the digest of its content.
        """
        from pathlib import Path

        return self.engine.backup(Path(target))

    def check(self) -> list[str]:
        """Reads everything and returns the problems; an empty list means that the store is
        sound."""
        return self.engine.check()

    def stats(self) -> dict[str, int]:
        """Returns figures about the store and about this process's use of it."""
        return self.engine.stats()

    def close(self) -> None:
        """Waits for running writers, syncs, and releases the folder. A second call does nothing."""
        if (used := self.__dict__.get("aio")) is not None:
            used.runs.close()
        if self._maintenance is not None:
            self._maintenance.close()
        self.engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def _on_layers(work: Callable[[Tx], T], shared: Shared, tx: Transaction) -> T:
    return work(Tx(tx, shared))


def _works_of(steps: Sequence[AnyStep]) -> list[Callable[[Transaction], Any]]:
    if len(steps) > 1:
        run = _GroupLayers().run
        return [partial(run, step) for step in steps]
    return [
        partial(
            (space := step.space)._runner.run_and_sweep,
            partial(_on_layers, step.work, space._shared),
        )
        for step in steps
    ]


class _GroupLayers:
    """Runs the steps of one group. Those that the engine runs in one buffer share the layers on it,
    and what is done once for each space: whether it still exists, and what has expired."""

    __slots__ = ("_layers", "_tx")

    def __init__(self) -> None:
        self._tx: Transaction | None = None  # on which a step has run
        self._layers: Tx

    def run(self, step: AnyStep, tx: Transaction) -> Any:
        if tx is self._tx:
            return step.work(self._layers._renewed())
        return step.space._runner.run_and_sweep(partial(self._begin, step), tx)

    def _begin(self, step: AnyStep, tx: Transaction) -> Any:
        self._layers = Tx(tx, step.space._shared)
        result = step.work(self._layers)
        self._tx = tx
        return result


def _retry_failed_removals(
    outcomes: list[Outcome[Any]], steps: Sequence[AnyStep]
) -> list[Outcome[Any]]:
    """Returns the outcomes, after a second try of those that failed only in removing expired
    keys."""
    for number, outcome in enumerate(outcomes):
        if isinstance(outcome.error, RemovalFailed):
            outcomes[number] = _run_alone(steps[number])
    return outcomes


def _run_alone(step: AnyStep) -> Outcome[Any]:
    """Runs a step again alone, because a removal that was part of it failed."""
    try:
        return Outcome(result=step.space.transact(step.work))
    except Exception as error:
        return Outcome(error=error)
