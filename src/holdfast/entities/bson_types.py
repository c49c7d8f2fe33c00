"""The types that BSON has and Python lacks: pymongo's if it is installed, otherwise our own.

The two kinds are never mixed in a document: the C codec encodes only its own."""

from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

__all__ = ["HAS_PYMONGO", "Binary", "DatetimeMS", "Int64"]

# Not `bson`: an unrelated package has a module of that name too.
HAS_PYMONGO: Final = find_spec("pymongo") is not None

if TYPE_CHECKING or HAS_PYMONGO:
    from holdfast.entities.pymongo_codec import Binary, DatetimeMS, Int64
else:

    class Int64(int):
        """An integer that is written with 64 bits, however small it is."""

        __slots__ = ()

    class DatetimeMS:
        """A time in milliseconds since 1970, which may be outside the range of datetime."""

        __slots__ = ("_milliseconds",)

        def __init__(self, milliseconds: int) -> None:
            self._milliseconds = milliseconds

        def __int__(self) -> int:
            return self._milliseconds

        def __eq__(self, other: object) -> bool:
            return isinstance(other, DatetimeMS) and int(other) == self._milliseconds

        def __hash__(self) -> int:
            return hash(self._milliseconds)

    class Binary(bytes):
        """Bytes with a subtype, which the codec in Python never returns."""
