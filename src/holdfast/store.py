"""A store: spaces, transactions, and the layers on them.

Where spaces live: space 0 is the directory, all others are numbered from 1 as they are created, so
that a name of any length costs two or three bytes in each key.

(0, "space", name)    -> number    the spaces that can be opened
(0, "last")           -> counter   the number given last; none is used twice
(0, "dropped", number)-> name      spaces that are being emptied
(0, "copying")        -> text      a copy that has begun and not ended; see store_copy.py
"""

import importlib
import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cache, partial
from pathlib import Path
from types import ModuleType
from typing import (
    TYPE_CHECKING,
    Any,
    Final,
    Generic,
    Literal,
    NamedTuple,
    Self,
    TypeVar,
    overload,
)

from holdfast import expiry
from holdfast.binding import EVERY_SPACE, can_run_again
from holdfast.defaults import DEFAULT_SPACE, LAYERS
from holdfast.engine import open_engine
from holdfast.engine.contract import (
    Backup,
    Engine,
    Guard,
    Notice,
    Outcome,
    Reader,
    Subscription,
    Transaction,
    read_counter,
)
from holdfast.errors import BadInput, RemovalFailed, UnknownSpace
from holdfast.keys import after as after_key
from holdfast.keys import pack, prefix_range, unpack
from holdfast.limits import (
    CHECKPOINT_SECONDS,
    CLEARED_PER_STEP,
    EXPIRED_PER_STEP,
    EXPIRED_PER_WRITE,
    EXPIRY_LOOK_SECONDS,
    MAX_SPACE_NAME_BYTES,
)
from holdfast.rehearsal import rehearse
from holdfast.store_copy import refuse_unfinished

# A layer is loaded when it is first used: most programs use one or two of the five, and all of them
# together take three times as long to load as the rest of Holdfast.
if TYPE_CHECKING:
    from holdfast.admin import StoreAdmin
    from holdfast.entities import Entities, StoreEntities
    from holdfast.events import Events, StoreEvents
    from holdfast.jobs import Jobs, StoreJobs
    from holdfast.metrics import Metrics, StoreMetrics
    from holdfast.tables import StoreTables, Tables, Versions

T = TypeVar("T")

DIRECTORY: Final = pack(0)
_LAST: Final = pack(0, "last")
SPACE_CREATED: Final = "spaces.created"  # a notice in the directory, with the name as its payload
SPACE_DROPPED: Final = "spaces.dropped"  # likewise
NOWHERE: Final = pack(2**62)  # the prefix of spaces that do not exist: no space has this number
Durability = Literal["commit", "interval"]


@cache
def _layer(name: str) -> ModuleType:
    """The package of a layer. A statement `import` in its place would take a µs each time."""
    return importlib.import_module(f"holdfast.{name}")


class _Once(Generic[T]):
    """An attribute that is made when it is first asked for; until Python 3.12 `cached_property`
    takes a lock for that, which costs more than most layers."""

    def __init__(self, make: Callable[[Any], T]) -> None:
        self._make = make
        self.__doc__ = make.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> T | Self:
        if instance is None:
            return self
        # Of two threads that come at the same time, both get the one that is kept.
        made: T = instance.__dict__.setdefault(self._name, self._make(instance))
        return made


class Removers(dict[str, expiry.Remover]):
    """The functions that remove what expires, by kind; see expiry.py.

    A kind begins with the name of its layer, which is loaded when the first such entry is due.
    """

    def get(self, kind: str, default: Any = None) -> Any:
        if kind not in self:
            layer = kind.partition(".")[0]
            if layer in LAYERS:
                self.update(_layer(layer).REMOVERS)
        return super().get(kind, default)


REMOVERS: Final = Removers()


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


# What a client has and a store has otherwise.
_ELSEWHERE: Final = {
    **dict.fromkeys(
        ("batch", "pipeline"),
        "Here several steps are `store.transact(work)`, or `with store.transaction() as tx:`.",
    ),
    "connect": "A store in a folder needs no connection; `holdfast.connect(url)` goes to a server.",
}
_NESTED: Final = {
    "space": "A transaction stays within one space: open one for each.",
    **dict.fromkeys(
        ("transact", "transaction", "batch"),
        "This is a transaction already; all that it does is one commit.",
    ),
}


