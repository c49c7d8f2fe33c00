"""Normalises text for comparison: without regard to case, accents and repeated blanks.

Text is stored and returned as it was sent. Its normal form serves ids that are computed from
columns, and every comparison in an index or a filter.

A long text is normalised piece by piece. Python's functions hold the interpreter lock until they
have read all of it, and `unicodedata.normalize` sorts the marks after a character in quadratic
time: a text of 160 KB took half a minute."""

import itertools
import re
import unicodedata
from collections.abc import Iterator
from typing import Final

_BLANKS: Final = "\t\n\v\f\r "
_REPEATED: Final = re.compile(f"([{_BLANKS}])[{_BLANKS}]+")
_ANY_BLANKS: Final = re.compile(f"[{_BLANKS}]*")
_SHORT: Final = 128  # characters, normalised in one step
_PIECE: Final = 16_384  # characters of a step, which takes a millisecond
_SIGMA: Final = "Σ"  # in lower case, its form depends on the letters around it
_SMALL_SIGMA: Final = _SIGMA.lower()
_INNER_SIGMA: Final = re.compile(f"(?<={_SIGMA}){_SIGMA}(?={_SIGMA})")
_FEW: Final = 8  # characters that are removed one by one


def normalise(text: str) -> str:
    """Returns `text` in lower case, without accents, each run of blanks reduced to its first.

    >>> normalise("Ångström"), normalise("  lead  trail  "), normalise("ΣΑΣ")
    ('angstrom', ' lead trail ', 'σας')
    """
    if text.isascii():
        # The usual case, and without a search: printable text repeats no blank but the space.
        if "  " not in text and text.isprintable():
            return text.lower()
        text = text.lower()
    elif len(text) <= _SHORT:
        text = _without_marks(unicodedata.normalize("NFD", text)).lower()
    else:
        text = _lower("".join(_decomposed(text)))
    return _with_single_blanks(text)


def _decomposed(text: str) -> Iterator[str]:
    """Yields NFD without nonspacing marks, in pieces.

    Nonspacing marks in the text are removed first, so that few are left after each character. Runs
    of the other marks, which are rare, are sorted here.
    """
    pieces = (text[begin : begin + _PIECE] for begin in range(0, len(text), _PIECE))
    parts = [_without_marks(piece, are_starters=False) for piece in pieces]
    if any(map(_has_mark, parts)):
        parts = list(_cut_after_marks(_with_sorted_marks("".join(parts))))
    for part in parts:
        yield _without_marks(unicodedata.normalize("NFD", part))


def _without_marks(text: str, *, are_starters: bool = True) -> str:
    """Returns a text without nonspacing marks; or without those that NFD would sort."""
    marks = {
        character
        for character in set(text)
        if unicodedata.category(character) == "Mn" and (are_starters or _is_reordered(character))
    }
    if len(marks) > _FEW:
        return "".join([character for character in text if character not in marks])
    for mark in marks:
        text = text.replace(mark, "")
    return text


def _is_reordered(character: str) -> bool:
    """Returns whether NFD may move a character, or its decomposition, past others."""
    return bool(unicodedata.combining(unicodedata.normalize("NFD", character)[0]))


def _has_mark(text: str) -> bool:
    return any(map(unicodedata.combining, set(text)))


def _with_sorted_marks(text: str) -> str:
    """Returns a text with each run of marks in the order of NFD."""
    runs = itertools.groupby(text, lambda character: unicodedata.combining(character) > 0)
    # Characters that are not marks have the same class, and keep their order.
    return "".join(
        [character for _, run in runs for character in sorted(run, key=unicodedata.combining)]
    )


def _cut_after_marks(text: str) -> Iterator[str]:
    """Yields pieces of a text, none of which begins with a mark."""
    begin = 0
    while begin < len(text):
        end = begin + _PIECE
        while end < len(text) and unicodedata.combining(text[end]):
            end += 1
        yield text[begin:end]
        begin = end


def _lower(text: str) -> str:
    """Returns a text in lower case, like `str.lower`, piece by piece."""
    if _SIGMA in text:
        return "".join(piece.lower() for piece in _cut_between_words(text))
    pieces = (text[begin : begin + _PIECE] for begin in range(0, len(text), _PIECE))
    return "".join([piece.lower() for piece in pieces])


def _cut_between_words(text: str) -> Iterator[str]:
    """Yields pieces of a text with sigmas, cut where no sigma depends on the other side: between
    ASCII letters, or inside a run of sigmas, where only the first and the last depend on others."""
    text = _INNER_SIGMA.sub(_SMALL_SIGMA, text)
    begin = 0
    while begin < len(text):
        end = begin + _PIECE
        while end < len(text) and not (
            _is_word_character(text[end - 1]) and _is_word_character(text[end])
        ):
            end += 1
        yield text[begin:end]
        begin = end


def _is_word_character(character: str) -> bool:
    return (character.isascii() and character.isalnum()) or character == _SMALL_SIGMA


def _with_single_blanks(text: str) -> str:
    if len(text) <= _SHORT:
        return _REPEATED.sub(r"\1", text) if _REPEATED.search(text) else text
    parts = []
    begin = 0
    while begin < len(text):
        end = begin + _PIECE
        if text[end - 1 : end] in _BLANKS:
            end = _ANY_BLANKS.match(text, end).end()  # type: ignore[union-attr]  # none match too
        parts.append(_REPEATED.sub(r"\1", text[begin:end]))
        begin = end
    return "".join(parts)
