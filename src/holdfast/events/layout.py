"""Where events are stored, below (space, LAYER). The first part is one of the named codes:

SCHEMAS_DIGEST  ()                       -> digest  of all deployed schemas, then the settings:
                                                    ingestion reads both with one key
SCHEMA          (name)                   -> schema  as it was deployed, msgpack
RECORD          (key)                    -> record  counters and newest members of a key, see
                                                    codec.py
BUNDLE          (key, number)            -> bundle  older members of a small set, and digests of
                                                    its values
SKETCH          (key)                    -> sketch  8,192 registers, see sketch.py
ROWS            (generation, 0, value)   -> place   of a member in a large set, or the count in a
                                                    large board
                (generation, 1, place)   -> value   the members of a large set, oldest first
                (generation, 2, number)  -> parts   the smallest candidates of a large board, 16 to
                                                    a row
                (generation, 3, count, value)
                                         -> error   the candidates of a very large board, highest
                                                    count first, see board_rows.py
                (generation, 4)          -> cursor  how far that index is built
SEEN_ID         (id)                     -> end     ids of events, until the dedup window ends
FAN_OUT         (finished, id)           -> FanOut  a background fan-out: what it writes, how far
FAN_OUT_LIST    (id)                     -> strings that were known when the fan-out began
FAN_OUT_SOURCE  (generation, id)         -> cursor  how far a fan-out has read the generation
FAN_OUT_CHANGE  (id, generation, value)  -> state   of a member, before it changed meanwhile
BOARD_BESIDE    (key)                    -> record  a leaderboard beside the set of that key
NUMBERS         (key)                    -> numbers sum, extremes and percentiles, see numbers.py
TIMED           (key, counter)           -> list    digests with the second of their last add, or
                                                    nothing once there are rows
                (key, counter, number)   -> row     32 registers, see timed_counters.py

A generation holds the rows of a large set or board. A key that is forgotten, or that shrinks,
abandons its generation, which is then removed in bounded steps.
"""

from functools import lru_cache
from hashlib import blake2b
from typing import Final

from holdfast.bounded_cache import of_spaces
from holdfast.keys import pack_bytes, pack_int, pack_str, prefix_range

__all__ = ["CHANGED", "Keys", "keys_of", "place"]

LAYER: Final = 3

SCHEMAS_DIGEST: Final = 0
SCHEMA: Final = 1
RECORD: Final = 2
BUNDLE: Final = 3
SKETCH: Final = 4
ROWS: Final = 5
SEEN_ID: Final = 6
FAN_OUT: Final = 7
FAN_OUT_LIST: Final = 8
FAN_OUT_SOURCE: Final = 9
FAN_OUT_CHANGE: Final = 10
BOARD_BESIDE: Final = 11
NUMBERS: Final = 12
TIMED: Final = 13

# The second part of a key, in words: what `holdfast inspect` prints.
KEY_NAMES: Final = (
    *("schemas_digest", "schema", "record", "bundle", "sketch", "rows", "seen_id"),
    *("fan_out", "fan_out_list", "fan_out_source", "fan_out_change"),
    *("board_beside", "numbers", "timed"),
)

CHANGED: Final = "events:"  # followed by a key, the topic of the notice that the key has changed

_END: Final = b"\x00"  # of a packed str
WHOLE_VALUE_BYTES: Final = 128  # a longer value is stored by its digest: it needs no order


