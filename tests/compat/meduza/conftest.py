from tests.entities.conftest import entities
from tests.server.conftest import client, server, space

__all__ = ["client", "entities", "server", "space"]
