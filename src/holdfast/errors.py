"""Every error that Holdfast raises on purpose.

HoldfastError
├── BadInput
│   ├── KeyTooLong
│   ├── ValueTooLarge
│   ├── NotACounter
│   ├── UnsupportedPart
│   ├── OutsideSpace
│   ├── ViewOnlyReads
│   ├── BadFrame
│   │   └── HttpOnRespPort
│   ├── HeadTooLarge
│   ├── UrlTooLong
│   ├── RequestTooLarge
│   ├── AnswerTooLarge
│   ├── BatchTooLong
│   ├── ClientGone
│   ├── UnsupportedContent
│   ├── BadQuery
│   ├── BadFilter
│   ├── BadPaging
│   ├── BadChange
│   ├── BadKey
│   │   └── BadMetricKey
│   ├── BadValue
│   │   └── BadMetricValue
│   ├── NoIndex
│   ├── InvalidEntitySchema
│   ├── BadModel
│   ├── UnknownColumn
│   ├── Malformed
│   ├── BadDump
│   ├── InvalidEventSchema
│   ├── InvalidEvent
│   ├── ExpandsTooFar
│   ├── WrongKind
│   ├── CountersWithoutTimes
│   ├── NoJobQueue
│   ├── BadArgument
│   │   ├── JobTooLarge
│   │   └── CircularDependency
│   ├── BadTask
│   ├── BadTaskArgument
│   ├── WorkflowTooLarge
│   ├── WrongMetricType
│   ├── BadMetricSpec
│   ├── EmptyPrefix
│   ├── MetricOverflow
│   ├── BadRange
│   ├── BadWindow
│   ├── BadLimit
│   ├── DuplicateCondition
│   └── SpecConflict
├── NotFound
│   ├── UnknownSpace
│   ├── UnknownUser
│   ├── UnknownOperation
│   ├── InvalidTable
│   ├── UnknownSchema
│   ├── UnknownJob
│   ├── UnknownRecurringJob
│   ├── UnknownBatch
│   ├── UnknownBulkAction
│   ├── UnknownMetric
│   └── UnknownCondition
├── Conflict
├── RemovalFailed
├── StoreUnusable
│   ├── StoreClosed
│   ├── StoreForked
│   ├── StoreFull
│   ├── StoreDamaged
│   │   └── LogDamaged
│   ├── StoreBusy
│   ├── CopyUnfinished
│   ├── StoreUnreachable
│   ├── UnsupportedFormat
│   └── UnsupportedFileSystem
├── MethodNotAllowed
├── CannotServe
├── NotAuthenticated
├── TooManyLogins
├── Forbidden
├── UserExists
├── LastAdmin
├── ServerBusy
├── ServerFailed
├── Unanswered
│   ├── Unreachable
│   ├── NoAnswer
│   └── OutcomeUnknown
├── MissingDriver
├── TableError
│   ├── InvalidTableRequest
│   ├── InvalidTableJson
│   ├── InvalidTableSchema
│   ├── SchemaUpgradeRejected
│   ├── InvalidTableQuery
│   ├── InvalidAttributeValue
│   ├── UnknownAttribute
│   ├── MissingKeyAttribute
│   ├── RowKeyTooLong
│   ├── TtlNotAllowed
│   ├── InvalidPageToken
│   ├── TableMismatch
│   ├── InvalidTablePath
│   ├── TableNotFound
│   ├── IndexNotFound
│   ├── PreconditionFailed
│   ├── RowTooLarge
│   ├── IndexBuilding
│   └── TableUnavailable
├── SpaceNotEmpty
├── DuplicateKey
├── VersionMismatch
├── IndexNotReady
├── TableInUse
├── WrongState
│   ├── JobLost
│   ├── JobNeeded
│   ├── UniqueKeyTaken
│   └── Canceled
├── TaskFailed
├── WorkflowChanged
├── StepFailed
├── ChildFailed
├── TaskNotFinished
├── ProcessDied
├── TaskTimedOut
└── LimitExceeded

Errors of engines and of the server come first, then one section for each layer.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, Self


class HoldfastError(Exception):
    """Anything that went wrong, with what every protocol needs to report it.

    `code` names the error for programs, `status` is its HTTP status, `hint` says what to do next.
    `position` says which operation of a batch it was, counted from 0.
    """

    code: ClassVar[str] = "error"
    status: ClassVar[int] = 500
    facts: ClassVar[Mapping[str, Callable[[Any], Any]]] = {}  # attributes that travel, beside these
    hint: str = ""
    position: int | None = None

    def __init__(self, message: str = "", *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        if hint is not None:
            self.hint = hint

    def __str__(self) -> str:
        end = "" if self.message.endswith("?") else "."
        return f"{self.message}{end} {self.hint}" if self.hint else self.message


class BadInput(HoldfastError):
    """The input is not valid; nothing was changed."""

    code, status = "bad_input", 400


class KeyTooLong(BadInput):
    """A key is longer than any engine holds."""

    code, status = "key_too_long", 413
    hint = "Use shorter names, or store a digest of what needs no order."


class ValueTooLarge(BadInput):
    """A value is larger than any engine holds."""

    code, status = "value_too_large", 413
    hint = "Split it over several keys, or keep it in a file and store its name."


class NotACounter(BadInput):
    """`add` met a value that is no counter, or would leave the 64-bit range."""

    code, status = "not_a_counter", 409
    hint = "Counters are written by `add` alone; use another key."


class UnsupportedPart(BadInput):
    """A key part has a type or a value that keys can't hold."""

    code = "unsupported_part"


