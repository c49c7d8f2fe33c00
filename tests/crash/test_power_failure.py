"""Power failures in interval mode, simulated page by page.

The files are copied at every checkpoint. At a random moment those are built that a power failure
could leave: each page, and the length, in the state of that checkpoint or of now. The store must
then open with exactly the checkpoint's content. What was committed last may be in LMDB's file, or
wait in the redo log: a log of before the failure is worth nothing.
"""

import errno
import os
import random
import shutil
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import lmdb
import pytest

from holdfast.engine import checkpoints, folder, open_engine
from holdfast.engine.contract import Engine, Transaction
from holdfast.engine.lmdb import failed_syncs, file_writes, open_store, recovery
from holdfast.engine.lmdb.redo_log import FoundRecords
from holdfast.errors import StoreFull
from tests.processes import Child, start
from tests.repetitions import repeated

PAGE = 4096
FILES = ("data.mdb", "redo")
FAILURES = repeated(6, full=13)  # of the power, of one machine
Content = dict[bytes, bytes]


def open_interval(path: str | Path) -> Engine:
    """Opens a store that makes no checkpoint by itself: not after a time, and not because flushes
    have copied many pages, which depends on how often the machine lets it flush."""
    engine = open_engine(path, durability="interval", checkpoint_seconds=3600)
    engine._checkpointer._copied = -(10**12)  # type: ignore[attr-defined]
    return engine


def change(tx: Transaction, seed: int) -> None:
    """A random transaction: new keys, changed ones, deleted ones, small and large."""
    chance = random.Random(seed)
    for _ in range(chance.randrange(1, 30)):
        key = b"%d" % chance.randrange(400)
        if chance.random() < 0.3:
            tx.delete(key)
        else:
            tx.put(key, chance.randbytes(chance.choice([10, 300, 9_000])))


def content_of(engine: Engine) -> Content:
    with engine.view() as view:
        return dict(view.scan(b"", b"\xff"))


def obey(path: str, connection: Connection) -> None:
    """A process that writes and makes checkpoints when it is told to."""
    engine = open_interval(path)
    connection.send("open")
    while True:
        match connection.recv():
            case ("change", seed):
                engine.transact(lambda tx, seed=seed: change(tx, seed))  # type: ignore[misc]
            case "checkpoint":
                engine.checkpoint()
        connection.send("done")


class Machine:
    """A store with one or several processes on it, and what its disk held at each checkpoint."""

    def __init__(self, path: Path, chance: random.Random, processes: int) -> None:
        self.path = path
        self.chance = chance
        self.engine = open_interval(path)
        self.others: list[Child] = []
        for _ in range(processes - 1):
            self.add_process()
        self.after_checkpoint()

    def add_process(self) -> None:
        child = start(obey, str(self.path))
        assert child.receive() == "open"
        self.others.append(child)

    def after_checkpoint(self) -> None:
        self.saved_content = content_of(self.engine)
        self.saved = {name: (self.path / name).read_bytes() for name in FILES}

    def run(self, steps: int) -> None:
        for _ in range(steps):
            doer = self.chance.choice([None, *self.others])
            draw = self.chance.random()
            if draw < 0.15:
                if doer is None:
                    self.engine.checkpoint()
                else:
                    doer.ask("checkpoint")
                self.after_checkpoint()
            elif draw < 0.2 and doer is not None:
                # Its read transaction is lost with it; a new process makes a checkpoint of its own.
                doer.kill()
                self.others.remove(doer)
                self.engine.transact(lambda tx: change(tx, 0))
                self.engine._env.reader_check()  # type: ignore[attr-defined]
                if self.chance.random() < 0.5:
                    self.add_process()
                    self.after_checkpoint()
            else:
                seed = self.chance.randrange(10**9)
                if doer is None:
                    self.engine.transact(lambda tx, seed=seed: change(tx, seed))  # type: ignore[misc]
                else:
                    doer.ask(("change", seed))

    def fail(self, target: Path) -> None:
        """Leaves in `target` what a power failure at this moment could leave on the disk."""
        target.mkdir()
        if self.chance.random() < 0.7:
            self.engine.stats()  # what waited in the log is in LMDB's file now
        for name, then in self.saved.items():
            (target / name).write_bytes(self.torn((self.path / name).read_bytes(), then))
        shutil.copy(self.path / checkpoints.FILE_NAME, target / checkpoints.FILE_NAME)

    def torn(self, now: bytes, then: bytes) -> bytes:
        pages = [
            self.chance.choice((now, then.ljust(len(now), b"\0")))[begin : begin + PAGE]
            for begin in range(0, len(now), PAGE)
        ]
        return b"".join(pages)[: self.chance.choice((len(now), len(then)))]

    def close(self) -> None:
        for child in self.others:
            child.kill()
        self.engine.close()


