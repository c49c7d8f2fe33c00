"""Damaged files: an error that says what to do, never a dead process and never a silent loss."""

import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path

import lmdb
import pytest

from holdfast.engine import open_engine
from holdfast.engine.contract import Engine, Transaction
from holdfast.engine.lmdb import flusher, overlay, pages
from holdfast.engine.lmdb.recovery import recover
from holdfast.engine.lmdb.restore import restore
from holdfast.errors import LogDamaged, StoreDamaged
from tests.processes import start

PAGE = 4096
MAIN_ROOT = 128  # where a meta page names the root of its main tree


def fill(engine: Engine, count: int = 40) -> None:
    for number in range(count):
        engine.transact(lambda tx, n=number: tx.put(b"key %d" % n, b"%d" % n * 50))  # type: ignore[misc]


def content(path: Path) -> dict[bytes, bytes]:
    engine = open_engine(path)
    try:
        with engine.view() as view:
            return dict(view.scan(b"", b"\xff"))
    finally:
        engine.close()


def fill_pages(tx: Transaction) -> None:
    for number in range(2_000):
        tx.put(b"%05d" % number, bytes(200))


@pytest.fixture
def closed(tmp_path: Path) -> Path:
    engine = open_engine(tmp_path / "store")
    fill(engine)
    engine.close()
    return tmp_path / "store"


def write_and_wait(path: str, durability: str, connection: Connection) -> None:
    overlay.COMMITS_BEFORE_LOG = 0  # type: ignore[attr-defined]
    overlay.MAX_WAITING_SECONDS = 3600.0  # type: ignore[attr-defined]
    flusher.FLUSH_SECONDS = 3600.0  # type: ignore[attr-defined]
    engine = open_engine(path, durability=durability, checkpoint_seconds=3600)
    fill(engine)
    engine._overlay._log.note_end()  # type: ignore[attr-defined]
    connection.send("filled")
    connection.recv()


