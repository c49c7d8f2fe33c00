"""Valkey as an engine: one server, or a cluster that the spaces of a store spread over.

`library.lua` is the part that runs in the servers, and `session.py` its counterpart: a snapshot
that is read part by part, and a commit. `servers.py` finds the server of a space and survives its
loss. `connections.py` holds the connections, `durability.py` decides what a commit waits for,
`notice_listener.py` receives the notices, and `whole_store.py` reads all spaces as one map.
`backend.py` puts them together for remote/.
"""

from holdfast.engine.contract import EngineOptions
from holdfast.engine.durability import check_durability
from holdfast.engine.remote import RemoteEngine
from holdfast.engine.valkey.address import SCHEMES, parse
from holdfast.errors import MissingDriver

__all__ = ["SCHEMES", "open_valkey"]


def open_valkey(url: str, options: EngineOptions) -> RemoteEngine:
    """Opens the store on the servers that `url` names."""
    check_durability(options.durability)
    address = parse(url)
    try:
        from holdfast.engine.valkey.backend import ValkeyBackend
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] != "valkey":
            raise
        raise MissingDriver(
            "the package valkey is not installed, and a store in Valkey needs it",
            hint="Install it with: pip install 'holdfastdb[valkey]'.",
        ) from error
    backend = ValkeyBackend(address, durability=options.durability)
    return RemoteEngine(backend, clock=options.clock, reconnect_seconds=address.patience)
