"""Administers a store: its contents, its checks, its copies and its users."""

from holdfast.admin.contracts import ParentStore, Server
from holdfast.admin.maintenance import MaintenanceRuns
from holdfast.admin.records import (
    BackupEntry,
    BackupReport,
    CheckStep,
    DefinedMetric,
    Inspection,
    KeyEntry,
    Maintenance,
    NewUser,
    Origin,
    ServerFacts,
    SettingEntry,
    SpaceList,
    SpaceSize,
    Status,
    UserEntry,
)
from holdfast.admin.store import StoreAdmin

Home = ParentStore  # its former name, which programs may import

__all__ = [
    "BackupEntry",
    "BackupReport",
    "CheckStep",
    "DefinedMetric",
    "Inspection",
    "KeyEntry",
    "Maintenance",
    "MaintenanceRuns",
    "NewUser",
    "Origin",
    "ParentStore",
    "Server",
    "ServerFacts",
    "SettingEntry",
    "SpaceList",
    "SpaceSize",
    "Status",
    "StoreAdmin",
    "UserEntry",
]
