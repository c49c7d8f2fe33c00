"""Converts annotated parameters and results to plain data that JSON can represent, and back.

msgspec converts dates, UUIDs, decimals, enumerations, dataclasses, structs, typed dicts, sets and
bytes. Models of entities are added here.
"""

import sys
import types
from functools import cache
from typing import Any, Final

import msgspec

__all__ = ["UNFIT", "from_plain", "to_plain"]

UNFIT: Final = (TypeError, ValueError, NotImplementedError, RecursionError)  # what both may raise


def to_plain(value: Any, *, in_order: bool = False) -> Any:
    """Returns `value` as dicts, lists, texts, numbers, booleans and None.

    With `in_order`, equal sets and dicts become equal lists and dicts, whatever their order.

    >>> from datetime import date
    >>> to_plain({"seen": {1}, "at": date(2026, 1, 2)})
    {'seen': [1], 'at': '2026-01-02'}
    """
    order: Any = "deterministic" if in_order else None
    return msgspec.to_builtins(value, str_keys=True, enc_hook=_encode_model, order=order)


def from_plain(value: Any, annotation: Any) -> Any:
    """Reverses `to_plain`, by the annotation; raises `msgspec.ValidationError` if it does not fit.

    >>> from_plain([1, 2], set[int])
    {1, 2}
    """
    return msgspec.convert(value, annotation, str_keys=True, dec_hook=_decode_model)


def _is_model(kind: Any) -> bool:
    models = sys.modules.get("holdfast.entities.models")  # loaded by every program that has a model
    return models is not None and isinstance(kind, type) and issubclass(kind, models.Model)


def _encode_model(value: Any) -> Any:
    if _is_model(type(value)):
        columns = type(value).__columns__
        return {
            "id": value.id,
            **{name: value.__dict__[name] for name in columns if name in value.__dict__},
        }
    raise NotImplementedError(f"there is no JSON for a value of type {type(value).__name__}")


def _decode_model(kind: type, value: Any) -> Any:
    if not _is_model(kind):
        raise NotImplementedError(f"there is no JSON for a value of type {kind.__name__}")
    if not isinstance(value, dict):
        raise ValueError(f"Expected `object`, got `{type(value).__name__}`")
    columns = _columns_of(kind)
    unknown = value.keys() - columns.keys()
    if unknown:
        raise ValueError(f"{kind.__name__} has no column {min(unknown)!r}")
    return kind(**{name: from_plain(part, columns[name]) for name, part in value.items()})


@cache
def _columns_of(model: Any) -> dict[str, Any]:
    """Returns the types of a model's columns, by attribute."""
    from holdfast.entities.types import COLUMN_KINDS  # loaded with the first model anyway

    found: dict[str, Any] = {"id": str | None}
    for attribute, column in model.__columns__.items():
        known = COLUMN_KINDS[column.type]
        kind: Any = known.python
        if column.subtype is not None and known.is_container:
            element = COLUMN_KINDS[column.subtype].python
            kind = types.GenericAlias(kind, (str, element) if known.has_names else (element,))
        found[attribute] = kind | None
    return found
