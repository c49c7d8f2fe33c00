"""Metrics: counters in time sequences, rates, and rate limits, after WRStats.

An application adds to a counter. Holdfast keeps the counts in buckets of time, in one or more
sequences, each with its own time step and retention. A read of a time range returns a total or a
rate; a rate limiter reads and writes such a counter.
"""

from typing import Final

from holdfast.expiry import Remover
from holdfast.metrics import buckets, gcra, limits_package_windows, log_window
from holdfast.metrics.conditions import LimitCondition
from holdfast.metrics.entity import EntityKey, GlobalEntityKey, LocalEntityKey
from holdfast.metrics.kinds import KINDS
from holdfast.metrics.layer import Metrics
from holdfast.metrics.limiter import Batch, Limiter
from holdfast.metrics.reader import RatePromise, Reader
from holdfast.metrics.records import (
    BatchResult,
    LimitResult,
    MetricSpec,
    NamedBatchResult,
    Operation,
    Rate,
    RateQuery,
    SequenceSpec,
    Write,
)
from holdfast.metrics.store import StoreMetrics, foreign_windows
from holdfast.metrics.writer import Writer

__all__ = [
    "REMOVERS",
    "Batch",
    "BatchResult",
    "EntityKey",
    "GlobalEntityKey",
    "LimitCondition",
    "LimitResult",
    "Limiter",
    "LocalEntityKey",
    "MetricSpec",
    "Metrics",
    "NamedBatchResult",
    "Operation",
    "Rate",
    "RatePromise",
    "RateQuery",
    "Reader",
    "SequenceSpec",
    "StoreMetrics",
    "Write",
    "Writer",
    "foreign_windows",
]

REMOVERS: Final[dict[str, Remover]] = {
    **buckets.REMOVERS,
    **gcra.REMOVERS,
    **limits_package_windows.REMOVERS,
    **log_window.REMOVERS,
    **{each: remove for kind in KINDS.values() for each, remove in kind.removers.items()},
}
