"""Helps to write error messages: values as the caller wrote them, and the name that was meant."""

import json
from base64 import b64encode
from collections.abc import Iterable, Mapping
from datetime import date, datetime
from decimal import Decimal
from difflib import get_close_matches
from typing import Any
from uuid import UUID

from holdfast.limits import MAX_SHOWN_VALUE


def shown(value: Any) -> str:
    """Returns the text of a value for an error message, cut where it is long.

    >>> from decimal import Decimal
    >>> shown(Decimal("1.5")), shown("a"), shown(None), shown({"gt": Decimal("1.5")})
    ('1.5', "'a'", 'null', '{"gt": 1.5}')
    """
    try:
        if isinstance(value, str):
            return _shown_text(value)
        text = _text(value)
    except (ValueError, RecursionError):  # an integer of thousands of digits, or infinite nesting
        return f"a value of type {type(value).__name__}"
    if len(text) <= MAX_SHOWN_VALUE:
        return text
    return f"{text[:MAX_SHOWN_VALUE]}… ({len(text)} characters)"


def _shown_text(value: str) -> str:
    if len(value) <= MAX_SHOWN_VALUE:
        return repr(value)
    return f"{value[:MAX_SHOWN_VALUE]!r}… ({len(value)} characters)"


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """Returns `, did you mean 'limit'?` with the known name that is nearest to `name`, or "".

    >>> did_you_mean("limt", ["limit", "next"]), did_you_mean("x", ["limit"])
    (", did you mean 'limit'?", '')
    """
    near = nearest(name, known)
    return "" if near is None else f", did you mean {near!r}?"


def nearest(name: object, known: Iterable[str], *, likeness: float = 0.6) -> str | None:
    """Returns the known name that is most like `name`, letter case aside; None if none is."""
    by_lower = {each.lower(): each for each in known}
    found = get_close_matches(str(name)[:200].lower(), by_lower, 1, likeness)
    return by_lower[found[0]] if found else None


def no_attribute(owner: object, name: str, advice: Mapping[str, str]) -> AttributeError:
    """Returns the error for a missing attribute, with the one that was meant.

    `advice` is for names that something else has: a store's `transact` of a client, say.
    """
    said = f"{type(owner).__name__!r} object has no attribute {name!r}"
    if name in advice:
        return AttributeError(f"{said}. {advice[name]}")
    public = [each for each in dir(type(owner)) if not each.startswith("_")]
    return AttributeError(said if name.startswith("_") else f"{said}{did_you_mean(name, public)}")


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{_text(name)}: {_text(each)}' for name, each in value.items())}}}"
    if isinstance(value, list | tuple | set | frozenset):
        return f"[{', '.join(map(_text, value))}]"
    if isinstance(value, bytes | bytearray | memoryview):
        return f'"{b64encode(value).decode()}"'
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, Decimal | UUID | float):
        return str(value)
    if value is None or isinstance(value, bool | str):
        return json.dumps(value, ensure_ascii=False)
    return repr(value)


def counted(number: int, noun: str) -> str:
    """Returns a number with its noun, in the plural where needed.

    >>> counted(1, "job"), counted(2_000, "key"), counted(0, "entity"), counted(3, "index")
    ('1 job', '2,000 keys', '0 entities', '3 indexes')
    """
    return f"{number:,} {noun if number == 1 else _plural(noun)}"


def _plural(noun: str) -> str:
    if noun.endswith("y") and noun[-2:-1] not in "aeou":
        return f"{noun[:-1]}ies"
    return f"{noun}es" if noun.endswith(("x", "s", "ch")) else f"{noun}s"
