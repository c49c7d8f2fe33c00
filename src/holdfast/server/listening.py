"""Accepts connections: several in each turn of the event loop."""

import asyncio
import socket
import ssl
from collections.abc import Callable, Iterable

from holdfast.keepalive import keep_alive
from holdfast.limits import ACCEPTED_PER_TURN, HANDSHAKE_SECONDS, LISTEN_BACKLOG


async def listen(
    sockets: Iterable[socket.socket],
    protocol: Callable[[], asyncio.Protocol],
    tls: ssl.SSLContext | None,
) -> list[asyncio.Server]:
    """Accepts connections on some sockets, with TCP keep-alive.

    libuv accepts one connection per socket in each turn. If many arrive at once, the last one would
    wait for as many turns, so each socket is registered several times.
    """
    loop = asyncio.get_running_loop()
    servers = []
    for listening in sockets:
        keep_alive(listening)  # its connections inherit the option
        copies = [listening.dup() for _ in range(ACCEPTED_PER_TURN - 1)]
        for each in (listening, *copies):
            server = await loop.create_server(
                protocol,
                sock=each,
                ssl=tls,
                backlog=LISTEN_BACKLOG,
                ssl_handshake_timeout=HANDSHAKE_SECONDS if tls else None,
            )
            servers.append(server)
    return servers
