"""Refuses a request of too many values, or of too much text, before it is decoded.

A decoder reads a whole request in one call, which holds Python's lock throughout, so that nobody
else is answered: some 60 ns for each value, however short, and 5 ns for each escape. And a
value of one byte becomes an object of 56. A text takes 1 ns for each byte, and 3 ns if one letter
beyond the first 65,536 of Unicode makes all of them 4 bytes wide; bytes of msgpack and BSON
are only copied. Most requests have fewer bytes than values are allowed, and are not checked at all.
Counting takes time, too, so it is done in a thread, piece by piece.
"""

import re
from collections.abc import Callable, Iterator
from typing import Final, Literal, NamedTuple

from holdfast.errors import RequestTooLarge
from holdfast.limits import (
    MAX_REQUEST_DECODED_BYTES,
    MAX_REQUEST_ESCAPES,
    MAX_REQUEST_TEXT_BYTES,
    MAX_REQUEST_VALUES,
)

Form = Literal["json", "msgpack", "bson"]


class RequestSize(NamedTuple):
    """The values that were found so far, and the bytes of texts among them: as they arrived, and as
    Python stores them, if that may be too much."""

    values: int
    text_bytes: int = 0
    decoded_bytes: int = 0


_PIECE_BYTES: Final = 64 * 1024  # counted in one step
_STEP_VALUES: Final = 5_000  # counted in one step of msgpack and BSON
_WIDTH: Final = 4  # bytes per letter of a text, if any letter needs that many
# Only a longer request can become too large when decoded.
_SURELY_NARROW_BYTES: Final = MAX_REQUEST_DECODED_BYTES // _WIDTH
_WIDE_BYTES: Final = tuple(
    bytes([first]) for first in range(0xF0, 0xF5)
)  # the first byte of such a letter
_ESCAPE_BYTES: Final = 5  # of an escape, besides the one of its letter
_WIDE_ESCAPE: Final = re.compile(rb"\\u[dD][89abAB]")  # the first half of a surrogate pair


def refuse_long_decoding(payload: bytes, form: Form, most: int = MAX_REQUEST_VALUES) -> None:
    """Raises `RequestTooLarge` if a request holds more values than `most`, or too much text, or too
    many escapes."""
    if len(payload) <= most:  # a value takes at least one byte
        return
    if form == "json":
        if len(payload) > MAX_REQUEST_TEXT_BYTES:
            raise _too_much_text()
        if len(payload) > 2 * MAX_REQUEST_ESCAPES:
            _refuse_too_many_escapes(payload)
    for found in _COUNTERS[form](payload):
        if found.values > most:
            raise RequestTooLarge(
                f"the request holds more than {most:,} values",
                hint="Send it in several requests, or send what belongs together as one text.",
            )
        if found.text_bytes > MAX_REQUEST_TEXT_BYTES:
            raise _too_much_text()
        if found.decoded_bytes > MAX_REQUEST_DECODED_BYTES:
            raise _too_wide()
    if form == "json" and len(payload) > _SURELY_NARROW_BYTES:
        for decoded_bytes in _decoded_bytes(payload):
            if decoded_bytes > MAX_REQUEST_DECODED_BYTES:
                raise _too_wide()


def refuse_long_text(text: bytes) -> None:
    """Raises `RequestTooLarge` if a text is too long."""
    if len(text) > MAX_REQUEST_TEXT_BYTES:
        raise _too_much_text()
    if len(text) > _SURELY_NARROW_BYTES and _decoded(text, 0, len(text)) > (
        MAX_REQUEST_DECODED_BYTES
    ):
        raise _too_wide()


def _too_much_text() -> RequestTooLarge:
    return RequestTooLarge(
        f"the request has more than {MAX_REQUEST_TEXT_BYTES:,} bytes of JSON or text",
        hint="Send it in several requests, or send bytes as msgpack, where they are no text.",
    )


def _too_wide() -> RequestTooLarge:
    most = MAX_REQUEST_DECODED_BYTES // _WIDTH
    return RequestTooLarge(
        f"the texts of the request with emoji, or other letters of {_WIDTH} bytes, have more than "
        f"{most:,} letters",
        hint="Send them in several requests, or send bytes as msgpack, where they are no text.",
    )


