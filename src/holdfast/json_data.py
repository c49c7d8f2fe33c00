"""Checks that data survives JSON unchanged.

An encoder is lenient: it writes a datetime, a set or a UUID as something that JSON has, and the
reader gets a text or a list. Such data is refused before it is stored.
"""

import dataclasses
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from math import isfinite
from typing import Any, Final, NamedTuple
from uuid import UUID

import msgspec

__all__ = ["JsonProblem", "encode", "json_problem_in"]

encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder().decode
_PLAIN: Final = (str, bool, int, type(None))


class JsonProblem(NamedTuple):
    """A part of some data that JSON can't represent: what it is, where, and what to write."""

    what: str
    path: str
    advice: str

    def __str__(self) -> str:
        return f"{self.path} is {self.what}"


def json_problem_in(value: Any, name: str, *, by_parts: bool = False) -> JsonProblem | None:
    """Returns the first part of `value` that would come back as something else, if there is one.

    With `by_parts` it looks at each part, and never decodes all of them in one call. A tuple may
    come back as a list, and an enumeration's member that is a text or a number as that.

    >>> print(json_problem_in({"seen": [{1, 2}]}, "data"))
    data["seen"][0] is a set
    >>> json_problem_in({"at": (1, 2.5), "ok": None}, "data")
    """
    try:
        if not by_parts and _decode(encode(value)) == value:  # the usual case, and faster
            return None
    except (TypeError, ValueError, RecursionError):
        pass  # found below, with its path
    return _first_problem(value, name)


def _first_problem(value: Any, path: str) -> JsonProblem | None:
    if isinstance(value, _PLAIN):
        return None
    if isinstance(value, float):
        if isfinite(value):
            return None
        return JsonProblem(f"the float {value}", path, "JSON has no such number; put None there")
    if isinstance(value, dict):
        for key, part in value.items():
            if not isinstance(key, str):
                return _key_problem(key, path)
            if (found := _first_problem(part, f"{path}[{_quoted(key)}]")) is not None:
                return found
        return None
    if isinstance(value, list | tuple):
        for place, part in enumerate(value):
            if (found := _first_problem(part, f"{path}[{place}]")) is not None:
                return found
        return None
    return JsonProblem(_named(value), path, _advice(value))


def _key_problem(key: Any, path: str) -> JsonProblem:
    advice = "keys of JSON objects are texts; write str(key), or a list of pairs"
    return JsonProblem(f"a dict with the key {key!r:.40}, {_named(key)}", path, advice)


def _quoted(key: str) -> str:
    return '"' + key[:40] + '"'


def _named(value: Any) -> str:
    name = type(value).__name__
    if name == "bytes":
        return name
    return f"an {name}" if name[:1] in "aeiouAEIO" else f"a {name}"


def _advice(value: Any) -> str:
    match value:
        case datetime() | date() | time():
            return "put `value.isoformat()` there, and read it with `fromisoformat`"
        case timedelta():
            return "put `value.total_seconds()` there"
        case set() | frozenset():
            return "put `sorted(value)` there, and make a set of it again"
        case bytes() | bytearray() | memoryview():
            return "put `base64.b64encode(value).decode()` there, or `value.decode()` if it is text"
        case Decimal() | UUID():
            return f"put `str(value)` there, and read it with `{type(value).__name__}(text)`"
        case Enum():
            return "put `value.value` there"
        case msgspec.Struct():
            return "put `msgspec.to_builtins(value)` there"
        case Mapping():
            return "put `dict(value)` there"
    if dataclasses.is_dataclass(value):
        return "put `dataclasses.asdict(value)` there"
    return "put a dict, a list, a text, a number, a bool or None there"


# Their former names, which programs may import.
Unfit = JsonProblem
unfit_in = json_problem_in