class View:
    """The layers on one consistent snapshot."""

    if not TYPE_CHECKING:  # or every name would be one

        def __getattr__(self, name: str) -> Any:
            from holdfast.error_text import no_attribute

            raise no_attribute(self, name, _NESTED)

    def __init__(self, reader: Reader, shared: "Shared | None" = None) -> None:
        self._tx = reader
        self._shared = shared

    @property
    def now(self) -> float:
        return self._tx.now

    @property
    def raw(self) -> Transaction:
        """The engine's own transaction, below the layers: for code that builds on the engine
        itself."""
        return self._tx  # type: ignore[return-value]  # a view refuses to write

    # --- layers: one property each; what a layer needs of another is passed in here --------

    @_Once
    def entities(self) -> "Entities":
        made: Entities = _layer("entities").Entities(self._tx)
        return made

    @_Once
    def events(self) -> "Events":
        return _events(self.raw)

    @_Once
    def jobs(self) -> "Jobs":
        return _jobs(self._tx)

    @_Once
    def metrics(self) -> "Metrics":
        made: Metrics = _layer("metrics").Metrics(self._tx)
        return made

    @_Once
    def tables(self) -> "Tables":
        versions = None if self._shared is None else self._shared.versions
        made: Tables = _layer("tables").Tables(self._tx, versions)
        return made


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
        self.dropped_key = expiry.dropped_key(prefix)
        self.is_remote = engine.is_remote
        self._guard = Guard(self.dropped_key, expiry.refuse_dropped)
        self._looked = -math.inf  # when nothing was found to be due

    def transact(self, work: Callable[[Transaction], T]) -> T:
        """Runs `work`, and in the same transaction removes a little of what has expired.

        A removal that fails undoes the transaction. Then `work` runs again without removals, so
        that one damaged record does not stop the writes of its space.
        """

        try:
            return self._engine.transact(partial(self.run_and_sweep, work), space=self.prefix)
        except RemovalFailed as failure:
            self._postpone(failure)
            if not can_run_again(work):
                raise BadInput(
                    "nothing was done, and an iterator among the arguments is used up: "
                    "a damaged record made it necessary to begin again",
                    hint="Make the iterator again and repeat the call, or give lists.",
                ) from failure

        def run(tx: Transaction) -> T:
            expiry.refuse_dropped(tx)
            return work(tx)

        return self._engine.transact(run, space=self.prefix)

    def run_and_sweep(self, work: Callable[[Transaction], T], tx: Transaction) -> T:
        """Runs `work`, and behind it, in the same transaction, removes a little that expired.

        A process that has just found nothing due does not look again at once: at a
        thousand writes a second that would cost more than all removals.
        """
        if tx.get(self.dropped_key) is not None:
            expiry.refuse_dropped(tx)
        result = work(tx)
        since = tx.now - self._looked
        # A remote engine runs work more than once at the same `now`, first on guesses: what the
        # last run finds counts.
        if 0 <= since < EXPIRY_LOOK_SECONDS and (since or not self.is_remote):
            return result
        found = expiry.sweep(tx, REMOVERS, limit=EXPIRED_PER_WRITE)
        self._looked = -math.inf if found else tx.now
        return result

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """Opens a transaction for a `with` block; as it can't run again, it removes nothing that
        expired."""
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
        """A view that refuses a dropped space: it would be found empty, or half empty."""
        return self._engine.view(space=self.prefix, guard=self._guard)

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
        super().__init__(engine, NOWHERE)
        self._find = find
        self._create = create
        self._failure: Exception | None = None  # why it could not be created

    def exists(self) -> bool:
        """Whether the space exists by now. Reads 1 key until it does."""
        if self.prefix == NOWHERE and (found := self._find()) is not None:
            self._become(found)
        return self.prefix != NOWHERE

    def create(self) -> None:
        """Creates the space, unless it exists."""
        if self.prefix == NOWHERE:
            self._become(self._create())

    def try_to_create(self) -> None:
        """Like `create`, for one transaction of a group: its own work raises what went wrong."""
        try:
            self.create()
        except Exception as error:
            self._failure = error

    def _become(self, prefix: bytes) -> None:
        self.dropped_key = expiry.dropped_key(prefix)
        self._guard = Guard(self.dropped_key, expiry.refuse_dropped)
        self.prefix = prefix

    def rehearse(self, work: Callable[[Transaction], T]) -> Outcome[T] | None:
        """Returns what becomes of `work` if it needs no space; None if it has to run in one."""
        if self.exists():
            return None
        with self.view() as reader:
            return rehearse(work, reader)

    def transact(self, work: Callable[[Transaction], T]) -> T:
        if (outcome := self.rehearse(work)) is not None:
            return outcome.unwrap()
        self.create()
        return super().transact(work)

    def run_and_sweep(self, work: Callable[[Transaction], T], tx: Transaction) -> T:
        if tx.space == NOWHERE:
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
        if _find(self._engine, EVERY_SPACE) is None:
            return self._engine.view(space=NOWHERE)
        return self._rehearsed()

    @contextmanager
    def _rehearsed(self) -> Iterator[Reader]:
        """The space as it would be if it were created now, with the tables that all spaces have.

        They are written in a transaction that is always undone.
        """
        from holdfast.tables import EveryDomainTables

        copy = EveryDomainTables(_Domains(self._engine)).copies()
        with suppress(_Undone), self._engine.transaction(space=NOWHERE) as tx:
            copy(tx)
            yield tx
            raise _Undone

    def subscribe(self, topic_prefix: str = "") -> Subscription:
        self.create()
        return super().subscribe(topic_prefix)


