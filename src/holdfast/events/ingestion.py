"""Ingesting: from an event to the writes of its handlers."""

from collections.abc import Callable, Mapping, Sequence
from operator import is_
from typing import Any, Final, Protocol, TypeAlias

import msgspec

from holdfast import expiry
from holdfast.engine.contract import Transaction
from holdfast.errors import BadInput, ExpandsTooFar, HoldfastError, InvalidEvent, NoJobQueue
from holdfast.events import boards, sets
from holdfast.events.codec import BOARD, UNBOUNDED, Record, Value, pack_time, prepare
from holdfast.events.deployment import deployed
from holdfast.events.dry_run import DryRun
from holdfast.events.handlers import (
    CompiledHandler,
    HandlerPlan,
    Scope,
    Strings,
    Unresolved,
    encoded,
    joined_keys,
)
from holdfast.events.layout import keys_of
from holdfast.events.record_cache import RecordWriter
from holdfast.events.records import (
    Event,
    EventError,
    SendManyReply,
    SendReply,
    Settings,
    Skipped,
)
from holdfast.events.sketch import digest
from holdfast.events.times import to_event_ms
from holdfast.json_data import unfit_in
from holdfast.limits import (
    MAX_BATCH_EVENTS,
    MAX_EVENT_ID_BYTES,
    MAX_EVENT_KEY_BYTES,
    MAX_EVENT_VALUE_BYTES,
    MAX_EVENT_WRITES,
)

__all__ = [
    "ID_KIND",
    "AnyEvent",
    "DryRunEnqueue",
    "Enqueue",
    "EventRun",
    "Ingestion",
    "as_event",
    "remove_id",
]

AnyEvent: TypeAlias = Event | Mapping[str, Any]
ID_KIND: Final = "events.id"


class Enqueue(Protocol):
    """Puts a job in the transaction of the event: all that events know of a job queue."""

    def __call__(self, queue: str, klass: str, data: dict[str, Any]) -> object: ...


# The same for a transaction of which nothing is kept.
DryRunEnqueue: TypeAlias = Callable[[Transaction], Enqueue]


class HandlerStep:
    """A handler with what it means for one event."""

    __slots__ = ("handler", "keys", "values")

    def __init__(self, handler: CompiledHandler, keys: Strings, values: Strings) -> None:
        self.handler = handler
        self.keys = keys
        self.values = values


class Ingestion:
    """The events of one call, on one transaction."""

    def __init__(
        self,
        tx: Transaction,
        settings: Settings | None,
        enqueue: Enqueue | None,
        enqueue_dry_run: DryRunEnqueue | None = None,
    ) -> None:
        self.cache = RecordWriter(tx)
        self._tx = tx
        self._enqueue = enqueue
        self._enqueue_dry_run = enqueue_dry_run
        self._schemas, stored = deployed(tx)
        self.settings: Settings = settings or stored

    # --- calls -----------------------------------------------------------------------------------

    def send(self, event: AnyEvent) -> SendReply:
        reply = self.one(event)
        self.cache.finish()
        return reply

    def send_many(self, events: Sequence[AnyEvent]) -> SendManyReply:
        if isinstance(events, str | bytes | Mapping) or not isinstance(events, Sequence):
            raise BadInput(
                f"a batch is a list of events, not {type(events).__name__}",
                hint="`send` takes one event, `store.events.send_stream` whatever can be iterated.",
            )
        if len(events) > MAX_BATCH_EVENTS:
            raise BadInput(
                f"a batch of {len(events)} events, at most {MAX_BATCH_EVENTS} fit",
                hint="Split it, or use `store.events.send_stream`.",
            )
        errors: list[EventError] = []
        for position, event in enumerate(events):
            try:
                self.one(event)
            except HoldfastError as error:
                errors.append(EventError(position=position, message=error.message))
            self.cache.write_out_if_many()
        self.cache.finish()
        return SendManyReply(accepted=len(events) - len(errors), errors=errors)

    def one(self, given: AnyEvent) -> SendReply:
        """All of an event, or, if it raises, nothing of it."""
        event = as_event(given)
        at, plan = self.arrival(event)
        if event.id is not None and self.is_duplicate(event.id):
            return SendReply(duplicate=True)
        scope = Scope(event, at, self.settings, self.look_up, plan.attributes)
        run = EventRun(self, scope)
        if plan.can_fail:
            self._run_guarded(run, plan.handlers)
        else:
            # No step reads what another one writes: all is known, and checked, before a write.
            steps = [run.resolve(handler) for handler in plan.handlers]
            lacking = len(run.skipped)
            for step in steps:
                if step is not None:
                    run.write(step)
            if 0 < lacking < len(run.skipped):
                run.sort_skipped(plan.handlers)
        if event.id is not None:
            self._remember_id(event.id)
        return SendReply(
            handlers=len(plan.handlers) - len(run.skipped),
            keys=len(run.written),
            skipped=run.skipped,
        )

    def arrival(self, event: Event) -> tuple[int, HandlerPlan]:
        """The event's time, and what its name means."""
        at = self.cache.now_ms
        if event.at is not None:
            at = to_event_ms(event.at, self.settings.timezone)
        return at, self._schemas.plan_of(event.name)

    def _run_guarded(self, run: "EventRun", handlers: Sequence[CompiledHandler]) -> None:
        self.cache.begin()
        try:
            for handler in handlers:
                step = run.resolve(handler)
                if step is not None:
                    run.write(step)
            if run.jobs > 1 and self._enqueue_dry_run is not None:
                # The second may be refused, and the first would be left in a neighbour's house.
                run.enqueue_jobs(self._enqueue_dry_run(DryRun(self._tx)))
            run.enqueue_jobs(self._enqueue)
            self.cache.flush()
        except BaseException:
            self.cache.undo()
            raise
        self.cache.keep()

    # --- what handlers ask for -------------------------------------------------------------------

    def look_up(self, key: bytes) -> Strings:
        record = self.cache.record(key)
        if record.is_board:
            return []
        return sets.newest_values(self.cache, record, self.settings.looked_up_members)

    # --- ids -------------------------------------------------------------------------------------

    def is_duplicate(self, id: str) -> bool:
        if not 0 < len(encoded("id", id)) <= MAX_EVENT_ID_BYTES:
            raise InvalidEvent(f"an event's id has 1 to {MAX_EVENT_ID_BYTES} bytes")
        end = self._tx.get(self.cache.keys.seen_id(id))
        return end is not None and int.from_bytes(end, "big") > self.cache.now_ms

    def _remember_id(self, id: str) -> None:
        ends = self._tx.now + self.settings.dedup_seconds
        ends_ms = expiry.schedule(self._tx, ends, ID_KIND, id.encode())
        self._tx.put(self.cache.keys.seen_id(id), ends_ms.to_bytes(8, "big"))