class OutsideSpace(BadInput):
    """A transaction wrote to a key outside the space that it runs in."""

    code = "outside_space"
    hint = "A transaction stays within one space: open one for each space."


class ViewOnlyReads(BadInput):
    """Something tried to write in a view."""

    code = "view_only_reads"
    hint = "Use `store.transact(work)`, or `with store.transaction() as tx`, to write."


class BadFrame(BadInput):
    """Bytes came that are not of the protocol; the connection is closed."""

    code = "bad_frame"


class HttpOnRespPort(BadFrame):
    """A client speaks HTTP to the port of Redis clients."""

    hint = "HTTP is on another port of the server: 9966, unless --http says otherwise."


class HeadTooLarge(BadInput):
    """The head of an HTTP request has more bytes, or more headers, than the server takes."""

    code, status = "head_too_large", 431
    hint = "Send fewer and shorter headers; what is large belongs into the body."


class UrlTooLong(BadInput):
    """A URL has more bytes than the server takes."""

    code, status = "url_too_long", 414
    hint = "Send the arguments as the body of a POST."


class RequestTooLarge(BadInput):
    """A request has more bytes than the server takes."""

    code, status = "request_too_large", 413
    hint = "Split it; streams of lines have no such limit."


class AnswerTooLarge(BadInput):
    """The result has more bytes than one answer may have; nothing was changed."""

    code, status = "answer_too_large", 413
    hint = "Ask for fewer at once: a smaller page, fewer ids, or several batches."


class BatchTooLong(BadInput):
    """The steps of a batch took longer than others should wait for it; nothing was changed."""

    code, status = "batch_too_long", 413
    hint = "Split the batch: each part is a transaction of its own."


class ClientGone(BadInput):
    """A request ended before it was complete."""

    code = "client_gone"


class UnsupportedContent(BadInput):
    """A body has a form that the path does not take."""

    code, status = "unsupported_media_type", 415
    hint = "Send it as JSON, with the header `Content-Type: application/json`."


class NotFound(HoldfastError):
    """The thing asked for does not exist."""

    code, status = "not_found", 404


class UnknownSpace(NotFound):
    """No space of that name exists, or it has been dropped."""

    code = "unknown_space"
    hint = "Open it again with `store.space(name)`, which creates it."


class UnknownUser(NotFound):
    """No user has this name."""

    code = "unknown_user"
    hint = "`holdfast user list` shows all."


class UnknownOperation(NotFound):
    """No layer has an operation of that name."""

    code = "unknown_operation"


class Conflict(HoldfastError):
    """Someone else changed what this transaction had read."""

    code, status = "conflict", 409
    hint = "Run it again; `store.transact(work)` does so by itself."


class RemovalFailed(HoldfastError):
    """Something that has expired can't be removed; the exception of its remover is the cause.

    A store catches it by itself, lets `entry` wait and goes on with the write that met it.
    """

    code = "removal_failed"

    def __init__(self, message: str, *, entry: Any) -> None:
        super().__init__(message)
        self.entry = entry  # an `expiry.Due`


class StoreUnusable(HoldfastError):
    """The store as a whole can't serve."""

    code, status = "store_unusable", 503


