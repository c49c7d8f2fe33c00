"""Checkpoints of interval mode: when they are made."""

import errno
import os
import random
import time
from contextlib import closing
from pathlib import Path

import pytest

from holdfast.engine import checkpoints, folder, open_engine
from holdfast.engine.checkpoints import Checkpoint
from holdfast.engine.contract import Engine, Transaction


def test_flushes_that_copy_the_whole_store_make_an_early_checkpoint(tmp_path: Path) -> None:
    with closing(open_engine(tmp_path, durability="interval", checkpoint_seconds=3600)) as engine:
        first = last_saved(tmp_path)

        deadline = time.monotonic() + 60
        while last_saved(tmp_path) == first and time.monotonic() < deadline:
            rewrite(engine, keys=500)

        assert last_saved(tmp_path) > first


def test_a_store_that_is_filled_in_random_order_stays_near_the_size_of_its_data(
    tmp_path: Path,
) -> None:
    with closing(open_engine(tmp_path, durability="interval", checkpoint_seconds=0.05)) as engine:
        for _ in range(100):
            rewrite(engine, keys=500)
        engine.checkpoint()

        stats = engine.stats()
        assert stats["file_bytes"] < 20 * stats["keys"] * 200


def test_after_a_failed_sync_of_the_folder_neither_saved_checkpoint_is_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a power failure, the folder may be as before the save that failed."""

    def fail(path: Path) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    def save(number: int) -> None:
        checkpoints.save(tmp_path, Checkpoint(boot_id="", transaction_id=number, meta_pages=b""))

    save(1)
    save(2)
    with (tmp_path / checkpoints.FILE_NAME).open("rb") as before:
        with monkeypatch.context() as patch:
            patch.setattr(folder, "sync_folder", fail)
            with pytest.raises(OSError, match="Input/output"):
                save(3)
        with (tmp_path / checkpoints.FILE_NAME).open("rb") as failed:
            contents = [os.pread(file.fileno(), 4096, 0) for file in (before, failed)]
            save(4)
            assert [os.pread(file.fileno(), 4096, 0) for file in (before, failed)] == contents
    assert last_saved(tmp_path) == 4


def rewrite(engine: Engine, *, keys: int) -> None:
    """Writes keys all over the store, and has LMDB's file get them."""
    numbers = random.sample(range(20_000), keys)

    def work(tx: Transaction) -> None:
        for number in numbers:
            tx.put(b"%06d" % number, bytes(100))

    engine.transact(work)
    with engine.view():
        pass


def last_saved(path: Path) -> int:
    checkpoint = checkpoints.load(path)
    return -1 if checkpoint is None else checkpoint.transaction_id
