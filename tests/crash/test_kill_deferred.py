"""Killed while commits wait for LMDB: in a flush, in a replay, while another process comes."""

import random
import shutil
import signal
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from holdfast.engine import open_engine
from holdfast.engine.contract import Engine, Transaction, read_counter
from holdfast.engine.lmdb import flusher, overlay
from tests.processes import Child, start
from tests.repetitions import repeated

PARTS = 4
FLUSH_KILLS = {"interval": repeated(15, full=40), "commit": repeated(20, full=60)}
REPLAY_KILLS = repeated(6, full=12)
MEETINGS = repeated(10, full=25)


def step(number: int) -> Callable[[Transaction], None]:
    def work(tx: Transaction) -> None:
        for part in range(PARTS):
            tx.put(b"%d/%d" % (number, part), b"x" * (number % 700))
        if number >= 20:
            for part in range(PARTS):
                tx.delete(b"%d/%d" % (number - 20, part))
        tx.add(b"committed", 1)

    return work


def next_number(engine: Engine) -> int:
    with engine.view() as view:
        return read_counter(view.get(b"committed"))


def content_of(engine: Engine) -> dict[int, int]:
    """How many parts there are of each number."""
    found: dict[int, int] = {}
    with engine.view() as view:
        for key, _ in view.scan(b"0", b":"):
            number = int(key.split(b"/")[0])
            found[number] = found.get(number, 0) + 1
    return found


def wait_for(flush_seconds: float) -> None:
    """In this process only: every commit may wait, for so long."""
    flusher.FLUSH_SECONDS = flush_seconds  # type: ignore[attr-defined]
    overlay.MAX_WAITING_SECONDS = flush_seconds  # type: ignore[attr-defined]
    overlay.COMMITS_BEFORE_LOG = 0  # type: ignore[attr-defined]


def commit_for_ever(
    path: str, durability: str, flush_seconds: float, connection: Connection
) -> None:
    """Commits as fast as it can, and reports what was acknowledged."""
    wait_for(flush_seconds)
    engine = open_engine(path, durability=durability, checkpoint_seconds=0.05)
    number = next_number(engine)
    while True:
        work = step(number)
        # As a server does: on its loop if that is short, else by the thread that may wait.
        if number % 2 or engine.try_transact_many([work], spaces=[b""]) is None:
            engine.transact(work)
        connection.send((number, engine._env.info()["last_txnid"]))  # type: ignore[attr-defined]
        number += 1


def assert_whole(engine: Engine, acknowledged: int) -> None:
    """All that was acknowledged is there, maybe one more, and no half of any."""
    committed = next_number(engine)
    assert committed in (acknowledged, acknowledged + 1)
    assert content_of(engine) == dict.fromkeys(range(max(0, committed - 20), committed), PARTS)
    assert engine.check() == []


@pytest.mark.parametrize("durability", ["interval", "commit"])
def test_what_was_acknowledged_survives_kills_in_the_middle_of_flushes(
    tmp_path: Path, durability: str
) -> None:
    chance = random.Random(1)
    deferred = 0
    for _ in range(FLUSH_KILLS[durability]):
        seconds = chance.choice([0.0001, 0.001, 0.02])
        child = start(commit_for_ever, str(tmp_path), durability, seconds)
        reports = [child.receive() for _ in range(chance.randrange(1, 120))]
        child.kill()
        reports += child.receive_all()
        deferred += len(reports) - len({commit for _, commit in reports})

        engine = open_engine(tmp_path, durability=chance.choice(["interval", "commit"]))
        assert_whole(engine, reports[-1][0] + 1)
        engine.close()
    assert deferred > 0, "no commit has waited: nothing was tested"


def open_and_die(path: str, durability: str, seconds: float, connection: Connection) -> None:
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    engine = open_engine(path, durability=durability)
    connection.send("open")
    while True:
        engine.check()


@pytest.mark.parametrize("durability", ["interval", "commit"])
def test_a_replay_may_be_killed_again_and_again(tmp_path: Path, durability: str) -> None:
    chance = random.Random(2)
    child = start(commit_for_ever, str(tmp_path), durability, 3600.0)
    reports = [child.receive() for _ in range(300)]
    child.kill()
    reports += child.receive_all()
    acknowledged = reports[-1][0] + 1
    assert len({commit for _, commit in reports}) < len(reports) / 10, "LMDB had most of it"

    for _ in range(REPLAY_KILLS):
        opened_as = chance.choice(["interval", "commit"])
        start(open_and_die, str(tmp_path), opened_as, chance.uniform(0.0005, 0.02)).join()

    engine = open_engine(tmp_path)
    assert_whole(engine, acknowledged)
    engine.close()


def come_and_look(path: str, durability: str, connection: Connection) -> None:
    """Opens the store beside another process, looks what is there, and adds to it."""
    wait_for(0.02)
    while True:
        connection.recv()
        engine = open_engine(path, durability=durability, checkpoint_seconds=0.05)
        connection.send(next_number(engine))
        for _ in range(5):
            engine.transact(lambda tx: tx.add(b"visits", 1))
            connection.send("added")
        engine.close()


