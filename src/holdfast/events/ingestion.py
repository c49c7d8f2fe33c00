"""Ingestion: turns events into the writes of their handlers."""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from operator import is_
from typing import Any, Final, TypeAlias

import msgspec

from holdfast import expiry
from holdfast.call_time import CallTimer
from holdfast.engine.contract import Transaction
from holdfast.error_text import did_you_mean, misfit
from holdfast.errors import (
    BadInput,
    BatchTooLong,
    HoldfastError,
    InvalidEvent,
    InvalidEventSchema,
)
from holdfast.events.deployment import deployed
from holdfast.events.dry_run import DryRun
from holdfast.events.event_fast_path import PlainRun, expansions_of
from holdfast.events.event_run import Enqueue, EventRun
from holdfast.events.expressions import ExpressionProblem
from holdfast.events.flux_dialect import read_flux_handler
from holdfast.events.handlers import CompiledHandler, HandlerPlan, plan
from holdfast.events.layout import keys_of
from holdfast.events.record_cache import RecordWriter
from holdfast.events.records import (
    DEFAULT_SCHEMA,
    Event,
    EventError,
    FanOutReport,
    SendManyReply,
    SendReply,
    Settings,
)
from holdfast.events.schema import Handler, read_handlers
from holdfast.events.scope import encoded
from holdfast.events.times import Calendar, labels, to_event_ms
from holdfast.json_data import json_problem_in
from holdfast.limits import (
    MAX_BATCH_EVENTS,
    MAX_BATCH_SECONDS,
    MAX_EVENT_HANDLERS,
    MAX_EVENT_ID_BYTES,
    SECONDS_PER_ITEM,
)

__all__ = [
    "ID_KIND",
    "AnyEvent",
    "DryRunEnqueue",
    "Enqueue",
    "Ingestion",
    "Ingestions",
    "as_event",
    "remove_id",
]

AnyEvent: TypeAlias = Event | Mapping[str, Any]
ID_KIND: Final = "events.id"


# Returns an `Enqueue` for a transaction whose writes are discarded.
DryRunEnqueue: TypeAlias = Callable[[Transaction], Enqueue]
_calendar_of: Final = lru_cache(maxsize=64)(Calendar)


