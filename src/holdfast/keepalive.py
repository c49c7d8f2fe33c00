"""TCP keep-alive: detects a lost peer whose machine died, or whose packets a firewall drops."""

import socket
from typing import Any, Final

from holdfast.limits import KEEPALIVE_PROBES, KEEPALIVE_SECONDS, PROBE_SECONDS

_TIMES: Final = (
    ("TCP_KEEPIDLE", KEEPALIVE_SECONDS),  # Linux
    ("TCP_KEEPALIVE", KEEPALIVE_SECONDS),  # its name on macOS
    ("TCP_KEEPINTVL", PROBE_SECONDS),
    ("TCP_KEEPCNT", KEEPALIVE_PROBES),
)


def keep_alive(connected: Any) -> None:
    """Makes the kernel probe a quiet peer, and break the connection if it does not answer.

    `connected` is a socket or asyncio's wrapper of one; sockets without TCP, such as Unix sockets,
    are left alone.
    """
    if connected is None or connected.family not in (socket.AF_INET, socket.AF_INET6):
        return
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, number in _TIMES:
        option = getattr(socket, name, None)
        if option is not None:
            connected.setsockopt(socket.IPPROTO_TCP, option, int(number))
