"""Stored specs, and the protection against spec drift.

A bucket's key does not say how wide the bucket is or what its units are: the stored spec does. A
new spec that contradicts it would misread the stored numbers, so it is refused.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final, Literal, TypeAlias

import msgspec

from holdfast import expiry
from holdfast.engine.contract import Reader, Transaction
from holdfast.error_text import did_you_mean, shown
from holdfast.errors import BadInput, BadRange, RequestTooLarge, SpecConflict, UnknownMetric
from holdfast.keys import after, pack, prefix_range, unpack
from holdfast.limits import (
    MAX_COMPARED_NAMES,
    MAX_DISCARDED_KEYS,
    MAX_LISTED_BUCKETS,
    SWEEP_SECONDS,
)
from holdfast.metrics.call_timers import timer_of_items
from holdfast.metrics.kinds import KINDS
from holdfast.metrics.layout import (
    ARRIVAL_TIMES,
    BUCKETS,
    LAST_SAMPLES,
    LIFETIMES,
    LOGS,
    SPECS,
    WINDOW_SUMMARIES,
    Keys,
    all_specs,
    keys_of,
)
from holdfast.metrics.records import (
    Metric,
    Sequence,
    StoredSpec,
    Window,
    decode_spec,
    encode_spec,
)
from holdfast.metrics.specs import same_step

OnConflict: TypeAlias = Literal["refuse", "discard"]

SWEEP: Final = "metrics.buckets"  # the kind of expiry entry that removes expired buckets

_FAMILIES_OF_A_METRIC: Final = (
    BUCKETS,
    LIFETIMES,
    LAST_SAMPLES,
    ARRIVAL_TIMES,
    LOGS,
    WINDOW_SUMMARIES,
)


def stored_spec(reader: Reader, keys: Keys, name: str) -> StoredSpec:
    """Returns the stored spec of the metric `name`. Reads 1 key."""
    value = reader.get(keys.spec(name)) if isinstance(name, str) else None
    if value is None:
        raise unknown_metric(reader, keys, name)
    return decode_spec(value)


def unknown_metric(reader: Reader, keys: Keys, name: str) -> UnknownMetric:
    """Returns the error for a metric that is not defined, with the nearest name that is.

    Reads 1 key for each name that is compared, `MAX_COMPARED_NAMES` at most.
    """
    stem = keys.family(SPECS)
    found = reader.scan(*prefix_range(stem), limit=MAX_COMPARED_NAMES)
    known = [str(unpack(key, len(stem))[0]) for key, _ in found]
    return UnknownMetric(f"unknown metric {shown(name)}{did_you_mean(name, known)}")


def stored_specs(reader: Reader, keys: Keys) -> list[tuple[str, StoredSpec]]:
    """Returns all specs under a prefix, by the name of their metric. Reads 1 key for each."""
    begin = keys.family(SPECS)
    return [
        (str(unpack(key, len(begin))[0]), decode_spec(value))
        for key, value in reader.scan(*prefix_range(begin))
    ]


def page_of_specs(
    reader: Reader, keys: Keys, after_name: str | None, limit: int
) -> dict[str, Metric]:
    """Returns up to `limit` metrics under a prefix, from those after a name. Reads 1 key each."""
    if not isinstance(limit, int) or not 1 <= limit <= MAX_LISTED_BUCKETS:
        raise BadRange(
            f"`limit` must be an integer from 1 to {MAX_LISTED_BUCKETS}, not {shown(limit)}"
        )
    if after_name is not None and not isinstance(after_name, str):
        raise BadRange(f"`after` must be the name of a metric, not {shown(after_name)}")
    stem = keys.family(SPECS)
    begin, end = prefix_range(stem)
    if after_name is not None:
        begin = after(keys.spec(after_name))
    return {
        str(unpack(key, len(stem))[0]): decode_spec(value).metric
        for key, value in reader.scan(begin, end, limit=limit)
    }


def defined_among(reader: Reader, keys: Keys, names: Collection[str]) -> dict[str, Metric]:
    """Returns the metrics of `names` that are defined. Reads 1 key for each name."""
    if isinstance(names, str) or not isinstance(names, Collection):
        raise BadRange(f"`names` must be a list of metric names, not {shown(names)}")
    if any(not isinstance(name, str) for name in names):
        raise BadRange(f"`names` must contain only text, not {shown(names)}")
    if len(names) > MAX_LISTED_BUCKETS:
        raise BadRange(f"`names` has {len(names)} names, at most {MAX_LISTED_BUCKETS} are allowed")
    stored = reader.get_many([keys.spec(name) for name in names])
    return {
        name: decode_spec(value).metric
        for name, value in zip(names, stored, strict=True)
        if value is not None
    }


def specs_named(
    reader: Reader, keys: Keys, names: Iterable[str] | None
) -> list[tuple[str, StoredSpec]]:
    """Returns the stored specs of `names`, or all under the prefix. Reads 1 key for each."""
    if names is None:
        return stored_specs(reader, keys)
    return [(name, stored_spec(reader, keys, name)) for name in names]


def every_spec(reader: Reader) -> Iterator[tuple[Keys, str, StoredSpec]]:
    """Yields all specs of the space, with the keys of their prefix. Reads 1 key for each."""
    begin, end = all_specs(reader.space)
    for key, value in reader.scan(begin, end):
        prefix, name = unpack(key, len(begin))
        yield keys_of(reader.space, prefix), str(name), decode_spec(value)


def are_stored(
    reader: Reader, keys: Keys, metrics: Mapping[str, Metric], on_conflict: OnConflict
) -> bool:
    """Returns whether nothing has to be written to use `metrics`. Raises if one is refused.

    Reads 1 key for each.
    """
    unchanged = [
        _reconcile(reader.get(keys.spec(name)), name, metric, None, on_conflict) is None
        for name, metric in metrics.items()
    ]
    return all(unchanged)


def define(
    tx: Transaction, keys: Keys, metrics: Mapping[str, Metric], on_conflict: OnConflict = "refuse"
) -> None:
    """Stores the specs that are new or have changed. Reads 1 key for each, writes at most 2."""
    if are_stored(tx, keys, metrics, on_conflict):  # and none is refused after others were stored
        return
    timer = timer_of_items("the definition", len(metrics))
    for name, metric in metrics.items():
        store_spec(tx, keys, name, metric, None, on_conflict)
        timer.check()


def store_spec(
    tx: Transaction,
    keys: Keys,
    name: str,
    metric: Metric,
    window: Window | None,
    on_conflict: OnConflict = "refuse",
) -> None:
    """Stores one spec if it differs from the stored one.

    Reads 1 key, writes 2 if it is new, 1 if it changed.
    """
    value = tx.get(keys.spec(name))
    change = _reconcile(value, name, metric, window, on_conflict)
    if change is None:
        return
    new, discards = change
    if discards:
        discard(tx, keys, name)
    if value is None:
        schedule_sweep(tx, keys, name, tx.now + max(shortest_life(new), SWEEP_SECONDS))
    tx.put(keys.spec(name), encode_spec(new))


def check_window(value: bytes | None, name: str, metric: Metric, window: Window) -> None:
    """Raises if a condition contradicts what is stored; for reads, which store nothing."""
    _reconcile(value, name, metric, window, "refuse")


def discard(tx: Transaction, keys: Keys, name: str) -> None:
    """Deletes everything stored about a metric except its spec.

    Reads and deletes 1 key for each number. Raises `RequestTooLarge` if there are more than
    `MAX_DISCARDED_KEYS`.
    """
    ranges = [keys.entity_range(family, name) for family in _FAMILIES_OF_A_METRIC]
    numbers = (each for found in ranges for each in tx.scan(*found))
    if any(count == MAX_DISCARDED_KEYS for count, _ in enumerate(numbers)):
        raise RequestTooLarge(
            f"{shown(name)} has more than {MAX_DISCARDED_KEYS} stored numbers to delete at once",
            hint="Use another name; the old numbers in time sequences expire by themselves.",
        )
    for found in ranges:
        tx.clear(*found)


def schedule_sweep(tx: Transaction, keys: Keys, name: str, at: float) -> None:
    """Schedules the removal of the metric's expired buckets at `at`. Writes 1 key."""
    expiry.schedule(tx, at + 0.001, SWEEP, pack(keys.prefix, name))  # the sweeper rounds to ms