class StoreClosed(StoreUnusable):
    """The store was closed before this call."""

    code = "store_closed"
    hint = "Open it again with `holdfast.open`."


class StoreForked(StoreUnusable):
    """The store was opened before a fork and used after it, in the child."""

    code = "store_forked"
    hint = "Open the store after the fork, in each process by itself, and not before it."


class StoreFull(StoreUnusable):
    """There is no space left on the disk or in the map; nothing of the transaction was kept."""

    code, status = "store_full", 507
    hint = "Free some space and try again; what was acknowledged before is safe."


class StoreDamaged(StoreUnusable):
    """The files of the store contradict themselves."""

    code = "store_damaged"
    hint = "Restore the newest backup; keep the damaged folder for examination."


class LogDamaged(StoreDamaged):
    """The log of commits that the store's file has not yet got is damaged or missing."""

    code = "log_damaged"
    hint = (
        "Restore the newest backup, or run `holdfast recover FOLDER --accept-loss`: it keeps what "
        "is whole, and says what is lost."
    )


class StoreBusy(StoreUnusable):
    """Another process uses the store in a way that excludes this one."""

    code, status = "store_busy", 409


class CopyUnfinished(StoreUnusable):
    """The store is half a copy of another one."""

    code, status = "copy_unfinished", 409
    hint = "Run the same `holdfast copy` again: it goes on where it stopped."


class StoreUnreachable(StoreUnusable):
    """The server of the engine could not be reached; nothing was written."""

    code = "store_unreachable"
    hint = "Look whether it runs, and whether the URL is right; then try again."


class UnsupportedFormat(StoreUnusable):
    """The store was written by a newer Holdfast, or the folder holds something else."""

    code = "unsupported_format"
    hint = "Install a newer Holdfast, or name another folder."


class UnsupportedFileSystem(StoreUnusable):
    """The folder is on a file system that can't keep the store's promises."""

    code = "unsupported_file_system"
    hint = "Name a folder on a local disk: over a network, locks and memory maps can't be trusted."


