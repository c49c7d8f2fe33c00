"""Compiles the handlers of deployed schemas to functions, once, before their first event.

The schemas of a space become closures, cached by the digest of the stored schemas, so every process
notices a new schema with its next event. Ingestion parses nothing: the handlers of an event are
found by a look-up of each prefix of its name, at most 33, however many handlers there are.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

import msgspec

from holdfast.bounded_cache import BoundedCache
from holdfast.errors import InvalidEvent, UnknownSchema
from holdfast.events.compiled_expressions import (
    compile_expression,
    compile_stream,
    compile_targets,
)
from holdfast.events.event_fast_path import PlainHandler, plain_handler
from holdfast.events.expressions import Attribute, Expression
from holdfast.events.records import DEFAULT_SCHEMA
from holdfast.events.schema import Handler, Operation
from holdfast.events.scope import Scope, Strings, encoded
from holdfast.events.times import Calendar
from holdfast.limits import MAX_EVENT_NAME_BYTES, MAX_EVENT_NAME_SEGMENTS

__all__ = ["CompiledHandler", "CompiledSchemas", "DeployedSchema", "HandlerPlan", "plan"]

# The schema in the flux dialect that exists even if it was not deployed: without handlers, for
# events that carry their own.
FLUX_SCHEMA: Final = "flux"


class CompiledHandler:
    """A handler whose expressions are functions."""

    __slots__ = (
        "attributes",
        "calendar",
        "can_fail",
        "handler",
        "is_plain",
        "job",
        "keys",
        "name",
        "operation",
        "options",
        "plain",
        "schema",
        "streams",
        "targets",
        "value",
        "weight",
    )

    def __init__(self, schema: str, handler: Handler, calendar: Calendar | None = None) -> None:
        # The very object, by which msgspec knows a default: reports leave it out.
        self.schema = DEFAULT_SCHEMA if schema == DEFAULT_SCHEMA else schema
        self.handler = handler
        self.name = handler.name
        self.options = handler.options
        self.operation: Operation = handler.options.operation
        self.calendar = calendar
        named = [_names_last(handler, position) for position in range(len(handler.targets))]
        self.targets = [
            compile_expression(expression, names_last=names_last)
            for expression, names_last in zip(handler.targets, named, strict=True)
        ]
        self.keys = compile_targets(handler.targets, self.targets)
        self.streams = [
            compile_stream(expression, names_last=names_last)
            for expression, names_last in zip(handler.targets, named, strict=True)
        ]
        self.weight = None if handler.weight is None else compile_expression(handler.weight)
        self.value = _nothing if handler.value is None else compile_expression(handler.value)
        self.job = (
            []
            if handler.job is None
            else [(name, compile_expression(term)) for name, term in handler.job.data]
        )
        # Its values and its targets are all that there is to evaluate.
        self.is_plain = not (handler.skips_empty or handler.weight or handler.job)
        expressions = _expressions(handler)
        self.attributes = [
            term.name
            for expression in expressions
            for term in expression.terms
            if isinstance(term, Attribute)
        ]
        self.plain = None if calendar else plain_handler(self.schema, handler, self.targets, named)
        looks_up = any(expression.steps for expression in expressions)
        self.can_fail = (
            handler.job is not None
            or looks_up
            or handler.options.operation == "aggregate"
            or handler.options.windowed
        )


def _nothing(scope: Scope) -> Strings:
    return []


def _names_last(handler: Handler, position: int) -> bool:
    """Returns whether the last step of a target names the set, and is not looked up."""
    if handler.names_last is not None:
        return handler.names_last
    is_last = position == len(handler.targets) - 1
    return handler.options.operation in ("add", "remove") and is_last


def _expressions(handler: Handler) -> list[Expression]:
    value = [each for each in (handler.value, handler.weight) if each is not None]
    data = [] if handler.job is None else [term for _, term in handler.job.data]
    return [*handler.targets, *value, *data]


class HandlerPlan(NamedTuple):
    """The handlers of an event name, found when the first event of that name comes."""

    handlers: tuple[CompiledHandler, ...]  # in the order of their execution
    attributes: tuple[str, ...]  # that their expressions name
    can_fail: bool  # one of them may fail after another has written
    plain: tuple[PlainHandler, ...] = ()  # if all of them are plain


class DeployedSchema(msgspec.Struct, frozen=True, weakref=True):
    """A schema that was read, before its handlers are compiled."""

    name: str
    handlers: list[tuple[str, Handler]]  # in the flux dialect with their prefixes
    calendar: Calendar | None = None  # None: that of the space
    is_flux: bool = False


class CompiledSchema:
    """One schema, for events that are addressed to it."""

    def __init__(self, schema: DeployedSchema) -> None:
        self.is_flux = schema.is_flux
        self.calendar = schema.calendar
        self._schema = schema
        # By position. A schema may have thousands of handlers whose events never come.
        self._compiled: dict[int, CompiledHandler] = {}
        self.plan_of: Final[Callable[[str], HandlerPlan]] = BoundedCache(
            self._plan_of, entries=1_024
        ).__getitem__

    def _plan_of(self, name: str) -> HandlerPlan:
        numbered = enumerate(self._schema.handlers)
        if self.is_flux:
            check_flux_name(name)
            return plan([self._handler(n) for n, (start, _) in numbered if name.startswith(start)])
        segments = _checked_segments(name)
        found = [
            self._handler(number)
            for number, (_, handler) in numbered
            if list(handler.prefix) == segments[: len(handler.prefix)]
        ]
        return plan(sorted(found, key=lambda each: len(each.handler.prefix)))

    def _handler(self, position: int) -> CompiledHandler:
        found = self._compiled.get(position)
        if found is None:
            schema = self._schema
            found = CompiledHandler(schema.name, schema.handlers[position][1], schema.calendar)
            self._compiled[position] = found
        return found


class CompiledSchemas:
    """All handlers of a space, found by the name of an event."""

    def __init__(self, schemas: Sequence[DeployedSchema]) -> None:
        self._by_prefix: dict[str, list[tuple[DeployedSchema, Handler]]] = {}
        self._compiled: dict[str, list[CompiledHandler]] = {}  # by prefix, once it is needed
        self._schemas = {schema.name: schema for schema in schemas}
        for schema in schemas:
            for _, handler in schema.handlers if not schema.is_flux else ():
                self._by_prefix.setdefault(":".join(handler.prefix), []).append((schema, handler))
        self.plan_of: Final[Callable[[str], HandlerPlan]] = BoundedCache(
            self._plan_of, entries=4_096
        ).__getitem__
        self.schema = lru_cache(maxsize=4_096)(self._schema)

    def _plan_of(self, name: str) -> HandlerPlan:
        """Returns the handlers of all prefixes of a name, shorter prefixes first."""
        segments = _checked_segments(name)
        prefixes = (":".join(segments[:count]) for count in range(len(segments) + 1))
        return plan([each for prefix in prefixes for each in self._handlers_of(prefix)])

    def _handlers_of(self, prefix: str) -> list[CompiledHandler]:
        """Returns the handlers of a prefix, compiled on first use: a compiled handler takes five
        times the memory, and a schema may have thousands whose events never come."""
        found = self._compiled.get(prefix)
        if found is None and prefix in self._by_prefix:
            found = self._compiled[prefix] = [
                CompiledHandler(schema.name, handler, schema.calendar)
                for schema, handler in self._by_prefix[prefix]
            ]
        return found or []

    def _schema(self, name: str) -> CompiledSchema:
        """Returns one schema, of either dialect."""
        found = self._schemas.get(name)
        if found is None and name == FLUX_SCHEMA:
            found = DeployedSchema(name, [], Calendar(style="flux"), is_flux=True)
        if found is None:
            raise UnknownSchema(f"no schema {name!r} is deployed")
        return CompiledSchema(found)


def plan(handlers: Sequence[CompiledHandler]) -> HandlerPlan:
    """Returns a plan that runs these handlers in order."""
    attributes = dict.fromkeys(name for handler in handlers for name in handler.attributes)
    can_fail = any(handler.can_fail for handler in handlers)
    plain = tuple(handler.plain for handler in handlers if handler.plain is not None)
    if len(plain) < len(handlers):
        plain = ()
    return HandlerPlan(tuple(handlers), tuple(attributes), can_fail, plain)


def check_flux_name(name: str) -> None:
    """Raises `InvalidEvent` unless the name is one that the flux dialect takes."""
    size = len(encoded("name", name))
    if not 0 < size <= MAX_EVENT_NAME_BYTES:
        raise InvalidEvent(
            f"an event's name must have 1 to {MAX_EVENT_NAME_BYTES} bytes, not {size}"
        )


def _checked_segments(name: str) -> list[str]:
    segments = name.split(":")
    if "" in segments:
        raise InvalidEvent(
            f"the event name {name[:80]!r} has an empty segment",
            hint="A name is segments joined by colons: 'client:gravity:action:follow'.",
        )
    if len(segments) > MAX_EVENT_NAME_SEGMENTS:
        raise InvalidEvent(
            f"the event name has {len(segments)} segments, at most {MAX_EVENT_NAME_SEGMENTS} fit"
        )
    size = len(encoded("name", name))
    if size > MAX_EVENT_NAME_BYTES:
        raise InvalidEvent(f"the event name has {size} bytes, at most {MAX_EVENT_NAME_BYTES} fit")
    return segments
