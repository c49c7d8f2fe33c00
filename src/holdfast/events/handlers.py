"""Compiles deployed schemas to functions, once, before their first event.

The schemas of a space become closures, cached by the digest of what is stored, so every process
notices a new schema with its next event. Ingestion parses nothing: the handlers of an event name
are found by looking up each of its prefixes, at most 33, among any number.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import count
from math import isfinite
from typing import Final, NamedTuple, Protocol, TypeAlias

from holdfast.engine.contract import draw
from holdfast.errors import ExpandsTooFar, InvalidEvent, UnknownSchema
from holdfast.events.expressions import Attribute, BuiltIn, Expression, Literal, Term
from holdfast.events.records import DEFAULT_SCHEMA, Event
from holdfast.events.schema import Handler, Operation
from holdfast.events.times import LABELS, Calendar, labels
from holdfast.json_data import unfit_in
from holdfast.limits import (
    MAX_EVENT_NAME_BYTES,
    MAX_EVENT_NAME_SEGMENTS,
    MAX_EVENT_WRITES,
)

__all__ = [
    "CompiledHandler",
    "CompiledSchemas",
    "HandlerPlan",
    "Scope",
    "Unresolved",
    "encoded",
    "joined_keys",
]

TOO_FAR_HINT: Final = (
    'Give the handler "fan_out": "background" to continue after the commit, bound the sets that it '
    "looks up with `max_stored_values`, or raise the limit with `configure`."
)

# The schema in the flux dialect that exists even if it was not deployed: without handlers, for
# events that carry their own.
FLUX_SCHEMA: Final = "flux"

_QUOTED_AT: Final = "\0"  # before the name of an attribute that begins like a built-in

Strings: TypeAlias = list[bytes]  # UTF-8
Evaluate: TypeAlias = Callable[["Scope"], Strings]


class LookUp(Protocol):
    """Finds the members of sets for the expressions of a handler."""

    def look_up(self, key: bytes) -> Strings:
        """Returns the members of the set with that key; raises `ExpandsTooFar` if they are many."""
        ...

    def note_empty(self, keys: Strings) -> None:
        """Notes that none of these sets has a member."""
        ...


class Unresolved(Exception):
    """An event has no value for a name; the handler that needs it does nothing."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class Scope(dict[str, Strings]):
    """The values of the names in expressions for one event, each evaluated when first needed.

    Built-ins are listed with their `@`, which no attribute's name can begin with.
    """

    __slots__ = ("at", "event", "labels", "look_ups")

    def __init__(
        self,
        event: Event,
        at: int,
        calendar: Calendar,
        look_ups: LookUp,
        names: Sequence[str] = (),
    ) -> None:
        self.labels = labels(at, calendar)
        super().__init__(self.labels)
        self.event = event
        self.at = at
        self.look_ups = look_ups
        attributes = event.attributes
        try:
            for name in names:
                # The usual case of `__missing__`, without its calls.
                if type(value := attributes.get(name)) is str:
                    self[name] = [value.encode()]
        except UnicodeEncodeError:
            pass  # the handler that needs it says so

    def __missing__(self, name: str) -> Strings:
        if name[0] == "@":
            strings = self._built_in(name[1:])
        else:
            strings = self._attribute(name.removeprefix(_QUOTED_AT))
        self[name] = strings
        return strings

    def _attribute(self, name: str) -> Strings:
        value = self.event.attributes.get(name)
        if type(value) is str:
            return [encoded(name, value)]
        if value is None:
            raise Unresolved(name)
        if isinstance(value, list | tuple):
            return [_text(name, each) for each in value if each is not None]
        return [_text(name, value)]

    def _built_in(self, name: str) -> Strings:
        if name == "event_name":
            return [self.event.name.encode()]
        if name == "timestamp":
            return [b"%d" % self.at]
        if name == "unique_id":
            return [draw(16).hex().encode()]
        if name != "request_ip" or not self.event.ip:
            raise Unresolved(f"@{name}")
        return [encoded("ip", self.event.ip)]


class FluxScope(Scope):
    """The names of an event in the flux dialect: its attributes may hide built-ins."""

    def __init__(
        self, event: Event, at: int, calendar: Calendar, look_ups: LookUp, names: Sequence[str] = ()
    ) -> None:
        super().__init__(event, at, calendar, look_ups, names)
        for name in event.attributes:
            if name in self.labels:
                del self[name]
        if any(name in self.labels for name in event.attributes):
            self.labels = dict(self.labels)  # so that expressions of labels are evaluated again

    def __missing__(self, name: str) -> Strings:
        if name[0] == "@":
            if self.event.attributes.get(name) is not None:
                strings = self._attribute(name)
            elif name in ("@unique_id", "@uniqueId"):
                return [b"%d" % _growing_number(self.at)]  # another one for each evaluation
            else:
                strings = self._built_in("event_name" if name == "@eventName" else name[1:])
            self[name] = strings
            return strings
        return super().__missing__(name)


