"""Arguments and results whose form depends on other arguments."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from holdfast.entities.messages import Del, Get, Page, Put, PutEntity, Reply, Update, Updated
from holdfast.events.records import (
    Aggregate,
    BoardEntry,
    Distinct,
    KeyDescription,
    Member,
    MemberPage,
    Point,
)

_PUT_FIELDS: Final = frozenset(PutEntity.__struct_fields__)
_REPLIES: Final[dict[type, Any]] = {Put: list[str], Get: Page, Update: Updated, Del: int}
_ANSWERS: Final[dict[Any, Any]] = {
    "members": MemberPage,
    "contains": Member | None,
    "size": int,
    "gross": int,
    "top": list[BoardEntry],
    "distinct": Distinct,
    "series": list[Point],
    "aggregate": Aggregate,
    "describe": KeyDescription,
}


def as_entities(entities: Any) -> Any:
    """Returns entities to put, so that no plain dict can be mistaken for a `PutEntity`."""
    if not isinstance(entities, Iterable) or isinstance(entities, str | Mapping):
        return entities
    return [_as_entity(entity) for entity in entities]


def _as_entity(entity: Any) -> Any:
    if isinstance(entity, PutEntity):
        given = {name: getattr(entity, name) for name in entity.__struct_fields__}
        return {name: value for name, value in given.items() if value or name == "properties"} | (
            {"if_version": 0} if entity.if_version == 0 else {}
        )
    if isinstance(entity, Mapping) and "properties" in entity and entity.keys() <= _PUT_FIELDS:
        return {"properties": dict(entity), "id": entity.get("id")}
    return entity


def replies(queries: Sequence[Any], found: Sequence[Any]) -> list[Reply]:
    """Returns the replies of `entities.execute`, each in the type of its query."""
    return [
        msgspec.convert(reply, _REPLIES.get(type(query), Any))
        for query, reply in zip(queries, found, strict=True)
    ]


def answers(queries: Sequence[Any], found: Sequence[Any]) -> list[Any]:
    """Returns the answers of `events.read`, each in the type of its operation."""
    return [
        msgspec.convert(answer, _answer_type(query))
        for query, answer in zip(queries, found, strict=True)
    ]


def _answer_type(query: Any) -> Any:
    if isinstance(query, str):
        return int if query.startswith("#") else MemberPage
    return _ANSWERS.get(query.get("op"), Any) if isinstance(query, Mapping) else Any
