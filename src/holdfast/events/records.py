"""Events, the replies to them, and the results of reads."""

from typing import Any, Final, Literal, TypeAlias

import msgspec
from msgspec import field

__all__ = [
    "Aggregate",
    "BoardEntry",
    "Distinct",
    "EmptyLookUp",
    "Event",
    "EventError",
    "Explanation",
    "FanOutReport",
    "HandlerExplanation",
    "KeptCount",
    "KeptResult",
    "KeyDescription",
    "KeyInfo",
    "KeyPage",
    "Kind",
    "Member",
    "MemberPage",
    "Point",
    "SendManyReply",
    "SendReply",
    "Settings",
    "Skipped",
    "Write",
]

DEFAULT_SCHEMA: Final = "default"  # its name is left out of reports

Kind: TypeAlias = Literal["set", "leaderboard", "count", "numbers"]
Scalar: TypeAlias = str | int | float | bool | None
Attribute: TypeAlias = Scalar | list[Scalar]


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of a space."""

    timezone: str = "UTC"  # of the time labels: @day, @week and so on
    looked_up_members: int = 10_000  # that one look-up may find
    fan_out_keys: int = 10_000  # that one handler may write for one event, in its transaction
    dedup_seconds: float = 86_400.0  # for which the id of an event is remembered


class Event(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Something that happened."""

    name: str  # segments joined by colons
    attributes: dict[str, Attribute] = {}
    ip: str | None = None
    at: Any = None  # milliseconds since the epoch, ISO 8601, or a datetime
    id: str | None = None  # a second event with the same id changes nothing
    score: int | None = (
        None  # seconds, in place of `at`: an add with the same score is the same add
    )
    handlers: list[dict[str, Any]] | None = None  # that run after those of the schema


class Skipped(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A handler that did nothing, and why."""

    handler: str
    missing: str | None = None  # the attribute or built-in that the event lacks
    error: str | None = None  # "key X holds a set"
    schema: str = DEFAULT_SCHEMA


class EmptyLookUp(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A look-up of a handler that found nothing, so that the handler wrote nothing."""

    handler: str
    key: str  # that was looked up, the first one of several
    reason: Literal["unknown", "empty", "leaderboard"]
    others: int = 0  # further keys of the same look-up, which found nothing either
    schema: str = DEFAULT_SCHEMA


class FanOutReport(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The progress of a background fan-out."""

    id: str
    handler: str
    keys: int  # that it writes in all; a key that several sets lead to is counted for each
    done: int = field(default_factory=lambda: 0)
    failed: int = field(default_factory=lambda: 0)  # keys that could not be written
    error: str | None = None  # why the last one of them could not
    started: int = field(default_factory=lambda: 0)  # milliseconds since the epoch
    finished: int | None = None
    schema: str = DEFAULT_SCHEMA


# `omit_defaults` leaves out a default that is the same object as here, and never one that a factory
# makes. So the fields of the first version are always there, and later ones only if they are set.


class SendReply(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The outcome of one event."""

    handlers: int = field(default_factory=lambda: 0)  # that ran
    keys: int = field(default_factory=lambda: 0)  # that were written
    skipped: list[Skipped] = field(default_factory=lambda: [])
    duplicate: bool = field(default_factory=lambda: False)
    empty: list[EmptyLookUp] = []  # look-ups that found nothing
    background: list[FanOutReport] = []  # fan-outs that continue after the commit


class EventError(msgspec.Struct, frozen=True, kw_only=True):
    """The reason why an event of a batch was not written."""

    position: int
    message: str


class SendManyReply(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The outcome of a batch."""

    accepted: int = field(default_factory=lambda: 0)
    errors: list[EventError] = field(default_factory=lambda: [])
    background: list[FanOutReport] = []  # fan-outs that continue after the commit


class Member(msgspec.Struct, frozen=True, kw_only=True):
    """A member of a set."""

    value: str
    at: int  # milliseconds of its last add


class MemberPage(msgspec.Struct, frozen=True, kw_only=True):
    """Members, newest first."""

    members: list[Member]
    next: str | None = None  # pass it as `after` for the next page; None: this is the last


class BoardEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An entry of a leaderboard."""

    value: str
    count: int
    error: int  # the most by which `count` can be too high
    score: float | None = None  # of a board with a half-life: what is left of the count now


class Distinct(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The number of different values, exact or estimated."""

    count: int
    exact: bool
    incomplete: bool = False  # values were added while `store_distinct_counters` was off
    error: int = 0  # one standard error, if the count is estimated


class KeptCount(msgspec.Struct, frozen=True, kw_only=True):
    """A stored count."""

    key: str
    ttl: float  # seconds until it disappears


class KeptResult(msgspec.Struct, frozen=True, kw_only=True):
    """A stored set or leaderboard."""

    key: str
    ttl: float  # seconds until it disappears
    size: int  # its members or entries
    complete: bool  # False: there were more than were asked for


class Aggregate(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers of a key, or of several together; None where there are none."""

    count: int
    sum: int | float = 0
    min: int | float | None = None
    max: int | float | None = None
    avg: float | None = None
    last: int | float | None = None  # of the latest event
    percentiles: dict[str, float] = {}


class KeyDescription(msgspec.Struct, frozen=True, kw_only=True):
    """The description of a key."""

    key: str
    kinds: list[Kind]  # nothing, if the key does not exist
    size: int = 0  # members of its set, or entries of its leaderboard
    bound: int | None = None  # `max_stored_values`
    gross: int = 0
    gross_complete: bool = True  # False: values were added while `store_gross_counters` was off
    distinct: Distinct = Distinct(count=0, exact=True)
    windowed: bool = False  # whether its counters answer `since`
    numbers: int = 0  # that were aggregated
    expires: int | None = None  # milliseconds since the epoch


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """One step of a series."""

    label: str
    value: int | float | None  # None where there is no number


class KeyInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A key that exists."""

    key: str
    kind: Kind


class KeyPage(msgspec.Struct, frozen=True, kw_only=True):
    """Keys in the order of their bytes."""

    keys: list[KeyInfo]
    next: str | None = None


class Write(msgspec.Struct, frozen=True, kw_only=True):
    """One value on its way to one key."""

    key: str
    value: str


class HandlerExplanation(msgspec.Struct, frozen=True, kw_only=True):
    """The effects that one handler would have."""

    handler: str
    operation: str
    keys: list[str] = []
    writes: list[Write] = []
    job: dict[str, Any] | None = None
    missing: str | None = None  # why it is skipped
    error: str | None = None
    schema: str = DEFAULT_SCHEMA
    empty: list[EmptyLookUp] = []  # look-ups that found nothing
    background: int | None = None  # keys that it would write in background steps


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """The effects that an event would have."""

    name: str
    at: int
    handlers: list[HandlerExplanation]
    duplicate: bool = False
    dialect: Literal["mql", "flux"] = "mql"