def shortest_life(stored: StoredSpec) -> float:
    """Returns for how many seconds at least a bucket that is written now is kept."""
    return min(sequence.hard_expiry for sequence in all_sequences(stored))


def all_sequences(stored: StoredSpec) -> tuple[Sequence, ...]:
    return stored.metric.sequences + stored.retired


# --- drift ------------------------------------------------------------------------------------


def _reconcile(
    value: bytes | None, name: str, metric: Metric, window: Window | None, on_conflict: OnConflict
) -> tuple[StoredSpec, bool] | None:
    """Returns the spec to store, and whether stored data must be deleted first.

    Returns None if nothing changes.
    """
    if on_conflict not in ("refuse", "discard"):
        raise BadInput(f"on_conflict must be 'refuse' or 'discard', not {shown(on_conflict)}")
    if value is None:
        return StoredSpec(metric=metric, window=window), False
    stored = decode_spec(value)
    conflict = _conflict(stored, name, metric, window)
    if conflict and on_conflict == "refuse":
        raise SpecConflict(conflict)
    if conflict:
        return StoredSpec(metric=metric, window=window), True
    if window is not None:
        new = _with_window(stored, metric, window)
    else:
        new = _with_metric(stored, metric)
    return None if new == stored and _same_resolution(new, stored) else (new, False)


