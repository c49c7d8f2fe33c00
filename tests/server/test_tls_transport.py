"""TLS holds no more memory and no longer turns than plain connections do."""

import asyncio
import gc
import ssl
import weakref
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any, cast

import pytest
import trustme

from holdfast.limits import DECRYPTED_AT_ONCE_BYTES, HANDSHAKE_SECONDS, MAX_UNSENT_BYTES
from holdfast.server import tls_transport
from holdfast.server.client_limits import ClientLimits
from holdfast.server.connection_counts import ConnectionCounts
from holdfast.server.loop_turns import LoopTurns
from holdfast.server.tls_transport import TlsConnections, TlsTransport

HIGH_WATER = 64 * 1024
LARGE = bytes(range(256)) * 4096  # 1 MiB


class Network(asyncio.Transport):
    """A plain transport whose client takes what it is told to."""

    def __init__(self) -> None:
        super().__init__({"peername": ("192.0.2.1", 5)})
        self.unread = bytearray()
        self.is_closed = self.is_aborted = False
        self.receiver: Any = None
        self._is_full = False

    def write(self, data: Any) -> None:
        self.unread += data
        if len(self.unread) > HIGH_WATER and not self._is_full:
            self._is_full = True
            self.receiver.pause_writing()

    def taken(self) -> bytes:
        taken = bytes(self.unread)
        self.unread.clear()
        if self._is_full:
            self._is_full = False
            self.receiver.resume_writing()
        return taken

    def get_write_buffer_size(self) -> int:
        return len(self.unread)

    def close(self) -> None:
        self.is_closed = True

    def abort(self) -> None:
        self.is_closed = self.is_aborted = True

    def is_closing(self) -> bool:
        return self.is_closed

    def pause_reading(self) -> None: ...
    def resume_reading(self) -> None: ...


class Turns:
    """Turns that are over when the test says so."""

    def __init__(self) -> None:
        self.over = False
        self.waiting: list[Callable[[], None]] = []

    def is_over(self) -> bool:
        return self.over

    def put(self, work: Callable[[], None], client: str = "") -> None:
        self.waiting.append(work)

    def note_accepted(self) -> None: ...

    def run(self) -> None:
        waiting, self.waiting = self.waiting, []
        for work in waiting:
            work()


class Timers:
    """The part of an event loop that is used: it calls nothing by itself."""

    def __init__(self) -> None:
        self.waiting: dict[float, Callable[[], None]] = {}

    def call_later(self, seconds: float, call: Callable[[], None]) -> "Timers":
        self.waiting[seconds] = call
        return self

    def cancel(self) -> None:
        self.waiting.clear()


class Protocol(asyncio.Protocol):
    """A protocol that notes what happens."""

    def __init__(self) -> None:
        self.received = b""
        self.is_paused = False
        self.ends = 0
        self.stays_open = False
        self.transport: TlsTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(TlsTransport, transport)

    def connection_lost(self, error: Exception | None) -> None:
        self.transport = None

    def data_received(self, data: bytes) -> None:
        self.received += data

    def eof_received(self) -> bool:
        self.ends += 1
        return self.stays_open

    @property
    def has_ended(self) -> bool:
        return self.ends > 0

    def pause_writing(self) -> None:
        self.is_paused = True

    def resume_writing(self) -> None:
        self.is_paused = False


