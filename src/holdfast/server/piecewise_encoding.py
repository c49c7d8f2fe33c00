"""Encodes the records of a large result one by one.

One call of msgspec holds Python's lock until it returns, a tenth of a second for 60 MB, and the
event loop waits for it even if the call is made in a thread. Between two calls the loop gets the
lock, and the pieces are joined without it. On the loop itself results are small (see
`turn_view.py`), and encoded in one call.
"""

import os
from asyncio import _get_running_loop  # None in a thread, without an error
from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from holdfast.server.pacing import pause

_SMALL: Final = frozenset({str, int, float, bool, bytes, type(None)})  # not worth a call for each
_MARK_BYTES: Final = 16
_FEW: Final = 16  # records, of which each may be a page

Encode = Callable[[Any], bytes]


def in_pieces(encode: Encode, join: Encode) -> Encode:
    """Returns an encoder that, in a thread, calls `encode` for each record of a list or a page, and
    `join`, which encodes in the same format, for what surrounds them."""

    def encode_result(result: Any) -> bytes:
        if _get_running_loop() is None:
            pieces: list[bytes] = []
            mark = _new_mark()
            frame = _frame(result, mark, encode, pieces)
            if pieces:
                return _filled(join(frame), mark, pieces)
        return encode(result)

    return encode_result


def encode_around(
    pieces: Sequence[bytes], surround: Callable[[list[msgspec.Raw]], Any], encode: Encode
) -> bytes:
    """Returns what `encode` would return for `surround(pieces)`, if they were not encoded yet."""
    mark = _new_mark()
    return _filled(encode(surround([mark] * len(pieces))), mark, pieces)


def _new_mark() -> msgspec.Raw:
    """Returns bytes for the place of a piece; they are random, so that no value contains them."""
    return msgspec.Raw(os.urandom(_MARK_BYTES))


def _filled(frame: bytes, mark: msgspec.Raw, pieces: Sequence[bytes]) -> bytes:
    parts = frame.split(bytes(mark))
    filled = [parts[0]]
    for piece, following in zip(pieces, parts[1:], strict=True):
        filled += (piece, following)
    return b"".join(filled)  # without Python's lock, if they are large


def _frame(value: Any, mark: msgspec.Raw, encode: Encode, pieces: list[bytes]) -> Any:
    """Returns a list or a page with marks in place of its records, which it encodes to `pieces`."""
    if type(value) is list:
        if len(value) == 1:
            return [_frame(value[0], mark, encode, pieces)]
        return _marked(value, mark, encode, pieces) if _is_divided(value) else value
    if isinstance(value, dict):
        return {
            name: _marked(each, mark, encode, pieces) if _is_divided(each) else each
            for name, each in value.items()
        }
    if isinstance(value, msgspec.Struct):
        fields = [(name, getattr(value, name)) for name in value.__struct_fields__]
        found = {
            name: _marked(each, mark, encode, pieces) for name, each in fields if _is_divided(each)
        }
        return msgspec.structs.replace(value, **found) if found else value
    return value


def _is_divided(value: Any) -> bool:
    return type(value) is list and len(value) > 1 and type(value[0]) not in _SMALL


def _marked(
    records: list[Any], mark: msgspec.Raw, encode: Encode, pieces: list[bytes]
) -> list[Any]:
    # One of a few records may be a page: the replies to several queries are a list of them.
    may_be_pages = len(records) <= _FEW
    marked: list[Any] = []
    for record in records:
        before = len(pieces)
        framed = _frame(record, mark, encode, pieces) if may_be_pages else record
        if len(pieces) == before:
            pieces.append(encode(record))
            framed = mark
            pause()
        marked.append(framed)
    return marked
