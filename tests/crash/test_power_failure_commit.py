"""Power failures in commit mode, simulated page by page: what was acknowledged is there.

Every write that waits for the disk is watched: of the redo log, and of LMDB. When one is under way,
or none is, those files are built that a power failure could leave at that moment. A page that was
not synced since it was written is old, new, or nothing that anyone wrote. LMDB is trusted to sync
the pages of a commit before the meta page that names them.
"""

import os
import random
import shutil
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from holdfast.engine import folder, open_engine
from holdfast.engine.contract import Engine, Transaction
from holdfast.engine.lmdb import open_store, overlay, redo_log
from holdfast.engine.lmdb.commits import Commits
from holdfast.engine.lmdb.file_writes import replay
from holdfast.engine.lmdb.overlay import Overlay
from holdfast.engine.lmdb.shared_state import SharedState
from holdfast.errors import LogDamaged
from tests.crash.test_power_failure import PAGE, change, content_of
from tests.processes import Child, start
from tests.repetitions import repeated

DATA, LOG = "data.mdb", "redo"
META_BYTES = 2 * PAGE
LOG_PAGES = 24  # few: it is full again and again
FAILURES = repeated(12, full=20)
Content = dict[bytes, bytes]


class Failure(NamedTuple):
    """A folder as it was left, and what may be in it."""

    folder: Path
    allowed: list[Content]


def make_small() -> None:
    """In this process only: commits wait at once, in a small log."""
    overlay.COMMITS_BEFORE_LOG = 0  # type: ignore[attr-defined]
    overlay.MAX_WAITING_SECONDS = 3600.0  # type: ignore[attr-defined]
    overlay.MAX_DEFERRED_BYTES = LOG_PAGES * PAGE // 4  # type: ignore[attr-defined]
    redo_log.REDO_LOG_BYTES = LOG_PAGES * PAGE  # type: ignore[attr-defined]


@pytest.fixture(autouse=True)
def small() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for module, name in [
            (overlay, "COMMITS_BEFORE_LOG"),
            (overlay, "MAX_WAITING_SECONDS"),
            (overlay, "MAX_DEFERRED_BYTES"),
            (redo_log, "REDO_LOG_BYTES"),
        ]:
            patch.setattr(module, name, getattr(module, name))  # so that it is put back
        make_small()
        yield


def obey(path: str, connection: Connection) -> None:
    make_small()
    engine = open_engine(path, checkpoint_seconds=0.001)
    connection.send("open")
    while (seed := connection.recv()) is not None:
        work = small_change if seed < 0 else change
        engine.transact(lambda tx, seed=seed, work=work: work(tx, seed))  # type: ignore[misc]
        connection.send("done")
    engine.close()
    connection.send("closed")


class Disk:
    """The known content of the disk, and what it may hold when the power fails."""

    def __init__(self, path: Path, chance: random.Random) -> None:
        self.path = path
        self.chance = chance
        self.known = {DATA: b"", LOG: b""}
        self.fail: Callable[[dict[str, bytes]], None] | None = None  # called in the middle

    def read(self, name: str) -> bytes:
        file = self.path / name
        return file.read_bytes() if file.exists() else b""

    def sync(self, name: str) -> None:
        self.known[name] = self.read(name)

    def at_rest(self) -> dict[str, bytes]:
        then, now = self.known[DATA], self.read(DATA)
        # A flusher, of either process, commits when it likes. LMDB has synced the pages of a commit
        # before it writes the meta page, and no page of it is torn any more.
        data = self.torn(then, now) if then[:META_BYTES] == now[:META_BYTES] else now
        return {DATA: data, LOG: self.torn(self.known[LOG], self.read(LOG))}

    def torn(self, then: bytes, now: bytes) -> bytes:
        pages = []
        length = self.chance.choice((len(then), len(now)))
        for begin in range(0, length, PAGE):
            old, new = then[begin : begin + PAGE], now[begin : begin + PAGE]
            if old != new:
                kind = self.chance.randrange(4)
                new = [old, new, bytes(PAGE), self.chance.randbytes(PAGE)][kind]
            pages.append(new.ljust(PAGE, b"\0"))
        return b"".join(pages)

    def watch_sync(self, sync: Callable[[int], None], file: int) -> None:
        if os.readlink(f"/proc/self/fd/{file}") != str(self.path / LOG):
            return sync(file)
        if self.fail is not None:
            self.fail(self.at_rest())
        sync(file)
        self.sync(LOG)

    def watch_lmdb(self, commit: Callable[[], Any]) -> Any:
        before = self.known[DATA]
        log = self.torn(self.known[LOG], self.read(LOG))
        result = commit()
        after = self.read(DATA)
        if self.fail is not None and before != after:
            data = self.torn(before, after) if self.chance.random() < 0.5 else after
            meta = before if data is not after or self.chance.random() < 0.5 else after
            self.fail({DATA: meta[:META_BYTES] + data[META_BYTES:], LOG: log})
        self.sync(DATA)
        return result