def remove_id(tx: Transaction, subject: bytes) -> bool:
    """Forgets the id of an event whose dedup window has ended."""
    key = keys_of(tx.space).seen_id(subject.decode())
    end = tx.get(key)
    if end is not None and expiry.is_expired(int.from_bytes(end, "big"), tx.now):
        tx.delete(key)
    return True


_EVENT: Final = "An event has a name, attributes, and optionally ip, at and id."
_SEVERAL: Final = "Send several events with `send_many`."


def as_event(given: AnyEvent) -> Event:
    """What came, as an event."""
    if type(given) is Event:
        if _is_well_typed(given):
            return given
        given = msgspec.structs.asdict(given)
    try:
        event = msgspec.convert(given, Event)
    except msgspec.ValidationError as error:
        _refuse_unfit(given)
        raise InvalidEvent(
            f"this is no event: {error}",
            hint=_SEVERAL if isinstance(given, list | tuple) else _EVENT,
        ) from None
    # A set and a decimal are converted without a word. What was not converted is the same object.
    as_given: Any = given
    if not all(map(is_, event.attributes.values(), as_given.get("attributes", {}).values())):
        _refuse_unfit(given)
    return event


def _refuse_unfit(given: Any) -> None:
    """Refuses attributes that are of no type that an event can carry, by name."""
    attributes = given.get("attributes") if isinstance(given, Mapping) else None
    unfit = None if attributes is None else unfit_in(attributes, "attributes")
    if unfit is not None:
        raise InvalidEvent(
            f"this is no event: {unfit}",
            hint="A value is a string, an integer, a float, a boolean, or a list of those. "
            f"{unfit.advice[0].upper()}{unfit.advice[1:]}.",
        )


def _is_well_typed(event: Event) -> bool:
    """Whoever makes an `Event` is not stopped from giving it anything at all."""
    return (
        isinstance(event.name, str)
        and isinstance(event.attributes, dict)
        and (event.ip is None or isinstance(event.ip, str))
        and (event.id is None or isinstance(event.id, str))
    )


