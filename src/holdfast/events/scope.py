"""The names that expressions use, and their values for one event: attributes and built-ins."""

from collections.abc import Sequence
from itertools import count
from math import isfinite
from typing import Final, Protocol, TypeAlias

from holdfast.engine.contract import random_bytes
from holdfast.errors import InvalidEvent
from holdfast.events.records import Event
from holdfast.events.times import Calendar, labels
from holdfast.json_data import json_problem_in

__all__ = [
    "QUOTED_AT",
    "FixedScope",
    "FluxScope",
    "LookUp",
    "Scope",
    "Strings",
    "Unresolved",
    "encoded",
]

QUOTED_AT: Final = "\0"  # before the name of an attribute that begins like a built-in

Strings: TypeAlias = list[bytes]  # UTF-8


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
            strings = self.labels.get(name) or self._built_in(name[1:])
        else:
            strings = self._attribute(name.removeprefix(QUOTED_AT))
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
            return [random_bytes(16).hex().encode()]
        if name != "request_ip" or not self.event.ip:
            raise Unresolved(f"@{name}")
        return [encoded("ip", self.event.ip)]


class FixedScope(Scope):
    """The names of no event: time labels alone."""

    def __init__(self, labels: dict[str, Strings]) -> None:
        self.labels = labels

    def __missing__(self, name: str) -> Strings:
        return self.labels[name]


class FluxScope(Scope):
    """The names of an event in the flux dialect: its attributes may hide built-ins."""

    def __init__(
        self, event: Event, at: int, calendar: Calendar, look_ups: LookUp, names: Sequence[str] = ()
    ) -> None:
        super().__init__(event, at, calendar, look_ups, names)
        if any(name in self.labels for name in event.attributes):
            self.labels = dict(self.labels)  # so that expressions of labels are evaluated again

    def __missing__(self, name: str) -> Strings:
        if name[0] == "@":
            if self.event.attributes.get(name) is not None:
                strings = self._attribute(name)
            elif name in ("@unique_id", "@uniqueId"):
                return [b"%d" % _flux_unique_id(self.at)]  # another one for each evaluation
            else:
                strings = self.labels.get(name) or self._built_in(
                    "event_name" if name == "@eventName" else name[1:]
                )
            self[name] = strings
            return strings
        return super().__missing__(name)


_NUMBERS: Final = count(int.from_bytes(random_bytes(2), "big"))


def _flux_unique_id(at: int) -> int:
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
                raise _wrong_attribute(name, value)
            return float.__repr__(value).encode()
        case int():
            try:
                return int.__repr__(value).encode()  # of an enumeration's member, its number
            except ValueError:  # Python writes no integer of more than 4,300 digits
                raise InvalidEvent(f"the attribute {name!r} holds a number too long") from None
    raise _wrong_attribute(name, value)


def _wrong_attribute(name: str, value: object) -> InvalidEvent:
    found = json_problem_in(value, "it")
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
