"""Records metrics of the server for the charts of the dashboard, in bounded memory.

Events are counted in memory, in a fraction of a microsecond per operation, and written every
`RECORD_SECONDS` in one transaction, to the space `system`:

- `requests` and `errors` by protocol, `calls` and `failures` by operation: counters;
- `call_ms` by operation and `commit_ms` of whole groups: distributions; `commits`: a counter;
- `jobs_put`, `jobs_completed` and `jobs_failed` by space and by queue: gauges that hold how many
  there ever were, as the queues themselves count them. So it makes no difference how many servers
  record them, nor which program runs the jobs;
- `refusals` of rate limits, by space and condition: a counter;
- the table `slow`: the slowest operations of the last day, one row for each server.
"""

import asyncio
import heapq
import itertools
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec

from holdfast.engine.contract import TooLong
from holdfast.errors import HoldfastError, LimitExceeded, UnknownSpace
from holdfast.jobs.ledger import Ledger
from holdfast.jobs.queue_figures import QueueFigures, figures
from holdfast.limits import (
    MAX_RECORDED_QUEUES,
    MAX_RECORDED_REFUSALS,
    MAX_RECORDED_SPACES,
    MAX_SLOW_CALLS,
    MAX_SLOW_CHARS,
    RECORD_SECONDS,
    SLOW_SECONDS,
)
from holdfast.metrics import Metrics
from holdfast.metrics.records import Write
from holdfast.operations import OPERATIONS, Operation
from holdfast.server.call_tracing import CallTracer
from holdfast.space_runner import SpaceRunner
from holdfast.store import Store, Tx

if TYPE_CHECKING:
    from holdfast.server.dispatcher import Dispatcher

SPACE: Final = "system"
SLOW_TABLE: Final = "slow"
_DAY: Final = 86400
_SEQUENCES: Final = [
    {"timeStep": 60, "expiry": 2 * 3600},
    {"timeStep": 600, "expiry": 2 * _DAY},
    {"timeStep": 3600, "expiry": 9 * _DAY},
]
_COUNTERS: Final = ("requests", "errors", "calls", "failures", "commits", "refusals")
_LIMITS: Final = frozenset({"metrics.try_incr", "metrics.require"})
_GAUGES: Final = ("jobs_put", "jobs_completed", "jobs_failed")
_DISTRIBUTIONS: Final = ("call_ms", "commit_ms")
SPECS: Final[dict[str, Any]] = {
    **{name: {"sequences": _SEQUENCES} for name in _COUNTERS},
    **{name: {"type": "gauge", "sequences": _SEQUENCES} for name in _GAUGES},
    **{
        name: {"type": "distribution", "resolution": 0.001, "sequences": _SEQUENCES[:2]}
        for name in _DISTRIBUTIONS
    },
}
_SLOW_SCHEMA: Final = {
    "table": SLOW_TABLE,
    "attributes": {"server": "string", "calls": "json"},
    "index": [{"type": "hash", "attribute": "server"}],
}
_STEPS: Final = 4  # buckets for each doubling: a time is known within 12 %
_SHOWN_MEMBERS: Final = (
    10  # members of a list or an object that are shown of a slow call's arguments
)
_BUCKETS: Final = 64 * _STEPS + 2 * _STEPS  # for all times of 64 bits, in nanoseconds

TimedWork: TypeAlias = Callable[[msgspec.Struct, Any], Any]


class SlowCall(msgspec.Struct, frozen=True, order=True):
    """A slow operation, with the beginning of its arguments."""

    seconds: float
    at: float
    operation: str
    arguments: str


