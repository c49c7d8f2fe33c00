"""Patterns as Redis has them."""

import time

import pytest

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


def test_no_pattern_takes_forever() -> None:
    begin = time.process_time()

    assert not compile_glob(b"*a" * 30 + b"*b").fullmatch(b"a" * 5_000)

    assert time.process_time() - begin < 1
