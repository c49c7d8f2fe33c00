"""The folder of an embedded store: its files, and the locks that processes take on it.

data.mdb, lock.mdb   LMDB's own
opening.lock         locked for the moment in which a process opens or closes the store
users.lock           locked, shared, by every process that has the store open; names the durability
checkpoint.lock      locked by the process that makes a checkpoint
lease.lock           locked by the process that commits, to the log or to LMDB's file; written to
                     when a commit has notices for other processes
writing.lock         locked by the process that is next to write to LMDB's file
syncing.lock         locked by the process that syncs the log for all of them
redo                 commits that LMDB's file lacks
sharing              the state that processes with the store open share (lmdb/shared_state.py)
redo-state           says whether there is such a log, and which one
checkpoint           in interval mode: the state to return to after a power failure
sync-failed          says that data.mdb failed to sync (lmdb/failed_syncs.py)
seal                 checksums of data.mdb, if the store was closed properly
reserve              blocks for transactions that free space on a full disk

Only their owner may open them, whatever the umask says: a user who can read these files can read
the data, and one who can open `opening.lock` could lock everybody out.
"""

import ctypes
import fcntl
import os
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Final

from holdfast.engine import lock_wait
from holdfast.errors import StoreBusy, StoreDamaged, StoreUnusable, UnsupportedFileSystem
from holdfast.limits import MAX_SIDE_FILE_BYTES

NETWORK_FILE_SYSTEMS: Final = frozenset(
    """
    9p afs afpfs beegfs ceph cifs coda davfs gfs2 glusterfs lustre ncpfs nfs nfs4 ocfs2 orangefs
    pvfs2 smb3 smbfs
    fuse.ceph fuse.gcsfuse fuse.glusterfs fuse.rclone fuse.s3fs fuse.sshfs
    """.split()  # noqa: SIM905  # a list would take one line a name
)
# A page that is written again needs new blocks, and a memory map can't report a full disk.
COPYING_FILE_SYSTEMS: Final = frozenset(("bcachefs", "btrfs", "zfs"))


class WriteTurn:
    """Lets one thread of all processes at a time wait for LMDB's own writer lock.

    LMDB's lock wakes one waiting thread. If that one is killed before it runs, the others sleep on,
    although the lock is free. So at most one thread waits there, while it holds this lock, and the
    others wait here: the system wakes all of them when a process dies. Held only while a
    transaction begins; costs two system calls.
    """

    def __init__(self, file: int) -> None:
        self._file = file
        self._threads = threading.Lock()  # a file lock excludes processes, not threads

    def __enter__(self) -> None:
        self._threads.acquire()
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX)
        except BaseException:
            self._threads.release()
            raise

    def __exit__(self, *exc: object) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_UN)
        finally:
            self._threads.release()


# Follows the durability in users.lock. Versions that share no log, or share it in another way, take
# it for an unknown durability and refuse the store; they would commit without the lease.
_SHARES_THE_LOG: Final = ", shared log 3"
_renameat2: Final = getattr(ctypes.CDLL(None), "renameat2", None)
_AT_FDCWD: Final = -100  # paths, not names in an open folder
_RENAME_EXCHANGE: Final = 2

_TRY_EXCLUSIVE: Final = fcntl.LOCK_EX | fcntl.LOCK_NB

FOLDER_MODE: Final = 0o700
FILE_MODE: Final = 0o600
FILES: Final = frozenset(
    """
    data.mdb data.mdb-new lock.mdb opening.lock users.lock checkpoint.lock lease.lock
    writing.lock syncing.lock redo sharing
    redo-state redo-state-new checkpoint checkpoint-new sync-failed seal seal-new reserve
    unfinished-copy
    """.split()  # noqa: SIM905  # a list would take one line a name
)
_KINDS: Final = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


