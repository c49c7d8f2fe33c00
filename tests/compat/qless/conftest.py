from tests.jobs.conftest import events, qless
from tests.server.conftest import client, server, space

__all__ = ["client", "events", "qless", "server", "space"]
