"""The job queue: priorities, locks, retries, schedules, dependencies, recurring jobs, statistics.

`Jobs(tx)` is the layer on one transaction, `StoreJobs` the same on a store, one transaction for
each call.
"""

from holdfast.jobs.arguments import JsonText
from holdfast.jobs.failures import Match
from holdfast.jobs.layer import REMOVERS, Jobs
from holdfast.jobs.long import StoreJobs
from holdfast.jobs.records import (
    DeadLetters,
    Failure,
    HistoryEntry,
    Job,
    JobPage,
    NewJob,
    QueueCounts,
    QueueStats,
    RecurringJob,
    Throttle,
    Times,
    TrackedJobs,
    WorkerCounts,
    WorkerJobs,
)

__all__ = [
    "REMOVERS",
    "DeadLetters",
    "Failure",
    "HistoryEntry",
    "Job",
    "JobPage",
    "Jobs",
    "JsonText",
    "Match",
    "NewJob",
    "QueueCounts",
    "QueueStats",
    "RecurringJob",
    "StoreJobs",
    "Throttle",
    "Times",
    "TrackedJobs",
    "WorkerCounts",
    "WorkerJobs",
]
