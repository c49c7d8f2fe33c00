"""Runs one event through its handlers: resolves the keys and values of each, and writes them."""

from collections.abc import Sequence
from typing import Any, Literal, Protocol, TypeAlias

import msgspec

from holdfast.errors import ExpandsTooFar, InvalidEvent, NoJobQueue
from holdfast.events import fan_outs, sets
from holdfast.events.compiled_expressions import TOO_FAR_HINT, joined_keys
from holdfast.events.handlers import CompiledHandler, HandlerPlan
from holdfast.events.record_cache import RecordWriter
from holdfast.events.records import EmptyLookUp, Event, FanOutReport, SendReply, Settings, Skipped
from holdfast.events.schema import WriteOptions
from holdfast.events.scope import FluxScope, Scope, Strings, Unresolved
from holdfast.events.times import Calendar
from holdfast.events.writes import KEEPS_NOTHING, KeyWrites, keeps_nothing
from holdfast.limits import (
    MAX_EVENT_KEY_BYTES,
    MAX_EVENT_VALUE_BYTES,
    MAX_EVENT_WRITES,
    MAX_WEIGHT,
)

__all__ = ["Enqueue", "EventRun", "HandlerStep"]


class Enqueue(Protocol):
    """Puts a job in the transaction of the event. This layer knows no more of the job queue."""

    def __call__(self, queue: str, klass: str, data: dict[str, Any]) -> object: ...


# Beginnings of keys, the members that follow them, and endings.
FanOutParts: TypeAlias = tuple[Strings, fan_outs.Members, Strings]


class HandlerStep(msgspec.Struct, frozen=True, gc=False):
    """The keys and values of one handler for one event."""

    handler: CompiledHandler
    options: WriteOptions
    keys: Strings
    values: Strings
    stream: FanOutParts | None = None  # instead of keys that are too many for one transaction


class EventRun:
    """The run of one event through its handlers."""

    def __init__(
        self,
        cache: RecordWriter,
        settings: Settings,
        calendar: Calendar,
        event: Event,
        at: int,
        plan: HandlerPlan,
        *,
        is_flux: bool,
    ) -> None:
        self._cache = cache
        self._plan = plan
        self._settings = settings
        self._event = event
        self._scope_type = FluxScope if is_flux else Scope
        self._scope = self._scope_type(event, at, calendar, self, plan.attributes)
        self._scopes: dict[Calendar, Scope] = {}
        self._writes = KeyWrites(cache, at, event.score)
        self._jobs: list[tuple[CompiledHandler, dict[str, Any]]] = []
        self._empty_look_ups: list[Strings] = []
        self._asked = 0  # the writes of all handlers so far
        self.skipped: list[Skipped] = []
        self.empty: list[EmptyLookUp] = []
        self.background: list[FanOutReport] = []

    def forget_scopes(self) -> None:
        """Breaks the reference cycle between the run and its scopes, which would keep a large event
        in memory until the next garbage collection."""
        del self._scope
        self._scopes.clear()

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
        options, job = handler.options, None
        try:
            values = handler.value(scope)
            if not handler.is_plain:
                values, options, job = _evaluate_rest(handler, scope, values)
            try:
                keys = handler.keys(scope, self._settings.fan_out_keys)
            except ExpandsTooFar:
                if not handler.handler.background:
                    raise
                self._empty_look_ups.clear()
                return HandlerStep(
                    handler, options, [], values, self._fan_out_parts(handler, scope)
                )
        except Unresolved as unresolved:
            self._skip(handler, missing=unresolved.name)
            return None
        except _InvalidWeight as unfit:
            self._skip(handler, error=str(unfit))
            return None
        # The sums are quick to compute, and usually small enough.
        if (
            len(values) > 1
            or sum(map(len, keys)) > MAX_EVENT_KEY_BYTES
            or sum(map(len, values)) > MAX_EVENT_VALUE_BYTES
        ):
            _check_sizes(keys, values)
        self._asked += len(keys) * len(values)
        if self._asked > MAX_EVENT_WRITES:
            raise ExpandsTooFar(
                f"expands to {self._asked} writes of all its handlers, "
                f"the limit is {MAX_EVENT_WRITES}",
                hint="Send several events, each with some of the values.",
            )
        if self._empty_look_ups:
            self._report_empty(handler)
        if job is not None and (keys or not handler.targets):
            self._jobs.append((handler, job))
        return HandlerStep(handler, options, keys, values)

    def _scope_in(self, calendar: Calendar) -> Scope:
        scope = self._scopes.get(calendar)
        if scope is None:
            zoned = (
                calendar
                if calendar.timezone
                else calendar._replace(timezone=self._settings.timezone)
            )
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
        limit = self._settings.looked_up_members
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

    def _fan_out_parts(self, handler: CompiledHandler, scope: Scope) -> FanOutParts:
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
        before = (
            [key + b":" for key in joined_keys(parts, self._settings.fan_out_keys)]
            if parts
            else [b""]
        )
        parts = [target(scope) for target in handler.targets[largest + 1 :]]
        after = (
            [b":" + key for key in joined_keys(parts, self._settings.fan_out_keys)]
            if parts
            else [b""]
        )
        stream = handler.streams[largest]
        named = stream.named if stream.looked_up is not None else b""
        return before, members[largest], [named + key for key in after]

    def _begin_fan_out(self, step: HandlerStep, parts: FanOutParts) -> None:
        if not step.values:
            return
        if keeps_nothing(step.options):
            self._skip(step.handler, error=KEEPS_NOTHING)
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
        """Puts the jobs, after all writes: if one is refused, no other layer has changed."""
        for handler, data in self._jobs:
            if enqueue is None:
                raise NoJobQueue(f"the handler {handler.name} enqueues jobs, but there is no queue")
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


