"""The users of a store: their passwords, their tokens, and grants for spaces and layers.

Where users live, in the directory of the store (space 0):

(0, "user", name)     -> User    digests of a password (scrypt) and of a token (SHA-256)
"""

import hashlib
import secrets
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from holdfast.declarations import Role
from holdfast.defaults import LAYERS
from holdfast.engine.contract import Engine, Notice, Transaction
from holdfast.error_text import nearest
from holdfast.errors import BadInput, LastAdmin, UnknownUser, UserExists
from holdfast.keys import pack, prefix_range
from holdfast.limits import MAX_PASSWORD_BYTES, MAX_USER_NAME_BYTES
from holdfast.spaces import DIRECTORY

ROLES: Final[dict[str, int]] = {"read": 0, "write": 1, "admin": 2}
EVERYTHING: Final = "*"
# What a grant may be for: the layers, and `pubsub`, the messages that clients publish.
GRANTABLE: Final = tuple(sorted([EVERYTHING, "admin", "pubsub", *LAYERS]))
USERS_CHANGED: Final = "users.changed"  # the topic of the notice that makes all servers reload

_EXPECTED: Final = (
    "A grant is ROLE[:SPACE[:LAYER]], such as read, write:shop or read:*:metrics; "
    f"the roles are {', '.join(ROLES)}, and * is every space or layer."
)


