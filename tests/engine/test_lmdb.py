"""The embedded engine alone; `test_conformance.py` has what it shares with all."""

import gc
import os
import signal
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import lmdb
import pytest

from holdfast.engine import folder, open_engine
from holdfast.engine.contract import Engine, Notice, Transaction
from holdfast.engine.lmdb import FORMAT
from holdfast.errors import (
    BadInput,
    StoreBusy,
    StoreDamaged,
    StoreForked,
    StoreUnusable,
    UnsupportedFileSystem,
    UnsupportedFormat,
)
from tests.processes import start


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    engine = open_engine(tmp_path / "store")
    yield engine
    engine.close()


# --- short scans of views -------------------------------------------------------------------------


def test_a_short_scan_of_a_view_passes_long_keys_and_large_values(engine: Engine) -> None:
    pairs = [
        (b"a", b"short"),
        (b"b" * 600, b"long key"),
        (b"c", b"v" * 700_000),
        (b"d", b"v" * 700_000),
        (b"e" * 700, b"v" * 700_000),
        (b"f", b"short"),
    ]
    with engine.transaction() as tx:
        for key, value in pairs:
            tx.put(key, value)

    with engine.view() as view:
        for begin in range(len(pairs)):
            for limit in range(1, len(pairs) + 1):
                found = list(view.scan(pairs[begin][0], b"g", limit=limit))
                assert found == pairs[begin : begin + limit]
        assert list(view.scan(b"a", b"d", limit=100)) == pairs[:3]
        assert list(view.scan(b"g", b"h", limit=1)) == []


# --- several processes ---------------------------------------------------------------------------


def hold_the_writers_lock(path: str, connection: Connection) -> None:
    engine = open_engine(path)
    with engine.transaction() as tx:
        tx.put(b"half", b"done")
        connection.send("inside")
        connection.recv()


def hold_views(path: str, connection: Connection) -> None:
    engine = open_engine(path)
    with engine.view(), engine.view(), engine.view():
        connection.send("inside")
        connection.recv()


def publish(path: str, connection: Connection) -> None:
    engine = open_engine(path)
    connection.send("open")
    while (number := connection.recv()) is not None:
        engine.transact(lambda tx, n=number: tx.after_commit(Notice("n", b"%d" % n)))  # type: ignore[misc]
        connection.send("committed")
    engine.close()


def test_a_writer_killed_with_the_lock_in_its_hands_stops_no_one(
    engine: Engine, tmp_path: Path
) -> None:
    child = start(hold_the_writers_lock, str(tmp_path / "store"))
    assert child.receive() == "inside"
    child.kill()

    engine.transact(lambda tx: tx.put(b"a", b"1"))

    with engine.view() as view:
        assert list(view.scan(b"", b"\xff")) == [(b"a", b"1")]
    assert engine.check() == []


def test_the_places_of_a_killed_reader_are_given_free(engine: Engine, tmp_path: Path) -> None:
    child = start(hold_views, str(tmp_path / "store"))
    assert child.receive() == "inside"
    before = engine.stats()["readers"]
    child.kill()

    for _ in range(300):
        engine.transact(lambda tx: tx.put(b"a", b"1"))

    assert engine.stats()["readers"] < before


def test_a_notice_of_another_process_wakes_a_waiting_subscriber(
    engine: Engine, tmp_path: Path
) -> None:
    child = start(publish, str(tmp_path / "store"))
    assert child.receive() == "open"

    with engine.subscribe() as subscription:
        for number in range(20):
            child.ask(number)
            notice = subscription.get(timeout=30)
            assert notice is not None
            assert notice.payload == b"%d" % number
    child.send(None)
    assert child.join() == 0


def test_a_forked_child_gets_a_clear_error_and_disturbs_no_one(engine: Engine) -> None:
    engine.transact(lambda tx: tx.put(b"a", b"1"))
    reading, writing = os.pipe()

    pid = os.fork()
    if pid == 0:
        answer = b"no error"
        try:
            engine.transact(lambda tx: tx.put(b"a", b"2"))
        except StoreForked as error:
            answer = error.code.encode()
        finally:
            os.write(writing, answer)
            os._exit(0)
    os.waitpid(pid, 0)

    assert os.read(reading, 100) == b"store_forked"
    engine.transact(lambda tx: tx.put(b"b", b"2"))
    assert engine.check() == []


