"""The operations of events, for a client. Made by `make client` from operations.py."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from holdfast.client.calls import Call, as_text
from holdfast.client.layers import AwaitedLayer, CalledLayer, RecordedLayer, awaited, recorded
from holdfast.events.ingestion import AnyEvent
from holdfast.events.layer import Query, Result
from holdfast.events.reads import By, Moment
from holdfast.events.records import (
    BoardEntry,
    Distinct,
    Explanation,
    FanOutReport,
    KeyPage,
    Member,
    MemberPage,
    Point,
    SendManyReply,
    SendReply,
    Settings,
)


class CalledEvents(CalledLayer):
    """The operations of `Events`, called."""

    def configure(
        self,
        *,
        timezone: str | None = None,
        looked_up_members: int | None = None,
        fan_out_keys: int | None = None,
        dedup_seconds: float | None = None,
    ) -> Settings:
        """Changes settings of the space, for every process from the next event on; returns
        all.
        """
        return self._call(_CONFIGURE, timezone, looked_up_members, fan_out_keys, dedup_seconds)

    def contains(self, key: str, value: str) -> Member | None:
        """The member of that value, if the set has it. Reads 2 keys."""
        return self._call(_CONTAINS, key, value)

    def continue_fan_outs(self, *, most: int | None = None) -> int:
        """Continues background fan-outs until all are finished, a transaction for each step."""
        return self._call(_CONTINUE_FAN_OUTS, most)

    def deploy(self, schema: Mapping[str, Any] | str | bytes, name: str = "default") -> None:
        """Puts a schema into force under `name`, in place of the one that had this name."""
        return self._call(_DEPLOY, as_text(schema), name)

    def distinct(self, key: str | Sequence[str]) -> Distinct:
        """How many different values were ever added or counted, at one key or at several
        together.
        """
        return self._call(_DISTINCT, key)

    def explain(self, event: AnyEvent) -> Explanation:
        """What the event would do: the handlers that match, the keys and writes of each, and
        why a handler is skipped. Writes nothing, reads what `send` would read.
        """
        return self._call(_EXPLAIN, event)

    def fan_outs(self, limit: int = 100) -> list[FanOutReport]:
        """Returns the background fan-outs that run, then those that were finished within a
        day.
        """
        return self._call(_FAN_OUTS, limit)

    def forget(self, key: str) -> bool:
        """Deletes a key with its counters, and says whether it was there."""
        return self._call(_FORGET, key)

    def gross(self, key: str) -> int:
        """How many values were added or counted, repeats included; 0 for an unknown key."""
        return self._call(_GROSS, key)

    def keys(self, prefix: str = "", limit: int = 100, after: str | None = None) -> KeyPage:
        """The keys that begin with `prefix`, with their kinds, a page at a time."""
        return self._call(_KEYS, prefix, limit, after)

    def members(self, key: str, limit: int = 100, after: str | None = None) -> MemberPage:
        """The members of a set, newest first, a page at a time: hand `next` back as `after`."""
        return self._call(_MEMBERS, key, limit, after)

    def read(self, queries: Sequence[Query]) -> list[Result]:
        """Many reads in one snapshot, each answered as if it were asked alone."""
        return self._call(_READ, queries)

    def schemas(self) -> dict[str, dict[str, Any]]:
        """All schemas in force, by name. Reads a key for each."""
        return self._call(_SCHEMAS)

    def send(self, event: AnyEvent) -> SendReply:
        """Writes what the handlers of the event ask for, all of it or nothing."""
        return self._call(_SEND, event)

    def send_many(self, events: Sequence[AnyEvent]) -> SendManyReply:
        """Writes a batch of events in one transaction; a bad one fails alone, by its position."""
        return self._call(_SEND_MANY, events)

    def series(self, template: str, by: By, from_: Moment, to: Moment) -> list[Point]:
        """A number for each step of a range, both ends included, ready for plotting."""
        return self._call(_SERIES, template, by, as_text(from_), as_text(to))

    def settings(self) -> Settings:
        """The settings of the space. Reads 1 key."""
        return self._call(_SETTINGS)

    def size(self, key: str) -> int:
        """How many members a set has now, or entries a leaderboard; `#key` asks for the same."""
        return self._call(_SIZE, key)

    def top(self, key: str | Sequence[str], k: int | None = None) -> list[BoardEntry]:
        """The most frequent values of a leaderboard, highest count first, ties by value."""
        return self._call(_TOP, key, k)

    def withdraw(self, name: str = "default") -> None:
        """Takes a schema out of force; what it has written stays."""
        return self._call(_WITHDRAW, name)


class AwaitedEvents(AwaitedLayer):
    """The operations of `Events`, each a coroutine."""

    configure = awaited(CalledEvents.configure)
    contains = awaited(CalledEvents.contains)
    continue_fan_outs = awaited(CalledEvents.continue_fan_outs)
    deploy = awaited(CalledEvents.deploy)
    distinct = awaited(CalledEvents.distinct)
    explain = awaited(CalledEvents.explain)
    fan_outs = awaited(CalledEvents.fan_outs)
    forget = awaited(CalledEvents.forget)
    gross = awaited(CalledEvents.gross)
    keys = awaited(CalledEvents.keys)
    members = awaited(CalledEvents.members)
    read = awaited(CalledEvents.read)
    schemas = awaited(CalledEvents.schemas)
    send = awaited(CalledEvents.send)
    send_many = awaited(CalledEvents.send_many)
    series = awaited(CalledEvents.series)
    settings = awaited(CalledEvents.settings)
    size = awaited(CalledEvents.size)
    top = awaited(CalledEvents.top)
    withdraw = awaited(CalledEvents.withdraw)


class RecordedEvents(RecordedLayer):
    """The operations of `Events`, kept to be sent together."""

    configure = recorded(CalledEvents.configure)
    contains = recorded(CalledEvents.contains)
    deploy = recorded(CalledEvents.deploy)
    distinct = recorded(CalledEvents.distinct)
    explain = recorded(CalledEvents.explain)
    fan_outs = recorded(CalledEvents.fan_outs)
    forget = recorded(CalledEvents.forget)
    gross = recorded(CalledEvents.gross)
    keys = recorded(CalledEvents.keys)
    members = recorded(CalledEvents.members)
    read = recorded(CalledEvents.read)
    schemas = recorded(CalledEvents.schemas)
    send = recorded(CalledEvents.send)
    send_many = recorded(CalledEvents.send_many)
    series = recorded(CalledEvents.series)
    settings = recorded(CalledEvents.settings)
    size = recorded(CalledEvents.size)
    top = recorded(CalledEvents.top)
    withdraw = recorded(CalledEvents.withdraw)


_CONFIGURE: Final = Call("events.configure", "write", CalledEvents.configure)
_CONTAINS: Final = Call("events.contains", "read", CalledEvents.contains)
_CONTINUE_FAN_OUTS: Final = Call("events.continue_fan_outs", "long", CalledEvents.continue_fan_outs)
_DEPLOY: Final = Call("events.deploy", "write", CalledEvents.deploy)
_DISTINCT: Final = Call("events.distinct", "read", CalledEvents.distinct)
_EXPLAIN: Final = Call("events.explain", "read", CalledEvents.explain)
_FAN_OUTS: Final = Call("events.fan_outs", "read", CalledEvents.fan_outs)
_FORGET: Final = Call("events.forget", "write", CalledEvents.forget)
_GROSS: Final = Call("events.gross", "read", CalledEvents.gross)
_KEYS: Final = Call("events.keys", "read", CalledEvents.keys)
_MEMBERS: Final = Call("events.members", "read", CalledEvents.members)
_READ: Final = Call("events.read", "read", CalledEvents.read, has_plain_result=True)
_SCHEMAS: Final = Call("events.schemas", "read", CalledEvents.schemas)
_SEND: Final = Call("events.send", "write", CalledEvents.send)
_SEND_MANY: Final = Call("events.send_many", "write", CalledEvents.send_many)
_SERIES: Final = Call("events.series", "read", CalledEvents.series)
_SETTINGS: Final = Call("events.settings", "read", CalledEvents.settings)
_SIZE: Final = Call("events.size", "read", CalledEvents.size)
_TOP: Final = Call("events.top", "read", CalledEvents.top)
_WITHDRAW: Final = Call("events.withdraw", "write", CalledEvents.withdraw)
