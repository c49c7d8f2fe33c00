"""Authentication and authorisation: the users of a server, and the roles that operations need.

A store without users lets everyone in, if only its own machine can reach the server or if it was
told to. Any other server refuses everyone while the store has no users: at its start, and when the
last user is removed while it runs, by any process.
"""

import hmac
import logging
import secrets
from collections.abc import Callable
from typing import Final, TypeAlias

import msgspec

from holdfast.declarations import Role
from holdfast.engine.contract import Engine
from holdfast.errors import Forbidden, NotAuthenticated
from holdfast.limits import MAX_KNOWN_LOGINS
from holdfast.operations import Operation
from holdfast.users import EVERYTHING, Grant, User, digest_of, scrypt_of, users_of

_log = logging.getLogger(__name__)

# Raises if the client of a call that takes long may no longer make it: users and grants change.
Recheck: TypeAlias = Callable[[], object]


def _in_words(role: Role, space: str, layer: str) -> str:
    """
    >>> _in_words("write", "shop", "jobs"), _in_words("admin", "shop", "admin")
    ("write to jobs in the space 'shop'", "administer the space 'shop'")
    """
    verb = {"read": "read", "write": "write to", "admin": "administer"}[role]
    where = "the whole store" if space == EVERYTHING else f"the space {space!r}"
    return f"{verb} {where}" if layer in ("admin", EVERYTHING) else f"{verb} {layer} in {where}"


def nothing_to_check() -> None:
    """Is the `Recheck` of callers without users."""


class Identity(msgspec.Struct, frozen=True):
    """The identity of a connection or a request."""

    name: str
    grants: tuple[Grant, ...]

    def may(self, role: Role, *, space: str, layer: str) -> bool:
        """Returns whether a grant covers it."""
        return any(grant.covers(role, space, layer) for grant in self.grants)

    def require(self, role: Role, *, space: str, layer: str = EVERYTHING) -> None:
        """Raises `Forbidden` unless a grant covers it."""
        if not self.may(role, space=space, layer=layer):
            raise Forbidden(f"{self.name} may not {_in_words(role, space, layer)}")

    def require_operation(self, operation: Operation, space: str) -> None:
        declaration = operation.declaration
        space = EVERYTHING if declaration.scope == "store" else space
        self.require(declaration.role, space=space, layer=operation.layer)


EVERYONE: Final = Identity("everyone", (Grant(role="admin"),))


