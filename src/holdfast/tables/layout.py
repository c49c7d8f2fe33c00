"""Where tables are stored, below (space, LAYER). The first part is a `Code`:

TABLE        (name)                          -> TableRecord    number, schema, ids of attributes
                                                               and indexes
NUMBER       (number)                        -> name           of the table with that number
ROW          (number, hash.., range..)       -> row            header, expiry, values but statics
STATICS      (number, hash..)                -> statics        of a hash key, in the form of a row
ENTRY        (number, index, hash.., range..) -> entry         the attributes of an index, likewise
COUNT        (number, what)                  -> counter        rows, bytes, entries, expiring rows
BUILD        (number, index)                 -> BuildRecord    progress of an index build
DEFAULT      (name)                          -> DefaultRecord  the schema by default, of domain `*`
NO_DEFAULT   (name)                          -> nothing        the default does not apply here
LAST_NUMBER  ()                              -> counter        of tables; no number is used twice

A hash key consists of the components of the hash attributes in order; if they are long, of None and
a digest, since hash keys are never read in order. A range component of order `desc` is the
complement of its bytes. No key is ever decoded: rows and entries hold their key attributes too.

A stored row is a header byte (codec in the low bits, flags above), 8 bytes of expiry in
milliseconds if the header says so, 4 bytes of policy generation if it says so, the fallbacks of a
record's newest row (`revisions.py`; 4 bytes of length, then for each 17 bytes of the end of its key
and 8 of expiry) if it says so, then the values as a msgpack array by attribute id.
"""

from enum import IntEnum
from functools import lru_cache
from hashlib import blake2b
from typing import Final

import msgspec

from holdfast.bounded_cache import of_spaces
from holdfast.keys import pack, pack_bytes, pack_int, pack_str
from holdfast.limits import MAX_INLINE_HASH_BYTES

LAYER: Final = 1  # the first part of every key below a space


class Code(IntEnum):
    """The second part of every key."""

    TABLE = 0
    NUMBER = 1
    ROW = 2
    STATICS = 3
    ENTRY = 4
    COUNT = 5
    BUILD = 6
    DEFAULT = 7
    NO_DEFAULT = 8
    LAST_NUMBER = 9


KEY_NAMES: Final = tuple(code.name.lower() for code in Code)  # what `holdfast inspect` prints

# The counters of a table.
ROWS: Final = 0
BYTES: Final = 1
ENTRIES: Final = 2
EXPIRING: Final = 3

_DIGEST_BYTES: Final = 24  # a collision is likely only after 2^96 hash keys


class Keys(msgspec.Struct, frozen=True):
    """The prefixes of one space."""

    tables: bytes
    numbers: bytes
    rows: bytes
    statics: bytes
    entries: bytes
    counts: bytes
    builds: bytes
    defaults: bytes
    no_defaults: bytes
    last_number: bytes

    def table(self, name: str) -> bytes:
        return self.tables + pack_str(name)

    def number(self, number: int) -> bytes:
        return self.numbers + pack_int(number)

    def rows_of(self, number: int) -> bytes:
        return self.rows + pack_int(number)

    def statics_of(self, number: int) -> bytes:
        return self.statics + pack_int(number)

    def entries_of(self, number: int, index: int | None = None) -> bytes:
        """Returns the prefix of the entries of one index, or of all indexes of a table."""
        return self.entries + pack_int(number) + (b"" if index is None else pack_int(index))

    def count(self, number: int, what: int) -> bytes:
        return self.counts + pack_int(number) + pack_int(what)

    def build(self, number: int, index: int) -> bytes:
        return self.builds + pack_int(number) + pack_int(index)

    def default(self, name: str) -> bytes:
        return self.defaults + pack_str(name)

    def no_default(self, name: str) -> bytes:
        return self.no_defaults + pack_str(name)


@of_spaces
@lru_cache(maxsize=1024)
def keys_of(space: bytes) -> Keys:
    below = space + pack(LAYER)
    return Keys(*(below + pack(int(code)) for code in Code))


class TableKeys(msgspec.Struct, frozen=True):
    """The prefixes of one table, and the keys of its counters: rows, bytes, entries, expiring."""

    rows: bytes
    statics: bytes
    entries: bytes
    counts: tuple[bytes, ...]


@of_spaces
@lru_cache(maxsize=4096)
def table_keys(space: bytes, number: int) -> TableKeys:
    keys = keys_of(space)
    return TableKeys(
        keys.rows_of(number),
        keys.statics_of(number),
        keys.entries_of(number),
        tuple(keys.count(number, what) for what in (ROWS, BYTES, ENTRIES, EXPIRING)),
    )


def hash_key(components: bytes) -> bytes:
    """Returns a hash key as it is stored: its components, or a digest if they are long."""
    if len(components) <= MAX_INLINE_HASH_BYTES:
        return components
    return pack(None) + pack_bytes(blake2b(components, digest_size=_DIGEST_BYTES).digest())
