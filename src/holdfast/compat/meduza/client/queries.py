"""Queries, their parts and their replies, as the public Meduza client names them.

Each query has a `type` and a `document`, which are the two parts of its message on the wire.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from holdfast.compat.meduza.client.errors import MeduzaError
from holdfast.entities import messages
from holdfast.entities.bson_types import Int64
from holdfast.entities.bson_values import LIST_MARK, SET_MARK
from holdfast.entities.columns import one_by_one

_NANOSECONDS: Final = 1_000_000_000


class Condition:
    """The operators of filters."""

    EQ = messages.EQ
    IN = messages.IN
    BETWEEN = messages.BETWEEN
    GT = messages.GT
    LT = messages.LT
    GE = messages.GE
    LE = messages.LE
    ALL = messages.ALL


class Filter:
    """A condition on one property of an entity."""

    def __init__(self, property: str, op: str, *values: Any) -> None:
        self.property = property
        self.op = op
        self.values = values

    def __and__(self, other: Any) -> tuple["Filter", ...]:
        return (self, *_several(other))

    def __rand__(self, other: Any) -> tuple["Filter", ...]:
        return (*_several(other), self)

    def document(self) -> dict[str, Any]:
        values = [to_wire(value) for value in self.values]
        return {"property": self.property, "op": self.op, "values": values}

    def __repr__(self) -> str:
        return f"Filter({self.property} {self.op} {self.values})"


def _several(other: Any) -> tuple[Filter, ...]:
    return (other,) if isinstance(other, Filter) else tuple(other)


class Ordering:
    """The property by which an answer is sorted: its name in the store, or a column."""

    ASC = "ASC"
    DESC = "DESC"

    def __init__(self, by: Any, mode: str = ASC) -> None:
        self.by: str = getattr(by, "name", by)
        self.ascending = mode == Ordering.ASC

    @classmethod
    def asc(cls, by: Any) -> "Ordering":
        return cls(by, cls.ASC)

    @classmethod
    def desc(cls, by: Any) -> "Ordering":
        return cls(by, cls.DESC)

    def document(self) -> dict[str, Any]:
        return {"by": self.by, "asc": self.ascending}


class Paging:
    """The part of the answer to return."""

    def __init__(self, offset: int = 0, limit: int = 100) -> None:
        self.offset = offset
        self.limit = limit

    def document(self) -> dict[str, Any]:
        return {"offset": to_wire(self.offset), "limit": to_wire(self.limit)}


class Entity:
    """A stored object in its raw form."""

    def __init__(self, id: str | None, /, **properties: Any) -> None:
        self.id = id
        self.properties = properties
        self.ttl = 0  # nanoseconds

    def expire(self, seconds: float) -> "Entity":
        """Sets how many seconds the entity lives after it is put."""
        self.ttl = round(seconds * _NANOSECONDS)
        return self

    def document(self) -> dict[str, Any]:
        return {"id": self.id, "properties": to_wire(self.properties), "ttl": to_wire(self.ttl)}

    def __repr__(self) -> str:
        return f"Entity<{self.id}>: {self.properties}"


class Change:
    """A change of one property, or of the entity itself."""

    Set = messages.SET
    Del = messages.DEL
    Expire = messages.EXP
    PropertyDel = messages.PDEL
    Increment = messages.INCR
    SetAdd = messages.SADD
    SetDel = messages.SDEL
    MapSet = messages.MSET
    MapDel = messages.MDEL

    def __init__(self, property: str, op: str, value: Any = None) -> None:
        self.property = property
        self.op = op
        self.value = value

    @classmethod
    def set(cls, prop: str, value: Any) -> "Change":
        return cls(prop, cls.Set, value)

    @classmethod
    def expire(cls, seconds: float) -> "Change":
        return cls("", cls.Expire, round(seconds * _NANOSECONDS))

    @classmethod
    def delProperty(cls, prop: str) -> "Change":
        return cls(prop, cls.PropertyDel)

    @classmethod
    def delete(cls) -> "Change":
        return cls("", cls.Del)

    @classmethod
    def addToSet(cls, prop: str, *elements: Any) -> "Change":
        return cls(prop, cls.SetAdd, one_by_one(elements))

    @classmethod
    def removeFromSet(cls, prop: str, *elements: Any) -> "Change":
        return cls(prop, cls.SetDel, one_by_one(elements))

    @classmethod
    def putInMap(
        cls, prop: str, values: Mapping[str, Any] | None = None, /, **more: Any
    ) -> "Change":
        return cls(prop, cls.MapSet, {**(values or {}), **more})

    @classmethod
    def removeFromMap(cls, prop: str, *keys: str | Iterable[str]) -> "Change":
        return cls(prop, cls.MapDel, one_by_one(keys))

    def document(self) -> dict[str, Any]:
        return {"property": self.property, "op": self.op, "value": to_wire(self.value)}


def _filters(filters: Iterable[Filter]) -> dict[str, Filter]:
    """Returns the filters by property; the wire format allows one for each property."""
    found: dict[str, Filter] = {}
    for each in filters:
        if each.property in found:
            raise MeduzaError(
                f"there is more than one filter for {each.property}",
                hint="Use any() for several values, between() for a range.",
            )
        found[each.property] = each
    return found


def _documents(filters: dict[str, Filter]) -> dict[str, Any]:
    return {name: each.document() for name, each in filters.items()}


class GetQuery:
    """Selects entities."""

    type = "GET"

    def __init__(
        self,
        table: str,
        properties: Iterable[str] = (),
        filters: Iterable[Filter] = (),
        order: Ordering | None = None,
        paging: Paging | None = None,
    ) -> None:
        self.table = table
        self.properties = list(properties)
        self.filters = _filters(filters)
        self.order = order
        self.paging = paging or Paging()

    def filter(self, prop: str, condition: str, *values: Any) -> "GetQuery":
        self.filters[prop] = Filter(prop, condition, *values)
        return self

    def all(self) -> "GetQuery":
        return self.filter(messages.ID, Condition.ALL)

    def limit(self, limit: int) -> "GetQuery":
        self.paging = Paging(0, limit)
        return self

    def page(self, offset: int, limit: int) -> "GetQuery":
        if offset < 0 or limit <= 0:
            raise ValueError(f"Invalid offset/limit: {offset}-{limit}")
        self.paging = Paging(offset, limit)
        return self

    def document(self) -> dict[str, Any]:
        return {
            "table": self.table,
            "properties": self.properties,
            "filters": _documents(self.filters),
            "order": self.order.document() if self.order else None,
            "paging": self.paging.document(),
        }


class PutQuery:
    """Puts entities."""

    type = "PUT"

    def __init__(self, table: str, *entities: Entity) -> None:
        self.table = table
        self.entities = list(entities)

    def add(self, entity: Entity) -> "PutQuery":
        self.entities.append(entity)
        return self

    def document(self) -> dict[str, Any]:
        return {"table": self.table, "entities": [entity.document() for entity in self.entities]}


class UpdateQuery:
    """Changes entities."""

    type = "UPDATE"

    def __init__(self, table: str, filters: Iterable[Filter] = (), *changes: Change) -> None:
        self.table = table
        self.filters = _filters(filters)
        self.changes = list(changes)

    def filter(self, prop: str, condition: str, *values: Any) -> "UpdateQuery":
        self.filters[prop] = Filter(prop, condition, *values)
        return self

    def set(self, prop: str, value: Any) -> "UpdateQuery":
        self.changes.append(Change.set(prop, value))
        return self

    def expire(self, seconds: float) -> "UpdateQuery":
        self.changes.append(Change.expire(seconds))
        return self

    def delProperties(self, *props: str) -> "UpdateQuery":
        self.changes += [Change.delProperty(prop) for prop in props]
        return self

    def document(self) -> dict[str, Any]:
        return {
            "table": self.table,
            "filters": _documents(self.filters),
            "changes": [change.document() for change in self.changes],
        }


class DelQuery:
    """Deletes entities."""

    type = "DEL"

    def __init__(self, table: str, *filters: Filter) -> None:
        self.table = table
        self.filters = _filters(filters)

    def filter(self, prop: str, condition: str, *values: Any) -> "DelQuery":
        self.filters[prop] = Filter(prop, condition, *values)
        return self

    def document(self) -> dict[str, Any]:
        return {"table": self.table, "filters": _documents(self.filters)}


class PingQuery:
    """Asks whether the server answers."""

    type = "PING"

    def document(self) -> dict[str, Any]:
        return {}


Query = GetQuery | PutQuery | UpdateQuery | DelQuery | PingQuery


class Response:
    """The base of every reply: the nanoseconds that the server took, and its error."""

    def __init__(self, **document: Any) -> None:
        response = document.get("Response") or {}
        self.error: str | None = response.get("error")
        self.code: str | None = response.get("code")
        self.time = int(response.get("time") or 0)


class PingResponse(Response):
    """The reply to a PING."""


class PutResponse(Response):
    """The ids of what was put, new or given."""

    def __init__(self, **document: Any) -> None:
        super().__init__(**document)
        self.ids: list[str] = document.get("ids") or []


class GetResponse(Response):
    """A page of entities, and the number of all that match."""

    def __init__(self, **document: Any) -> None:
        super().__init__(**document)
        found = document.get("entities") or []
        self.entities = [Entity(each["id"], **(each["properties"] or {})) for each in found]
        self.total = int(document.get("total") or 0)

    def load(self, model: Any) -> list[Any]:
        return [model.decode(entity) for entity in self.entities]

    def loadOne(self, model: Any) -> Any:
        return model.decode(self.entities[0]) if self.entities else None


class UpdateResponse(Response):
    """How many entities were changed."""

    def __init__(self, **document: Any) -> None:
        super().__init__(**document)
        self.num = int(document.get("num") or 0)


class DelResponse(UpdateResponse):
    """How many entities were deleted."""


RESPONSES: Final[dict[str, type[Response]]] = {
    "RGET": GetResponse,
    "RPUT": PutResponse,
    "RUPDATE": UpdateResponse,
    "RDEL": DelResponse,
    "PONG": PingResponse,
}


def to_wire(value: Any) -> Any:
    """Returns `value` for BSON: sets with a mark, integers of 64 bits as Meduza expects them, times
    without a time zone in UTC."""
    if isinstance(value, int) and not isinstance(value, bool):
        return Int64(value) if -(2**63) <= value < 2**63 else value
    if isinstance(value, (set, frozenset)):
        return [SET_MARK, *map(to_wire, value)]
    if isinstance(value, (list, tuple)):
        return [to_wire(item) for item in value]
    if isinstance(value, dict):
        return {name: to_wire(item) for name, item in value.items()}
    if isinstance(value, datetime) and value.tzinfo is None:
        return value.replace(tzinfo=UTC)
    return bytes(value) if isinstance(value, (bytearray, memoryview)) else value


def from_wire(value: Any) -> Any:
    """Returns the value that `to_wire` has converted; a marked array becomes a set."""
    if isinstance(value, list):
        elements = [from_wire(item) for item in unmarked(value)]
        return set(elements) if value[:1] == [SET_MARK] else elements
    if isinstance(value, dict):
        return {name: from_wire(item) for name, item in value.items()}
    return int(value) if isinstance(value, Int64) else value


def unmarked(items: Iterable[Any]) -> list[Any]:
    """Returns the elements of an array from the wire, without its mark."""
    listed = list(items)
    is_marked = bool(listed) and isinstance(listed[0], str) and listed[0] in (SET_MARK, LIST_MARK)
    return listed[1:] if is_marked else listed
