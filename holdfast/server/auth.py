"""Who may do what at a server: the gate that knows its users, and the roles that operations need.

A store without users lets everyone in; the server then listens on the loopback address alone.
"""

import hmac
import secrets
from typing import Final

import msgspec

from holdfast.declarations import Role
from holdfast.engine.contract import Engine
from holdfast.errors import Forbidden, NotAuthenticated
from holdfast.limits import MAX_KNOWN_LOGINS
from holdfast.operations import Operation
from holdfast.users import EVERYTHING, Grant, digest_of, scrypt_of, users_of


class Identity(msgspec.Struct, frozen=True):
    """Who a connection or a request speaks for."""

    name: str
    grants: tuple[Grant, ...]

    def may(self, role: Role, *, space: str, layer: str) -> bool:
        """Whether some grant covers it."""
        return any(grant.covers(role, space, layer) for grant in self.grants)

    def require(self, role: Role, *, space: str, layer: str = EVERYTHING) -> None:
        """Raises `Forbidden` unless some grant covers it."""
        if not self.may(role, space=space, layer=layer):
            raise Forbidden(f"{self.name} may not {role} {layer} in the space {space!r}")

    def require_operation(self, operation: Operation, space: str) -> None:
        declaration = operation.declaration
        space = EVERYTHING if declaration.scope == "store" else space
        self.require(declaration.role, space=space, layer=operation.layer)


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
        given = scrypt_of(password, user.salt if user is not None else b"nobody")
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
        user = self._tokens.get(digest_of(token))
        if user is None or name not in ("", "default", user.name):
            return None
        return Identity(user.name, user.grants)

    def _login(self, name: str, password: str) -> bytes:
        text = f"{len(name)} {name} {password}".encode(errors="surrogatepass")
        return hmac.digest(self._secret, text, "sha256")
