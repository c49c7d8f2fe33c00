"""How text is compared: without regard to case, accents and repeated blanks.

Text is stored and returned as it was sent. Its normal form serves ids that are computed from
columns, and every comparison in an index or a filter."""

import re
import unicodedata
from typing import Final

_REPEATED: Final = re.compile("([\t\n\v\f\r ])[\t\n\v\f\r ]+")


def normalise(text: str) -> str:
    """`text` in lower case, without accents, each run of blanks cut to its first.

    >>> normalise("Ångström"), normalise("  lead  trail  "), normalise("ΣΑΣ")
    ('angstrom', ' lead trail ', 'σας')
    """
    if text.isascii():
        # The usual case, and without a search: printable text repeats no blank but the space.
        if "  " not in text and text.isprintable():
            return text.lower()
    else:
        text = "".join(
            [
                character
                for character in unicodedata.normalize("NFD", text)
                if unicodedata.category(character) != "Mn"
            ]
        )
    text = text.lower()
    return _REPEATED.sub(r"\1", text) if _REPEATED.search(text) else text