class Ingestion:
    """Ingests the events of one call on one transaction; `renew` prepares it for the next call."""

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
        self._timer: CallTimer | None = None
        self._enqueue = enqueue
        self._enqueue_dry_run = enqueue_dry_run
        self._given_settings = settings
        self._read_schemas()
        self._expansions = expansions_of(tx.space)
        if schema is not None and not isinstance(schema, str):
            raise BadInput(f"a schema's name must be text, not {schema!r}")
        self._addressed = None if schema is None else self._schemas.schema(schema)
        self.is_flux = self._addressed is not None and self._addressed.is_flux

    def _read_schemas(self) -> None:
        self._schemas, stored = deployed(self._tx)
        self.settings: Settings = self._given_settings or stored
        self._calendar = _calendar_of(self.settings.timezone)

    def renew(self) -> None:
        """Prepares for another call on the same transaction, or for the next transaction in the
        same buffer of a group. Only after a call that succeeded, and that named no schema."""
        self.cache.renew()
        self._timer = None
        self._read_schemas()

    # --- calls -----------------------------------------------------------------------------------

    def send(self, event: AnyEvent) -> SendReply:
        run = self.ingest(event)
        self.cache.finish()
        return SendReply(duplicate=True) if run is None else run.reply()

    def send_many(self, events: Sequence[AnyEvent]) -> SendManyReply:
        if isinstance(events, str | bytes | Mapping) or not isinstance(events, Sequence):
            raise BadInput(
                f"a batch must be a list of events, not {type(events).__name__}",
                hint="`send` takes one event, `store.events.send_stream` whatever can be iterated.",
            )
        if len(events) > MAX_BATCH_EVENTS:
            raise BadInput(
                f"a batch of {len(events)} events, at most {MAX_BATCH_EVENTS} fit",
                hint="Split it, or use `store.events.send_stream`.",
            )
        errors: list[EventError] = []
        background: list[FanOutReport] = []
        timer = self._timer = self._new_timer(len(events))
        for position, event in enumerate(events):
            if position:
                timer.check()
            try:
                run = self.ingest(event)
                if run is not None and run.background:
                    background += run.background
            except BatchTooLong:
                raise
            except HoldfastError as error:
                errors.append(EventError(position=position, message=error.message))
            self.cache.write_out_if_many()
        self.cache.finish()
        accepted = len(events) - len(errors)
        return SendManyReply(accepted=accepted, errors=errors, background=background)

    @property
    def timer(self) -> CallTimer:
        """Limits what the events of the call, or the handlers of an event, take together."""
        if self._timer is None:
            self._timer = self._new_timer(1)
        return self._timer

    def _new_timer(self, events: int) -> CallTimer:
        hint = "Send fewer in one call, or with fewer handlers."
        return CallTimer("the events", hint, MAX_BATCH_SECONDS + events * SECONDS_PER_ITEM)

    def _run(self, run: EventRun, plan: HandlerPlan) -> None:
        if plan.can_fail:
            self._run_guarded(run, plan.handlers)
            return
        # No handler reads what another one writes: all is checked before the first write.
        steps = [run.resolve(handler) for handler in plan.handlers]
        skipped_before = len(run.skipped)
        for step in steps:
            if step is not None:
                run.write(step)
        if 0 < skipped_before < len(run.skipped):
            run.sort_skipped(plan.handlers)

    def ingest(self, given: AnyEvent) -> EventRun | PlainRun | None:
        """Writes an event, all or nothing; returns None if it is a duplicate."""
        event = as_event(given)
        at, plan = self.arrival(event)
        if event.id is not None and self.is_duplicate(event.id):
            return None
        if plan.plain:
            resolved = self._expansions.resolve(
                plan.plain, event, at, labels(at, self._calendar), self.settings.fan_out_keys
            )
            if resolved is not None:
                if event.id is not None:
                    self._remember_id(event.id)
                return PlainRun(self.cache, at, resolved)
        run = self.run_of(event, at, plan)
        try:
            self._run(run, plan)
        finally:
            run.forget_scopes()
        if event.id is not None:
            self._remember_id(event.id)
        return run

    def run_of(self, event: Event, at: int, plan: HandlerPlan) -> EventRun:
        """Returns the run of an event whose arrival is known."""
        return EventRun(
            self.cache, self.settings, self._calendar, event, at, plan, is_flux=self.is_flux
        )

    def arrival(self, event: Event) -> tuple[int, HandlerPlan]:
        """Returns the event's time and the handlers of its name."""
        at = self.cache.now_ms
        if event.at is not None:
            at = to_event_ms(event.at, self.settings.timezone)
        elif event.score is not None:
            at = to_event_ms(event.score * 1_000, "UTC")
        if event.score is not None and event.at is not None:
            raise InvalidEvent("an event can have `at` or `score`, not both")
        schemas = self._addressed or self._schemas
        found = schemas.plan_of(event.name)
        return at, found if not event.handlers else self._with_event_handlers(found, event.handlers)

    def _with_event_handlers(self, found: HandlerPlan, own: list[dict[str, Any]]) -> HandlerPlan:
        """Returns the handlers of the schema, and after them those that the event carries."""
        if len(own) > MAX_EVENT_HANDLERS:
            raise InvalidEvent(
                f"the event carries {len(own)} handlers, at most {MAX_EVENT_HANDLERS} fit",
                hint="Deploy a schema with the handlers, or send several events.",
            )
        try:
            if self.is_flux:
                read = [_read_flux_event_handler(n, each) for n, each in enumerate(own)]
                handlers = [handler for handler in read if handler is not None]
            else:
                handlers = read_handlers(own)
        except InvalidEventSchema as error:
            raise InvalidEvent(error.message) from None
        calendar = None if self._addressed is None else self._addressed.calendar
        compiled = [CompiledHandler(DEFAULT_SCHEMA, handler, calendar) for handler in handlers]
        # Nothing of an event's own handlers is remembered, as they may differ with every event.
        return plan([*found.handlers, *compiled])._replace(plain=())

    def _run_guarded(self, run: EventRun, handlers: Sequence[CompiledHandler]) -> None:
        timer = self.timer
        self.cache.begin()
        try:
            for handler in handlers:
                step = run.resolve(handler)
                if step is not None:
                    run.write(step)
                timer.check()  # look-ups that find nothing take time, too
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
            raise InvalidEvent(f"an event's id must have 1 to {MAX_EVENT_ID_BYTES} bytes")
        end = self._tx.get(self.cache.keys.seen_id(id))
        return end is not None and int.from_bytes(end, "big") > self.cache.now_ms

    def _remember_id(self, id: str) -> None:
        ends = self._tx.now + self.settings.dedup_seconds
        ends_ms = expiry.schedule(self._tx, ends, ID_KIND, id.encode())
        self._tx.put(self.cache.keys.seen_id(id), ends_ms.to_bytes(8, "big"))