class DurationHistogram:
    """A histogram of durations, with buckets that double every `_STEPS`."""

    __slots__ = ("buckets", "errors", "written", "written_errors")

    def __init__(self) -> None:
        self.buckets = [0] * _BUCKETS
        self.errors = 0
        self.written = [0] * _BUCKETS  # the counts that were written already
        self.written_errors = 0

    def add(self, nanoseconds: int) -> None:
        """Counts a time in the bucket of its 3 highest bits."""
        bits = nanoseconds.bit_length()
        self.buckets[bits * _STEPS + (nanoseconds >> bits - 3) if bits > 3 else 0] += 1

    def changes(self) -> tuple[dict[float, int], int]:
        """Returns the new durations, in milliseconds with their counts, and the number of
        errors."""
        now, errors = list(self.buckets), self.errors
        found = {
            _middle_ms(at): number - before
            for at, (number, before) in enumerate(zip(now, self.written, strict=True))
            if number > before
        }
        failed = errors - self.written_errors
        self.written, self.written_errors = now, errors
        return found, failed


def _middle_ms(bucket: int) -> float:
    """Returns the milliseconds in the middle of a bucket of `DurationHistogram`."""
    if not bucket:
        return 0.0
    doublings, step = divmod(bucket - _STEPS, _STEPS)
    return (_STEPS + step + 0.5) * 2.0 ** (doublings - 3) / 1e6


class _TimedWorks(dict[str, TimedWork]):
    """The works of operations by name, each made when it is first needed."""

    def __init__(self, make: Callable[[Operation], TimedWork]) -> None:
        self._make = make

    def __missing__(self, name: str) -> TimedWork:
        return self.setdefault(name, self._make(OPERATIONS[name]))


def _untimed_work(operation: Operation) -> TimedWork:
    call, layer_name = operation.call, operation.layer
    return lambda arguments, tx: call(getattr(tx, layer_name), arguments)