_NUMBERS: Final = count(int.from_bytes(draw(2), "big"))


def _growing_number(at: int) -> int:
    """Returns an id that grows with time, as Flux makes them."""
    seconds, ms = divmod(at, 1_000)
    return (seconds << 20) + (ms << 10) + next(_NUMBERS) % 1_024


def _text(name: str, value: object) -> bytes:
    """Returns an attribute's value as text: integers in decimal, floats in their shortest form."""
    match value:
        case str():
            return encoded(name, value)
        case bool():
            return b"true" if value else b"false"
        case float():
            if not isfinite(value):
                raise _unfit(name, value)
            return float.__repr__(value).encode()
        case int():
            try:
                return int.__repr__(value).encode()  # of an enumeration's member, its number
            except ValueError:  # Python writes no integer of more than 4,300 digits
                raise InvalidEvent(f"the attribute {name!r} holds a number too long") from None
    raise _unfit(name, value)


def _unfit(name: str, value: object) -> InvalidEvent:
    found = unfit_in(value, "it")
    advice = "" if found is None else f" {found.advice[0].upper()}{found.advice[1:]}."
    return InvalidEvent(
        f"the attribute {name!r} holds {found.what if found else type(value).__name__}",
        hint=f"A value is a string, an integer, a float, a boolean, or a list of those.{advice}",
    )


