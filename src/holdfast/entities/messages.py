"""The messages between clients and store: the five queries, their parts and their replies.

The names are Meduza's. The same records are sent as BSON to Meduza's clients, are the arguments of
the mapper's calls, and go over the network as msgpack or JSON. Values in them are plain Python:
None, bool, int, float, str, bytes, datetime, set, list, dict; `values` says which of them an entity
can hold.

Every operation of `Entities` that ends in `_raw` takes these parts as keyword arguments, and
`Entities.execute` takes whole queries, several of them as one transaction:

    put_raw(table, entities, mode="merge")                  -> list of ids, in the order given
    get_raw(table, ids, properties=())                      -> list of Entity, in the order of `ids`
    select_raw(table, filters, order=, offset=, limit=, properties=, count=, partial=) -> Page
    update_raw(table, filters, changes, if_version=)        -> Updated
    delete_raw(table, filters, if_version=)                 -> number of entities
    count_raw(table, filters=())                            -> number of entities
"""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, Final, Literal, TypeAlias

import msgspec

from holdfast.limits import DEFAULT_PAGE_ENTITIES

EQ: Final = "="
IN: Final = "IN"
BETWEEN: Final = "><"
ALL: Final = "ALL"
GT: Final = ">"
LT: Final = "<"
GE: Final = ">="
LE: Final = "<="
EQUALITIES: Final = frozenset({EQ, IN})
RANGES: Final = frozenset({BETWEEN, GT, LT, GE, LE})

# The names of the operators in Meduza's documentation.
OPERATOR_NAMES: Final = {"EQ": EQ, "BETWEEN": BETWEEN, "GT": GT, "LT": LT, "GE": GE, "LE": LE}

SET: Final = "SET"
INCR: Final = "INCR"
MUL: Final = "MUL"
EXP: Final = "EXP"  # the value is nanoseconds from now; None removes the expiry
PDEL: Final = "PDEL"
DEL: Final = "DEL"
SADD: Final = "SADD"
SDEL: Final = "SDEL"
MSET: Final = "MSET"
MDEL: Final = "MDEL"
LADD: Final = "LADD"

ID: Final = "id"  # the one property that every entity has
NO_LIMIT: Final = -1
CHANGED: Final = "entities.changed."  # the prefix of the topics of all change notices
NOT_COUNTED: Final = -1  # the `total` of a query with `count=False`

PutMode: TypeAlias = Literal["merge", "replace", "insert"]
DumpFormat: TypeAlias = Literal["bson", "jsonl"]


class Filter(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A condition on one property of an entity: `Filter("age", ">=", (18,))`."""

    property: str
    op: str
    values: Sequence[Any] = ()


class Ordering(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The property by which an answer is sorted, and in which direction."""

    by: str
    asc: bool = True


class Paging(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The part of the answer to return; a `limit` of -1 is all of it."""

    offset: int = 0
    limit: int = DEFAULT_PAGE_ENTITIES


class Change(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A change of one property of an entity, or (EXP, DEL) of the entity itself."""

    op: str
    property: str = ""
    value: Any = None


class PutEntity(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """An entity to be put. `ttl` is in nanoseconds: 0 leaves an expiry as it is, below 0 removes
    it."""

    properties: dict[str, Any] = {}  # msgspec copies the default
    id: str | None = None
    ttl: int = 0
    if_version: int | None = None  # 0: the entity must not exist


_PUT_MEMBERS: Final = frozenset(PutEntity.__struct_fields__)


def whole_entity(given: dict[str, Any]) -> PutEntity | dict[str, Any]:
    """Reads an entity that came over the network.

    It is a dict of its properties; or, if it has `properties` and at most `id`, `ttl` and
    `if_version` beside them, the whole record.
    """
    if "properties" in given and given.keys() <= _PUT_MEMBERS:
        return msgspec.convert(given, PutEntity, builtin_types=(bytes, datetime))
    return given


class Entity(msgspec.Struct, frozen=True, omit_defaults=True):
    """A stored entity. `ttl` is reported in dumps only."""

    id: str
    properties: dict[str, Any] = {}  # msgspec copies the default
    ttl: int = 0
    version: int = 0


class Page(msgspec.Struct, frozen=True, omit_defaults=True):
    """A page of an answer, and the `total` of all matches: -1 if they were not counted."""

    entities: list[Entity] = []  # msgspec copies the default
    total: int = 0
    partial: bool = False  # an index that is still being built answered: more may match

    def __iter__(self) -> Iterator[Entity]:
        return iter(self.entities)

    def __len__(self) -> int:
        return len(self.entities)


class Updated(msgspec.Struct, frozen=True, omit_defaults=True):
    """The result of an UPDATE: how many entities matched, and how many changes did not apply
    because the value had another type."""

    num: int = 0
    skipped: int = 0


class _Query(
    msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, tag_field="type"
):
    """The base of all queries: on the wire their `type` tells them apart."""


class Put(_Query, frozen=True, tag="PUT"):
    table: str
    entities: Sequence[PutEntity] = ()
    mode: PutMode = "merge"


class Get(_Query, frozen=True, tag="GET"):
    table: str
    filters: Sequence[Filter] = ()
    properties: Sequence[str] = ()
    order: Ordering | None = None
    paging: Paging = Paging()
    count: bool = True
    versions: bool = False


class Update(_Query, frozen=True, tag="UPDATE"):
    table: str
    filters: Sequence[Filter] = ()
    changes: Sequence[Change] = ()
    if_version: int | None = None


class Del(_Query, frozen=True, tag="DEL"):
    table: str
    filters: Sequence[Filter] = ()
    if_version: int | None = None


class Ping(_Query, frozen=True, tag="PING"):
    pass


Query: TypeAlias = Put | Get | Update | Del | Ping
Reply: TypeAlias = list[str] | Page | Updated | int | None  # of PUT, GET, UPDATE, DEL and PING


def changed_topic(table: str) -> str:
    """Returns the topic of a table's change notices. The dot at its end keeps `a.User` apart
    from `a.Users`."""
    return f"{CHANGED}{table}."


class Changed(msgspec.Struct, frozen=True, array_like=True):
    """One entity in a change notice. `op` is put, update, delete or expire."""

    id: str
    op: Literal["put", "update", "delete", "expire"]
    version: int = 0
    properties: tuple[str, ...] = ()  # the names of those that were written


class ChangeNotice(msgspec.Struct, frozen=True, omit_defaults=True):
    """The payload of a change notice: what one commit did to one table."""

    table: str
    changes: list[Changed] = []  # msgspec copies the default
    is_emptied: bool = False  # all entities are gone, and none of them is named


class DumpPage(msgspec.Struct, frozen=True, kw_only=True):
    """A page of a dump. Pass `next` back as `after`; it is None after the last page."""

    dump: bytes
    entities: int
    next: str | None = None
