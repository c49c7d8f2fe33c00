"""PostgreSQL as an engine: one table in the order of its keys, for any number of machines.

What to know about PostgreSQL to read this folder: a transaction of the level REPEATABLE READ reads
one snapshot, whatever others commit; one of READ COMMITTED takes a new snapshot for each statement;
a transaction that changes a row makes the next one that wants to change it wait. Statements that
are sent before a Sync message are one transaction, and cost one round trip.
"""

try:
    import psycopg as _psycopg  # noqa: F401  # to say at once what is missing
except ImportError as _error:
    from holdfast.errors import MissingDriver

    raise MissingDriver(
        f"PostgreSQL needs the package psycopg: {_error}",
        hint="Install it with `pip install 'holdfastdb[postgres]'`.",
    ) from _error

from holdfast.engine.contract import EngineOptions
from holdfast.engine.durability import check_durability
from holdfast.engine.postgres.backend import PostgresBackend
from holdfast.engine.postgres.statements import FORMAT
from holdfast.engine.remote import RemoteEngine

__all__ = ["FORMAT", "PostgresBackend", "open_postgres"]


def open_postgres(url: str, options: EngineOptions) -> RemoteEngine:
    """Opens the store in the database that `url` names."""
    check_durability(options.durability)
    backend = PostgresBackend(url, durability=options.durability)
    return RemoteEngine(backend, clock=options.clock)
