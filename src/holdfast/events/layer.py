"""Events: a schema turns each one into sets, leaderboards and counters, in real time (MQL)."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

from holdfast.declarations import operation
from holdfast.engine.contract import Transaction
from holdfast.error_text import shown
from holdfast.errors import AnswerTooLarge, BadInput
from holdfast.events import deployment, fan_outs, record_cache
from holdfast.events import settings as space_settings
from holdfast.events.explanations import explain
from holdfast.events.ingestion import (
    ID_KIND,
    AnyEvent,
    DryRunEnqueue,
    Enqueue,
    Ingestion,
    remove_id,
)
from holdfast.events.reads import By, Moment, Reads, answer_bytes, encoded
from holdfast.events.record_cache import RecordWriter
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
from holdfast.expiry import Remover
from holdfast.limits import MAX_ANSWER_BYTES, MAX_READS

__all__ = ["REMOVERS", "Events", "Query", "Result"]

REMOVERS: Final[dict[str, Remover]] = {
    record_cache.KEY_KIND: record_cache.remove_key,
    record_cache.ROWS_KIND: record_cache.remove_rows,
    ID_KIND: remove_id,
    fan_outs.FAN_OUT_KIND: fan_outs.continue_fan_out,
    fan_outs.FINISHED_KIND: fan_outs.remove_finished,
}

Query: TypeAlias = str | Mapping[str, Any]
Result: TypeAlias = MemberPage | Member | int | list[BoardEntry] | Distinct | list[Point] | None

_READS: Final = ("members", "contains", "size", "top", "gross", "distinct", "series")


class Events:
    """The events of a space: schemas, what is sent, and what it has become.

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
        self._enqueue = enqueue
        self._enqueue_dry_run = enqueue_dry_run
        self._settings = settings

    # --- schemas ---------------------------------------------------------------------------------

    @operation(role="admin")
    def deploy(self, schema: Mapping[str, Any] | str | bytes, name: str = "default") -> None:
        """Puts a schema into force under `name`, in place of the one that had this name.

        Takes an object, or its text in JSON or YAML. Raises `InvalidEventSchema` with every problem
        and its place; then nothing has changed. Stored data is never touched.

        Reads all schemas of the space, writes 2 keys.
        """
        deployment.deploy(self._tx, schema, name)

    @operation(reads=True)
    def schemas(self) -> dict[str, dict[str, Any]]:
        """All schemas in force, by name. Reads a key for each."""
        return deployment.schemas(self._tx)

    @operation(role="admin")
    def withdraw(self, name: str = "default") -> None:
        """Takes a schema out of force; what it has written stays.

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

        `timezone` is that of the time labels ("Europe/Berlin"), `looked_up_members` how many a
        look-up may find, `fan_out_keys` how many keys a handler may write in the transaction of an
        event, `dedup_seconds` how long the id of an event is remembered. What is not given stays.

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
        """The settings of the space. Reads 1 key."""
        return self._settings or space_settings.settings_of(self._tx)

    # --- events ----------------------------------------------------------------------------------

    @operation(addressed="event")
    def send(self, event: AnyEvent) -> SendReply:
        """Writes what the handlers of the event ask for, all of it or nothing.

        The reply names the handlers that were skipped, with the attribute that the event lacks.

        Reads 1 key, and reads and writes 1 key for each target key; each 32nd write to a set, and
        each write to a large set or board, 2 or 3 more.
        """
        return self._ingestion().send(event)

    @operation(judged_alone=True, addressed="events")
    def send_many(self, events: Sequence[AnyEvent]) -> SendManyReply:
        """Writes a batch of events in one transaction; a bad one fails alone, by its position.

        As `send`, but a key that several events write is read and written once.
        """
        return self._ingestion().send_many(events)

    @operation(reads=True, addressed="event")
    def explain(self, event: AnyEvent) -> Explanation:
        """What the event would do: the handlers that match, the keys and writes of each, and why a
        handler is skipped. Writes nothing, reads what `send` would read."""
        return explain(self._tx, self._settings, event)

    @operation(reads=True)
    def fan_outs(self, limit: int = 100) -> list[FanOutReport]:
        """Returns the background fan-outs that run, then those that were finished within a day.

        Each says how many of its keys are written, and how many could not be. Reads 1 key for each.
        """
        return fan_outs.reports(self._tx, limit)

    @operation()
    def forget(self, key: str) -> bool:
        """Deletes a key with its counters, and says whether it was there.

        Deletes up to 3 keys; the rows of a large set or board follow in bounded steps.
        """
        writing = RecordWriter(self._tx)
        record = writing.record(encoded(key))
        if record.known:
            writing.remove_all(record)
        writing.finish()
        return record.known

    # --- reads -----------------------------------------------------------------------------------

    @operation(reads=True)
    def members(self, key: str, limit: int = 100, after: str | None = None) -> MemberPage:
        """The members of a set, newest first, a page at a time: hand `next` back as `after`.

        Reads 2 keys, of a large set 1 and `limit`.
        """
        return self._reads().members(key, limit, after)

    @operation(reads=True)
    def contains(self, key: str, value: str) -> Member | None:
        """The member of that value, if the set has it. Reads 2 keys."""
        return self._reads().contains(key, value)

    @operation(reads=True)
    def size(self, key: str) -> int:
        """How many members a set has now, or entries a leaderboard; `#key` asks for the same.

        Reads 1 or 2 keys.
        """
        return self._reads().size(key)

    @operation(reads=True)
    def top(self, key: str | Sequence[str], k: int | None = None) -> list[BoardEntry]:
        """The most frequent values of a leaderboard, highest count first, ties by value.

        Several keys are merged: "the last seven days" from daily keys. No count is below the truth,
        and none above it by more than its `error`. `k` defaults to the K of the board.

        Reads the tracked candidates: 10 for each entry of the board, at least 1,000 once it is
        large.
        """
        return self._reads().top(key, k)

    @operation(reads=True)
    def gross(self, key: str) -> int:
        """How many values were added or counted, repeats included; 0 for an unknown key.

        Reads 1 key.
        """
        return self._reads().gross(key)

    @operation(reads=True)
    def distinct(self, key: str | Sequence[str]) -> Distinct:
        """How many different values were ever added or counted, at one key or at several together.

        Exact up to 256 and for a set that nothing was ever removed or evicted from; beyond, an
        estimate with a standard error of 0.84 %. Reads up to 3 keys for each.
        """
        return self._reads().distinct(key)

    @operation(reads=True)
    def series(self, template: str, by: By, from_: Moment, to: Moment) -> list[Point]:
        """A number for each step of a range, both ends included, ready for plotting.

        `template` is a key with one time label in braces, `"unique:signup:{day}"`; `by` is "gross",
        "distinct" or "size". Reads up to 3 keys for each step.
        """
        return self._reads().series(template, by, from_, to)

    @operation(reads=True)
    def keys(self, prefix: str = "", limit: int = 100, after: str | None = None) -> KeyPage:
        """The keys that begin with `prefix`, with their kinds, a page at a time.

        Reads `limit` keys, and those that have expired and were not yet removed.
        """
        return self._reads().keys(prefix, limit, after)

    @operation(reads=True)
    def read(self, queries: Sequence[Query]) -> list[Result]:
        """Many reads in one snapshot, each answered as if it were asked alone.

        A query names the operation and its arguments: `{"op": "top", "key": "popular", "k": 3}`.
        The text `"#key"` asks for the size of a key, any other text for its members.
        """
        if isinstance(queries, str | Mapping) or not isinstance(queries, Sequence):
            raise BadInput(f"queries are a list, not {shown(queries)}")
        if len(queries) > MAX_READS:
            raise BadInput(f"{len(queries)} reads at once, at most {MAX_READS} may be asked for")
        found: list[Any] = []
        size = 0
        for query in queries:
            found.append(self._answer(query))
            size += answer_bytes(found[-1])
            if size > MAX_ANSWER_BYTES and len(found) > 1:
                raise AnswerTooLarge(f"the reads have more than {MAX_ANSWER_BYTES} bytes")
        return found

    def _answer(self, query: Query) -> Any:
        if isinstance(query, str):
            return self.size(query) if query.startswith("#") else self.members(query)
        if not isinstance(query, Mapping):
            raise BadInput(f"a query is an object with `op` and `key`, not {shown(query)}")
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

    def _ingestion(self) -> Ingestion:
        return Ingestion(self._tx, self._settings, self._enqueue, self._enqueue_dry_run)

    def _reads(self) -> Reads:
        return Reads(self._tx, self._settings)
