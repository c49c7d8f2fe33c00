"""Where metrics are stored, below (space, 5).

(0, prefix, metric)                                   -> StoredSpec
(1, prefix, metric, sequence, bucket, scope, entity)  -> counter, GaugeCell or SketchCell
(2, prefix, metric, scope, entity)                    -> counter or LifetimeSum, for ever
(3, prefix, metric, scope, entity)                    -> LastSample of a gauge
(4, prefix, condition, scope, entity)                 -> arrival time and limit, for GCRA
(5, prefix, condition, scope, entity, microseconds)   -> counter: what was admitted then
(6, prefix, name)                                     -> a fixed window, for the package `limits`
(7, prefix, condition, scope, entity)                 -> summary of a limiter's window

`prefix` and `entity` are tuples of strings. The scope is 0 for a global entity and the namespace, a
string, for a local one, so that a namespace called "global" is a scope of its own.

The bucket comes before scope and entity: all expired keys of a sequence are one range, the entities
of a bucket are next to each other for `top`, and a read of one entity is a `get_many` of its
buckets. A limiter would do that for each hit; `window_summaries.py` makes it one read.
"""

from sys import getsizeof
from typing import Final

from holdfast.bounded_cache import BoundedCache, bounded_cache, of_spaces
from holdfast.keys import pack, pack_int, pack_str, prefix_range

LAYER: Final = 5
SPECS, BUCKETS, LIFETIMES, LAST_SAMPLES, ARRIVAL_TIMES, LOGS, FIXED_WINDOWS, WINDOW_SUMMARIES = (
    range(8)
)

# The second part of a key, in words: what `holdfast inspect` prints.
KEY_NAMES: Final = (
    *("spec", "bucket", "lifetime", "last_sample"),
    *("arrival_time", "log", "fixed_window", "window_summary"),
)

THROTTLE: Final = 0  # the condition of `throttle`: a number, so no named condition collides

Range = tuple[bytes, bytes]


class Keys:
    """The keys of one prefix in one space. Built once, so that an operation only concatenates."""

    __slots__ = ("_families", "prefix", "space")

    def __init__(self, space: bytes, prefix: tuple[str, ...]) -> None:
        self.space: Final = space
        self.prefix: Final = prefix
        self._families: Final = tuple(
            space + pack(LAYER, family, prefix) for family in range(WINDOW_SUMMARIES + 1)
        )

    def family(self, family: int) -> bytes:
        """Returns the beginning of all keys of a family under this prefix."""
        return self._families[family]

    def spec(self, metric: str) -> bytes:
        return _spec_keys[self._families[SPECS], metric]

    def metric(self, metric: str) -> bytes:
        """Returns the beginning of all bucket keys of a metric."""
        return self._families[BUCKETS] + pack_str(metric)

    def sequence(self, metric: str, sequence: str) -> bytes:
        """Returns the beginning of a sequence's bucket keys; the bucket and the entity follow."""
        return _sequence_stems[self._families[BUCKETS], metric, sequence]

    def entity_key(self, family: int, name: str, suffix: bytes) -> bytes:
        """Returns the key of an entity in one of the families that have no buckets."""
        return self._families[family] + pack_str(name) + suffix

    def entity_range(self, family: int, name: str) -> Range:
        """Returns the range of the keys of all entities in such a family."""
        return prefix_range(self._families[family] + pack_str(name))

    def fixed_window(self, name: str) -> bytes:
        return self._families[FIXED_WINDOWS] + pack_str(name)


@bounded_cache(1_024, is_of_spaces=True)
def keys_of(space: bytes, prefix: tuple[str, ...]) -> Keys:
    return Keys(space, prefix)


def _named_keys(space_and_prefix: tuple[bytes, str]) -> Keys:
    space, prefix = space_and_prefix
    return keys_of(space, (prefix,))


# By space and prefix: the keys of a prefix that is one string, as most are.
named_keys: Final = of_spaces(BoundedCache(_named_keys, entries=1_024))


def _spec_key(arguments: tuple[bytes, str]) -> bytes:
    specs, metric = arguments
    return specs + pack_str(metric)


_spec_keys: Final = of_spaces(BoundedCache(_spec_key, entries=4_096))


def _sequence_stem(arguments: tuple[bytes, str, str]) -> bytes:
    buckets, metric, sequence = arguments
    return buckets + pack_str(metric) + pack_str(sequence)


_sequence_stems: Final = of_spaces(BoundedCache(_sequence_stem, entries=4_096))


def _stems_bytes(arguments: tuple[bytes, int, int]) -> int:
    stem, first, last = arguments
    return (last - first + 1) * getsizeof(stem)


@bounded_cache(1_024, size_of=_stems_bytes, is_of_spaces=True)
def window_stems(stem: bytes, first: int, last: int) -> tuple[bytes, ...]:
    """Returns the buckets from `first` to `last` of one sequence, each without its entity.

    A limiter asks for the same buckets until the next one begins, for whichever entity.
    """
    return tuple([stem + pack_int(bucket) for bucket in range(first, last + 1)])


def throttle_key(keys: Keys, suffix: bytes) -> bytes:
    return keys.family(ARRIVAL_TIMES) + pack_int(THROTTLE) + suffix


def bucket_range(stem: bytes, first: int, last: int) -> Range:
    """Returns all keys of a sequence in the buckets from `first` to `last`."""
    return stem + pack_int(first), stem + pack_int(last + 1)


def all_specs(space: bytes) -> Range:
    return prefix_range(space + pack(LAYER, SPECS))
