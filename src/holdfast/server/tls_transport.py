"""TLS on a plain connection: the transport of a protocol, above the transport of the event loop.

The TLS of event loops encrypts an answer of any size at once, and does not count what waits beneath
it: a client that reads nothing could take any amount of memory, and was never dropped. It also
takes each step of a handshake as soon as it arrives, so thousands of them at the same moment would
hold up everyone for seconds. Here answers are encrypted as they are sent, everything unsent is
counted, and handshakes and decryption wait for their turn.

Some messages of TLS carry no data, and take longer than any others: a client that changes its key
with each of 27 bytes needs 0.7 s for a megabyte. So decryption takes turns after a few kilobytes,
and a client that sends nothing else is dropped.
"""

import asyncio
import ssl
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from socket import socket
from typing import Any, Final, cast

from holdfast.limits import (
    DECRYPTED_AT_ONCE_BYTES,
    HANDSHAKE_SECONDS,
    LARGE_PIECE_BYTES,
    MAX_TLS_BYTES_WITHOUT_DATA,
    MAX_UNSENT_BYTES,
)
from holdfast.server.connection_counts import ConnectionCounts
from holdfast.server.loop_turns import LoopTurns
from holdfast.server.tls import CurrentContext

_RECORD_BYTES: Final = 16_384  # the most that a record of TLS holds