class Recorder:
    """Counts what a server does. Nothing is counted or written unless it `is_on`."""

    def __init__(self, store: Store, *, is_on: bool, tracer: CallTracer | None = None) -> None:
        self.is_on = is_on
        self._tracer = tracer
        self.protocols: Counter[str] = Counter()  # "http", "resp", "http errors", ...
        self._store = store
        self._calls: dict[str, DurationHistogram] = {}
        self.works = _TimedWorks(self._timed_work if is_on else _untimed_work)
        self._commits = DurationHistogram()
        self._transactions = 0
        self._written: Counter[str] = Counter()
        self._refusals: Counter[tuple[bytes, str]] = Counter()  # by space and condition
        self._slow: list[SlowCall] = []  # a heap, the fastest first
        self._slow_threshold = int(SLOW_SECONDS * 1e9)  # nanoseconds
        self._slow_lock = threading.Lock()
        self._slow_changed = False
        self._touched: set[bytes] = {store.prefix}
        self._names: dict[bytes, str] = {store.prefix: store.name}
        self._server = f"{time.time_ns():x}"
        self._is_defined = False

    # --- counting --------------------------------------------------------------------------------

    def work_of(self, operation: Operation, arguments: msgspec.Struct) -> Callable[[Any], Any]:
        """Returns the operation as timed work on a transaction, or on a store."""
        return partial(self.works[operation.full_name], arguments)

    def _timed_work(self, operation: Operation) -> TimedWork:
        """Returns an operation that counts its calls by duration.

        It is made once, and a call costs two clock readings and one bucket: recording may not cost
        2 % of a job.
        """
        times = self._calls.setdefault(operation.full_name, DurationHistogram())
        call, layer_name = operation.call, operation.layer
        buckets, clock = times.buckets, time.perf_counter_ns

        def work(arguments: msgspec.Struct, tx: Any) -> Any:
            begin = clock()
            try:
                result = call(getattr(tx, layer_name), arguments)
            except TooLong:  # it is about to run again, in a thread
                raise
            except BaseException:
                times.errors += 1
                times.add(clock() - begin)
                raise
            elapsed = clock() - begin
            bits = elapsed.bit_length()
            buckets[bits * _STEPS + (elapsed >> bits - 3) if bits > 3 else 0] += 1
            if elapsed > self._slow_threshold:
                self._note_slow(operation, arguments, elapsed / 1e9)
            return result

        return self._counting_refusals(work) if operation.full_name in _LIMITS else work

    def _counting_refusals(self, work: TimedWork) -> TimedWork:
        """Returns work that counts which limits have refused."""

        def limited(arguments: msgspec.Struct, tx: Any) -> Any:
            try:
                result = work(arguments, tx)
            except LimitExceeded as error:
                self._note_refusals(tx, error.result)
                raise
            if not result.allowed:
                self._note_refusals(tx, result)
            return result

        return limited

    def _note_refusals(self, tx: Any, result: Any) -> None:
        for each in result.failed.values():
            key = (tx.raw.space, each.condition)
            if key not in self._refusals and len(self._refusals) >= MAX_RECORDED_REFUSALS:
                key = (tx.raw.space, "")
            self._refusals[key] += 1

    def note_commit(self, transactions: int, seconds: float) -> None:
        """Counts a group of transactions that has been committed."""
        self._commits.add(int(seconds * 1e9))
        self._transactions += transactions
        if self._tracer is not None:
            self._tracer.committed(transactions)

    def touch(self, spaces: Iterable[bytes]) -> None:
        """Notes spaces that were written to, by any process."""
        if self.is_on:
            self._touched.update(spaces)

    def _note_slow(self, operation: Operation, arguments: msgspec.Struct, seconds: float) -> None:
        call = SlowCall(seconds, time.time(), operation.full_name, _shortened(arguments))
        with self._slow_lock:
            heapq.heappush(self._slow, call)
            if len(self._slow) > MAX_SLOW_CALLS:
                heapq.heappop(self._slow)
                self._slow_threshold = int(self._slow[0].seconds * 1e9)
            self._slow_changed = True

    # --- writing ---------------------------------------------------------------------------------

    async def run(self, dispatcher: "Dispatcher") -> None:
        """Writes the counts regularly, while the server runs."""
        if not self.is_on:
            return
        loop = asyncio.get_running_loop()
        thread = ThreadPoolExecutor(1, thread_name_prefix="holdfast-recorder")
        try:
            while True:
                await asyncio.sleep(RECORD_SECONDS)
                try:
                    await loop.run_in_executor(thread, self.write)
                except Exception as error:  # the counts since the last write are lost
                    dispatcher.report(error)
        finally:  # not on the loop, for the engine may be silent
            await loop.run_in_executor(None, thread.shutdown)

    def write(self) -> None:
        """Writes the new counts in one transaction, if there are any."""
        writes = [*self._counted(), *self._jobs()]
        slow = self._new_slow()
        if writes or slow is not None:
            try:
                self._store.space(SPACE).transact(lambda tx: self._put(tx, writes, slow))
            except HoldfastError:
                self._is_defined = False  # somebody may have dropped the space
                raise
            self._is_defined = True

    def _put(self, tx: Tx, writes: list[Write], slow: list[SlowCall] | None) -> None:
        if not self._is_defined:
            tx.metrics.define(SPECS, on_conflict="discard")
            tx.tables.create(_SLOW_SCHEMA)
        if writes:
            tx.metrics.write(writes)
        if slow is not None:
            row = {"server": self._server, "calls": msgspec.to_builtins(slow), "_ttl": _DAY}
            tx.tables.put(SLOW_TABLE, row)

    def _counted(self) -> list[Write]:
        writes = []
        for key, number in list(self.protocols.items()):
            protocol, _, kind = key.partition(" ")
            writes += _incr(kind or "requests", ["protocol", protocol], number - self._written[key])
            self._written[key] = number
        for name, times in list(self._calls.items()):
            entity = ["operation", name]
            found, failed = times.changes()
            writes += _incr("calls", entity, sum(found.values()))
            writes += _incr("failures", entity, failed)
            writes += [_record("call_ms", entity, value, number) for value, number in found.items()]
        refusals, self._refusals = self._refusals, Counter()
        for (prefix, condition), number in refusals.items():
            entity = ["space", self._name_of(prefix) or "", "condition", condition]
            writes += _incr("refusals", entity, number)
        found, _ = self._commits.changes()
        writes += _incr("commits", None, self._transactions - self._written["transactions"])
        self._written["transactions"] = self._transactions
        return writes + [_record("commit_ms", None, value, count) for value, count in found.items()]

    def _new_slow(self) -> list[SlowCall] | None:
        with self._slow_lock:
            since = time.time() - _DAY
            kept = [call for call in self._slow if call.at > since]
            if len(kept) < len(self._slow):
                heapq.heapify(kept)
                self._slow, self._slow_threshold = kept, int(SLOW_SECONDS * 1e9)
            if not self._slow_changed:
                return None
            self._slow_changed = False
            return sorted(self._slow, reverse=True)

    # --- jobs ------------------------------------------------------------------------------------

    def _jobs(self) -> list[Write]:
        """Returns the totals of queues in the spaces that were written to, for at most so many
        queues."""
        writes: list[Write] = []
        looked = 0
        touched, self._touched = self._touched, set()
        while touched and looked < MAX_RECORDED_QUEUES:
            prefix = touched.pop()
            name = self._name_of(prefix)
            if name is None or name == SPACE:
                continue
            try:
                found = self._figures(prefix)
            except UnknownSpace:
                continue
            looked += len(found)
            writes += _totals(["space", name], found)
            for each in found:
                writes += _totals(["space", name, "queue", each.counts.name], [each])
        self._touched |= touched
        return writes

    def _figures(self, prefix: bytes) -> list[QueueFigures]:
        with SpaceRunner(self._store.engine, prefix).view() as reader:
            return figures(Ledger(reader, Metrics), reader.now)  # type: ignore[arg-type]  # it only reads

    def _name_of(self, prefix: bytes) -> str | None:
        if prefix not in self._names:
            page = self._store.page_of_spaces(after=None, limit=MAX_RECORDED_SPACES)
            self._names = {found: name for name, found in page}
        return self._names.get(prefix)


