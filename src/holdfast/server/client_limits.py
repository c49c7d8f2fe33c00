"""The limits of one server, and the memory that all of its clients share.

The limits are those of `limits.py`, unless the server was started with others.
"""

import math
import sys
from collections.abc import Iterable

import msgspec

from holdfast.error_text import misfit
from holdfast.errors import CannotServe, ServerBusy
from holdfast.limits import (
    IDLE_SECONDS,
    MAX_BODIES_BYTES,
    MAX_CONNECTIONS,
    MAX_PIPELINED,
    MAX_REQUEST_BYTES,
    MAX_UNSENT_BYTES,
    ONE_ADDRESS_SHARE,
    PAUSE_UNSENT_BYTES,
    STALLED_SECONDS,
)


class ClientLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of a connection; the reason for each is in `limits.py`."""

    connections: int = MAX_CONNECTIONS
    connections_per_address: int = 0  # 0: a part of them, see `of_one_address`
    request_bytes: int = MAX_REQUEST_BYTES
    pipelined: int = MAX_PIPELINED
    idle_seconds: float = IDLE_SECONDS
    pause_unsent_bytes: int = PAUSE_UNSENT_BYTES
    stalled_seconds: float = STALLED_SECONDS
    unsent_bytes: int = MAX_UNSENT_BYTES

    @classmethod
    def parse(cls, texts: Iterable[str]) -> "ClientLimits":
        """
        >>> ClientLimits.parse(["connections=100", "idle_seconds=60"]).connections
        100
        """
        given = {}
        for text in texts:
            name, _, number = text.partition("=")
            if name not in cls.__struct_fields__:
                known = ", ".join(cls.__struct_fields__)
                raise CannotServe(
                    f"--limit: there is no limit {name!r}", hint=f"There are {known}."
                )
            given[name] = number
        try:
            bounds = msgspec.convert(given, cls, strict=False)
        except msgspec.ValidationError as error:
            raise CannotServe(f"--limit NAME=NUMBER: {misfit(error, 'the limit')}") from None
        if not all(0 < getattr(bounds, name) <= sys.maxsize for name in given):
            raise CannotServe(
                f"--limit NAME=NUMBER: the number must be above 0, and at most {sys.maxsize}"
            )
        return bounds

    def shared_by(self, processes: int) -> "ClientLimits":
        """Returns the limits of one of `processes` processes that serve together."""
        return msgspec.structs.replace(
            self,
            connections=max(1, self.connections // processes),
            connections_per_address=-(-self.connections_per_address // processes),
        )

    @property
    def of_one_address(self) -> int:
        """Returns how many of the connections one address may have."""
        return self.connections_per_address or math.ceil(self.connections * ONE_ADDRESS_SHARE)


class MemoryBudget:
    """The memory that incoming requests of all clients may take together."""

    def __init__(self, size: int = MAX_BODIES_BYTES) -> None:
        self._left = self._size = size
        self._least = size  # the least that was left since `take_peak`

    @property
    def taken(self) -> int:
        return self._size - self._left

    def take_peak(self) -> int:
        """Returns the most that was taken since the last call."""
        peak, self._least = self._size - self._least, self._left
        return peak

    def take(self, size: int) -> None:
        if size > self._left:
            raise ServerBusy("the requests of all clients together are too large")
        self._left -= size
        if self._left < self._least:
            self._least = self._left

    def give_back(self, size: int) -> None:
        self._left += size