class WatchedEnvironment:
    """LMDB's environment, whose syncs the disk hears of."""

    def __init__(self, env: Any, disk: Disk) -> None:
        self._env = env
        self._disk = disk

    def __getattr__(self, name: str) -> Any:
        return getattr(self._env, name)

    def sync(self, force: bool) -> None:
        self._env.sync(force)
        self._disk.sync(DATA)


class Machine:
    """A store, sometimes with a second process on it, and the power failures that it had."""

    def __init__(self, tmp_path: Path, patch: pytest.MonkeyPatch, seed: int) -> None:
        self.tmp_path = tmp_path
        self.path = tmp_path / "store"
        self.chance = random.Random(seed)
        self.disk = Disk(self.path, self.chance)
        self.failures: list[Failure] = []
        self.other: Child | None = None
        self.deferred = 0
        self.unsure = False  # one who was killed may have left what the disk has not
        self.older: Content = {}  # without that
        self._watch(patch)
        self.engine: Engine = open_engine(self.path, checkpoint_seconds=0.001)
        self.engine._overlay._lease._env = WatchedEnvironment(  # type: ignore[attr-defined]
            self.engine._env,  # type: ignore[attr-defined]
            self.disk,
        )
        self.disk.sync(DATA)

    def _watch(self, patch: pytest.MonkeyPatch) -> None:
        disk = self.disk
        fsync, fdatasync = os.fsync, os.fdatasync
        flush, commit = Overlay._write, Commits._commit

        def watched_fdatasync(file: int) -> None:
            self.deferred += 1
            disk.watch_sync(fdatasync, file)

        patch.setattr(os, "fdatasync", watched_fdatasync)
        patch.setattr(os, "fsync", lambda file: disk.watch_sync(fsync, file))
        patch.setattr(Overlay, "_write", lambda *args: disk.watch_lmdb(lambda: flush(*args)))
        patch.setattr(Commits, "_commit", lambda *args: disk.watch_lmdb(lambda: commit(*args)))

    def run(self, steps: int) -> None:
        for _ in range(steps):
            before = [self.content()]
            if self.disk.known[DATA][:META_BYTES] != self.disk.read(DATA)[:META_BYTES]:
                before.append(self.older)  # a commit of one who was killed: nobody was told of it
            built: list[Path] = []
            self.disk.fail = lambda files, built=built: self.build(files, built)
            self.step()
            self.disk.fail = None
            after = self.content()
            self.failures += [Failure(folder, [*before, after]) for folder in built]
            if self.chance.random() < 0.3 and not self.unsure:
                built = []
                self.build(self.disk.at_rest(), built)
                self.failures += [Failure(folder, [after]) for folder in built]

    def build(self, files: dict[str, bytes], built: list[Path]) -> None:
        if self.chance.random() < 0.3:
            target = self.tmp_path / f"failed-{len(self.failures)}-{len(built)}"
            target.mkdir()
            # What says that there is a log is synced whenever it changes.
            for name, content in {**files, redo_log.STATE: self.disk.read(redo_log.STATE)}.items():
                if content:
                    (target / name).write_bytes(content)
            built.append(target)

    def content(self) -> Content:
        return content_of(self.engine)

    def step(self) -> None:
        draw, seed = self.chance.random(), self.chance.randrange(10**9)
        self.unsure = False
        if draw < 0.5:
            self.engine.transact(lambda tx: small_change(tx, seed))
        elif draw < 0.7:
            self.engine.transact_many(
                [lambda tx, n=n: small_change(tx, seed + n) for n in range(4)]  # type: ignore[misc]
            )
        elif draw < 0.78:
            self.engine.transact(lambda tx: change(tx, seed))  # often too large for the log
        elif draw < 0.82:
            self.engine.transact(lambda tx: tx.clear(b"1", b"2"))
        elif draw < 0.87:
            self.engine.stats()  # brings all into LMDB's file
        elif self.other is None and draw < 0.92:
            self.other = start(obey, str(self.path))
            assert self.other.receive() == "open"
        elif self.other is not None and draw < 0.95:
            self.disk.watch_lmdb(lambda: self.other.ask(seed))  # type: ignore[union-attr]
            self.disk.sync(LOG)  # which the other has synced, or not touched
        elif self.other is not None:
            self.part(seed)

    def part(self, seed: int) -> None:
        """The other process closes the store, or is killed before its last commit is on disk."""
        assert self.other is not None
        if self.chance.random() < 0.5:
            assert self.other.ask(None) == "closed"
            self.disk.sync(DATA)
        else:
            self.older = self.content()
            meta = self.disk.read(DATA)[:META_BYTES]
            self.other.ask(seed)
            self.other.kill()
            self.disk.known[DATA] = meta + self.disk.read(DATA)[META_BYTES:]
            if meta != self.disk.read(DATA)[:META_BYTES]:
                self.unsure = True
                self.shared_state().holder = 1  # some process: it had the lease
        self.disk.sync(LOG)
        self.other = None

    def commits(self) -> int:
        return int(self.engine._env.info()["last_txnid"])  # type: ignore[attr-defined]

    def shared_state(self) -> SharedState:
        return self.engine._files.shared_state  # type: ignore[attr-defined,no-any-return]

    def run_until_it_has_failed_often(self) -> None:
        for _ in range(100):
            self.run(5)
            if len(self.failures) >= FAILURES and self.deferred >= FAILURES:
                break
        if self.other is not None:
            self.other.kill()
        self.engine.close()