class TlsConnections:
    """Makes the connections of a server with TLS, and knows those without a complete handshake."""

    sockets: Sequence[socket] = ()  # the plain listeners have them

    def __init__(
        self,
        protocol: Callable[[], asyncio.Protocol],
        context: CurrentContext,
        counts: ConnectionCounts,
        turns: LoopTurns,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self.protocol, self.context = protocol, context
        self.counts, self.turns, self.loop = counts, turns, loop
        self.handshakes: set[TlsTransport] = set()

    def connect(self) -> asyncio.Protocol:
        """Returns the receiver of a new connection."""
        return TlsTransport(self)

    def close(self) -> None:
        """Ends all handshakes."""
        for each in list(self.handshakes):
            each.abort()

    async def wait_closed(self) -> None:
        """Returns at once: no answer depends on a handshake."""


class TlsTransport(asyncio.Protocol, asyncio.Transport):
    """One connection: the protocol of a plain transport, and the transport of another protocol."""

    _transport: asyncio.Transport  # the plain one
    _tls: ssl.SSLObject

    def __init__(self, made_by: TlsConnections) -> None:
        super().__init__()
        self._made_by = made_by
        self._turns = made_by.turns
        self._protocol: asyncio.Protocol | None = None  # it exists after the handshake
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._timer: asyncio.TimerHandle | None = None  # ends the handshake
        self._arrived = bytearray()  # and is not yet decrypted
        self._without_data = 0  # bytes that carried no data since the last that did
        self._waits_for_turn = False  # to decrypt what has arrived
        self._may_read = True  # the protocol wants data
        self._has_ended = False  # the client sends nothing more
        self._end_is_told = False  # and the protocol knows it
        self._unsent: deque[memoryview] = deque()  # not yet encrypted
        self._unsent_bytes = 0
        self._is_full = False  # the plain transport wants no more data
        self._is_paused = False  # and the protocol has been told
        self._sends_later = False  # the rest is encrypted in a later turn
        self._closes = False

    # --- the plain transport's side ---------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        peer = transport.get_extra_info("peername") or ("",)
        self._address = str(peer[0])
        by = self._made_by
        by.turns.note_accepted()
        if not by.counts.enter_handshake(self._address):
            self._transport.abort()  # nothing can be said without TLS
            return
        by.handshakes.add(self)
        self._timer = by.loop.call_later(HANDSHAKE_SECONDS, self._transport.abort)

    def connection_lost(self, error: Exception | None) -> None:
        self._end_handshake()
        self._closes = True
        self._arrived.clear()
        self._unsent.clear()
        self._unsent_bytes = 0
        protocol, self._protocol = self._protocol, None
        if protocol is not None:
            protocol.connection_lost(error)

    def data_received(self, data: bytes) -> None:
        if self._closes:
            return
        self._arrived += data
        if self._waits_for_turn:
            if len(self._arrived) > LARGE_PIECE_BYTES:
                self._transport.pause_reading()
        elif self._turns.is_over():
            self._take_later()
        else:
            self._take()

    def eof_received(self) -> bool:
        self._has_ended = True
        if self._protocol is None:
            return False
        if not self._waits_for_turn:
            self._tell_end()
        return True  # `_tell_end` closes, if the protocol has nothing to say

    def pause_writing(self) -> None:
        self._is_full = True
        self._tell_fill()

    def resume_writing(self) -> None:
        self._is_full = False
        self._send()

    # --- what comes -------------------------------------------------------------------------------

    def _take_later(self) -> None:
        self._waits_for_turn = True
        # Clients with a connection do not wait for the handshakes of others at the same address.
        kind = "handshake " if self._protocol is None else ""
        self._turns.put(self._take_turn, kind + self._address)

    def _take_turn(self) -> None:
        self._waits_for_turn = False
        if not self._closes:
            if self._may_read:
                self._transport.resume_reading()
            self._take()

    def _take(self) -> None:
        """Decrypts what has arrived, as far as this turn allows, and passes it to the protocol."""
        data: list[bytes] = []
        try:
            while self._may_read and not self._closes:
                self._take_piece(data)
                if not self._arrived:
                    break
                if self._turns.is_over():
                    self._take_later()
                    break
        except ssl.SSLError:  # no TLS, or a record that was changed on its way
            self._flush()  # the alert says why
            self._closes = True
            self._transport.close()
            return
        if self._outgoing.pending:
            self._flush()  # answers of TLS itself
        if self._is_flooding():
            self.abort()
            return
        if data and self._protocol is not None:
            self._protocol.data_received(data[0] if len(data) == 1 else b"".join(data))
        if self._has_ended and not self._arrived:
            self._tell_end()

    def _take_piece(self, data: list[bytes]) -> None:
        """Decrypts the next kilobytes, and adds what they hold to `data`."""
        known = len(data)
        if arrived := self._arrived:
            piece = arrived[:DECRYPTED_AT_ONCE_BYTES]
            del arrived[:DECRYPTED_AT_ONCE_BYTES]
            self._incoming.write(piece)
            self._without_data += len(piece)
        if self._protocol is not None or self._shake_hands():
            self._decrypt(data)
        if len(data) > known:
            self._without_data = 0

    def _is_flooding(self) -> bool:
        """Returns whether the client sends messages of TLS itself without end."""
        return (
            self._without_data > MAX_TLS_BYTES_WITHOUT_DATA
            or self._transport.get_write_buffer_size() > MAX_UNSENT_BYTES
        )

    def _shake_hands(self) -> bool:
        """Takes a step of the handshake, and returns whether it is complete."""
        by = self._made_by
        if not hasattr(self, "_tls"):  # memory only for clients that have sent something
            self._tls = by.context().wrap_bio(self._incoming, self._outgoing, server_side=True)
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            self._flush()
            return False
        self._flush()
        self._end_handshake()
        self._protocol = by.protocol()
        self._protocol.connection_made(self)
        return not self._closes

    def _end_handshake(self) -> None:
        """The handshake is complete, or has failed."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._made_by.handshakes.discard(self)
            self._made_by.counts.leave_handshake(self._address)

    def _decrypt(self, data: list[bytes]) -> None:
        """Adds the data that has arrived; notes its end."""
        tls, incoming = self._tls, self._incoming
        with suppress(ssl.SSLWantReadError):
            while incoming.pending or tls.pending():
                piece = tls.read(_RECORD_BYTES)
                if not piece:
                    self._has_ended = True
                    self._arrived.clear()
                    break
                data.append(piece)

    def _tell_end(self) -> None:
        """Tells the protocol, once it has all data, that no more comes; it may still answer."""
        if self._protocol is None or self._closes or self._end_is_told or not self._may_read:
            return
        self._end_is_told = True
        if not self._protocol.eof_received():
            self.close()

    # --- the protocol's side ----------------------------------------------------------------------

    def pause_reading(self) -> None:
        self._may_read = False
        if not self._transport.is_closing():
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        if not self._may_read and not self._closes:
            self._may_read = True
            self._transport.resume_reading()
            waits = self._arrived or self._incoming.pending or self._has_ended
            if waits and not self._waits_for_turn:
                self._take_later()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._closes or not data:
            return
        if not self._unsent and len(data) <= _RECORD_BYTES:
            self._tls.write(data)
            self._flush()
            return
        self._unsent.append(memoryview(data))
        self._unsent_bytes += len(data)
        self._send()

    def get_write_buffer_size(self) -> int:
        return self._unsent_bytes + self._transport.get_write_buffer_size()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._transport.set_write_buffer_limits(high, low)

    def is_closing(self) -> bool:
        return self._closes or self._transport.is_closing()

    def close(self) -> None:
        """Sends what is left, and closes."""
        if self.is_closing():
            return
        self._closes = True
        if self._unsent:
            self._transport.pause_reading()
        else:
            self._say_goodbye()

    def abort(self) -> None:
        self._closes = True
        self._transport.abort()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        if name == "sslcontext":
            return self._made_by.context()
        return self._transport.get_extra_info(name, default)

    # --- what is sent -----------------------------------------------------------------------------

    def _send(self) -> None:
        """Encrypts the next pieces, until the transport has enough or this turn is over."""
        unsent = self._unsent
        while unsent and not (self._is_full or self._sends_later or self._transport.is_closing()):
            piece, rest = unsent[0][:_RECORD_BYTES], unsent[0][_RECORD_BYTES:]
            if rest:
                unsent[0] = rest
            else:
                unsent.popleft()
            self._unsent_bytes -= len(piece)
            self._tls.write(piece)
            self._flush()
            if unsent and self._turns.is_over():
                self._sends_later = True
                self._turns.put(self._send_on, self._address)
        self._tell_fill()
        if self._closes and not unsent:
            self._say_goodbye()

    def _send_on(self) -> None:
        self._sends_later = False
        self._send()

    def _flush(self) -> None:
        if self._outgoing.pending and not self._transport.is_closing():
            self._transport.write(self._outgoing.read())

    def _tell_fill(self) -> None:
        """Tells the protocol when it should pause, and when it may go on."""
        should_pause = self._is_full or bool(self._unsent)
        if should_pause != self._is_paused and self._protocol is not None:
            self._is_paused = should_pause
            if should_pause:
                self._protocol.pause_writing()
            else:
                self._protocol.resume_writing()

    def _say_goodbye(self) -> None:
        with suppress(ssl.SSLError):  # the client's own goodbye is not waited for
            self._tls.unwrap()
        self._flush()
        self._transport.close()
