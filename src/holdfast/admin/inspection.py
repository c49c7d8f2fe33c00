"""Shows stored keys in a readable form: a layer, the kind of key, then its other parts."""

import ast
from typing import Any, Final

import msgspec

from holdfast import expiry
from holdfast.admin.consistency import position_of
from holdfast.admin.records import Inspection, KeyEntry
from holdfast.engine.contract import Reader
from holdfast.entities import layout as entities
from holdfast.error_text import did_you_mean, nearest
from holdfast.errors import BadInput, UnsupportedPart
from holdfast.events import layout as events
from holdfast.jobs import layout as jobs
from holdfast.keys import after as after_key
from holdfast.keys import describe, pack, pack_str, prefix_range
from holdfast.limits import MAX_INSPECTED_KEYS, MAX_SHOWN_CHARACTERS
from holdfast.metrics import layout as metrics
from holdfast.tables import layout as tables

_LAYOUTS: Final = {
    "tables": tables,
    "entities": entities,
    "events": events,
    "jobs": jobs,
    "metrics": metrics,
}
LAYER_CODES: Final = {"expiry": expiry.LAYER} | {name: map.LAYER for name, map in _LAYOUTS.items()}
_NAMES: Final = {pack(code): name for name, code in LAYER_CODES.items()}
# The kinds of keys that a layer has, in the words of its map.
_KINDS: Final[dict[str, dict[str, int]]] = {
    name: {kind: code for code, kind in enumerate(map.KEY_NAMES)} for name, map in _LAYOUTS.items()
}
_KIND_NAMES: Final = {
    (layer, pack(code)): kind for layer, kinds in _KINDS.items() for kind, code in kinds.items()
}
_HINT: Final = "Write a layer, the kind of key and parts, as in: jobs, job, 'receipt'"


def inspect(reader: Reader, prefix: str, limit: int, after: str | None) -> Inspection:
    """Returns a page of the keys of a space that begin with the parts of `prefix`."""
    if not 0 < limit <= MAX_INSPECTED_KEYS:
        raise BadInput(f"a page must have 1 to {MAX_INSPECTED_KEYS} keys, not {limit}")
    begin, end = prefix_range(reader.space + packed_prefix(prefix))
    if after is not None:
        begin = max(begin, after_key(reader.space + position_of(after)))
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
    """Returns the bytes of a written prefix. A last part that is text may be cut short.

    >>> packed_prefix("jobs, job") == packed_prefix("jobs, 29") == pack(4, 29)
    True
    >>> pack(4, 29, "receipt-7").startswith(packed_prefix("jobs, job, 'receipt'"))
    True
    """
    if not isinstance(text, str):
        raise BadInput(f"a prefix must be text, not {text!r:.100}", hint=_HINT)
    words = text.strip().removeprefix("(").removesuffix(")").strip().rstrip(",")
    if not words:
        return b""
    layer, comma, rest = words.partition(",")
    parts = _parts(layer.strip(), rest) if comma else ()
    code = LAYER_CODES.get(layer.strip())
    if code is None:
        try:
            code = int(layer)
        except ValueError:
            near = nearest(layer.strip(), LAYER_CODES)
            hint = f"Did you mean {near!r}?" if near else f"There are {', '.join(LAYER_CODES)}."
            raise BadInput(f"{layer.strip()!r} is not a layer", hint=hint) from None
    try:
        if parts and isinstance(parts[-1], str):
            return pack(code, *parts[:-1]) + pack_str(parts[-1])[:-1]
        return pack(code, *parts)
    except UnsupportedPart as error:
        raise BadInput(error.message, hint=_HINT) from None


def _parts(layer: str, text: str) -> tuple[Any, ...]:
    kinds = _KINDS.get(layer, {})
    kind, comma, rest = text.strip().partition(",")
    kind = kind.strip()
    if kind in kinds:
        return (kinds[kind], *(_literals(rest) if comma and rest.strip() else ()))
    if kind.isidentifier() and kind not in ("None", "True", "False"):
        hint = f"The keys of {layer} are {', '.join(kinds)}." if kinds else _HINT
        raise BadInput(
            f"{layer} has no keys of kind {kind!r}{did_you_mean(kind, kinds)}", hint=hint
        )
    return _literals(text)


def _literals(text: str) -> tuple[Any, ...]:
    try:
        parts = ast.literal_eval(f"({text.strip().rstrip(',')},)")
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        raise BadInput(f"{text.strip()!r} are not the parts of a key", hint=_HINT) from None
    return tuple(parts)


def shown_key(key: bytes) -> str:
    """Returns the parts of a key, the first two in words: its layer, and the kind of key.

    >>> shown_key(pack(4, 29, "receipt")), shown_key(pack(4, 8))
    ("(jobs, job, 'receipt')", '(jobs, complete_count)')
    """
    layer = _NAMES.get(key[:1])
    if layer is None:
        return describe(key)
    # A small number is one byte: see the ledger of codes in keys/encoding.py.
    for size in (1, 2):
        kind = _KIND_NAMES.get((layer, key[1 : 1 + size]))
        if kind is not None:
            rest = describe(key[1 + size :])[1:]
            return f"({layer}, {kind})" if rest == ")" else f"({layer}, {kind}, {rest}"
    return f"({layer}, {describe(key[1:])[1:]}"


def shown_value(value: bytes) -> str:
    """Returns a value as text: decoded msgpack, a string, or hex; cut where it is long."""
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