@cache
def contexts() -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Returns the context of a server, and that of its clients."""
    server, client = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context()
    authority = trustme.CA()
    authority.issue_cert("localhost").configure_cert(server)
    authority.configure_trust(client)
    return server, client


class Connection:
    """A client and its connection to a server, which has no other than `protocol`."""

    def __init__(self, protocol: Protocol | None = None) -> None:
        self.protocol = protocol or Protocol()
        self.turns, self.timers = Turns(), Timers()
        self.counts = ConnectionCounts(ClientLimits(connections=4))
        server, client = contexts()
        turns, loop = cast(LoopTurns, self.turns), cast(asyncio.AbstractEventLoop, self.timers)
        self.made_by = TlsConnections(
            lambda: self.protocol, lambda: server, self.counts, turns, loop
        )
        self.network, self.server = Network(), cast(TlsTransport, self.made_by.connect())
        self.network.receiver = self.server
        self.server.connection_made(self.network)
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = client.wrap_bio(self._incoming, self._outgoing, server_hostname="localhost")

    @property
    def transport(self) -> TlsTransport:
        assert self.protocol.transport is not None
        return self.protocol.transport

    def shake_hands(self) -> None:
        for _ in range(3):
            with suppress(ssl.SSLWantReadError):
                self.tls.do_handshake()
            self.exchange()

    def exchange(self) -> None:
        """Passes on what both sides have sent."""
        if sent := self._outgoing.read():
            self.server.data_received(sent)
        self._incoming.write(self.network.taken())

    def say(self, data: bytes) -> None:
        self.tls.write(data)
        self.server.data_received(self._outgoing.read())

    def heard(self) -> bytes:
        """Returns all that the server sends, until there is nothing left."""
        heard = b""
        while self.network.unread or self.turns.waiting:
            self._incoming.write(self.network.taken())
            self.turns.run()
            with suppress(ssl.SSLWantReadError):
                while piece := self.tls.read(65_536):
                    heard += piece
        return heard


def test_an_answer_that_is_not_read_is_counted_and_pauses_its_protocol() -> None:
    """The loop's own TLS encrypted it whole, counted nothing, and never paused."""
    connection = Connection()
    connection.shake_hands()

    connection.transport.write(LARGE)

    assert connection.protocol.is_paused
    assert connection.transport.get_write_buffer_size() >= len(LARGE)
    assert len(connection.network.unread) < 2 * HIGH_WATER
    assert connection.heard() == LARGE
    assert not connection.protocol.is_paused
    assert connection.transport.get_write_buffer_size() == 0


def test_a_large_answer_is_encrypted_in_several_turns() -> None:
    connection = Connection()
    connection.shake_hands()
    connection.turns.over = True

    connection.transport.write(LARGE)

    assert len(connection.network.unread) < HIGH_WATER
    assert connection.protocol.is_paused
    connection.transport.write(b"and this")
    assert connection.heard() == LARGE + b"and this"


def test_handshakes_wait_for_their_turn() -> None:
    connection = Connection()
    connection.turns.over = True

    connection.shake_hands()

    assert not connection.network.unread
    connection.turns.over = False
    connection.turns.run()
    connection.shake_hands()
    connection.say(b"PING")
    assert connection.protocol.received == b"PING"


def test_much_that_arrives_at_once_is_decrypted_in_several_turns() -> None:
    """Changes of the key take the longest, and were all made in one turn: seconds of silence."""
    connection = Connection()
    connection.shake_hands()
    connection.turns.over = True
    for _ in range(100):
        connection.tls.write(bytes(1_000))
    connection.exchange()

    steps = []
    while connection.turns.waiting:
        before = len(connection.protocol.received)
        connection.turns.run()
        steps.append(len(connection.protocol.received) - before)

    assert sum(steps) == 100_000
    assert max(steps) <= DECRYPTED_AT_ONCE_BYTES


def test_a_client_that_sends_tls_without_data_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tls_transport, "MAX_TLS_BYTES_WITHOUT_DATA", 10_000)
    connection = Connection()
    connection.shake_hands()
    for _ in range(20):  # many records without an end, but each with data
        connection.say(bytes(2_000))
    assert not connection.network.is_aborted

    connection.tls.write(bytes(16_000))
    connection.server.data_received(connection._outgoing.read(9_000))
    assert not connection.network.is_aborted
    connection.server.data_received(connection._outgoing.read(2_000))

    assert connection.network.is_aborted


def test_a_client_that_never_reads_what_tls_itself_answers_is_dropped() -> None:
    connection = Connection()
    connection.shake_hands()
    connection.network.unread += bytes(MAX_UNSENT_BYTES + 1)

    connection.say(b"x")

    assert connection.network.is_aborted


