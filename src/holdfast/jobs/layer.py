"""`Jobs`, the layer on one transaction: each topic's operations, gathered."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from holdfast.engine.contract import Transaction
from holdfast.expiry import Remover
from holdfast.jobs.canceling import Canceling
from holdfast.jobs.dependencies import Depending
from holdfast.jobs.failures import Failing
from holdfast.jobs.ledger import Ledger
from holdfast.jobs.logs import Logging
from holdfast.jobs.popping import Popping
from holdfast.jobs.putting import Putting
from holdfast.jobs.queues import Queueing
from holdfast.jobs.recurring import Recurring
from holdfast.jobs.reporting import Reporting
from holdfast.jobs.results import RESULT_KIND, Returning, remove_result
from holdfast.jobs.retention import RETENTION_KIND, continue_retention
from holdfast.jobs.settings import Configuring
from holdfast.jobs.settling import Settling
from holdfast.jobs.showing import Showing
from holdfast.jobs.statistics import Measuring
from holdfast.jobs.tags import Tagging
from holdfast.jobs.throttles import Throttling
from holdfast.jobs.tracking import Tracking
from holdfast.jobs.typed import typed
from holdfast.jobs.workers import Working

REMOVERS: Final[Mapping[str, Remover]] = MappingProxyType(
    {RESULT_KIND: remove_result, RETENTION_KIND: continue_retention}
)


@typed
class Jobs(
    Putting,
    Popping,
    Settling,
    Reporting,
    Canceling,
    Failing,
    Depending,
    Tagging,
    Tracking,
    Returning,
    Logging,
    Recurring,
    Throttling,
    Queueing,
    Working,
    Measuring,
    Configuring,
    Showing,
):
    """The job queue on one transaction.

    Every operation that depends on the time takes it as `now`; without one it is the transaction's.
    """

    def __init__(self, tx: Transaction) -> None:
        self._ledger = Ledger(tx)
