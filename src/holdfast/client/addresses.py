"""Looks up the addresses of a host within a timeout, which the system's own look-up lacks.

A look-up runs in its own thread, which nobody waits for once the time is over. All callers that ask
for the same host meanwhile share it, so a resolver that hangs costs one thread for each host.
"""

import os
import socket
import threading
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Final, TypeAlias

Address: TypeAlias = tuple[Any, ...]  # an element of getaddrinfo's result

_lock: Final = threading.Lock()
_lookups: Final[
    dict[tuple[int, str, int], "Future[list[Address]]"]
] = {}  # those that run, by process too


def look_up(host: str, port: int) -> "Future[list[Address]]":
    """Returns a future of the addresses of a host, which is done at once if the host is an
    address."""
    found: Future[list[Address]] = Future()
    with suppress(OSError):
        numeric = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST
        )
        found.set_result([*numeric])
        return found
    which = os.getpid(), host, port
    with _lock:
        shared = _lookups.get(which)
        if shared is not None:
            return shared
        _lookups[which] = found
        found.set_running_or_notify_cancel()  # so that no caller can cancel it for the others
    threading.Thread(
        target=_resolve, args=(which, found), name=f"holdfast-dns-{host}", daemon=True
    ).start()
    return found


def _resolve(which: tuple[int, str, int], found: "Future[list[Address]]") -> None:
    _, host, port = which
    try:
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except BaseException as error:
        _remove_lookup(which)
        found.set_exception(error)
    else:
        _remove_lookup(which)
        found.set_result([*addresses])


def _remove_lookup(which: tuple[int, str, int]) -> None:
    with _lock:
        _lookups.pop(which, None)
