"""The operations of events, for a client. Made by `make client` from operations.py."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from holdfast.client.calls import Call, as_text
from holdfast.client.layers import AwaitedLayer, CalledLayer, RecordedLayer, awaited, recorded
from holdfast.events import deployment
from holdfast.events.ingestion import AnyEvent
from holdfast.events.layer import Query, Result
from holdfast.events.reads import KeyOrKeys, Moment, SeriesMeasure, Window
from holdfast.events.records import (
    Aggregate,
    BoardEntry,
    Distinct,
    Explanation,
    FanOutReport,
    KeptCount,
    KeptResult,
    KeyDescription,
    KeyPage,
    Member,
    MemberPage,
    Point,
    SendManyReply,
    SendReply,
    Settings,
)
from holdfast.events.set_reads import SetOperation
from holdfast.limits import DEFAULT_KEPT_SECONDS


class CalledEvents(CalledLayer):
    """The operations of `Events`, called."""

    def aggregate(
        self,
        key: KeyOrKeys,
        percentiles: Sequence[float] = (50, 90, 95, 99),
        last: Window = None,
        schema: str | None = None,
    ) -> Aggregate:
        """Returns count, sum, min, max, avg, last and percentiles of the numbers of a key."""
        return self._call(_AGGREGATE, key, percentiles, last, schema)

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
        """Returns the member with that value; None if the set lacks it. Reads 2 keys."""
        return self._call(_CONTAINS, key, value)

    def continue_fan_outs(self, *, most: int | None = None) -> int:
        """Continues background fan-outs until all are finished, a transaction for each step."""
        return self._call(_CONTINUE_FAN_OUTS, most)

    def deploy(
        self,
        schema: Mapping[str, Any] | str | bytes,
        name: str = "default",
        dialect: deployment.Dialect = "mql",
        timezone: str | None = None,
        week_starts_on: str | None = None,
    ) -> None:
        """Deploys a schema under `name`, replacing an earlier one of that name."""
        return self._call(_DEPLOY, as_text(schema), name, dialect, timezone, week_starts_on)

    def describe(self, key: str) -> KeyDescription:
        """Describes a key: kinds, size, counters and expiry. Reads up to 5 keys."""
        return self._call(_DESCRIBE, key)

    def dialects(self) -> dict[str, deployment.Dialect]:
        """Returns the dialect of each schema, "mql" or "flux". Reads a key for each."""
        return self._call(_DIALECTS)

    def distinct(
        self,
        key: KeyOrKeys,
        op: SetOperation = "union",
        since: Moment | None = None,
        last: Window = None,
        schema: str | None = None,
    ) -> Distinct:
        """Returns how many different values were ever added or counted, at one key or several."""
        return self._call(_DISTINCT, key, op, as_text(since), last, schema)

    def explain(self, event: AnyEvent, schema: str | None = None) -> Explanation:
        """Returns what the event would do: which handlers match, the keys and writes of each,
        and why a handler is skipped. Writes nothing, reads the keys that `send` would read.
        """
        return self._call(_EXPLAIN, event, schema)

    def fan_outs(self, limit: int = 100) -> list[FanOutReport]:
        """Returns the running background fan-outs, then those that ended within the last day."""
        return self._call(_FAN_OUTS, limit)

    def forget(self, key: str) -> bool:
        """Deletes a key with its counters and numbers; returns whether it was there."""
        return self._call(_FORGET, key)

    def gross(
        self,
        key: KeyOrKeys,
        since: Moment | None = None,
        last: Window = None,
        schema: str | None = None,
        complete: bool = False,
    ) -> int:
        """Returns how many values were added or counted, repeats included; 0 for an unknown
        key.
        """
        return self._call(_GROSS, key, as_text(since), last, schema, complete)

    def keep_distinct(
        self, keys: KeyOrKeys, since: Moment | None = None, ttl: float = DEFAULT_KEPT_SECONDS
    ) -> KeptCount:
        """Stores the union of the counters of several keys, as it is now, for `ttl` seconds."""
        return self._call(_KEEP_DISTINCT, keys, as_text(since), ttl)

    def keep_members(
        self,
        keys: KeyOrKeys,
        op: SetOperation = "union",
        since: Moment | None = None,
        until: Moment | None = None,
        limit: int = 1000,
        ttl: float = DEFAULT_KEPT_SECONDS,
    ) -> KeptResult:
        """Stores the newest members of several sets, as they are now, for `ttl` seconds."""
        return self._call(_KEEP_MEMBERS, keys, op, as_text(since), as_text(until), limit, ttl)

    def keep_top(
        self,
        keys: KeyOrKeys,
        k: int | None = None,
        ttl: float = DEFAULT_KEPT_SECONDS,
        last: Window = None,
        schema: str | None = None,
    ) -> KeptResult:
        """Stores the leaderboards of several keys, merged as they are now, for `ttl` seconds."""
        return self._call(_KEEP_TOP, keys, k, ttl, last, schema)

    def keys(self, prefix: str = "", limit: int = 100, after: str | None = None) -> KeyPage:
        """Returns the keys that begin with `prefix`, with their kinds, a page at a time."""
        return self._call(_KEYS, prefix, limit, after)

    def members(
        self,
        key: KeyOrKeys,
        limit: int = 100,
        after: str | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
        op: SetOperation = "union",
        last: Window = None,
        schema: str | None = None,
    ) -> MemberPage:
        """Returns members of a set, newest first, a page at a time: pass `next` back as
        `after`.
        """
        return self._call(
            _MEMBERS, key, limit, after, as_text(since), as_text(until), op, last, schema
        )

    def problems(self, name: str) -> list[str]:
        """Returns a sentence for each invalid handler of a flux schema, which is skipped."""
        return self._call(_PROBLEMS, name)

    def read(self, queries: Sequence[Query]) -> list[Result]:
        """Runs many reads on one snapshot and returns their answers in order."""
        return self._call(_READ, queries)

    def schemas(self) -> dict[str, dict[str, Any]]:
        """Returns all schemas by name. Reads a key for each."""
        return self._call(_SCHEMAS)

    def send(self, event: AnyEvent, schema: str | None = None) -> SendReply:
        """Runs the handlers of an event and writes everything they ask for, or nothing."""
        return self._call(_SEND, event, schema)

    def send_many(self, events: Sequence[AnyEvent], schema: str | None = None) -> SendManyReply:
        """Sends several events in one transaction; the reply lists events that failed by
        position.
        """
        return self._call(_SEND_MANY, events, schema)

    def series(
        self, template: str, by: SeriesMeasure, from_: Moment, to: Moment, schema: str | None = None
    ) -> list[Point]:
        """Returns a number for each step of a range, both ends included, ready for plotting."""
        return self._call(_SERIES, template, by, as_text(from_), as_text(to), schema)

    def settings(self) -> Settings:
        """Returns the settings of the space. Reads 1 key."""
        return self._call(_SETTINGS)

    def size(self, key: str) -> int:
        """Returns how many members a set, or how many entries a leaderboard has now."""
        return self._call(_SIZE, key)

    def top(
        self, key: KeyOrKeys, k: int | None = None, last: Window = None, schema: str | None = None
    ) -> list[BoardEntry]:
        """Returns the most frequent values of a leaderboard, highest count first, ties by
        value.
        """
        return self._call(_TOP, key, k, last, schema)

    def withdraw(self, name: str = "default") -> None:
        """Withdraws a schema: its handlers no longer run; what they have written stays."""
        return self._call(_WITHDRAW, name)


class AwaitedEvents(AwaitedLayer):
    """The operations of `Events`, each a coroutine."""

    aggregate = awaited(CalledEvents.aggregate)
    configure = awaited(CalledEvents.configure)
    contains = awaited(CalledEvents.contains)
    continue_fan_outs = awaited(CalledEvents.continue_fan_outs)
    deploy = awaited(CalledEvents.deploy)
    describe = awaited(CalledEvents.describe)
    dialects = awaited(CalledEvents.dialects)
    distinct = awaited(CalledEvents.distinct)
    explain = awaited(CalledEvents.explain)
    fan_outs = awaited(CalledEvents.fan_outs)
    forget = awaited(CalledEvents.forget)
    gross = awaited(CalledEvents.gross)
    keep_distinct = awaited(CalledEvents.keep_distinct)
    keep_members = awaited(CalledEvents.keep_members)
    keep_top = awaited(CalledEvents.keep_top)
    keys = awaited(CalledEvents.keys)
    members = awaited(CalledEvents.members)
    problems = awaited(CalledEvents.problems)
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

    aggregate = recorded(CalledEvents.aggregate)
    configure = recorded(CalledEvents.configure)
    contains = recorded(CalledEvents.contains)
    deploy = recorded(CalledEvents.deploy)
    describe = recorded(CalledEvents.describe)
    dialects = recorded(CalledEvents.dialects)
    distinct = recorded(CalledEvents.distinct)
    explain = recorded(CalledEvents.explain)
    fan_outs = recorded(CalledEvents.fan_outs)
    forget = recorded(CalledEvents.forget)
    gross = recorded(CalledEvents.gross)
    keep_distinct = recorded(CalledEvents.keep_distinct)
    keep_members = recorded(CalledEvents.keep_members)
    keep_top = recorded(CalledEvents.keep_top)
    keys = recorded(CalledEvents.keys)
    members = recorded(CalledEvents.members)
    problems = recorded(CalledEvents.problems)
    read = recorded(CalledEvents.read)
    schemas = recorded(CalledEvents.schemas)
    send = recorded(CalledEvents.send)
    send_many = recorded(CalledEvents.send_many)
    series = recorded(CalledEvents.series)
    settings = recorded(CalledEvents.settings)
    size = recorded(CalledEvents.size)
    top = recorded(CalledEvents.top)
    withdraw = recorded(CalledEvents.withdraw)


_AGGREGATE: Final = Call("events.aggregate", "read", CalledEvents.aggregate)
_CONFIGURE: Final = Call("events.configure", "write", CalledEvents.configure)
_CONTAINS: Final = Call("events.contains", "read", CalledEvents.contains)
_CONTINUE_FAN_OUTS: Final = Call("events.continue_fan_outs", "long", CalledEvents.continue_fan_outs)
_DEPLOY: Final = Call("events.deploy", "write", CalledEvents.deploy)
_DESCRIBE: Final = Call("events.describe", "read", CalledEvents.describe)
_DIALECTS: Final = Call("events.dialects", "read", CalledEvents.dialects)
_DISTINCT: Final = Call("events.distinct", "read", CalledEvents.distinct)
_EXPLAIN: Final = Call("events.explain", "read", CalledEvents.explain)
_FAN_OUTS: Final = Call("events.fan_outs", "read", CalledEvents.fan_outs)
_FORGET: Final = Call("events.forget", "write", CalledEvents.forget)
_GROSS: Final = Call("events.gross", "read", CalledEvents.gross)
_KEEP_DISTINCT: Final = Call("events.keep_distinct", "write", CalledEvents.keep_distinct)
_KEEP_MEMBERS: Final = Call("events.keep_members", "write", CalledEvents.keep_members)
_KEEP_TOP: Final = Call("events.keep_top", "write", CalledEvents.keep_top)
_KEYS: Final = Call("events.keys", "read", CalledEvents.keys)
_MEMBERS: Final = Call("events.members", "read", CalledEvents.members)
_PROBLEMS: Final = Call("events.problems", "read", CalledEvents.problems)
_READ: Final = Call("events.read", "read", CalledEvents.read, has_plain_result=True)
_SCHEMAS: Final = Call("events.schemas", "read", CalledEvents.schemas)
_SEND: Final = Call("events.send", "write", CalledEvents.send)
_SEND_MANY: Final = Call("events.send_many", "write", CalledEvents.send_many)
_SERIES: Final = Call("events.series", "read", CalledEvents.series)
_SETTINGS: Final = Call("events.settings", "read", CalledEvents.settings)
_SIZE: Final = Call("events.size", "read", CalledEvents.size)
_TOP: Final = Call("events.top", "read", CalledEvents.top)
_WITHDRAW: Final = Call("events.withdraw", "write", CalledEvents.withdraw)