def _totals(entity: list[str], queues: list[QueueFigures]) -> list[Write]:
    if not queues:
        return []
    totals = {
        "jobs_put": sum(each.puts for each in queues),
        "jobs_completed": sum(each.run.count for each in queues),
        "jobs_failed": sum(each.failures for each in queues),
    }
    return [
        Write(metric=name, entity=entity, value=total, op="set") for name, total in totals.items()
    ]


def _incr(metric: str, entity: list[str] | None, number: int) -> list[Write]:
    return [Write(metric=metric, entity=entity, value=number)] if number > 0 else []


def _record(metric: str, entity: list[str] | None, value: float, count: int) -> Write:
    return Write(metric=metric, entity=entity, value=value, count=count, op="record")


def _shortened(arguments: msgspec.Struct) -> str:
    """Returns the beginning of the arguments as text, without passwords; operations that take long
    have no other secrets."""
    given = {
        name: value
        for name, value in msgspec.structs.asdict(arguments).items()
        if value is not msgspec.UNSET and name not in ("password", "token")
    }
    return repr(_beginning(given))[:MAX_SLOW_CHARS]


def _beginning(value: Any, depth: int = 0) -> Any:
    """Returns the first few members of a value: the text of all could take as long as the call."""
    if isinstance(value, str | bytes):
        return value[:MAX_SLOW_CHARS]
    if isinstance(value, msgspec.Struct):
        value = msgspec.structs.asdict(value)
    if isinstance(value, dict):
        few = itertools.islice(value.items(), _SHOWN_MEMBERS)
        return {key: _beginning(each, depth + 1) for key, each in few} if depth < 4 else {}
    if isinstance(value, list | tuple | set | frozenset):
        few = itertools.islice(value, _SHOWN_MEMBERS)
        return [_beginning(each, depth + 1) for each in few] if depth < 4 else []
    return value
