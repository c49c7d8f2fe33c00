"""The protocols that `admin` needs: a store, one of its spaces, and the server that has it open."""

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

    def setting_entries(self) -> list[SettingEntry]:
        """Returns the settings, and where each came from."""

    def figures(self) -> dict[str, int]:
        """Returns the server's own figures, such as its connections."""


class ParentStore(Protocol):
    """The store that a space belongs to."""

    engine: Engine
    keeps_admin: bool  # whether users are changed over the network
    server: Server | None

    @property
    def engine_name(self) -> str:
        """The kind of engine: lmdb, postgres or valkey."""

    @property
    def maintenance(self) -> MaintenanceRuns:
        """The checks and backups that run in the background."""

    def spaces(self) -> list[str]:
        """Returns the names of all spaces."""

    def page_of_spaces(self, *, after: str | None, limit: int) -> list[tuple[str, bytes]]:
        """Returns up to `limit` spaces after the name `after`, with their prefixes."""

    def has_space(self, name: str) -> bool:
        """Returns whether there is a space of that name."""

    def drop_space(self, name: str, *, progress: Callable[[int], None] | None = None) -> None:
        """Removes a space with everything in it."""

    def backup(self, target: str | Path) -> Backup:
        """Writes a consistent copy into the folder `target`, and verifies it."""


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
