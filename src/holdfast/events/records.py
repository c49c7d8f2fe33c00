"""What goes in and what comes out: events, replies and the results of reads."""

from typing import Any, Final, Literal, TypeAlias

import msgspec

__all__ = [
    "BoardEntry",
    "Distinct",
    "Event",
    "EventError",
    "Explanation",
    "HandlerExplanation",
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

Kind: TypeAlias = Literal["set", "leaderboard"]
Scalar: TypeAlias = str | int | float | bool | None
Attribute: TypeAlias = Scalar | list[Scalar]


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What a store may want otherwise."""

    timezone: str = "UTC"  # of the time labels, @day and its brothers
    looked_up_members: int = 10_000  # the newest that one look-up reads
    fan_out_keys: int = 10_000  # that one handler may write for one event
    dedup_seconds: float = 86_400.0  # for which the id of an event is remembered


class Event(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Something that happened."""

    name: str  # segments joined by colons
    attributes: dict[str, Attribute] = {}
    ip: str | None = None
    at: Any = None  # milliseconds since the epoch, ISO 8601, or a datetime
    id: str | None = None  # a second event with the same id changes nothing


class Skipped(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A handler that did nothing, and why."""

    handler: str
    missing: str | None = None  # the attribute or built-in that the event lacks
    error: str | None = None  # "key X holds a set"
    schema: str = DEFAULT_SCHEMA


class SendReply(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one event."""

    handlers: int = 0  # that ran
    keys: int = 0  # that were written
    skipped: list[Skipped] = []
    duplicate: bool = False


class EventError(msgspec.Struct, frozen=True, kw_only=True):
    """Why an event of a batch was not written."""

    position: int
    message: str


class SendManyReply(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a batch."""

    accepted: int = 0
    errors: list[EventError] = []


class Member(msgspec.Struct, frozen=True, kw_only=True):
    """A member of a set."""

    value: str
    at: int  # milliseconds of its last add


class MemberPage(msgspec.Struct, frozen=True, kw_only=True):
    """Members, newest first."""

    members: list[Member]
    next: str | None = None  # hand it back as `after`; None: these were the last


class BoardEntry(msgspec.Struct, frozen=True, kw_only=True):
    """An entry of a leaderboard."""

    value: str
    count: int
    error: int  # the most by which `count` can be too high


class Distinct(msgspec.Struct, frozen=True, kw_only=True):
    """How many different values."""

    count: int
    exact: bool


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """One step of a series."""

    label: str
    value: int


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
    """What a handler would do with an event."""

    handler: str
    operation: str
    keys: list[str] = []
    writes: list[Write] = []
    job: dict[str, Any] | None = None
    missing: str | None = None  # why it is skipped
    error: str | None = None
    schema: str = DEFAULT_SCHEMA


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """What an event would do."""

    name: str
    at: int
    handlers: list[HandlerExplanation]
    duplicate: bool = False