@pytest.fixture(params=["commit", "interval"])
def killed(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A store whose last 40 commits are in its log only."""
    child = start(write_and_wait, str(tmp_path / "store"), request.param)
    assert child.receive() == "filled"
    child.kill()
    return tmp_path / "store"


def change(file: Path, place: int, content: bytes) -> None:
    with file.open("r+b") as opened:
        opened.seek(place)
        opened.write(content)


# --- the data file -------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 1, 100, PAGE, 2 * PAGE, 3 * PAGE, 5 * PAGE + 7])
def test_a_truncated_file_is_refused(closed: Path, size: int) -> None:
    os.truncate(closed / "data.mdb", size)

    with pytest.raises(StoreDamaged, match="Restore the newest backup"):
        open_engine(closed)


@pytest.mark.parametrize("page", range(2, 8))
def test_a_zeroed_page_of_a_store_that_was_not_closed_is_refused_or_free(
    closed: Path, page: int
) -> None:
    (closed / "seal").unlink()
    before = content(closed)
    (closed / "seal").unlink()
    change(closed / "data.mdb", page * PAGE, bytes(PAGE))

    try:
        after = content(closed)
    except StoreDamaged as error:
        said = error.message
    else:
        said = f"page {page}"
        assert after == before
    assert f"page {page}" in said


def test_a_turned_bit_of_a_value_is_found_when_a_closed_store_is_opened(closed: Path) -> None:
    file = closed / "data.mdb"
    place = file.read_bytes().index(b"7" * 50)
    change(file, place, b"8")

    with pytest.raises(StoreDamaged, match="has changed since its store was closed"):
        open_engine(closed)


def test_a_data_file_that_is_gone_is_no_empty_store(closed: Path) -> None:
    (closed / "data.mdb").unlink()

    with pytest.raises(StoreDamaged, match="is missing"):
        open_engine(closed)

    assert not (closed / "data.mdb").exists()


def test_a_process_that_was_killed_while_it_created_a_store_leaves_none(tmp_path: Path) -> None:
    (tmp_path / "data.mdb-new").write_bytes(b"half of one")
    (tmp_path / "users.lock").write_bytes(b"commit")

    assert content(tmp_path) == {}


def test_a_file_whose_last_pages_were_never_written_to_is_sound(tmp_path: Path) -> None:
    """LMDB leaves out pages that one transaction took and gave back; the file is then shorter than
    it says."""
    engine = open_engine(tmp_path)

    def take_and_give_back(tx: Transaction) -> None:
        tx.put(b"large", bytes(1_000_000))
        tx.put(b"small", b"")
        tx.delete(b"large")

    engine.transact(take_and_give_back)
    engine.close()
    with (tmp_path / "data.mdb").open("rb") as file:
        newest = pages.read_metas(file.fileno())[0]
        assert os.fstat(file.fileno()).st_size < newest.file_bytes
    (tmp_path / "seal").unlink()

    assert content(tmp_path) == {b"small": b""}


def test_a_store_opens_after_the_disk_failed_while_lmdb_wrote_a_meta_page(closed: Path) -> None:
    """LMDB then leaves an older page that names a root of the new commit, behind its last page."""
    expected = content(closed)
    with (closed / "data.mdb").open("r+b") as file:
        newest, older = pages.read_metas(file.fileno())
        root = newest.last_page + 1
        file.seek(older.transaction_id % 2 * PAGE + MAIN_ROOT)
        file.write(root.to_bytes(8, "little"))
    (closed / "seal").unlink()

    assert content(closed) == expected


def test_commits_between_the_reads_of_two_meta_pages_are_no_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = lmdb.open(str(tmp_path), sync=False)
    read = os.pread
    commits = iter([2, 3, 3, 0])  # before each of the first reads

    def commit_and_read(file: int, length: int, offset: int) -> bytes:
        for _ in range(next(commits, 0)):
            with env.begin(write=True) as txn:
                txn.put(b"key", os.urandom(8))
        return read(file, length, offset)

    monkeypatch.setattr(os, "pread", commit_and_read)
    with (tmp_path / "data.mdb").open("rb") as file:
        newest = pages.read_metas(file.fileno())[0]

    assert newest.transaction_id == env.info()["last_txnid"]
    assert next(commits, None) is None, "no commit came between the reads"
    env.close()


def test_check_finds_a_damaged_page_of_an_open_store_and_goes_on(tmp_path: Path) -> None:
    engine = open_engine(tmp_path)
    engine.transact(fill_pages)
    engine.stats()  # brings all into the file
    with (tmp_path / "data.mdb").open("rb") as file:
        leaves = [
            number
            for number in range(2, os.fstat(file.fileno()).st_size // PAGE)
            if os.pread(file.fileno(), 12, number * PAGE)[10] == 2
        ]
    for number in leaves:
        change(tmp_path / "data.mdb", number * PAGE, bytes(PAGE))

    problems = engine.check()

    assert problems
    assert "is damaged" in problems[0]
    with pytest.raises(StoreDamaged):
        engine.refuse_unreadable()
    with pytest.raises(StoreDamaged):
        engine.backup(tmp_path.with_name("copy"))
    engine.close()


def test_a_closed_store_that_lmdb_itself_wrote_to_opens(closed: Path) -> None:
    with lmdb.open(str(closed), max_dbs=4) as env, env.begin(write=True) as txn:
        txn.put(b"key 1", b"theirs", db=env.open_db(b"data", txn=txn))

    assert content(closed)[b"key 1"] == b"theirs"


# --- backups -------------------------------------------------------------------------------------


@pytest.fixture
def backup(closed: Path, tmp_path: Path) -> Path:
    engine = open_engine(closed)
    engine.backup(tmp_path / "backup")
    engine.close()
    return tmp_path / "backup"


def test_a_restored_backup_is_compared_with_the_digest_that_it_keeps(
    backup: Path, tmp_path: Path
) -> None:
    assert restore(backup, tmp_path / "again")
    assert content(tmp_path / "again") == content(tmp_path / "store")
    assert restore(backup, tmp_path / "once more"), "reading a backup does not change it"


def test_a_backup_with_another_value_is_refused(backup: Path, tmp_path: Path) -> None:
    file = backup / "data.mdb"
    change(file, file.read_bytes().index(b"7" * 50) + 20, b"8")

    with pytest.raises(StoreDamaged, match="the digest of its 40 keys is not the one"):
        restore(backup, tmp_path / "again")

    assert not (tmp_path / "again" / "data.mdb").exists()


def test_a_backup_with_a_missing_key_is_refused(backup: Path, tmp_path: Path) -> None:
    with lmdb.open(str(backup), max_dbs=4, lock=False) as env:
        number = env.info()["last_txnid"]
        with env.begin(write=True) as txn:
            txn.delete(b"key 1", db=env.open_db(b"data", txn=txn))
            meta = env.open_db(b"meta", txn=txn)
            noted = txn.get(b"backup", db=meta) or b""
            # As if nobody had written to it since.
            txn.put(
                b"backup",
                noted.replace(b"id" + bytes([number]), b"id" + bytes([number + 1])),
                db=meta,
            )

    with pytest.raises(StoreDamaged, match="it has 39 keys, and 40 were backed up"):
        restore(backup, tmp_path / "again")


def test_a_backup_that_was_written_to_is_a_store_and_keeps_no_digest(
    backup: Path, tmp_path: Path
) -> None:
    engine = open_engine(backup)
    engine.transact(lambda tx: tx.put(b"more", b""))
    engine.close()

    assert not restore(backup, tmp_path / "again")
    assert len(content(tmp_path / "again")) == 41


@pytest.mark.parametrize("size", [0, PAGE, 3 * PAGE])
def test_a_truncated_backup_is_refused(backup: Path, tmp_path: Path, size: int) -> None:
    os.truncate(backup / "data.mdb", size)

    with pytest.raises(StoreDamaged):
        restore(backup, tmp_path / "again")

    assert not (tmp_path / "again").exists()


# --- the log -------------------------------------------------------------------------------------


@pytest.mark.parametrize("byte", [0, 5, 9, 20])
def test_a_damaged_record_that_others_follow_is_not_a_silent_loss(killed: Path, byte: int) -> None:
    whole = shutil.copytree(killed, killed.with_name("whole"))
    place = 2 * PAGE + byte
    old = (killed / "redo").read_bytes()[place]
    change(killed / "redo", place, bytes([old ^ 0x10]))

    with pytest.raises(LogDamaged, match="--accept-loss") as refused:
        open_engine(killed)

    assert "record 1 is damaged" in refused.value.message
    assert len(content(whole)) == 40


def test_a_record_that_is_gone_from_the_end_is_noticed(killed: Path) -> None:
    file = killed / "redo"
    last = file.read_bytes().rindex(b"key 39")
    change(file, last, b"KEY 39")

    with pytest.raises(LogDamaged, match="it ends after record 39, and had more"):
        open_engine(killed)


@pytest.mark.parametrize("damage", ["removed", "emptied", "cut", "first page zeroed"])
def test_a_log_that_the_store_says_it_has_must_be_there(killed: Path, damage: str) -> None:
    file = killed / "redo"
    if damage == "removed":
        file.unlink()
    elif damage == "first page zeroed":
        change(file, 0, bytes(PAGE))
    else:
        os.truncate(file, 0 if damage == "emptied" else 3 * PAGE)

    for _ in range(2):
        with pytest.raises(LogDamaged):
            open_engine(killed)
    for _ in range(2):
        with pytest.raises(LogDamaged):
            open_engine(killed, durability="interval")


@pytest.mark.parametrize("name", ["redo-state", "checkpoint"])
def test_a_file_of_a_killed_store_that_has_become_endless_is_not_read_to_its_end(
    killed: Path, name: str
) -> None:
    _opens_beside_an_endless(killed / name)


@pytest.mark.parametrize("name", ["redo-state", "checkpoint", "seal"])
def test_a_file_of_a_closed_store_that_has_become_endless_is_not_read_to_its_end(
    closed: Path, name: str
) -> None:
    _opens_beside_an_endless(closed / name)


def _opens_beside_an_endless(file: Path) -> None:
    file.touch()
    os.truncate(file, 2**40)  # takes no space; reading it would take all memory

    with suppress(StoreDamaged):
        assert len(content(file.parent)) == 40


def test_a_record_in_whose_middle_its_writer_was_stopped_is_no_damage(killed: Path) -> None:
    file = killed / "redo"
    last = file.read_bytes().rindex(b"key 39")
    change(file, PAGE + 64, bytes(16))  # its end had not been noted
    change(file, last, b"KEY 39")

    assert len(content(killed)) == 39


def test_recovering_keeps_what_is_whole_and_counts_what_is_lost(killed: Path) -> None:
    file = killed / "redo"
    change(file, file.read_bytes().index(b"key 12"), b"KEY 12")

    looked = recover(killed, accept_loss=False)
    with pytest.raises(LogDamaged):
        open_engine(killed)
    done = recover(killed, accept_loss=True)

    assert (looked.applied, looked.lost, looked.recovered) == (12, 28, False)
    assert (done.applied, done.lost, done.recovered) == (12, 28, True)
    assert sorted(content(killed)) == sorted(b"key %d" % n for n in range(12))
    assert recover(killed, accept_loss=False).problems == []


def test_recovering_goes_on_without_a_seal_and_not_without_data(closed: Path) -> None:
    file = closed / "data.mdb"
    change(file, file.read_bytes().index(b"7" * 50) + 20, b"8")
    assert recover(closed, accept_loss=True).recovered
    assert len(content(closed)) == 40

    os.truncate(file, 3 * PAGE)

    with pytest.raises(StoreDamaged):
        recover(closed, accept_loss=True)


def test_old_records_behind_the_newest_are_no_damage(tmp_path: Path) -> None:
    """The log is used again and again, and its end holds what LMDB has had for long."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(overlay, "COMMITS_BEFORE_LOG", 0)
        patch.setattr(overlay, "MAX_WAITING_SECONDS", 3600.0)
        engine = open_engine(tmp_path / "store")
        fill(engine)
        engine.stats()
        engine.transact(lambda tx: tx.put(b"newest", b""))
        shutil.copytree(tmp_path / "store", tmp_path / "killed")
        engine.close()

    assert len(content(tmp_path / "killed")) == 41


# --- who may read it -----------------------------------------------------------------------------


def modes(path: Path) -> Iterator[int]:
    for each in (path, *path.iterdir()):
        yield stat.S_IMODE(each.stat().st_mode)


@pytest.mark.parametrize("umask", [0, 0o022, 0o077, 0o777])
@pytest.mark.parametrize("durability", ["commit", "interval"])
def test_a_store_and_a_backup_are_for_their_owner_alone(
    tmp_path: Path, umask: int, durability: str
) -> None:
    before = os.umask(umask)
    try:
        engine = open_engine(tmp_path / "store", durability=durability)
        fill(engine)
        engine.backup(tmp_path / "backup")
        assert set(modes(tmp_path / "store")) == {0o700, 0o600}
        engine.close()
    finally:
        os.umask(before)

    assert set(modes(tmp_path / "store")) == {0o700, 0o600}
    assert set(modes(tmp_path / "backup")) == {0o700, 0o600}


def test_a_store_that_everybody_could_read_is_theirs_no_longer_once_it_is_opened(
    closed: Path,
) -> None:
    for each in closed.iterdir():
        each.chmod(0o644)
    closed.chmod(0o755)

    open_engine(closed).close()

    assert set(modes(closed)) == {0o700, 0o600}


def test_a_folder_with_other_things_in_it_keeps_its_rights(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o755)
    (tmp_path / "shared" / "readme").write_text("hello")

    open_engine(tmp_path / "shared").close()

    assert stat.S_IMODE((tmp_path / "shared").stat().st_mode) == 0o755
    assert stat.S_IMODE((tmp_path / "shared" / "data.mdb").stat().st_mode) == 0o600


@pytest.mark.parametrize("at", [44, 92])  # the flags of the tree of free pages, and of the main one
@pytest.mark.parametrize("bit", [0x02, 0x04, 0x10, 0x20, 0x40])
def test_a_tree_of_another_kind_is_an_error_and_no_abort(closed: Path, at: int, bit: int) -> None:
    file = closed / "data.mdb"
    data = bytearray(file.read_bytes())
    for page in (0, PAGE):
        data[page + at] ^= bit
    file.write_bytes(data)

    with file.open("rb") as opened, pytest.raises(pages.Damaged, match="of another kind"):
        pages.read_metas(opened.fileno())
    with pytest.raises(StoreDamaged):
        open_engine(closed)
