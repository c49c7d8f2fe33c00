"""Tables: typed rows with hash, range and static keys, secondary indexes, retention and TTL.

The behaviour is that of RESTBase's table storage. `layout.py` says where everything is stored.
"""

from holdfast.tables.background_steps import REMOVERS
from holdfast.tables.domains import EVERY_DOMAIN, Domains, EveryDomainTables
from holdfast.tables.layer import Tables
from holdfast.tables.records import (
    BatchResult,
    CreateResult,
    DeleteResult,
    Facts,
    ImportReport,
    IndexProgress,
    Page,
    PutResult,
    Refusal,
    StepResult,
)
from holdfast.tables.store import StoreTables
from holdfast.tables.versions import Versions

__all__ = [
    "EVERY_DOMAIN",
    "REMOVERS",
    "BatchResult",
    "CreateResult",
    "DeleteResult",
    "Domains",
    "EveryDomainTables",
    "Facts",
    "ImportReport",
    "IndexProgress",
    "Page",
    "PutResult",
    "Refusal",
    "StepResult",
    "StoreTables",
    "Tables",
    "Versions",
]