def test_data_waits_for_its_turn_and_keeps_its_order() -> None:
    connection = Connection()
    connection.shake_hands()
    connection.turns.over = True

    connection.say(b"one ")
    connection.say(b"two")
    connection.server.eof_received()

    assert connection.protocol.received == b""
    assert not connection.protocol.has_ended
    connection.turns.run()
    assert connection.protocol.received == b"one two"
    assert connection.protocol.has_ended


def test_a_protocol_that_pauses_gets_nothing_until_it_resumes() -> None:
    connection = Connection()
    connection.shake_hands()

    connection.transport.pause_reading()
    connection.say(b"later")

    assert connection.protocol.received == b""
    connection.transport.resume_reading()
    connection.turns.run()
    assert connection.protocol.received == b"later"


def test_closing_sends_the_rest_and_says_goodbye() -> None:
    connection = Connection()
    connection.shake_hands()
    connection.transport.write(LARGE)

    connection.transport.close()
    connection.transport.write(b"too late")

    assert connection.transport.is_closing()
    assert not connection.network.is_closed
    assert connection.heard() == LARGE
    assert connection.network.is_closed
    assert connection.tls.read(1) == b""  # not a connection that was cut


def test_a_client_that_has_sent_everything_still_gets_its_answer() -> None:
    connection = Connection()
    connection.shake_hands()
    connection.protocol.stays_open = True
    connection.say(b"PING")

    keeps_open = connection.server.eof_received()
    connection.transport.write(b"PONG")

    assert keeps_open
    assert connection.heard() == b"PONG"


def test_a_paused_protocol_hears_of_the_end_after_the_data() -> None:
    connection = Connection()
    connection.shake_hands()
    connection.protocol.stays_open = True

    connection.transport.pause_reading()
    connection.say(b"the last words")
    connection.server.eof_received()

    assert not connection.protocol.has_ended
    connection.transport.resume_reading()
    connection.turns.run()
    assert connection.protocol.received == b"the last words"
    assert connection.protocol.has_ended


def test_a_goodbye_and_the_end_of_the_connection_are_one_end() -> None:
    connection = Connection()
    connection.shake_hands()
    connection.protocol.stays_open = True

    with suppress(ssl.SSLWantReadError):
        connection.tls.unwrap()
    connection.exchange()
    connection.server.eof_received()

    assert connection.protocol.ends == 1


def test_a_client_that_says_goodbye_is_closed() -> None:
    connection = Connection()
    connection.shake_hands()

    with suppress(ssl.SSLWantReadError):
        connection.tls.unwrap()
    connection.exchange()

    assert connection.protocol.has_ended
    assert connection.network.is_closed


def test_what_is_not_tls_is_closed() -> None:
    connection = Connection()

    connection.server.data_received(b"*1\r\n$4\r\nPING\r\n")

    assert connection.network.is_closed
    assert connection.protocol.transport is None


def test_a_record_that_was_changed_on_its_way_ends_the_connection() -> None:
    connection = Connection()
    connection.shake_hands()
    connection.tls.write(b"SET this")
    sent = bytearray(connection._outgoing.read())
    sent[-1] ^= 1

    connection.server.data_received(bytes(sent))

    assert connection.network.is_closed
    assert connection.protocol.received == b""


def test_a_handshake_that_takes_too_long_is_ended_and_no_longer_counts() -> None:
    connection = Connection()

    connection.timers.waiting[HANDSHAKE_SECONDS]()
    connection.server.connection_lost(None)

    assert connection.network.is_aborted
    assert [connection.counts.enter_handshake("192.0.2.1") for _ in range(3)] == [True, True, False]


def test_a_server_that_stops_ends_its_handshakes_and_no_connections() -> None:
    begun, complete = Connection(), Connection()
    complete.shake_hands()

    begun.made_by.close()
    complete.made_by.close()

    assert begun.network.is_aborted
    assert not complete.network.is_closed
    assert not complete.timers.waiting


def test_a_lost_connection_is_freed_without_the_garbage_collector() -> None:
    connection = Connection()
    connection.shake_hands()
    freed = weakref.ref(connection.server)
    gc.disable()

    try:
        connection.server.connection_lost(None)
        connection.network.receiver = None
        del connection.server

        assert freed() is None
    finally:
        gc.enable()
