"""Helps to write error messages: values as the caller wrote them, and the name that was meant."""

import json
import re
from base64 import b64encode
from collections.abc import Iterable, Mapping
from datetime import date, datetime
from decimal import Decimal
from difflib import get_close_matches
from typing import Any, Final
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


# msgspec's messages. A path begins with `$`, and names the field or element that is wrong.
_PATH: Final = re.compile(r"(?P<reason>.*) - at (?P<key>`key` in )?`\$(?P<path>.*)`", re.DOTALL)
WRONG_TYPE: Final = re.compile(r"Expected `(?P<expected>[^`]*)`, got `(?P<found>[^`]*)`", re.DOTALL)
_OUT_OF_RANGE: Final = re.compile(r"Expected `(?P<type>\w+)` (?P<operator>[<>]=) (?P<limit>\S+)")
_FIELD: Final = re.compile(r"Object (?P<problem>contains unknown|missing required) field `(.*)`")
_ENUM: Final = re.compile(r"Invalid enum value (.*)", re.DOTALL)
_TYPE_WORDS: Final = {
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "object": "an object",
    "array": "a list",
    "datetime": "a time",
    "ext": "an integer beyond 64 bits, a decimal, a UUID or a set",
}


def decoder_message(error: Exception) -> str:
    """Returns what msgspec says of a value, with a long name in it cut.

    The name of an unknown field is as long as its sender likes. Matching a pattern to megabytes of
    it would keep all threads waiting.

    >>> long = ValueError(f"Object contains unknown field `{'x' * 10**6}` - at `$.jobs[0]`")
    >>> decoder_message(long)[:35], decoder_message(long)[-20:]
    ('Object contains unknown field `xxxx', 'xx` - at `$.jobs[0]`')
    """
    message = str(error)
    if len(message) <= 2 * MAX_SHOWN_VALUE:
        return message
    return f"{message[:MAX_SHOWN_VALUE]}…{message[-MAX_SHOWN_VALUE:]}"


def misfit(error: Exception, whole: str) -> str:
    """Returns what msgspec says of a value that does not fit its type, in the words of our errors.

    >>> misfit(ValueError("Expected `str`, got `int` - at `$.jobs[0].queue`"), "the call")
    '`jobs[0].queue` must be text, not a whole number'
    >>> misfit(ValueError("Object contains unknown field `dely` - at `$[2]`"), "the list")
    '`[2]` has no field `dely`'
    >>> misfit(ValueError("Expected `int` >= 0"), "the count")
    'the count must be a whole number of at least 0'

    `whole` names the value where the message has no path.
    """
    reason, place = decoder_message(error), whole
    if (found := _PATH.fullmatch(reason)) is not None:
        reason = found["reason"]
        if path := found["path"].removeprefix("."):
            place = f"a key of `{path}`" if found["key"] else f"`{path}`"
    if (found := WRONG_TYPE.fullmatch(reason)) is not None:
        expected = " or ".join(_type_words(each) for each in found["expected"].split(" | "))
        return f"{place} must be {expected}, not {_type_words(found['found'])}"
    if (found := _OUT_OF_RANGE.fullmatch(reason)) is not None:
        bound = "at most" if found["operator"] == "<=" else "at least"
        return f"{place} must be {_type_words(found['type'])} of {bound} {found['limit']}"
    if (found := _FIELD.fullmatch(reason)) is not None:
        verb = "has no" if found["problem"].startswith("contains") else "needs the"
        return f"{place} {verb} field `{found[2]}`"
    if (found := _ENUM.fullmatch(reason)) is not None:
        return f"{place} can't be {found[1]}"
    return f"{place} does not fit: {reason}"


def _type_words(name: str) -> str:
    return _TYPE_WORDS.get(name, name)


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


def reason_of(message: str) -> str:
    r"""Returns a message in one line: the exception of a Python traceback, or the first line.

    >>> reason_of("Traceback (most recent call last):\n  File ...\nOSError: disk\nis full")
    'OSError: disk'
    >>> reason_of("no answer\nfrom ann")
    'no answer'
    """
    lines = message.strip().splitlines() or [""]
    if not lines[0].startswith("Traceback "):
        return lines[0]
    frames = [number for number, line in enumerate(lines) if line.startswith(" ")]
    return (lines[max(frames, default=0) + 1 :] or lines[-1:])[0]


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
