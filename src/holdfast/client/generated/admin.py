"""The operations of admin, for a client. Made by `make client` from operations.py."""

from collections.abc import Sequence
from typing import Final

from holdfast.admin.records import (
    BackupEntry,
    BackupReport,
    CheckStep,
    Inspection,
    Maintenance,
    NewUser,
    ServerFacts,
    SpaceDump,
    SpaceList,
    SpaceSize,
    Status,
    UserEntry,
)
from holdfast.client.calls import Call
from holdfast.client.layers import AwaitedLayer, CalledLayer, RecordedLayer, awaited
from holdfast.limits import DEFAULT_INSPECTED_KEYS, MAX_BACKUP_PIECE_BYTES


class CalledAdmin(CalledLayer):
    """The operations of `Admin`, called."""

    def add_user(
        self,
        name: str,
        grants: Sequence[str] = (),
        *,
        password: str | None = None,
        replace: bool = False,
    ) -> NewUser:
        """Adds a user; without a password, makes a token and returns it."""
        return self._call(_ADD_USER, name, grants, password, replace)

    def backup(self, target: str) -> BackupReport:
        """Writes a consistent copy of the whole store into the folder `target`, and verifies
        it.
        """
        return self._call(_BACKUP, target)

    def backup_read(
        self, name: str, *, offset: int = 0, count: int = MAX_BACKUP_PIECE_BYTES
    ) -> bytes:
        """Returns up to `count` bytes of a backup in the server's folder, from `offset` on."""
        return self._call(_BACKUP_READ, name, offset, count)

    def backup_remove(self, name: str) -> bool:
        """Removes a backup that was made for a download; returns whether it existed."""
        return self._call(_BACKUP_REMOVE, name)

    def backup_start(self, target: str) -> Maintenance:
        """Starts a backup of the whole store in the background, as `backup` makes it."""
        return self._call(_BACKUP_START, target)

    def backups(self) -> list[BackupEntry]:
        """Returns the newest backups in the folder that the server was given, newest first."""
        return self._call(_BACKUPS)

    def check(self, *, after: str | None = None) -> CheckStep:
        """Checks the layers of this space for contradictions, a part at a time."""
        return self._call(_CHECK, after)

    def check_directory(self, *, after: str | None = None) -> CheckStep:
        """Checks the keys of the store that belong to no space: the directory of spaces, and
        users.
        """
        return self._call(_CHECK_DIRECTORY, after)

    def check_engine(self) -> list[str]:
        """Reads everything that the engine stores, and returns the problems, a sentence each."""
        return self._call(_CHECK_ENGINE)

    def check_start(self, *, engine: bool = False) -> Maintenance:
        """Starts a check of this space in the background; with `engine`, of the engine first."""
        return self._call(_CHECK_START, engine)

    def count_keys(self) -> int | None:
        """Returns how many keys this space has, or None if counting them would read over a
        million.
        """
        return self._call(_COUNT_KEYS)

    def drop_space(self, name: str) -> bool:
        """Removes a space and everything in it; returns whether it existed."""
        return self._call(_DROP_SPACE, name)

    def dump_some(self, *, after: str | None = None) -> SpaceDump:
        """Returns the next lines of a dump of this space, for callers that can't hold a
        snapshot.
        """
        return self._call(_DUMP_SOME, after)

    def grant_user(self, name: str, grants: Sequence[str]) -> UserEntry:
        """Replaces the grants of a user; password and token stay."""
        return self._call(_GRANT_USER, name, grants)

    def inspect(
        self, prefix: str = "", *, limit: int = DEFAULT_INSPECTED_KEYS, after: str | None = None
    ) -> Inspection:
        """Returns the stored keys of this space that begin with the parts in `prefix`, and
        what they hold.
        """
        return self._call(_INSPECT, prefix, limit, after)

    def load_some(self, lines: bytes) -> int:
        """Loads whole lines of a dump into this space, in one transaction; returns how many."""
        return self._call(_LOAD_SOME, lines)

    def maintenance(self) -> list[Maintenance]:
        """Returns the checks and backups of this process that run or have ended, newest first."""
        return self._call(_MAINTENANCE)

    def maintenance_stop(self, id: str) -> bool:
        """Stops a check; returns whether it ran. A backup can't be stopped. Reads no key."""
        return self._call(_MAINTENANCE_STOP, id)

    def remove_user(self, name: str) -> bool:
        """Removes a user; returns whether it existed."""
        return self._call(_REMOVE_USER, name)

    def renew_token(self, name: str, *, revoke: bool = False) -> NewUser:
        """Makes a new token for a user and returns it; the old one is refused at once."""
        return self._call(_RENEW_TOKEN, name, revoke)

    def server(self) -> ServerFacts:
        """Returns the settings of the server that answers, where each came from, and its
        figures.
        """
        return self._call(_SERVER)

    def space_sizes(
        self, names: Sequence[str] | None = None, *, after: str | None = None, limit: int = 50
    ) -> list[SpaceSize]:
        """Returns the sizes of `names`, or of up to `limit` spaces after the name `after`."""
        return self._call(_SPACE_SIZES, names, after, limit)

    def spaces(self, *, after: str | None = None, limit: int | None = None) -> SpaceList:
        """Returns the names of all spaces of the store, or up to `limit` after the name
        `after`.
        """
        return self._call(_SPACES, after, limit)

    def status(self) -> Status:
        """Returns the store and this space at a glance."""
        return self._call(_STATUS)

    def users(self) -> list[UserEntry]:
        """Returns the users of the store, by name. Reads 1 key for each."""
        return self._call(_USERS)


