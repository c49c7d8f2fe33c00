"""Where entities live, below (space, 2).

(0, table)                  -> StoredTable   a table as deployed, by full name, and its numbers
(1, number, id)             -> StoredEntity  the entity itself; `name_lists` has its two forms
(2, index, value, ..., id)  -> bytes         an entry per entity and index: length of the id, expiry
(3, index, value, ..., id)  -> nothing       a milestone: one entry in 512, chosen by its checksum
(4, index, value, ..., id)  -> counter       entries from the milestone before up to this one
(4, index, "end")           -> counter       entries after the last milestone
(5, number)                 -> counter       entities of the table, expired ones still here included
(6, number, expires, id)    -> nothing       the entities that will expire, the earliest first
(7, index)                  -> IndexWork     an index that is being built or cleared
(8,)                        -> int           the last number given to a table or an index
(9, schema)                 -> nothing       a schema that was deployed without tables

A value is 1 to 3 parts, see `order`.

Tables and indexes have numbers, because names would make every key long, and because a table that
is dropped and deployed again must not see keys of the old one that are not cleared yet."""

import struct
from functools import lru_cache
from typing import Final

from holdfast.bounded_cache import of_spaces
from holdfast.keys import pack, pack_int, pack_str, unpack

LAYER: Final = 2  # the first part of every key below a space
# The second part of a key, as in the map above. Never change or reuse a number: it is stored.
TABLE: Final = 0
ENTITY: Final = 1
ENTRY: Final = 2
MILESTONE: Final = 3
ENTRIES_BEFORE: Final = 4
SIZE: Final = 5
EXPIRING: Final = 6
INDEX_WORK: Final = 7
LAST_NUMBER: Final = 8
SCHEMA: Final = 9
# The same in words: what `holdfast inspect` prints.
KEY_NAMES: Final = (
    "table",
    "entity",
    "entry",
    "milestone",
    "entries_before",
    "size",
    "expiring",
    "index_work",
    "last_number",
    "schema",
)
END_OF_INDEX: Final = pack("end")  # sorts after every entry: those begin with an int

# The end of an id part and the beginning of the next: no id contains that end.
_BETWEEN_IDS: Final = (pack_str("")[1:] + pack_str("")[:1]).decode()
_LENGTH: Final = struct.Struct(">H")
_LENGTH_AND_EXPIRY: Final = struct.Struct(">HQ")


class Keys:
    """The keys of one space."""

    __slots__ = (
        *("counts", "entities", "entries", "expiring", "last_number", "milestones"),
        *("schemas", "sizes", "tables", "work"),
    )

    def __init__(self, space: bytes) -> None:
        base = space + pack(LAYER)
        self.tables: Final = base + pack(TABLE)
        self.entities: Final = base + pack(ENTITY)
        self.entries: Final = base + pack(ENTRY)
        self.milestones: Final = base + pack(MILESTONE)
        self.counts: Final = base + pack(ENTRIES_BEFORE)
        self.sizes: Final = base + pack(SIZE)
        self.expiring: Final = base + pack(EXPIRING)
        self.work: Final = base + pack(INDEX_WORK)
        self.last_number: Final = base + pack(LAST_NUMBER)
        self.schemas: Final = base + pack(SCHEMA)

    def table(self, name: str) -> bytes:
        return self.tables + pack_str(name)

    def index_work(self, index: int) -> bytes:
        return self.work + pack_int(index)


@of_spaces
@lru_cache(maxsize=64)
def keys_of(space: bytes) -> Keys:
    return Keys(space)


def entry_value(id_part: bytes, expires: int) -> bytes:
    """Returns the value of an index entry: the length of its id part, and its expiry."""
    if expires:
        return _LENGTH_AND_EXPIRY.pack(len(id_part), expires)
    return _LENGTH.pack(len(id_part))


def id_in(id_part: bytes) -> str:
    """Returns the id in the last part of an index entry, or of an entity's key."""
    if 1 in id_part:
        return str(unpack(id_part)[0])
    return id_part[1:-1].decode()


def ids_in(id_parts: list[bytes]) -> list[str]:
    """Returns the ids in many parts: `id_in`, in one step."""
    joined = b"".join(id_parts)
    if 1 in joined or not joined:
        return [id_in(part) for part in id_parts]
    return joined[1:-1].decode().split(_BETWEEN_IDS)


def id_part_of(key: bytes, value: bytes) -> bytes:
    """Returns the last part of an index entry, as it is in the key of its entity."""
    return key[-_LENGTH.unpack_from(value)[0] :]


def is_expired_entry(value: bytes, now_ms: int) -> bool:
    return len(value) > 2 and _LENGTH_AND_EXPIRY.unpack(value)[1] <= now_ms
