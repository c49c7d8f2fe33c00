"""What engines with their state on other machines share.

A transaction runs here, in the client: it reads a snapshot through a cache, remembers what it read
and keeps its writes. Its commit is one message: check that what was read is still so, and apply
what was written. `protocol.py` says what a backend must give for that, `seen.py` holds what was
read, `transaction.py` what was written, `engine.py` puts them together.
"""

from holdfast.engine.remote.engine import RemoteEngine
from holdfast.engine.remote.protocol import (
    AddRefused,
    Backend,
    Commit,
    Conflicted,
    Locking,
    Page,
    Row,
    Session,
    SnapshotLost,
    Unreachable,
    Unsettled,
    Walked,
)

__all__ = [
    "AddRefused",
    "Backend",
    "Commit",
    "Conflicted",
    "Locking",
    "Page",
    "RemoteEngine",
    "Row",
    "Session",
    "SnapshotLost",
    "Unreachable",
    "Unsettled",
    "Walked",
]
