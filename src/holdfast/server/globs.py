"""Redis patterns for channels and keys, matched in linear time, whatever the pattern.

A pattern is split at its stars. The first part has to be at the beginning of a text and the last at
its end; each other part is searched once, for its first occurrence after the one before: any later
one leaves less for the rest. A part of plain characters is found by `bytes.find`. One with `?` or
`[...]` is found by a set of bits, one for each of its characters, that moves along the text by one
shift for each byte. So a text of n bytes takes n steps for each part, whatever the pattern says.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from holdfast.errors import BadInput
from holdfast.limits import MAX_PATTERN_BYTES

# A class without a closing bracket extends to the end of the pattern, as in Redis.
_PARTS: Final = re.compile(rb"\\.|\[\^?(?:\\.|[^\]\\])*+\\?(?:\]|\Z)|.", re.DOTALL)
_CONTENT: Final = re.compile(rb"(?:\\.|[^\]\\])*+", re.DOTALL)
_IN_CLASS: Final = re.compile(rb"(\\.|.)-(\\.|.)|(\\.|.)", re.DOTALL)
_ANY: Final = frozenset(range(256))


class Glob:
    """A compiled pattern."""

    __slots__ = ("_first", "_is_whole", "_last", "_middle")

    def __init__(self, pattern: bytes) -> None:
        pieces = [_Piece(members) for members in _cut(pattern)]
        self._is_whole = len(pieces) == 1  # without a star
        self._first, self._last = pieces[0], pieces[-1]
        self._middle = [piece for piece in pieces[1:-1] if piece.size]

    def fullmatch(self, text: bytes) -> bool:
        """Returns whether the pattern matches the whole text."""
        first, last = self._first, self._last
        if self._is_whole:
            return len(text) == first.size and first.is_at(text, 0)
        end = len(text) - last.size
        at = first.size
        if at > end or not first.is_at(text, 0) or not last.is_at(text, end):
            return False
        for piece in self._middle:
            at = piece.end_of_first(text, at, end)
            if at < 0:
                return False
        return True


class _Piece:
    """A part of a pattern between two stars: as many sets of bytes as it has characters."""

    __slots__ = ("_masks", "_members", "_plain", "size")

    def __init__(self, members: list[frozenset[int]]) -> None:
        self.size = len(members)
        self._members = members
        is_plain = all(len(each) == 1 for each in members)
        self._plain = bytes(byte for each in members for byte in each) if is_plain else None
        self._masks: list[int] | None = None  # computed for the first search

    def is_at(self, text: bytes, begin: int) -> bool:
        if self._plain is not None:
            return text.startswith(self._plain, begin)
        part = text[begin : begin + self.size]
        return len(part) == self.size and all(map(_has, self._members, part))

    def end_of_first(self, text: bytes, begin: int, end: int) -> int:
        """Returns where the first occurrence of the piece in text[begin:end] ends; -1 if there is
        none."""
        if self._plain is not None:
            found = text.find(self._plain, begin, end)
            return -1 if found < 0 else found + self.size
        masks = self._masks
        if masks is None:
            masks = self._masks = self._make_masks()
        whole = 1 << (self.size - 1)
        state = 0  # bit i: the last i + 1 bytes are the first i + 1 characters of the piece
        for at in range(begin, end):
            state = (state << 1 | 1) & masks[text[at]]
            if state & whole:
                return at + 1
        return -1

    def _make_masks(self) -> list[int]:
        """Maps each byte to the bits of the characters that it matches."""
        masks, anywhere = [0] * 256, 0
        for place, members in enumerate(self._members):
            bit = 1 << place
            if members is _ANY:
                anywhere |= bit
            else:
                for byte in members:
                    masks[byte] |= bit
        return [mask | anywhere for mask in masks]


def _has(members: frozenset[int], byte: int) -> bool:
    return byte in members


@lru_cache(1_000)
def compile_glob(pattern: bytes) -> Glob:
    """Returns a pattern as Redis has it: `*`, `?`, `[abc]`, `[^a-z]` and a backslash before any of
    them.

    >>> compile_glob(b"ql:[a-w]*:jobs").fullmatch(b"ql:w:ann:jobs")
    True
    """
    if len(pattern) > MAX_PATTERN_BYTES:
        raise BadInput(
            f"a pattern may have {MAX_PATTERN_BYTES} bytes, and this one has {len(pattern)}",
            hint="Use a shorter pattern, and `*` for what may differ.",
        )
    return Glob(pattern)


def _cut(pattern: bytes) -> Iterator[list[frozenset[int]]]:
    """Yields the parts between the stars, each as a list of the bytes that its characters match."""
    piece: list[frozenset[int]] = []
    for part in _PARTS.findall(pattern):
        if part == b"*":
            yield piece
            piece = []
        else:
            piece.append(_members(part))
    yield piece


def _members(part: bytes) -> frozenset[int]:
    if part == b"?":
        return _ANY
    if part[:1] == b"[" and len(part) > 1:
        return _class(_CONTENT.findall(part, 1)[0])
    return frozenset(part[-1:])


def _class(content: bytes) -> frozenset[int]:
    """Returns the bytes of a class, or all others after `^`; a range may be written backwards."""
    negated = content[:1] == b"^"
    members: set[int] = set()
    for begin, end, single in _IN_CLASS.findall(content[1:] if negated else content):
        if single:
            members.add(single[-1])
        else:
            low, high = sorted((begin[-1], end[-1]))
            members.update(range(low, high + 1))
    return (_ANY - members) if negated else frozenset(members)
