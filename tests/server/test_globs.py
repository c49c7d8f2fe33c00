"""Patterns as Redis has them."""

import time
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import BadInput
from holdfast.limits import MAX_CHANNEL_BYTES, MAX_PATTERN_BYTES
from holdfast.server.globs import compile_glob


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        (b"*", b"", True),
        (b"*", b"any\nthing", True),
        (b"h?llo", b"hello", True),
        (b"h?llo", b"hllo", False),
        (b"h*llo", b"heeeello", True),
        (b"h[ae]llo", b"hallo", True),
        (b"h[ae]llo", b"hillo", False),
        (b"h[^e]llo", b"hbllo", True),
        (b"h[^e]llo", b"hello", False),
        (b"h[a-c]llo", b"hbllo", True),
        (b"h[c-a]llo", b"hbllo", True),
        (b"h[.]llo", b"h.llo", True),
        (b"h[.]llo", b"hxllo", False),
        (rb"h\*llo", b"h*llo", True),
        (rb"h\*llo", b"hxllo", False),
        (rb"h[\]x]llo", b"h]llo", True),
        (b"h[", b"h[", True),
        (b"[]", b"", False),
        (b"a*b*c", b"aXbYbZc", True),
        (b"a*b*c", b"aXbYb", False),
        (b"a*bc", b"abcbc", True),
        (b"**a**", b"xax", True),
        (b"a.c", b"abc", False),
    ],
)
def test_a_pattern_matches_as_in_redis(pattern: bytes, text: bytes, matches: bool) -> None:
    assert bool(compile_glob(pattern).fullmatch(text)) is matches


@cache  # or several stars in a row would take for ever
def _fits(pattern: tuple[bytes, ...], text: bytes) -> bool:
    """Matches as Redis does, one way after the other."""
    if not pattern:
        return not text
    if pattern[0] == b"*":
        return any(_fits(pattern[1:], text[at:]) for at in range(len(text) + 1))
    fits = bool(text) and bool(compile_glob(pattern[0]).fullmatch(text[:1]))
    return fits and _fits(pattern[1:], text[1:])


@given(
    st.lists(st.sampled_from([b"a", b"b", b"*", b"?", b"[ab]", b"[^a]"]), max_size=10).map(tuple),
    st.text("abc", max_size=12).map(str.encode),
)
def test_a_pattern_fits_exactly_where_the_slow_way_says_so(
    pattern: tuple[bytes, ...], text: bytes
) -> None:
    assert compile_glob(b"".join(pattern)).fullmatch(text) is _fits(pattern, text)


@pytest.mark.parametrize(
    "pattern",
    [
        b"*a" * 30 + b"*b",
        b"*" + b"?" * 1_000,
        b"*?" * 500,
        b"?*" * 500 + b"b",
        b"*" + b"?" * 1_000 + b"b",
        b"*" + b"a" * 1_000 + b"b*",
        b"*" + b"[ab]" * 250 + b"c*",
        b"*" + b"[^c]" * 250 + b"c",
        b"[" * 1_000,
        b"*" * 1_000,
    ],
)
def test_no_pattern_takes_long_on_any_text(pattern: bytes) -> None:
    begin = time.thread_time()

    glob = compile_glob(pattern)
    for text in (b"a" * MAX_CHANNEL_BYTES, b"ab" * (MAX_CHANNEL_BYTES // 2), b"a" * 10, b""):
        glob.fullmatch(text)

    assert time.thread_time() - begin < 2.0  # 5 ms, unless it is all but linear


def test_a_pattern_has_a_bounded_length() -> None:
    compile_glob(b"?" * MAX_PATTERN_BYTES)

    with pytest.raises(BadInput, match="1024 bytes"):
        compile_glob(b"*" + b"?" * MAX_PATTERN_BYTES)
