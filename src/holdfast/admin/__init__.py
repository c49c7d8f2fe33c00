"""Administers a store: its contents, its checks, its copies and its users."""

from holdfast.admin.home import Home, Server
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

__all__ = [
    "BackupEntry",
    "BackupReport",
    "CheckStep",
    "DefinedMetric",
    "Home",
    "Inspection",
    "KeyEntry",
    "Maintenance",
    "MaintenanceRuns",
    "NewUser",
    "Origin",
    "Server",
    "ServerFacts",
    "SettingEntry",
    "SpaceList",
    "SpaceSize",
    "Status",
    "StoreAdmin",
    "UserEntry",
]
