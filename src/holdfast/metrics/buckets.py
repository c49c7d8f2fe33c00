"""Counters by bucket: adding, reading, listing, resetting, and dropping what has expired."""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from holdfast.engine.contract import Reader, Transaction, read_counter
from holdfast.error_text import shown
from holdfast.errors import BadInput, BadRange
from holdfast.expiry import Remover
from holdfast.keys import after, pack, pack_int, prefix_range, unpack
from holdfast.limits import MAX_LISTED_BUCKETS, SWEEP_SECONDS, SWEPT_BUCKET_KEYS
from holdfast.metrics import registry
from holdfast.metrics.entity import EntityKey, readable, readable_scope, suffix_of
from holdfast.metrics.kinds import KINDS
from holdfast.metrics.layout import (
    ARRIVAL_TIMES,
    BUCKETS,
    LAST_SAMPLES,
    LIFETIMES,
    LOGS,
    WINDOW_SUMMARIES,
    Keys,
    bucket_range,
    keys_of,
)
from holdfast.metrics.records import BucketPage, Sequence, StoredSpec, decode_spec, encode_spec
from holdfast.metrics.totals import check_buckets, first_visible
from holdfast.metrics.window_summaries import drop_expired_summary

# --- listing ----------------------------------------------------------------------------------


def list_buckets(
    reader: Reader, keys: Keys, name: str | None, limit: int, after_key: str | None, now: float
) -> BucketPage:
    """Returns a page of readable keys.

    Reads a key for each, and 2 for each metric that has any and 1 for each of its sequences.
    """
    if not isinstance(limit, int) or not 1 <= limit <= MAX_LISTED_BUCKETS:
        raise BadRange(
            f"`limit` must be an integer from 1 to {MAX_LISTED_BUCKETS}, not {shown(limit)}"
        )
    page: dict[str, int] = {}
    last_key = b""
    begin_at = _cursor(after_key)
    names = _names_with_buckets(reader, keys, begin_at) if name is None else [name]
    for metric in names:
        stored = registry.stored_spec(reader, keys, metric)
        if not KINDS[stored.metric.type].has_counters:
            continue
        for key, readable_key, units in _listed(reader, keys, metric, stored, begin_at, now):
            if len(page) == limit:
                return BucketPage(buckets=page, next=last_key.hex())
            page[readable_key] = page.get(readable_key, 0) + units
            last_key = key[len(keys.space) :]
    return BucketPage(buckets=page, next=None)


def _names_with_buckets(reader: Reader, keys: Keys, begin_at: bytes) -> Iterator[str]:
    return _distinct_parts(reader, keys.family(BUCKETS), keys.space + begin_at)


def _listed(
    reader: Reader, keys: Keys, metric: str, stored: StoredSpec, begin_at: bytes, now: float
) -> Iterator[tuple[bytes, str, int]]:
    """Yields the visible counters of a metric that are not 0, in the order of their keys."""
    for sequence in sorted(registry.all_sequences(stored), key=lambda found: found.name):
        stem = keys.sequence(metric, sequence.name)
        begin = stem + pack_int(first_visible(sequence, now))
        begin = max(begin, keys.space + begin_at)
        for key, value in reader.scan(begin, prefix_range(stem)[1]):
            bucket, scope, components = unpack(key, len(stem))
            units = read_counter(value)
            if units:
                parts = (*keys.prefix, metric, sequence.name, bucket, *components)
                yield key, readable(readable_scope(scope), *parts), units


def _cursor(after_key: str | None) -> bytes:
    if after_key is None:
        return b""
    try:
        return after(bytes.fromhex(after_key))
    except (ValueError, TypeError):
        raise BadInput(
            f"`after` must be the `next` of an earlier page, not {shown(after_key)}"
        ) from None


# --- resetting --------------------------------------------------------------------------------