class Grant(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A role in one space and layer, or in all of them."""

    role: Role
    space: str = EVERYTHING
    layer: str = EVERYTHING

    def covers(self, role: Role, space: str, layer: str) -> bool:
        return (
            ROLES[self.role] >= ROLES[role]
            and self.space in (EVERYTHING, space)
            and self.layer in (EVERYTHING, layer)
        )

    @classmethod
    def parse(cls, text: str) -> "Grant":
        """Reads a grant that is written `ROLE[:SPACE[:LAYER]]`; what is left out is all of them.

        A part that is written must not be empty: `write:` is what `write:$SPACE` becomes if the
        variable is not set, and would otherwise be a grant for every space.

        >>> str(Grant.parse("write:shop"))
        'write:shop:*'
        """
        if not isinstance(text, str):
            raise BadInput(f"a grant must be text, not {type(text).__name__}", hint=_EXPECTED)
        role, divider, rest = text.partition(":")
        space, second, layer = rest.rpartition(":") if ":" in rest else (rest, "", "")
        if role not in ROLES:
            raise BadInput(f"the grant {text!r} has no role", hint=_EXPECTED)
        if (divider and not space.strip()) or (second and not layer.strip()):
            missing = "space" if not space.strip() else "layer"
            raise BadInput(f"the grant {text!r} has an empty {missing}", hint=_EXPECTED)
        if layer and layer not in GRANTABLE:
            near = nearest(layer, GRANTABLE)
            there = f"Did you mean {near!r}?" if near else f"There are {', '.join(GRANTABLE)}."
            raise BadInput(
                f"the grant {text!r} is for the layer {layer!r}, which does not exist",
                hint=f"{there} After a space with a colon in its name, write :* for all layers.",
            )
        return cls(role=role, space=space or EVERYTHING, layer=layer or EVERYTHING)  # type: ignore[arg-type]  # one of ROLES

    def __str__(self) -> str:
        return f"{self.role}:{self.space}:{self.layer}"


class User(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A person or a program that may use the store through a server."""

    name: str
    grants: tuple[Grant, ...]
    salt: bytes = b""
    password: bytes = b""  # its scrypt digest
    token: bytes = b""  # its SHA-256: a token is random, and long enough to need no more

    @property
    def is_admin(self) -> bool:
        """Returns whether this user may change users and everything else."""
        return any(grant.covers("admin", EVERYTHING, "admin") for grant in self.grants)

    @property
    def can_log_in(self) -> bool:
        return bool(self.password or self.token)

    @property
    def login(self) -> str:
        """Returns what this user can log in with, in words."""
        ways = [("password", self.password), ("token", self.token)]
        return " and ".join(word for word, secret in ways if secret) or "nothing"


def users_of(engine: Engine) -> list[User]:
    """Returns all users, by name."""
    with engine.view(space=DIRECTORY) as view:
        pairs = view.scan(*prefix_range(pack(0, "user")))
        return [msgspec.msgpack.decode(value, type=User) for _, value in pairs]


def add_user(
    engine: Engine,
    name: str,
    password: str | None,
    grants: tuple[Grant, ...],
    *,
    replace: bool = True,
    keep_admin: bool = False,
) -> str | None:
    """Adds a user. Without a password, creates a token and returns it.

    A user of that name is replaced, or with `replace=False` raises `UserExists`. With `keep_admin`,
    raises `LastAdmin` if nobody would be left who may change users.
    """
    _refuse_bad_name(name)
    if password is not None:
        _refuse_bad_password(password)
    if not grants:
        raise BadInput(f"the user {name!r} has no grant", hint=_EXPECTED)
    token, user = None, User(name=name, grants=grants)
    if password is None:
        token = secrets.token_urlsafe(32)
        user = msgspec.structs.replace(user, token=digest_of(token))
    else:
        salt = secrets.token_bytes(16)
        user = msgspec.structs.replace(user, salt=salt, password=scrypt_of(password, salt))

    def change(before: User | None) -> User:
        if before is not None and not replace:
            raise UserExists(
                f"the user {name!r} already exists, with {_grants_text(before.grants)}"
            )
        return user

    _change(engine, name, change, keep_admin)
    return token


def grant_user(
    engine: Engine, name: str, grants: tuple[Grant, ...], *, keep_admin: bool = False
) -> User:
    """Replaces the grants of a user, and keeps password and token."""
    if not grants:
        raise BadInput(f"the user {name!r} would have no grant", hint=_EXPECTED)

    def change(before: User | None) -> User:
        return msgspec.structs.replace(_known(name, before), grants=grants)

    return _known(name, _change(engine, name, change, keep_admin))


def renew_token(
    engine: Engine, name: str, *, revoke: bool = False, keep_admin: bool = False
) -> str | None:
    """Creates a new token for a user and returns it; the old one is refused from now on.

    With `revoke=True` it creates none. With `keep_admin`, raises `LastAdmin` if nobody would be
    left who can log in and change users.
    """
    token = None if revoke else secrets.token_urlsafe(32)
    digest = b"" if token is None else digest_of(token)

    def change(before: User | None) -> User:
        return msgspec.structs.replace(_known(name, before), token=digest)

    _change(engine, name, change, keep_admin)
    return token


def remove_user(engine: Engine, name: str, *, keep_admin: bool = False) -> bool:
    """Removes a user, and returns whether there was one."""
    found = False

    def change(before: User | None) -> None:
        nonlocal found
        found = before is not None

    _change(engine, name, change, keep_admin)
    return found


def _change(
    engine: Engine, name: str, change: Callable[[User | None], User | None], keep_admin: bool
) -> User | None:
    """Stores the result of `change` for a user, and notifies all servers. None removes the user."""

    def work(tx: Transaction) -> User | None:
        key = pack(0, "user", name)
        value = tx.get(key)
        before = None if value is None else msgspec.msgpack.decode(value, type=User)
        after = change(before)
        if keep_admin and before is not None and before.is_admin:
            _refuse_losing_last_admin(tx, before, after)
        if after is None:
            tx.delete(key)
        else:
            tx.put(key, msgspec.msgpack.encode(after))
        tx.after_commit(Notice(USERS_CHANGED))
        return after

    return engine.transact(work, space=DIRECTORY)


def _refuse_losing_last_admin(tx: Transaction, before: User, after: User | None) -> None:
    """Raises if `before` is the last admin, and `after` is not one."""
    if after is not None and after.is_admin and after.can_log_in:
        return
    pairs = tx.scan(*prefix_range(pack(0, "user")))
    users = [msgspec.msgpack.decode(value, type=User) for _, value in pairs]
    others = (user for user in users if user.name != before.name)
    if not any(user.is_admin and user.can_log_in for user in others):
        raise LastAdmin(f"{before.name!r} is the last user who may change users")


def _known(name: str, user: User | None) -> User:
    if user is None:
        raise UnknownUser(f"there is no user {name!r}")
    return user


def parse_grants(texts: Sequence[str]) -> tuple[Grant, ...]:
    """Reads a list of grants; see `Grant.parse`."""
    if isinstance(texts, str | bytes):
        raise BadInput(f"grants must be a list of texts, not {texts!r:.100}", hint=_EXPECTED)
    return tuple(Grant.parse(text) for text in texts)


def _grants_text(grants: tuple[Grant, ...]) -> str:
    return f"the grant{'s' if len(grants) > 1 else ''} {', '.join(map(str, grants))}"


def _refuse_bad_name(name: object) -> None:
    """Raises unless `name` can be typed, printed and sent in every protocol."""
    if (
        not isinstance(name, str)
        or not name.strip()
        or not name.isprintable()
        or ":" in name
        or len(name.encode(errors="surrogatepass")) > MAX_USER_NAME_BYTES
    ):
        raise BadInput(
            f"{name!r:.100} is not a valid user name",
            hint=f"Use 1 to {MAX_USER_NAME_BYTES} bytes of printable characters, without a colon, "
            "which ends the name in HTTP.",
        )


def _refuse_bad_password(password: object) -> None:
    if not isinstance(password, str):
        raise BadInput(f"a password must be text, not {type(password).__name__}")
    if not password.strip():
        raise BadInput(
            "the password must not be empty", hint="Give one, or None to have a token made."
        )
    if len(password.encode(errors="surrogatepass")) > MAX_PASSWORD_BYTES:
        raise BadInput(f"the password has more than {MAX_PASSWORD_BYTES} bytes")


def scrypt_of(password: str, salt: bytes) -> bytes:
    return hashlib.scrypt(password.encode(errors="surrogatepass"), salt=salt, n=2**14, r=8, p=1)


def digest_of(token: str) -> bytes:
    return hashlib.sha256(token.encode(errors="surrogatepass")).digest()
