"""Converts Flux's bodies and parameters to events and arguments of the events layer."""

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

__all__ = ["FluxError", "FluxParameters", "event_of", "events_in", "leading_integer"]

MAX_SCORE: Final = 2**31 - 1
_LEADING_INTEGER: Final = re.compile(r"\s*([+-]?[0-9]+(?:_[0-9]+)*)")
# What Ruby's `Integer` accepts: a sign, a base, and digits, with single underscores in between.
_INTEGER: Final = re.compile(
    r"""([+-]?) (?:
        0x (?P<base16> [0-9a-f]+(?:_[0-9a-f]+)*)
      | 0b (?P<base2> [01]+(?:_[01]+)*)
      | 0[o_]? (?P<base8> [0-7]+(?:_[0-7]+)*)
      | (?:0d)? (?P<base10> 0|[1-9][0-9]*(?:_[0-9]+)*)
    )""",
    re.VERBOSE | re.IGNORECASE | re.ASCII,
)
_OPERATIONS: Final = ("add", "remove", "count_frequency")
# Attributes that form the runtime handler of an event; Flux's older code spells one differently.
_HANDLER_ATTRIBUTES: Final = {
    "@targets": "targets",
    "@add": "add",
    "@remove": "remove",
    "@count_frequency": "count_frequency",
    "@max_stored_values": "max_stored_values",
    "@maxStoredValues": "max_stored_values",
}


class FluxError(Exception):
    """A request that Flux's API refuses, with its status."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.message = message
        self.status = status


def leading_integer(text: str) -> int:
    """Returns the number that Ruby's `to_i` reads.

    >>> [leading_integer(text) for text in ("2abc", "2.9", "-3", "1_000", "x", "٣")]
    [2, 2, -3, 1000, 0, 0]
    """
    found = _LEADING_INTEGER.match(text)
    return int(found[1].replace("_", "")[:20]) if found else 0


class FluxParameters:
    """The parameters of a request; an empty one counts as absent."""

    def __init__(self, pairs: Sequence[tuple[str, str]]) -> None:
        self._pairs = pairs

    def keys(self) -> list[str]:
        """Returns `keys[]`, repeated or not; `keys=a` is one key."""
        found = [value for name, value in self._pairs if name in ("keys[]", "keys") and value]
        return list(dict.fromkeys(found))

    def text(self, *names: str) -> str | None:
        """Returns the first of several spellings that is given."""
        given = dict(self._pairs)
        return next((given[name] for name in names if given.get(name)), None)

    def integer(self, *names: str) -> int | None:
        text = self.text(*names)
        return None if text is None else leading_integer(text)

    def has(self, name: str) -> bool:
        """Returns whether a parameter is given, even if it is empty."""
        return any(each == name for each, _ in self._pairs)

    def since(self) -> int | None:
        """Returns the time of `min_score`, in milliseconds; a negative one is no bound."""
        score = self.integer("min_score")
        return None if score is None or score < 0 else 1_000 * score + 999

    def until(self) -> int | None:
        score = self.integer("max_score", "maxScore")
        return None if score is None else 1_000 * score + 999

    def attributes(self) -> dict[str, Any]:
        """Returns all parameters as attributes of an event; `name[]` makes a list."""
        found: dict[str, Any] = {}
        for name, value in self._pairs:
            if name.endswith("[]"):
                found.setdefault(name[:-2], []).append(value)
            else:
                found[name] = value
        return found


def events_in(body: bytes) -> Iterator[tuple[Any, Any]]:
    """Yields the name and the attributes of each event of a body."""
    try:
        given = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise FluxError(f"the events are not JSON: {error}") from None
    if isinstance(given, dict):
        yield from given.items()
        return
    if not isinstance(given, list):
        raise FluxError("events are a list of [name, attributes]")
    for each in given:
        if isinstance(each, list) and each:
            yield each[0], each[1] if len(each) > 1 else None
        else:
            yield each, ()  # not an event: the error names its position


def event_of(name: Any, attributes: Any, address: str, *, allows_zero: bool = False) -> Any:
    """Returns an event for the events layer; anything else is passed on, and the layer refuses
    it."""
    if attributes is None:
        attributes = {}
    if not isinstance(attributes, dict):
        return {"name": name, "attributes": attributes}
    event: dict[str, Any] = {
        "name": name,
        "attributes": {
            each: v for each, v in attributes.items() if each not in _HANDLER_ATTRIBUTES
        },
    }
    if isinstance(attributes.get("@score"), dict):
        del event["attributes"]["@score"]  # not a valid score: it counts as absent
    if address:
        event["ip"] = address
    score = _score(attributes.get("@score"))
    if score is not None and (score > 0 or (allows_zero and score == 0)) and score <= MAX_SCORE:
        event["score"] = score
    handler = {
        _HANDLER_ATTRIBUTES[each]: v
        for each, v in attributes.items()
        if each in _HANDLER_ATTRIBUTES
    }
    if "targets" in handler and any(operation in handler for operation in _OPERATIONS):
        event["handlers"] = [handler]
    return event


def _score(given: Any) -> int | None:
    """Returns a score: an integer, a truncated float, or text that Ruby's `Integer` reads.

    >>> [_score(given) for given in (6, 7.9, " 9 ", "0x10", "010", "1_0", "08", "6.5", "٣")]
    [6, 7, 9, 16, 8, 10, None, None, None]
    """
    if isinstance(given, bool) or given is None:
        return None
    if isinstance(given, int):
        return given
    if isinstance(given, float):
        return int(given) if abs(given) < 2**53 else None
    if not isinstance(given, str) or len(given) > 40:
        return None
    found = _INTEGER.fullmatch(given.strip())
    if found is None or found.lastgroup is None:
        return None
    number = int(found[found.lastgroup], int(found.lastgroup.removeprefix("base")))
    return -number if found[1] == "-" else number
