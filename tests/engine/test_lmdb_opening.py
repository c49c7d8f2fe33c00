"""The embedded engine's opening and closing, with others in the middle of something."""

import fcntl
import os
import resource
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from pathlib import Path

import lmdb
import pytest

from holdfast.engine import open_engine
from holdfast.engine.contract import Engine, Transaction, read_counter
from holdfast.errors import (
    BadInput,
    CopyUnfinished,
    HoldfastError,
    StoreClosed,
    StoreFull,
    StoreUnusable,
    UnsupportedFormat,
)
from tests.processes import start


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    engine = open_engine(tmp_path / "store", durability="interval")
    yield engine
    engine.close()


def fill(tx: Transaction, count: int = 3_000) -> None:
    for number in range(count):
        tx.put(b"%d" % number, b"x" * 100)


# --- opening -------------------------------------------------------------------------------------


def open_and_count(path: str, durability: str, connection: Connection) -> None:
    connection.recv()
    engine = open_engine(path, durability=durability)
    engine.transact(lambda tx: tx.add(b"n", 1))
    engine.close()
    connection.send("done")


@pytest.mark.parametrize("durability", ["commit", "interval"])
def test_processes_may_create_a_store_at_the_very_same_time(
    tmp_path: Path, durability: str
) -> None:
    path = tmp_path / "new" / "store"
    children = [start(open_and_count, str(path), durability) for _ in range(5)]
    for child in children:
        child.send("go")
    assert [child.receive() for child in children] == ["done"] * 5

    engine = open_engine(path)
    with engine.view() as view:
        assert read_counter(view.get(b"n")) == 5
    assert engine.check() == []
    engine.close()


def test_the_file_of_another_program_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    with lmdb.open(str(tmp_path), max_dbs=4) as env, env.begin(write=True) as txn:
        txn.put(b"their", b"data")
    before = (tmp_path / "data.mdb").read_bytes()

    with pytest.raises(UnsupportedFormat, match="the data of another program"):
        open_engine(tmp_path)

    assert (tmp_path / "data.mdb").read_bytes() == before


def test_a_file_of_the_next_lmdb_is_refused(tmp_path: Path) -> None:
    lmdb.open(str(tmp_path), lib_version=1).close()

    with pytest.raises(UnsupportedFormat, match="not a Holdfast store"):
        open_engine(tmp_path)


def test_a_new_store_has_the_trusted_format_whatever_the_surroundings_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LMDB_DEFAULT_LIB_VERSION", "1")

    open_engine(tmp_path).close()

    with lmdb.open(str(tmp_path), lock=False) as env:
        assert env.lib_version()[:2] == (0, 9)


def test_a_store_that_could_not_be_opened_can_be_opened_in_the_same_process_later(
    tmp_path: Path,
) -> None:
    open_engine(tmp_path).close()
    (tmp_path / "checkpoint").write_bytes(b"damaged" * 10)
    with pytest.raises(HoldfastError) as kept:
        open_engine(tmp_path)
    (tmp_path / "checkpoint").unlink()

    engine = open_engine(tmp_path)

    assert engine.check() == []
    engine.close()
    assert kept.value.code == "store_damaged"


# --- closing -------------------------------------------------------------------------------------


def test_a_view_that_is_open_when_the_store_closes_says_so(engine: Engine) -> None:
    engine.transact(fill)

    def read_on() -> None:
        with engine.view() as view:
            pairs = view.scan(b"", b"\xff")
            next(pairs)
            engine.close()
            list(pairs)

    with pytest.raises(StoreClosed):
        read_on()


def test_whatever_others_are_doing_when_a_store_closes_they_hear_that_it_is_closed(
    tmp_path: Path,
) -> None:
    def read(engine: Engine) -> None:
        with engine.view() as view:
            list(view.scan(b"", b"\xff"))

    def back_up(engine: Engine) -> None:
        engine.backup(tmp_path / f"copy {threading.get_ident()} {os.urandom(4).hex()}")

    def subscribe(engine: Engine) -> None:
        with engine.subscribe() as subscription:
            subscription.poll()

    def write(engine: Engine) -> None:
        engine.transact(lambda tx: tx.put(b"k", b""))

    calls: list[Callable[[Engine], object]] = [
        read,
        back_up,
        subscribe,
        write,
        lambda engine: engine.check(),
        lambda engine: engine.stats(),
        lambda engine: engine.checkpoint(),
        lambda engine: engine.checkpoint(),
    ]
    for number in range(2):
        engine = open_engine(tmp_path / str(number), durability="interval", checkpoint_seconds=0.01)
        engine.transact(lambda tx: fill(tx, 100))

        def repeat(call: Callable[[Engine], object], engine: Engine = engine) -> str:
            try:
                while True:
                    assert call(engine) in (None, []) or call is calls[5]
            except StoreClosed as error:
                return error.code

        with ThreadPoolExecutor(len(calls)) as pool:
            busy = [pool.submit(repeat, call) for call in calls]
            write(engine)
            engine.close()
            assert {each.result(timeout=30) for each in busy} == {"store_closed"}


def test_a_checkpoint_inside_a_transaction_is_refused_instead_of_waiting_for_itself(
    engine: Engine,
) -> None:
    with pytest.raises(RuntimeError, match="inside a transaction"):
        engine.transact(lambda tx: engine.checkpoint())


