"""The embedded engine: LMDB in a folder, shared by any number of threads and processes.

What a reader of this folder should know of LMDB: one writer at a time, over all processes; readers
take a snapshot and lock nothing; a commit writes new pages beside the old ones and then one of two
meta pages in turn, so a crash at any moment leaves the state before or after it.

engine.py        opens and closes the store; views, transactions, backups and checks begin there
commits.py       runs the transactions of a group, in memory or in LMDB
overlay.py       holds commits that LMDB gets later; redo_log.py makes them durable until then, and
                 disk_space.py reserves disk blocks for them
checkpointer.py  interval mode: saves states to return to after a power failure
"""

from holdfast.engine.lmdb.engine import LmdbEngine
from holdfast.engine.lmdb.environment import FORMAT

__all__ = ["FORMAT", "LmdbEngine"]
