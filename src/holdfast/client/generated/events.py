"""The operations of events, for a client. Made by `make client` from operations.py."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from holdfast.client.calls import Call, as_text
from holdfast.client.faces import AwaitFace, CallFace, Handle, RecordFace
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

_CONFIGURE: Final[Call[Settings]] = Call(
    "events.configure", "write", only_reads=False, result=Settings
)

_CONTAINS: Final[Call[Member | None]] = Call(
    "events.contains", "read", only_reads=True, result=Member | None
)

_CONTINUE_FAN_OUTS: Final[Call[int]] = Call(
    "events.continue_fan_outs", "long", only_reads=False, result=int
)

_DEPLOY: Final[Call[None]] = Call("events.deploy", "write", only_reads=False, result=None)

_DISTINCT: Final[Call[Distinct]] = Call("events.distinct", "read", only_reads=True, result=Distinct)

_EXPLAIN: Final[Call[Explanation]] = Call(
    "events.explain", "read", only_reads=True, result=Explanation
)

_FAN_OUTS: Final[Call[list[FanOutReport]]] = Call(
    "events.fan_outs", "read", only_reads=True, result=list[FanOutReport]
)

_FORGET: Final[Call[bool]] = Call("events.forget", "write", only_reads=False, result=bool)

_GROSS: Final[Call[int]] = Call("events.gross", "read", only_reads=True, result=int)

_KEYS: Final[Call[KeyPage]] = Call("events.keys", "read", only_reads=True, result=KeyPage)

_MEMBERS: Final[Call[MemberPage]] = Call(
    "events.members", "read", only_reads=True, result=MemberPage
)

_READ: Final[Call[list[Result]]] = Call("events.read", "read", only_reads=True, result=Any)

_SCHEMAS: Final[Call[dict[str, dict[str, Any]]]] = Call(
    "events.schemas", "read", only_reads=True, result=dict[str, dict[str, Any]]
)

_SEND: Final[Call[SendReply]] = Call("events.send", "write", only_reads=False, result=SendReply)

_SEND_MANY: Final[Call[SendManyReply]] = Call(
    "events.send_many", "write", only_reads=False, result=SendManyReply
)

_SERIES: Final[Call[list[Point]]] = Call(
    "events.series", "read", only_reads=True, result=list[Point]
)

_SETTINGS: Final[Call[Settings]] = Call("events.settings", "read", only_reads=True, result=Settings)

_SIZE: Final[Call[int]] = Call("events.size", "read", only_reads=True, result=int)

_TOP: Final[Call[list[BoardEntry]]] = Call(
    "events.top", "read", only_reads=True, result=list[BoardEntry]
)

_WITHDRAW: Final[Call[None]] = Call("events.withdraw", "write", only_reads=False, result=None)


def _configure(
    *,
    timezone: str | None = None,
    looked_up_members: int | None = None,
    fan_out_keys: int | None = None,
    dedup_seconds: float | None = None,
) -> dict[str, Any]:
    given: dict[str, Any] = {}
    if timezone is not None:
        given["timezone"] = timezone
    if looked_up_members is not None:
        given["looked_up_members"] = looked_up_members
    if fan_out_keys is not None:
        given["fan_out_keys"] = fan_out_keys
    if dedup_seconds is not None:
        given["dedup_seconds"] = dedup_seconds
    return given


def _contains(key: str, value: str) -> dict[str, Any]:
    return {"key": key, "value": value}


def _continue_fan_outs(*, most: int | None = None) -> dict[str, Any]:
    given: dict[str, Any] = {}
    if most is not None:
        given["most"] = most
    return given


def _deploy(schema: Mapping[str, Any] | str | bytes, name: str = "default") -> dict[str, Any]:
    given: dict[str, Any] = {"schema": as_text(schema)}
    if name != "default":
        given["name"] = name
    return given


def _distinct(key: str | Sequence[str]) -> dict[str, Any]:
    return {"key": key}


def _explain(event: AnyEvent) -> dict[str, Any]:
    return {"event": event}


def _fan_outs(limit: int = 100) -> dict[str, Any]:
    given: dict[str, Any] = {}
    if limit != 100:
        given["limit"] = limit
    return given


def _forget(key: str) -> dict[str, Any]:
    return {"key": key}


def _gross(key: str) -> dict[str, Any]:
    return {"key": key}


def _keys(prefix: str = "", limit: int = 100, after: str | None = None) -> dict[str, Any]:
    given: dict[str, Any] = {}
    if prefix != "":
        given["prefix"] = prefix
    if limit != 100:
        given["limit"] = limit
    if after is not None:
        given["after"] = after
    return given


def _members(key: str, limit: int = 100, after: str | None = None) -> dict[str, Any]:
    given: dict[str, Any] = {"key": key}
    if limit != 100:
        given["limit"] = limit
    if after is not None:
        given["after"] = after
    return given


def _read(queries: Sequence[Query]) -> dict[str, Any]:
    return {"queries": queries}


def _send(event: AnyEvent) -> dict[str, Any]:
    return {"event": event}


def _send_many(events: Sequence[AnyEvent]) -> dict[str, Any]:
    return {"events": events}


def _series(template: str, by: By, from_: Moment, to: Moment) -> dict[str, Any]:
    return {"template": template, "by": by, "from": as_text(from_), "to": as_text(to)}


def _size(key: str) -> dict[str, Any]:
    return {"key": key}


def _top(key: str | Sequence[str], k: int | None = None) -> dict[str, Any]:
    given: dict[str, Any] = {"key": key}
    if k is not None:
        given["k"] = k
    return given


def _withdraw(name: str = "default") -> dict[str, Any]:
    given: dict[str, Any] = {}
    if name != "default":
        given["name"] = name
    return given


class CalledEvents(CallFace):
    """The operations of `Events`, each a call to a server."""

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
        return self._call(
            _CONFIGURE,
            _configure(
                timezone=timezone,
                looked_up_members=looked_up_members,
                fan_out_keys=fan_out_keys,
                dedup_seconds=dedup_seconds,
            ),
        )

    def contains(self, key: str, value: str) -> Member | None:
        """The member of that value, if the set has it. Reads 2 keys."""
        return self._call(_CONTAINS, _contains(key, value))

    def continue_fan_outs(self, *, most: int | None = None) -> int:
        """Continues background fan-outs until all are finished, a transaction for each step."""
        return self._call(_CONTINUE_FAN_OUTS, _continue_fan_outs(most=most))

    def deploy(self, schema: Mapping[str, Any] | str | bytes, name: str = "default") -> None:
        """Puts a schema into force under `name`, in place of the one that had this name."""
        return self._call(_DEPLOY, _deploy(schema, name))

    def distinct(self, key: str | Sequence[str]) -> Distinct:
        """How many different values were ever added or counted, at one key or at several
        together.
        """
        return self._call(_DISTINCT, _distinct(key))

    def explain(self, event: AnyEvent) -> Explanation:
        """What the event would do: the handlers that match, the keys and writes of each, and
        why a handler is skipped. Writes nothing, reads what `send` would read.
        """
        return self._call(_EXPLAIN, _explain(event))

    def fan_outs(self, limit: int = 100) -> list[FanOutReport]:
        """Returns the background fan-outs that run, then those that were finished within a
        day.
        """
        return self._call(_FAN_OUTS, _fan_outs(limit))

    def forget(self, key: str) -> bool:
        """Deletes a key with its counters, and says whether it was there."""
        return self._call(_FORGET, _forget(key))

    def gross(self, key: str) -> int:
        """How many values were added or counted, repeats included; 0 for an unknown key."""
        return self._call(_GROSS, _gross(key))

    def keys(self, prefix: str = "", limit: int = 100, after: str | None = None) -> KeyPage:
        """The keys that begin with `prefix`, with their kinds, a page at a time."""
        return self._call(_KEYS, _keys(prefix, limit, after))

    def members(self, key: str, limit: int = 100, after: str | None = None) -> MemberPage:
        """The members of a set, newest first, a page at a time: hand `next` back as `after`."""
        return self._call(_MEMBERS, _members(key, limit, after))

    def read(self, queries: Sequence[Query]) -> list[Result]:
        """Many reads in one snapshot, each answered as if it were asked alone."""
        return self._call(_READ, _read(queries))

    def schemas(self) -> dict[str, dict[str, Any]]:
        """All schemas in force, by name. Reads a key for each."""
        return self._call(_SCHEMAS, {})

    def send(self, event: AnyEvent) -> SendReply:
        """Writes what the handlers of the event ask for, all of it or nothing."""
        return self._call(_SEND, _send(event))

    def send_many(self, events: Sequence[AnyEvent]) -> SendManyReply:
        """Writes a batch of events in one transaction; a bad one fails alone, by its position."""
        return self._call(_SEND_MANY, _send_many(events))

    def series(self, template: str, by: By, from_: Moment, to: Moment) -> list[Point]:
        """A number for each step of a range, both ends included, ready for plotting."""
        return self._call(_SERIES, _series(template, by, from_, to))

    def settings(self) -> Settings:
        """The settings of the space. Reads 1 key."""
        return self._call(_SETTINGS, {})

    def size(self, key: str) -> int:
        """How many members a set has now, or entries a leaderboard; `#key` asks for the same."""
        return self._call(_SIZE, _size(key))

    def top(self, key: str | Sequence[str], k: int | None = None) -> list[BoardEntry]:
        """The most frequent values of a leaderboard, highest count first, ties by value."""
        return self._call(_TOP, _top(key, k))

    def withdraw(self, name: str = "default") -> None:
        """Takes a schema out of force; what it has written stays."""
        return self._call(_WITHDRAW, _withdraw(name))


class AwaitedEvents(AwaitFace):
    """The operations of `Events`, each a coroutine."""

    async def configure(
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
        return await self._call(
            _CONFIGURE,
            _configure(
                timezone=timezone,
                looked_up_members=looked_up_members,
                fan_out_keys=fan_out_keys,
                dedup_seconds=dedup_seconds,
            ),
        )

    async def contains(self, key: str, value: str) -> Member | None:
        """The member of that value, if the set has it. Reads 2 keys."""
        return await self._call(_CONTAINS, _contains(key, value))

    async def continue_fan_outs(self, *, most: int | None = None) -> int:
        """Continues background fan-outs until all are finished, a transaction for each step."""
        return await self._call(_CONTINUE_FAN_OUTS, _continue_fan_outs(most=most))

    async def deploy(self, schema: Mapping[str, Any] | str | bytes, name: str = "default") -> None:
        """Puts a schema into force under `name`, in place of the one that had this name."""
        return await self._call(_DEPLOY, _deploy(schema, name))

    async def distinct(self, key: str | Sequence[str]) -> Distinct:
        """How many different values were ever added or counted, at one key or at several
        together.
        """
        return await self._call(_DISTINCT, _distinct(key))

    async def explain(self, event: AnyEvent) -> Explanation:
        """What the event would do: the handlers that match, the keys and writes of each, and
        why a handler is skipped. Writes nothing, reads what `send` would read.
        """
        return await self._call(_EXPLAIN, _explain(event))

    async def fan_outs(self, limit: int = 100) -> list[FanOutReport]:
        """Returns the background fan-outs that run, then those that were finished within a
        day.
        """
        return await self._call(_FAN_OUTS, _fan_outs(limit))

    async def forget(self, key: str) -> bool:
        """Deletes a key with its counters, and says whether it was there."""
        return await self._call(_FORGET, _forget(key))

    async def gross(self, key: str) -> int:
        """How many values were added or counted, repeats included; 0 for an unknown key."""
        return await self._call(_GROSS, _gross(key))

    async def keys(self, prefix: str = "", limit: int = 100, after: str | None = None) -> KeyPage:
        """The keys that begin with `prefix`, with their kinds, a page at a time."""
        return await self._call(_KEYS, _keys(prefix, limit, after))

    async def members(self, key: str, limit: int = 100, after: str | None = None) -> MemberPage:
        """The members of a set, newest first, a page at a time: hand `next` back as `after`."""
        return await self._call(_MEMBERS, _members(key, limit, after))

    async def read(self, queries: Sequence[Query]) -> list[Result]:
        """Many reads in one snapshot, each answered as if it were asked alone."""
        return await self._call(_READ, _read(queries))

    async def schemas(self) -> dict[str, dict[str, Any]]:
        """All schemas in force, by name. Reads a key for each."""
        return await self._call(_SCHEMAS, {})

    async def send(self, event: AnyEvent) -> SendReply:
        """Writes what the handlers of the event ask for, all of it or nothing."""
        return await self._call(_SEND, _send(event))

    async def send_many(self, events: Sequence[AnyEvent]) -> SendManyReply:
        """Writes a batch of events in one transaction; a bad one fails alone, by its position."""
        return await self._call(_SEND_MANY, _send_many(events))

    async def series(self, template: str, by: By, from_: Moment, to: Moment) -> list[Point]:
        """A number for each step of a range, both ends included, ready for plotting."""
        return await self._call(_SERIES, _series(template, by, from_, to))

    async def settings(self) -> Settings:
        """The settings of the space. Reads 1 key."""
        return await self._call(_SETTINGS, {})

    async def size(self, key: str) -> int:
        """How many members a set has now, or entries a leaderboard; `#key` asks for the same."""
        return await self._call(_SIZE, _size(key))

    async def top(self, key: str | Sequence[str], k: int | None = None) -> list[BoardEntry]:
        """The most frequent values of a leaderboard, highest count first, ties by value."""
        return await self._call(_TOP, _top(key, k))

    async def withdraw(self, name: str = "default") -> None:
        """Takes a schema out of force; what it has written stays."""
        return await self._call(_WITHDRAW, _withdraw(name))


class RecordedEvents(RecordFace):
    """The operations of `Events`, kept to be sent together."""

    def configure(
        self,
        *,
        timezone: str | None = None,
        looked_up_members: int | None = None,
        fan_out_keys: int | None = None,
        dedup_seconds: float | None = None,
    ) -> Handle[Settings]:
        """Changes settings of the space, for every process from the next event on; returns
        all.
        """
        return self._record(
            _CONFIGURE,
            _configure(
                timezone=timezone,
                looked_up_members=looked_up_members,
                fan_out_keys=fan_out_keys,
                dedup_seconds=dedup_seconds,
            ),
        )

    def contains(self, key: str, value: str) -> Handle[Member | None]:
        """The member of that value, if the set has it. Reads 2 keys."""
        return self._record(_CONTAINS, _contains(key, value))

    def deploy(
        self, schema: Mapping[str, Any] | str | bytes, name: str = "default"
    ) -> Handle[None]:
        """Puts a schema into force under `name`, in place of the one that had this name."""
        return self._record(_DEPLOY, _deploy(schema, name))

    def distinct(self, key: str | Sequence[str]) -> Handle[Distinct]:
        """How many different values were ever added or counted, at one key or at several
        together.
        """
        return self._record(_DISTINCT, _distinct(key))

    def explain(self, event: AnyEvent) -> Handle[Explanation]:
        """What the event would do: the handlers that match, the keys and writes of each, and
        why a handler is skipped. Writes nothing, reads what `send` would read.
        """
        return self._record(_EXPLAIN, _explain(event))

    def fan_outs(self, limit: int = 100) -> Handle[list[FanOutReport]]:
        """Returns the background fan-outs that run, then those that were finished within a
        day.
        """
        return self._record(_FAN_OUTS, _fan_outs(limit))

    def forget(self, key: str) -> Handle[bool]:
        """Deletes a key with its counters, and says whether it was there."""
        return self._record(_FORGET, _forget(key))

    def gross(self, key: str) -> Handle[int]:
        """How many values were added or counted, repeats included; 0 for an unknown key."""
        return self._record(_GROSS, _gross(key))

    def keys(self, prefix: str = "", limit: int = 100, after: str | None = None) -> Handle[KeyPage]:
        """The keys that begin with `prefix`, with their kinds, a page at a time."""
        return self._record(_KEYS, _keys(prefix, limit, after))

    def members(self, key: str, limit: int = 100, after: str | None = None) -> Handle[MemberPage]:
        """The members of a set, newest first, a page at a time: hand `next` back as `after`."""
        return self._record(_MEMBERS, _members(key, limit, after))

    def read(self, queries: Sequence[Query]) -> Handle[list[Result]]:
        """Many reads in one snapshot, each answered as if it were asked alone."""
        return self._record(_READ, _read(queries))

    def schemas(self) -> Handle[dict[str, dict[str, Any]]]:
        """All schemas in force, by name. Reads a key for each."""
        return self._record(_SCHEMAS, {})

    def send(self, event: AnyEvent) -> Handle[SendReply]:
        """Writes what the handlers of the event ask for, all of it or nothing."""
        return self._record(_SEND, _send(event))

    def send_many(self, events: Sequence[AnyEvent]) -> Handle[SendManyReply]:
        """Writes a batch of events in one transaction; a bad one fails alone, by its position."""
        return self._record(_SEND_MANY, _send_many(events))

    def series(self, template: str, by: By, from_: Moment, to: Moment) -> Handle[list[Point]]:
        """A number for each step of a range, both ends included, ready for plotting."""
        return self._record(_SERIES, _series(template, by, from_, to))

    def settings(self) -> Handle[Settings]:
        """The settings of the space. Reads 1 key."""
        return self._record(_SETTINGS, {})

    def size(self, key: str) -> Handle[int]:
        """How many members a set has now, or entries a leaderboard; `#key` asks for the same."""
        return self._record(_SIZE, _size(key))

    def top(self, key: str | Sequence[str], k: int | None = None) -> Handle[list[BoardEntry]]:
        """The most frequent values of a leaderboard, highest count first, ties by value."""
        return self._record(_TOP, _top(key, k))

    def withdraw(self, name: str = "default") -> Handle[None]:
        """Takes a schema out of force; what it has written stays."""
        return self._record(_WITHDRAW, _withdraw(name))
