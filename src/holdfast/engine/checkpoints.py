"""Checkpoints: the states that interval mode returns to after a power failure.

LMDB without its sync survives a crash of the process but not of the machine: the disk may then hold
a newer meta page than the pages it points to. A checkpoint is a state that is known to be on disk.
To make one, while no one writes, the two meta pages are copied and a read transaction is opened, so
that LMDB reuses no page of that state; then the file is synced and the copy is saved in a small
checksummed file. After a power failure, which a changed boot id reveals, the saved meta pages are
put back, which restores exactly the state of the checkpoint.

Several processes share one file of saved pages. Each keeps the read transaction of the last
checkpoint that it made itself, which is never newer than the one on disk, so if one is killed, the
others still protect the saved state.
"""

import errno
import os
from hashlib import blake2b
from pathlib import Path
from typing import Final

import msgspec

from holdfast.engine import folder
from holdfast.errors import StoreDamaged

FILE_NAME: Final = "checkpoint"
_NEW: Final = "checkpoint-new"  # its name until it is complete
META_PAGES: Final = 2
_DIGEST_BYTES: Final = 32


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True):
    """The content of the checkpoint file."""

    boot_id: str
    transaction_id: int
    meta_pages: bytes


def save(path: Path, checkpoint: Checkpoint) -> None:
    """Replaces the saved pages; complete and on disk when it returns."""
    body = msgspec.msgpack.encode(checkpoint)
    content = blake2b(body, digest_size=_DIGEST_BYTES).digest() + body
    # Overwrites the checkpoint before the last, and swaps the two: so a full disk can't prevent a
    # checkpoint, which is what frees pages.
    file = folder.open_file(path / _NEW)
    try:
        if os.pwrite(file, content, 0) != len(content):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.ftruncate(file, len(content))
        os.fsync(file)
    finally:
        os.close(file)
    folder.exchange(path / _NEW, path / FILE_NAME)
    try:
        folder.sync_folder(path)
    except OSError:
        # Nobody knows which of the two has which name on disk: neither may be overwritten.
        (path / _NEW).unlink(missing_ok=True)
        raise


def load(path: Path) -> Checkpoint | None:
    """Returns the saved checkpoint, or None if the store was closed properly."""
    try:
        content = folder.read_small(path / FILE_NAME)
    except FileNotFoundError:
        return None
    digest, body = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
    if blake2b(body, digest_size=_DIGEST_BYTES).digest() != digest:
        raise StoreDamaged(f"{path / FILE_NAME} does not match its own checksum")
    return msgspec.msgpack.decode(body, type=Checkpoint)


def remove(path: Path) -> None:
    """Removes the saved pages. Only for a file that is synced and that nobody writes to."""
    (path / FILE_NAME).unlink(missing_ok=True)
    (path / _NEW).unlink(missing_ok=True)
    folder.sync_folder(path)


def recover(path: Path, data_file: Path) -> bool:
    """Returns the store to its last checkpoint if the machine was restarted since then.

    Called by the only user of the store, before LMDB opens it. Returns whether it did so.
    """
    checkpoint = load(path)
    if checkpoint is None or checkpoint.boot_id == folder.boot_id():
        return False
    with data_file.open("r+b") as file:
        file.write(checkpoint.meta_pages)
        file.flush()
        os.fsync(file.fileno())
    return True


def read_meta_pages(data_file: int, page_bytes: int) -> bytes:
    """Returns the two meta pages, read through a file descriptor of the data file."""
    return os.pread(data_file, META_PAGES * page_bytes, 0)
