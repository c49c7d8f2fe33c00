"""Refuses a request of too many values before it is decoded, and takes its time for that.

A decoder reads a whole request in one call, which holds the interpreter all along, so that nobody
else is answered: some 60 ns for each value, however short its text. And a value of one byte becomes
an object of 56. Most requests have fewer bytes than values are allowed, and are not looked at.
"""

from collections.abc import Iterator
from typing import Final

from holdfast.errors import RequestTooLarge
from holdfast.limits import MAX_REQUEST_VALUES

_PIECE_BYTES: Final = 64 * 1024  # that are counted in one step
_STEP_VALUES: Final = 5_000  # of msgpack, likewise


def may_have_too_many_values(payload: bytes) -> bool:
    """Returns whether it is worth to count them: each has a byte of its own at least."""
    return len(payload) > MAX_REQUEST_VALUES


def count_values(payload: bytes, *, is_json: bool) -> Iterator[None]:
    """Raises `RequestTooLarge` in one of its steps if a request may not have so many values."""
    counted = json_values(payload) if is_json else msgpack_values(payload)
    for found in counted:
        if found > MAX_REQUEST_VALUES:
            raise RequestTooLarge(
                f"the request holds more than {MAX_REQUEST_VALUES:,} values",
                hint="Send it in several requests, or send what belongs together as one text.",
            )
        yield


def json_values(payload: bytes) -> Iterator[int]:
    """Yields the number so far, of which the last one is at least that of all values.

    What separates and opens is counted. In a text these are no values, so a payload that seems to
    have too many is counted again without its texts.
    """
    found = 0
    for begin in range(0, len(payload), _PIECE_BYTES):
        found += _separators(payload, begin, begin + _PIECE_BYTES)
        if found > MAX_REQUEST_VALUES:
            yield from _outside_of_texts(payload)
            return
        yield found


def _separators(payload: bytes, begin: int, end: int) -> int:
    return sum([payload.count(each, begin, end) for each in (b",", b"[", b"{")])


def _outside_of_texts(payload: bytes) -> Iterator[int]:
    found = 0
    is_in_text = False
    begin, size = 0, len(payload)
    while begin < size:
        end = begin + _PIECE_BYTES
        while payload[end - 1 : end] == b"\\":  # what it escapes is in the same piece
            end += 1
        piece = payload[begin:end].replace(b"\\\\", b"").replace(b'\\"', b"")
        parts = piece.split(b'"')
        outside = b"".join(parts[is_in_text::2])
        found += _separators(outside, 0, len(outside))
        yield found
        is_in_text ^= len(parts) % 2 == 0
        begin = end


def msgpack_values(payload: bytes) -> Iterator[int]:
    """Yields the number so far, going from value to value; the last one is that of all.

    What is not msgpack is left to the decoder.
    """
    at, size, found = 0, len(payload), 0
    while at < size:
        found += 1
        if found % _STEP_VALUES == 0:
            yield found
        at += 1
        first = payload[at - 1]
        if 0xA0 <= first <= 0xBF:
            at += first & 0x1F
        elif 0xC4 <= first <= 0xDB:
            header, fixed, is_long = _SIZES.get(first, (0, 0, False))
            length = int.from_bytes(payload[at : at + header], "big") if is_long else 0
            at += header + fixed + length
        elif 0xDC <= first <= 0xDF:
            at += 2 if first in (0xDC, 0xDE) else 4
    yield found


# first byte -> bytes of its header, bytes that always follow, whether the header is their length
_SIZES: Final[dict[int, tuple[int, int, bool]]] = {
    **{0xC4: (1, 0, True), 0xC5: (2, 0, True), 0xC6: (4, 0, True)},  # bin
    **{0xC7: (1, 1, True), 0xC8: (2, 1, True), 0xC9: (4, 1, True)},  # ext, with its type
    **{0xCA: (0, 4, False), 0xCB: (0, 8, False)},  # float
    **{0xCC: (0, 1, False), 0xCD: (0, 2, False), 0xCE: (0, 4, False), 0xCF: (0, 8, False)},  # uint
    **{0xD0: (0, 1, False), 0xD1: (0, 2, False), 0xD2: (0, 4, False), 0xD3: (0, 8, False)},  # int
    **{0xD4: (0, 2, False), 0xD5: (0, 3, False), 0xD6: (0, 5, False)},  # fixext, with its type
    **{0xD7: (0, 9, False), 0xD8: (0, 17, False)},
    **{0xD9: (1, 0, True), 0xDA: (2, 0, True), 0xDB: (4, 0, True)},  # str
}
