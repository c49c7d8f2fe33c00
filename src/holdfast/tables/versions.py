"""Versions: UUIDs of version 1. Makes them, reads their time, and bounds those of a time."""

import secrets
import threading
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from holdfast.tables.values import EPOCH

TICKS_PER_SECOND: Final = 10_000_000  # a version counts time in steps of 100 ns
TICKS_TO_1970: Final = 0x01B2_1DD2_1381_4000  # from 1582-10-15, where the count begins
MAX_TICKS: Final = 2**60 - 1
_LAST_NODE: Final = 2**64 - 1


def version_attribute(schema: dict[str, Any]) -> str | None:
    """Returns the last range element of the primary index, if it is a descending timeuuid."""
    ranges = [element for element in schema["index"] if element["type"] == "range"]
    if not ranges:
        return None
    last = ranges[-1]
    is_version = last["order"] == "desc" and schema["attributes"][last["attribute"]] == "timeuuid"
    return str(last["attribute"]) if is_version else None


class Versions:
    """Makes the versions of one open store, strictly increasing even if the clock stops or jumps
    back.

    Clock sequence and node are random, so that two processes never make the same version.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last = 0
        multicast = 0x0100_0000_0000
        self._rest = (0x8000 | secrets.randbits(14)) << 48 | secrets.randbits(48) | multicast

    def make(self, now: float) -> UUID:
        """Returns the next version, for a write at the time `now`."""
        ticks = int(now * 1_000_000) * 10 + TICKS_TO_1970
        with self._lock:
            self._last = max(ticks, self._last + 1)
            return version_at(self._last, self._rest)


def version_at(ticks: int, rest: int) -> UUID:
    """Returns the version of a time in ticks since 1582, with `rest` as its last 8 bytes."""
    low, mid, high = ticks & 0xFFFF_FFFF, ticks >> 32 & 0xFFFF, ticks >> 48
    return UUID(int=low << 96 | mid << 80 | (0x1000 | high) << 64 | rest)


def ticks_of(version: UUID) -> int:
    """Returns the time in a version, in ticks since 1970."""
    return version.time - TICKS_TO_1970


def first_of(moment: datetime) -> UUID:
    """Returns a version before all others of that millisecond."""
    return version_at(_ticks(moment), 0)


def last_of(moment: datetime) -> UUID:
    """Returns a version after all others of that millisecond."""
    return version_at(min(MAX_TICKS, _ticks(moment) + 9_999), _LAST_NODE)


def bucket_of(version: UUID, interval_ticks: int) -> tuple[UUID, UUID]:
    """Returns the first and last version of the interval, aligned to 1970, with `version`."""
    ticks = ticks_of(version)
    begin = ticks - ticks % interval_ticks + TICKS_TO_1970
    end = begin + interval_ticks - 1
    return version_at(max(0, begin), 0), version_at(min(MAX_TICKS, end), _LAST_NODE)


def _ticks(moment: datetime) -> int:
    since = moment - EPOCH
    milliseconds = (since.days * 86_400 + since.seconds) * 1_000 + since.microseconds // 1_000
    return min(MAX_TICKS, max(0, milliseconds * 10_000 + TICKS_TO_1970))
