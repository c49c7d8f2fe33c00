"""The dialects of the original script, recognised by a script's content, not by its hash."""

import re
from typing import Final, Literal

__all__ = ["Dialect", "dialect_of"]

Dialect = Literal["G2", "G3"]
_PUT: Final = re.compile(rb"QlessAPI\.put\s*+=?\s*+(?:function)?\s*+\(\s*+now\s*+,\s*+(me|queue)\b")


def dialect_of(body: bytes) -> Dialect | None:
    """Returns the dialect of a script, by the arguments of its `put`; None for any other script.

    >>> dialect_of(b"function QlessAPI.put(now, me, queue, jid, klass) end")
    'G3'
    """
    found = _PUT.search(body)
    if found is None:
        return None
    return "G3" if found[1] == b"me" else "G2"
