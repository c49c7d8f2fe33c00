"""Facts that several packages share: the layers, the default space, the ports of a server."""

from typing import Final

LAYERS: Final = ("entities", "events", "jobs", "metrics", "tables")
DEFAULT_SPACE: Final = "default"
RESP_PORT: Final = 9977
HTTP_PORT: Final = 9966
LOOPBACK: Final = "127.0.0.1"  # where a server listens by default
