"""Caches with a bound of bytes, for what is made from texts that callers choose.

`functools.lru_cache` bounds the number of entries. If callers choose the keys, that bounds no
memory: a thousand names of some megabytes each are gigabytes that nobody uses again.
"""

import sys
from collections.abc import Callable
from typing import Any, Final, ParamSpec, TypeVar

from holdfast.limits import MAX_CACHED_BYTES, MAX_CACHED_KEY_BYTES

__all__ = ["BoundedCache", "bounded_cache"]

_TEXTS: Final = frozenset({str, bytes})

Key = TypeVar("Key")
Made = TypeVar("Made")
Arguments = ParamSpec("Arguments")


class BoundedCache(dict[Key, Made]):
    """What `make` returned for recent keys, at most `entries` of them and `MAX_CACHED_BYTES`.

    A key that is found costs what it costs in any dict, less than a call of a cached function. When
    the cache is full, all of it is dropped. A large key, and what `make` raises, is not kept.

    >>> lengths = BoundedCache(len, entries=100)
    >>> lengths["some text"], lengths["x" * 1_000_000], list(lengths)
    (9, 1000000, ['some text'])
    """

    __slots__ = ("_bytes", "_entries", "_make", "_size_of")

    def __init__(
        self,
        make: Callable[[Key], Made],
        entries: int,
        size_of: Callable[[Key], int] | None = None,
    ) -> None:
        super().__init__()
        self._make = make
        self._entries = entries
        self._size_of = size_of or _size
        self._bytes = 0  # about; threads may lose some of each other's

    def __missing__(self, key: Key) -> Made:
        made = self._make(key)
        size = self._size_of(key)
        if size > MAX_CACHED_KEY_BYTES:
            return made
        if len(self) >= self._entries or self._bytes + size > MAX_CACHED_BYTES:
            self.clear()
            self._bytes = 0
        self[key] = made
        self._bytes += size
        return made


def bounded_cache(
    entries: int, size_of: Callable[[Any], int] | None = None
) -> Callable[[Callable[Arguments, Made]], Callable[Arguments, Made]]:
    """Makes a function remember what it returned, as `lru_cache` does, within the bounds of
    `BoundedCache`. `size_of` gets the arguments as a tuple."""

    def decorate(function: Callable[Arguments, Made]) -> Callable[Arguments, Made]:
        make: Callable[..., Made] = function
        kept: BoundedCache[Any, Made] = BoundedCache(lambda args: make(*args), entries, size_of)

        def call(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Made:
            return kept[args]

        return call

    return decorate


def _size(key: Any) -> int:
    """Returns the bytes of the texts in a key: a text, or a tuple."""
    if type(key) is tuple:
        return sum(map(_size, key))
    return sys.getsizeof(key) if type(key) in _TEXTS else 0