def test_a_child_forked_inside_a_view_takes_nothing_from_its_parent(tmp_path: Path) -> None:
    child = start(fork_inside_a_view, str(tmp_path))

    assert child.receive() == [b"old"] * 2000
    assert child.join() == 0


def fill(tx: Transaction, value: bytes) -> None:
    for number in range(2000):
        tx.put(b"%d" % number, value)


def fork_inside_a_view(path: str, connection: Connection) -> None:
    engine = open_engine(path, durability="interval", checkpoint_seconds=3600)
    engine.transact(lambda tx: fill(tx, b"old"))
    with engine.view() as view:
        pid = os.fork()
        if pid:
            os.waitpid(pid, 0)
            # Were the child to give the view's place free, these commits would reuse its pages.
            for _ in range(20):
                engine.transact(lambda tx: fill(tx, b"new"))
            connection.send([value for _, value in view.scan(b"", b"\xff")])
    if pid:
        engine.close()
    else:
        del engine, view
        gc.collect()


def test_a_child_forked_after_the_opening_is_told_to_open_it_after_the_fork(
    engine: Engine, tmp_path: Path
) -> None:
    reading, writing = os.pipe()

    pid = os.fork()
    if pid == 0:
        try:
            open_engine(tmp_path / "store")
        except StoreBusy as error:
            os.write(writing, error.hint.encode())
        finally:
            os._exit(0)
    os.waitpid(pid, 0)

    assert b"after any fork" in os.read(reading, 200)


def test_a_store_is_opened_once_in_a_process(engine: Engine, tmp_path: Path) -> None:
    with pytest.raises(StoreBusy, match="already open in this process"):
        open_engine(tmp_path / "store")


def test_processes_agree_on_the_durability(engine: Engine, tmp_path: Path) -> None:
    child = start(open_with_another_durability, str(tmp_path / "store"))

    assert "durability 'commit'" in child.receive()


def open_with_another_durability(path: str, connection: Connection) -> None:
    try:
        open_engine(path, durability="interval").close()
        connection.send("opened")
    except StoreBusy as error:
        connection.send(str(error))


# --- what is refused -----------------------------------------------------------------------------


def test_a_newer_format_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    open_engine(tmp_path / "store").close()
    with lmdb.open(str(tmp_path / "store"), max_dbs=4) as env:
        meta = env.open_db(b"meta")
        with env.begin(db=meta, write=True) as txn:
            txn.put(b"format", b"%d" % (FORMAT + 1))

    with pytest.raises(UnsupportedFormat, match="format 2, this Holdfast knows 1"):
        open_engine(tmp_path / "store")


def test_a_folder_with_something_else_in_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data.mdb").write_bytes(b"not a store at all" * 1_000)

    with pytest.raises(UnsupportedFormat, match="not a Holdfast store"):
        open_engine(tmp_path)


def test_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("hello")

    with pytest.raises(StoreUnusable, match="a store is a folder"):
        open_engine(tmp_path / "file")


def test_an_unknown_durability_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="Use 'commit'"):
        open_engine(tmp_path, durability="sometimes")


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf"), 1e10, "5", None])
def test_checkpoints_without_a_pause_or_an_end_to_it_are_refused(
    tmp_path: Path, seconds: Any
) -> None:
    with pytest.raises(BadInput, match="above 0, at most 31536000"):
        open_engine(tmp_path, durability="interval", checkpoint_seconds=seconds)


def test_a_clock_that_is_not_a_function_is_refused_before_the_store_is_created(
    tmp_path: Path,
) -> None:
    clock: Any = 1_800_000_000.0

    with pytest.raises(BadInput, match=r"1800000000\.0 is not a function"):
        open_engine(tmp_path / "store", clock=clock)

    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize("url", ["", "lmdb:", "lmdb://data", "//data"])
def test_a_url_that_names_no_folder_is_refused(url: str) -> None:
    with pytest.raises(BadInput, match="names no folder"):
        open_engine(url)


def test_a_path_is_taken_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    open_engine(Path("lmdb:odd")).close()

    assert (tmp_path / "lmdb:odd" / "data.mdb").exists()


