"""Stored keys for people: which ones begin with the parts that they write, and what they hold."""

import ast
import difflib
from typing import Any, Final

import msgspec

from holdfast.admin.records import Inspection, KeyEntry
from holdfast.engine.contract import Reader
from holdfast.errors import BadInput, UnsupportedPart
from holdfast.keys import after as behind
from holdfast.keys import describe, pack, pack_str, prefix_range
from holdfast.limits import MAX_INSPECTED_KEYS, MAX_SHOWN_CHARACTERS

LAYERS: Final = {"expiry": 0, "tables": 1, "entities": 2, "events": 3, "jobs": 4, "metrics": 5}
_NAMES: Final = {pack(code): name for name, code in LAYERS.items()}
_HINT: Final = "Write a layer and parts, as in: jobs, 29, 'receipt'"


def inspect(reader: Reader, prefix: str, limit: int, after: str | None) -> Inspection:
    """A page of the keys of a space that begin with the parts of `prefix`."""
    if not 0 < limit <= MAX_INSPECTED_KEYS:
        raise BadInput(f"a page has 1 to {MAX_INSPECTED_KEYS} keys, not {limit}")
    begin, end = prefix_range(reader.space + packed_prefix(prefix))
    if after is not None:
        begin = max(begin, behind(reader.space + _place(after)))
    pairs = list(reader.scan(begin, end, limit=limit))
    size = len(reader.space)
    return Inspection(
        entries=[
            KeyEntry(key=shown_key(key[size:]), value=shown_value(value), bytes=len(value))
            for key, value in pairs
        ],
        next=pairs[-1][0][size:].hex() if len(pairs) == limit else None,
    )


def packed_prefix(text: str) -> bytes:
    """The bytes that a written prefix stands for; of a last part that is text, its beginning does.

    >>> packed_prefix("jobs, 29") == pack(4, 29)
    True
    >>> pack(4, 29, "receipt-7").startswith(packed_prefix("jobs, 29, 'receipt'"))
    True
    """
    if not isinstance(text, str):
        raise BadInput(f"a prefix is text, not {text!r:.100}", hint=_HINT)
    words = text.strip().removeprefix("(").removesuffix(")").strip().rstrip(",")
    if not words:
        return b""
    layer, comma, rest = words.partition(",")
    parts = _parts(rest) if comma else ()
    code = LAYERS.get(layer.strip())
    if code is None:
        try:
            code = int(layer)
        except ValueError:
            near = difflib.get_close_matches(layer.strip(), LAYERS, 1)
            hint = f"Did you mean {near[0]!r}?" if near else f"There are {', '.join(LAYERS)}."
            raise BadInput(f"{layer.strip()!r} is no layer", hint=hint) from None
    try:
        if parts and isinstance(parts[-1], str):
            return pack(code, *parts[:-1]) + pack_str(parts[-1])[:-1]
        return pack(code, *parts)
    except UnsupportedPart as error:
        raise BadInput(error.message, hint=_HINT) from None


def _parts(text: str) -> tuple[Any, ...]:
    try:
        parts = ast.literal_eval(f"({text.strip().rstrip(',')},)")
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        raise BadInput(f"{text.strip()!r} are no parts of a key", hint=_HINT) from None
    return tuple(parts)


def shown_key(key: bytes) -> str:
    """The parts of a key, the first one as the name of its layer.

    >>> shown_key(pack(4, 29, "receipt"))
    "(jobs, 29, 'receipt')"
    """
    name = _NAMES.get(key[:1])
    return describe(key) if name is None else f"({name}, {describe(key[1:])[1:]}"


def shown_value(value: bytes) -> str:
    """A value: what msgpack or JSON says, a text, or bytes in hex; cut where it is long."""
    text = _decoded(value)
    return text if len(text) <= MAX_SHOWN_CHARACTERS else f"{text[:MAX_SHOWN_CHARACTERS]}..."


def _decoded(value: bytes) -> str:
    if not value:
        return ""
    # A map or an array begins a record of ours; other bytes are valid msgpack by chance only.
    if value[0] >> 4 in (0x8, 0x9) or value[0] in (0xDC, 0xDD, 0xDE, 0xDF):
        try:
            return repr(msgspec.msgpack.decode(value))
        except (ValueError, msgspec.MsgspecError, RecursionError):
            pass
    try:
        text = value.decode()
    except UnicodeDecodeError:
        text = ""
    return repr(text) if text.isprintable() and text else f"0x{value.hex()}"


def _place(after: str) -> bytes:
    try:
        return bytes.fromhex(after)
    except ValueError:
        raise BadInput(f"{after!r} is no place to go on from", hint="Give back `next`.") from None
