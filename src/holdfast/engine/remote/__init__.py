"""The shared part of engines whose state is on other machines.

A transaction runs in the client: it reads a snapshot through a cache, remembers what it read, and
buffers its writes. Its commit is one message: check that what was read is unchanged, and apply what
was written. `protocol.py` says what a backend must provide for that, `read_cache.py` holds what was
read, `transaction.py` what was written, and `engine.py` puts them together.
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
