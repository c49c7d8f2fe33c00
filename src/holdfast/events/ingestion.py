"""Ingestion: from an event to the writes of its handlers."""

from collections.abc import Callable, Mapping, Sequence
from operator import is_
from typing import Any, Final, Literal, Protocol, TypeAlias

import msgspec

from holdfast import expiry
from holdfast.engine.contract import Transaction
from holdfast.errors import (
    BadInput,
    ExpandsTooFar,
    HoldfastError,
    InvalidEvent,
    InvalidEventSchema,
    NoJobQueue,
)
from holdfast.events import fan_outs, sets
from holdfast.events.deployment import deployed
from holdfast.events.dry_run import DryRun
from holdfast.events.expressions import ExpressionProblem
from holdfast.events.flux_dialect import read_flux_handler
from holdfast.events.handlers import (
    TOO_FAR_HINT,
    CompiledHandler,
    FluxScope,
    HandlerPlan,
    Scope,
    Strings,
    Unresolved,
    encoded,
    joined_keys,
    plan,
)
from holdfast.events.layout import keys_of
from holdfast.events.record_cache import RecordWriter
from holdfast.events.records import (
    DEFAULT_SCHEMA,
    EmptyLookUp,
    Event,
    EventError,
    FanOutReport,
    SendManyReply,
    SendReply,
    Settings,
    Skipped,
)
from holdfast.events.schema import Handler, WriteOptions, read_handlers
from holdfast.events.times import Calendar, to_event_ms
from holdfast.events.writes import KeyWrites
from holdfast.json_data import unfit_in
from holdfast.limits import (
    MAX_BATCH_EVENTS,
    MAX_EVENT_ID_BYTES,
    MAX_EVENT_KEY_BYTES,
    MAX_EVENT_VALUE_BYTES,
    MAX_EVENT_WRITES,
    MAX_WEIGHT,
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
    """Puts a job in the transaction of the event: all that this layer knows of a job queue."""

    def __call__(self, queue: str, klass: str, data: dict[str, Any]) -> object: ...


# Returns an `Enqueue` for a transaction whose writes are discarded.
DryRunEnqueue: TypeAlias = Callable[[Transaction], Enqueue]
# Beginnings of keys, the members that follow them, and endings.
FanOutParts: TypeAlias = tuple[Strings, fan_outs.Members, Strings]


class HandlerStep:
    """The keys and values of one handler for one event."""

    __slots__ = ("handler", "keys", "options", "stream", "values")

    def __init__(
        self,
        handler: CompiledHandler,
        options: WriteOptions,
        keys: Strings,
        values: Strings,
        stream: FanOutParts | None = None,
    ) -> None:
        self.handler = handler
        self.options = options
        self.keys = keys
        self.values = values
        self.stream = stream  # instead of keys that are too many for one transaction


class Ingestion:
    """Ingests the events of one call on one transaction."""

    def __init__(
        self,
        tx: Transaction,
        settings: Settings | None,
        enqueue: Enqueue | None,
        enqueue_dry_run: DryRunEnqueue | None = None,
        schema: str | None = None,
    ) -> None:
        self.cache = RecordWriter(tx)
        self._tx = tx
        self._enqueue = enqueue
        self._enqueue_dry_run = enqueue_dry_run
        self._schemas, stored = deployed(tx)
        self.settings: Settings = settings or stored
        self.calendar = Calendar(self.settings.timezone)
        if schema is not None and not isinstance(schema, str):
            raise BadInput(f"a schema is named by text, not {schema!r}")
        self._addressed = None if schema is None else self._schemas.schema(schema)
        self.is_flux = self._addressed is not None and self._addressed.is_flux

    # --- calls -----------------------------------------------------------------------------------

    def send(self, event: AnyEvent) -> SendReply:
        run = self.ingest(event)
        self.cache.finish()
        return SendReply(duplicate=True) if run is None else run.reply()

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
        background: list[FanOutReport] = []
        for position, event in enumerate(events):
            try:
                run = self.ingest(event)
                if run is not None and run.background:
                    background += run.background
            except HoldfastError as error:
                errors.append(EventError(position=position, message=error.message))
            self.cache.write_out_if_many()
        self.cache.finish()
        accepted = len(events) - len(errors)
        return SendManyReply(accepted=accepted, errors=errors, background=background)

    def ingest(self, given: AnyEvent) -> "EventRun | None":
        """Writes all of an event or, if it raises, nothing of it; None: it is a duplicate."""
        event = as_event(given)
        at, plan = self.arrival(event)
        if event.id is not None and self.is_duplicate(event.id):
            return None
        run = EventRun(self, event, at, plan)
        if plan.can_fail:
            self._run_guarded(run, plan.handlers)
        else:
            # No handler reads what another one writes: all is checked before the first write.
            steps = [run.resolve(handler) for handler in plan.handlers]
            lacking = len(run.skipped)
            for step in steps:
                if step is not None:
                    run.write(step)
            if 0 < lacking < len(run.skipped):
                run.sort_skipped(plan.handlers)
        if event.id is not None:
            self._remember_id(event.id)
        return run

    def arrival(self, event: Event) -> tuple[int, HandlerPlan]:
        """Returns the event's time and the handlers of its name."""
        at = self.cache.now_ms
        if event.at is not None:
            at = to_event_ms(event.at, self.settings.timezone)
        elif event.score is not None:
            at = to_event_ms(event.score * 1_000, "UTC")
        if event.score is not None and event.at is not None:
            raise InvalidEvent("an event has `at` or `score`, not both")
        schemas = self._addressed or self._schemas
        found = schemas.plan_of(event.name)
        return at, found if not event.handlers else self._with_own(found, event.handlers)

    def _with_own(self, found: HandlerPlan, own: list[dict[str, Any]]) -> HandlerPlan:
        """Returns the handlers of the schema, and after them those that the event carries."""
        try:
            if self.is_flux:
                read = [_read_own_flux(n, each) for n, each in enumerate(own)]
                handlers = [handler for handler in read if handler is not None]
            else:
                handlers = read_handlers(own)
        except InvalidEventSchema as error:
            raise InvalidEvent(error.message) from None
        calendar = None if self._addressed is None else self._addressed.calendar
        compiled = [CompiledHandler(DEFAULT_SCHEMA, handler, calendar) for handler in handlers]
        return plan([*found.handlers, *compiled])

    def _run_guarded(self, run: "EventRun", handlers: Sequence[CompiledHandler]) -> None:
        self.cache.begin()
        try:
            for handler in handlers:
                step = run.resolve(handler)
                if step is not None:
                    run.write(step)
            if run.jobs > 1 and self._enqueue_dry_run is not None:
                # If the second were refused, the first would be left in the job queue.
                run.enqueue_jobs(self._enqueue_dry_run(DryRun(self._tx)))
            run.enqueue_jobs(self._enqueue)
            self.cache.flush()
        except BaseException:
            self.cache.undo()
            raise
        self.cache.keep()

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
    """Returns what was sent as an `Event`, or raises `InvalidEvent`."""
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
    # msgspec converts a set or a decimal silently. What it did not convert is the same object.
    as_given: Any = given
    if not all(map(is_, event.attributes.values(), as_given.get("attributes", {}).values())):
        _refuse_unfit(given)
    return event


def _refuse_unfit(given: Any) -> None:
    """Raises `InvalidEvent` for an attribute of a type that events can't carry."""
    attributes = given.get("attributes") if isinstance(given, Mapping) else None
    unfit = None if attributes is None else unfit_in(attributes, "attributes")
    if unfit is not None:
        raise InvalidEvent(
            f"this is no event: {unfit}",
            hint="A value is a string, an integer, a float, a boolean, or a list of those. "
            f"{unfit.advice[0].upper()}{unfit.advice[1:]}.",
        )


def _is_well_typed(event: Event) -> bool:
    """Returns whether an `Event` made in Python has the types that a decoded one has."""
    return (
        isinstance(event.name, str)
        and isinstance(event.attributes, dict)
        and (event.ip is None or isinstance(event.ip, str))
        and (event.id is None or isinstance(event.id, str))
        and (event.score is None or type(event.score) is int)
        and (event.handlers is None or isinstance(event.handlers, list))
    )


class EventRun:
    """One event on its way through its handlers."""

    def __init__(self, ingestion: Ingestion, event: Event, at: int, plan: HandlerPlan) -> None:
        self._cache = ingestion.cache
        self._plan = plan
        self._limit = ingestion.settings.fan_out_keys
        self._looked_up_members = ingestion.settings.looked_up_members
        self._event = event
        self._timezone = ingestion.settings.timezone
        self._scope_type = FluxScope if ingestion.is_flux else Scope
        self._scope = self._scope_type(event, at, ingestion.calendar, self, plan.attributes)
        self._scopes: dict[Calendar, Scope] = {}
        self._writes = KeyWrites(ingestion.cache, at, event.score)
        self._jobs: list[tuple[CompiledHandler, dict[str, Any]]] = []
        self._empty_look_ups: list[Strings] = []
        self.skipped: list[Skipped] = []
        self.empty: list[EmptyLookUp] = []
        self.background: list[FanOutReport] = []

    def reply(self) -> SendReply:
        """Returns the outcome of the event, once all its handlers have run."""
        return SendReply(
            handlers=len(self._plan.handlers) - len(self.skipped),
            keys=self._writes.written(),
            skipped=self.skipped,
            empty=self.empty,
            background=self.background,
        )

    def resolve(self, handler: CompiledHandler) -> HandlerStep | None:
        """Returns the keys and values of a handler; None if it writes nothing now."""
        scope = self._scope if handler.calendar is None else self._scope_in(handler.calendar)
        options = handler.handler.options
        try:
            values = [] if handler.value is None else handler.value(scope)
            if handler.handler.skips_empty:
                values = [value for value in values if value]
            if handler.weight is not None:
                weight = _weight(handler.weight(scope))
                options = msgspec.structs.replace(options, weight=weight)
            job = {name: _plain(term(scope)) for name, term in handler.job} if handler.job else {}
            try:
                parts = [target(scope) for target in handler.targets]
                keys = joined_keys(parts, self._limit) if parts else []
            except ExpandsTooFar:
                if not handler.handler.background:
                    raise
                self._empty_look_ups.clear()
                return HandlerStep(handler, options, [], values, self._stream(handler, scope))
        except Unresolved as unresolved:
            self._skip(handler, missing=unresolved.name)
            return None
        except _UnfitWeight as unfit:
            self._skip(handler, error=str(unfit))
            return None
        _check_sizes(keys, values)
        if self._empty_look_ups:
            self._report_empty(handler)
        if handler.operation == "enqueue" and (keys or not parts):
            self._jobs.append((handler, job))
        return HandlerStep(handler, options, keys, values)

    def _scope_in(self, calendar: Calendar) -> Scope:
        scope = self._scopes.get(calendar)
        if scope is None:
            zoned = calendar if calendar.timezone else calendar._replace(timezone=self._timezone)
            scope = self._scope_type(self._event, self._scope.at, zoned, self)
            self._scopes[calendar] = scope
        return scope

    def write(self, step: HandlerStep) -> None:
        """Writes what a handler asks for, unless one of its keys holds another kind."""
        if step.stream is not None:
            self._begin_fan_out(step, step.stream)
            return
        if step.handler.operation == "enqueue" or not step.values:
            return
        error = self._writes.write(step.options, step.keys, step.values)
        if error is not None:
            self._skip(step.handler, error=error)

    # --- look-ups --------------------------------------------------------------------------------

    def look_up(self, key: bytes) -> Strings:
        """Returns the members of a set, for an expression."""
        record = self._cache.record(key)
        if record.is_board or record.is_count:
            return []
        limit = self._looked_up_members
        found = sets.newest_values(self._cache, record, limit + 1)
        if len(found) > limit:
            size = sets.size(self._cache, record)
            raise ExpandsTooFar(
                f"the look-up of {key.decode()} finds {size} members, the limit is {limit}",
                hint=TOO_FAR_HINT,
            )
        return found

    def note_empty(self, keys: Strings) -> None:
        """Notes a look-up that found nothing, to be reported with its handler."""
        self._empty_look_ups.append(keys)

    def _report_empty(self, handler: CompiledHandler) -> None:
        for keys in self._empty_look_ups:
            record = self._cache.record(keys[0])
            reason: Literal["unknown", "empty", "leaderboard"] = "unknown"
            if record.known or record.dirty:
                reason = "leaderboard" if record.is_board else "empty"
            self.empty.append(
                EmptyLookUp(
                    handler=handler.name,
                    key=keys[0].decode(),
                    reason=reason,
                    others=len(keys) - 1,
                    schema=handler.schema,
                )
            )
        self._empty_look_ups.clear()

    # --- background fan-outs ---------------------------------------------------------------------

    def _stream(self, handler: CompiledHandler, scope: Scope) -> FanOutParts:
        """Returns the targets of a handler around the part that has most members."""
        listed = [stream.strings(scope) for stream in handler.streams]
        members: list[fan_outs.Members] = []
        for stream, strings in zip(handler.streams, listed, strict=True):
            if stream.looked_up is None:
                each = fan_outs.Members([string + stream.named for string in strings])
            else:
                each = fan_outs.Members()
                each.look_up(self._cache, [string + stream.looked_up for string in strings])
            members.append(each)
        largest = max(range(len(members)), key=lambda position: members[position].total)
        parts = [target(scope) for target in handler.targets[:largest]]
        before = [key + b":" for key in joined_keys(parts, self._limit)] if parts else [b""]
        parts = [target(scope) for target in handler.targets[largest + 1 :]]
        behind = [b":" + key for key in joined_keys(parts, self._limit)] if parts else [b""]
        stream = handler.streams[largest]
        named = stream.named if stream.looked_up is not None else b""
        return before, members[largest], [named + key for key in behind]

    def _begin_fan_out(self, step: HandlerStep, parts: FanOutParts) -> None:
        if not step.values:
            return
        report = fan_outs.begin(
            self._cache,
            handler=step.handler.name,
            schema=step.handler.schema,
            options=step.options,
            at=self._scope.at,
            score=self._event.score,
            values=step.values,
            parts=parts,
        )
        self.background.append(report)

    # --- jobs ------------------------------------------------------------------------------------

    @property
    def jobs(self) -> int:
        """The number of jobs that the event asks for so far."""
        return len(self._jobs)

    def enqueue_jobs(self, enqueue: Enqueue | None) -> None:
        """Puts the jobs after all writes: if one is refused, nothing of another layer is left."""
        for handler, data in self._jobs:
            if enqueue is None:
                raise NoJobQueue(f"the handler {handler.name} enqueues, and there is no queue")
            job = handler.handler.job
            assert job is not None  # every enqueue has one
            enqueue(job.queue, job.klass, data)

    def explained_job(self, handler: CompiledHandler) -> dict[str, Any] | None:
        """Returns the job that a handler would put, if it would."""
        job = handler.handler.job
        for each, data in self._jobs:
            if each is handler and job is not None:
                return {"queue": job.queue, "klass": job.klass, "data": data}
        return None

    def sort_skipped(self, handlers: Sequence[CompiledHandler]) -> None:
        """Sorts skipped handlers in the order in which they run."""
        places = {(each.schema, each.name): place for place, each in enumerate(handlers)}
        self.skipped.sort(key=lambda skipped: places[skipped.schema, skipped.handler])

    def _skip(
        self, handler: CompiledHandler, *, missing: str | None = None, error: str | None = None
    ) -> None:
        self._empty_look_ups.clear()
        self.skipped.append(
            Skipped(handler=handler.name, missing=missing, error=error, schema=handler.schema)
        )


def _read_own_flux(position: int, given: Any) -> Handler | None:
    """Returns a handler that an event carries; in the flux dialect one without sense is skipped."""
    try:
        return read_flux_handler(f"handlers[{position}]", given)
    except ExpressionProblem:
        return None


class _UnfitWeight(Exception):
    """A weight is no whole number; the message says so."""


def _weight(strings: Strings) -> int:
    """Returns the weight of a count: the first value of its term, a whole number."""
    try:
        weight = int(strings[0]) if strings else 1
    except ValueError:
        weight = -1
    if not 0 <= weight <= MAX_WEIGHT:
        shown = strings[0][:40].decode(errors="replace")
        raise _UnfitWeight(f"a weight is a whole number from 0 to {MAX_WEIGHT}, not {shown!r}")
    return weight


def _plain(strings: Strings) -> str | list[str]:
    """Returns a term's strings as the data of a job: one, or all of a list attribute."""
    texts = [string.decode() for string in strings]
    return texts[0] if len(texts) == 1 else texts


def _check_sizes(keys: Strings, values: Strings) -> None:
    writes = len(keys) * len(values)
    if writes > MAX_EVENT_WRITES:
        raise ExpandsTooFar(f"expands to {writes} writes, the limit is {MAX_EVENT_WRITES}")
    # The sums are quick to compute, and usually small enough.
    if sum(map(len, keys)) > MAX_EVENT_KEY_BYTES:
        size = max(map(len, keys))
        if size > MAX_EVENT_KEY_BYTES:
            raise InvalidEvent(f"a target key has {size} bytes, at most {MAX_EVENT_KEY_BYTES} fit")
    if sum(map(len, values)) > MAX_EVENT_VALUE_BYTES:
        size = max(map(len, values))
        if size > MAX_EVENT_VALUE_BYTES:
            raise InvalidEvent(f"a value has {size} bytes, at most {MAX_EVENT_VALUE_BYTES} fit")
