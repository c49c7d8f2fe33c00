"""The LMDB file of a store: how it is opened, which databases it has, and what LMDB's errors mean.

The file has three databases: `data`, `notices` (by the number of their commit) and `meta` (the
format number).
"""

import errno
import os
import sys
from pathlib import Path
from typing import Any, Final, NamedTuple

import lmdb

from holdfast.engine import lock_wait
from holdfast.engine.folder import FILE_MODE, open_file, sync_folder
from holdfast.errors import (
    CopyUnfinished,
    HoldfastError,
    StoreBusy,
    StoreDamaged,
    StoreFull,
    StoreUnusable,
    UnsupportedFormat,
)
from holdfast.limits import MAP_BYTES, MAX_READERS, MIN_MAP_BYTES

FORMAT: Final = 1
DATA_FILE: Final = "data.mdb"
UNFINISHED_FILE: Final = "unfinished-copy"  # the name of a backup until it has been compared
CHANGES_FILE: Final = "changes"  # an incremental backup, in a folder without a store
LOCK_FILE: Final = "lock.mdb"
_NEW_FILE: Final = "data.mdb-new"  # the name of the data file until it is complete
_WRITER_LOCK: Final = 64  # where LMDB's lock file has the writers' mutex: in its second cache line
_LOCK_BYTES: Final = 64 * (
    MAX_READERS + 2
)  # two cache lines of LMDB's own, and one for each reader
LIB_VERSION: Final = 0  # LMDB 0.9, whose file format has been proven for a decade


class Environment(NamedTuple):
    """An open LMDB file and its databases."""

    env: Any
    data: Any
    notices: Any
    meta: Any


def create(path: Path) -> None:
    """Creates the file of an empty store, in a folder that nobody else has open.

    It gets its name once it is complete and on disk: an empty data file is never a new store.
    """
    new = path / _NEW_FILE
    try:
        new.unlink(missing_ok=True)
        os.close(open_file(new))
        with lmdb.open(
            str(new), subdir=False, lock=False, max_dbs=4, map_size=2**20, lib_version=LIB_VERSION
        ) as env:
            _open_databases(env, path)
        new.replace(path / DATA_FILE)
        sync_folder(path)
    except (lmdb.Error, OSError) as error:
        raise explain(error, path) from error


def open_environment(path: Path, *, sync: bool) -> Environment:
    """Opens the file in the folder `path`."""
    _prepare_lock_file(path)
    env = _open(path, sync=sync)
    try:
        return _open_databases(env, path)
    except lmdb.Error as error:
        env.close()
        raise explain(error, path) from error
    except BaseException:
        env.close()
        raise


def free_bytes(opened: Environment) -> int:
    """Returns how much of the file no tree uses: the next commits write there, on a full disk too.

    Pages that a reader may still need are among them. The list of free pages itself is not counted:
    it has a page for some hundreds of them.
    """
    env, *databases = opened
    with env.begin() as txn:
        trees = [env.stat(), *(txn.stat(each) for each in databases)]
        pages = env.info()["last_pgno"] + 1
    parts = ("branch_pages", "leaf_pages", "overflow_pages")
    used = sum(tree[part] for tree in trees for part in parts)
    return int((pages - used) * trees[0]["psize"])


def refuse_unfinished(path: Path) -> None:
    """Raises if the folder holds no store, but a backup that is unfinished or incremental.

    Opening it would create an empty store, which would pass for the backup.
    """
    # os.path: a path that can't exist, such as one that is too long, gets its error on creation.
    if os.path.exists(path / DATA_FILE):
        return
    if os.path.exists(path / CHANGES_FILE):
        raise StoreUnusable(
            f"{path} holds an incremental backup, not a store",
            hint=f"Restore it into a new folder: holdfast restore {path} --data FOLDER",
        )
    if os.path.exists(path / UNFINISHED_FILE):
        raise CopyUnfinished(
            f"the backup in {path} is not finished",
            hint="Make it again: it may be written into the same folder.",
        )


def _prepare_lock_file(path: Path) -> None:
    """Allocates the blocks of LMDB's lock file. LMDB writes to it through a map, where a full disk
    would end the process instead of raising an error."""
    try:
        file = open_file(path / LOCK_FILE)
        try:
            os.posix_fallocate(file, 0, max(_LOCK_BYTES, os.fstat(file).st_size))
        finally:
            os.close(file)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise explain(error, path) from error


