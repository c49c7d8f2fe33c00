"""The functions that run in the servers (library.lua), and the names of the keys that they use."""

import struct
from collections.abc import Iterable
from functools import cache
from hashlib import blake2b
from importlib.resources import files
from typing import Final

_LENGTH: Final = struct.Struct(">I")


@cache
def source() -> bytes:
    """Returns the library as it is loaded into a server. Its name holds a digest of itself: clients
    of two versions of Holdfast may use the same servers, each its own functions."""
    text = files(__package__).joinpath("library.lua").read_bytes()
    return text.replace(b"@VERSION@", version())


@cache
def version() -> bytes:
    text = files(__package__).joinpath("library.lua").read_bytes()
    return blake2b(text, digest_size=4).hexdigest().encode()


@cache
def function(name: str) -> bytes:
    """Returns the name of one of the library's functions in the server."""
    return b"holdfast_%s_%s" % (version(), name.encode())


def pack_list(parts: Iterable[bytes]) -> bytes:
    """Packs strings into one string, as library.lua reads them.

    >>> unpack_list(pack_list([b"a", b"", b"bc"]))
    [b'a', b'', b'bc']
    """
    return b"".join([piece for part in parts for piece in (_LENGTH.pack(len(part)), part)])


def unpack_list(packed: bytes) -> list[bytes]:
    parts, place = [], 0
    while place < len(packed):
        [length] = _LENGTH.unpack_from(packed, place)
        place += _LENGTH.size + length
        parts.append(packed[place - length : place])
    return parts


class SpaceKeyNames:
    """The keys of one space in the servers: all below one hash tag, so in one slot."""

    __slots__ = ("_stem", "keys", "log", "mark", "read", "state", "tag", "values", "views")

    def __init__(self, store: str, space: bytes) -> None:
        # The empty space is stored next to the list of all spaces, so both are read in one round
        # trip.
        self.tag = b"%s/%s" % (store.encode(), space.hex().encode()) if space else store.encode()
        self._stem = b"%s:{%s}:" % (store.encode(), self.tag)
        self.state = self._stem + b"state"
        self.keys = self._stem + b"keys"
        self.values = self._stem + b"values"
        self.log = self._stem + b"log"
        self.views = self._stem + b"views"
        self.mark = self._stem + b"mark"  # a write that means nothing
        self.read = (self.state, self.keys, self.values, self.log)

    def commit(self, session: bytes) -> tuple[bytes, ...]:
        """Returns the keys that the functions `commit` and `settle` touch."""
        return (*self.read, self.views, self._stem + b"done:" + session)

    def turn(self, contended: bytes) -> tuple[bytes, bytes]:
        """Returns the lease and the token of a turn at a contended key. Two keys that share them
        wait for each other, and nothing else."""
        digest = blake2b(contended, digest_size=8).hexdigest().encode()
        return self._stem + b"turn:" + digest, self._stem + b"token:" + digest


class StoreNames:
    """The keys of a store that belong to no space."""

    def __init__(self, store: str) -> None:
        self.tag = store.encode()
        stem = b"%s:{%s}:" % (self.tag, self.tag)
        self.spaces = stem + b"spaces"  # set: the prefixes of all spaces that were ever written to
        self.format = stem + b"format"  # the number of the format of all this
        self.channel = stem + b"notices"  # pub/sub: "<version> <said before> <notices>"
