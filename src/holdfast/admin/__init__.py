"""Looking after a store: what is in it, whether it is sound, copies of it, and who may use it."""

from holdfast.admin.records import (
    BackupReport,
    CheckStep,
    DefinedMetric,
    Inspection,
    KeyEntry,
    NewUser,
    SpaceList,
    Status,
    UserEntry,
)
from holdfast.admin.store import Home, StoreAdmin

__all__ = [
    "BackupReport",
    "CheckStep",
    "DefinedMetric",
    "Home",
    "Inspection",
    "KeyEntry",
    "NewUser",
    "SpaceList",
    "Status",
    "StoreAdmin",
    "UserEntry",
]
