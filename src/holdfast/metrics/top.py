"""The entities of a metric with the highest totals."""

from typing import Any

from holdfast.engine.contract import Reader
from holdfast.error_text import shown
from holdfast.errors import BadRange
from holdfast.limits import MAX_BUCKETS_PER_CALL, MAX_TOP_ENTITIES
from holdfast.metrics.counters import all_totals
from holdfast.metrics.entity import GLOBAL, entity_object, entity_of, readable
from holdfast.metrics.layout import Keys
from holdfast.metrics.records import COUNTER, Metric, TopEntity
from holdfast.metrics.totals import TimeRange


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
    most_buckets: int | None,
) -> list[TopEntity]:
    """Returns the `count` highest totals. Scans all entities in the buckets of the range."""
    metric.require_type(name, COUNTER)
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= MAX_TOP_ENTITIES:
        raise BadRange(f"`n` must be an integer from 1 to {MAX_TOP_ENTITIES}, not {shown(count)}")
    if scope not in ("local", "global"):
        raise BadRange(f"`scope` must be 'local' or 'global', not {shown(scope)}")
    if most_buckets is not None and (type(most_buckets) is not int or most_buckets < 1):
        raise BadRange(f"`most_buckets` must be an integer above 0, not {shown(most_buckets)}")
    wanted = GLOBAL if scope == "global" else namespace
    most_buckets = min(most_buckets or MAX_BUCKETS_PER_CALL, MAX_BUCKETS_PER_CALL)
    totals = all_totals(reader, keys, name, metric, asked, now, most_buckets)
    found = [
        (-total, readable(*components), components)
        for (of_scope, components), total in totals.items()
        if of_scope == wanted
    ]
    return [
        TopEntity(entity=entity_object(entity_of(wanted, components)), total=-total)
        for total, _, components in sorted(found)[:count]
    ]
