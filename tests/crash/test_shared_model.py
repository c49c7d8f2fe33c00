"""Processes on one folder against an outside ledger: views and transactions of all of them are one
history in real time, wherever one is killed or stopped.

Every transaction draws the next number of one counter. Each thread notes in a file that all map the
highest number that it knows of: one that it drew, after it was acknowledged, or one that a view has
shown. Whatever begins after that, in any process, has to see it.
"""

import mmap
import os
import random
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import pytest

from holdfast.engine import open_engine
from holdfast.engine.contract import Engine, Notice, Reader, Transaction
from holdfast.engine.folder import Folder
from holdfast.engine.lmdb import flusher, overlay, redo_log
from holdfast.engine.lmdb.checkpointer import Checkpointer
from holdfast.engine.lmdb.file_writes import FileWriter
from holdfast.engine.lmdb.log_lease import LogLease
from holdfast.engine.lmdb.open_store import OpenStore
from holdfast.engine.lmdb.redo_log import RedoLog
from holdfast.engine.lmdb.shared_state import SharedState
from holdfast.engine.lmdb.unflushed_commits import UnflushedCommits
from tests.processes import Child, start
from tests.repetitions import repeated

PROCESSES, THREADS = 3, 2
ROUNDS = repeated(8, full=25)
SEEDS = repeated(2, full=15)
LEFT = 12  # of the numbers drawn last, each has a key
LARGE = 40_000  # bytes: too many for the log

# Between the steps of these, a process may be killed or another one may run.
POINTS: list[tuple[type, str]] = [
    (RedoLog, "write"),
    (RedoLog, "append"),
    (RedoLog, "sync"),
    (RedoLog, "empty"),
    (RedoLog, "read_new"),
    (SharedState, "publish"),
    (SharedState, "begin"),
    (SharedState, "append"),
    (SharedState, "note_synced"),
    (SharedState, "withdraw"),
    (SharedState, "take_turn"),
    (SharedState, "end_turn"),
    (FileWriter, "commit"),
    (LogLease, "acquire"),
    (LogLease, "release"),
    (LogLease, "_enter_state"),
    (Folder, "take_lease"),
    (Folder, "release_lease"),
    (UnflushedCommits, "follow"),
    (UnflushedCommits, "current"),
    (UnflushedCommits, "_adopt"),
    (UnflushedCommits, "_drop"),
    (Checkpointer, "_save"),
    (OpenStore, "_join_log"),
    (OpenStore, "_replay"),
    (OpenStore, "_leave_folder"),
    (OpenStore, "_note_if_alone"),
]


class Ledger:
    """What is known of the counter: one word for each thread of each process that ever ran."""

    def __init__(self, path: Path) -> None:
        with path.open("a+b") as file:
            file.truncate(65_536)
            self._words = memoryview(mmap.mmap(file.fileno(), 65_536)).cast("Q")

    def floor(self) -> int:
        return max(self._words)

    def note(self, place: int, number: int) -> None:
        self._words[place] = max(self._words[place], number)


