"""Text is compared without regard to case, accents and repeated blanks."""

import pytest

from holdfast.entities.text import normalise


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
