"""The store over the network: `holdfast.connect(url)` offers what `holdfast.open(path)` does.

The five layers have the same methods with the same types; `holdfast.aio.connect` is the same with
`await`. It is loaded when it is first used, so that a program without a server pays nothing.
"""

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from holdfast.client.async_client import AsyncClient
    from holdfast.client.async_subscriptions import AsyncSubscription
    from holdfast.client.batches import Batch, Handle, Pipeline
    from holdfast.client.client import Client, ClientSpace
    from holdfast.client.generated.async_space import AsyncSpace
    from holdfast.client.subscriptions import ClientSubscription

__all__ = [
    "AsyncClient",
    "AsyncSpace",
    "AsyncSubscription",
    "Batch",
    "Client",
    "ClientSpace",
    "ClientSubscription",
    "Handle",
    "Pipeline",
    "connect",
]

_HOMES: Final = {
    "AsyncClient": "async_client",
    "AsyncSpace": "generated.async_space",
    "AsyncSubscription": "async_subscriptions",
    "Batch": "batches",
    "Client": "client",
    "ClientSpace": "client",
    "ClientSubscription": "subscriptions",
    "Handle": "batches",
    "Pipeline": "batches",
}


def __getattr__(name: str) -> Any:
    """Loads a class when it is first used."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)


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
    `holdfast://user:password@host:9977/space?timeout=5`; `holdfasts://` encrypts. Arguments
    override the URL. A call may take `timeout` seconds in total, its retries included. Raises
    `Unreachable` if there is no server.
    """
    from holdfast.client.client import Client
    from holdfast.client.urls import ServerTarget

    options = {
        "timeout": timeout,
        "connect_timeout": connect_timeout,
        "connections": connections,
        "retries": retries,
    }
    return Client(ServerTarget.parse(url, **options))
