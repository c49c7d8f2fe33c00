"""Several processes on one folder, killed at any moment: nothing acknowledged is lost or doubled.

Each transaction takes the next number of one counter and leaves a key for it, so two that had not
seen each other would take the same number.
"""

import random
from multiprocessing.connection import Connection, wait
from pathlib import Path

import pytest

from holdfast.engine import open_engine
from holdfast.engine.contract import Engine, Transaction
from holdfast.engine.lmdb import flusher, overlay
from tests.processes import Child, start
from tests.repetitions import repeated

PROCESSES = 3
ROUNDS = repeated(6, full=30)


def draw_number(tx: Transaction) -> int:
    number = int(tx.get(b"next") or b"0")
    tx.put(b"next", b"%d" % (number + 1))
    tx.put(b"drawn/%08d" % number, b"x" * (number % 900))
    if number >= 30:
        tx.delete(b"left/%08d" % (number - 30))
    tx.put(b"left/%08d" % number, b"")
    return number


def draw_for_ever(path: str, durability: str, connection: Connection) -> None:
    """Commits, sends the number after it was acknowledged, and looks at the store in between."""
    overlay.COMMITS_BEFORE_LOG = 0  # type: ignore[attr-defined]
    flusher.FLUSH_SECONDS = random.choice([0.001, 0.02])  # type: ignore[attr-defined]
    engine = open_engine(path, durability=durability, checkpoint_seconds=0.05)
    while True:
        number = engine.transact(draw_number)
        connection.send(number)
        if number % 7 == 0:
            with engine.view() as view:
                seen = int(view.get(b"next") or b"0")
                kept = sum(1 for _ in view.scan(b"left/", b"left0"))
            assert seen > number, "a view has not seen a commit that had returned"
            assert kept == min(seen, 30), "a view has seen a part of a commit"
        if number % 90 == 0:
            engine.close()
            engine = open_engine(path, durability=durability, checkpoint_seconds=0.05)


def numbers_of(engine: Engine) -> tuple[int, list[int]]:
    with engine.view() as view:
        drawn = [int(key.split(b"/")[1]) for key, _ in view.scan(b"drawn/", b"drawn0")]
        return int(view.get(b"next") or b"0"), drawn


def receive_some(children: list[Child], count: int) -> list[int]:
    """Returns the next acknowledged numbers, of all processes."""
    found: list[int] = []
    connections = {child.connection: child for child in children}
    while len(found) < count:
        for ready in wait(connections, timeout=60):
            found.append(connections[ready].receive())
    return found


@pytest.mark.parametrize("durability", ["commit", "interval"])
def test_processes_that_share_a_folder_lose_and_double_nothing_whichever_is_killed(
    tmp_path: Path, durability: str
) -> None:
    chance = random.Random(4)
    acknowledged: list[int] = []
    children = [start(draw_for_ever, str(tmp_path), durability) for _ in range(PROCESSES)]
    for turn in range(ROUNDS):
        acknowledged += receive_some(children, chance.randrange(20, 150))
        victims = children if turn % 3 == 2 else [chance.choice(children)]
        for victim in list(victims):
            victim.kill()
        for victim in list(victims):
            acknowledged += victim.receive_all()
            children.remove(victim)
            children.append(start(draw_for_ever, str(tmp_path), durability))
    for child in children:
        child.kill()
    for child in children:
        acknowledged += child.receive_all()

    engine = open_engine(tmp_path, durability=chance.choice(["commit", "interval"]))
    following, drawn = numbers_of(engine)
    assert engine.check() == []
    engine.close()
    assert len(acknowledged) == len(set(acknowledged)), "two transactions took one number"
    assert set(acknowledged) <= set(drawn), "an acknowledged commit is lost"
    assert drawn == list(range(following))
