"""The contracts that the operations of `admin` need: a store, one of its spaces, and its server."""

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from holdfast.admin.maintenance import MaintenanceRuns
from holdfast.admin.records import SettingEntry
from holdfast.engine.contract import Backup, Engine
from holdfast.entities import StoreEntities
from holdfast.events import StoreEvents
from holdfast.jobs import StoreJobs
from holdfast.metrics import StoreMetrics
from holdfast.tables import StoreTables


class Server(Protocol):
    """The server that a store is open in, if there is one."""

    backups: Path | None  # the folder that backups go to

    def setting_entries(self) -> list[SettingEntry]: ...

    def figures(self) -> dict[str, int]: ...


class Home(Protocol):
    """The store that a space belongs to."""

    engine: Engine
    keeps_admin: bool  # whether users are changed over the network
    server: Server | None

    @property
    def engine_name(self) -> str: ...

    @property
    def maintenance(self) -> MaintenanceRuns: ...

    def spaces(self) -> list[str]: ...

    def page_of_spaces(self, *, after: str | None, limit: int) -> list[tuple[str, bytes]]: ...

    def has_space(self, name: str) -> bool: ...

    def drop_space(self, name: str, *, progress: Callable[[int], None] | None = None) -> None: ...

    def backup(self, target: str | Path) -> Backup: ...


class Layers(Protocol):
    """The layers of a space."""

    name: str

    @property
    def entities(self) -> StoreEntities: ...

    @property
    def events(self) -> StoreEvents: ...

    @property
    def jobs(self) -> StoreJobs: ...

    @property
    def metrics(self) -> StoreMetrics: ...

    @property
    def tables(self) -> StoreTables: ...
