"""How a server sends an error, and how a client builds it again."""

import sys
from collections.abc import Mapping
from typing import Any

from holdfast.errors.base import HoldfastError


def at_position(error: BaseException, position: int) -> None:
    """Notes which operation of a batch has failed."""
    error.position = position  # type: ignore[attr-defined]  # most are a HoldfastError, not all
    error.add_note(f"at position {position} of the batch")


def facts_of(error: HoldfastError) -> dict[str, Any]:
    """Returns all that `error_from_wire` needs to build the error again, as plain values."""
    # Those of the error itself: what its class says by default is known on the other side.
    facts = {name: vars(error).get(name) for name in error.facts}
    return {
        "error": type(error).__name__,
        "message": _text(error.message),
        "hint": _text(error.hint),
        "position": error.position,
        "facts": {
            name: _text(fact) if isinstance(fact, str) else fact
            for name, fact in facts.items()
            if fact is not None
        },
    }


def _text(said: str) -> str:
    """Replaces characters that UTF-8 can't encode."""
    return said.encode(errors="replace").decode()


def error_from_wire(code: str, given: Mapping[str, Any]) -> HoldfastError:
    """Builds the error that `facts_of` described; an unknown class by its code."""
    kind = _known(given.get("error", ""), code)
    message = given.get("message", "")
    error: HoldfastError = kind.__new__(kind, message)
    error.args = (message,)
    error.message = message
    if given.get("hint", "") != kind.hint:
        error.hint = given.get("hint", "")
    for name, make in kind.facts.items():
        fact = given.get("facts", {}).get(name)
        if fact is not None or not hasattr(kind, name):  # a class may have a default for it
            setattr(error, name, None if fact is None else make(fact))
    position = given.get("position")
    if position is not None:
        at_position(error, position)
    return error


def _known(name: str, code: str) -> type[HoldfastError]:
    """Returns the class of that name, or else the first one with that code."""
    classes = vars(sys.modules[__package__])
    named = classes.get(name)
    if isinstance(named, type) and issubclass(named, HoldfastError):
        return named
    for each in classes.values():
        if isinstance(each, type) and issubclass(each, HoldfastError) and each.code == code:
            return each
    return HoldfastError
