"""The shared part of engines whose state is on other machines.

A transaction runs in the client: it reads a snapshot through a cache, remembers what it read, and
buffers its writes. Its commit is one message: check that what was read is unchanged, and apply what
was written. `protocol.py` says what a backend must provide for that, `read_cache.py` holds what was
read, `transaction.py` what was written, `remembered_rows.py` what earlier transactions saw,
`group_runner.py` runs a group until its commit succeeds, and `engine.py` puts them together.
"""

from holdfast.engine.remote.engine import RemoteEngine
from holdfast.engine.remote.protocol import (
    NOTHING_CHANGED,
    AddRefused,
    Backend,
    BackendSession,
    Commit,
    Committed,
    Conflicted,
    ConnectionLost,
    RangeRead,
    Refreshed,
    RemoteChanges,
    Row,
    SnapshotLost,
    TurnBackend,
    Unsettled,
    WalkedRange,
    new_row,
)

__all__ = [
    "NOTHING_CHANGED",
    "AddRefused",
    "Backend",
    "BackendSession",
    "Commit",
    "Committed",
    "Conflicted",
    "ConnectionLost",
    "RangeRead",
    "Refreshed",
    "RemoteChanges",
    "RemoteEngine",
    "Row",
    "SnapshotLost",
    "TurnBackend",
    "Unsettled",
    "WalkedRange",
    "new_row",
]