def reset(
    tx: Transaction,
    keys: Keys,
    names: Iterable[str] | None,
    entities: Iterable[EntityKey],
    namespace: str,
) -> int:
    """Deletes everything stored about `entities`, and returns the number of buckets.

    Reads and deletes, for each entity, 1 key in each bucket that any entity has.
    """
    suffixes = {suffix_of(entity, namespace) for entity in entities}
    if not suffixes:
        return 0
    specs = dict(registry.specs_named(tx, keys, names))
    deleted = count = 0
    for name, stored in specs.items():
        for sequence in registry.all_sequences(stored):
            stem = keys.sequence(name, sequence.name)
            for bucket in _distinct_parts(tx, stem):
                count += len(suffixes)
                check_buckets(count)
                begin = stem + pack_int(bucket)
                deleted += sum([_delete(tx, begin + suffix) for suffix in suffixes])
    count = 0
    for family in (LIFETIMES, LAST_SAMPLES, ARRIVAL_TIMES, LOGS, WINDOW_SUMMARIES):
        # Limiters without buckets store no spec, so their conditions are found by their keys.
        for name in _distinct_parts(tx, keys.family(family)) if names is None else specs:
            count += len(suffixes)
            check_buckets(count)
            for suffix in suffixes if isinstance(name, str) else ():  # a number: of throttles
                tx.clear(*prefix_range(keys.entity_key(family, name, suffix)))
    return deleted


def _distinct_parts(reader: Reader, stem: bytes, begin_at: bytes = b"") -> Iterator[Any]:
    """Yields the different parts that follow `stem`, found by leaping from one to the next.

    The first one is that of the first key from `begin_at` on.
    """
    begin, end = prefix_range(stem)
    begin = max(begin, begin_at)
    while found := next(reader.scan(begin, end, limit=1), None):
        part = unpack(found[0], len(stem))[0]
        yield part
        begin = prefix_range(stem + pack(part))[1]


def _delete(tx: Transaction, key: bytes) -> bool:
    if tx.get(key) is None:
        return False
    tx.delete(key)
    return True


# --- expiry -----------------------------------------------------------------------------------


def sweep_metric(tx: Transaction, subject: bytes) -> bool:
    """Removes a metric's expired buckets in bounded steps, then schedules the next sweep.

    Each metric has one expiry entry. The next sweep runs when the oldest remaining bucket expires;
    if none is left, after the shortest hard expiry, since no later write expires before that. So a
    write needs no expiry entry of its own and remains a pure addition.
    """
    prefix, name = unpack(subject)
    keys = keys_of(tx.space, prefix)
    value = tx.get(keys.spec(name))
    if value is None:
        return True
    stored = decode_spec(value)
    left = SWEPT_BUCKET_KEYS
    next_at = tx.now + max(registry.shortest_life(stored), SWEEP_SECONDS)
    emptied: list[Sequence] = []
    for sequence in registry.all_sequences(stored):
        stem = keys.sequence(name, sequence.name)
        expired = _sweep_sequence(tx, stem, first_visible(sequence, tx.now), left)
        if stored.window is not None and sequence.name == "":
            for key in expired:
                drop_expired_summary(tx, keys, name, key, stem)
        left -= len(expired)
        if left <= 0:
            return False
        oldest = next(_distinct_parts(tx, stem), None)
        if oldest is not None:
            ends = (oldest + 1) * sequence.time_step + sequence.hard_expiry
            next_at = min(next_at, max(ends, tx.now), tx.now + registry.shortest_life(stored))
        elif sequence in stored.retired:
            emptied.append(sequence)
    _drop_empty_sequences(tx, keys, name, stored, emptied)
    registry.schedule_sweep(tx, keys, name, next_at)
    return True


def _sweep_sequence(tx: Transaction, stem: bytes, visible: int, left: int) -> list[bytes]:
    """Clears at most `left` keys of the buckets before `visible`, and returns them."""
    begin, end = bucket_range(stem, 0, visible - 1)
    expired = [key for key, _ in tx.scan(begin, end, limit=left)]
    if expired:
        tx.clear(begin, after(expired[-1]))
    return expired


def _drop_empty_sequences(
    tx: Transaction, keys: Keys, name: str, stored: StoredSpec, emptied: list[Sequence]
) -> None:
    """Removes the retired sequences that are empty from the stored spec."""
    if emptied:
        left = tuple(found for found in stored.retired if found not in emptied)
        spec = StoredSpec(metric=stored.metric, window=stored.window, retired=left)
        tx.put(keys.spec(name), encode_spec(spec))


REMOVERS: Final[dict[str, Remover]] = {registry.SWEEP: sweep_metric}