class Folder:
    """A store's folder, held open by this process."""

    def __init__(self, path: Path, durability: str) -> None:
        self.path = path
        self.durability = durability
        create_folder(path)
        refuse_network_file_system(path)
        refuse_special_files(path)
        make_private(path)
        self._files: list[int] = []
        self._blocking_locks = lock_wait.BlockingLocks(path)
        try:
            self._opening = self._open_file("opening.lock")
            self._users = self._open_file("users.lock")
            self._checkpoint = self._open_file("checkpoint.lock")
            self.lease_file = path / "lease.lock"
            self._lease = self._open_file(self.lease_file.name)
            self.write_turn = WriteTurn(self._open_file("writing.lock"))
            self._syncing = self._open_file("syncing.lock")
        except OSError as error:
            self.close()
            raise _unusable(path, error) from error

    def lock_opening(self) -> None:
        """Waits until no other process is in the middle of opening or closing the store."""
        lock_wait.lock(self._opening, self.path)

    def try_lock_opening(self) -> bool:
        return lock_wait.try_lock(self._opening)

    def unlock_opening(self) -> None:
        fcntl.flock(self._opening, fcntl.LOCK_UN)

    def is_ours_alone(self) -> bool:
        """Returns whether no other process has the store open. Only while `lock_opening` is
        held."""
        return lock_wait.try_lock(self._users)

    def stay_registered(self) -> None:
        """Remains a user of the store after `is_ours_alone`."""
        fcntl.flock(self._users, fcntl.LOCK_SH)

    def join(self, *, alone: bool) -> None:
        """Registers this process as a user of the store. All users must have the same durability.

        `alone` is the result of `is_ours_alone`, which might differ if it were asked again: the
        first user has more to set up than later ones.
        """
        mine = f"{self.durability}{_SHARES_THE_LOG}"
        if alone:
            os.pwrite(self._users, mine.encode(), 0)
            os.ftruncate(self._users, len(mine))
        else:
            found = os.pread(self._users, 32, 0).decode(errors="replace")
            current = found.removesuffix(_SHARES_THE_LOG)
            if found == current:
                raise StoreBusy(
                    f"{self.path} is open in a process with an older version of Holdfast",
                    hint="Close it there first: use one version on one folder at a time.",
                )
            if current != self.durability:
                raise StoreBusy(
                    f"{self.path} is open in another process with durability {current!r}, "
                    f"and can't be opened with {self.durability!r} at the same time",
                    hint="Give all processes on one folder the same durability.",
                )
        self.stay_registered()

    def take_lease(self, *, wait: bool) -> bool:
        """Takes the lease: only its holder may commit."""
        try:
            fcntl.flock(self._lease, _TRY_EXCLUSIVE)
        except BlockingIOError:
            if wait:
                self._blocking_locks.lock(self._lease)
            return wait
        return True

    def release_lease(self) -> None:
        fcntl.flock(self._lease, fcntl.LOCK_UN)

    def await_lease(self, is_not_needed: Callable[[], bool]) -> bool:
        """Waits until the lease is free, and takes it, or until it is not needed. Returns whether
        it was taken; raises `StoreBusy` if its holder is stopped."""
        taken = False

        def is_free() -> bool:
            nonlocal taken
            taken = not is_not_needed() and lock_wait.try_lock(self._lease)
            return taken or is_not_needed()

        lock_wait.await_free(is_free, lambda: lock_wait.holder_of(self._lease), self.path)
        return taken

    def refuse_stopped_holder(self) -> None:
        """Raises `StoreBusy` if a process that holds the lease, or syncs the log, is stopped and
        stays stopped."""
        for file in (self._lease, self._syncing):

            def holder(file: int = file) -> int:
                return lock_wait.holder_of(file)

            lock_wait.await_free(lambda: not lock_wait.is_stopped(holder()), holder, self.path)

    def lock_syncing(self) -> None:
        """Waits for the turn to sync the log."""
        self._blocking_locks.lock(self._syncing)

    def unlock_syncing(self) -> None:
        fcntl.flock(self._syncing, fcntl.LOCK_UN)

    def wake_notice_listeners(self) -> None:
        """Wakes the processes that wait for notices: they watch the file of the lease. If the disk
        is full, they notice at their next poll."""
        with suppress(OSError):
            os.pwrite(self._lease, b"n", 0)

    @contextmanager
    def checkpointing(self) -> Iterator[None]:
        """Lets one process at a time make a checkpoint, so that no checkpoint is replaced by an
        older one."""
        lock_wait.lock(self._checkpoint, self.path)
        try:
            yield
        finally:
            fcntl.flock(self._checkpoint, fcntl.LOCK_UN)

    def close(self) -> None:
        self._blocking_locks.close()
        while self._files:
            os.close(self._files.pop())

    def _open_file(self, name: str) -> int:
        self._files.append(open_file(self.path / name))
        return self._files[-1]


def open_file(path: Path, flags: int = os.O_RDWR | os.O_CREAT) -> int:
    """Opens a file that only its owner may open, and creates it if it does not exist."""
    file = os.open(path, flags, FILE_MODE)
    _restrict(file, FILE_MODE)
    return file


def read_small(path: Path) -> bytes:
    """Reads a small file of the folder, up to a limit.

    A file that damage has made longer is cut there, and fails its checksum.
    """
    with path.open("rb") as file:
        return file.read(MAX_SIDE_FILE_BYTES)


def open_private(path: Path, mode: str) -> IO[Any]:
    """Like `open`, for a file that only its owner may open."""
    return open(path, mode, opener=lambda name, flags: open_file(Path(name), flags))


