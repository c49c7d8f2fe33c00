"""`Jobs`, the layer on one transaction: each topic's operations, gathered."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from holdfast.declarations import operation
from holdfast.engine.contract import Transaction
from holdfast.expiry import Remover
from holdfast.jobs.argument_types import check_argument_types
from holdfast.jobs.batches import BatchOperations
from holdfast.jobs.breakdown import BreakdownOperations
from holdfast.jobs.bulk import BULK_KIND, BulkOperations, continue_bulk
from holdfast.jobs.cancellation import CancelOperations
from holdfast.jobs.deadlines import DEADLINE_KIND, remove_expired
from holdfast.jobs.dependencies import RELEASE_KIND, DependencyOperations, continue_release
from holdfast.jobs.failures import FailureOperations
from holdfast.jobs.imports import ImportOperations
from holdfast.jobs.ledger import Ledger
from holdfast.jobs.logs import LogOperations
from holdfast.jobs.pops import PopOperations
from holdfast.jobs.puts import PutOperations
from holdfast.jobs.queue_figures import FigureOperations
from holdfast.jobs.queues import QueueOperations
from holdfast.jobs.rates import MakeLimiter
from holdfast.jobs.recurring import RecurringOperations
from holdfast.jobs.reports import ReportOperations
from holdfast.jobs.results import RESULT_KIND, ResultOperations, remove_result
from holdfast.jobs.retention import RETENTION_KIND, continue_retention
from holdfast.jobs.search import SearchOperations
from holdfast.jobs.settings import SettingsOperations
from holdfast.jobs.settlements import SettlementOperations
from holdfast.jobs.statistics import StatisticsOperations
from holdfast.jobs.steps import StepOperations
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

if TYPE_CHECKING:
    from holdfast.jobs.v1 import JobsV1

REMOVERS: Final[Mapping[str, Remover]] = MappingProxyType(
    {
        BULK_KIND: continue_bulk,
        DEADLINE_KIND: remove_expired,
        RELEASE_KIND: continue_release,
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
    BulkOperations,
    SearchOperations,
    CancelOperations,
    FailureOperations,
    DependencyOperations,
    TagOperations,
    TrackingOperations,
    ResultOperations,
    LogOperations,
    StepOperations,
    RecurringOperations,
    ThrottleOperations,
    QueueOperations,
    WorkerOperations,
    WorkerProgramOperations,
    StatisticsOperations,
    BreakdownOperations,
    FigureOperations,
    ImportOperations,
    SettingsOperations,
    ViewOperations,
):
    """The job queue on one transaction.

    Every operation that depends on the time takes it as `now`, by default the transaction's time.
    """

    def __init__(self, tx: Transaction, limiter: MakeLimiter | None = None) -> None:
        """`limiter` makes the rate limiter of a transaction; queues with a rate need it."""
        self._ledger = Ledger(tx, limiter)

    def _renew(self) -> None:
        """Forgets what belongs to one transaction, before the next one in the same buffer of a
        group."""
        self._ledger.begin_next_transaction()

    @property
    def v1(self) -> "JobsV1":
        """Returns the calls of version 1 of Qless, on this transaction."""
        from holdfast.jobs.v1 import JobsV1

        return JobsV1(self._ledger.tx, self._ledger.limiter)

    @operation()
    def v1_call(
        self, name: str, arguments: Sequence[Any] = (), *, named: dict[str, Any] | None = None
    ) -> Any:
        """Runs a call of version 1 of Qless: `v1_call("put", ["queue", "id", "{}", 0])`.

        `client.jobs.v1` uses it. Costs what the call does.
        """
        from holdfast.jobs.v1 import call_v1

        return call_v1(self.v1, name, arguments, named or {})