def await_writer(path: Path) -> None:
    """Waits until nobody is in the middle of an LMDB commit, or raises `StoreBusy`.

    LMDB itself waits without a limit, and a stopped process never finishes its commit.
    """
    with (path / LOCK_FILE).open("rb") as file:
        number = file.fileno()
        lock_wait.await_free(
            lambda: _writer(number) == 0, lambda: lock_wait.process_of(_writer(number)), path
        )


def _writer(lock_file: int) -> int:
    """Returns the thread that holds LMDB's writer lock, a robust mutex in its lock file; 0 if none
    does."""
    word = int.from_bytes(os.pread(lock_file, 4, _WRITER_LOCK), sys.byteorder)
    thread = word & 0x3FFFFFFF
    return thread if thread and lock_wait.process_of(thread) else 0


def _open(path: Path, *, sync: bool) -> Any:
    used = (path / DATA_FILE).stat().st_size
    map_bytes = max(MAP_BYTES, 4 * used)
    while True:
        try:
            return lmdb.open(
                str(path),
                map_size=map_bytes,
                max_dbs=4,
                max_readers=MAX_READERS,
                max_spare_txns=8,
                sync=sync,
                meminit=False,
                mode=FILE_MODE,
                create=False,
                lib_version=LIB_VERSION,
            )
        except (MemoryError, lmdb.Error) as error:
            # If the address space is limited (ulimit -v), try a smaller map.
            if "allocate memory" in str(error) and map_bytes > max(MIN_MAP_BYTES, 2 * used):
                map_bytes //= 4
                continue
            raise explain(error, path) from error


def _open_databases(env: Any, path: Path) -> Environment:
    with env.begin() as txn:
        names = [bytes(key) for key, _ in txn.cursor()]
    if names and b"meta" not in names:
        raise UnsupportedFormat(f"{path} holds the data of another program")
    meta = env.open_db(b"meta")
    with env.begin(db=meta) as txn:
        stored = txn.get(b"format")
    if stored is None:
        with env.begin(db=meta, write=True) as txn:
            txn.put(b"format", b"%d" % FORMAT)
    elif not stored.isdigit() or int(stored) > FORMAT:
        found = stored.decode(errors="replace")
        raise UnsupportedFormat(f"{path} has format {found}, this Holdfast knows {FORMAT}")
    return Environment(
        env=env, data=env.open_db(b"data"), notices=env.open_db(b"notices"), meta=meta
    )


def explain(error: Exception, path: Path) -> HoldfastError:
    """Returns the error to raise for an error of LMDB or of the system."""
    if isinstance(error, HoldfastError):
        return error
    text = str(error)
    if isinstance(error, lmdb.MapFullError | lmdb.MapResizedError):
        return StoreFull(
            f"{path} has filled the map that it was opened with",
            hint="Close and open it again in every process: the map is then made larger.",
        )
    # LMDB reports a partial write, as on a full disk, as an I/O error.
    if isinstance(error, lmdb.DiskError) or any(
        os.strerror(number) in text
        for number in (errno.ENOSPC, errno.EFBIG, errno.EDQUOT, errno.EIO)
    ):
        return StoreFull(f"there is no space left for {path}, or its disk fails: {text}")
    if isinstance(error, lmdb.ReadersFullError):
        return StoreBusy(
            f"{path} has {MAX_READERS} open views, which is the maximum",
            hint="Close views soon after they were opened.",
        )
    if isinstance(error, lmdb.InvalidError | lmdb.VersionMismatchError):
        return UnsupportedFormat(f"{path} holds something that is not a Holdfast store")
    if isinstance(error, lmdb.CorruptedError | lmdb.PanicError | lmdb.PageNotFoundError):
        return StoreDamaged(f"{path} can't be read: {text}")
    if "already open" in text:
        return StoreBusy(
            f"{path} is already open in this process, or was in the one that it was forked from",
            hint="Open a store once in each process, after any fork; its threads may share it.",
        )
    return StoreUnusable(f"{path}: {text}")
