"""The entities of a metric with the highest totals, and the totals of all of them."""

from typing import Any

from holdfast.engine.contract import Reader, read_counter
from holdfast.error_text import shown
from holdfast.errors import BadRange
from holdfast.limits import MAX_TOP_ENTITIES
from holdfast.metrics.buckets import scan_sequence
from holdfast.metrics.entity import GLOBAL, entity_object, entity_of, readable
from holdfast.metrics.layout import Keys
from holdfast.metrics.rates import require_type, total_of
from holdfast.metrics.records import Metric, Number, TopEntity
from holdfast.metrics.totals import TimeRange, first_visible, span_of

Scoped = tuple[int | str, tuple[str, ...]]  # scope and components, as keys hold them


def read_top(
    reader: Reader,
    keys: Keys,
    name: str,
    metric: Metric,
    asked: TimeRange,
    count: Any,
    scope: str,
    namespace: str,
    now: float,
) -> list[TopEntity]:
    """The `count` highest totals. Scans all entities in the buckets of the range."""
    require_type(name, metric, "counter")
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= MAX_TOP_ENTITIES:
        raise BadRange(f"`n` is an integer from 1 to {MAX_TOP_ENTITIES}, not {shown(count)}")
    if scope not in ("local", "global"):
        raise BadRange(f"`scope` is 'local' or 'global', not {shown(scope)}")
    wanted = GLOBAL if scope == "global" else namespace
    totals = all_totals(reader, keys, name, metric, asked, now)
    found = [
        (-total, readable(*components), components)
        for (of_scope, components), total in totals.items()
        if of_scope == wanted
    ]
    return [
        TopEntity(entity=entity_object(entity_of(wanted, components)), total=-total)
        for total, _, components in sorted(found)[:count]
    ]


def all_totals(
    reader: Reader, keys: Keys, name: str, metric: Metric, asked: TimeRange, now: float
) -> dict[Scoped, Number]:
    """The totals of all entities of all scopes that are not 0."""
    span = span_of(metric, asked, now)
    if span.is_empty:
        return {}
    first = max(span.first, first_visible(span.sequence, now))
    stem = keys.sequence(name, span.sequence.name)
    counts: dict[Scoped, dict[int, int]] = {}
    for bucket, scope, components, value in scan_sequence(reader, stem, first, span.last):
        counts.setdefault((scope, components), {})[bucket] = read_counter(value)
    totals = {scoped: total_of(metric, found, span, now)[0] for scoped, found in counts.items()}
    return {scoped: total for scoped, total in totals.items() if total}