def make_private(path: Path) -> None:
    """Removes all permissions of others from a store's files, and from its folder if that holds
    nothing else: a home directory or /tmp is left as it is."""
    with suppress(OSError):
        names = os.listdir(path)
        for name in FILES.intersection(names):
            if not (path / name).is_symlink():
                _restrict(path / name, FILE_MODE)
        if FILES.issuperset(names) and not path.stat().st_mode & stat.S_ISVTX:
            _restrict(path, FOLDER_MODE)


def refuse_special_files(path: Path) -> None:
    """Raises if a name of one of a store's files is taken by something that is not a file."""
    with suppress(OSError):
        for name in sorted(FILES.intersection(os.listdir(path))):
            refuse_special_file(path / name)


def refuse_special_file(file: Path) -> None:
    """Raises if `file` is a FIFO, a socket, a device or a folder, or a link to one.

    Opening a FIFO waits until somebody opens its other end, and a device can be read for ever. A
    path that does not exist, or can't be examined, gets its error when it is opened.
    """
    try:
        mode = file.stat().st_mode
    except OSError:
        return
    if stat.S_ISREG(mode):
        return
    kind = _KINDS.get(stat.S_IFMT(mode), "something else")
    link = " a link to" if file.is_symlink() else ""
    raise StoreDamaged(
        f"{file} is{link} {kind}, not a file",
        hint="Holdfast has not made it. Move it away; if a file of the store was there before, put "
        "that file back, or restore the newest backup.",
    )


def _restrict(file: int | Path, mode: int) -> None:
    """Sets the mode of this user's files; files of others are left alone."""
    found = os.stat(file)
    if stat.S_IMODE(found.st_mode) != mode and found.st_uid == os.geteuid():
        os.chmod(file, mode)


def create_folder(path: Path) -> None:
    """Makes sure that `path` is a folder, which survives a power failure.

    A folder that is created here is accessible to its owner only.
    """
    try:
        whole = path.absolute()
        missing = [folder for folder in (whole, *whole.parents) if not folder.exists()]
        path.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            path.mkdir(FOLDER_MODE)
            _restrict(path, FOLDER_MODE)
        if not path.is_dir():
            raise NotADirectoryError
        for folder in missing:
            sync_folder(folder.parent)
    except (FileExistsError, NotADirectoryError):
        raise StoreUnusable(
            f"{path} is a file; a store is a folder", hint="Name a folder; it is created if needed."
        ) from None
    except OSError as error:
        raise _unusable(path, error) from error


def _unusable(path: Path, error: OSError) -> StoreUnusable:
    return StoreUnusable(
        f"{path} can't be used: {error.strerror}", hint="Name a folder that you may write to."
    )


def sync_folder(path: Path) -> None:
    """Makes the names in a folder durable, as fsync does for the content of a file."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def exchange(new: Path, old: Path) -> None:
    """Swaps two files atomically; if the system can't, or there is no old file, the new one
    replaces it."""
    if _renameat2 is None or _renameat2(
        _AT_FDCWD,
        os.fsencode(new.absolute()),
        _AT_FDCWD,
        os.fsencode(old.absolute()),
        _RENAME_EXCHANGE,
    ):
        new.replace(old)


def boot_id() -> str:
    """Identifies the current boot of the machine; whatever processes wrote since then is in the
    operating system's hands."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except FileNotFoundError:
        # Without one, every opening counts as a new boot: after a crash of the process the store
        # then returns to its last checkpoint, which is safe.
        return os.urandom(16).hex()


def refuse_network_file_system(path: Path, mounts: Path = Path("/proc/self/mounts")) -> None:
    """Raises if `path` is on a file system whose locks and memory maps can't be trusted."""
    kind = file_system(path.resolve(), mounts)
    if kind in NETWORK_FILE_SYSTEMS:
        raise UnsupportedFileSystem(f"{path} is on a network file system ({kind})")


def keeps_written_pages(path: Path, mounts: Path = Path("/proc/self/mounts")) -> bool:
    """Returns whether a page of a file keeps its blocks when it is written again."""
    kind = file_system(path.resolve(), mounts)
    return kind not in COPYING_FILE_SYSTEMS and not kind.startswith("fuse")


def file_system(path: Path, mounts: Path) -> str:
    """Returns the type of the file system of `path`, or "" if the machine does not say."""
    try:
        lines = mounts.read_text(errors="surrogateescape").splitlines()
    except FileNotFoundError:
        return ""
    found = ("", "")
    for line in lines:
        _, point, kind, *_ = line.split(" ")
        # Spaces in a mount point are written as \040.
        point = point.encode("utf-8", "surrogateescape").decode("unicode_escape")
        # Of two mounts on one point, the later one is on top.
        if path.is_relative_to(point) and len(point) >= len(found[0]):
            found = (point, kind)
    return found[1]