def _conflict(stored: StoredSpec, name: str, metric: Metric, window: Window | None) -> str | None:
    old = stored.metric
    if old.type != metric.type:
        return f"{name!r} is stored as a {old.type}, not as a {metric.type}"
    if repr(old.resolution) != repr(metric.resolution):
        return f"{name!r} is stored with resolution {old.resolution}, not {metric.resolution}"
    conflict = KINDS[metric.type].conflict(name, old, metric)
    if conflict is not None:
        return conflict
    steps = {sequence.name: sequence.time_step for sequence in all_sequences(stored)}
    for sequence in metric.sequences:
        step = steps.get(sequence.name, sequence.time_step)
        if not same_step(step, sequence.time_step):
            return (
                f"the sequence {sequence.name!r} of {name!r} is stored with a time step of "
                f"{step}, not {sequence.time_step}"
            )
    if window and stored.window and window != stored.window:
        return (
            f"the condition {name!r} is stored with a window of {stored.window.seconds} seconds in "
            f"{stored.window.bucket_count} buckets, not {window.seconds} in {window.bucket_count}"
        )
    return None


def _with_metric(stored: StoredSpec, metric: Metric) -> StoredSpec:
    """Returns the new spec; sequences that it no longer has stay listed until they are empty."""
    names = {sequence.name for sequence in metric.sequences}
    retired = [found for found in all_sequences(stored) if found.name not in names]
    return StoredSpec(metric=metric, window=stored.window, retired=tuple(retired))


def _with_window(stored: StoredSpec, metric: Metric, window: Window) -> StoredSpec:
    """Returns the stored spec, with a sequence that covers the window of a condition."""
    [wanted] = metric.sequences
    kept = [found for found in stored.metric.sequences if not _is_shorter_lived(found, wanted)]
    if all(found.name != wanted.name for found in kept):
        kept.append(wanted)
    sequences = tuple(sorted(kept, key=lambda found: found.hard_expiry))
    retired = tuple(found for found in stored.retired if found.name != wanted.name)
    merged = msgspec.structs.replace(stored.metric, sequences=sequences)
    return StoredSpec(metric=merged, window=window, retired=retired)


def _is_shorter_lived(found: Sequence, wanted: Sequence) -> bool:
    return found.name == wanted.name and found.soft_expiry < wanted.soft_expiry


def _same_resolution(one: StoredSpec, other: StoredSpec) -> bool:
    """Returns whether two resolutions mean the same: 1 and 1.0 differ, as whole totals and
    fractions."""
    return repr(one.metric.resolution) == repr(other.metric.resolution)