class _InvalidWeight(Exception):
    """A weight is not a whole number; the message says so."""


def _weight(strings: Strings) -> int:
    """Returns the weight of a count: the first value of its term, a whole number."""
    try:
        weight = int(strings[0]) if strings else 1
    except ValueError:
        weight = -1
    if not 0 <= weight <= MAX_WEIGHT:
        shown = strings[0][:40].decode(errors="replace")
        raise _InvalidWeight(
            f"a weight must be a whole number from 0 to {MAX_WEIGHT}, not {shown!r}"
        )
    return weight


def _job_value(strings: Strings) -> str | list[str]:
    """Returns a term's strings as the data of a job: one, or all of a list attribute."""
    texts = [string.decode() for string in strings]
    return texts[0] if len(texts) == 1 else texts


def _evaluate_rest(
    handler: CompiledHandler, scope: Scope, values: Strings
) -> tuple[Strings, WriteOptions, dict[str, Any] | None]:
    """Returns the values, the options and the job of a handler that is not plain."""
    options, job = handler.options, None
    if handler.handler.skips_empty:
        values = [value for value in values if value]
    if handler.weight is not None:
        options = msgspec.structs.replace(options, weight=_weight(handler.weight(scope)))
    if handler.operation == "enqueue":
        job = {name: _job_value(term(scope)) for name, term in handler.job}
    return values, options, job


def _check_sizes(keys: Strings, values: Strings) -> None:
    writes = len(keys) * len(values)
    if writes > MAX_EVENT_WRITES:
        raise ExpandsTooFar(f"expands to {writes} writes, the limit is {MAX_EVENT_WRITES}")
    size = max(map(len, keys), default=0)
    if size > MAX_EVENT_KEY_BYTES:
        raise InvalidEvent(f"a target key has {size} bytes, at most {MAX_EVENT_KEY_BYTES} fit")
    size = max(map(len, values), default=0)
    if size > MAX_EVENT_VALUE_BYTES:
        raise InvalidEvent(f"a value has {size} bytes, at most {MAX_EVENT_VALUE_BYTES} fit")