class EventRun:
    """One event on its way through its handlers."""

    def __init__(self, ingest: Ingestion, scope: Scope) -> None:
        self._cache = ingest.cache
        self._scope = scope
        self._limit = scope.settings.fan_out_keys
        self._values: dict[bytes, Value] = {}
        self._jobs: list[tuple[CompiledHandler, dict[str, Any]]] = []
        self.skipped: list[Skipped] = []
        self.written: set[bytes] = set()

    def resolve(self, handler: CompiledHandler) -> HandlerStep | None:
        """The keys and values of a handler; None if the event lacks what it needs."""
        scope = self._scope
        try:
            parts = [target(scope) for target in handler.targets]
            values = [] if handler.value is None else handler.value(scope)
            job = {name: _plain(term(scope)) for name, term in handler.job} if handler.job else {}
        except Unresolved as unresolved:
            self._skip(handler, missing=unresolved.name)
            return None
        keys = joined_keys(parts, self._limit) if parts else []
        _check_sizes(keys, values)
        if handler.operation == "enqueue" and (keys or not parts):
            self._jobs.append((handler, job))
        return HandlerStep(handler, keys, values)

    def write(self, step: HandlerStep) -> None:
        """Writes what a handler asks for, unless one of its keys holds something else."""
        operation = step.handler.operation
        if operation == "enqueue" or not step.values:
            return
        records = self._cache.records(step.keys)
        board = BOARD if operation == "count_frequency" else 0
        for record in records:
            if record.flags & BOARD != board and (record.known or record.dirty):
                held = "leaderboard" if record.is_board else "set"
                self._skip(step.handler, error=f"key {record.key.decode()} holds a {held}")
                return
        if operation == "remove":
            self._remove(step, records)
        else:
            self._add_or_count(step, records)

    def _add_or_count(self, step: HandlerStep, records: list[Record]) -> None:
        """Adds the values to sets, or counts them on boards."""
        handler = step.handler.handler
        values = self._prepared(step.values)
        gross = 1 if handler.gross else 0
        counted, lifetime_ms = handler.distinct, handler.expire_after_ms
        bound = UNBOUNDED if handler.bound is None else handler.bound
        if not (bound or gross or counted):
            return  # neither members nor counters: nothing is kept of it
        put_in = boards.count if step.handler.operation == "count_frequency" else sets.add
        cache = self._cache
        for value in values:
            put_in(cache, records, value, bound, gross=gross, counted=counted)
        for record in records if lifetime_ms or cache.some_expire else ():
            cache.extend_lifetime(record, lifetime_ms)
        self.written.update(step.keys)

    def _remove(self, step: HandlerStep, records: list[Record]) -> None:
        lifetime_ms = step.handler.handler.expire_after_ms
        for record in records:
            removed = [sets.remove(self._cache, record, raw) for raw in step.values]
            if any(removed):
                record.dirty = True
                self._cache.extend_lifetime(record, lifetime_ms)
                self.written.add(record.key)

    @property
    def jobs(self) -> int:
        """How many jobs the event asks for so far."""
        return len(self._jobs)

    def enqueue_jobs(self, enqueue: Enqueue | None) -> None:
        """Puts the jobs, after all writes: a job that is refused leaves nothing to undo in a
        neighbour's house."""
        for handler, data in self._jobs:
            if enqueue is None:
                raise NoJobQueue(f"the handler {handler.name} enqueues, and there is no queue")
            job = handler.handler.job
            assert job is not None  # every enqueue has one
            enqueue(job.queue, job.klass, data)

    def explained_job(self, handler: CompiledHandler) -> dict[str, Any] | None:
        """The job that a handler would put, if it would."""
        job = handler.handler.job
        for each, data in self._jobs:
            if each is handler and job is not None:
                return {"queue": job.queue, "klass": job.klass, "data": data}
        return None

    def sort_skipped(self, handlers: Sequence[CompiledHandler]) -> None:
        """Names what was skipped in the order of the handlers, however it was found out."""
        places = {(each.schema, each.name): place for place, each in enumerate(handlers)}
        self.skipped.sort(key=lambda skipped: places[skipped.schema, skipped.handler])

    def _prepared(self, raws: Strings) -> list[Value]:
        """Values with all that sets and boards need of them, worked out once for all keys."""
        at = self._scope.at
        time = pack_time(at)
        prepared = []
        for raw in raws:
            value = self._values.get(raw)
            if value is None:
                value = self._values[raw] = prepare(raw, digest(raw), at, time)
            prepared.append(value)
        return prepared

    def _skip(
        self, handler: CompiledHandler, *, missing: str | None = None, error: str | None = None
    ) -> None:
        self.skipped.append(
            Skipped(handler=handler.name, missing=missing, error=error, schema=handler.schema)
        )


def _plain(strings: Strings) -> str | list[str]:
    """A term's strings as the data of a job: one, or all of a list attribute."""
    texts = [string.decode() for string in strings]
    return texts[0] if len(texts) == 1 else texts


def _check_sizes(keys: Strings, values: Strings) -> None:
    writes = len(keys) * len(values)
    if writes > MAX_EVENT_WRITES:
        raise ExpandsTooFar(f"expands to {writes} writes, the limit is {MAX_EVENT_WRITES}")
    # The sums are quick to find, and usually settle it.
    if sum(map(len, keys)) > MAX_EVENT_KEY_BYTES:
        size = max(map(len, keys))
        if size > MAX_EVENT_KEY_BYTES:
            raise InvalidEvent(f"a target key has {size} bytes, at most {MAX_EVENT_KEY_BYTES} fit")
    if sum(map(len, values)) > MAX_EVENT_VALUE_BYTES:
        size = max(map(len, values))
        if size > MAX_EVENT_VALUE_BYTES:
            raise InvalidEvent(f"a value has {size} bytes, at most {MAX_EVENT_VALUE_BYTES} fit")