class Authenticator:
    """Knows the users of a store. Asked for each new connection and each HTTP request."""

    version = 0  # increases whenever the users are read; sessions then check again
    is_stale = False  # the users have changed, but could not be read

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._secret = secrets.token_bytes(32)  # so that no password is kept in plain text
        self._may_be_open = True
        self.reload()

    def reload(self) -> None:
        """Reads the users again: when they have changed, and on SIGHUP."""
        self.is_stale = True
        users = users_of(self._engine)
        self.is_stale = False
        self._take(users)

    def refresh(self, users: list[User]) -> None:
        """Replaces the known users by the stored ones, if they differ."""
        self.is_stale = False
        if users != list(self._users.values()):
            self._take(users)

    def _take(self, users: list[User]) -> None:
        self._users = {user.name: user for user in users}
        self._tokens = {user.token: user for user in users if user.token}
        self._has_passwords = any(user.password for user in users)
        self._known: dict[bytes, Identity] = {}
        self.version += 1
        self._report()

    def require_login(self) -> None:
        """Refuses everyone while the store has no users, because other machines can reach this
        server."""
        self._may_be_open = False
        self.version += 1
        self._report()

    def _report(self) -> None:
        if not self._users and not self._may_be_open:
            _log.error("the store has no users, so this server refuses everyone: %s", _ADD_ONE)

    @property
    def is_open(self) -> bool:
        """Returns whether everyone may come in."""
        return not self._users and self._may_be_open

    def anonymous(self) -> Identity | None:
        """Returns the identity of an unauthenticated client; None if it must log in."""
        return EVERYONE if self.is_open else None

    def refusal(self, message: str) -> NotAuthenticated:
        """Returns the error for a client that is not logged in."""
        if self._users:
            return NotAuthenticated(message)
        return NotAuthenticated(
            f"{message}, and the store has no users: this server refuses everyone", hint=_ADD_ONE
        )

    def current_identity(self, identity: Identity | None) -> Identity | None:
        """Returns the current identity of a client that logged in as `identity`: users and grants
        change."""
        if identity is None or self.is_open:
            return self.anonymous()
        user = self._users.get(identity.name)
        return None if user is None or identity is EVERYONE else Identity(user.name, user.grants)

    def recheck(self, identity: Identity) -> Identity:
        """Returns what a client that logged in as `identity` may do now, for calls that take long.
        Raises `NotAuthenticated` if its user was removed."""
        now = self.current_identity(identity)
        if now is None:
            raise self.refusal("the user was removed")
        return now

    def session_key(self, name: str) -> bytes | None:
        """Returns the key that signs a user's browser sessions; None for a user who can't log in.

        It is derived from the digests of password and token: when one of them changes, all sessions
        end. Without any, it would be a key that everyone can derive.
        """
        user = self._users.get(name)
        if user is None or not user.can_log_in:
            return None
        digests = b"%b %b %b" % (user.salt, user.password, user.token)
        return hmac.digest(b"holdfast session", digests, "sha256")

    # --- logging in ------------------------------------------------------------------------------

    def with_token(self, name: str, secret: str) -> Identity | None:
        """Returns the identity of that name whose token the secret is. No guess finds a token, so
        it may be asked at any rate."""
        if self.is_open:
            return EVERYONE
        return self._holder(secret, name) if name else None

    def with_known_password(self, name: str, password: str) -> Identity | None:
        """Returns the identity if this password of that name was right before."""
        return self._known.get(self.login_key(name, password))

    def by_token(self, token: str) -> Identity:
        """Returns the identity that a token belongs to. Raises `NotAuthenticated` if nobody has
        it."""
        if self.is_open:
            return EVERYONE
        identity = self._holder(token)
        if identity is None:
            raise self.refusal("no user has this token")
        return identity

    def may_have_password(self, name: str, password: str) -> bool:
        """Returns whether any user could log in with this name. If nobody has a password, no guess
        needs a check."""
        return self._has_passwords and bool(name) and bool(password)

    def user_with_password(self, name: str) -> User | None:
        """Returns the user of that name, if it has a password."""
        user = self._users.get(name)
        return user if user is not None and user.password else None

    def admit(self, user: User, password: str) -> Identity:
        """Remembers that this is the password of `user`, as `has_password` has found.

        Raises `NotAuthenticated` if the user was changed or removed since.
        """
        if self._users.get(user.name) != user:
            raise self.refusal("no user has this name and password")
        if len(self._known) >= MAX_KNOWN_LOGINS:
            self._known.clear()
        identity = Identity(user.name, user.grants)
        self._known[self.login_key(user.name, password)] = identity
        return identity

    def _holder(self, token: str, name: str = "") -> Identity | None:
        """Returns the holder of that token, found by its digest, so that the time taken reveals
        nothing."""
        user = self._tokens.get(digest_of(token)) if token else None
        if user is None or name not in ("", "default", user.name):
            return None
        return Identity(user.name, user.grants)

    def login_key(self, name: str, password: str) -> bytes:
        """Returns a digest of a name and a password that reveals neither."""
        text = f"{len(name)} {name} {password}".encode(errors="surrogatepass")
        return hmac.digest(self._secret, text, "sha256")


def has_password(user: User, password: str) -> bool:
    """Returns whether that is the password of `user`. Takes some 50 ms, so it runs in a thread."""
    return hmac.compare_digest(user.password, scrypt_of(password, user.salt))


_ADD_ONE: Final = "add one with `holdfast user add NAME --grant ROLE`, on the store itself"
