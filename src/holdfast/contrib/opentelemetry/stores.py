"""An embedded store whose calls and commits are spans."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cache, wraps
from typing import TYPE_CHECKING, Any, TypeVar

from holdfast.async_store import AsyncStore, AsyncStoreSpace
from holdfast.async_store.runs import AsyncRuns
from holdfast.client.calls import Call
from holdfast.contrib.opentelemetry.spans import CommitSpan, Tracing
from holdfast.engine.contract import Outcome
from holdfast.lazy_loading import Once
from holdfast.store import Space, Store, Tx, View

if TYPE_CHECKING:
    import asyncio

    from holdfast.admin import StoreAdmin
    from holdfast.entities import StoreEntities
    from holdfast.events import StoreEvents
    from holdfast.jobs import StoreJobs
    from holdfast.metrics import StoreMetrics
    from holdfast.tables import StoreTables

T = TypeVar("T")


class TracedSpace(Space):
    """A space whose calls are spans."""

    _tracing: Tracing

    @classmethod
    def of(cls, space: Space, tracing: Tracing) -> "TracedSpace":
        """Returns a space of a traced store."""
        traced = cls(
            space._engine, space.name, space.prefix, space._shared, space._store, space._runner
        )
        traced._tracing = tracing
        return traced

    @Once
    def admin(self) -> "StoreAdmin":
        """The administration of this space and its store."""
        return _traced_layer(super().admin, "admin", self)

    @Once
    def entities(self) -> "StoreEntities":
        """Objects with indexes."""
        return _traced_layer(super().entities, "entities", self)

    @Once
    def events(self) -> "StoreEvents":
        """Events that are counted in sets, leaderboards and counters."""
        return _traced_layer(super().events, "events", self)

    @Once
    def jobs(self) -> "StoreJobs":
        """The job queue."""
        return _traced_layer(super().jobs, "jobs", self)

    @Once
    def metrics(self) -> "StoreMetrics":
        """Counters in time sequences, gauges, distributions, and rate limits."""
        return _traced_layer(super().metrics, "metrics", self)

    @Once
    def tables(self) -> "StoreTables":
        """Typed rows."""
        return _traced_layer(super().tables, "tables", self)

    @Once
    def aio(self) -> "AsyncStoreSpace":
        """The layers for programs that `await`."""
        store: Any = self._store
        return TracedAsyncSpace(store.aio.runs, self.name, self)

    def transact(self, work: Callable[[Tx], T]) -> T:
        """Runs `work(tx)`, in one span, and returns its result once it is durable."""
        with self._tracing.call("transact", self.name):
            return super().transact(work)

    @contextmanager
    def transaction(self) -> Iterator[Tx]:
        """Opens a transaction for a `with` block, which is one span."""
        with self._tracing.call("transaction", self.name), super().transaction() as tx:
            yield tx

    def view(self) -> AbstractContextManager[View]:
        """Returns a consistent snapshot for any number of reads, which are one span together."""
        return self._traced_view()

    def read(self, work: Callable[[View], T], *, kind: str = "") -> T:
        """Runs `work(view)` on one snapshot, in one span, and returns its result."""
        with self._tracing.call("read", self.name):
            return super().read(work, kind=kind)

    @contextmanager
    def _traced_view(self) -> Iterator[View]:
        with self._tracing.call("view", self.name), super().view() as view:
            yield view


class TracedStore(TracedSpace, Store):
    """A store whose calls are spans, on the engine of another one."""

    def __init__(self, store: Store, tracing: Tracing) -> None:
        self._tracing = tracing
        engine: Any = TracedEngine(store.engine, tracing)
        Store.__init__(self, engine)

    @Once
    def aio(self) -> AsyncStore:
        """Returns this store for programs that `await`."""
        return TracedAsyncStore(self)

    def space(self, name: str, *, create: bool = True) -> Space:
        """Returns the space of that name, created if it does not exist."""
        return TracedSpace.of(super().space(name, create=create), self._tracing)


def _traced_layer(layer: T, name: str, space: TracedSpace) -> T:
    """Returns the same layer, whose operations are spans."""
    plain: Any = type(layer)
    layer.__class__ = _traced_class(plain, name)
    layer.__dict__["_traced_by"] = (space._tracing, space.name)
    return layer


@cache
def _traced_class(kind: type, layer: str) -> Any:
    members = {}
    for name in dir(kind):
        method = getattr(kind, name)
        declaration = getattr(method, "__operation__", None)
        if declaration is not None:
            members[name] = _traced_method(method, f"{layer}.{declaration.name or name}")
    return type(f"Traced{kind.__name__}", (kind,), members)


def _traced_method(method: Callable[..., Any], operation: str) -> Callable[..., Any]:
    @wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        tracing, space = self._traced_by
        with tracing.operation(operation, space):
            return method(self, *args, **kwargs)

    return call


# --- programs that await --------------------------------------------------------------------------


class TracedAsyncSpace(AsyncStoreSpace):
    """A space for programs that `await`, whose calls are spans."""

    runs: "TracedRuns"

    async def call(self, call: Call[T], *values: Any) -> T:
        """Runs one operation, in a span, and returns its result."""
        with self.runs.tracing.operation(call.name, self.name):
            return await super().call(call, *values)

    async def transact(self, work: Callable[[Tx], T]) -> T:
        """Runs `work(tx)` in a thread, in one span, and returns its result once it is durable."""
        with self.runs.tracing.call("transact", self.name):
            return await super().transact(work)

    async def view(self, work: Callable[[View], T]) -> T:
        """Runs `work(view)` in a thread, in one span, and returns its result."""
        with self.runs.tracing.call("view", self.name):
            return await super().view(work)


class TracedAsyncStore(TracedAsyncSpace, AsyncStore):
    """A store for programs that `await`, whose calls are spans."""

    def __init__(self, store: TracedStore) -> None:
        AsyncStoreSpace.__init__(self, TracedRuns(store, store._tracing), store.name, store)

    def space(self, name: str) -> AsyncStoreSpace:
        """Returns the space of that name; its first write creates it if it does not exist."""
        return TracedAsyncSpace(self.runs, super().space(name).name)


class TracedRuns(AsyncRuns):
    """The threads behind `store.aio`; each write is committed in the trace of its task."""

    def __init__(self, store: TracedStore, tracing: Tracing) -> None:
        super().__init__(store)
        self.tracing = tracing
        engine: Any = store.engine
        self._note: Callable[[CommitSpan], None] = engine.note

    def write(self, space: Space, work: Callable[[Tx], T]) -> "asyncio.Future[T]":
        """Runs a transaction in the next group."""
        return super().write(space, CommitSpan().around(work, self._note))


# --- commits --------------------------------------------------------------------------------------


class TracedEngine:
    """An engine that makes a span of each commit, below the span of its caller."""

    def __init__(self, engine: Any, tracing: Tracing) -> None:
        self._engine = engine
        self._tracing = tracing
        self.backend = getattr(engine, "backend", engine)  # says which kind of engine it is
        # Of the group that runs now, each once; `store.aio` runs one group at a time.
        self._group: dict[CommitSpan, None] = {}

    def note(self, commit: CommitSpan) -> None:
        """Adds a transaction of the group that runs now."""
        self._group[commit] = None

    def transact(self, work: Callable[[Any], T], *, space: bytes = b"", kind: str = "") -> T:
        commit = CommitSpan()
        result: T = self._engine.transact(commit.around(work), space=space, kind=kind)
        self._tracing.committed(commit)
        return result

    def transact_many(
        self, works: Sequence[Callable[[Any], Any]], *, spaces: Sequence[bytes] | None = None
    ) -> list[Outcome[Any]]:
        outcomes: list[Outcome[Any]] = self._engine.transact_many(works, spaces=spaces)
        group, self._group = self._group, {}
        for commit in group:
            self._tracing.committed(commit, len(works))
        return outcomes

    @contextmanager
    def transaction(self, *, space: bytes = b"") -> Iterator[Any]:
        commit = CommitSpan()
        with self._engine.transaction(space=space) as tx:
            yield tx
            commit.work_ended(time.time_ns())
        self._tracing.committed(commit)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)
