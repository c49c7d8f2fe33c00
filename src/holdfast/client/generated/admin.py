"""The operations of admin, for a client. Made by `make client` from operations.py."""

from collections.abc import Sequence
from typing import Any, Final

from holdfast.admin.records import (
    BackupReport,
    CheckStep,
    Inspection,
    NewUser,
    SpaceDump,
    SpaceList,
    Status,
    UserEntry,
)
from holdfast.client.calls import Call
from holdfast.client.faces import AwaitFace, CallFace, RecordFace
from holdfast.limits import DEFAULT_INSPECTED_KEYS

_ADD_USER: Final[Call[NewUser]] = Call("admin.add_user", "long", only_reads=False, result=NewUser)

_BACKUP: Final[Call[BackupReport]] = Call(
    "admin.backup", "long", only_reads=False, result=BackupReport
)

_CHECK: Final[Call[CheckStep]] = Call("admin.check", "long", only_reads=True, result=CheckStep)

_CHECK_DIRECTORY: Final[Call[CheckStep]] = Call(
    "admin.check_directory", "long", only_reads=True, result=CheckStep
)

_CHECK_ENGINE: Final[Call[list[str]]] = Call(
    "admin.check_engine", "long", only_reads=False, result=list[str]
)

_DROP_SPACE: Final[Call[bool]] = Call("admin.drop_space", "long", only_reads=False, result=bool)

_DUMP_SOME: Final[Call[SpaceDump]] = Call(
    "admin.dump_some", "long", only_reads=True, result=SpaceDump
)

_GRANT_USER: Final[Call[UserEntry]] = Call(
    "admin.grant_user", "long", only_reads=False, result=UserEntry
)

_INSPECT: Final[Call[Inspection]] = Call(
    "admin.inspect", "long", only_reads=True, result=Inspection
)

_LOAD_SOME: Final[Call[int]] = Call("admin.load_some", "long", only_reads=False, result=int)

_REMOVE_USER: Final[Call[bool]] = Call("admin.remove_user", "long", only_reads=False, result=bool)

_RENEW_TOKEN: Final[Call[NewUser]] = Call(
    "admin.renew_token", "long", only_reads=False, result=NewUser
)

_SPACES: Final[Call[SpaceList]] = Call("admin.spaces", "long", only_reads=True, result=SpaceList)

_STATUS: Final[Call[Status]] = Call("admin.status", "long", only_reads=True, result=Status)

_USERS: Final[Call[list[UserEntry]]] = Call(
    "admin.users", "long", only_reads=True, result=list[UserEntry]
)


def _add_user(
    name: str, grants: Sequence[str] = (), *, password: str | None = None, replace: bool = False
) -> dict[str, Any]:
    given: dict[str, Any] = {"name": name}
    if grants != ():
        given["grants"] = grants
    if password is not None:
        given["password"] = password
    if replace is not False:
        given["replace"] = replace
    return given


def _backup(target: str) -> dict[str, Any]:
    return {"target": target}


def _check(*, after: str | None = None) -> dict[str, Any]:
    given: dict[str, Any] = {}
    if after is not None:
        given["after"] = after
    return given


def _check_directory(*, after: str | None = None) -> dict[str, Any]:
    given: dict[str, Any] = {}
    if after is not None:
        given["after"] = after
    return given


def _drop_space(name: str) -> dict[str, Any]:
    return {"name": name}


def _dump_some(*, after: str | None = None) -> dict[str, Any]:
    given: dict[str, Any] = {}
    if after is not None:
        given["after"] = after
    return given


def _grant_user(name: str, grants: Sequence[str]) -> dict[str, Any]:
    return {"name": name, "grants": grants}


def _inspect(
    prefix: str = "", *, limit: int = DEFAULT_INSPECTED_KEYS, after: str | None = None
) -> dict[str, Any]:
    given: dict[str, Any] = {}
    if prefix != "":
        given["prefix"] = prefix
    if limit != DEFAULT_INSPECTED_KEYS:
        given["limit"] = limit
    if after is not None:
        given["after"] = after
    return given


def _load_some(lines: bytes) -> dict[str, Any]:
    return {"lines": lines}


def _remove_user(name: str) -> dict[str, Any]:
    return {"name": name}


def _renew_token(name: str, *, revoke: bool = False) -> dict[str, Any]:
    given: dict[str, Any] = {"name": name}
    if revoke is not False:
        given["revoke"] = revoke
    return given


