"""Writes the head of an HTTP answer together with its body."""

import asyncio
from typing import Final

from holdfast.limits import LARGE_PIECE_BYTES

_HELD_BYTES: Final = 4_096  # at most, of a head or a piece that waits for the next write


class JoinedWrites:
    """The transport for uvicorn, which holds a head back for the body that usually follows at once:
    two writes would be two system calls and two packets."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._held = b""
        self.is_closing = transport.is_closing

    def write(self, data: bytes) -> None:
        if self._held:
            held, self._held = self._held, b""
            if len(data) > LARGE_PIECE_BYTES:
                # Without copying. asyncio's `writelines` never pauses in Python 3.12.0 to 3.12.8,
                # 3.13.0 and 3.13.1 (CVE-2024-12254).
                self._transport.write(held)
            else:
                data = held + data
        elif len(data) <= _HELD_BYTES:
            self._held = data
            self._loop.call_soon(self.flush)
            return
        self._transport.write(data)

    def flush(self) -> None:
        """Sends what was held back."""
        held, self._held = self._held, b""
        if held and not self.is_closing():
            self._transport.write(held)

    def close(self) -> None:
        self.flush()
        self._transport.close()