def small_change(tx: Transaction, seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(chance.randrange(1, 5)):
        key = b"%d" % chance.randrange(400)
        if chance.random() < 0.3:
            tx.delete(key)
        else:
            tx.put(key, chance.randbytes(chance.choice([10, 300, 5_000])))


@pytest.fixture
def new_boot() -> Iterator[Callable[[], None]]:
    with pytest.MonkeyPatch.context() as patch:
        yield lambda: patch.setattr(folder, "boot_id", lambda: "after the power failure")


@pytest.mark.parametrize("seed", range(6))
def test_all_that_was_acknowledged_survives_power_failures_at_any_moment(
    tmp_path: Path, new_boot: Callable[[], None], seed: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        machine = Machine(tmp_path, patch, seed)
        machine.run_until_it_has_failed_often()
    new_boot()

    for number, failure in enumerate(machine.failures):
        engine = open_engine(failure.folder, durability=["commit", "interval"][number % 3 == 0])
        found = content_of(engine)
        assert found in failure.allowed
        assert engine.check() == []
        engine.transact(lambda tx: change(tx, 1))
        expected = content_of(engine)
        engine.close()
        engine = open_engine(failure.folder)
        assert content_of(engine) == expected
        assert engine.check() == []
        engine.close()


class DictTransaction:
    """A transaction on a dict, for what a part of the records has to leave."""

    def __init__(self, content: Content) -> None:
        self.content = content

    def put(self, key: bytes, value: bytes) -> None:
        self.content[key] = value

    def delete(self, key: bytes) -> None:
        self.content.pop(key, None)


def after(content: Content, seed: int) -> Content:
    tx: Any = DictTransaction(dict(content))
    small_change(tx, seed)
    return tx.content  # type: ignore[no-any-return]


@pytest.mark.parametrize("seed", range(repeated(4, full=20)))
def test_records_of_two_processes_may_get_to_the_disk_in_any_order(
    tmp_path: Path, new_boot: Callable[[], None], seed: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        machine = Machine(tmp_path, patch, seed)
        other = machine.other = start(obey, str(machine.path))
        assert other.receive() == "open"
        machine.engine.transact(lambda tx: small_change(tx, 0))
        for number in range(FAILURES):
            built: list[dict[str, bytes]] = []
            mine, theirs = 2 * number + 1, -(2 * number + 2)

            def fail(files: dict[str, bytes], built: Any = built, theirs: int = theirs) -> None:
                before = machine.shared_state().appended(), machine.commits()
                other.send(theirs)
                # Ends when it has appended too, or waits for this sync after a commit to LMDB.
                while (machine.shared_state().appended(), machine.commits()) == before:
                    pass
                if machine.commits() != before[1]:
                    machine.disk.sync(DATA)
                built.append(machine.disk.at_rest())

            states = [machine.content()]
            machine.disk.fail = fail
            machine.engine.transact(lambda tx, mine=mine: small_change(tx, mine))  # type: ignore[misc]
            machine.disk.fail = None
            assert other.receive() == "done"
            machine.disk.sync(DATA)
            machine.disk.sync(LOG)
            states += [after(states[0], mine), after(after(states[0], mine), theirs)]
            assert machine.content() == states[-1]
            for files in built:
                target = tmp_path / f"failed-{number}"
                target.mkdir()
                files[redo_log.STATE] = machine.disk.read(redo_log.STATE)
                for name, content in files.items():
                    (target / name).write_bytes(content)
                machine.failures.append(Failure(target, states))
        other.kill()
        machine.engine.close()
    assert len(machine.failures) > FAILURES // 2
    new_boot()

    for failure in machine.failures:
        engine = open_engine(failure.folder)
        assert content_of(engine) in failure.allowed
        assert engine.check() == []
        engine.close()


def test_without_the_log_the_same_failures_lose_commits(tmp_path: Path) -> None:
    """Or the tests above prove nothing."""
    with pytest.MonkeyPatch.context() as patch:
        machine = Machine(tmp_path, patch, 99)
        machine.run_until_it_has_failed_often()

    lost = 0
    for failure in machine.failures:
        (failure.folder / LOG).unlink(missing_ok=True)
        if (failure.folder / redo_log.STATE).exists():
            with pytest.raises(LogDamaged, match="is missing"):
                open_engine(failure.folder)
            (failure.folder / LOG).unlink()
            (failure.folder / redo_log.STATE).unlink()
        engine = open_engine(failure.folder)
        lost += content_of(engine) not in failure.allowed
        engine.close()

    assert lost > FAILURES / 3


@pytest.mark.parametrize("seed", range(20))
def test_the_power_may_fail_again_while_the_log_is_replayed(
    tmp_path: Path, new_boot: Callable[[], None], seed: int
) -> None:
    chance = random.Random(seed)
    store = tmp_path / "store"
    with pytest.MonkeyPatch.context() as patch:
        engine = open_engine(store)
        for number in range(12):
            engine.transact(lambda tx, n=number: small_change(tx, n))  # type: ignore[misc]
        expected = content_of(engine)
        shutil.copytree(store, tmp_path / "failed")
        engine.close()
        new_boot()
        disk = Disk(tmp_path / "failed", chance)
        disk.sync(DATA)
        disk.sync(LOG)
        found: list[dict[str, bytes]] = []
        disk.fail = found.append
        patch.setattr(open_store, "replay", lambda *args: disk.watch_lmdb(lambda: replay(*args)))
        engine = open_engine(tmp_path / "failed")
        found.append(disk.at_rest())
        engine.close()

    assert len(found) == 2
    for number, files in enumerate(found):
        again = tmp_path / f"again-{number}"
        again.mkdir()
        for name, content in files.items():
            (again / name).write_bytes(content)
        engine = open_engine(again)
        assert content_of(engine) == expected
        assert engine.check() == []
        engine.close()
