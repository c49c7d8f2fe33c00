"""The calls of the async client, run in this process."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from contextvars import copy_context
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

from holdfast.async_store import waits
from holdfast.async_store.notices import StoreSubscription
from holdfast.async_store.read_times import requested_count
from holdfast.async_store.runs import AsyncRuns
from holdfast.client.async_metrics import AsyncMetrics
from holdfast.client.batches import Batch, Handle, Pipeline, Recording
from holdfast.client.calls import INTERRUPTED, Call, require_text
from holdfast.client.generated.async_space import AsyncSpace
from holdfast.declarations import declared
from holdfast.errors import BadInput, HoldfastError, RequestTooLarge, at_position
from holdfast.limits import MAX_BATCH_COMMANDS

if TYPE_CHECKING:
    from holdfast.store import Space, Store, Tx, View

T = TypeVar("T")

_EVERY_SPACE: Final = "*"
_WAITS: Final[dict[str, Callable[..., Any]]] = {
    "jobs.pop_wait": waits.pop_wait,
    "jobs.result_wait": waits.result_wait,
}
_ELSEWHERE: Final = {
    "transaction": "A `with` block would block the event loop and all other writers: "
    "use `await store.aio.transact(work)`.",
    "connect": "A store in a folder needs no connection; `holdfast.aio.connect(url)` goes to a "
    "server.",
}


class AsyncStoreSpace(AsyncSpace):
    """A space of a store for programs that `await`, with the calls of the async client."""

    def __init__(self, runs: AsyncRuns, name: str, space: "Space | None" = None) -> None:
        self.name = name
        self.runs = runs
        self._opened = space

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r} of {self.runs.store!r}>"

    if not TYPE_CHECKING:  # otherwise every attribute would type-check

        def __getattr__(self, name: str) -> Any:
            from holdfast.error_text import no_attribute

            raise no_attribute(self, name, _ELSEWHERE)

    @cached_property
    def metrics(self) -> "AsyncStoreMetrics":
        """Counters in time sequences, gauges, distributions, and rate limits."""
        return AsyncStoreMetrics(self)

    # --- transactions and views -------------------------------------------------------------------

    async def transact(self, work: "Callable[[Tx], T]") -> T:
        """Runs `work(tx)` in a thread and returns its result once all that it wrote is durable.

        If it raises, nothing was written. It may run more than once, so it should touch nothing but
        its transaction. Those of several tasks share a commit, and each succeeds or fails alone.
        """
        context = copy_context()
        return await self.runs.write(await self._space(), lambda tx: context.copy().run(work, tx))

    async def view(self, work: "Callable[[View], T]") -> T:
        """Runs `work(view)` in a thread, on one consistent snapshot, and returns its result."""
        return await self.runs.read(await self._space(), work)

    def read_clock(self) -> float:
        """Returns the time by the store's clock, in seconds since 1970."""
        return self.runs.store.read_clock()

    # --- calls ------------------------------------------------------------------------------------

    async def call(self, call: Call[T], *values: Any) -> T:
        """Runs one operation and returns its result."""
        space = self._opened or await self._space()
        if call.kind == "wait":
            wait = _WAITS[call.name]
            await self._create(space)
            waited: T = await wait(self.runs, space, **call.given(values))
            return waited
        run = prepared(call, values)
        if call.kind == "long" or (self.name == _EVERY_SPACE and call.name.startswith("tables.")):
            return await self.runs.in_thread(lambda: run(space))
        if call.kind == "read":
            asked = requested_count(zip(call.names, values, strict=True))
            return await self.runs.read(space, run, call.name, asked)
        return await self.runs.write(space, run)

    @asynccontextmanager
    async def batch(self) -> AsyncIterator[Batch]:
        """Records operations, and runs them as one transaction when the block ends.

        All of them are applied, or none: the error that undid them names its `position`. If the
        block itself raises, nothing is done. Each operation returns a handle, whose `result()` is
        available after the block.
        """
        recording = StoreBatch()
        yield recording
        if recording:
            await recording.run(self)

    @asynccontextmanager
    async def pipeline(self) -> AsyncIterator[Pipeline]:
        """Records operations, and runs them together when the block ends, each for itself.

        An operation that failed raises when its result is asked for.
        """
        recording = StorePipeline()
        yield recording
        if recording:
            await recording.run(self)

    def subscribe(self, topic_prefix: str = "") -> Any:
        """Returns the notices of this space from now on; use it in `async with`."""
        require_text(topic_prefix, "a topic")
        return StoreSubscription(self.runs.notices, self._created, topic_prefix)

    async def _space(self) -> "Space":
        """Returns the space, opened when it is first used; its first write creates it."""
        if self._opened is None:
            store, name = self.runs.store, self.name
            self._opened = await self.runs.in_thread(lambda: store.space(name, create=False))
        return self._opened

    async def _created(self) -> "Space":
        space = await self._space()
        await self._create(space)
        return space

    async def _create(self, space: "Space") -> None:
        """Creates the space if it does not exist: a waiting call needs its notices."""
        if space.is_new and not space.exists():
            await self.runs.in_thread(space.create)


