"""Patterns as Redis has them, for channels and keys."""

import re
from functools import lru_cache
from typing import Final

_PARTS: Final = re.compile(rb"\\.|\[\^?(?:\\.|[^\]\\])*\]|.", re.DOTALL)
_IN_CLASS: Final = re.compile(rb"(\\.|.)-(\\.|.)|(\\.|.)", re.DOTALL)


@lru_cache(1_000)
def compile_glob(pattern: bytes) -> re.Pattern[bytes]:
    """A pattern as Redis has it: `*`, `?`, `[abc]`, `[^a-z]` and a backslash before any of them.

    >>> bool(compile_glob(b"ql:[a-w]*:jobs").fullmatch(b"ql:w:ann:jobs"))
    True
    """
    # What stands between two stars is looked for once, at its first place: any later place leaves
    # less for the rest. Without that, a pattern of many stars could take forever.
    pieces = [b""]
    for part in _PARTS.findall(pattern):
        if part == b"*":
            pieces.append(b"")
        else:
            pieces[-1] += _piece(part)
    first, *others = pieces
    if not others:
        return re.compile(first, re.DOTALL)
    *middle, last = others
    between = b"".join(b"(?>.*?%b)" % piece for piece in middle if piece)
    return re.compile(b"%b%b.*%b" % (first, between, last), re.DOTALL)


def _piece(part: bytes) -> bytes:
    if part == b"?":
        return b"."
    if part[:1] == b"[" and len(part) > 1:
        return _class(part[1:-1])
    return re.escape(part[-1:] if part[:1] == b"\\" else part)


def _class(content: bytes) -> bytes:
    """One of these characters, or none of them after `^`; a range may be written backwards."""
    negated = content[:1] == b"^"
    members = b""
    for begin, end, single in _IN_CLASS.findall(content[1:] if negated else content):
        if single:
            members += re.escape(single[-1:])
        else:
            low, high = sorted((begin[-1:], end[-1:]))
            members += re.escape(low) + b"-" + re.escape(high)
    if not members:
        return b"." if negated else b"(?!)"
    return b"[%b%b]" % (b"^" if negated else b"", members)