class _Undone(Exception):
    """Ends a transaction whose writes are not wanted."""


class _LayersView:
    """The layers on a view. A context manager by hand: a generator would cost as much as the view
    itself."""

    __slots__ = ("_shared", "_view")

    def __init__(self, view: AbstractContextManager[Reader], shared: "Shared") -> None:
        self._view = view
        self._shared = shared

    def __enter__(self) -> View:
        return View(self._view.__enter__(), self._shared)

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> bool | None:
        return self._view.__exit__(kind, error, traceback)


class Shared:
    """The state that all spaces of an open store share."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._versions: Versions | None = None

    @property
    def versions(self) -> "Versions":
        """Makes the automatic versions of tables: one for the store, so that all of them differ."""
        if self._versions is None:
            from holdfast import tables

            with self._lock:
                self._versions = self._versions or tables.Versions()
        return self._versions


class Step(NamedTuple):
    """One transaction of a group, in a space of its own."""

    space: "Space"
    work: Callable[[Tx], Any]


class Space:
    """An isolated set of everything, and the unit of atomicity: a transaction stays within one."""

    if not TYPE_CHECKING:  # or every name would be one

        def __getattr__(self, name: str) -> Any:
            from holdfast.error_text import no_attribute

            raise no_attribute(self, name, _ELSEWHERE)

    def __init__(
        self,
        engine: Engine,
        name: str,
        prefix: bytes,
        shared: Shared | None = None,
        home: "Store | None" = None,
        runner: SpaceRunner | None = None,
    ) -> None:
        self.name = name
        self._engine = engine
        self._shared = shared or Shared()
        self._runner = runner or SpaceRunner(engine, prefix)
        self._home = home

    @property
    def prefix(self) -> bytes:
        """The prefix of every key of this space."""
        return self._runner.prefix

    @property
    def is_new(self) -> bool:
        """Whether the space did not exist when it was opened."""
        return isinstance(self._runner, NewSpaceRunner)

    def exists(self) -> bool:
        """Whether the space has been created; one opened with `create=False` may not be yet."""
        runner = self._runner
        return runner.exists() if isinstance(runner, NewSpaceRunner) else True

    def create(self) -> None:
        """Creates the space, if it was opened with `create=False` and does not exist yet."""
        if isinstance(self._runner, NewSpaceRunner):
            self._runner.create()

    # --- layers: one attribute each, a transaction for every call ---------------------------------

    @_Once
    def entities(self) -> "StoreEntities":
        from holdfast.entities import StoreEntities

        return StoreEntities(self._runner)

    @_Once
    def events(self) -> "StoreEvents":
        from holdfast.events import StoreEvents

        return StoreEvents(self._runner, _events)

    @_Once
    def jobs(self) -> "StoreJobs":
        from holdfast.jobs import StoreJobs

        return StoreJobs(self._runner, _jobs)

    @_Once
    def metrics(self) -> "StoreMetrics":
        from holdfast.metrics import StoreMetrics

        return StoreMetrics(self._runner)

    @_Once
    def tables(self) -> "StoreTables":
        from holdfast.tables import EveryDomainTables, StoreTables

        if self.name == EVERY_SPACE:
            return EveryDomainTables(_Domains(self._engine))
        return StoreTables(self._runner, self._shared.versions)

    @_Once
    def admin(self) -> "StoreAdmin":
        """Looking after this space, and after the store that it is in."""
        from holdfast.admin import StoreAdmin

        return StoreAdmin(self._home or Store(self._engine), self, self._runner)

    # --- transactions -----------------------------------------------------------------------------

    def transact(self, work: Callable[[Tx], T]) -> T:
        """Runs `work(tx)` and returns its result once all that it wrote is durable.

        If it raises, nothing was written. It may run more than once, so it should touch nothing but
        its transaction.
        """
        return self._runner.transact(partial(_on_layers, work, self._shared))

    @contextmanager
    def transaction(self) -> Iterator[Tx]:
        """Opens a transaction for a `with` block. On engines of several machines it may raise
        `Conflict`."""
        with self._runner.transaction() as tx:
            yield Tx(tx, self._shared)

    def view(self) -> AbstractContextManager[View]:
        """One consistent snapshot for any number of reads."""
        return _LayersView(self._runner.view(), self._shared)

    def subscribe(self, topic_prefix: str = "") -> Subscription:
        """The notices of this space from now on, in the order of their commits."""
        return self._runner.subscribe(topic_prefix)

    def read_clock(self) -> float:
        """Returns the time by the store's clock, in seconds since 1970."""
        return self._runner.read_clock()

    def sweep(self, *, limit: int = EXPIRED_PER_STEP) -> int:
        """Deals with up to `limit` of what has expired, and says with how many; fewer than `limit`
        means that nothing is left. Writes do so by themselves, a few each."""
        return self._runner.sweep(limit)


