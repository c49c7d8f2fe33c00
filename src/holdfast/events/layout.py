"""Where events live, below (space, 3).

(0,)                       -> digest    of all deployed schemas, then the settings: all that
                                        ingesting reads of both
(1, name)                  -> schema    as it was deployed, msgpack
(2, key)                   -> record    what a key holds: counters and newest members, see record.py
(3, key, number)           -> bundle    older members of a small set, and digests of its values
(4, key)                   -> sketch    8,192 registers, see sketch.py
(5, generation, 0, value)  -> place     of a member in a large set, or the count in a large board
(5, generation, 1, place)  -> value     the members of a large set, oldest first
(5, generation, 2, number) -> parts     the smallest candidates of a large board, 16 to a row
(6, id)                    -> end       ids of events that were seen, until the dedup window ends

A generation is the rows of a large set or board. A key that is forgotten or shrinks leaves its
generation behind, which is then removed in bounded steps.
"""

from functools import lru_cache
from hashlib import blake2b
from typing import Final

from holdfast.keys import pack_bytes, pack_int, pack_str, prefix_range

__all__ = ["Keys", "keys_of", "place"]

LAYER: Final = 3

_END: Final = b"\x00"  # of a packed str
WHOLE_VALUE_BYTES: Final = 128  # a longer value is found by its digest: no order is asked of it


class Keys:
    """The keys of one space, built from prefixes that are packed once."""

    __slots__ = (
        "_bundle",
        "_id",
        "_record",
        "_rows",
        "_schema",
        "_sketch",
        "schemas",
        "schemas_digest",
    )

    def __init__(self, space: bytes) -> None:
        base = space + pack_int(LAYER)
        text = pack_str("")[:-1]  # the code of a str
        self.schemas_digest: Final = base + pack_int(0)
        self._schema: Final = base + pack_int(1)
        self.schemas: Final = prefix_range(self._schema)
        self._record: Final = base + pack_int(2) + text
        self._bundle: Final = base + pack_int(3) + text
        self._sketch: Final = base + pack_int(4) + text
        self._rows: Final = base + pack_int(5)
        self._id: Final = base + pack_int(6)

    def schema(self, name: str) -> bytes:
        return self._schema + pack_str(name)

    def schema_name(self, key: bytes) -> str:
        return _unescaped(key[len(self._schema) + 1 : -1]).decode()

    def record(self, key: bytes) -> bytes:
        return self._record + _escaped(key) + _END

    def records(self, keys: list[bytes]) -> list[bytes]:
        """`record` of each, for the many keys of an event."""
        together = b"".join(keys)
        if b"\x00" in together or b"\x01" in together:
            return [self.record(key) for key in keys]
        prefix, end = self._record, _END
        return [prefix + key + end for key in keys]

    def record_range(self, prefix: bytes) -> tuple[bytes, bytes]:
        """All records whose key begins with `prefix`."""
        return prefix_range(self._record + _escaped(prefix))

    def record_name(self, record: bytes) -> bytes:
        return _unescaped(record[len(self._record) : -1])

    def bundle(self, key: bytes, number: int) -> bytes:
        return self._bundle + _escaped(key) + _END + pack_int(number)

    def sketch(self, key: bytes) -> bytes:
        return self._sketch + _escaped(key) + _END

    def generation(self, number: int) -> bytes:
        """The prefix of all rows of a generation."""
        return self._rows + pack_int(number)

    def seen_id(self, id: str) -> bytes:
        return self._id + pack_str(id)


@lru_cache(maxsize=1_024)
def keys_of(space: bytes) -> Keys:
    return Keys(space)


VALUES: Final = pack_int(0)  # the parts of a generation
PLACES: Final = pack_int(1)
SMALLEST: Final = pack_int(2)


def value_part(value: bytes) -> bytes:
    """A value as part of a key; what is too long for one is stood in for by its digest."""
    if len(value) > WHOLE_VALUE_BYTES:
        value = b"\xff" + blake2b(value, digest_size=16).digest()  # no UTF-8 begins with ff
    return pack_bytes(value)


def part_value(part: bytes) -> bytes:
    """The value that `value_part` made a part of, if it was not too long."""
    return _unescaped(part[1:-1])


def place(at: int, sequence: int) -> bytes:
    """The place of a member in its set: by time, and by arrival within a millisecond."""
    return at.to_bytes(6, "big") + sequence.to_bytes(8, "big")


def _escaped(key: bytes) -> bytes:
    if b"\x00" in key or b"\x01" in key:
        return pack_bytes(key)[1:-1]
    return key


def _unescaped(key: bytes) -> bytes:
    if b"\x01" in key:
        return key.replace(b"\x01\x01", b"\x00").replace(b"\x01\x02", b"\x01")
    return key
