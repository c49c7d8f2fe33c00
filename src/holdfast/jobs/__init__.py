"""The job queue: priorities, locks, retries, schedules, dependencies, recurring jobs, statistics.

`Jobs(tx)` is the layer on one transaction, `StoreJobs` the same on a store, one transaction for
each call.
"""

from holdfast.jobs.arguments import JsonText
from holdfast.jobs.bulk import BulkAction
from holdfast.jobs.failures import Match
from holdfast.jobs.imports import (
    Imported,
    ImportedDay,
    ImportedJob,
    ImportedRecurring,
    ImportedTimes,
    JobsDigest,
)
from holdfast.jobs.layer import REMOVERS, Jobs
from holdfast.jobs.logs import LogLine
from holdfast.jobs.queue_figures import QueueFigures, TimesFigures
from holdfast.jobs.records import (
    Batch,
    DeadLetters,
    Failure,
    HistoryEntry,
    Job,
    JobPage,
    NewJob,
    QueueCounts,
    QueueStats,
    RecurringJob,
    Spread,
    StatsRow,
    StatsTable,
    Throttle,
    Times,
    TrackedJobs,
    WorkerCounts,
    WorkerJobs,
)
from holdfast.jobs.reports import Refusal, Report, Reported, Take
from holdfast.jobs.search import JobSearch, SearchPage
from holdfast.jobs.steps import Signal, Step
from holdfast.jobs.store import StoreJobs
from holdfast.jobs.worker_programs import WorkerProgram, WorkerSlot

__all__ = [
    "REMOVERS",
    "Batch",
    "BulkAction",
    "DeadLetters",
    "Failure",
    "HistoryEntry",
    "Imported",
    "ImportedDay",
    "ImportedJob",
    "ImportedRecurring",
    "ImportedTimes",
    "Job",
    "JobPage",
    "JobSearch",
    "Jobs",
    "JobsDigest",
    "JsonText",
    "LogLine",
    "Match",
    "NewJob",
    "QueueCounts",
    "QueueFigures",
    "QueueStats",
    "RecurringJob",
    "Refusal",
    "Report",
    "Reported",
    "SearchPage",
    "Signal",
    "Spread",
    "StatsRow",
    "StatsTable",
    "Step",
    "StoreJobs",
    "Take",
    "Throttle",
    "Times",
    "TimesFigures",
    "TrackedJobs",
    "WorkerCounts",
    "WorkerJobs",
    "WorkerProgram",
    "WorkerSlot",
]