class Chances:
    """Lets others run between the steps of a process, and kills it in one of them."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self._left = self.random.randrange(20, 3_000)  # steps, if it is to be killed by itself
        self._kills = self.random.random() < 0.6

    def step(self) -> None:
        self._left -= 1
        if self._kills and self._left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        if self.random.random() < 0.1:
            for _ in range(self.random.randrange(50)):
                os.sched_yield()

    def watch(self, owner: type, name: str) -> None:
        method: Callable[..., Any] = getattr(owner, name)

        def watched(*arguments: Any, **options: Any) -> Any:
            self.step()
            result = method(*arguments, **options)
            self.step()
            return result

        setattr(owner, name, watched)


def make_small() -> None:
    """In this process only: a small log, which is full again and again."""
    overlay.COMMITS_BEFORE_LOG = 0  # type: ignore[attr-defined]
    overlay.MAX_DEFERRED_BYTES = LARGE // 2  # type: ignore[attr-defined]
    redo_log.REDO_LOG_BYTES = 40 * 4096  # type: ignore[attr-defined]


def draw(tx: Transaction, large: bool) -> int:
    number = int(tx.get(b"next") or b"1")
    check(tx, number)
    tx.put(b"next", b"%d" % (number + 1))
    tx.put(b"a/same", b"%d" % number)
    tx.put(b"z/same", b"%d" % number)
    tx.put(b"drawn/%08d" % number, b"x" * (LARGE if large else number % 900))
    tx.delete(b"left/%08d" % (number - LEFT))
    tx.put(b"left/%08d" % number, b"")
    tx.after_commit(Notice(f"drawn.{number}"))
    check(tx, number + 1)  # its own writes
    return number


def check(reader: Reader, following: int) -> None:
    """Raises if what a reader sees is not the state after `following - 1` draws."""
    last = following - 1
    left = [key for key, _ in reader.scan(b"left/", b"left0")]
    expected = [b"left/%08d" % n for n in range(max(1, following - LEFT), following)]
    assert left == expected, "a part of a commit was seen"
    for key in (b"a/same", b"z/same"):
        assert int(reader.get(key) or b"0") == last, "a part of a commit was seen"
    assert last == 0 or reader.get(b"drawn/%08d" % last) is not None
    assert reader.get(b"drawn/%08d" % following) is None


def act(engine: Engine, ledger: Ledger, place: int, chance: random.Random) -> None:
    """Does one thing with the store, and compares it with what was known before it began."""
    floor = ledger.floor()
    kind = chance.random()
    if kind < 0.45:
        number = engine.transact(lambda tx: draw(tx, chance.random() < 0.03))
        assert number > floor, "a transaction has not seen what was acknowledged, or seen"
        ledger.note(place, number)
    elif kind < 0.5:
        outcomes = engine.transact_many(
            [
                lambda tx: draw(tx, False),
                lambda tx: draw(tx, False) // 0,
                lambda tx: draw(tx, False),
            ]
        )
        assert [type(outcome.error) for outcome in outcomes][::2] == [type(None)] * 2
        first, last = outcomes[0].result, outcomes[2].result
        assert first is not None
        assert last == first + 1 > floor + 1
        ledger.note(place, last)
    elif kind < 0.93:
        with engine.view() as view:
            following = int(view.get(b"next") or b"1")
            check(view, following)
        assert following > floor, "a view has not seen what was acknowledged, or seen"
        ledger.note(place, following - 1)
    elif kind < 0.96:
        engine.stats()
    elif kind < 0.98:
        engine.checkpoint()
    else:
        with pytest.raises(ZeroDivisionError):
            engine.transact(lambda tx: draw(tx, False) // 0)


def live(
    path: str, durability: str, ledger_path: str, place: int, seed: int, connection: Connection
) -> None:
    """Opens the store, and works on it with several threads until it is killed or told to end."""
    chances = Chances(seed)
    chance = random.Random(seed)
    sys.setswitchinterval(chance.choice([1e-6, 1e-4, 5e-3]))
    make_small()
    overlay.MAX_WAITING_SECONDS = chance.choice([0.005, 0.05, 1.0])  # type: ignore[attr-defined]
    overlay.MAX_INTERVAL_WAITING_SECONDS = overlay.MAX_WAITING_SECONDS  # type: ignore[attr-defined]
    flusher.FLUSH_SECONDS = chance.choice([0.001, 0.02])  # type: ignore[attr-defined]
    for owner, name in POINTS:
        chances.watch(owner, name)
    ledger = Ledger(Path(ledger_path))
    told = threading.Event()
    failed: list[str] = []

    def work(engine: Engine, number: int) -> None:
        mine = random.Random(seed + number)
        try:
            for _ in range(steps):
                if told.is_set():
                    return
                act(engine, ledger, place + number, mine)
        except BaseException as error:
            failed.append(f"{type(error).__name__}: {error}")

    def wait_for_the_end() -> None:
        connection.recv()
        told.set()

    threading.Thread(target=wait_for_the_end, daemon=True).start()
    while not told.is_set() and not failed:
        steps = chance.randrange(5, 200)
        engine = open_engine(path, durability=durability, checkpoint_seconds=0.05)
        with suppress(IndexError), engine.subscribe() if chance.random() < 0.5 else engine.view():
            threads = [threading.Thread(target=work, args=(engine, n)) for n in range(THREADS)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        engine.close()
    connection.send(failed)


class History:
    """The processes of one run, and those that take the place of the killed."""

    def __init__(self, path: Path, durability: str, seed: int) -> None:
        self.path = path
        self.durability = durability
        self.chance = random.Random(seed)
        self.ledger = Ledger(path / "ledger")
        self.started = 0
        self.children = [self.start() for _ in range(PROCESSES)]

    def start(self) -> Child:
        place = THREADS * self.started
        self.started += 1
        seed = self.chance.randrange(10**9)
        ledger = str(self.path / "ledger")
        return start(live, str(self.path / "store"), self.durability, ledger, place, seed)

    def run(self) -> None:
        for _ in range(ROUNDS):
            goal = self.ledger.floor() + self.chance.randrange(5, 60)
            while self.ledger.floor() < goal:  # ends as long as someone draws numbers
                self.replace_ended(wait([c.connection for c in self.children], timeout=0.05))
            victims = self.chance.choice([1, 1, 1, 2, PROCESSES])
            for victim in self.chance.sample(self.children, victims):
                if self.chance.random() < 0.3:
                    with suppress(ProcessLookupError):  # it was quicker
                        victim.stop()
                        wait([c.connection for c in self.children], timeout=0.02)
                        victim.go_on()
                else:
                    victim.kill()
                    self.replace_ended([victim.connection])

    def replace_ended(self, ended: list[Any]) -> None:
        for child in list(self.children):
            if child.connection in ended:
                assert child.receive_all() == [], "it has found a contradiction"
                assert child.join() == -signal.SIGKILL, "it has failed"
                self.children.remove(child)
                self.children.append(self.start())

    def end(self) -> None:
        """Lets one process close the store in peace, after all others were killed."""
        *others, last = self.children
        for child in others:
            child.kill()
        with suppress(BrokenPipeError):
            last.send("end")
        assert last.receive_all() in ([], [[]]), "it has found a contradiction"
        assert last.join() in (0, -signal.SIGKILL), "it has failed"


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("durability", ["commit", "interval"])
def test_processes_on_one_folder_have_one_history_in_real_time(
    tmp_path: Path, durability: str, seed: int
) -> None:
    history = History(tmp_path, durability, seed)
    history.run()
    history.end()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(redo_log, "REDO_LOG_BYTES", 40 * 4096)
        engine = open_engine(tmp_path / "store", durability=durability)
        with engine.view() as view:
            following = int(view.get(b"next") or b"1")
            check(view, following)
            drawn = [int(key.split(b"/")[1]) for key, _ in view.scan(b"drawn/", b"drawn0")]
        assert engine.check() == []
        engine.close()
    assert drawn == list(range(1, following))
    assert following > history.ledger.floor(), "an acknowledged commit is lost"
