"""Refuses a request of too many values before it is decoded.

A decoder reads a whole request in one call, which holds the interpreter all along, so that nobody
else is answered: some 60 ns for each value, however short its text, and 5 ns for each escape. And a
value of one byte becomes an object of 56. Most requests have fewer bytes than values are allowed,
and are not looked at. To count takes its time too, so it is done in a thread, piece by piece.
"""

from collections.abc import Callable, Iterator
from typing import Final, Literal

from holdfast.errors import RequestTooLarge
from holdfast.limits import MAX_REQUEST_ESCAPES, MAX_REQUEST_VALUES

Form = Literal["json", "msgpack", "bson"]

_PIECE_BYTES: Final = 64 * 1024  # that are counted in one step
_STEP_VALUES: Final = 5_000  # of msgpack and BSON, likewise


def refuse_too_many_values(payload: bytes, form: Form, most: int = MAX_REQUEST_VALUES) -> None:
    """Raises `RequestTooLarge` if a request holds more values than `most`, or too many escapes."""
    if len(payload) <= most:  # each has a byte of its own at least
        return
    if form == "json" and len(payload) > 2 * MAX_REQUEST_ESCAPES:
        _refuse_too_many_escapes(payload)
    for found in _COUNTERS[form](payload):
        if found > most:
            raise RequestTooLarge(
                f"the request holds more than {most:,} values",
                hint="Send it in several requests, or send what belongs together as one text.",
            )


def _refuse_too_many_escapes(payload: bytes) -> None:
    found = 0
    for begin in range(0, len(payload), _PIECE_BYTES):
        found += payload.count(b"\\", begin, begin + _PIECE_BYTES)
    if found > MAX_REQUEST_ESCAPES:
        raise RequestTooLarge(
            f"the texts of the request have more than {MAX_REQUEST_ESCAPES:,} escapes",
            hint="Send it as msgpack, which needs none.",
        )


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


def bson_values(body: bytes) -> Iterator[int]:
    """Yields the number so far, going from element to element; the last one is that of all.

    What is not BSON is left to the decoder.
    """
    at, size, found = 4, len(body), 0
    while at < size:
        kind = body[at]
        at += 1
        if not kind:
            continue  # the end of a document
        found += 1
        if found % _STEP_VALUES == 0:
            yield found
        for _ in range(_BSON_NAMES.get(kind, 1)):
            at = body.find(b"\0", at) + 1 or size
        fixed, has_length = _BSON_SIZES.get(kind, (0, False))
        at += fixed + (int.from_bytes(body[at : at + 4], "little") if has_length else 0)
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

# type -> bytes that always follow its name, whether they begin with the length of what follows
_BSON_SIZES: Final[dict[int, tuple[int, bool]]] = {
    **{0x03: (4, False), 0x04: (4, False)},  # a document or an array, whose elements come next
    **{0x01: (8, False), 0x09: (8, False), 0x11: (8, False), 0x12: (8, False), 0x3F: (8, False)},
    **{0x02: (4, True), 0x0D: (4, True), 0x0E: (4, True), 0x05: (5, True)},  # texts, binary
    **{0x07: (12, False), 0x08: (1, False), 0x10: (4, False), 0x13: (16, False)},
    **{0x0C: (16, True), 0x0F: (0, True)},  # a pointer, and code, whose length counts itself
}
_BSON_NAMES: Final = {0x0B: 3}  # a regular expression has two texts like names behind its own
_COUNTERS: Final[dict[Form, Callable[[bytes], Iterator[int]]]] = {
    "json": json_values,
    "msgpack": msgpack_values,
    "bson": bson_values,
}
