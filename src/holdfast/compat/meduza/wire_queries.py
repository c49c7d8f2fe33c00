"""Reads the bodies of Meduza's queries, field by field.

Unknown fields are skipped; a field that is missing or null has its default.
"""

from collections.abc import Sequence
from typing import Any, Final

from holdfast.entities.bson_types import Int64
from holdfast.entities.bson_values import from_wire
from holdfast.entities.messages import (
    ID,
    Change,
    Del,
    Filter,
    Get,
    Ordering,
    Paging,
    Put,
    PutEntity,
    Update,
)
from holdfast.errors import BadFilter, BadPaging, BadQuery, Malformed
from holdfast.limits import DEFAULT_PAGE_ENTITIES

_INTEGERS: Final = frozenset({int, Int64})


def read_put(body: dict[str, Any]) -> Put:
    entities = [_put_entity(entity) for entity in documents(body, "entities")]
    mode: Any = text(body, "mode") or "merge"
    return Put(text(body, "table"), entities, mode)


def read_get(body: dict[str, Any]) -> Get:
    return Get(
        text(body, "table"),
        _filters(body),
        _texts(body, "properties"),
        _ordering(body),
        _paging(body),
        _flag(body, "count", default=True),
        _flag(body, "versions", default=False),
    )


def read_update(body: dict[str, Any]) -> Update:
    changes = [
        Change(text(change, "op"), text(change, "property"), from_wire(change.get("value")))
        for change in documents(body, "changes")
    ]
    return Update(text(body, "table"), _filters(body), changes, _version(body))


def read_del(body: dict[str, Any]) -> Del:
    return Del(text(body, "table"), _filters(body), _version(body))


# --- parts ------------------------------------------------------------------------------------


def _put_entity(entity: dict[str, Any]) -> PutEntity:
    properties = _document(entity, "properties")
    if "" in properties:
        raise BadQuery("Empty properties not allowed in entities")
    kept = {name: from_wire(value) for name, value in properties.items() if name != ID}
    return PutEntity(
        kept, _id(entity.get(ID)), _integer(entity, "ttl", default=0), _version(entity)
    )


def _filters(body: dict[str, Any]) -> list[Filter]:
    filters = []
    for key, filter in _document(body, "filters").items():
        if not isinstance(filter, dict):
            raise Malformed(f"Malformed message: the filter {key!r} is not a document")
        name = text(filter, "property")
        if name and name != key:
            raise BadFilter(f"the filter under the key {key!r} is for the property {name!r}")
        filters.append(Filter(name, text(filter, "op"), _filter_values(filter, name)))
    return filters


def _filter_values(filter: dict[str, Any], name: str) -> list[Any]:
    values = [from_wire(value) for value in _array(filter, "values")]
    return (
        [_id(value) if type(value) is bytes else value for value in values]
        if name == ID
        else values
    )


def _ordering(body: dict[str, Any]) -> Ordering | None:
    order = _document(body, "order")
    by = text(order, "by")
    return Ordering(by, _flag(order, "asc", default=True)) if by else None


def _paging(body: dict[str, Any]) -> Paging:
    paging = _document(body, "paging")
    defaults = {"offset": 0, "limit": DEFAULT_PAGE_ENTITIES}
    given = [
        default if paging.get(name) is None else paging[name] for name, default in defaults.items()
    ]
    if any(isinstance(number, float) and not number.is_integer() for number in given):
        offset, limit = given
        raise BadPaging(f"Invalid paging parameters: offset: {offset}, limit: {limit}")
    return Paging(
        _integer(paging, "offset", default=0),
        _integer(paging, "limit", default=DEFAULT_PAGE_ENTITIES),
    )


def _version(body: dict[str, Any]) -> int | None:
    return None if body.get("if_version") is None else _integer(body, "if_version", default=0)


def _id(value: Any) -> str | None:
    if value is None or type(value) is str:  # a code (0d) comes as a subclass
        return value
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            raise Malformed("Malformed message: an id is not UTF-8") from None
    raise Malformed(f"Malformed message: an id must be text, not {type(value).__name__}")


# --- fields -----------------------------------------------------------------------------------


def text(body: dict[str, Any], name: str) -> str:
    value = body.get(name)
    if value is None:
        return ""
    return value if type(value) is str else _refuse(name, "text", value)


def _texts(body: dict[str, Any], name: str) -> Sequence[str]:
    values = _array(body, name)
    for value in values:
        if type(value) is not str:
            _refuse(name, "a list of texts", value)
    return values


def _integer(body: dict[str, Any], name: str, *, default: int) -> int:
    value = body.get(name)
    if value is None:
        return default
    if type(value) in _INTEGERS or (isinstance(value, float) and value.is_integer()):
        return int(value)
    number: int = _refuse(name, "an integer", value)
    return number


def _flag(body: dict[str, Any], name: str, *, default: bool) -> bool:
    value = body.get(name)
    if value is None:
        return default
    return value if type(value) is bool else _refuse(name, "a boolean", value)


def _document(body: dict[str, Any], name: str) -> dict[str, Any]:
    value = body.get(name)
    if value is None:
        return {}
    return value if isinstance(value, dict) else _refuse(name, "a document", value)


def documents(body: dict[str, Any], name: str) -> list[dict[str, Any]]:
    values = _array(body, name)
    for value in values:
        if not isinstance(value, dict):
            _refuse(name, "an array of documents", value)
    return values


def _array(body: dict[str, Any], name: str) -> list[Any]:
    value = body.get(name)
    if value is None:
        return []
    return value if isinstance(value, list) else _refuse(name, "an array", value)


def _refuse(name: str, expected: str, value: Any) -> Any:
    raise Malformed(f"Malformed message: {name} must be {expected}, not {type(value).__name__}")
