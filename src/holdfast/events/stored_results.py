"""Stored results: the combined contents of several keys, kept for a while under a new key.

The new key is an ordinary one that expires: every read accepts it, and later events do not change
it.
"""

from collections.abc import Callable
from uuid import UUID

from holdfast.engine.contract import Transaction, random_bytes
from holdfast.error_text import shown
from holdfast.errors import BadInput
from holdfast.events import boards, counts, sets
from holdfast.events.codec import UNBOUNDED, KeyRecord, prepare
from holdfast.events.reads import KeyOrKeys, Moment, Reads, Window, encoded
from holdfast.events.record_cache import RecordWriter
from holdfast.events.records import BoardEntry, KeptCount, KeptResult, Member
from holdfast.events.set_reads import SetOperation
from holdfast.events.sketch import digest
from holdfast.limits import MAX_COUNTED_MEMBERS, MAX_WALKED_MEMBERS
from holdfast.limits import MAX_EXPIRE_AFTER_SECONDS as MAX_TTL

__all__ = ["keep_distinct", "keep_members", "keep_top"]


def keep_distinct(
    tx: Transaction,
    reads: Reads,
    keys: KeyOrKeys,
    since: Moment | None,
    ttl: float,
    *,
    counts_members: bool = False,
) -> KeptCount:
    """Stores the union of the counters of several keys.

    With `counts_members`, a set whose counters store no times counts by the members that it still
    has; otherwise this raises `CountersWithoutTimes`.
    """
    ttl = _checked_ttl(ttl)
    sources, since_ms, timer = reads.counted(keys, since)

    def fill(cache: RecordWriter, to: KeyRecord) -> None:
        counts.keep_union(cache, to, sources, since_ms, timer, counts_members=counts_members)

    key = _keep(tx, ttl, fill)
    return KeptCount(key=key, ttl=ttl)


def keep_members(
    tx: Transaction,
    reads: Reads,
    keys: KeyOrKeys,
    op: SetOperation,
    since: Moment | None,
    until: Moment | None,
    limit: int,
    ttl: float,
) -> KeptResult:
    """Stores the newest members of several sets, united, intersected or subtracted."""
    ttl = _checked_ttl(ttl)
    members: list[Member] = []
    after: str | None = None
    # An intersection may read many members to find few, so each page is bounded, and so is the sum.
    for _ in range(MAX_COUNTED_MEMBERS // MAX_WALKED_MEMBERS):
        page = reads.members(keys, limit, after, op=op, since=since, until=until)
        members += page.members
        after = page.next
        if after is None or len(members) >= limit:
            break
    complete = after is None and len(members) <= limit
    found = members[:limit]
    key = _keep(tx, ttl, lambda cache, to: _store_members(cache, to, found))
    return KeptResult(key=key, ttl=ttl, size=len(found), complete=complete)


def keep_top(
    tx: Transaction,
    reads: Reads,
    keys: KeyOrKeys,
    k: int | None,
    ttl: float,
    last: Window,
    schema: str | None,
) -> KeptResult:
    """Stores the leaderboards of several keys, merged."""
    ttl = _checked_ttl(ttl)
    entries = reads.top(keys, k, last, schema)
    key = _keep(tx, ttl, lambda cache, to: _store_board(cache, to, entries))
    return KeptResult(key=key, ttl=ttl, size=len(entries), complete=True)


def _keep(tx: Transaction, ttl: float, fill: Callable[[RecordWriter, KeyRecord], None]) -> str:
    """Returns the key of a new record that `fill` has filled and that expires."""
    cache = RecordWriter(tx)
    key = str(UUID(bytes=random_bytes(16), version=4))
    record = cache.record(key.encode())
    fill(cache, record)
    record.dirty = True
    cache.extend_lifetime(record, round(ttl * 1_000))
    cache.finish()
    return key


def _store_members(cache: RecordWriter, record: KeyRecord, members: list[Member]) -> None:
    for member in reversed(members):
        raw = encoded(member.value)
        value = prepare(raw, digest(raw), member.at)
        sets.add(cache, [record], value, UNBOUNDED, gross=1, counted=True)


def _store_board(cache: RecordWriter, record: KeyRecord, entries: list[BoardEntry]) -> None:
    found = [boards.Candidate(encoded(each.value), each.count, each.error) for each in entries]
    boards.store(cache, record, found)


def _checked_ttl(ttl: float) -> float:
    if isinstance(ttl, bool) or not isinstance(ttl, int | float) or not 0 < ttl <= MAX_TTL:
        raise BadInput(
            f"`ttl` must be a number of seconds above 0, at most {MAX_TTL}, not {shown(ttl)}"
        )
    return float(ttl)