def _decoded(text: bytes, begin: int, end: int) -> int:
    """Returns the size of a text in memory if it is wide, otherwise 0."""
    if not any(text.find(each, begin, end) >= 0 for each in _WIDE_BYTES):
        return 0
    pieces = range(begin, end, _PIECE_BYTES)
    return _WIDTH * sum(_letters(text[at : min(at + _PIECE_BYTES, end)]) for at in pieces)


def _letters(piece: bytes) -> int:
    """Returns how many letters a part of a text has, ignoring what is not UTF-8."""
    return len(piece.decode(errors="ignore"))


def _decoded_bytes(payload: bytes) -> Iterator[int]:
    """Yields the size of the wide texts of a JSON document so far, in memory."""
    if not any(_has_wide(payload, *piece) for piece in _pieces(payload)):
        return
    found = letters = 0
    is_in_text = is_wide = False
    piece = b""
    for begin, end in _pieces(payload):
        if is_in_text and not is_wide:  # an escape may be split between two pieces
            cut = piece[-_ESCAPE_BYTES:] + payload[begin : begin + _ESCAPE_BYTES]
            is_wide = _has_wide(cut, 0, len(cut))
        has_wide = _has_wide(payload, begin, end)
        piece = payload[begin:end].replace(b"\\\\", b".").replace(b'\\"', b".")
        for number, part in enumerate(piece.split(b'"')):
            if number:
                found += letters * _WIDTH if is_wide else 0
                letters, is_in_text, is_wide = 0, not is_in_text, False
            if is_in_text:
                letters += _letters(part) - _ESCAPE_BYTES * part.count(b"\\u")
                is_wide = is_wide or (has_wide and _has_wide(part, 0, len(part)))
        yield found + (letters * _WIDTH if is_wide else 0)


def _pieces(payload: bytes) -> Iterator[tuple[int, int]]:
    """Yields where each piece begins and ends; a backslash is in the same piece as what it
    escapes."""
    begin = 0
    while begin < len(payload):
        end = begin + _PIECE_BYTES
        while payload[end - 1 : end] == b"\\":
            end += 1
        yield begin, end
        begin = end


