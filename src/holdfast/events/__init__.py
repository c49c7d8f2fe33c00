"""Events: a schema turns each one into sets, leaderboards and counters, in real time (MQL)."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from holdfast.binding import per_call
from holdfast.declarations import operation
from holdfast.engine.contract import Subscription, Transaction
from holdfast.errors import AnswerTooLarge, BadInput
from holdfast.events import batch, configuration, deployment
from holdfast.events.batch import CHANGED, WritingBatch
from holdfast.events.explain import explain
from holdfast.events.ingest import ID_KIND, AnyEvent, Enqueue, Ingest, Rehearse, remove_id
from holdfast.events.reading import By, Moment, Reading, answer_bytes, encoded
from holdfast.events.records import (
    BoardEntry,
    Distinct,
    Event,
    EventError,
    Explanation,
    HandlerExplanation,
    KeyInfo,
    KeyPage,
    Member,
    MemberPage,
    Point,
    SendManyReply,
    SendReply,
    Settings,
    Skipped,
    Write,
)
from holdfast.expiry import Remover
from holdfast.limits import EVENTS_PER_STREAM_STEP, MAX_ANSWER_BYTES, MAX_READS
from holdfast.shown import shown

__all__ = [
    "REMOVERS",
    "AnyEvent",
    "BoardEntry",
    "Distinct",
    "Enqueue",
    "Event",
    "EventError",
    "Events",
    "Explanation",
    "HandlerExplanation",
    "KeyInfo",
    "KeyPage",
    "KeySubscription",
    "Member",
    "MemberPage",
    "Point",
    "Query",
    "SendManyReply",
    "SendReply",
    "Settings",
    "Skipped",
    "StoreEvents",
    "Write",
]

REMOVERS: Final[dict[str, Remover]] = {
    batch.KEY_KIND: batch.remove_key,
    batch.ROWS_KIND: batch.remove_rows,
    ID_KIND: remove_id,
}

Query: TypeAlias = str | Mapping[str, Any]
Result: TypeAlias = MemberPage | Member | int | list[BoardEntry] | Distinct | list[Point] | None

_READS: Final = ("members", "contains", "size", "top", "gross", "distinct", "series")


class Events:
    """The events of a space: schemas, what is sent, and what it has become.

    A handler that enqueues puts its job through `enqueue`, in the transaction of the event. Several
    jobs of one event are first put through `rehearse`, on a transaction of which nothing is kept.
    `settings` hold in place of those that are stored.
    """

    def __init__(
        self,
        tx: Transaction,
        *,
        enqueue: Enqueue | None = None,
        rehearse: Rehearse | None = None,
        settings: Settings | None = None,
    ) -> None:
        self._tx = tx
        self._enqueue = enqueue
        self._rehearse = rehearse
        self._settings = settings

    # --- schemas ---------------------------------------------------------------------------------

    @operation(role="admin")
    def deploy(self, schema: Mapping[str, Any] | str | bytes, name: str = "default") -> None:
        """Puts a schema into force under `name`, in place of the one that had this name.

        Takes an object, or its text in JSON or YAML. Raises `InvalidSchema` with every problem and
        its place; then nothing has changed. Stored data is never touched.

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

        `timezone` is that of the time labels ("Europe/Berlin"), `looked_up_members` how many of the
        newest a look-up reads, `fan_out_keys` how many keys a handler may write for one event,
        `dedup_seconds` how long the id of an event is remembered. What is not given stays.

        Reads 1 key, writes 1.
        """
        changes = {
            "timezone": timezone,
            "looked_up_members": looked_up_members,
            "fan_out_keys": fan_out_keys,
            "dedup_seconds": dedup_seconds,
        }
        return configuration.configure(self._tx, changes)

    @operation(reads=True)
    def settings(self) -> Settings:
        """The settings of the space. Reads 1 key."""
        return self._settings or configuration.settings_of(self._tx)

    # --- events ----------------------------------------------------------------------------------

    @operation(addressed="event")
    def send(self, event: AnyEvent) -> SendReply:
        """Writes what the handlers of the event ask for, all of it or nothing.

        The reply names the handlers that were skipped, with the attribute that the event lacks.

        Reads 1 key, and reads and writes 1 key for each target key; each 32nd write to a set, and
        each write to a large set or board, 2 or 3 more.
        """
        return self._ingest().send(event)

    @operation(judged_alone=True, addressed="events")
    def send_many(self, events: Sequence[AnyEvent]) -> SendManyReply:
        """Writes a batch of events in one transaction; a bad one fails alone, by its position.

        As `send`, but a key that several events write is read and written once.
        """
        return self._ingest().send_many(events)

    @operation(reads=True, addressed="event")
    def explain(self, event: AnyEvent) -> Explanation:
        """What the event would do: the handlers that match, the keys and writes of each, and why a
        handler is skipped. Writes nothing, reads what `send` would read."""
        return explain(self._tx, self._settings, event)

    @operation()
    def forget(self, key: str) -> bool:
        """Deletes a key with its counters, and says whether it was there.

        Deletes up to 3 keys; the rows of a large set or board follow in bounded steps.
        """
        writing = WritingBatch(self._tx)
        record = writing.record(encoded(key))
        if record.known:
            writing.drop(record)
        writing.finish()
        return record.known

    # --- reads -----------------------------------------------------------------------------------

    @operation(reads=True)
    def members(self, key: str, limit: int = 100, after: str | None = None) -> MemberPage:
        """The members of a set, newest first, a page at a time: hand `next` back as `after`.

        Reads 2 keys, of a large set 1 and `limit`.
        """
        return self._reading().members(key, limit, after)

    @operation(reads=True)
    def contains(self, key: str, value: str) -> Member | None:
        """The member of that value, if the set has it. Reads 2 keys."""
        return self._reading().contains(key, value)

    @operation(reads=True)
    def size(self, key: str) -> int:
        """How many members a set has now, or entries a leaderboard; `#key` asks for the same.

        Reads 1 or 2 keys.
        """
        return self._reading().size(key)

    @operation(reads=True)
    def top(self, key: str | Sequence[str], k: int | None = None) -> list[BoardEntry]:
        """The most frequent values of a leaderboard, highest count first, ties by value.

        Several keys are merged: "the last seven days" from daily keys. No count is below the truth,
        and none above it by more than its `error`. `k` defaults to the K of the board.

        Reads the tracked candidates: 10 for each entry of the board, at least 1,000 once it is
        large.
        """
        return self._reading().top(key, k)

    @operation(reads=True)
    def gross(self, key: str) -> int:
        """How many values were added or counted, repeats included; 0 for an unknown key.

        Reads 1 key.
        """
        return self._reading().gross(key)

    @operation(reads=True)
    def distinct(self, key: str | Sequence[str]) -> Distinct:
        """How many different values were ever added or counted, at one key or at several together.

        Exact up to 256 and for a set that nothing was ever removed or evicted from; beyond, an
        estimate with a standard error of 0.84 %. Reads up to 3 keys for each.
        """
        return self._reading().distinct(key)

    @operation(reads=True)
    def series(self, template: str, by: By, from_: Moment, to: Moment) -> list[Point]:
        """A number for each step of a range, both ends included, ready for plotting.

        `template` is a key with one time label in braces, `"unique:signup:{day}"`; `by` is "gross",
        "distinct" or "size". Reads up to 3 keys for each step.
        """
        return self._reading().series(template, by, from_, to)

    @operation(reads=True)
    def keys(self, prefix: str = "", limit: int = 100, after: str | None = None) -> KeyPage:
        """The keys that begin with `prefix`, with their kinds, a page at a time.

        Reads `limit` keys, and those that have expired and were not yet removed.
        """
        return self._reading().keys(prefix, limit, after)

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

    def _ingest(self) -> Ingest:
        return Ingest(self._tx, self._settings, self._enqueue, self._rehearse)

    def _reading(self) -> Reading:
        return Reading(self._tx, self._settings)


if TYPE_CHECKING:
    _PerCall = Events
else:
    _PerCall = per_call(Events)


class StoreEvents(_PerCall):
    """The same operations, one transaction each, and those that are more than one transaction."""

    @operation(local=True)
    def send_stream(self, events: Iterable[AnyEvent]) -> SendManyReply:
        """Ingests any number of events in bounded memory, a transaction for each 1,000."""
        accepted = 0
        errors: list[EventError] = []
        remaining = iter(events)
        while step := list(islice(remaining, EVENTS_PER_STREAM_STEP)):
            begin = accepted + len(errors)
            reply = self.send_many(step)
            accepted += reply.accepted
            errors += [
                EventError(position=begin + error.position, message=error.message)
                for error in reply.errors
            ]
        return SendManyReply(accepted=accepted, errors=errors)

    @operation(local=True)
    def subscribe(self, key: str | None = None, *, prefix: str = "") -> "KeySubscription":
        """The changes of a key, or of all keys that begin with `prefix`, from now on."""
        runner = self._runner  # type: ignore[attr-defined]  # set by the class of `per_call`
        wanted = prefix if key is None else key
        return KeySubscription(runner.subscribe(CHANGED + wanted), key)


class KeySubscription:
    """The keys that commits have changed, in commit order; a commit names each key once."""

    def __init__(self, notices: Subscription, key: str | None) -> None:
        self._notices = notices
        self._key = key

    def get(self, timeout: float | None = None) -> str | None:
        """The next changed key, or None after `timeout` seconds of silence or when closed."""
        while (notice := self._notices.get(timeout)) is not None:
            changed = notice.topic.removeprefix(CHANGED)
            if self._key in (None, changed):
                return changed
        return None

    def poll(self) -> list[str]:
        """All keys changed by commits that have returned, and were not yet given."""
        changed = [notice.topic.removeprefix(CHANGED) for notice in self._notices.poll()]
        return [key for key in changed if self._key in (None, key)]

    def close(self) -> None:
        self._notices.close()

    def __enter__(self) -> "KeySubscription":
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
