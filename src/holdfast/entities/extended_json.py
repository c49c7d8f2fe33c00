"""Values as MongoDB's Extended JSON (canonical), extended for values that MongoDB lacks."""

from base64 import b64decode, b64encode
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec
from msgspec.msgpack import Ext

from holdfast.entities.order import Instant, milliseconds
from holdfast.entities.values import elements_of, keep_set, to_kept
from holdfast.error_text import shown
from holdfast.errors import BadDump

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MAX_INT: Final = 2**63 - 1
_JSON_TYPES: Final = frozenset({str, bool, type(None)})
are_json_types: Final = _JSON_TYPES.issuperset  # whether values of these types need no conversion
_KEPT_UNCHANGED: Final = frozenset({int, float, bytes})
_SPECIAL_FLOATS: Final = {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}


def write(kept: Any) -> Any:
    """Returns a kept value as Extended JSON."""
    writer = _WRITERS.get(type(kept))
    return kept if writer is None else writer(kept)


def write_properties(properties: dict[str, Any]) -> dict[str, Any]:
    """Returns properties, as an operation returns them, as Extended JSON."""
    written = {}
    for name, value in properties.items():
        kind = type(value)
        if kind in _JSON_TYPES:
            written[name] = value
        elif kind in _KEPT_UNCHANGED:
            written[name] = _WRITERS[kind](value)
        else:
            written[name] = write(to_kept(value))
    return written


def read(line: bytes) -> dict[str, Any]:
    """Returns the document in a line, its values in kept form."""
    try:
        document = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadDump(f"a line is not JSON: {error}") from None
    if not isinstance(document, dict):
        raise BadDump("a line is not a JSON object")
    return values(document)


def values(document: dict[str, Any]) -> dict[str, Any]:
    """Returns a document decoded from JSON, with its values in kept form."""
    return {name: _read_top(name, value) for name, value in document.items()}


def _read_top(name: str, value: Any) -> Any:
    # The properties are the entity's own names, so one called `$set` is not a Set.
    if name == "properties" and isinstance(value, dict):
        return {key: _read(item) for key, item in value.items()}
    return _read(value)


def _read(value: Any) -> Any:
    if isinstance(value, list):
        return [_read(item) for item in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        [(name, inner)] = value.items()
        reader = _READERS.get(name)
        if reader is not None:
            try:
                return reader(inner)
            except (ValueError, TypeError, KeyError, AttributeError) as error:
                raise BadDump(f"{name} holds {shown(inner)}: {error}") from None
    return {name: _read(item) for name, item in value.items()}


def _write_int(value: int) -> dict[str, str]:
    return {"$numberLong" if value <= _MAX_INT else "$uint": str(value)}


def _write_float(value: float) -> dict[str, str]:
    text = repr(value)
    return {"$numberDouble": _SPECIAL_FLOATS.get(text, text)}


def _write_bytes(value: bytes) -> dict[str, Any]:
    return {"$binary": {"base64": b64encode(value).decode(), "subType": "00"}}


def _write_moment(since_1970_ms: int) -> dict[str, Any]:
    return {"$date": {"$numberLong": str(since_1970_ms)}}


def _write_map(value: dict[str, Any]) -> dict[str, Any]:
    written = {name: write(item) for name, item in value.items()}
    return {"$map": written} if any(name.startswith("$") for name in value) else written


def _read_moment(value: Any) -> datetime | Instant:
    if isinstance(value, str):  # the relaxed form, which people write
        moment = datetime.fromisoformat(value)
        return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    if not isinstance(value, dict) or value.keys() != {"$numberLong"}:
        raise ValueError(
            'it takes {"$numberLong": "milliseconds"} or a text like "2026-11-16T12:00:00Z"'
        )
    since = int(value["$numberLong"])
    if not -_MAX_INT - 1 <= since <= _MAX_INT:
        raise ValueError("it has more than 64 bits")
    try:
        return _EPOCH + timedelta(milliseconds=since)
    except OverflowError:
        return Instant(since)


_WRITERS: Final[dict[type, Callable[[Any], Any]]] = {
    int: _write_int,
    float: _write_float,
    bytes: _write_bytes,
    datetime: lambda value: _write_moment(milliseconds(value)),
    Instant: lambda value: _write_moment(value.milliseconds),
    Ext: lambda value: {"$set": [write(element) for element in elements_of(value)]},
    list: lambda value: [write(item) for item in value],
    dict: _write_map,
}
_READERS: Final[dict[str, Callable[[Any], Any]]] = {
    "$numberLong": int,
    "$numberInt": int,
    "$uint": int,
    "$numberDouble": float,
    "$binary": lambda value: b64decode(value["base64"], validate=True),
    "$date": _read_moment,
    "$set": lambda value: keep_set([_read(element) for element in value]),
    "$map": lambda value: {name: _read(item) for name, item in value.items()},
}