class Store(Space):
    """An open store: the space "default", and the way to all others."""

    keeps_admin = False  # whether users are changed over the network: a server says so

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        refuse_unfinished(engine)
        prefix = _find_or_create(engine, DEFAULT_SPACE)
        super().__init__(engine, DEFAULT_SPACE, prefix, home=self)

    def space(self, name: str, *, create: bool = True) -> Space:
        """The space of that name, created if there is none.

        With `create=False` the first write creates it, and until then it reads as empty. The space
        `*` means all spaces: its tables are the defaults of every other space.
        """
        _refuse_bad_name(name)
        if not create and _find(self.engine, name) is None:
            runner = NewSpaceRunner(
                self.engine, partial(_prefix_of, self.engine, name), partial(self._created, name)
            )
            return Space(self.engine, name, NOWHERE, self._shared, self, runner)
        return Space(self.engine, name, self._created(name), self._shared, self)

    def _created(self, name: str) -> bytes:
        """Returns the prefix of a space, with the tables that all spaces have."""
        prefix = _find_or_create(self.engine, name)
        if _find(self.engine, EVERY_SPACE) is not None:
            from holdfast.tables import EveryDomainTables

            EveryDomainTables(_Domains(self.engine)).catch_up(name)
        return prefix

    def has_space(self, name: str) -> bool:
        """Whether there is a space of that name."""
        return _find(self.engine, name) is not None

    def transact_many(self, steps: Sequence[Step]) -> list[Outcome[Any]]:
        """Runs each step as a transaction of its own, in order, with one wait for the disk.

        Each succeeds or fails alone.
        """
        if NOWHERE in [step.space._runner.prefix for step in steps]:
            return self._transact_many_in_new(steps)
        return self._transact_many(steps)

    def _transact_many(self, steps: Sequence[Step]) -> list[Outcome[Any]]:
        runners = [step.space._runner for step in steps]
        prefixes = [runner.prefix for runner in runners]
        outcomes = self.engine.transact_many(
            [
                partial(runner.run_and_sweep, partial(_on_layers, step.work, step.space._shared))
                for runner, step in zip(runners, steps, strict=True)
            ],
            spaces=prefixes,
        )
        for number, outcome in enumerate(outcomes):
            if isinstance(outcome.error, RemovalFailed):
                outcomes[number] = _again(steps[number])
        return outcomes

    def _transact_many_in_new(self, steps: Sequence[Step]) -> list[Outcome[Any]]:
        """Runs steps of which some are in spaces that did not exist when they were opened.

        Each of these is tried first: its space is created only if it writes something.
        """
        answered: dict[int, Outcome[Any]] = {}
        for number, step in enumerate(steps):
            runner = step.space._runner
            if isinstance(runner, NewSpaceRunner):
                outcome = runner.rehearse(partial(_on_layers, step.work, step.space._shared))
                if outcome is None:
                    runner.try_to_create()
                else:
                    answered[number] = outcome
        rest = self._transact_many([s for n, s in enumerate(steps) if n not in answered])
        others = iter(rest)
        return [answered[n] if n in answered else next(others) for n in range(len(steps))]

    def spaces(self) -> list[str]:
        """The names of all spaces."""
        return _Domains(self.engine).names()

    def page_of_spaces(self, *, after: str | None, limit: int) -> list[tuple[str, bytes]]:
        """Up to `limit` spaces behind the name `after`, with their prefixes. Reads as many keys."""
        begin, end = prefix_range(pack(0, "space"))
        if after is not None:
            begin = after_key(pack(0, "space", after))
        with self.engine.view(space=DIRECTORY) as view:
            pairs = list(view.scan(begin, end, limit=limit))
        return [(str(unpack(key)[2]), pack(int(number))) for key, number in pairs]

    def drop_space(self, name: str, *, progress: Callable[[int], None] | None = None) -> None:
        """Removes a space with all that is in it, in bounded steps between which others write.

        It is gone for everyone before the first step: code that still holds it gets `UnknownSpace`
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

    def backup(self, target: str | Path) -> Backup:
        """Writes a consistent copy into the folder `target` while others go on, and verifies it.

        Returns how many keys it has, and the digest of all that is in it.
        """
        return self.engine.backup(Path(target))

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


def _on_layers(work: Callable[[Tx], T], shared: Shared, tx: Transaction) -> T:
    return work(Tx(tx, shared))


def _again(step: Step) -> Outcome[Any]:
    """The removal that rode on a step failed: the step is run once more, by itself."""
    try:
        return Outcome(result=step.space.transact(step.work))
    except Exception as error:
        return Outcome(error=error)


def _jobs(tx: Any) -> "Jobs":
    """Queues with a rate count on the metrics of the same transaction."""
    made: Jobs = _layer("jobs").Jobs(tx, _limiter)
    return made


def _limiter(tx: Transaction) -> "Metrics":
    made: Metrics = _layer("metrics").Metrics(tx)
    return made


def _events(tx: Transaction) -> "Events":
    """A handler that enqueues puts its job in the transaction of its event."""
    jobs = _layer("jobs").Jobs
    made: Events = _layer("events").Events(
        tx, enqueue=jobs(tx).put, enqueue_dry_run=lambda dry_run: jobs(dry_run).put
    )
    return made


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


def _refuse_bad_name(name: str) -> None:
    try:
        size = len(name.encode()) if isinstance(name, str) else 0
    except UnicodeEncodeError:
        size = 0
    if not 0 < size <= MAX_SPACE_NAME_BYTES:
        raise BadInput(
            f"{name!r} can't name a space",
            hint=f"Use a string of 1 to {MAX_SPACE_NAME_BYTES} bytes of UTF-8.",
        )


def _find_or_create(engine: Engine, name: str) -> bytes:
    number = _find(engine, name)
    if number is None:
        number = engine.transact(lambda tx: _create(tx, name), space=DIRECTORY)
    return pack(number)


def _prefix_of(engine: Engine, name: str) -> bytes | None:
    number = _find(engine, name)
    return None if number is None else pack(number)


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
    tx.after_commit(Notice(SPACE_CREATED, name.encode()))
    return number


def _move_to_dropped(tx: Transaction, name: str) -> int | None:
    """Takes the name away before anything is removed, so a crash leaves no space half empty."""
    found = tx.get(pack(0, "space", name))
    if found is None:
        return None
    tx.delete(pack(0, "space", name))
    tx.put(pack(0, "dropped", int(found)), name.encode())
    tx.after_commit(Notice(SPACE_DROPPED, name.encode()))
    return int(found)


def _clear_some(tx: Transaction) -> int:
    """Clears a bounded number of keys of a dropped space, all but its marker."""
    begin, end = after_key(expiry.dropped_key(tx.space)), prefix_range(tx.space)[1]
    keys = [key for key, _ in tx.scan(begin, end, limit=CLEARED_PER_STEP)]
    if keys:
        tx.clear(begin, after_key(keys[-1]))
    return len(keys)
