"""Caches that are bounded by bytes, for values derived from keys that callers choose.

`functools.lru_cache` bounds the number of entries. If callers choose the keys, that does not bound
memory: a thousand names of a few megabytes are gigabytes that nobody uses again. And what is cached
for a space is useless once the space is dropped: `of_spaces` registers such caches.
"""

import sys
from collections.abc import Callable
from typing import Any, Final, ParamSpec, TypeVar

from holdfast.limits import MAX_CACHED_BYTES, MAX_CACHED_KEY_BYTES

__all__ = [
    "BoundedCache",
    "BoundedDict",
    "SharedBound",
    "bounded_cache",
    "forget_spaces",
    "of_spaces",
]

_TEXTS: Final = frozenset({str, bytes})

Key = TypeVar("Key")
Made = TypeVar("Made")
Arguments = ParamSpec("Arguments")


class BoundedDict(dict[Key, Made]):
    """Keeps at most `entries` and `most_bytes`. When it is full, all of it is dropped."""

    __slots__ = ("_bytes", "_entries", "_most_bytes")

    def __init__(self, entries: int, most_bytes: int = MAX_CACHED_BYTES) -> None:
        super().__init__()
        self._entries = entries
        self._most_bytes = most_bytes
        self._bytes = 0  # approximate: threads may overwrite each other's additions

    def keep(self, key: Key, made: Made, size: int) -> None:
        """Keeps an entry, whatever its size: it is the latest."""
        if len(self) >= self._entries or self._bytes + size > self._most_bytes:
            self.clear()
        self[key] = made
        self._bytes += size

    def clear(self) -> None:
        super().clear()
        self._bytes = 0


class BoundedCache(BoundedDict[Key, Made]):
    """Remembers what `make` returned, for at most `entries` keys and `MAX_CACHED_BYTES`.

    A hit costs as much as in any dict, which is less than a call of a cached function. When the
    cache is full, all of it is dropped. Large keys and exceptions of `make` are not kept.

    >>> lengths = BoundedCache(len, entries=100)
    >>> lengths["some text"], lengths["x" * 1_000_000], list(lengths)
    (9, 1000000, ['some text'])
    """

    __slots__ = ("_make", "_shared", "_size_of")

    def __init__(
        self,
        make: Callable[[Key], Made],
        entries: int,
        size_of: Callable[[Key], int] | None = None,
        shared: "SharedBound | None" = None,
    ) -> None:
        super().__init__(entries)
        self._make = make
        self._size_of = size_of or _size
        self._shared = shared

    def __missing__(self, key: Key) -> Made:
        made = self._make(key)
        size = self._size_of(key)
        if size > MAX_CACHED_KEY_BYTES:
            return made
        if self._shared is not None:
            self._shared.add()
        self.keep(key, made, size)
        return made


class SharedBound:
    """Bounds the entries of several caches together, such as one for each space.

    When there are too many, `drop` drops them all, usually with the objects that hold the caches.
    """

    def __init__(self, entries: int, drop: Callable[[], None]) -> None:
        self._entries = entries
        self._drop = drop
        self._count = 0  # entries since it was last full; some may be gone

    def add(self) -> None:
        """Counts an entry that one of the caches is about to keep."""
        self._count += 1
        if self._count > self._entries:
            self._count = 0
            self._drop()


def bounded_cache(
    entries: int, size_of: Callable[[Any], int] | None = None, *, is_of_spaces: bool = False
) -> Callable[[Callable[Arguments, Made]], Callable[Arguments, Made]]:
    """Decorates a function to remember its results, like `lru_cache`, within the bounds of
    `BoundedCache`. `size_of` gets the arguments as a tuple."""

    def decorate(function: Callable[Arguments, Made]) -> Callable[Arguments, Made]:
        make: Callable[..., Made] = function
        kept: BoundedCache[Any, Made] = BoundedCache(lambda args: make(*args), entries, size_of)
        if is_of_spaces:
            of_spaces(kept)

        def call(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Made:
            return kept[args]

        return call

    return decorate


Cache = TypeVar("Cache")
_clear_functions: Final[list[Callable[[], None]]] = []


def of_spaces(cache: Cache) -> Cache:
    """Registers a cache whose keys belong to spaces, of this module or of `lru_cache`;
    `forget_spaces` empties it."""
    _clear_functions.append(getattr(cache, "cache_clear", None) or cache.clear)  # type: ignore[attr-defined]  # one of both
    return cache


def forget_spaces() -> None:
    """Empties all registered caches, because a space was dropped.

    Entries of other spaces are made again when they are needed, in some microseconds.
    """
    for clear in _clear_functions:
        clear()


def _size(key: Any) -> int:
    """Returns how many bytes the texts in a key take; the key is a text or a tuple."""
    if type(key) is tuple:
        return sum(map(_size, key))
    return sys.getsizeof(key) if type(key) in _TEXTS else 0