@pytest.mark.parametrize("durability", ["interval", "commit"])
def test_every_process_sees_all_that_was_acknowledged_whichever_process_is_killed(
    tmp_path: Path, durability: str
) -> None:
    chance = random.Random(3)
    writer = start(commit_for_ever, str(tmp_path), durability, 0.02)
    visitor = start(come_and_look, str(tmp_path), durability)
    last = (-1, 0)  # the number that was acknowledged last, and LMDB's last commit at that moment
    visits = deferred = 0
    for _ in range(MEETINGS):
        reports = [writer.receive() for _ in range(chance.randrange(1, 60))]
        deferred += len(reports) - len({commit for _, commit in reports})
        before = last = reports[-1]
        visitor.send("come")
        victim = chance.choice([None, writer, visitor])
        if victim is writer:
            last = end_of(writer, last, after=chance.randrange(3))
            writer = start(commit_for_ever, str(tmp_path), durability, 0.02)
        if victim is visitor:
            messages = [visitor.receive() for _ in range(chance.randrange(3))]
            visitor.kill()
            visits += (messages + visitor.receive_all()).count("added")
            visitor = start(come_and_look, str(tmp_path), durability)
        else:
            assert visitor.receive() > before[0]
            assert [visitor.receive() for _ in range(5)] == ["added"] * 5
            visits += 5
    last = end_of(writer, last, after=0)
    visitor.kill()

    engine = open_engine(tmp_path)
    assert_whole(engine, last[0] + 1)
    with engine.view() as view:
        assert visits <= read_counter(view.get(b"visits")) <= visits + MEETINGS
    engine.close()
    assert deferred > 0, "no commit has waited: nothing was tested"


def commit_after_a_visit(path: str, durability: str, connection: Connection) -> None:
    """Commits as soon as it is alone again, and waits to be killed before that reaches LMDB."""
    wait_for(3600.0)
    engine = open_engine(path, durability=durability, checkpoint_seconds=0.001)
    connection.send("open")
    connection.recv()
    if durability == "interval":
        engine._checkpointer.stop()  # type: ignore[attr-defined]  # a checkpoint would flush it
    while not engine._overlay.has_unflushed():  # type: ignore[attr-defined]  # ends when it is alone
        engine.transact(lambda tx: tx.add(b"commits", 1))
    connection.send(engine.transact(lambda tx: tx.get(b"commits")))
    connection.recv()


def visit(path: str, durability: str, connection: Connection) -> None:
    open_engine(path, durability=durability).close()


@pytest.mark.parametrize("durability", ["interval", "commit"])
def test_who_commits_after_a_visit_and_is_killed_has_lost_nothing(
    tmp_path: Path, durability: str
) -> None:
    writer = start(commit_after_a_visit, str(tmp_path), durability)
    assert writer.receive() == "open"
    assert start(visit, str(tmp_path), durability).join() == 0
    commits = writer.ask("alone")
    writer.kill()

    engine = open_engine(tmp_path)
    with engine.view() as view:
        assert view.get(b"commits") == commits
    engine.close()


def die_before_the_end_of_a_commit(path: str, durability: str, connection: Connection) -> None:
    """Leaves what LMDB leaves if it is killed after the meta page is written, and before readers
    are told of the new commit: their number is one behind, and the writer's lock is taken."""
    engine = open_engine(path, durability=durability)
    engine.transact(lambda tx: tx.put(b"half", b"told"))
    last = engine._env.info()["last_txnid"]  # type: ignore[attr-defined]
    with (Path(path) / "lock.mdb").open("r+b") as lock_file:
        head = lock_file.read(64)
        lock_file.seek(head.index(last.to_bytes(8, "little")))
        lock_file.write((last - 1).to_bytes(8, "little"))
    engine._overlay._lease.acquire()  # type: ignore[attr-defined]  # as each commit does
    with engine._env.begin(write=True):  # type: ignore[attr-defined]
        connection.send("inside")
        connection.recv()


@pytest.mark.parametrize("durability", ["interval", "commit"])
def test_the_successor_of_a_process_killed_in_its_commit_continues_from_that_commit(
    tmp_path: Path, durability: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overlay, "COMMITS_BEFORE_LOG", 0)
    monkeypatch.setattr(overlay, "MAX_WAITING_SECONDS", 3600.0)
    monkeypatch.setattr(flusher, "FLUSH_SECONDS", 3600.0)
    engine = open_engine(tmp_path / "store", durability=durability, checkpoint_seconds=3600)
    other = start(die_before_the_end_of_a_commit, str(tmp_path / "store"), durability)
    assert other.receive() == "inside"
    other.kill()

    with engine.transaction() as tx:
        seen = tx.get(b"half")
        tx.put(b"mine", b"1")
    assert engine._overlay.has_unflushed(), "LMDB has it already: nothing is tested"  # type: ignore[attr-defined]
    shutil.copytree(tmp_path / "store", tmp_path / "killed")
    engine.close()

    assert seen == b"told"
    engine = open_engine(tmp_path / "killed")
    with engine.view() as view:
        assert view.get_many([b"half", b"mine"]) == [b"told", b"1"]
    engine.close()


def end_of(writer: Child, last: tuple[int, int], *, after: int) -> tuple[int, int]:
    """Kills the writer after some more reports, and returns the last of all."""
    reports = [writer.receive() for _ in range(after)]
    writer.kill()
    return [last, *reports, *writer.receive_all()][-1]  # type: ignore[no-any-return]  # what it sends
