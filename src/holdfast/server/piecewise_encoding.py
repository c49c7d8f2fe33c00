"""Encodes the records of a large result one by one.

One call of msgspec holds Python's lock until it returns, a tenth of a second for 60 MB, and the
event loop waits for it even if the call is made in a thread. Between two calls the loop gets the
lock. On the loop itself results are small (see `turn_view.py`), and encoded in one call.
"""

from asyncio import _get_running_loop  # None in a thread, without an error
from collections.abc import Callable
from typing import Any, Final

import msgspec

_SMALL: Final = frozenset({str, int, float, bool, bytes, type(None)})  # not worth a call for each

Encode = Callable[[Any], bytes]


def in_pieces(encode: Encode, join: Encode) -> Encode:
    """Returns an encoder that, in a thread, calls `encode` for each record of a list or a page, and
    `join` for the whole, in which the records are encoded already."""

    def encode_result(result: Any) -> bytes:
        if _get_running_loop() is None:
            divided = _divided(result, encode)
            if divided is not result:
                return join(divided)
        return encode(result)

    return encode_result


def _divided(value: Any, encode: Encode) -> Any:
    """Returns a list with its records encoded, or a page with such lists; or the value itself."""
    if type(value) is list:
        return _encoded(value, encode) if _is_divided(value) else value
    if isinstance(value, dict):
        found = {name: each for name, each in value.items() if _is_divided(each)}
        return {**value, **_all_encoded(found, encode)} if found else value
    if isinstance(value, msgspec.Struct):
        found = {name: getattr(value, name) for name in value.__struct_fields__}
        found = {name: each for name, each in found.items() if _is_divided(each)}
        return msgspec.structs.replace(value, **_all_encoded(found, encode)) if found else value
    return value


def _is_divided(value: Any) -> bool:
    return type(value) is list and len(value) > 1 and type(value[0]) not in _SMALL


def _encoded(records: list[Any], encode: Encode) -> list[msgspec.Raw]:
    return [msgspec.Raw(encode(record)) for record in records]


def _all_encoded(lists: dict[str, list[Any]], encode: Encode) -> dict[str, list[msgspec.Raw]]:
    return {name: _encoded(records, encode) for name, records in lists.items()}