@pytest.mark.parametrize("path", ["/proc/no/such/place", "n" * 300])
def test_a_folder_that_can_not_be_created_is_named(path: str) -> None:
    with pytest.raises(StoreUnusable, match="can't be used"):
        open_engine(path)


@pytest.mark.parametrize("kind", ["nfs4", "cifs", "fuse.sshfs"])
def test_a_network_file_system_is_refused(tmp_path: Path, kind: str) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(f"none / ext4 rw 0 0\nserver:/x {tmp_path} {kind} rw 0 0\n")

    with pytest.raises(UnsupportedFileSystem, match=kind):
        folder.refuse_network_file_system(tmp_path / "store", mounts)


def test_a_local_disk_below_a_network_mount_is_fine(tmp_path: Path) -> None:
    mounts = tmp_path / "mounts"
    local = tmp_path / "a b"
    escaped = str(local).replace(" ", "\\040")
    mounts.write_text(f"server:/x {tmp_path} nfs rw 0 0\n/dev/sda1 {escaped} ext4 rw 0 0\n")

    folder.refuse_network_file_system(local / "store", mounts)


# --- interruption --------------------------------------------------------------------------------


def test_control_c_inside_a_transaction_undoes_it(engine: Engine) -> None:
    # A process that was started in the background ignores it.
    signal.signal(signal.SIGINT, signal.default_int_handler)

    def work(tx: Transaction) -> None:
        tx.put(b"a", b"1")
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        engine.transact(work)

    with engine.view() as view:
        assert view.get(b"a") is None
    engine.transact(lambda tx: tx.put(b"b", b"1"))


# --- care ----------------------------------------------------------------------------------------


def test_a_backup_opens_as_a_store_of_its_own(engine: Engine, tmp_path: Path) -> None:
    engine.transact(lambda tx: tx.put(b"a", b"1"))
    engine.transact(lambda tx: tx.after_commit(Notice("n")))
    engine.backup(tmp_path / "copy")
    engine.transact(lambda tx: tx.put(b"a", b"later"))

    copy = open_engine(tmp_path / "copy")

    with copy.view() as view:
        assert view.get(b"a") == b"1"
    copy.transact(lambda tx: tx.after_commit(Notice("n")))
    assert copy.check() == []
    copy.close()


def test_a_backup_is_not_written_over_something_else(engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / "letter.txt").write_text("dear")

    with pytest.raises(BadInput, match="not empty"):
        engine.backup(tmp_path / "copy")


@pytest.mark.parametrize(
    "damage", [lambda value: value.replace(b"kk", b"kj", 1), lambda value: value[:2]]
)
def test_the_check_finds_a_long_key_that_does_not_match_its_digest(
    tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    engine = open_engine(tmp_path)
    engine.transact(lambda tx: tx.put(b"k" * 600, b"v"))
    engine.close()
    with lmdb.open(str(tmp_path), max_dbs=4) as env:
        data = env.open_db(b"data")
        with env.begin(db=data, write=True) as txn:
            [(key, value)] = list(txn.cursor())
            txn.put(key, damage(value))
    engine = open_engine(tmp_path)

    assert "does not match its digest" in engine.check()[0]
    engine.close()


def test_a_damaged_checkpoint_file_is_noticed(tmp_path: Path) -> None:
    open_engine(tmp_path).close()
    (tmp_path / "checkpoint").write_bytes(b"damaged" * 10)

    with pytest.raises(StoreDamaged, match="checksum"):
        open_engine(tmp_path)


def test_the_figures_count_keys_and_groups(engine: Engine) -> None:
    engine.transact_many([lambda tx: tx.put(b"a", b"1"), lambda tx: tx.put(b"b", b"2")])

    stats = engine.stats()

    assert (stats["keys"], stats["groups"], stats["transactions"]) == (2, 1, 2)


def test_a_store_opens_where_addresses_are_limited(tmp_path: Path) -> None:
    child = start(open_with_few_addresses, str(tmp_path))

    assert child.receive() == b"1"


def open_with_few_addresses(path: str, connection: Connection) -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (16 * 2**30, 16 * 2**30))
    engine = open_engine(path)
    engine.transact(lambda tx: tx.put(b"a", b"1"))
    with engine.view() as view:
        connection.send(view.get(b"a"))
    engine.close()
