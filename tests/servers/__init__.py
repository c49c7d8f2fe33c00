"""Real servers for the tests of the remote engines, without any set-up on the machine.

Each is started on a free port of the loopback interface, in a folder of its own, and is gone when
it is closed or when the process that started it ends, however that ends. One that can't be started
is an error that shows its log.
"""

from tests.servers.pool import ENGINES, Servers
from tests.servers.postgres import PostgresServer
from tests.servers.process import await_true
from tests.servers.valkey import ValkeyCluster, ValkeyServer

__all__ = [
    "ENGINES",
    "PostgresServer",
    "Servers",
    "ValkeyCluster",
    "ValkeyServer",
    "await_true",
]