def write_flush_and_write(path: str, connection: Connection) -> None:
    """Leaves commits in LMDB's file and in the log that are newer than the last checkpoint."""
    engine = open_interval(path)
    for seed in range(5):
        engine.transact(lambda tx, seed=seed: change(tx, seed))  # type: ignore[misc]
    engine.checkpoint()
    contents = [content_of(engine)]
    for seed in range(5, 25):
        engine.transact(lambda tx, seed=seed: change(tx, seed))  # type: ignore[misc]
        if seed < 20:
            engine.stats()
        with engine.transaction() as tx:
            contents.append(dict(tx.scan(b"", b"\xff")))
    connection.send(contents)
    connection.recv()


def open_and_replay(path: str, durability: str, repairs: bool, connection: Connection) -> None:
    """Ends when the log was replayed, before another checkpoint can be made."""

    def last_step(*arguments: object, **options: object) -> FoundRecords:
        file_writes.replay(*arguments, **options)  # type: ignore[arg-type]
        os._exit(0)

    open_store.replay = recovery.replay = last_step  # type: ignore[attr-defined]
    if repairs:
        recovery.recover(Path(path), accept_loss=True)
    else:
        open_engine(path, durability=durability)


@pytest.fixture
def new_boot(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setattr(folder, "boot_id", lambda: "after the power failure")
    return monkeypatch


def machines(tmp_path: Path, *, runs: int, processes: int, seed: int) -> list[tuple[Path, Content]]:
    """Runs a machine and lets the power fail `runs` times: each folder, and what must be in it."""
    chance = random.Random(seed)
    machine = Machine(tmp_path / "store", chance, processes)
    failures = []
    for run in range(runs):
        machine.run(chance.randrange(1, 12))
        target = tmp_path / f"failed-{run}"
        machine.fail(target)
        failures.append((target, machine.saved_content))
    machine.close()
    return failures


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("processes", [1, 3])
def test_after_a_power_failure_the_store_is_as_at_its_last_checkpoint(
    tmp_path: Path, new_boot: pytest.MonkeyPatch, processes: int, seed: int
) -> None:
    new_boot.undo()
    failures = machines(tmp_path, runs=FAILURES, processes=processes, seed=seed)
    new_boot.setattr(folder, "boot_id", lambda: "after the power failure")

    for number, (target, expected) in enumerate(failures):
        engine = open_engine(target, durability=["interval", "commit"][number % 2])
        assert content_of(engine) == expected
        assert engine.check() == []
        engine.transact(lambda tx: change(tx, 1))
        assert engine.check() == []
        engine.close()


def examine(path: str, expected: Content, connection: Connection) -> None:
    engine = open_engine(path)
    connection.send(content_of(engine) == expected and engine.check() == [])


def test_without_the_saved_meta_pages_the_same_failures_destroy_stores(tmp_path: Path) -> None:
    """Or the tests above prove nothing."""
    outcomes = []
    for target, expected in machines(tmp_path, runs=12, processes=1, seed=99):
        (target / checkpoints.FILE_NAME).unlink()
        outcomes.append(start(examine, str(target), expected).receive_all())

    assert outcomes.count([True]) < len(outcomes) / 2


def test_after_a_crash_of_the_process_alone_nothing_is_lost(tmp_path: Path) -> None:
    child = start(obey, str(tmp_path))
    assert child.receive() == "open"
    child.ask("checkpoint")
    child.ask(("change", 7))
    child.kill()

    engine = open_interval(tmp_path)

    assert content_of(engine) != {}
    engine.close()


def test_a_store_that_was_closed_in_peace_needs_no_checkpoint(
    tmp_path: Path, new_boot: pytest.MonkeyPatch
) -> None:
    new_boot.undo()
    engine = open_interval(tmp_path)
    engine.transact(lambda tx: tx.put(b"a", b"1"))
    engine.close()

    assert not (tmp_path / checkpoints.FILE_NAME).exists()
    new_boot.setattr(folder, "boot_id", lambda: "tomorrow")
    engine = open_engine(tmp_path)
    assert content_of(engine) == {b"a": b"1"}
    engine.close()


@pytest.mark.parametrize("opens", ["interval", "commit", "recover"])
def test_the_power_may_fail_while_the_log_of_a_killed_process_is_replayed(
    tmp_path: Path, new_boot: pytest.MonkeyPatch, opens: str
) -> None:
    new_boot.undo()
    killed = start(write_flush_and_write, str(tmp_path))
    contents = killed.receive()
    killed.kill()
    start(open_and_replay, str(tmp_path), opens, opens == "recover").join()

    new_boot.setattr(folder, "boot_id", lambda: "after the power failure")
    engine = open_interval(tmp_path)

    assert content_of(engine) in contents
    assert engine.check() == []
    engine.close()


def test_what_another_process_wrote_before_it_was_killed_is_on_disk_when_the_last_one_closes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = open_interval(tmp_path)
    other = start(obey, str(tmp_path))
    assert other.receive() == "open"
    files, synced = engine._files, dict[str, bytes]()  # type: ignore[attr-defined]
    is_ours_alone, sync = files.folder.is_ours_alone, os.fsync

    def after_the_others_death() -> bool:  # between the last checkpoint and its removal
        other.ask(("change", 7))
        other.kill()
        alone: bool = is_ours_alone()
        return alone

    def noted_sync(file: int) -> None:
        sync(file)
        path = Path(os.readlink(f"/proc/self/fd/{file}"))
        if path.is_file():
            synced[path.name] = path.read_bytes()

    monkeypatch.setattr(files.folder, "is_ours_alone", after_the_others_death)
    monkeypatch.setattr(os, "fsync", noted_sync)
    engine.close()

    assert not (tmp_path / checkpoints.FILE_NAME).exists()
    assert synced["data.mdb"] == (tmp_path / "data.mdb").read_bytes()


def test_checkpoints_are_made_by_themselves(tmp_path: Path) -> None:
    engine = open_engine(tmp_path, durability="interval", checkpoint_seconds=0.001)
    engine.transact(lambda tx: tx.put(b"a", b"1"))
    wanted = engine.stats()["commits"]

    while True:  # ends when the checkpoint is there; the test's time limit says it never came
        saved = checkpoints.load(tmp_path)
        if saved is not None and saved.transaction_id == wanted:
            break
    engine.close()


# --- a disk that fails ----------------------------------------------------------------------------


class FailingDisk:
    """A disk under the data file that fails to sync it once. As under Linux, the next sync succeeds
    and writes only what was written since."""

    def __init__(self, env: Any, file: Path, patch: pytest.MonkeyPatch) -> None:
        self._env = env
        self._file = file
        self.content = file.read_bytes()
        self._dropped = b""  # what the system thinks is on the disk
        self._written: set[int] = set()  # pages that were written as they were
        self.fails = True
        pwrite = os.pwrite

        def noted(number: int, content: bytes, begin: int) -> int:
            if os.path.samestat(os.fstat(number), file.stat()):
                self._written |= set(range(begin // PAGE, (begin + len(content)) // PAGE))
            return pwrite(number, content, begin)

        patch.setattr(os, "pwrite", noted)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._env, name)

    def sync(self, force: bool) -> None:
        now = self._file.read_bytes()
        if self.fails:
            self.fails = False
            self._dropped, self._written = now, set()
            raise lmdb.Error(f"mdb_env_sync: {os.strerror(errno.EIO)}")
        self.content = b"".join(
            page_of(self.content if self._is_clean(number, now) else now, number)
            for number in range(len(now) // PAGE)
        )

    def _is_clean(self, number: int, now: bytes) -> bool:
        is_unchanged = page_of(self._dropped, number) == page_of(now, number)
        return is_unchanged and number not in self._written


def page_of(content: bytes, number: int) -> bytes:
    return content[number * PAGE : (number + 1) * PAGE].ljust(PAGE, b"\0")


@pytest.mark.parametrize("is_full", [False, True])
def test_what_could_not_be_synced_once_is_written_again_before_a_checkpoint_is_promised(
    tmp_path: Path, new_boot: pytest.MonkeyPatch, is_full: bool
) -> None:
    def refuse(path: Path) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    new_boot.undo()
    if is_full:
        new_boot.setattr(failed_syncs, "note", refuse)
    store = tmp_path / "store"
    engine = open_interval(store)
    for seed in range(5):
        engine.transact(lambda tx, seed=seed: change(tx, seed))  # type: ignore[misc]
    engine.checkpoint()
    disk = FailingDisk(engine._env, store / "data.mdb", new_boot)  # type: ignore[attr-defined]
    engine._checkpointer._env = disk  # type: ignore[attr-defined]
    engine.transact(lambda tx: change(tx, 5))
    with pytest.raises(StoreFull, match="its disk fails"):
        engine.checkpoint()
    engine.transact(lambda tx: tx.put(b"newest", b"1"))
    engine.checkpoint()

    expected = content_of(engine)
    failed = tmp_path / "failed"
    failed.mkdir()
    (failed / "data.mdb").write_bytes(disk.content)
    shutil.copy(store / checkpoints.FILE_NAME, failed / checkpoints.FILE_NAME)
    engine.close()
    new_boot.setattr(folder, "boot_id", lambda: "after the power failure")
    engine = open_engine(failed)
    assert content_of(engine) == expected
    assert engine.check() == []
    engine.close()


def test_who_opens_a_store_whose_file_failed_to_sync_writes_all_of_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the process that has seen the failure may have been killed."""
    engine = open_interval(tmp_path)
    engine.transact(lambda tx: change(tx, 1))
    engine.close()
    failed_syncs.note(tmp_path)
    size = (tmp_path / "data.mdb").stat().st_size
    pwrite, written = os.pwrite, list[int]()

    def noted(number: int, content: bytes, begin: int) -> int:
        if os.path.samestat(os.fstat(number), (tmp_path / "data.mdb").stat()):
            written.append(len(content))
        return pwrite(number, content, begin)

    monkeypatch.setattr(os, "pwrite", noted)
    engine = open_interval(tmp_path)
    engine.close()

    assert sum(written) == size
    assert not failed_syncs.has_failed(tmp_path)
