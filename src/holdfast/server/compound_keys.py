"""Refuses msgpack in which many keys of maps are lists or extensions, before it is decoded.

Python's hashes of texts and bytes are secret. Those of lists, big integers, decimals and UUIDs are
not, so that anyone can find thousands of them with the same hash. A map with such keys takes
quadratic time to decode, in one call which holds Python's lock: 4 s for 110 KB.
"""

import re
from typing import Final

from holdfast.entities.order import SET_CODE
from holdfast.errors import RequestTooLarge
from holdfast.limits import MAX_COMPOUND_KEYS
from holdfast.server.decoding_limits import MSGPACK_SIZES

# The header of a map of 128 pairs or more. Keys of smaller ones are compared with few others.
_LARGE_MAP: Final = re.compile(rb"\xde(?:\x00[\x80-\xff]|[\x01-\xff])|\xdf", re.DOTALL)
_KEY_BYTES: Final = 12  # of the shortest list that can have a chosen hash


def refuse_compound_keys(payload: bytes) -> None:
    """Raises `RequestTooLarge` if more keys than `MAX_COMPOUND_KEYS` are lists or extensions."""
    if len(payload) < MAX_COMPOUND_KEYS * _KEY_BYTES:
        return
    if b"\xde" not in payload and b"\xdf" not in payload:  # the fastest way to find no large map
        return
    if _LARGE_MAP.search(payload) is not None and compound_keys(payload) > MAX_COMPOUND_KEYS:
        raise RequestTooLarge(
            f"more than {MAX_COMPOUND_KEYS:,} keys of the maps in the request are lists or "
            "extensions",
            hint="Use texts, bytes or numbers as keys.",
        )


def compound_keys(payload: bytes) -> int:
    """Returns how many keys of maps are lists or extensions, going from value to value.

    What is not msgpack is left to the decoder.
    """
    outer: list[tuple[int, bool]] = []  # values to come, and whether they are keys and values
    left, is_map = len(payload), False
    at, size, found = 0, len(payload), 0
    while at < size:
        while not left and outer:
            left, is_map = outer.pop()
        first = payload[at]
        is_key = is_map and left % 2 == 0
        left -= 1
        at += 1
        inside = -1  # values of a list or a map
        holds_pairs = False
        if 0x80 <= first <= 0x9F:
            inside, holds_pairs = first & 0x0F, first < 0x90
        elif 0xA0 <= first <= 0xBF:
            at += first & 0x1F
        elif 0xC4 <= first <= 0xDB:
            header, fixed, has_length = MSGPACK_SIZES[first]
            length = int.from_bytes(payload[at : at + header], "big") if has_length else 0
            if 0xC7 <= first <= 0xC9 or 0xD4 <= first <= 0xD8:
                found += is_key
                at += header
                if payload[at : at + 1] == _SET:
                    at, length, fixed, inside = at + 1, 0, 0, 1  # the list of its elements
                header = 0
            at += header + fixed + length
        elif 0xDC <= first <= 0xDF:
            width = 2 if first in (0xDC, 0xDE) else 4
            inside, holds_pairs = int.from_bytes(payload[at : at + width], "big"), first >= 0xDE
            at += width
        if inside >= 0:
            found += is_key and not holds_pairs
            outer.append((left, is_map))
            left, is_map = inside * (1 + holds_pairs), holds_pairs
    return found


_SET: Final = bytes([SET_CODE])
