"""Events: a schema turns each one into sets, leaderboards and counters, in real time (MQL)."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

from holdfast.declarations import operation
from holdfast.engine.contract import Transaction
from holdfast.error_text import shown
from holdfast.errors import BadInput
from holdfast.events import deployment, fan_outs, numbers, record_cache, stored_results
from holdfast.events import settings as space_settings
from holdfast.events.explanations import explain
from holdfast.events.ingestion import (
    ID_KIND,
    AnyEvent,
    DryRunEnqueue,
    Enqueue,
    Ingestions,
    remove_id,
)
from holdfast.events.reads import (
    KeyOrKeys,
    Moment,
    ReadMeter,
    Reads,
    SeriesMeasure,
    Window,
    encoded,
)
from holdfast.events.record_cache import RecordWriter
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
from holdfast.expiry import Remover
from holdfast.limits import DEFAULT_KEPT_SECONDS, MAX_EVENT_KEY_BYTES, MAX_READS

__all__ = ["REMOVERS", "Events", "Query", "Result"]

REMOVERS: Final[dict[str, Remover]] = {
    record_cache.KEY_KIND: record_cache.remove_key,
    record_cache.ROWS_KIND: record_cache.remove_rows,
    ID_KIND: remove_id,
    record_cache.BESIDE_KIND: record_cache.remove_beside,
    numbers.NUMBERS_KIND: numbers.remove_numbers,
    fan_outs.FAN_OUT_KIND: fan_outs.continue_fan_out,
    fan_outs.FINISHED_KIND: fan_outs.remove_finished,
}

Query: TypeAlias = str | Mapping[str, Any]
Result: TypeAlias = (
    MemberPage
    | Member
    | int
    | list[BoardEntry]
    | Distinct
    | list[Point]
    | Aggregate
    | KeyDescription
    | None
)

_READS: Final = (
    "members",
    "contains",
    "size",
    "top",
    "gross",
    "distinct",
    "aggregate",
    "describe",
    "series",
)


class Events:
    """The events of a space: deploys schemas, ingests events, and reads what they wrote.

    A handler with `enqueue` puts its job through the function `enqueue`, in the transaction of the
    event. Several jobs of one event are first tried with `enqueue_dry_run`, on a transaction whose
    writes are discarded. `settings` replaces the stored settings.
    """

    def __init__(
        self,
        tx: Transaction,
        *,
        enqueue: Enqueue | None = None,
        enqueue_dry_run: DryRunEnqueue | None = None,
        settings: Settings | None = None,
    ) -> None:
        self._tx = tx
        self._settings = settings
        self._ingestions = Ingestions(tx, settings, enqueue, enqueue_dry_run)

    # --- schemas ---------------------------------------------------------------------------------

    @operation(role="admin")
    def deploy(
        self,
        schema: Mapping[str, Any] | str | bytes,
        name: str = "default",
        dialect: deployment.Dialect = "mql",
        timezone: str | None = None,
        week_starts_on: str | None = None,
    ) -> None:
        """Deploys a schema under `name`, replacing an earlier one of that name.

        Takes an object, or its text as YAML or as JSON with comments. Raises `InvalidEventSchema`
        with every problem and its place; then nothing changes. Stored data is never changed.

        `timezone` and `week_starts_on` ("sunday") apply to the time labels of this schema, instead
        of the space's. A schema in the dialect "flux" is read as Flux reads it, and runs only for
        events that name it; `problems` lists its invalid handlers, which are skipped.

        Reads all schemas of the space, writes 2 keys.
        """
        deployment.deploy(self._tx, schema, name, dialect, timezone, week_starts_on)

    @operation(reads=True)
    def schemas(self) -> dict[str, dict[str, Any]]:
        """Returns all schemas by name. Reads a key for each."""
        return deployment.schemas(self._tx)

    @operation(reads=True)
    def dialects(self) -> dict[str, deployment.Dialect]:
        """Returns the dialect of each schema, "mql" or "flux". Reads a key for each."""
        return deployment.dialects(self._tx)

    @operation(reads=True)
    def problems(self, name: str) -> list[str]:
        """Returns a sentence for each invalid handler of a flux schema, which is skipped.

        Reads 1 key.
        """
        return deployment.problems(self._tx, name)

    @operation(role="admin")
    def withdraw(self, name: str = "default") -> None:
        """Withdraws a schema: its handlers no longer run; what they have written stays.

        Reads all schemas of the space, writes 2 keys.
        """
        deployment.withdraw(self._tx, name)

    # --- settings --------------------------------------------------------------------------------

    @operation(role="admin")
    def configure(
        self,
        *,
        timezone: str | None = None,
        looked_up_members: int | None = None,
        fan_out_keys: int | None = None,
        dedup_seconds: float | None = None,
    ) -> Settings:
        """Changes settings of the space, for every process from the next event on; returns all.

        `timezone` applies to the time labels ("Europe/Berlin"). `looked_up_members` limits how many
        members a look-up may find, `fan_out_keys` how many keys a handler may write in the
        transaction of an event. `dedup_seconds` is how long the id of an event is remembered.
        Settings that are not given stay.

        Reads 1 key, writes 1.
        """
        changes = {
            "timezone": timezone,
            "looked_up_members": looked_up_members,
            "fan_out_keys": fan_out_keys,
            "dedup_seconds": dedup_seconds,
        }
        return space_settings.configure(self._tx, changes)

    @operation(reads=True)
    def settings(self) -> Settings:
        """Returns the settings of the space. Reads 1 key."""
        return self._settings or space_settings.settings_of(self._tx)

    # --- events ----------------------------------------------------------------------------------

    @operation(addressed="event")
    def send(self, event: AnyEvent, schema: str | None = None) -> SendReply:
        """Runs the handlers of an event and writes everything they ask for, or nothing.

        The reply names the handlers that were skipped, with the attribute that the event lacks.
        With `schema`, only the handlers of that schema run, in its dialect.

        Reads 1 key, and reads and writes 1 key for each target key; each 32nd write to a set, and
        each write to a large set or board, 2 or 3 more.
        """
        return self._ingestions.send(event, schema)

    @operation(judged_alone=True, addressed="events")
    def send_many(self, events: Sequence[AnyEvent], schema: str | None = None) -> SendManyReply:
        """Sends several events in one transaction; the reply lists events that failed by position.

        A failed event does not affect the others. A key that several events write is read and
        written once. Reads 1 key, and reads and writes 1 key for each target key.
        """
        return self._ingestions.begin(schema).send_many(events)

    @operation(reads=True, addressed="event")
    def explain(self, event: AnyEvent, schema: str | None = None) -> Explanation:
        """Returns what the event would do: which handlers match, the keys and writes of each, and
        why a handler is skipped. Writes nothing, reads the keys that `send` would read."""
        return explain(self._tx, self._settings, event, schema)

    @operation(reads=True)
    def fan_outs(self, limit: int = 100) -> list[FanOutReport]:
        """Returns the running background fan-outs, then those that ended within the last day.

        Each says how many of its keys are written, and how many failed. Reads 1 key for each.
        """
        return fan_outs.reports(self._tx, limit)

    @operation()
    def forget(self, key: str) -> bool:
        """Deletes a key with its counters and numbers; returns whether it was there.

        Deletes up to 5 keys; the rows of a large set or board follow in bounded steps.
        """
        cache = RecordWriter(self._tx)
        name = encoded(key)
        if len(name) > MAX_EVENT_KEY_BYTES:
            return False  # no event writes such a key
        found = [each for each in (cache.record(name), cache.board_beside(name)) if each.known]
        for record in found:
            cache.remove_all(record)
        held = numbers.read(self._tx, name)
        if held.count:
            cache.delete(cache.keys.numbers(name))
            cache.note_changed(name, b"")
        cache.finish()
        return bool(found or held.count)

    # --- reads -----------------------------------------------------------------------------------

    @operation(reads=True)
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
        """Returns members of a set, newest first, a page at a time: pass `next` back as `after`.

        Several keys are read as one set: their union (each member once, at its newest place), with
        `op` "intersection" the members of all keys, with "difference" those of the first key alone.
        `since` (exclusive) and `until` (inclusive) bound the times of members, in milliseconds or
        ISO 8601. With `last` ("24h"), the key is a template such as `"viewers:{hour}"`.

        Reads 2 keys, of a large set 1 and `limit`; of several keys, a few rows of each and, from
        the second page on, 1 key of each for each member.
        """
        return self._reads().members(
            key, limit, after, op=op, since=since, until=until, last=last, schema=schema
        )

    @operation(reads=True)
    def contains(self, key: str, value: str) -> Member | None:
        """Returns the member with that value; None if the set lacks it. Reads 2 keys."""
        return self._reads().contains(key, value)

    @operation(reads=True)
    def size(self, key: str) -> int:
        """Returns how many members a set, or how many entries a leaderboard has now.

        The key may be written as `#key`, as in `read`. Reads 1 or 2 keys.
        """
        return self._reads().size(key)

    @operation(reads=True)
    def top(
        self,
        key: KeyOrKeys,
        k: int | None = None,
        last: Window = None,
        schema: str | None = None,
    ) -> list[BoardEntry]:
        """Returns the most frequent values of a leaderboard, highest count first, ties by value.

        Several keys are merged. With `last`, the key is a template: `top("popular:{day}",
        last="7d")` is the top of the last seven days, today included. A count is never too low, and
        never too high by more than its `error`. `k` defaults to the K of the board. On a board with
        a half-life, `score` is the decayed count as of now.

        Reads `k` keys of a board with more than 4,000 candidates, which has an index by count, and
        all candidates of a smaller one. Several indexed boards are read from the top until no other
        value can be among the highest, usually a few times `k` keys of each.
        """
        return self._reads().top(key, k, last, schema)

    @operation(reads=True)
    def gross(
        self,
        key: KeyOrKeys,
        since: Moment | None = None,
        last: Window = None,
        schema: str | None = None,
        complete: bool = False,
    ) -> int:
        """Returns how many values were added or counted, repeats included; 0 for an unknown key.

        The counts of several keys are added; a scored add that went to several of them counts once.
        `since` counts adds after a time, to the second, at keys with `windowed_counters`. With
        `last`, the key is a template such as `"views:{hour}"`. Values that were added while
        `store_gross_counters` was off are not counted: `complete` raises `IncompleteCounter` then.

        Reads 1 key for each, with `since` up to 66.
        """
        return self._reads().gross(key, since, last, schema, complete=complete)

    @operation(reads=True)
    def distinct(
        self,
        key: KeyOrKeys,
        op: SetOperation = "union",
        since: Moment | None = None,
        last: Window = None,
        schema: str | None = None,
    ) -> Distinct:
        """Returns how many different values were ever added or counted, at one key or several.

        Of several keys, it counts the values of their union, with `op` "intersection" those that
        all keys have, with "difference" those of the first key alone. Exact up to 256 values, and
        for a set from which nothing was ever removed or evicted; beyond, an estimate with a
        standard error of 0.84 %. `error` is one standard error of the answer, for intersections and
        differences that of the union.

        `since` counts the values whose last add was after a time, to the second: at keys with
        `windowed_counters` (2.3 % beyond 256), or from the members of a set that has lost none.
        With `last`, the key is a template: `distinct("viewers:{hour}", last="24h")`.

        Reads up to 3 keys for each, with `since` up to 66.
        """
        return self._reads().distinct(key, op, since, last, schema)

    @operation()
    def keep_distinct(
        self,
        keys: KeyOrKeys,
        since: Moment | None = None,
        ttl: float = DEFAULT_KEPT_SECONDS,
    ) -> KeptCount:
        """Stores the union of the counters of several keys, as it is now, for `ttl` seconds.

        `distinct` accepts the key of the answer; later events do not change it.

        Reads up to 66 keys for each, writes up to 67.
        """
        return stored_results.keep_distinct(self._tx, self._reads(), keys, since, ttl)

    @operation()
    def keep_members(
        self,
        keys: KeyOrKeys,
        op: SetOperation = "union",
        since: Moment | None = None,
        until: Moment | None = None,
        limit: int = 1_000,
        ttl: float = DEFAULT_KEPT_SECONDS,
    ) -> KeptResult:
        """Stores the newest members of several sets, as they are now, for `ttl` seconds.

        Takes the arguments of `members`; the key of the answer is a set. `complete` is False if
        there are more than `limit`. Reads what `members` reads, writes 1 key, or 2 for each member.
        """
        return stored_results.keep_members(
            self._tx, self._reads(), keys, op, since, until, limit, ttl
        )

    @operation()
    def keep_top(
        self,
        keys: KeyOrKeys,
        k: int | None = None,
        ttl: float = DEFAULT_KEPT_SECONDS,
        last: Window = None,
        schema: str | None = None,
    ) -> KeptResult:
        """Stores the leaderboards of several keys, merged as they are now, for `ttl` seconds.

        Takes the arguments of `top`; the key of the answer is an ordinary leaderboard. Reads what
        `top` reads, writes 1 key for each entry.
        """
        return stored_results.keep_top(self._tx, self._reads(), keys, k, ttl, last, schema)

    @operation(reads=True)
    def aggregate(
        self,
        key: KeyOrKeys,
        percentiles: Sequence[float] = (50, 90, 95, 99),
        last: Window = None,
        schema: str | None = None,
    ) -> Aggregate:
        """Returns count, sum, min, max, avg, last and percentiles of the numbers of a key.

        Several keys are combined; with `last`, the key is a template. A percentile is within 1 %,
        all else is exact. Reads 1 key for each.
        """
        return self._reads().aggregate(key, percentiles, last, schema)

    @operation(reads=True)
    def describe(self, key: str) -> KeyDescription:
        """Describes a key: kinds, size, counters and expiry. Reads up to 5 keys."""
        return self._reads().describe(key)

    @operation(reads=True)
    def series(
        self, template: str, by: SeriesMeasure, from_: Moment, to: Moment, schema: str | None = None
    ) -> list[Point]:
        """Returns a number for each step of a range, both ends included, ready for plotting.

        `template` is a key with one time label in braces, `"unique:signup:{day}"`; `by` is "gross",
        "distinct" or "size", or of numbers "count", "sum", "min", "max", "avg", "last" or a
        percentile such as "p95". The labels are in the time zone of the space, or of `schema`. The
        value of a counter that was off is None.

        Reads up to 3 keys for each step.
        """
        return self._reads().series(template, by, from_, to, schema)

    @operation(reads=True)
    def keys(self, prefix: str = "", limit: int = 100, after: str | None = None) -> KeyPage:
        """Returns the keys that begin with `prefix`, with their kinds, a page at a time.

        Reads `limit` keys, and those that have expired and were not yet removed.
        """
        return self._reads().keys(prefix, limit, after)

    @operation(reads=True)
    def read(self, queries: Sequence[Query]) -> list[Result]:
        """Runs many reads on one snapshot and returns their answers in order.

        A query names the operation and its arguments: `{"op": "top", "key": "popular", "k": 3}`.
        The text `"#key"` asks for the size of a key, any other text for its members. Reads what
        each of them reads alone.
        """
        if isinstance(queries, str | Mapping) or not isinstance(queries, Sequence):
            raise BadInput(f"queries must be a list, not {shown(queries)}")
        if len(queries) > MAX_READS:
            raise BadInput(f"{len(queries)} reads in one call, at most {MAX_READS} are allowed")
        found: list[Any] = []
        meter = ReadMeter()
        for query in queries:
            found.append(self._answer(query))
            meter.count(found[-1])
        return found

    def _answer(self, query: Query) -> Any:
        if isinstance(query, str):
            return self.size(query) if query.startswith("#") else self.members(query)
        if not isinstance(query, Mapping):
            raise BadInput(f"a query must be an object with `op` and `key`, not {shown(query)}")
        arguments = dict(query)
        operation = arguments.pop("op", None)
        key = arguments.get("key")
        if isinstance(key, str) and key.startswith("#"):
            return self.size(key)
        if operation not in _READS:
            raise BadInput(
                f"a query has no op {operation!r}", hint=f"The ops are {', '.join(_READS)}."
            )
        if "from" in arguments:
            arguments["from_"] = arguments.pop("from")
        try:
            return getattr(self, operation)(**arguments)
        except TypeError as error:
            raise BadInput(f"the query for {operation} does not fit: {error}") from None

    def _reads(self) -> Reads:
        return Reads(self._tx, self._settings)
