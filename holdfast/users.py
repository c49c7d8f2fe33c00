"""Who may come in: users with passwords, tokens for programs, and grants for spaces and layers.

Where users live, in the directory of the store (space 0):

(0, "user", name)     -> User    a password (scrypt) or a token (SHA-256), never itself
"""

import difflib
import hashlib
import secrets
from typing import Final

import msgspec

from holdfast.declarations import Role
from holdfast.engine.contract import Engine, Notice, Transaction
from holdfast.errors import BadInput
from holdfast.keys import pack, prefix_range

ROLES: Final[dict[str, int]] = {"read": 0, "write": 1, "admin": 2}
EVERYTHING: Final = "*"
# What a grant may be for: the layers, and `pubsub`, which is what clients publish themselves.
LAYERS: Final = ("*", "admin", "entities", "events", "jobs", "metrics", "pubsub", "tables")
USERS_CHANGED: Final = "users.changed"  # the topic of the notice that makes all servers look

_DIRECTORY: Final = pack(0)


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
        """The grant that `ROLE[:SPACE[:LAYER]]` writes; what is left out is all.

        >>> str(Grant.parse("write:shop"))
        'write:shop:*'
        """
        role, _, rest = text.partition(":")
        space, _, layer = rest.rpartition(":") if ":" in rest else (rest, "", "")
        if role not in ROLES:
            raise BadInput(f"{role!r} is no role", hint=f"There are {', '.join(ROLES)}.")
        if layer and layer not in LAYERS:
            near = difflib.get_close_matches(layer, LAYERS, 1)
            there = f"Did you mean {near[0]!r}?" if near else f"There are {', '.join(LAYERS)}."
            raise BadInput(
                f"{layer!r} is no layer",
                hint=f"{there} Behind a space with a colon in its name, write :* for all layers.",
            )
        return cls(role=role, space=space or EVERYTHING, layer=layer or EVERYTHING)  # type: ignore[arg-type]  # one of ROLES

    def __str__(self) -> str:
        return f"{self.role}:{self.space}:{self.layer}"


class User(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Someone who may come in."""

    name: str
    grants: tuple[Grant, ...]
    salt: bytes = b""
    password: bytes = b""  # scrypt of it
    token: bytes = b""  # SHA-256 of it: it is random, and long enough to need no more


def users_of(engine: Engine) -> list[User]:
    """All users, by name."""
    with engine.view(space=_DIRECTORY) as view:
        pairs = view.scan(*prefix_range(pack(0, "user")))
        return [msgspec.msgpack.decode(value, type=User) for _, value in pairs]


def add_user(
    engine: Engine, name: str, password: str | None, grants: tuple[Grant, ...]
) -> str | None:
    """Adds or replaces a user. Without a password, makes a token and returns it."""
    if not isinstance(name, str) or not name or not grants:
        raise BadInput("a user has a name, which is text, and at least one grant")
    if not isinstance(password, str | None):
        raise BadInput(f"a password is text, not {type(password).__name__}")
    salt, token = secrets.token_bytes(16), None
    user = User(name=name, grants=grants)
    if password is None:
        token = secrets.token_urlsafe(32)
        user = msgspec.structs.replace(user, token=digest_of(token))
    else:
        user = msgspec.structs.replace(user, salt=salt, password=scrypt_of(password, salt))

    def work(tx: Transaction) -> None:
        tx.put(pack(0, "user", name), msgspec.msgpack.encode(user))
        tx.after_commit(Notice(USERS_CHANGED))

    engine.transact(work, space=_DIRECTORY)
    return token


def remove_user(engine: Engine, name: str) -> bool:
    """Says whether there was one."""

    def work(tx: Transaction) -> bool:
        key = pack(0, "user", name)
        found = tx.get(key) is not None
        tx.delete(key)
        tx.after_commit(Notice(USERS_CHANGED))
        return found

    return engine.transact(work, space=_DIRECTORY)


def scrypt_of(password: str, salt: bytes) -> bytes:
    return hashlib.scrypt(password.encode(errors="surrogatepass"), salt=salt, n=2**14, r=8, p=1)


def digest_of(token: str) -> bytes:
    return hashlib.sha256(token.encode(errors="surrogatepass")).digest()