class Ingestions:
    """Makes the ingestions of one events layer. Single events that follow each other in one buffer
    share one, which takes less time than a new one for each."""

    __slots__ = ("_arguments", "_idle")

    def __init__(
        self,
        tx: Transaction,
        settings: Settings | None,
        enqueue: Enqueue | None,
        enqueue_dry_run: DryRunEnqueue | None,
    ) -> None:
        self._arguments = tx, settings, enqueue, enqueue_dry_run
        self._idle: Ingestion | None = None  # of the last event, if it succeeded

    def send(self, event: AnyEvent, schema: str | None) -> SendReply:
        """Ingests one event, by the ingestion of the last one if possible."""
        if schema is not None:
            return self.begin(schema).send(event)
        idle, self._idle = self._idle, None
        if idle is None:
            idle = self.begin(None)
        else:
            idle.renew()
        reply = idle.send(event)
        self._idle = idle
        return reply

    def begin(self, schema: str | None) -> Ingestion:
        """Returns a new ingestion."""
        return Ingestion(*self._arguments, schema)


def remove_id(tx: Transaction, subject: bytes) -> bool:
    """Forgets the id of an event whose dedup window has ended."""
    key = keys_of(tx.space).seen_id(subject.decode())
    end = tx.get(key)
    if end is not None and expiry.is_expired(int.from_bytes(end, "big"), tx.now):
        tx.delete(key)
    return True


_EVENT: Final = "An event has a name, attributes, and optionally ip, at and id."
_FIELDS: Final = Event.__struct_fields__
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
        _refuse_wrong_attributes(given)
        raise InvalidEvent(
            f"this is not an event: {misfit(error, 'it')}{_meant(given)}",
            hint=_SEVERAL if isinstance(given, list | tuple) else _EVENT,
        ) from None
    # msgspec converts a set or a decimal silently. What it did not convert is the same object.
    as_given: Any = given
    if not all(map(is_, event.attributes.values(), as_given.get("attributes", {}).values())):
        _refuse_wrong_attributes(given)
    return event


def _meant(given: Any) -> str:
    """Returns the field that a misspelt one was meant to be, as a question."""
    unknown = [name for name in given if name not in _FIELDS] if isinstance(given, Mapping) else []
    return did_you_mean(unknown[0], _FIELDS) if unknown else ""


def _refuse_wrong_attributes(given: Any) -> None:
    """Raises `InvalidEvent` for an attribute of a type that events can't carry."""
    attributes = given.get("attributes") if isinstance(given, Mapping) else None
    unfit = None if attributes is None else json_problem_in(attributes, "attributes")
    if unfit is not None:
        raise InvalidEvent(
            f"this is not an event: {unfit}",
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


def _read_flux_event_handler(position: int, given: Any) -> Handler | None:
    """Returns a handler that an event carries; in the flux dialect an invalid one is skipped."""
    try:
        return read_flux_handler(f"handlers[{position}]", given)
    except ExpressionProblem:
        return None
