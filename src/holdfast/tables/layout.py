"""Where tables live, below (space, 1).

(0, name)                       -> TableRecord    number, schema, ids of attributes and indexes
(1, number)                     -> name           the way back, for what only knows the number
(2, number, hash.., range..)    -> row            header, expiry, all values but the static ones
(3, number, hash..)             -> statics        the static values of a hash key, in the same form
(4, number, index, hash.., range..) -> entry      the attributes that an index carries, likewise
(5, number, what)               -> counter        rows, bytes, entries, rows that will expire
(6, number, index)              -> BuildRecord    how far the building of an index has come
(7, name)                       -> DefaultRecord  the schema by default, from domain `*`
(8, name)                       -> nothing        the mark that the default does not apply here
(9,)                            -> counter        the number given last; none is used twice

A hash key is the components of the hash attributes in their order, or, if they are long, None and a
digest: hash keys are never read in order. A range component of order `desc` is the complement of
its bytes. No key is ever decoded: a row and an entry hold their key attributes too.

A stored row is a header byte (codec in the low bits, flags above), 8 bytes of expiry in
milliseconds if the header says so, 4 bytes of policy generation if it says so, the fallbacks of a
record's newest row (`revisions.py`; 4 bytes of length, then for each 17 bytes of the end of its key
and 8 of expiry) if it says so, then the values as a msgpack array by attribute id.
"""

from functools import lru_cache
from hashlib import blake2b
from typing import Final

import msgspec

from holdfast.keys import pack, pack_bytes, pack_int, pack_str
from holdfast.limits import MAX_INLINE_HASH_BYTES

LAYER: Final = 1  # the first part of every key below a space
# The second part of a key, in words: what `holdfast inspect` prints.
KEY_NAMES: Final = (
    "table",
    "number",
    "row",
    "statics",
    "entry",
    "count",
    "build",
    "default",
    "no_default",
    "last_number",
)

# What is counted about a table.
ROWS: Final = 0
BYTES: Final = 1
ENTRIES: Final = 2
EXPIRING: Final = 3

_DIGEST_BYTES: Final = 24  # two hash keys meet by chance after 2^96 of them


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
    marks: bytes
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
        """Returns the entries of one index, or of all indexes of a table."""
        return self.entries + pack_int(number) + (b"" if index is None else pack_int(index))

    def count(self, number: int, what: int) -> bytes:
        return self.counts + pack_int(number) + pack_int(what)

    def build(self, number: int, index: int) -> bytes:
        return self.builds + pack_int(number) + pack_int(index)

    def default(self, name: str) -> bytes:
        return self.defaults + pack_str(name)

    def mark(self, name: str) -> bytes:
        return self.marks + pack_str(name)


@lru_cache(maxsize=1024)
def keys_of(space: bytes) -> Keys:
    below = space + pack(LAYER)
    return Keys(*(below + pack(kind) for kind in range(10)))


class TableKeys(msgspec.Struct, frozen=True):
    """The prefixes of one table, and the keys of its figures: rows, bytes, entries, expiring."""

    rows: bytes
    statics: bytes
    entries: bytes
    counts: tuple[bytes, ...]


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
    """Returns the place of a hash key: its components themselves, or a digest if they are long."""
    if len(components) <= MAX_INLINE_HASH_BYTES:
        return components
    return pack(None) + pack_bytes(blake2b(components, digest_size=_DIGEST_BYTES).digest())
