"""The store over the network: `holdfast.connect(url)` gives what `holdfast.open(path)` does.

The five layers have the same methods with the same types; `holdfast.aio.connect` is the same with
`await`. `connect` alone is here: all else is loaded when it is called.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.client.client import Client

__all__ = ["connect"]


def connect(
    url: str,
    *,
    timeout: float | None = None,
    connect_timeout: float | None = None,
    connections: int | None = None,
    retries: int | None = None,
) -> "Client":
    """Connects to a server: `holdfast.connect("holdfast://localhost:9977")`.

    The URL may name a user, a space and options, as in
    `holdfast://user:password@host:9977/space?timeout=5`; `holdfasts://` encrypts. Arguments go
    before what the URL says. A call may take `timeout` seconds in all, its retries included.
    Raises `Unreachable` if there is no server.
    """
    from holdfast.client.client import Client
    from holdfast.client.urls import Target

    options = {
        "timeout": timeout,
        "connect_timeout": connect_timeout,
        "connections": connections,
        "retries": retries,
    }
    return Client(Target.parse(url, **options))
