"""Integers beyond 2^53 as strings in JSON, for clients that ask for it.

JavaScript reads every JSON number as a double and silently changes larger integers. A client asks
over HTTP with `Accept: application/json; bigint=string`, over RESP with `BIGINT STRING`. Then
results have such integers as strings, and arguments may have any integer as a string.
"""

import re
from typing import Any, Final

import msgspec

SAFE_INTEGER: Final = 2**53 - 1

_LONG_NUMBER: Final = re.compile(rb"\d{16}")  # 2^53 has 16 digits: shorter numbers are below it
_JSON: Final = ("application/json", "application/*", "*/*")


def is_asked_for(accept: str) -> bool:
    """Returns whether an `Accept` header asks for strings.

    >>> is_asked_for("application/json; bigint=string"), is_asked_for("application/json")
    (True, False)
    """
    if "bigint" not in accept.lower():
        return False
    for each in accept.lower().split(","):
        name, *parameters = (part.strip() for part in each.split(";"))
        if name in _JSON and any(
            part.replace(" ", "").replace('"', "") == "bigint=string" for part in parameters
        ):
            return True
    return False


def encode(result: Any) -> bytes:
    """Returns the JSON of a result, with integers beyond 2^53 as strings.

    >>> encode({"small": 1, "large": 2**53})
    b'{"small":1,"large":"9007199254740992"}'
    """
    encoded = msgspec.json.encode(result)
    if _LONG_NUMBER.search(encoded) is None:
        return encoded
    return msgspec.json.encode(_with_strings(msgspec.to_builtins(result, str_keys=True)))


def _with_strings(value: Any) -> Any:
    kind = type(value)
    if kind is int:
        return value if -SAFE_INTEGER <= value <= SAFE_INTEGER else str(value)
    if kind is dict:
        return {name: _with_strings(each) for name, each in value.items()}
    if kind is list or kind is tuple:
        return [_with_strings(each) for each in value]
    return value
