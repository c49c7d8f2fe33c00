"""Text is compared without regard to case, accents and repeated blanks."""

import random
import re
import time
import unicodedata

import pytest

from holdfast.entities import text as text_module
from holdfast.entities.text import normalise
from tests.repetitions import repeated


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("ÀÉÎ", "aei"),
        ("  lead  trail  ", " lead trail "),
        ("two\t\ttabs", "two\ttabs"),
        ("a \tb", "a b"),
        ("a\t b", "a\tb"),
        ("Ångström", "angstrom"),
        ("İstanbul", "istanbul"),
        ("ΣΑΣ", "σας"),
        ("ß", "ß"),
        ("ﬁ", "ﬁ"),
        ("日本", "日本"),
        ("x-y_z!", "x-y_z!"),
        ("Ⅷ", "ⅷ"),
        ("שָׁלוֹם", "שלום"),
        ("a\N{NO-BREAK SPACE}\N{NO-BREAK SPACE}b", "a\N{NO-BREAK SPACE}\N{NO-BREAK SPACE}b"),
        ("", ""),
    ],
)
def test_text_has_the_normal_form_of_the_public_server(text: str, normal: str) -> None:
    assert normalise(text) == normal


def test_all_six_blanks_are_collapsed_to_the_first_of_a_run() -> None:
    assert normalise("a\v\f\r\n\t b") == "a\vb"


SORTED = [chr(code) for code in range(0x300, 0x20000) if unicodedata.combining(chr(code))]
SPACING = [mark for mark in SORTED if unicodedata.category(mark) != "Mn"]
POOLS = [
    list("\u03a3\u03a3\u03c3aA'.:^ \t0\u02b0\u0130\u00e9\U0001f600"),
    [*SORTED, *SPACING * 20, "a", "\u01d6", "\u034f", "\u0941"],
    ["\u0f73", "\u0f75", "\u0f81", "a", *SPACING[:3]],
    ["\u03a3", "'", " "],
    [chr(code) for code in range(0xC0, 0x3000) if unicodedata.decomposition(chr(code))],
]


def in_one_step(text: str) -> str:
    """The normal form by its definition."""
    if not text.isascii():
        letters = unicodedata.normalize("NFD", text)
        text = "".join(letter for letter in letters if unicodedata.category(letter) != "Mn")
    return re.sub("([\t\n\v\f\r ])[\t\n\v\f\r ]+", r"\1", text.lower())


@pytest.mark.parametrize("piece", [1, 2, 3, 7, 20])
def test_pieces_of_a_long_text_have_the_form_of_the_whole(
    monkeypatch: pytest.MonkeyPatch, piece: int
) -> None:
    monkeypatch.setattr(text_module, "_SHORT", 0)
    monkeypatch.setattr(text_module, "_PIECE", piece)
    chance = random.Random(piece)

    for _ in range(repeated(400, full=20_000)):
        text = "".join(chance.choices(chance.choice(POOLS), k=chance.randrange(40)))
        assert normalise(text) == in_one_step(text), ascii(text)


@pytest.mark.parametrize(
    "unit",
    ["\u0301\u0316", "\u0f73\u0f75", "\U0001d16d\U0001d165", "\u00e9", "\u03a3'", " ", "\u03a3"],
    ids=ascii,
)
def test_the_time_grows_with_the_text_and_not_faster(unit: str) -> None:
    begin = time.thread_time()

    normalise("a" + unit * 200_000)

    assert time.thread_time() - begin < 2  # in one step, the first one takes a minute