def encoded(name: str, text: str) -> bytes:
    """Encodes the text of a part of an event as UTF-8."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise InvalidEvent(f"{name!r} is not valid Unicode: {text[:40]!r}") from None


# --- expressions ------------------------------------------------------------------------------


def _compile_term(term: Term) -> Evaluate:
    if isinstance(term, Literal):
        constant = [term.text.encode()]
        return lambda scope: constant
    name = _scope_name(term)
    return lambda scope: scope[name]


def _scope_name(term: Attribute | BuiltIn) -> str:
    if isinstance(term, BuiltIn):
        return f"@{term.name}"
    return _QUOTED_AT + term.name if term.name[0] == "@" else term.name


def compile_expression(expression: Expression, *, names_last: bool = False) -> Evaluate:
    """Returns a function from a scope to the strings of an expression.

    With `names_last` the last step of a chain names the set and is not looked up.
    """
    evaluate = _compile_list(expression)
    for number, step in enumerate(expression.steps, 1):
        suffix = b":" + step.encode()
        if names_last and number == len(expression.steps):
            evaluate = _name_step(evaluate, suffix)
        else:
            evaluate = _look_up_step(evaluate, suffix)
    return evaluate


class Stream(NamedTuple):
    """An expression up to its last look-up, whose members a background fan-out reads in steps."""

    strings: Evaluate
    looked_up: bytes | None  # appended to each string, the keys of the last look-up
    named: bytes  # appended to each of its members


def compile_stream(expression: Expression, *, names_last: bool) -> Stream:
    """Returns the expression in parts: strings, last look-up, and the name behind it."""
    steps = list(expression.steps)
    named = b":" + steps.pop().encode() if names_last and steps else b""
    looked_up = b":" + steps.pop().encode() if steps else None
    inner = Expression(expression.terms, tuple(steps), expression.is_list)
    return Stream(compile_expression(inner), looked_up, named)


def _compile_list(expression: Expression) -> Evaluate:
    literals = [term for term in expression.terms if isinstance(term, Literal)]
    names = [_scope_name(term) for term in expression.terms if not isinstance(term, Literal)]
    if not names:
        constant = _unique([term.text.encode() for term in literals])
        return lambda scope: constant
    if all(name[0] == "@" and name[1:] in LABELS for name in names):
        return _once_a_minute([_compile_term(term) for term in expression.terms])
    if not literals and len(names) > 1:
        return lambda scope: _unique([string for name in names for string in scope[name]])
    terms = [_compile_term(term) for term in expression.terms]
    if len(terms) > 1:
        return lambda scope: _unique([string for term in terms for string in term(scope)])
    [only] = terms
    return (lambda scope: _unique(only(scope))) if expression.is_list else only


def _once_a_minute(terms: list[Evaluate]) -> Evaluate:
    """Evaluates time labels and literals once, with the first event of each minute."""
    last: tuple[object, Strings] = (None, [])

    def evaluate(scope: Scope) -> Strings:
        nonlocal last
        labels, strings = last
        if labels is not scope.labels:
            strings = _unique([string for term in terms for string in term(scope)])
            last = (scope.labels, strings)
        return strings

    return evaluate


def _name_step(strings: Evaluate, suffix: bytes) -> Evaluate:
    return lambda scope: [string + suffix for string in strings(scope)]


def _look_up_step(strings: Evaluate, suffix: bytes) -> Evaluate:
    def evaluate(scope: Scope) -> Strings:
        found: dict[bytes, None] = {}
        keys = [string + suffix for string in strings(scope)]
        for key in keys:
            found.update(dict.fromkeys(scope.look_ups.look_up(key)))
            if len(found) > MAX_EVENT_WRITES:
                raise ExpandsTooFar(
                    f"expands to more than {MAX_EVENT_WRITES} members", hint=TOO_FAR_HINT
                )
        if keys and not found:
            scope.look_ups.note_empty(keys)
        return list(found)

    return evaluate


def _unique(strings: Strings) -> Strings:
    return list(dict.fromkeys(strings)) if len(strings) > 1 else strings


def joined_keys(parts: list[Strings], limit: int) -> Strings:
    """Returns the cartesian product of `parts`, joined with colons, without duplicates."""
    total = 1
    for part in parts:
        total *= len(part)
    if total > limit:
        raise ExpandsTooFar(f"expands to {total} keys, the limit is {limit}", hint=TOO_FAR_HINT)
    if total == 1:
        return [b":".join([string for [string] in parts])]
    keys = parts[0]
    for part in parts[1:]:
        ends = [b":" + string for string in part]
        keys = [key + end for key in keys for end in ends]
    return list(dict.fromkeys(keys))


# --- handlers ---------------------------------------------------------------------------------


class CompiledHandler:
    """A handler whose expressions are functions."""

    __slots__ = (
        "attributes",
        "calendar",
        "can_fail",
        "handler",
        "job",
        "name",
        "operation",
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
        self.operation: Operation = handler.options.operation
        self.calendar = calendar
        named = [_names_last(handler, position) for position in range(len(handler.targets))]
        self.targets = [
            compile_expression(expression, names_last=names_last)
            for expression, names_last in zip(handler.targets, named, strict=True)
        ]
        self.streams = [
            compile_stream(expression, names_last=names_last)
            for expression, names_last in zip(handler.targets, named, strict=True)
        ]
        self.weight = None if handler.weight is None else compile_expression(handler.weight)
        self.value = None if handler.value is None else compile_expression(handler.value)
        self.job = (
            []
            if handler.job is None
            else [(name, compile_expression(term)) for name, term in handler.job.data]
        )
        expressions = _expressions(handler)
        self.attributes = [
            term.name
            for expression in expressions
            for term in expression.terms
            if isinstance(term, Attribute)
        ]
        looks_up = any(expression.steps for expression in expressions)
        self.can_fail = (
            handler.job is not None
            or looks_up
            or handler.options.operation == "aggregate"
            or handler.options.windowed
        )


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


class DeployedSchema(NamedTuple):
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
        self._handlers = [
            (prefix, CompiledHandler(schema.name, handler, schema.calendar))
            for prefix, handler in schema.handlers
        ]
        self.plan_of = lru_cache(maxsize=1_024)(self._plan_of)

    def _plan_of(self, name: str) -> HandlerPlan:
        if self.is_flux:
            check_flux_name(name)
            return plan([each for prefix, each in self._handlers if name.startswith(prefix)])
        segments = _checked_segments(name)
        found = [
            each
            for _, each in self._handlers
            if list(each.handler.prefix) == segments[: len(each.handler.prefix)]
        ]
        return plan(sorted(found, key=lambda each: len(each.handler.prefix)))


class CompiledSchemas:
    """All handlers of a space, found by the name of an event."""

    def __init__(self, schemas: Sequence[DeployedSchema]) -> None:
        self._by_prefix: dict[str, list[CompiledHandler]] = {}
        self._schemas = {schema.name: schema for schema in schemas}
        for schema in schemas:
            for _, handler in schema.handlers if not schema.is_flux else ():
                listed = self._by_prefix.setdefault(":".join(handler.prefix), [])
                listed.append(CompiledHandler(schema.name, handler, schema.calendar))
        self.plan_of = lru_cache(maxsize=4_096)(self._plan_of)
        self.schema = lru_cache(maxsize=4_096)(self._schema)

    def _plan_of(self, name: str) -> HandlerPlan:
        """Returns the handlers of all prefixes of a name, shorter prefixes first."""
        segments = _checked_segments(name)
        prefixes = (":".join(segments[:count]) for count in range(len(segments) + 1))
        return plan([each for prefix in prefixes for each in self._by_prefix.get(prefix, ())])

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
    return HandlerPlan(tuple(handlers), tuple(attributes), can_fail)


def check_flux_name(name: str) -> None:
    """Raises `InvalidEvent` unless the name is one that the flux dialect takes."""
    size = len(encoded("name", name))
    if not 0 < size <= MAX_EVENT_NAME_BYTES:
        raise InvalidEvent(f"an event's name has 1 to {MAX_EVENT_NAME_BYTES} bytes, not {size}")


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
