"""Names of a store's files that something else has taken: an error, and no process that hangs."""

import os
import signal
import socket
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path

import pytest

from holdfast.backup_folder import backups_in, make_backup
from holdfast.engine import open_engine
from holdfast.engine.folder import FILES
from holdfast.engine.lmdb.recovery import recover
from holdfast.engine.lmdb.restore import restore
from holdfast.errors import StoreDamaged

NOON = 1_767_614_400.0
DAY = 86_400.0


@pytest.fixture(autouse=True)
def _ends_what_hangs() -> Iterator[None]:
    def end(*_: object) -> None:
        raise TimeoutError("it hangs")

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, 20)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def closed(tmp_path: Path) -> Path:
    engine = open_engine(tmp_path / "store")
    engine.transact(lambda tx: tx.put(b"key", b"value"))
    engine.close()
    return tmp_path / "store"


def put_in_place(file: Path, kind: str) -> None:
    file.unlink(missing_ok=True)
    if kind == "a FIFO":
        os.mkfifo(file)
    elif kind == "a folder":
        file.mkdir()
    elif kind == "a socket":
        with chdir(file.parent), socket.socket(socket.AF_UNIX) as made:  # its path must be short
            made.bind(file.name)
    elif kind == "a link to a device":
        file.symlink_to("/dev/zero")
    else:
        other = file.parent.parent / "fifo"
        os.mkfifo(other)
        file.symlink_to(other)


@pytest.mark.parametrize("name", sorted(FILES))
def test_a_fifo_with_the_name_of_a_file_of_a_store_is_refused(closed: Path, name: str) -> None:
    put_in_place(closed / name, "a FIFO")

    with pytest.raises(StoreDamaged, match=f"{name} is a FIFO, not a file") as raised:
        open_engine(closed)

    assert "Move it away" in str(raised.value.hint)


@pytest.mark.parametrize("kind", ["a folder", "a socket", "a link to a device", "a link to a FIFO"])
@pytest.mark.parametrize("name", ["data.mdb", "opening.lock", "redo", "seal"])
def test_whatever_is_not_a_file_is_refused(closed: Path, name: str, kind: str) -> None:
    put_in_place(closed / name, kind)

    for durability in ("commit", "interval"):
        with pytest.raises(StoreDamaged, match=f"{name} is {kind}, not a file"):
            open_engine(closed, durability=durability)


def test_recovering_and_restoring_refuse_a_fifo_too(closed: Path, tmp_path: Path) -> None:
    put_in_place(closed / "data.mdb", "a FIFO")

    with pytest.raises(StoreDamaged, match="is a FIFO"):
        recover(closed, accept_loss=True)
    with pytest.raises(StoreDamaged, match="is a FIFO"):
        restore(closed, tmp_path / "restored")


def test_a_store_whose_data_file_is_a_link_to_a_file_opens(closed: Path, tmp_path: Path) -> None:
    (closed / "data.mdb").rename(tmp_path / "elsewhere")
    (closed / "data.mdb").symlink_to(tmp_path / "elsewhere")

    engine = open_engine(closed)

    with engine.view() as view:
        assert view.get(b"key") == b"value"
    engine.close()


def test_a_fifo_where_a_backup_is_written_is_refused(closed: Path, tmp_path: Path) -> None:
    target = tmp_path / "backup"
    target.mkdir()
    os.mkfifo(target / "unfinished-copy")
    engine = open_engine(closed)

    with pytest.raises(StoreDamaged, match="is a FIFO"):
        engine.backup(target)
    engine.close()


def test_a_fifo_in_an_incremental_backup_or_its_base_is_refused(
    closed: Path, tmp_path: Path
) -> None:
    engine = open_engine(closed)
    folder = tmp_path / "backups"
    full = make_backup(engine, folder, now=NOON, is_incremental=True)
    changes = make_backup(engine, folder, now=NOON + DAY, is_incremental=True)
    engine.close()

    put_in_place(folder / full.name / "data.mdb", "a FIFO")
    with pytest.raises(StoreDamaged, match="is a FIFO"):
        restore(folder / changes.name, tmp_path / "restored")

    put_in_place(folder / changes.name / "changes", "a FIFO")
    assert "is a FIFO" in str(backups_in(folder)[0].problem)
    with pytest.raises(StoreDamaged, match="is a FIFO"):
        restore(folder / changes.name, tmp_path / "restored")
