"""Declarations: what an operation says about itself, once, next to its method.

Every public method of a layer carries an `@operation(...)`. Stores, the server, the generated
client, the reference, permissions and the command line read it from there (`operations.py` collects
them), so a method that has none does not load: nothing is served by accident.
"""

from collections.abc import Callable
from typing import Any, Literal, TypeAlias, TypeVar

import msgspec

__all__ = ["Declaration", "Role", "Scope", "declared", "operation", "public_name"]

Method = TypeVar("Method", bound=Callable[..., Any])
Role: TypeAlias = Literal["read", "write", "admin"]
Scope: TypeAlias = Literal["space", "store"]


class Declaration(msgspec.Struct, frozen=True, kw_only=True):
    """The facts about one operation that its signature and docstring do not say."""

    reads: bool = False  # has no visible effect, so it may be repeated
    waits: bool = False  # returns when something has happened
    local: bool = False  # takes or returns what can't be sent: for Python only
    role: Role = "write"  # the least role that may call it
    scope: Scope = "space"  # of the grant that it needs: one space, or the whole store
    name: str = ""  # its public name, if the method's own name makes sense only in Python
    judged_alone: bool = False  # elements of its list are checked one by one, by the method
    addressed: str = ""  # the argument whose events get the client's address
    holds_entities: bool = False  # its arguments or result hold properties of entities
    holds_values: bool = False  # its result holds values of the user's own types
    convert: tuple[str, Callable[[Any], Any]] | None = None  # elements of this argument


def operation(
    *, reads: bool = False, role: Role | None = None, **facts: Any
) -> Callable[[Method], Method]:
    """Declares a method as an operation; see `Declaration` for the options.

    The role is `read` for operations that read and `write` for others, unless another one is given.
    """
    declaration = Declaration(reads=reads, role=role or ("read" if reads else "write"), **facts)

    def declare(method: Method) -> Method:
        method.__operation__ = declaration  # type: ignore[attr-defined]  # found again by `declared`
        return method

    return declare


def declared(method: Callable[..., Any]) -> Declaration:
    """Returns the declaration of a method; raises if it has none."""
    found: Declaration | None = getattr(method, "__operation__", None)
    if found is None:
        raise TypeError(
            f"{method.__module__}.{method.__qualname__} has no @operation(...): declare what it "
            "does and who may call it, or let its name begin with an underscore"
        )
    return found


def public_name(argument: str) -> str:
    """Returns an argument's name outside Python, where `from` needs no trailing underscore."""
    return argument.removesuffix("_")
