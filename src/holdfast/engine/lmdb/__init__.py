"""The embedded engine: LMDB in a folder, shared by any number of threads and processes.

What to know about LMDB to read this folder: one writer at a time, over all processes; readers
take a snapshot and lock nothing; a commit writes changed pages to new places and then one of two
meta pages in turn, so a crash at any moment leaves the state before or after it.

open_store.py         opens, recovers and closes the files of a store
engine.py             begins views, transactions, backups and checks of an open store
commits.py            runs the transactions of a group, in memory or in LMDB
overlay.py            keeps commits in memory until LMDB gets them
redo_log.py           makes those commits durable until then
disk_space.py         reserves disk blocks for them
flusher.py            the thread that flushes them into LMDB's file
log_lease.py          which process may commit
unflushed_commits.py  the commits that LMDB lacks, those of other processes included
shared_state.py       the memory-mapped words that processes on a store share
checkpointer.py       interval mode: saves states to return to after a power failure
"""

from pathlib import Path

from holdfast.engine.contract import EngineOptions
from holdfast.engine.lmdb.engine import LmdbEngine
from holdfast.engine.lmdb.environment import FORMAT
from holdfast.errors import BadInput

__all__ = ["FORMAT", "LmdbEngine", "open_folder", "open_lmdb"]


def open_lmdb(url: str, options: EngineOptions) -> LmdbEngine:
    """Opens the store in the folder that a path or `lmdb:PATH` names."""
    path = url.removeprefix("lmdb:")
    # "" would be the current folder, and "//data" the folder /data: hardly what was meant.
    if not path or (path.startswith("//") and not path.startswith("///")):
        raise BadInput(
            f"{url!r} names no folder", hint="Write 'data', '/var/data', or 'lmdb:/var/data'."
        )
    return open_folder(Path(path), options)


def open_folder(folder: Path, options: EngineOptions) -> LmdbEngine:
    """Opens the store in `folder`, and creates it if it does not exist."""
    return LmdbEngine(
        folder,
        clock=options.clock,
        durability=options.durability,
        checkpoint_seconds=options.checkpoint_seconds,
    )
