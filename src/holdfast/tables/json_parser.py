"""Parses JSON from outside: integers stay exact, other numbers are `Decimal` until their type is
known.
"""

import json
from decimal import Decimal, InvalidOperation
from typing import Any, Final

import msgspec

from holdfast.errors import InvalidTableJson, RowTooLarge
from holdfast.limits import MAX_BODY_BYTES, MAX_JSON_DEPTH

_MAX_INTEGER_DIGITS: Final = 4_000  # no type accepts more; Python's own limit is higher
_MAX_DIGITS: Final = 100_000  # of a number that is kept until its type is known


def parse_json(body: bytes) -> Any:
    """Returns the value of a JSON text, within the limits on size and depth.

    >>> parse_json(b'{"price": 1.40, "count": 3}')
    {'price': Decimal('1.40'), 'count': 3}
    """
    if len(body) > MAX_BODY_BYTES:
        raise RowTooLarge(f"The body has {len(body)} bytes, at most {MAX_BODY_BYTES} are accepted")
    try:
        value = _DECODER.decode(body)
    except InvalidTableJson:
        raise
    except (msgspec.MsgspecError, ValueError, RecursionError):
        value = _parse_leniently(body)
    if body.count(b"[") + body.count(b"{") > MAX_JSON_DEPTH:
        _check_depth(value, MAX_JSON_DEPTH)
    return value


def _parse_leniently(body: bytes) -> Any:
    """Parses a body that the fast parser refuses.

    It accepts lone surrogates, so that a later check can name the attribute, and its errors give
    the position.
    """
    try:
        return json.loads(
            body.decode(),
            parse_float=exact_number,
            parse_int=_integer,
            parse_constant=_refuse_constant,
        )
    except UnicodeDecodeError:
        raise InvalidTableJson("The body is not UTF-8") from None
    except RecursionError:
        raise InvalidTableJson(f"The body is nested deeper than {MAX_JSON_DEPTH}") from None
    except ValueError as error:
        raise InvalidTableJson(f"The body is not JSON: {error}") from None


def exact_number(text: str) -> Decimal:
    """Returns a number with fraction or exponent, exactly as it was written."""
    if abs(float(text)) == float("inf"):
        raise InvalidTableJson(f"The number {text[:40]} is beyond the range of a double")
    try:
        return Decimal(text)
    except InvalidOperation:  # an exponent with 20 digits
        raise InvalidTableJson(f"The number {text[:40]} has too long an exponent") from None


def _integer(text: str) -> int | Decimal:
    """Returns the integer; if it is too long for every type, a `Decimal`, which they refuse."""
    if len(text) > _MAX_DIGITS:
        raise InvalidTableJson(f"A number has {len(text)} digits, at most {_MAX_DIGITS} are read")
    return int(text) if len(text) <= _MAX_INTEGER_DIGITS else Decimal(text)


def _refuse_constant(name: str) -> Any:
    raise InvalidTableJson(f"{name} is not JSON")


def _check_depth(value: Any, left: int) -> None:
    if not isinstance(value, dict | list):
        return
    if left == 0:
        raise InvalidTableJson(f"The body is nested deeper than {MAX_JSON_DEPTH}")
    for each in value.values() if isinstance(value, dict) else value:
        _check_depth(each, left - 1)


_DECODER: Final = msgspec.json.Decoder(float_hook=exact_number)
