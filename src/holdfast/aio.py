"""The async client: `async with holdfast.aio.connect(url) as client`."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.client.async_client import AsyncClient

__all__ = ["connect"]


def connect(
    url: str,
    *,
    timeout: float | None = None,
    connect_timeout: float | None = None,
    connections: int | None = None,
    retries: int | None = None,
) -> "AsyncClient":
    """Returns a client that is connected once it is awaited, or entered with `async with`.

    URL and arguments are those of `holdfast.connect`. Calls made at the same time share a
    connection; `connections` limits those that wait or take long, which have one each.
    """
    from holdfast.client.async_client import AsyncClient
    from holdfast.client.urls import ServerTarget

    options = {
        "timeout": timeout,
        "connect_timeout": connect_timeout,
        "connections": connections,
        "retries": retries,
    }
    return AsyncClient(ServerTarget.parse(url, **options))
