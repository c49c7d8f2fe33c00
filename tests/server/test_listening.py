"""Connections that arrive at once are accepted together, and one by one otherwise."""

import asyncio
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import cast

import pytest
import uvloop

from holdfast.server import listening
from holdfast.server.listening import SocketListener

MANY = 300


@pytest.fixture
def bound() -> Iterator[socket.socket]:
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        made.listen(MANY)
        yield made


@pytest.fixture
def clients(bound: socket.socket) -> Iterator[Callable[[int], None]]:
    """Connects some clients, which wait to be accepted."""
    opened: list[socket.socket] = []

    def connect(count: int) -> None:
        for _ in range(count):
            client = socket.socket()
            opened.append(client)
            client.setblocking(False)
            with suppress(BlockingIOError):
                client.connect(bound.getsockname())

    yield connect
    for each in opened:
        each.close()


class Connections(list[asyncio.Transport]):
    """The connections that a listener has accepted, and that have not ended."""

    def protocol(self) -> asyncio.Protocol:
        return _Accepted(self)

    async def end(self) -> None:
        while self:  # some are made in later turns
            for each in self:
                each.abort()
            await asyncio.sleep(0)


class _Accepted(asyncio.Protocol):
    _transport: asyncio.Transport

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._connections.append(self._transport)

    def connection_lost(self, error: Exception | None) -> None:
        self._connections.remove(self._transport)


async def turns_until(reached: Callable[[], bool]) -> int:
    """Returns how many turns of the loop it takes."""
    turns = 0
    while not reached():
        turns += 1
        await asyncio.sleep(0)
    return turns


def test_connections_that_arrive_at_once_are_accepted_together(
    bound: socket.socket, clients: Callable[[int], None]
) -> None:
    clients(MANY)

    async def accept() -> int:
        accepted = Connections()
        listener = SocketListener(bound, accepted.protocol)
        await listener.open()
        turns = await turns_until(lambda: len(accepted) == MANY)
        listener.close()
        await accepted.end()
        return turns

    assert uvloop.run(accept()) < MANY / 4


def test_the_socket_is_registered_once_when_nobody_waits_any_more(
    bound: socket.socket, clients: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listening, "CROWD_SECONDS", 0)
    clients(MANY)

    async def accept() -> int:
        accepted = Connections()
        listener = SocketListener(bound, accepted.protocol)
        await listener.open()
        before = len(os.listdir("/proc/self/fd"))
        await turns_until(lambda: len(accepted) == MANY)
        await accepted.end()
        await turns_until(lambda: len(os.listdir("/proc/self/fd")) <= before)
        clients(1)
        await turns_until(lambda: len(accepted) == 1)
        listener.close()
        await accepted.end()
        return before

    assert uvloop.run(accept()) > 0


def test_a_listener_that_is_closed_while_many_wait_leaves_nothing_open(
    bound: socket.socket, clients: Callable[[int], None]
) -> None:
    clients(MANY)
    before = len(os.listdir("/proc/self/fd"))

    async def accept() -> int:
        accepted = Connections()
        listener = SocketListener(bound.dup(), accepted.protocol)
        await listener.open()
        await turns_until(lambda: len(accepted) > MANY / 2)
        listener.close()
        count = len(accepted)
        await accepted.end()
        return count

    assert uvloop.run(accept()) > MANY / 2
    assert len(os.listdir("/proc/self/fd")) <= before
