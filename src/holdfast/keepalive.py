"""Finds out that a peer is gone without a word: its machine died, or a firewall forgot it."""

import socket
from typing import Any, Final

from holdfast.limits import KEEPALIVE_PROBES, KEEPALIVE_SECONDS, PROBE_SECONDS

_TIMES: Final = (
    ("TCP_KEEPIDLE", KEEPALIVE_SECONDS),  # Linux
    ("TCP_KEEPALIVE", KEEPALIVE_SECONDS),  # macOS calls it so
    ("TCP_KEEPINTVL", PROBE_SECONDS),
    ("TCP_KEEPCNT", KEEPALIVE_PROBES),
)


def keep_alive(connected: Any) -> None:
    """Has the kernel probe a quiet peer, and break the connection if it does not answer.

    `connected` is a socket or what asyncio gives for one; what has no TCP, such as a Unix socket,
    needs none of it.
    """
    if connected is None or connected.family not in (socket.AF_INET, socket.AF_INET6):
        return
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, number in _TIMES:
        option = getattr(socket, name, None)
        if option is not None:
            connected.setsockopt(socket.IPPROTO_TCP, option, int(number))