class AwaitedAdmin(AwaitedLayer):
    """The operations of `Admin`, each a coroutine."""

    add_user = awaited(CalledAdmin.add_user)
    backup = awaited(CalledAdmin.backup)
    backup_read = awaited(CalledAdmin.backup_read)
    backup_remove = awaited(CalledAdmin.backup_remove)
    backup_start = awaited(CalledAdmin.backup_start)
    backups = awaited(CalledAdmin.backups)
    check = awaited(CalledAdmin.check)
    check_directory = awaited(CalledAdmin.check_directory)
    check_engine = awaited(CalledAdmin.check_engine)
    check_start = awaited(CalledAdmin.check_start)
    count_keys = awaited(CalledAdmin.count_keys)
    drop_space = awaited(CalledAdmin.drop_space)
    dump_some = awaited(CalledAdmin.dump_some)
    grant_user = awaited(CalledAdmin.grant_user)
    inspect = awaited(CalledAdmin.inspect)
    load_some = awaited(CalledAdmin.load_some)
    maintenance = awaited(CalledAdmin.maintenance)
    maintenance_stop = awaited(CalledAdmin.maintenance_stop)
    remove_user = awaited(CalledAdmin.remove_user)
    renew_token = awaited(CalledAdmin.renew_token)
    server = awaited(CalledAdmin.server)
    space_sizes = awaited(CalledAdmin.space_sizes)
    spaces = awaited(CalledAdmin.spaces)
    status = awaited(CalledAdmin.status)
    users = awaited(CalledAdmin.users)


class RecordedAdmin(RecordedLayer):
    """The operations of `Admin`, kept to be sent together."""


_ADD_USER: Final = Call("admin.add_user", "long", CalledAdmin.add_user)
_BACKUP: Final = Call("admin.backup", "long", CalledAdmin.backup)
_BACKUP_READ: Final = Call("admin.backup_read", "long", CalledAdmin.backup_read, only_reads=True)
_BACKUP_REMOVE: Final = Call("admin.backup_remove", "long", CalledAdmin.backup_remove)
_BACKUP_START: Final = Call("admin.backup_start", "long", CalledAdmin.backup_start)
_BACKUPS: Final = Call("admin.backups", "long", CalledAdmin.backups, only_reads=True)
_CHECK: Final = Call("admin.check", "long", CalledAdmin.check, only_reads=True)
_CHECK_DIRECTORY: Final = Call(
    "admin.check_directory", "long", CalledAdmin.check_directory, only_reads=True
)
_CHECK_ENGINE: Final = Call("admin.check_engine", "long", CalledAdmin.check_engine)
_CHECK_START: Final = Call("admin.check_start", "long", CalledAdmin.check_start)
_COUNT_KEYS: Final = Call("admin.count_keys", "long", CalledAdmin.count_keys, only_reads=True)
_DROP_SPACE: Final = Call("admin.drop_space", "long", CalledAdmin.drop_space)
_DUMP_SOME: Final = Call("admin.dump_some", "long", CalledAdmin.dump_some, only_reads=True)
_GRANT_USER: Final = Call("admin.grant_user", "long", CalledAdmin.grant_user)
_INSPECT: Final = Call("admin.inspect", "long", CalledAdmin.inspect, only_reads=True)
_LOAD_SOME: Final = Call("admin.load_some", "long", CalledAdmin.load_some)
_MAINTENANCE: Final = Call("admin.maintenance", "long", CalledAdmin.maintenance, only_reads=True)
_MAINTENANCE_STOP: Final = Call("admin.maintenance_stop", "long", CalledAdmin.maintenance_stop)
_REMOVE_USER: Final = Call("admin.remove_user", "long", CalledAdmin.remove_user)
_RENEW_TOKEN: Final = Call("admin.renew_token", "long", CalledAdmin.renew_token)
_SERVER: Final = Call("admin.server", "long", CalledAdmin.server, only_reads=True)
_SPACE_SIZES: Final = Call("admin.space_sizes", "long", CalledAdmin.space_sizes, only_reads=True)
_SPACES: Final = Call("admin.spaces", "long", CalledAdmin.spaces, only_reads=True)
_STATUS: Final = Call("admin.status", "long", CalledAdmin.status, only_reads=True)
_USERS: Final = Call("admin.users", "long", CalledAdmin.users, only_reads=True)
