"""From a deployed schema to functions: what an event means is settled before the first one comes.

`compiled` turns the schemas of a space into closures once, however many events follow; the cache
knows them by the digest of what is stored, so every process notices a new schema with its next
event. Ingesting parses nothing and searches nothing: the handlers of an event name are found by
looking up each of its prefixes, at most 33, among any number.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from math import isfinite
from typing import NamedTuple, Protocol, TypeAlias

from holdfast.engine.contract import draw
from holdfast.errors import ExpandsTooFar, InvalidEvent
from holdfast.events.expressions import Attribute, BuiltIn, Expression, Literal, Term
from holdfast.events.records import DEFAULT_SCHEMA, Event, Settings
from holdfast.events.schema import Handler, Operation
from holdfast.events.times import LABELS, labels
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

Strings: TypeAlias = list[bytes]  # UTF-8
Evaluate: TypeAlias = Callable[["Scope"], Strings]


class LookUp(Protocol):
    """The newest members of the set with a key."""

    def __call__(self, key: bytes) -> Strings: ...


class Unresolved(Exception):
    """An event has no value for a name; the handler that needs it does nothing."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class Scope(dict[str, Strings]):
    """What the names of an expression mean for one event; each is worked out when first asked for.

    Built-ins are listed with their `@`, which no attribute's name can begin with.
    """

    __slots__ = ("at", "event", "labels", "look_up", "settings")

    def __init__(
        self, event: Event, at: int, settings: Settings, look_up: LookUp, names: Sequence[str] = ()
    ) -> None:
        self.labels = labels(at, settings.timezone)
        super().__init__(self.labels)
        self.event = event
        self.at = at
        self.settings = settings
        self.look_up = look_up
        attributes = event.attributes
        for name in names:
            # The usual case of `__missing__`, without its calls.
            if type(value := attributes.get(name)) is str and value.isascii():
                self[name] = [value.encode()]

    def __missing__(self, name: str) -> Strings:
        strings = self._built_in(name[1:]) if name[0] == "@" else self._attribute(name)
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
        if not self.event.ip:
            raise Unresolved("@request_ip")
        return [encoded("ip", self.event.ip)]


def _text(name: str, value: object) -> bytes:
    """An attribute's value as text: integers in decimal, floats in their shortest form."""
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
    """The text of a part of an event, as UTF-8."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise InvalidEvent(f"{name!r} is no valid Unicode: {text[:40]!r}") from None


# --- expressions ------------------------------------------------------------------------------


def _compile_term(term: Term) -> Evaluate:
    if isinstance(term, Literal):
        constant = [term.text.encode()]
        return lambda scope: constant
    name = _scope_name(term)
    return lambda scope: scope[name]


def _scope_name(term: Attribute | BuiltIn) -> str:
    return f"@{term.name}" if isinstance(term, BuiltIn) else term.name


def compile_expression(expression: Expression, *, names_last: bool = False) -> Evaluate:
    """A function from a scope to the strings of an expression.

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
    """Time labels and literals: worked out for the first event of each minute."""
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
        for string in strings(scope):
            found.update(dict.fromkeys(scope.look_up(string + suffix)))
            if len(found) > MAX_EVENT_WRITES:
                raise ExpandsTooFar(
                    f"expands to more than {MAX_EVENT_WRITES} members",
                    hint="Look up smaller sets, or bound them with `max_stored_values`.",
                )
        return list(found)

    return evaluate


def _unique(strings: Strings) -> Strings:
    return list(dict.fromkeys(strings)) if len(strings) > 1 else strings


def joined_keys(parts: list[Strings], limit: int) -> Strings:
    """The cartesian product of `parts`, each combination joined with colons, without duplicates."""
    count = 1
    for part in parts:
        count *= len(part)
    if count > limit:
        raise ExpandsTooFar(f"expands to {count} keys, the limit is {limit}")
    keys = parts[0]
    for part in parts[1:]:
        endings = [b":" + string for string in part]
        keys = [key + ending for key in keys for ending in endings]
    return list(dict.fromkeys(keys)) if count > 1 else keys


# --- handlers ---------------------------------------------------------------------------------


class CompiledHandler:
    """A handler whose expressions are functions."""

    __slots__ = (
        "attributes",
        "can_fail",
        "handler",
        "job",
        "name",
        "operation",
        "schema",
        "targets",
        "value",
    )

    def __init__(self, schema: str, handler: Handler) -> None:
        # The very object, by which msgspec knows a default: reports leave it out.
        self.schema = DEFAULT_SCHEMA if schema == DEFAULT_SCHEMA else schema
        self.handler = handler
        self.name = handler.name
        self.operation: Operation = handler.operation
        last = len(handler.targets) - 1
        names_last = handler.operation in ("add", "remove")
        self.targets = [
            compile_expression(expression, names_last=names_last and position == last)
            for position, expression in enumerate(handler.targets)
        ]
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
        self.can_fail = handler.job is not None or looks_up


def _expressions(handler: Handler) -> list[Expression]:
    value = [] if handler.value is None else [handler.value]
    data = [] if handler.job is None else [term for _, term in handler.job.data]
    return [*handler.targets, *value, *data]


class HandlerPlan(NamedTuple):
    """What an event name means, settled when the first event of that name comes."""

    handlers: tuple[CompiledHandler, ...]  # in the order of their execution
    attributes: tuple[str, ...]  # that their expressions name
    can_fail: bool  # one of them may fail after another has written


class CompiledSchemas:
    """All handlers of a space, found by the name of an event."""

    def __init__(self, schemas: Iterable[tuple[str, list[Handler]]]) -> None:
        self._by_prefix: dict[str, list[CompiledHandler]] = {}
        for schema, handlers in schemas:
            for handler in handlers:
                listed = self._by_prefix.setdefault(":".join(handler.prefix), [])
                listed.append(CompiledHandler(schema, handler))
        self.plan_of = lru_cache(maxsize=4_096)(self._plan_of)

    def _plan_of(self, name: str) -> HandlerPlan:
        """The handlers of all prefixes of a name, shorter prefixes first."""
        segments = _checked_segments(name)
        prefixes = (":".join(segments[:count]) for count in range(len(segments) + 1))
        found = tuple(handler for prefix in prefixes for handler in self._by_prefix.get(prefix, ()))
        attributes = dict.fromkeys(name for handler in found for name in handler.attributes)
        can_fail = any(handler.can_fail for handler in found)
        return HandlerPlan(found, tuple(attributes), can_fail)


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
