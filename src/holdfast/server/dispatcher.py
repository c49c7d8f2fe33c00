"""Runs operations for all connections of a server: reads at once, writes in groups.

`write_groups.py` commits the groups of writes. Operations of several transactions (`long`) run in a
thread, so that they block nobody.
"""

import asyncio
import itertools
import logging
import time
import traceback
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, TypeAlias, TypeVar, cast

import msgspec

from holdfast.admin import SettingEntry
from holdfast.bounded_cache import forget_spaces
from holdfast.compat.qless import Dialect
from holdfast.engine.contract import Notice, Outcome, TooLong, Transaction
from holdfast.errors import (
    BadInput,
    HoldfastError,
    ServerBusy,
    ServerFailed,
    UnknownSpace,
)
from holdfast.keys import pack, prefix_range, unpack
from holdfast.limits import (
    LARGE_READ_THREADS,
    LONG_OPERATION_THREADS,
    MAX_BODIES_BYTES,
    MAX_OPEN_SPACES,
    MAX_QUEUED_LONG_OPERATIONS,
    MAX_REQUEST_BYTES,
    READING_THREADS,
)
from holdfast.metrics.middleware import networks
from holdfast.operations import Operation
from holdfast.server.addresses import Address
from holdfast.server.auth import Authenticator, Recheck, nothing_to_check
from holdfast.server.back_pressure import BackPressure
from holdfast.server.backup_names import in_backup_folder
from holdfast.server.browser_checks import Hosts
from holdfast.server.call_tracing import TracedCall
from holdfast.server.client_limits import MemoryBudget
from holdfast.server.connection_counts import ConnectionCounts
from holdfast.server.error_frames import forget_frames
from holdfast.server.job_waiters import JobWaiters
from holdfast.server.large_reads import LargeReads
from holdfast.server.loop_turns import LoopTurns
from holdfast.server.notice_feed import NoticeFeed
from holdfast.server.options import DEFAULT_OPTIONS, DispatcherOptions
from holdfast.server.pacing import Pacer, pause_between_reads
from holdfast.server.password_checks import PasswordChecks
from holdfast.server.recorder import Recorder
from holdfast.server.subscribers import Subscribers
from holdfast.server.turn_view import TurnView
from holdfast.server.write_groups import WriteGroups
from holdfast.spaces import DIRECTORY, NO_SPACE, SPACE_CREATED, SPACE_DROPPED
from holdfast.store import Space, Step, Store, Tx, View, short_view
from holdfast.tables import EVERY_DOMAIN
from holdfast.users import USERS_CHANGED

_log = logging.getLogger(__name__)

NO_IDS: Final[Mapping[str, str | int]] = MappingProxyType({})

T = TypeVar("T")
Work: TypeAlias = Callable[[Tx], Any]


