"""Events: a schema turns each one into sets, leaderboards and counters, in real time (MQL).

`Events(tx)` is the layer on one transaction, `StoreEvents` the same operations on a store, one
transaction for each call.
"""

from holdfast.events.ingestion import AnyEvent, Enqueue
from holdfast.events.layer import REMOVERS, Events, Query, Result
from holdfast.events.records import (
    Aggregate,
    BoardEntry,
    Distinct,
    EmptyLookUp,
    Event,
    EventError,
    Explanation,
    FanOutReport,
    HandlerExplanation,
    KeptCount,
    KeptResult,
    KeyDescription,
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
from holdfast.events.store import KeySubscription, StoreEvents

__all__ = [
    "REMOVERS",
    "Aggregate",
    "AnyEvent",
    "BoardEntry",
    "Distinct",
    "EmptyLookUp",
    "Enqueue",
    "Event",
    "EventError",
    "Events",
    "Explanation",
    "FanOutReport",
    "HandlerExplanation",
    "KeptCount",
    "KeptResult",
    "KeyDescription",
    "KeyInfo",
    "KeyPage",
    "KeySubscription",
    "Member",
    "MemberPage",
    "Point",
    "Query",
    "Result",
    "SendManyReply",
    "SendReply",
    "Settings",
    "Skipped",
    "StoreEvents",
    "Write",
]
