"""`Jobs`, the layer on one transaction: each topic's operations, gathered."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from holdfast.engine.contract import Transaction
from holdfast.expiry import Remover
from holdfast.jobs.argument_types import check_argument_types
from holdfast.jobs.batches import BatchOperations
from holdfast.jobs.cancellation import CancelOperations
from holdfast.jobs.deadlines import DEADLINE_KIND, remove_expired
from holdfast.jobs.dependencies import DependencyOperations
from holdfast.jobs.failures import FailureOperations
from holdfast.jobs.ledger import Ledger
from holdfast.jobs.logs import LogOperations
from holdfast.jobs.pops import PopOperations
from holdfast.jobs.puts import PutOperations
from holdfast.jobs.queues import QueueOperations
from holdfast.jobs.rates import MakeLimiter
from holdfast.jobs.recurring import RecurringOperations
from holdfast.jobs.reports import ReportOperations
from holdfast.jobs.results import RESULT_KIND, ResultOperations, remove_result
from holdfast.jobs.retention import RETENTION_KIND, continue_retention
from holdfast.jobs.settings import SettingsOperations
from holdfast.jobs.settlements import SettlementOperations
from holdfast.jobs.statistics import StatisticsOperations
from holdfast.jobs.tags import TagOperations
from holdfast.jobs.throttles import ThrottleOperations
from holdfast.jobs.tracking import TrackingOperations
from holdfast.jobs.views import ViewOperations
from holdfast.jobs.worker_programs import (
    WORKER_PROGRAM_KIND,
    WorkerProgramOperations,
    remove_worker_program,
)
from holdfast.jobs.workers import WorkerOperations

REMOVERS: Final[Mapping[str, Remover]] = MappingProxyType(
    {
        DEADLINE_KIND: remove_expired,
        RESULT_KIND: remove_result,
        RETENTION_KIND: continue_retention,
        WORKER_PROGRAM_KIND: remove_worker_program,
    }
)


@check_argument_types
class Jobs(
    PutOperations,
    PopOperations,
    SettlementOperations,
    ReportOperations,
    BatchOperations,
    CancelOperations,
    FailureOperations,
    DependencyOperations,
    TagOperations,
    TrackingOperations,
    ResultOperations,
    LogOperations,
    RecurringOperations,
    ThrottleOperations,
    QueueOperations,
    WorkerOperations,
    WorkerProgramOperations,
    StatisticsOperations,
    SettingsOperations,
    ViewOperations,
):
    """The job queue on one transaction.

    Every operation that depends on the time takes it as `now`; without one it is the transaction's.
    """

    def __init__(self, tx: Transaction, limiter: MakeLimiter | None = None) -> None:
        """`limiter` makes the rate limiter of a transaction; queues with a rate need it."""
        self._ledger = Ledger(tx, limiter)