class Dispatcher:
    """Runs the operations of all connections, over RESP and HTTP, on one engine. Lives on one event
    loop."""

    def __init__(self, store: Store, options: DispatcherOptions = DEFAULT_OPTIONS) -> None:
        self.store = store
        store.keeps_admin = True  # removing the last admin could not be undone over the network
        store.server = self
        self.bounds = options.bounds
        self.memory_budget = MemoryBudget(
            max(MAX_REQUEST_BYTES, MAX_BODIES_BYTES // options.processes)
        )
        self.back_pressure = BackPressure(
            asyncio.get_running_loop(), stalled_seconds=self.bounds.stalled_seconds
        )
        self.started = time.time()
        self.allows_flush = options.allow_flush
        self.allows_pixel = options.pixel
        self.serves_ui = options.ui
        self.tracer = options.tracer
        self.recorder = Recorder(store, is_on=options.record, tracer=options.tracer)
        self.flux_read_only, self.flux_ttl = options.flux_read_only, options.flux_ttl
        self.trusted_proxies = networks(options.trusted_proxies)
        self.connections = ConnectionCounts(self.bounds, self.trusted_proxies)  # of both protocols
        self.hosts = Hosts(options.allowed_hosts)
        self.backups = options.backups
        self.schemas = options.schemas
        self.stopping = False
        self.resp_address: Address | None = None  # where Redis clients connect, if RESP is served
        self.started_with: dict[str, object] = {}
        self.started_settings: list[
            SettingEntry
        ] = []  # the settings with their origins, for `admin.server`
        self.waits: dict[str, Callable[..., Coroutine[Any, Any, Any]]] = {}  # see blocking_calls.py
        self.authenticator = Authenticator(store.engine)
        self.scripts = self._load_scripts()
        self._spaces: dict[str, Space] = {store.name: store}
        self._loop = asyncio.get_running_loop()
        self.turns = LoopTurns(self._loop)
        self.turn_view = TurnView(self._loop)
        self.password_checks = PasswordChecks(self.authenticator, self._loop)
        self.notice_feed = NoticeFeed(store.engine, self._loop, self.turns)
        self.subscribers = Subscribers(self.notice_feed)
        # If a read is a round trip, the loop does not wait for it.
        self.job_waiters = JobWaiters(self.notice_feed, counts_jobs=not store.engine.is_remote)
        self.notice_feed.listen(
            lambda notice: self.authenticator.reload(), space=DIRECTORY, topic_prefix=USERS_CHANGED
        )
        self.notice_feed.listen(
            self._space_was_dropped, space=DIRECTORY, topic_prefix=SPACE_DROPPED
        )
        self.write_groups = WriteGroups(
            store, self._loop, self.turns, self.recorder, self.notice_feed, self.report
        )
        self._directory = ThreadPoolExecutor(1, thread_name_prefix="holdfast-directory")
        self._long = ThreadPoolExecutor(LONG_OPERATION_THREADS, thread_name_prefix="holdfast-long")
        # Whether a read waits for the network, which would block all others on the loop.
        self.reads_in_threads = store.engine.is_remote
        self.large_reads = LargeReads(used_in_turn=self.turns.used)
        threads = READING_THREADS if self.reads_in_threads else LARGE_READ_THREADS
        self._readers = ThreadPoolExecutor(threads, thread_name_prefix="holdfast-reader")
        self._decoder = ThreadPoolExecutor(1, thread_name_prefix="holdfast-decoder")
        self._pacer = Pacer()
        self._long_operations = 0  # that run or wait for a thread
        self._wait_ends: dict[object, Callable[[], None]] = {}  # called when the server stops
        self._sessions = itertools.count(1)

    def known_space(self, name: str) -> Space | None:
        """Returns the space of that name if it has been opened before."""
        return self._spaces.get(name)

    async def space(self, name: str) -> Space:
        """Returns the space of that name. One that does not exist is created by its first write."""
        found = self._spaces.get(name)
        if found is None:
            open_space = partial(self.store.space, name, create=False)
            found = await self._loop.run_in_executor(self._directory, open_space)
            if found.prefix != NO_SPACE:  # reads of invented names would evict existing spaces
                self._keep(found)
        return found

    def _keep(self, space: Space) -> None:
        if len(self._spaces) >= MAX_OPEN_SPACES:
            self._spaces.pop(next(each for each in self._spaces if each != self.store.name))
        self._spaces[space.name] = space

    async def created(self, space: Space) -> None:
        """Creates a space, for a caller that is about to wait for writes to it."""
        if space.prefix == NO_SPACE:
            await self._loop.run_in_executor(self._directory, space.create)

    def listen(
        self, space: Space, begin: Callable[[bytes], Callable[[], None]]
    ) -> Callable[[], None]:
        """Calls `begin(prefix)`, which listens to a space, at once or as soon as the space is
        created. Returns the function that stops it."""
        if space.exists():
            return begin(space.prefix)
        ends: list[Callable[[], None]] = []

        def on_notice(notice: Notice) -> None:
            if notice.payload.decode() == space.name and space.exists():
                ends.pop()()
                ends.append(begin(space.prefix))

        ends.append(self.notice_feed.listen(on_notice, space=DIRECTORY, topic_prefix=SPACE_CREATED))
        # Notices of the write that creates the space are kept until `begin` has been called.
        keep = self.notice_feed.listen(lambda notice: None, space=NO_SPACE)

        def leave() -> None:
            keep()
            ends[0]()

        return leave

    async def has_space(self, name: str) -> bool:
        """Returns whether there is a space of that name."""
        if name in self._spaces:
            return True
        return await self._loop.run_in_executor(self._directory, self.store.has_space, name)

    def forget_space(self, name: str) -> None:
        """Forgets a dropped space: the next one of that name is a different space."""
        self._spaces.pop(name, None)

    def _space_was_dropped(self, notice: Notice) -> None:
        self.forget_space(notice.payload.decode())
        forget_spaces()

    def next_session_id(self) -> int:
        return next(self._sessions)

    def admit(self, address: str) -> str | None:
        """Counts one more connection of an address, for which `connections.leave` must follow; if
        it is one too many, returns why."""
        self.turns.note_accepted()
        return self.connections.enter(address)

    def _load_scripts(self) -> dict[bytes, Dialect]:
        """Returns the queue scripts that clients have loaded, by their hash; see
        compat/qless.py."""
        with self.store.engine.view(space=DIRECTORY) as view:
            pairs = view.scan(*prefix_range(pack(0, "script")))
            return {unpack(key)[2]: cast(Dialect, value.decode()) for key, value in pairs}

    def transact_directory(self, work: Callable[[Transaction], Any]) -> asyncio.Future[Any]:
        """Runs a transaction on the data that belongs to no space: users and scripts."""
        engine = self.store.engine
        return self._loop.run_in_executor(
            self._directory, lambda: engine.transact(work, space=DIRECTORY)
        )

    # --- operations ------------------------------------------------------------------------------

    async def run(
        self,
        space: Space,
        operation: Operation,
        arguments: msgspec.Struct,
        *,
        is_small: bool = False,
        is_large: bool = False,
        traced: TracedCall | None = None,
        encode: Callable[[Any], Any] | None = None,
        recheck: Recheck = nothing_to_check,
    ) -> Any:
        """Runs one operation and returns its result, durable if it wrote. `encode` runs in the
        thread that made the result, as encoding a large one takes time."""
        if operation.kind in ("long", "wait") or self.is_for_all_domains(space, operation):
            try:
                return await self.start(space, operation, arguments, encode, recheck)
            except UnknownSpace:
                self.forget_space(space.name)
                raise
        work = self.recorder.work_of(operation, arguments)
        run = work if encode is None else lambda tx: encode(work(tx))
        if operation.kind == "read":
            return await self.read(space, run, operation.full_name, arguments, is_large=is_large)
        run = run if traced is None else traced.around(run)
        return await self.write(space, run, is_small=is_small)

    def is_for_all_domains(self, space: Space, operation: Operation) -> bool:
        """Returns whether it works on the tables of all domains, in many transactions."""
        return operation.layer == "tables" and space.name == EVERY_DOMAIN

    def start(
        self,
        space: Space,
        operation: Operation,
        arguments: msgspec.Struct,
        encode: Callable[[Any], Any] | None = None,
        recheck: Recheck = nothing_to_check,
    ) -> asyncio.Future[Any]:
        """Starts a long operation: in a thread, where its result is also encoded, or as a wait that
        holds nothing, and calls `recheck` before each try."""
        encode = encode or (lambda result: result)
        if operation.kind == "wait":
            waiting = self.waits[operation.full_name](self, space, arguments, recheck)
            return asyncio.ensure_future(_encoded(waiting, encode))
        if operation.full_name in ("admin.backup", "admin.backup_start"):
            arguments = in_backup_folder(arguments, self.backups)
        work = self.recorder.work_of(operation, arguments)

        def run() -> Any:
            result = work(space)
            return self._pacer.paced(lambda: encode(result))()

        running = self.in_thread(run)
        running.add_done_callback(lambda _: self.note_written(space))
        return running

    async def read(
        self,
        space: Space,
        work: Callable[[View], T],
        kind: str = "",
        arguments: Any = None,
        *,
        is_large: bool = False,
    ) -> T:
        """Runs a read on the view of this turn, without waiting for a commit.

        A read that is large, or may be according to its `kind` and `arguments`, runs in a thread,
        on a view of its own.
        """

        try:
            if self.reads_in_threads or is_large or self.large_reads.expects(kind, arguments):
                return await self.read_whole(space, work, kind)
            try:
                return self.read_on_loop(space, work, kind)
            except TooLong:
                return await self.read_whole(space, work, kind)
        except UnknownSpace:
            self.forget_space(space.name)
            raise

    def read_on_loop(self, space: Space, work: Callable[[View], T], kind: str) -> T:
        """Runs a small read on the view of this turn. Raises `TooLong` if it is not small."""
        begin = time.monotonic()
        try:
            result = work(self.turn_view.of(space))
        except TooLong:
            self.large_reads.remember(kind)
            raise
        except UnknownSpace:
            self.forget_space(space.name)
            raise
        self.large_reads.note_duration(kind, time.monotonic() - begin)
        return result

    def read_whole(self, space: Space, work: Callable[[View], T], kind: str) -> asyncio.Future[T]:
        """Runs a read in a thread, however large it is."""

        def on_view() -> T:
            with short_view(space) as view:
                pause_between_reads(view.raw)
                return work(view)

        if self.reads_in_threads and kind:  # one that learns what such reads need
            return self.read_in_thread(lambda: space.read(work, kind=kind))
        return self.read_in_thread(on_view)

    async def reading(self, call: Callable[[], T]) -> T:
        """Calls a function that reads the store: at once, or in a thread if reads are round
        trips."""
        return await self.read_in_thread(call) if self.reads_in_threads else call()

    def read_in_thread(self, call: Callable[[], T]) -> asyncio.Future[T]:
        """Runs a read that waits for the network, or is large."""
        if not self.reads_in_threads:
            call = self._pacer.paced(call)
        return self._loop.run_in_executor(self._readers, call)

    def decode_in_thread(self, decode: Callable[[], T]) -> asyncio.Future[T]:
        """Decodes a large request, one at a time, with pauses in which other requests are
        answered."""
        return self._loop.run_in_executor(self._decoder, self._pacer.paced(decode))

    async def write(self, space: Space, work: Work, *, is_small: bool = False) -> Any:
        """Runs one transaction in the next group."""
        outcome = await self._outcome_of(Step(space, work), is_small=is_small)
        try:
            result = outcome.unwrap()
        except UnknownSpace:
            self.forget_space(space.name)
            raise
        finally:
            del outcome  # the error refers to this frame, which must not refer to the error
        if space.is_new and space.name not in self._spaces and space.prefix != NO_SPACE:
            self._keep(space)
        return result

    async def _outcome_of(self, step: Step, *, is_small: bool) -> Outcome[Any]:
        future: asyncio.Future[Outcome[Any]] = self._loop.create_future()

        def answer(outcomes: list[Outcome[Any]]) -> None:
            if not future.done():
                future.set_result(outcomes[0])

        self.write_groups.put([step], answer, lambda: not future.cancelled(), is_small=is_small)
        return await future

    def in_thread(self, call: Callable[[], Any]) -> asyncio.Future[Any]:
        """Runs a long operation in a thread, at most `LONG_OPERATION_THREADS` at a time."""
        if self._long_operations >= LONG_OPERATION_THREADS + MAX_QUEUED_LONG_OPERATIONS:
            raise ServerBusy(f"{self._long_operations} long operations are already running")

        def run() -> Any:
            try:
                return call()
            finally:
                # Here, too, subscribers get the notices before the caller gets its answer.
                self.write_groups.deliver_notices()

        def ended(_: object) -> None:
            self._long_operations -= 1

        self._long_operations += 1
        future = self._loop.run_in_executor(self._long, run)
        future.add_done_callback(ended)
        return future

    def note_written(self, space: Space) -> None:
        """Notes a write to a space that was not made by an operation."""
        self.write_groups.written.add(space)

    def take_written(self) -> set[bytes]:
        """Returns the prefixes of the spaces that were written to since the last call."""
        return {space.prefix for space in self.write_groups.take_written()} - {NO_SPACE}

    # --- waits -----------------------------------------------------------------------------------

    def add_wait(self, end: Callable[[], None]) -> Callable[[], None]:
        """Has `end` called when the server stops; returns the function that unregisters it."""
        token = object()
        self._wait_ends[token] = end
        return lambda: self._wait_ends.pop(token, None) and None

    @contextmanager
    def ended_with_server(self, end: Callable[[], None]) -> Iterator[None]:
        """Like `add_wait`, for a `with` block."""
        unregister = self.add_wait(end)
        try:
            yield
        finally:
            unregister()

    def end_waits(self) -> None:
        """Answers all waiting calls as if their timeout had passed."""
        self.stopping = True
        for end in list(self._wait_ends.values()):
            end()

    # --- status -------------------------------------------------------------------------------

    def settings(self) -> dict[str, object]:
        """Returns the settings that the server was started with, without secrets."""
        return {**self.started_with, "allow_flush": self.allows_flush, "pixel": self.allows_pixel}

    def setting_entries(self) -> list[SettingEntry]:
        """Returns the settings with their origins, of a server that `holdfast serve` started."""
        return self.started_settings

    def figures(self) -> dict[str, int]:
        """Returns the server's current figures: connections, queues, memory."""
        return {
            "connections": self.connections.total,
            "queued_writes": self.write_groups.queued,
            "long_operations": self._long_operations,
            "waits": len(self._wait_ends),
            "open_spaces": len(self._spaces),
            "request_bytes": self.memory_budget.taken,  # held by large requests
            "unsent_bytes": self.back_pressure.total,  # not read yet by slow clients
        }

    def as_known_error(
        self, error: BaseException, request: Mapping[str, str | int] = NO_IDS
    ) -> HoldfastError:
        """Returns the error that a client may see. An unexpected one is logged, and its frames are
        released.

        `request` has the ids by which the log and the client name the same request.
        """
        try:
            if isinstance(error, HoldfastError):
                return error
            if isinstance(error, msgspec.DecodeError):
                return BadInput(str(error))
            if isinstance(error, OverflowError | RecursionError):
                # Most likely caused by the input.
                self.report(error, logging.WARNING, request)
                return BadInput("a number is out of range, or a value is nested too deeply")
            self.report(error, request=request)
            return ServerFailed("something went wrong in the server")
        finally:
            forget_frames(error)

    def report(
        self,
        error: BaseException,
        level: int = logging.ERROR,
        request: Mapping[str, str | int] = NO_IDS,
    ) -> None:
        """Writes into the log where an error happened, and no payload."""
        places = traceback.extract_tb(error.__traceback__)
        where = " < ".join(f"{Path(f.filename).name}:{f.lineno} {f.name}" for f in places[:-9:-1])
        _log.log(level, "%s in %s", type(error).__name__, where, extra=request)

    async def close(self) -> None:
        """Finishes what was started, and stops."""
        self.turn_view.end()
        await self.write_groups.close()
        await self._loop.run_in_executor(None, self._long.shutdown)
        self._directory.shutdown()
        self.password_checks.close()
        self._readers.shutdown()
        self._decoder.shutdown()
        self.notice_feed.close()


async def _encoded(waiting: Awaitable[Any], encode: Callable[[Any], Any]) -> Any:
    return encode(await waiting)