class MethodNotAllowed(HoldfastError):
    """The path is there, for another method."""

    code, status = "method_not_allowed", 405

    def __init__(
        self, message: str = "", *, allowed: Iterable[str] = (), hint: str | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.allowed = tuple(allowed)


class CannotServe(HoldfastError):
    """A server can't be started as it was asked to."""

    code = "cannot_serve"


class NotAuthenticated(HoldfastError):
    """The client has not authenticated, or could not."""

    code, status = "noauth", 401
    hint = "Log in: AUTH user password on RESP, `Authorization: Bearer TOKEN` on HTTP."


class TooManyLogins(HoldfastError):
    """Wrong passwords came too often from one address, so it has to wait before the next."""

    code, status = "too_many_logins", 429
    facts: ClassVar = {"retry_after": float}
    hint = "Wait as long as it says. A token never has to wait: `holdfast user token NAME`."

    retry_after = 1.0  # seconds until the next try is checked


class Forbidden(HoldfastError):
    """A user may not do this."""

    code, status = "forbidden", 403
    hint = "Ask for a grant: holdfast user grant NAME --grant ROLE:SPACE:LAYER."


class UserExists(HoldfastError):
    """A user of this name is there already, and would lose its grants and its token."""

    code, status = "user_exists", 409
    hint = (
        "Give `--replace` (replace=true) to replace it, `holdfast user grant NAME` to change its "
        "grants, or `holdfast user token NAME` for a new token."
    )


class LastAdmin(HoldfastError):
    """A change over the network would leave nobody who could undo it."""

    code, status = "last_admin", 409
    hint = (
        "Add another user with the grant `admin` first, or make the change on the store itself: "
        "`holdfast user ... --data FOLDER`."
    )


class ServerBusy(HoldfastError):
    """More is waiting than the server lets wait."""

    code, status = "busy", 503
    hint = "Try again in a moment, with fewer requests at the same time."


class ServerFailed(HoldfastError):
    """A server met an error of its own, or gave an answer that can't be read."""

    code = "internal"
    hint = "The server's log says more."


class Unanswered(HoldfastError):
    """A server gave no answer: a server of ours to its client, or an engine's to us."""

    code, status = "unanswered", 504


class Unreachable(Unanswered):
    """No server could be reached: what was asked was not done."""

    code, status = "unreachable", 503
    hint = "Nothing was changed. See whether the server runs and the address is right; try again."


class NoAnswer(Unanswered):
    """The connection broke, or time ran out, before the answer to a read had come."""

    code = "no_answer"
    hint = "Nothing was changed. Try again, or allow it more time (`timeout`)."


class OutcomeUnknown(Unanswered):
    """The connection broke, or time ran out, after a write was sent: it was done once, or never.

    A client never sends such a write again by itself, so that nothing is done twice.
    """

    code = "outcome_unknown"
    hint = "Read whether it was done, and call again only if it was not."


class MissingDriver(HoldfastError):
    """The engine that a URL names needs a package that is not installed."""

    code = "missing_driver"


# --- tables -----------------------------------------------------------------------------------


class TableError(HoldfastError):
    """A request to the tables was refused; nothing was changed.

    `message` is the title that clients of RESTBase match on, `type` the name it has there.
    """

    code, status = "table_error", 400
    type: ClassVar[str] = "invalid_request"
    facts = {"attribute": str}  # noqa: RUF012  # nobody changes it

    def __init__(
        self, message: str = "", *, attribute: str | None = None, hint: str | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.attribute = attribute


class InvalidTableRequest(TableError):
    """A request lacks what it needs, or has a member that does not belong there."""

    code, type = "invalid_table_request", "invalid_request"


class InvalidTableJson(TableError):
    """A body is not the JSON that it should be."""

    code, type = "invalid_json", "invalid_json"


class InvalidTableSchema(TableError):
    """A schema breaks a rule."""

    code, type = "invalid_table_schema", "invalid_schema"


class SchemaUpgradeRejected(TableError):
    """A table can't be changed from its schema to the one submitted."""

    code, type = "schema_upgrade_rejected", "schema_upgrade_rejected"


class InvalidTableQuery(TableError):
    """A query does not describe one slice of one index."""

    code, type = "invalid_table_query", "invalid_query"


class InvalidAttributeValue(TableError):
    """A value is none that its attribute's type takes."""

    code, type = "invalid_attribute_value", "invalid_value"


class UnknownAttribute(TableError):
    """A put or a condition names an attribute that the table does not have."""

    code, type = "unknown_attribute", "unknown_attribute"


class MissingKeyAttribute(TableError):
    """A put lacks a part of the primary key."""

    code, type = "missing_key", "missing_key"


class RowKeyTooLong(TableError):
    """A value is too long for the key that it is a part of."""

    code, type = "row_key_too_long", "key_too_long"
    hint = "Keep long values in attributes that no index names, or index a digest of them."


class TtlNotAllowed(TableError):
    """A put has `_ttl` although the table's retention policy decides what expires."""

    code, type = "ttl_not_allowed", "ttl_not_allowed"


class InvalidPageToken(TableError):
    """A `next` token is garbage, or belongs to another query."""

    code, type = "invalid_token", "invalid_token"
    hint = "Send the token with the query that it came from, or leave it out to begin again."


class TableMismatch(TableError):
    """The path and the body of a request name different tables."""

    code, type = "table_mismatch", "table_mismatch"


class InvalidTablePath(TableError):
    """A path can't be decoded, or has segments too many or empty ones."""

    code, type = "invalid_path", "invalid_path"


class TableNotFound(TableError):
    """There is no table of that name in this space."""

    code, type, status = "table_not_found", "table_not_found", 404
    hint = "Create it with `tables.create(schema)`; `tables.names()` lists what is there."


class IndexNotFound(TableError):
    """The table has no secondary index of that name."""

    code, type, status = "index_not_found", "index_not_found", 404


class PreconditionFailed(TableError):
    """The row is not the one that `if_match` or `if_none_match` asks for."""

    code, type, status = "precondition_failed", "precondition_failed", 412
    hint = "Read the row again, and write with the etag that it has now."


class RowTooLarge(TableError):
    """A value or a body is larger than a row may hold."""

    code, type, status = "too_large", "too_large", 413


class IndexBuilding(TableError):
    """The index is not complete yet."""

    code, type, status = "index_building", "index_building", 503
    hint = "Ask again when `tables.index_progress` says that it is complete."


class TableUnavailable(TableError):
    """A table can't be read by this installation."""

    code, type, status = "unavailable", "unavailable", 503


# --- entities ---------------------------------------------------------------------------------
#
# The messages are Meduza's own words, which its clients know; what helps beyond them is the hint.


class InvalidTable(NotFound):
    """No table of that name is deployed."""

    code = "invalid_table"
    hint = "A table is named `schema.Table` and exists once its schema has been deployed."


class BadQuery(BadInput):
    """A query lacks what it needs."""

    code = "bad_query"


class BadFilter(BadInput):
    """A filter makes no sense, alone or beside the others."""

    code = "bad_filter"


class BadPaging(BadInput):
    """No page begins or ends there."""

    code = "bad_paging"
    hint = "The offset is 0 or more, the limit 1 or more, or -1 for no limit."


class BadChange(BadInput):
    """A change of an update can't be applied to any entity."""

    code = "bad_change"


class BadKey(BadInput):
    """No id can be made of what came."""

    code = "bad_key"


class BadValue(BadInput):
    """An entity can't hold the value, or its strict table won't."""

    code = "bad_value"


class NoIndex(BadInput):
    """No index of the table serves the query: there is no filtering after the index."""

    code = "no_index"


class InvalidEntitySchema(BadInput):
    """A schema has errors; `problems` names each of them, with file and line."""

    code = "bad_schema"
    facts = {"problems": tuple}  # noqa: RUF012  # nobody changes it

    def __init__(self, message: str = "", *, problems: Iterable[str] = ()) -> None:
        super().__init__(message)
        self.problems = tuple(problems)

    @classmethod
    def of(cls, problems: Iterable[str]) -> "InvalidEntitySchema":
        listed = tuple(problems)
        return cls("\n".join(listed), problems=listed)


SchemaInvalid = InvalidEntitySchema  # its former name, which programs may import


class BadModel(BadInput):
    """A class can't be a model, or an object is none."""

    code = "bad_model"


class UnknownColumn(BadInput, AttributeError):
    """A model has no column of that name."""

    code = "unknown_column"

    @classmethod
    def among(cls, model: str, name: str, known: Iterable[str]) -> "UnknownColumn":
        from difflib import get_close_matches  # loaded only when there is something to say

        near = get_close_matches(name, list(known), 1)
        ask = f", did you mean '{near[0]}'?" if near else ""
        return cls(f"{model} has no column '{name}'{ask}")


class Malformed(BadInput):
    """A message is not readable, or one of its fields has the wrong type."""

    code = "malformed"


class BadDump(BadInput):
    """A record of a dump is damaged or refused.

    What came before it was loaded, unless the load was atomic. `number` counts from 1, and counts
    lines where the dump has lines.
    """

    code = "bad_dump"
    facts = {"reason": str, "unit": str, "number": int, "loaded": int}  # noqa: RUF012  # nobody changes it

    def __init__(
        self,
        message: str = "",
        *,
        hint: str | None = None,
        reason: str | None = None,
        unit: str = "line",
        number: int | None = None,
        loaded: int = 0,
    ) -> None:
        super().__init__(message, hint=hint)
        self.reason = message if reason is None else reason
        self.unit = unit
        self.number = number
        self.loaded = loaded

    @classmethod
    def at(
        cls,
        number: int,
        reason: str,
        *,
        unit: str,
        loaded: int,
        what: str,
        hint: str | None = None,
    ) -> "BadDump":
        """The error at a record; `what` says what was done, such as "7 entities were loaded"."""
        return cls(
            f"{unit} {number}: {reason.rstrip('.')}. {what}",
            hint=hint,
            reason=reason,
            unit=unit,
            number=number,
            loaded=loaded,
        )


class SpaceNotEmpty(HoldfastError):
    """A dump of a whole space was to be loaded into one that has something in it."""

    code, status = "space_not_empty", 409
    hint = "Load it into a new space: --space NAME."


class DuplicateKey(HoldfastError):
    """An entity with this id, or with these values in a unique index, exists already."""

    code, status = "duplicate_key", 409
    hint = "Read the entity that is there, and update it or choose another key."


class VersionMismatch(HoldfastError):
    """The entity is not at the version that the writer has seen."""

    code, status = "version_mismatch", 409  # on Meduza's wire it is called `conflict`
    hint = "Read the entity again, apply the change to what it is now and write that."


class IndexNotReady(HoldfastError):
    """The only index that serves the query is still being built."""

    code, status = "index_not_ready", 503
    hint = "Wait until the index is ready, see `stats`; a GET may ask for a partial answer."


class TableInUse(HoldfastError):
    """A deploy or a drop would lose entities."""

    code, status = "table_in_use", 409


# --- events -----------------------------------------------------------------------------------


class InvalidEventSchema(BadInput):
    """A schema was refused; `problems` has a sentence for each reason, with its place."""

    code = "invalid_schema"
    hint = "Nothing was deployed. Mend all of these and deploy it again."
    facts = {"problems": list}  # noqa: RUF012  # nobody changes it

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


InvalidSchema = InvalidEventSchema  # its former name, which programs may import


class UnknownSchema(NotFound):
    """No schema of that name is deployed."""

    code = "unknown_schema"
    hint = "`schemas()` lists those that are."


class InvalidEvent(BadInput):
    """An event is not what an event may be; nothing of it was written."""

    code = "invalid_event"


class ExpandsTooFar(BadInput):
    """A handler asks for more writes than one event may make; nothing of the event was written."""

    code = "expands_too_far"


class WrongKind(BadInput):
    """A key holds a set where a leaderboard was asked for, or the other way round."""

    code, status = "wrong_kind", 409


class CountersWithoutTimes(BadInput):
    """A count since a moment was asked of a key whose counters do not keep times."""

    code, status = "counters_without_times", 409
    hint = 'Give the handlers of the key `"windowed_counters": true`; counts begin from then on.'


class NoJobQueue(BadInput):
    """A handler enqueues a job, and the layer was given no queue to put it into."""

    code, status = "no_job_queue", 409
    hint = "Send the event through a store, which hands its queue in."


# --- jobs -------------------------------------------------------------------------------------
# Their messages are the texts that Qless clients know; on that wire they travel without the hint.


class BadArgument(BadInput):
    """An argument of an operation on jobs is missing, malformed or contradicts another."""

    code = "bad_argument"
    facts: ClassVar = {"argument": str, "problem": str}
    argument = ""  # which one, if it is about one
    problem = ""  # the message without the argument's name

    @classmethod
    def named(cls, argument: str, problem: str, *, hint: str | None = None) -> Self:
        """Returns the error about one argument: `BadArgument.named("queue", "must be text")`."""
        error = cls(f"{argument} {problem}", hint=hint)
        error.argument, error.problem = argument, problem
        return error


class JobTooLarge(BadArgument):
    """A job's data is larger than a queue should carry."""

    code, status = "job_too_large", 413
    hint = "Keep it elsewhere and put its name into the job."


class CircularDependency(BadArgument):
    """A job would have to wait for itself, directly or through others."""

    code = "circular_dependency"
    facts: ClassVar = {**BadArgument.facts, "jid": str}
    jid = ""

    @classmethod
    def of(cls, jid: str) -> Self:
        """Returns the error about the job `jid`."""
        error = cls(f"job {jid!r} would depend on itself")
        error.jid = jid
        return error


class UnknownJob(NotFound):
    """No job has that id: it was never put, or was canceled, or completed long ago."""

    code = "unknown_job"
    facts: ClassVar = {"jid": str}
    jid = ""

    @classmethod
    def of(cls, jid: str) -> Self:
        """Returns the error about the id `jid`."""
        error = cls(f"there is no job {jid!r}")
        error.jid = jid
        return error


class UnknownRecurringJob(NotFound):
    """No recurring job has that id."""

    code = "unknown_recurring_job"
    facts: ClassVar = {"jid": str}
    jid = ""

    @classmethod
    def of(cls, jid: str) -> Self:
        """Returns the error about the id `jid`."""
        error = cls(f"there is no recurring job {jid!r}")
        error.jid = jid
        return error


class UnknownBatch(NotFound):
    """No batch of jobs has that id: it was never opened, or was forgotten."""

    code = "unknown_batch"


class UnknownBulkAction(NotFound):
    """No bulk action has that id: it was never started, or ended more than a week ago."""

    code = "unknown_bulk_action"


class WrongState(HoldfastError):
    """The job is not in a state that the operation can start from."""

    code, status = "wrong_state", 409
    facts: ClassVar = {"jid": str, "state": str}
    jid = state = ""

    @classmethod
    def of(cls, jid: str, state: str, wanted: str) -> Self:
        """Returns the error about a job that is in `state` and should be `wanted`."""
        error = cls(f"job {jid!r} is {state}, not {wanted}")
        error.jid, error.state = jid, state
        return error


class JobLost(WrongState):
    """The caller does not hold the job's lock any more: it was given away or put elsewhere."""

    code = "job_lost"
    hint = "Drop the work: the present holder of the job will finish it."
    facts: ClassVar = {**WrongState.facts, "worker": str, "queue": str}
    worker = queue = ""  # the one that has it now

    @classmethod
    def to_worker(cls, jid: str, worker: str, lock: int | None = None) -> Self:
        """Returns the error about a job that `worker` holds now."""
        by_lock = "" if lock is None else f" by lock {lock}"
        error = cls(f"job {jid!r} is held by worker {worker!r}{by_lock}")
        error.jid, error.worker = jid, worker
        return error

    @classmethod
    def to_queue(cls, jid: str, queue: str) -> Self:
        """Returns the error about a job that runs in another queue than the caller said."""
        error = cls(f"job {jid!r} runs in another queue: {queue}")
        error.jid, error.queue = jid, queue
        return error


LockLost = JobLost  # the same error by what was lost


class JobNeeded(WrongState):
    """Other jobs depend on this one."""

    code = "job_needed"
    hint = "Cancel them together with it."
    facts: ClassVar = {**WrongState.facts, "dependent": str}
    dependent = ""

    @classmethod
    def by(cls, jid: str, dependent: str) -> Self:
        """Returns the error about a job that `dependent` depends on."""
        error = cls(f"job {dependent!r} depends on job {jid!r}")
        error.jid, error.dependent = jid, dependent
        return error


class UniqueKeyTaken(WrongState):
    """Another job owns the unique key."""

    code = "unique_key_taken"


class Canceled(WrongState):
    """The job of a run was canceled."""

    code = "canceled"
    hint = "Drop the work; nobody waits for it."


# --- tasks ------------------------------------------------------------------------------------


class BadTask(BadInput):
    """A task is declared in a way that can't be meant."""

    code = "bad_task"


class BadTaskArgument(BadInput):
    """Arguments do not fit the function of a task."""

    code = "bad_task_argument"


class TaskFailed(HoldfastError):
    """The job whose result was asked for has failed; `group` says how, `failure` in full."""

    code, status = "task_failed", 424
    hint = "`holdfast jobs show` shows its history and its log."
    facts = {"group": str, "failure": str}  # noqa: RUF012  # nobody changes it
    group: str | None = None
    failure: str | None = None


class WorkflowChanged(HoldfastError):
    """A workflow asks for another step than the one that it remembers under this number."""

    code, status = "workflow_changed", 409
    hint = 'Let workflows that are under way go the old way: `if run.version("new-shipping"): ...`.'


class WorkflowTooLarge(BadInput):
    """A workflow has more steps, or larger results, than fit."""

    code, status = "workflow_too_large", 413
    hint = "Hand parts of it to child workflows, and keep large results in entities or tables."


class StepFailed(HoldfastError):
    """A step of a workflow has failed for good in an earlier run."""

    code, status = "step_failed", 424


class ChildFailed(HoldfastError):
    """A child job of a workflow has failed; `id`, `group` and `failure` say which and how."""

    code, status = "child_failed", 424
    hint = "Catch it in the workflow, or ask with `return_errors=True`."
    facts = {"id": str, "group": str, "failure": str}  # noqa: RUF012  # nobody changes it
    id: str | None = None
    group: str | None = None
    failure: str | None = None


class TaskNotFinished(HoldfastError, TimeoutError):
    """The job whose result was asked for was not complete in time."""

    code, status = "task_not_finished", 504
    hint = "Wait longer, or look whether a worker serves its queue."


class ProcessDied(HoldfastError):
    """The process that ran a job has ended before the job did."""

    code, status = "process_died", 500
    hint = "Look for a crash, a call of os._exit, or memory that ran out, in the task's own code."


class TaskTimedOut(HoldfastError, TimeoutError):
    """A task took longer than its timeout."""

    code, status = "task_timed_out", 504
    hint = "Give it a longer `timeout`, or less to do."


# --- metrics ----------------------------------------------------------------------------------


class UnknownMetric(NotFound):
    """No spec names this metric."""

    code = "unknown_metric"
    hint = "Name it in the specs of the writer or the reader, or `define` it under this prefix."


class UnknownCondition(NotFound):
    """The limiter has no condition of this name."""

    code = "unknown_condition"
    hint = "Name it in `conditions`, or give it to the limiter when it is made."


class WrongMetricType(BadInput):
    """The operation belongs to another type of metric."""

    code, status = "wrong_type", 409
    hint = "A counter takes `incr`, a gauge `set` and `add`, a distribution `record`."


class BadMetricSpec(BadInput):
    """A metric spec can't be what was meant."""

    code = "bad_spec"


class EmptyPrefix(BadInput):
    """A prefix without a component."""

    code = "empty_prefix"
    hint = "Give a string, or a list of at least one string, that names the caller."


class BadMetricKey(BadKey):
    """A prefix, a namespace or an entity that can't be part of a metric's key."""

    hint = "Components of an entity are strings and integers; prefix and namespace are strings."


class BadMetricValue(BadValue):
    """A number that this metric can't take."""


class MetricOverflow(BadInput):
    """A number too large to be counted exactly."""

    code = "overflow"
    hint = "Give the metric a coarser resolution."


class BadRange(BadInput):
    """A stretch of time, or another bound, that makes no sense."""

    code = "bad_range"


class BadWindow(BadInput):
    """The window of a condition is no length of time."""

    code = "bad_window"
    hint = "A window is a finite number of seconds above 0."


class BadLimit(BadInput):
    """A limit, an amount or a setting of a limiter that makes no sense."""

    code = "bad_limit"


class DuplicateCondition(BadInput):
    """A batch names a condition twice, and its results are named by condition."""

    code = "duplicate_condition"
    hint = "Use one batch for each, or the list form, whose results go by position."


class SpecConflict(BadInput):
    """A spec contradicts what is stored, so stored numbers would be misread."""

    code, status = "spec_conflict", 409
    hint = "Use another name, or on_conflict='discard' to delete what is stored."


class LimitExceeded(HoldfastError):
    """A rate limit was reached. `result` tells which one and when to try again."""

    code, status = "limit_exceeded", 429
    facts = {"result": dict, "retry_after": float}  # noqa: RUF012  # nobody changes it
    hint = "Wait for the result's retry_after and try again."

    def __init__(self, message: str = "", result: Any = None, *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.result = result
        # Seconds; None if it never passes, however long one waits.
        self.retry_after: float | None = getattr(result, "retry_after", None)


# --- errors on their way ----------------------------------------------------------------------


def at_position(error: BaseException, position: int) -> None:
    """Notes which operation of a batch has failed."""
    error.position = position  # type: ignore[attr-defined]  # most are a HoldfastError, not all
    error.add_note(f"at position {position} of the batch")


def facts_of(error: HoldfastError) -> dict[str, Any]:
    """Returns all that `error_from_wire` needs to build the error again, as plain values."""
    # Those of the error itself: what its class says by default is known on the other side.
    facts = {name: vars(error).get(name) for name in error.facts}
    return {
        "error": type(error).__name__,
        "message": _text(error.message),
        "hint": _text(error.hint),
        "position": error.position,
        "facts": {
            name: _text(fact) if isinstance(fact, str) else fact
            for name, fact in facts.items()
            if fact is not None
        },
    }


def _text(said: str) -> str:
    """Replaces what no encoding can hold."""
    return said.encode(errors="replace").decode()


def error_from_wire(code: str, given: Mapping[str, Any]) -> HoldfastError:
    """Builds the error that `facts_of` described; one of a newer Holdfast as far as it is known."""
    kind = _known(given.get("error", ""), code)
    message = given.get("message", "")
    error: HoldfastError = kind.__new__(kind, message)
    error.args = (message,)
    error.message = message
    if given.get("hint", "") != kind.hint:
        error.hint = given.get("hint", "")
    for name, make in kind.facts.items():
        fact = given.get("facts", {}).get(name)
        if fact is not None or not hasattr(kind, name):  # a class may have a default for it
            setattr(error, name, None if fact is None else make(fact))
    position = given.get("position")
    if position is not None:
        at_position(error, position)
    return error


def _known(name: str, code: str) -> type[HoldfastError]:
    """Returns the class of that name, or else the first one with that code."""
    named = globals().get(name)
    if isinstance(named, type) and issubclass(named, HoldfastError):
        return named
    for each in list(globals().values()):
        if isinstance(each, type) and issubclass(each, HoldfastError) and each.code == code:
            return each
    return HoldfastError