class Keys:
    """Builds the keys of one space from prefixes that are packed once."""

    __slots__ = (
        "_beside",
        "_bundle",
        "_change",
        "_fan_out",
        "_fan_out_list",
        "_id",
        "_numbers",
        "_record",
        "_rows",
        "_schema",
        "_sketch",
        "_source",
        "_timed",
        "fan_outs",
        "schemas",
        "schemas_digest",
    )

    def __init__(self, space: bytes) -> None:
        base = space + pack_int(LAYER)
        text = pack_str("")[:-1]  # the code of a str
        self.schemas_digest: Final = base + pack_int(SCHEMAS_DIGEST)
        self._schema: Final = base + pack_int(SCHEMA)
        self.schemas: Final = prefix_range(self._schema)
        self._record: Final = base + pack_int(RECORD) + text
        self._bundle: Final = base + pack_int(BUNDLE) + text
        self._sketch: Final = base + pack_int(SKETCH) + text
        self._rows: Final = base + pack_int(ROWS)
        self._id: Final = base + pack_int(SEEN_ID)
        self._fan_out: Final = base + pack_int(FAN_OUT)
        self.fan_outs: Final = [self._fan_out + pack_int(finished) for finished in (0, 1)]
        self._fan_out_list: Final = base + pack_int(FAN_OUT_LIST)
        self._source: Final = base + pack_int(FAN_OUT_SOURCE)
        self._change: Final = base + pack_int(FAN_OUT_CHANGE)
        self._beside: Final = base + pack_int(BOARD_BESIDE) + text
        self._numbers: Final = base + pack_int(NUMBERS) + text
        self._timed: Final = base + pack_int(TIMED) + text

    def schema(self, name: str) -> bytes:
        return self._schema + pack_str(name)

    def schema_name(self, key: bytes) -> str:
        return _unescaped(key[len(self._schema) + 1 : -1]).decode()

    def record(self, key: bytes) -> bytes:
        return self._record + _escaped(key) + _END

    def record_range(self, prefix: bytes) -> tuple[bytes, bytes]:
        """Returns the range of all records whose key begins with `prefix`."""
        return prefix_range(self._record + _escaped(prefix))

    def record_name(self, record: bytes) -> bytes:
        return _unescaped(record[len(self._record) : -1])

    def bundle(self, key: bytes, number: int) -> bytes:
        return self._bundle + _escaped(key) + _END + pack_int(number)

    def sketch(self, key: bytes) -> bytes:
        return self._sketch + _escaped(key) + _END

    def generation(self, number: int) -> bytes:
        """Returns the prefix of all rows of a generation."""
        return self._rows + _packed_generation(number)

    def seen_id(self, id: str) -> bytes:
        return self._id + pack_str(id)

    # --- what a key has beside its record --------------------------------------------------------

    def board_beside(self, key: bytes) -> bytes:
        return self._beside + _escaped(key) + _END

    def boards_beside(self, prefix: bytes) -> tuple[bytes, bytes]:
        """Returns the range of the boards beside sets whose key begins with `prefix`."""
        return prefix_range(self._beside + _escaped(prefix))

    def numbers(self, key: bytes) -> bytes:
        return self._numbers + _escaped(key) + _END

    def numbers_range(self, prefix: bytes) -> tuple[bytes, bytes]:
        """Returns the range of the numbers whose key begins with `prefix`."""
        return prefix_range(self._numbers + _escaped(prefix))

    def key_beside(self, stored_key: bytes) -> bytes:
        """Returns the key of a board beside a set, or of numbers: their prefixes are as long."""
        return _unescaped(stored_key[len(self._beside) : -1])

    def timed(self, key: bytes, counter: int) -> bytes:
        return self._timed + _escaped(key) + _END + pack_int(counter)

    def timed_all(self, key: bytes) -> tuple[bytes, bytes]:
        """Returns the range of all timed counters of a key."""
        return prefix_range(self._timed + _escaped(key) + _END)

    # --- background fan-outs ---------------------------------------------------------------------

    def fan_out(self, id: bytes, *, finished: bool = False) -> bytes:
        return self.fan_outs[finished] + pack_bytes(id)

    def fan_out_list(self, id: bytes) -> bytes:
        return self._fan_out_list + pack_bytes(id)

    def fan_out_source(self, generation: int, id: bytes) -> bytes:
        return self._source + pack_int(generation) + pack_bytes(id)

    def fan_out_sources(self, generation: int) -> tuple[bytes, bytes]:
        """Returns the range of the fan-outs that read a generation."""
        return prefix_range(self._source + pack_int(generation))

    def fan_out_changes(self, id: bytes, generation: int) -> bytes:
        """Returns the prefix of the members that changed while a fan-out read them."""
        return self._change + pack_bytes(id) + pack_int(generation)

    def fan_out_all_changes(self, id: bytes) -> tuple[bytes, bytes]:
        return prefix_range(self._change + pack_bytes(id))


@of_spaces
@lru_cache(maxsize=1_024)
def keys_of(space: bytes) -> Keys:
    return Keys(space)


_packed_generation: Final = lru_cache(maxsize=256)(pack_int)  # few boards get most of the counts

VALUES: Final = pack_int(0)  # the parts of a generation
PLACES: Final = pack_int(1)
SMALLEST: Final = pack_int(2)
COUNTS: Final = pack_int(3)
COUNTS_CURSOR: Final = pack_int(4)


def value_part(value: bytes) -> bytes:
    """Returns a value as part of a key; a long value is replaced by its digest."""
    if len(value) > WHOLE_VALUE_BYTES:
        value = b"\xff" + blake2b(value, digest_size=16).digest()  # no UTF-8 begins with ff
    return pack_bytes(value)


def part_value(part: bytes) -> bytes:
    """Returns the value that `value_part` packed, unless it was replaced by a digest."""
    return _unescaped(part[1:-1])


def place(at: int, sequence: int) -> bytes:
    """Returns a member's place in its set: by time, within a millisecond by arrival."""
    return at.to_bytes(6, "big") + sequence.to_bytes(8, "big")


def _escaped(key: bytes) -> bytes:
    if 0 in key or 1 in key:
        return pack_bytes(key)[1:-1]
    return key


def _unescaped(key: bytes) -> bytes:
    if 1 in key:
        return key.replace(b"\x01\x01", b"\x00").replace(b"\x01\x02", b"\x01")
    return key