class AsyncStore(AsyncStoreSpace):
    """A store for programs that `await`: the space "default", and the way to all others."""

    def __init__(self, store: "Store") -> None:
        super().__init__(AsyncRuns(store), store.name, store)

    def space(self, name: str) -> AsyncStoreSpace:
        """Returns the space of that name; its first write creates it if it does not exist."""
        require_text(name, "the name of a space")
        return AsyncStoreSpace(self.runs, name)

    async def checkpoint(self) -> None:
        """Returns when everything committed so far would survive a power failure."""
        await self.runs.in_thread(self.runs.store.checkpoint)

    async def close(self) -> None:
        """Finishes what has begun and closes the store. A second call does nothing."""
        await asyncio.to_thread(self.runs.store.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()


class AsyncStoreMetrics(AsyncMetrics):
    """Counters in time sequences, gauges, distributions, and rate limits, by the store's clock."""

    def _clock(self) -> float:
        clock: AsyncStoreSpace = self._space  # type: ignore[assignment]  # it is created only for these
        return clock.read_clock()


def prepared(call: Call[T], values: tuple[Any, ...]) -> Callable[[Any], T]:
    """Returns a function that runs an operation on the layers of a transaction, view or space."""
    layer_name, method_name = call.name.partition(".")[0], call.method_name
    # Work may run more than once, and an iterator can be read only once.
    given = [list(each) if isinstance(each, Iterator) else each for each in values]
    count = call.in_order
    stars: Sequence[Any] = ()
    named = zip(call.names[count:], given[count:], call.defaults[count:], strict=True)
    options = {name: value for name, value, default in named if value is not default}
    if call.has_star:
        options.pop(call.names[-1], None)
        stars = given[-1]

    def run(layers: Any) -> T:
        layer = getattr(layers, layer_name)
        method = getattr(layer, method_name)
        by_position = given[:count]
        convert = declared(method).convert
        if convert is not None:
            position = call.names.index(convert[0])
            by_position[position] = [convert[1](each) for each in by_position[position]]
        result: T = method(*by_position, *stars, **options)
        return result

    return run


class _Recorded(Recording):
    """Keeps the operations of a batch or pipeline as functions."""

    def __init__(self) -> None:
        super().__init__()
        self._runs: list[tuple[Call[Any], tuple[Any, ...]]] = []

    def __len__(self) -> int:
        return len(self._runs)

    def record(self, call: Call[T], *values: Any) -> Handle[T]:
        """Keeps a call and returns the handle of its result."""
        if self._is_sent:
            raise BadInput("this batch or pipeline was already run", hint="Begin a new one.")
        handle: Handle[T] = Handle(lambda result: result)
        self._runs.append((call, values))
        self._calls.append(call)
        self._handles.append(handle)
        return handle


class StoreBatch(_Recorded, Batch):
    """Operations that are one transaction: all of them, or none."""

    async def run(self, space: AsyncStoreSpace) -> None:
        """Runs what was recorded."""
        self._is_sent = True
        if len(self) > MAX_BATCH_COMMANDS:
            raise RequestTooLarge(
                f"a batch has {len(self)} operations, at most {MAX_BATCH_COMMANDS} fit",
                hint="Others wait while it runs: use several smaller ones.",
            )
        steps = [prepared(call, values) for call, values in self._runs]
        try:
            results = await space.transact(
                lambda tx: [_step(n, s, tx) for n, s in enumerate(steps)]
            )
        except BaseException as error:
            self._refuse(error)
            raise
        for handle, result in zip(self._handles, results, strict=True):
            handle.settle(result)


def _step(position: int, step: Callable[[Any], T], tx: "Tx") -> T:
    try:
        return step(tx)
    except HoldfastError as error:
        at_position(error, position)
        raise


class StorePipeline(_Recorded, Pipeline):
    """Operations that run together and succeed or fail each for itself."""

    async def run(self, space: AsyncStoreSpace) -> None:
        """Runs what was recorded."""
        self._is_sent = True
        running = [space.call(call, *values) for call, values in self._runs]
        try:
            results = await asyncio.gather(*running, return_exceptions=True)
        except BaseException:
            self._refuse_rest(0, len(self), INTERRUPTED)
            raise
        for handle, result in zip(self._handles, results, strict=True):
            if isinstance(result, BaseException):
                handle.refuse(result)
            else:
                handle.settle(result)
