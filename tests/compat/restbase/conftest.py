from tests.server.conftest import client, server, space

__all__ = ["client", "server", "space"]
