"""Who may do what: users with passwords, tokens for programs, and roles for spaces and layers.

Where users live, in the directory of the store (space 0):

(0, "user", name)     -> User    a password (scrypt) or a token (SHA-256), never itself

A store without users lets everyone in; the server then listens on the loopback address alone.
"""

import hashlib
import hmac
import secrets
from typing import Final, Literal

import msgspec

from holdfast.engine.contract import Engine, Notice, Transaction
from holdfast.errors import BadInput, Forbidden, NotAuthenticated
from holdfast.keys import pack, prefix_range
from holdfast.limits import MAX_KNOWN_LOGINS
from holdfast.operations import Operation
from holdfast.store import DIRECTORY

Role = Literal["read", "write", "admin"]
ROLES: Final[dict[str, int]] = {"read": 0, "write": 1, "admin": 2}
_EVERYTHING: Final = "*"
USERS_CHANGED: Final = "users.changed"  # the topic of the notice that makes all servers look

# What changes the shape of a store, not its content.
_ADMIN: Final = frozenset(
    {"entities.apply", "entities.build", "entities.deploy", "entities.drop", "entities.repair"}
    | {"events.configure", "events.deploy", "events.withdraw"}
    | {"tables.add_index", "tables.build_index", "tables.create", "tables.drop"}
)


class Grant(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A role in one space and layer, or in all of them."""

    role: Role
    space: str = _EVERYTHING
    layer: str = _EVERYTHING

    def covers(self, role: Role, space: str, layer: str) -> bool:
        return (
            ROLES[self.role] >= ROLES[role]
            and self.space in (_EVERYTHING, space)
            and self.layer in (_EVERYTHING, layer)
        )


class User(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Someone who may come in."""

    name: str
    grants: tuple[Grant, ...]
    salt: bytes = b""
    password: bytes = b""  # scrypt of it
    token: bytes = b""  # SHA-256 of it: it is random, and long enough to need no more


class Identity(msgspec.Struct, frozen=True):
    """Who a connection or a request speaks for."""

    name: str
    grants: tuple[Grant, ...]

    def require(self, role: Role, *, space: str, layer: str = _EVERYTHING) -> None:
        """Raises `Forbidden` unless some grant covers it."""
        if not any(grant.covers(role, space, layer) for grant in self.grants):
            raise Forbidden(f"{self.name} may not {role} {layer} in the space {space!r}")

    def require_operation(self, operation: Operation, space: str) -> None:
        self.require(role_for(operation), space=space, layer=operation.layer)


def role_for(operation: Operation) -> Role:
    """The least role that may call it."""
    if operation.full_name in _ADMIN:
        return "admin"
    return "read" if operation.only_reads else "write"


EVERYONE: Final = Identity("everyone", (Grant(role="admin"),))


class Gate:
    """Knows the users of a store. Asked for each new connection and each HTTP request."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._secret = secrets.token_bytes(32)  # so that no password is remembered as it is
        self.reload()

    def reload(self) -> None:
        """Reads the users anew: when they have changed, and when the server is told to (SIGHUP)."""
        users = users_of(self._engine)
        self._users = {user.name: user for user in users}
        self._tokens = {user.token: user for user in users if user.token}
        self._known: dict[bytes, Identity] = {}
        self.version += 1

    version = 0  # grows with each reading: who has asked before should ask again

    @property
    def is_open(self) -> bool:
        """Whether everyone may come in."""
        return not self._users

    def anonymous(self) -> Identity | None:
        """Who someone is that has said no name."""
        return EVERYONE if self.is_open else None

    def renewed(self, identity: Identity | None) -> Identity | None:
        """Who a client is now that came in as `identity`: users are removed, and grants change."""
        if identity is None or self.is_open:
            return self.anonymous()
        user = self._users.get(identity.name)
        return None if user is None or identity is EVERYONE else Identity(user.name, user.grants)

    def recall(self, name: str, password: str) -> Identity | None:
        """Who that is, if it is known without the slow check of `by_password`."""
        if self.is_open:
            return EVERYONE
        return self._known.get(self._login(name, password)) or self._holder(password, name)

    def by_password(self, name: str, password: str) -> Identity:
        """Raises `NotAuthenticated` unless it is the password, or the token, of that user.

        Takes some 50 ms the first time: a door calls it in a thread.
        """
        known = self.recall(name, password)
        if known is not None:
            return known
        user = self._users.get(name)
        # An unknown user costs as much time as a wrong password, and tells no more.
        given = _scrypt(password, user.salt if user is not None else b"nobody")
        if user is None or not hmac.compare_digest(user.password, given):
            raise NotAuthenticated("no user has this name and password")
        identity = Identity(user.name, user.grants)
        if len(self._known) >= MAX_KNOWN_LOGINS:
            self._known.clear()
        self._known[self._login(name, password)] = identity
        return identity

    def by_token(self, token: str) -> Identity:
        """Raises `NotAuthenticated` unless it is a token that was given out."""
        if self.is_open:
            return EVERYONE
        identity = self._holder(token)
        if identity is None:
            raise NotAuthenticated("no user has this token")
        return identity

    def _holder(self, token: str, name: str = "") -> Identity | None:
        """Who was given that token. The search is by its digest, so its time tells nothing."""
        user = self._tokens.get(_digest(token))
        if user is None or name not in ("", "default", user.name):
            return None
        return Identity(user.name, user.grants)

    def _login(self, name: str, password: str) -> bytes:
        text = f"{len(name)} {name} {password}".encode(errors="surrogatepass")
        return hmac.digest(self._secret, text, "sha256")


def users_of(engine: Engine) -> list[User]:
    """All users, by name."""
    with engine.view(space=DIRECTORY) as view:
        pairs = view.scan(*prefix_range(pack(0, "user")))
        return [msgspec.msgpack.decode(value, type=User) for _, value in pairs]


def add_user(
    engine: Engine, name: str, password: str | None, grants: tuple[Grant, ...]
) -> str | None:
    """Adds or replaces a user. Without a password, makes a token and returns it."""
    if not name or not grants:
        raise BadInput("a user has a name and at least one grant")
    salt, token = secrets.token_bytes(16), None
    user = User(name=name, grants=grants)
    if password is None:
        token = secrets.token_urlsafe(32)
        user = msgspec.structs.replace(user, token=_digest(token))
    else:
        user = msgspec.structs.replace(user, salt=salt, password=_scrypt(password, salt))

    def work(tx: Transaction) -> None:
        tx.put(pack(0, "user", name), msgspec.msgpack.encode(user))
        tx.after_commit(Notice(USERS_CHANGED))

    engine.transact(work, space=DIRECTORY)
    return token


def remove_user(engine: Engine, name: str) -> bool:
    """Says whether there was one."""

    def work(tx: Transaction) -> bool:
        key = pack(0, "user", name)
        found = tx.get(key) is not None
        tx.delete(key)
        tx.after_commit(Notice(USERS_CHANGED))
        return found

    return engine.transact(work, space=DIRECTORY)


def _scrypt(password: str, salt: bytes) -> bytes:
    return hashlib.scrypt(password.encode(errors="surrogatepass"), salt=salt, n=2**14, r=8, p=1)


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode(errors="surrogatepass")).digest()