def test_a_closed_store_raises_again_and_again_without_keeping_frames(engine: Engine) -> None:
    engine.close()
    depths = []

    for _ in range(3):
        with pytest.raises(StoreClosed) as closed:
            engine.transact(lambda tx: None)
        depths.append(len(closed.traceback))

    assert len(set(depths)) == 1


def close_on_a_full_disk(path: str, connection: Connection) -> None:
    engine = open_engine(path, durability="interval", checkpoint_seconds=3600)
    engine.transact(lambda tx: tx.put(b"k", b"v"))
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, resource.RLIM_INFINITY))
    for call in (engine.checkpoint, engine.close):
        try:
            call()
            connection.send("no error")
        except StoreFull as error:
            connection.send(error.code)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    engine.close()
    engine = open_engine(path, durability="interval")
    with engine.view() as view:
        connection.send(view.get(b"k"))
    engine.close()


def test_a_store_closes_on_a_full_disk_too_and_opens_again(tmp_path: Path) -> None:
    child = start(close_on_a_full_disk, str(tmp_path))

    assert [child.receive() for _ in range(3)] == ["store_full", "store_full", b"v"]
    assert child.join() == 0


def test_subscriptions_end_in_a_forked_child(engine: Engine) -> None:
    reading, writing = os.pipe()
    with engine.subscribe() as subscription:
        pid = os.fork()
        if pid == 0:
            os.write(writing, repr((subscription.poll(), subscription.get())).encode())
            os._exit(0)
        os.waitpid(pid, 0)

    assert os.read(reading, 100) == b"([], None)"


# --- backups -------------------------------------------------------------------------------------


def back_up_to_a_full_disk(path: str, target: str, connection: Connection) -> None:
    engine = open_engine(path)
    engine.transact(fill)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
    try:
        engine.backup(Path(target))
    except StoreFull as error:
        connection.send(str(error))
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    engine.backup(Path(target))
    engine.close()
    connection.send("done")


def test_a_backup_to_a_full_disk_leaves_nothing_and_can_be_tried_again(tmp_path: Path) -> None:
    child = start(back_up_to_a_full_disk, str(tmp_path / "store"), str(tmp_path / "copy"))

    assert f"no space left for {tmp_path / 'copy'}" in child.receive()
    assert child.receive() == "done"
    copy = open_engine(tmp_path / "copy")
    assert copy.stats()["keys"] == 3_000
    copy.close()


WRITES: dict[str, Callable[[Path], None]] = {
    "opening": lambda path: open_engine(path).close(),
    "a commit": lambda path: _commit_and_close(path, "commit"),
    "a checkpoint": lambda path: _commit_and_close(path, "interval"),
}


def _commit_and_close(path: Path, durability: str) -> None:
    engine = open_engine(path, durability=durability)
    engine.transact(lambda tx: tx.put(b"key", b"value"))
    engine.close()


@pytest.mark.parametrize("write", WRITES)
def test_only_one_of_all_processes_waits_for_the_lock_of_lmdb(tmp_path: Path, write: str) -> None:
    """LMDB wakes one who waits; if that one was killed, all others would sleep for ever."""
    open_engine(tmp_path).close()
    done = threading.Event()

    def run() -> None:
        WRITES[write](tmp_path)
        done.set()

    thread = threading.Thread(target=run)

    with (tmp_path / "writing.lock").open() as next_writer:
        fcntl.flock(next_writer, fcntl.LOCK_EX)
        thread.start()
        assert not done.wait(0.2)
        fcntl.flock(next_writer, fcntl.LOCK_UN)

        assert done.wait(20)
    thread.join()


def test_half_a_backup_does_not_open_as_an_empty_store_and_can_be_made_again(
    engine: Engine, tmp_path: Path
) -> None:
    target = tmp_path / "killed"
    target.mkdir()
    (target / "unfinished-copy").write_bytes(b"half of it")

    with pytest.raises(CopyUnfinished, match="is not finished"):
        open_engine(target)

    engine.backup(target)
    open_engine(target).close()


def test_two_backups_do_not_write_into_one_folder_at_once(engine: Engine, tmp_path: Path) -> None:
    """The one would cut short what the other reads back, which ends a process with a bus error."""
    engine.transact(lambda tx: tx.put(b"key", b"value"))
    target = tmp_path / "copy"
    target.mkdir()
    with (target / "unfinished-copy").open("wb") as other:
        other.write(b"half of another one")
        other.flush()
        fcntl.flock(other, fcntl.LOCK_EX)

        with pytest.raises(BadInput, match="another backup is being written into"):
            engine.backup(target)
        assert (target / "unfinished-copy").read_bytes() == b"half of another one"

    engine.backup(target)  # who wrote the other one is gone
    assert [entry.name for entry in target.iterdir()] == ["data.mdb"]
    with pytest.raises(BadInput, match="is not empty"):
        engine.backup(target)
    assert [entry.name for entry in target.iterdir()] == ["data.mdb"]


def test_a_backup_goes_to_a_folder(engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("hello")

    with pytest.raises(StoreUnusable, match="a store is a folder"):
        engine.backup(tmp_path / "file")
