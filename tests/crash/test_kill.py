"""Killed at any moment: what was acknowledged is there, and nothing half-done is."""

import random
import threading
from collections import Counter
from multiprocessing.connection import Connection

import pytest

from holdfast.engine import open_engine
from holdfast.engine.contract import Transaction, read_counter
from holdfast.engine.lmdb import overlay
from tests.processes import start
from tests.repetitions import repeated
from tests.stores import Stores

PARTS = 4
KILLS = repeated(20, full=50)  # in each durability


def commit_and_report(
    url: str, durability: str, first: int, threads: int, connection: Connection
) -> None:
    """Commits transactions of several writes for ever, and reports each one that returned."""
    overlay.COMMITS_BEFORE_LOG = first % 2  # type: ignore[attr-defined]  # in this process only
    engine = open_engine(url, durability=durability, checkpoint_seconds=0.01)
    lock = threading.Lock()

    def run(number: int) -> None:
        while True:

            def work(tx: Transaction, number: int = number) -> None:
                for part in range(PARTS):
                    tx.put(b"%d/%d" % (number, part), b"x" * (number % 5_000))
                tx.add(b"committed", 1)

            engine.transact(work)
            with lock:
                connection.send(number)
            number += threads

    for offset in range(threads):
        threading.Thread(target=run, args=(first + offset,), daemon=True).start()
    connection.recv()  # for ever


@pytest.mark.parametrize("durability", ["commit", "interval"])
def test_all_that_was_acknowledged_survives_many_kills(stores: Stores, durability: str) -> None:
    chance, url = random.Random(durability), stores.url()
    acknowledged: set[int] = set()
    first = 0
    for kill in range(KILLS):
        threads = chance.choice([1, 1, 4])
        child = start(commit_and_report, url, durability, first, threads)
        reported = [child.receive() for _ in range(chance.randrange(1, 25))]
        child.kill()
        acknowledged.update(reported, child.receive_all())

        engine = open_engine(url, durability=durability)
        with engine.view() as view:
            found: dict[int, int] = {}
            for key, _ in view.scan(b"0", b":"):
                number = int(key.split(b"/")[0])
                found[number] = found.get(number, 0) + 1
            committed = read_counter(view.get(b"committed"))
        assert acknowledged <= found.keys(), f"lost after kill {kill}"
        assert set(found.values()) == {PARTS}, f"half done after kill {kill}"
        assert committed == len(found)
        assert engine.check() == []
        engine.close()
        first = max(found) + 1


def come_and_go(url: str, durability: str, name: int, connection: Connection) -> None:
    """Opens the store, commits a little, closes it, and begins again."""
    chance = random.Random(name)
    overlay.COMMITS_BEFORE_LOG = 1  # type: ignore[attr-defined]  # in this process only
    number = 0
    while True:
        engine = open_engine(url, durability=durability, checkpoint_seconds=0.005)
        for _ in range(chance.randrange(5)):

            def work(tx: Transaction, number: int = number) -> None:
                for part in range(PARTS):
                    tx.put(b"%d/%d/%d" % (name, number, part), b"x" * chance.randrange(3_000))

            engine.transact(work)
            connection.send(number)
            number += 1
        engine.close()


@pytest.mark.parametrize("durability", ["commit", "interval"])
def test_processes_may_be_killed_while_they_and_others_open_and_close_the_store(
    stores: Stores, durability: str
) -> None:
    chance, url = random.Random(durability), stores.url()
    acknowledged: set[tuple[int, int]] = set()
    for first in range(0, 9, 3):
        children = {
            name: start(come_and_go, url, durability, name) for name in range(first, first + 3)
        }
        for name in chance.sample(sorted(children), k=3):
            reported = [children[name].receive() for _ in range(chance.randrange(8))]
            children[name].kill()
            reported += children[name].receive_all()
            acknowledged.update((name, number) for number in reported)

        engine = open_engine(url, durability=durability)
        with engine.view() as view:
            found = Counter(tuple(map(int, key.split(b"/")[:2])) for key, _ in view.scan(b"", b"A"))
        assert acknowledged <= found.keys()
        assert set(found.values()) <= {PARTS}
        assert engine.check() == []
        engine.close()