def _has_wide(text: bytes, begin: int, end: int) -> bool:
    return (
        any(text.find(each, begin, end) >= 0 for each in _WIDE_BYTES)
        or _WIDE_ESCAPE.search(text, begin, end) is not None
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


def json_values(payload: bytes) -> Iterator[RequestSize]:
    """Yields the count so far; the last one is at least the number of all values.

    It counts separators and opening brackets. Inside texts these are no values, so a payload that
    seems to have too many is counted again without its texts.
    """
    found = 0
    for begin in range(0, len(payload), _PIECE_BYTES):
        found += _separators(payload, begin, begin + _PIECE_BYTES)
        if found > MAX_REQUEST_VALUES:
            yield from _outside_of_texts(payload)
            return
        yield RequestSize(found)


def _separators(payload: bytes, begin: int, end: int) -> int:
    return sum([payload.count(each, begin, end) for each in (b",", b"[", b"{")])


def _outside_of_texts(payload: bytes) -> Iterator[RequestSize]:
    found = 0
    is_in_text = False
    for begin, end in _pieces(payload):
        piece = payload[begin:end].replace(b"\\\\", b"").replace(b'\\"', b"")
        parts = piece.split(b'"')
        outside = b"".join(parts[is_in_text::2])
        found += _separators(outside, 0, len(outside))
        yield RequestSize(found)
        is_in_text ^= len(parts) % 2 == 0


def msgpack_values(payload: bytes) -> Iterator[RequestSize]:
    """Yields the count so far, going from value to value; the last one is the number of all values.

    What is not msgpack is left to the decoder.
    """
    at, size, found, texts, decoded = 0, len(payload), 0, 0, 0
    is_long = size > _SURELY_NARROW_BYTES
    while at < size:
        found += 1
        if found % _STEP_VALUES == 0:
            yield RequestSize(found, texts, decoded)
        at += 1
        first = payload[at - 1]
        if 0xA0 <= first <= 0xBF:
            at += first & 0x1F  # too short to matter besides the number of values
        elif 0xC4 <= first <= 0xDB:
            header, fixed, has_length = MSGPACK_SIZES.get(first, (0, 0, False))
            length = int.from_bytes(payload[at : at + header], "big") if has_length else 0
            at += header + fixed + length
            if first >= _FIRST_TEXT:
                texts += length
                decoded += _decoded(payload, at - length, min(at, size)) if is_long else 0
        elif 0xDC <= first <= 0xDF:
            at += 2 if first in (0xDC, 0xDE) else 4
    yield RequestSize(found, texts, decoded)


def bson_values(body: bytes) -> Iterator[RequestSize]:
    """Yields the count so far, going from element to element; the last one is the number of all
    values.

    What is not BSON is left to the decoder.
    """
    at, size, found, texts, decoded = 4, len(body), 0, 0, 0
    is_long = size > _SURELY_NARROW_BYTES
    while at < size:
        kind = body[at]
        at += 1
        if not kind:
            continue  # the end of a document
        found += 1
        if found % _STEP_VALUES == 0:
            yield RequestSize(found, texts, decoded)
        for _ in range(_BSON_NAMES.get(kind, 1)):
            at = body.find(b"\0", at) + 1 or size
        fixed, has_length = _BSON_SIZES.get(kind, (0, False))
        length = int.from_bytes(body[at : at + 4], "little") if has_length else 0
        at += fixed + length
        if has_length and kind != _BSON_BINARY:
            texts += length
            decoded += _decoded(body, at - length, min(at, size)) if is_long else 0
    yield RequestSize(found, texts, decoded)


# first byte -> bytes of its header, bytes that always follow, whether the header is their length
MSGPACK_SIZES: Final[dict[int, tuple[int, int, bool]]] = {
    **{0xC4: (1, 0, True), 0xC5: (2, 0, True), 0xC6: (4, 0, True)},  # bin
    **{0xC7: (1, 1, True), 0xC8: (2, 1, True), 0xC9: (4, 1, True)},  # ext, with its type
    **{0xCA: (0, 4, False), 0xCB: (0, 8, False)},  # float
    **{0xCC: (0, 1, False), 0xCD: (0, 2, False), 0xCE: (0, 4, False), 0xCF: (0, 8, False)},  # uint
    **{0xD0: (0, 1, False), 0xD1: (0, 2, False), 0xD2: (0, 4, False), 0xD3: (0, 8, False)},  # int
    **{0xD4: (0, 2, False), 0xD5: (0, 3, False), 0xD6: (0, 5, False)},  # fixext, with its type
    **{0xD7: (0, 9, False), 0xD8: (0, 17, False)},
    **{0xD9: (1, 0, True), 0xDA: (2, 0, True), 0xDB: (4, 0, True)},  # str
}

_FIRST_TEXT: Final = 0xD9  # of those above

# type -> bytes that always follow its name, whether they begin with the length of what follows
_BSON_SIZES: Final[dict[int, tuple[int, bool]]] = {
    **{0x03: (4, False), 0x04: (4, False)},  # a document or an array, whose elements come next
    **{0x01: (8, False), 0x09: (8, False), 0x11: (8, False), 0x12: (8, False), 0x3F: (8, False)},
    **{0x02: (4, True), 0x0D: (4, True), 0x0E: (4, True), 0x05: (5, True)},  # texts, binary
    **{0x07: (12, False), 0x08: (1, False), 0x10: (4, False), 0x13: (16, False)},
    **{0x0C: (16, True), 0x0F: (0, True)},  # a pointer, and code, whose length counts itself
}
_BSON_BINARY: Final = 0x05
_BSON_NAMES: Final = {0x0B: 3}  # a regular expression has two texts like names behind its own
_COUNTERS: Final[dict[Form, Callable[[bytes], Iterator[RequestSize]]]] = {
    "json": json_values,
    "msgpack": msgpack_values,
    "bson": bson_values,
}