class CalledAdmin(CallFace):
    """The operations of `Admin`, each a call to a server."""

    def add_user(
        self,
        name: str,
        grants: Sequence[str] = (),
        *,
        password: str | None = None,
        replace: bool = False,
    ) -> NewUser:
        """Adds a user; without a password, makes a token and tells it."""
        return self._call(_ADD_USER, _add_user(name, grants, password=password, replace=replace))

    def backup(self, target: str) -> BackupReport:
        """Writes a consistent copy of the whole store into the folder `target`, and verifies
        it.
        """
        return self._call(_BACKUP, _backup(target))

    def check(self, *, after: str | None = None) -> CheckStep:
        """Looks whether the layers of this space agree with themselves, a part at a time."""
        return self._call(_CHECK, _check(after=after))

    def check_directory(self, *, after: str | None = None) -> CheckStep:
        """Looks at the keys of the store that belong to no space: the directory of spaces,
        users.
        """
        return self._call(_CHECK_DIRECTORY, _check_directory(after=after))

    def check_engine(self) -> list[str]:
        """Reads everything that the engine stores; what is wrong with it, a sentence each."""
        return self._call(_CHECK_ENGINE, {})

    def drop_space(self, name: str) -> bool:
        """Removes a space with all that is in it, and says whether there was one."""
        return self._call(_DROP_SPACE, _drop_space(name))

    def dump_some(self, *, after: str | None = None) -> SpaceDump:
        """The next lines of a dump of this space, for those who can't hold a snapshot."""
        return self._call(_DUMP_SOME, _dump_some(after=after))

    def grant_user(self, name: str, grants: Sequence[str]) -> UserEntry:
        """Gives a user these grants in place of the old ones; password and token stay."""
        return self._call(_GRANT_USER, _grant_user(name, grants))

    def inspect(
        self, prefix: str = "", *, limit: int = DEFAULT_INSPECTED_KEYS, after: str | None = None
    ) -> Inspection:
        """The stored keys of this space that begin with the parts in `prefix`, and what they
        hold.
        """
        return self._call(_INSPECT, _inspect(prefix, limit=limit, after=after))

    def load_some(self, lines: bytes) -> int:
        """Puts whole lines of a dump into this space, in one transaction; returns how many
        keys.
        """
        return self._call(_LOAD_SOME, _load_some(lines))

    def remove_user(self, name: str) -> bool:
        """Removes a user, and says whether there was one."""
        return self._call(_REMOVE_USER, _remove_user(name))

    def renew_token(self, name: str, *, revoke: bool = False) -> NewUser:
        """Makes a new token for a user and tells it; the old one is refused at once."""
        return self._call(_RENEW_TOKEN, _renew_token(name, revoke=revoke))

    def spaces(self) -> SpaceList:
        """The names of all spaces of the store. Reads a key for each."""
        return self._call(_SPACES, {})

    def status(self) -> Status:
        """The store and this space at a glance."""
        return self._call(_STATUS, {})

    def users(self) -> list[UserEntry]:
        """The users of the store, by name."""
        return self._call(_USERS, {})


class AwaitedAdmin(AwaitFace):
    """The operations of `Admin`, each a coroutine."""

    async def add_user(
        self,
        name: str,
        grants: Sequence[str] = (),
        *,
        password: str | None = None,
        replace: bool = False,
    ) -> NewUser:
        """Adds a user; without a password, makes a token and tells it."""
        return await self._call(
            _ADD_USER, _add_user(name, grants, password=password, replace=replace)
        )

    async def backup(self, target: str) -> BackupReport:
        """Writes a consistent copy of the whole store into the folder `target`, and verifies
        it.
        """
        return await self._call(_BACKUP, _backup(target))

    async def check(self, *, after: str | None = None) -> CheckStep:
        """Looks whether the layers of this space agree with themselves, a part at a time."""
        return await self._call(_CHECK, _check(after=after))

    async def check_directory(self, *, after: str | None = None) -> CheckStep:
        """Looks at the keys of the store that belong to no space: the directory of spaces,
        users.
        """
        return await self._call(_CHECK_DIRECTORY, _check_directory(after=after))

    async def check_engine(self) -> list[str]:
        """Reads everything that the engine stores; what is wrong with it, a sentence each."""
        return await self._call(_CHECK_ENGINE, {})

    async def drop_space(self, name: str) -> bool:
        """Removes a space with all that is in it, and says whether there was one."""
        return await self._call(_DROP_SPACE, _drop_space(name))

    async def dump_some(self, *, after: str | None = None) -> SpaceDump:
        """The next lines of a dump of this space, for those who can't hold a snapshot."""
        return await self._call(_DUMP_SOME, _dump_some(after=after))

    async def grant_user(self, name: str, grants: Sequence[str]) -> UserEntry:
        """Gives a user these grants in place of the old ones; password and token stay."""
        return await self._call(_GRANT_USER, _grant_user(name, grants))

    async def inspect(
        self, prefix: str = "", *, limit: int = DEFAULT_INSPECTED_KEYS, after: str | None = None
    ) -> Inspection:
        """The stored keys of this space that begin with the parts in `prefix`, and what they
        hold.
        """
        return await self._call(_INSPECT, _inspect(prefix, limit=limit, after=after))

    async def load_some(self, lines: bytes) -> int:
        """Puts whole lines of a dump into this space, in one transaction; returns how many
        keys.
        """
        return await self._call(_LOAD_SOME, _load_some(lines))

    async def remove_user(self, name: str) -> bool:
        """Removes a user, and says whether there was one."""
        return await self._call(_REMOVE_USER, _remove_user(name))

    async def renew_token(self, name: str, *, revoke: bool = False) -> NewUser:
        """Makes a new token for a user and tells it; the old one is refused at once."""
        return await self._call(_RENEW_TOKEN, _renew_token(name, revoke=revoke))

    async def spaces(self) -> SpaceList:
        """The names of all spaces of the store. Reads a key for each."""
        return await self._call(_SPACES, {})

    async def status(self) -> Status:
        """The store and this space at a glance."""
        return await self._call(_STATUS, {})

    async def users(self) -> list[UserEntry]:
        """The users of the store, by name."""
        return await self._call(_USERS, {})


class RecordedAdmin(RecordFace):
    """The operations of `Admin`, kept to be sent together."""
