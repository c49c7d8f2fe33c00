"""Threads of a process that shares its folder: none disturbs another, whatever others commit."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from multiprocessing.connection import Connection
from pathlib import Path

from holdfast.engine.contract import Transaction
from tests.engine.test_shared_log import commits_wait, durability, let_commits_wait, open_here
from tests.processes import start
from tests.repetitions import repeated

__all__ = ["commits_wait", "durability"]  # fixtures

ROUNDS = repeated(150, full=2_000)


def write_and_flush(path: str, durability: str, connection: Connection) -> None:
    let_commits_wait()
    engine = open_here(path, durability)
    connection.send("open")
    for number in range(ROUNDS):
        engine.transact(_increment)
        if number % 7 == 0:
            engine.stats()  # brings all into LMDB's file
        if number % 50 == 0:
            engine.close()
            engine = open_here(path, durability)
    engine.close()
    connection.send("closed")


def _increment(tx: Transaction) -> int:
    number = int(tx.get(b"n") or b"0") + 1
    tx.put(b"n", b"%d" % number)
    tx.delete(b"left %d" % (number - 5))
    tx.put(b"left %d" % number, b"")
    return number


def test_threads_that_view_and_write_beside_another_process_agree(
    tmp_path: Path, durability: str
) -> None:
    with closing(open_here(tmp_path, durability)) as engine, ThreadPoolExecutor(3) as pool:
        other = start(write_and_flush, str(tmp_path), durability)
        assert other.receive() == "open"

        def look() -> int:
            latest = 0
            for _ in range(3 * ROUNDS):
                with engine.view() as view:
                    number = int(view.get(b"n") or b"0")
                    left = sum(1 for _ in view.scan(b"left ", b"left!"))
                assert number >= latest, "a commit that was seen is gone"
                assert left == min(number, 5), "a part of a commit was seen"
                latest = number
            return latest

        looking = [pool.submit(look) for _ in range(2)]
        drawn = [engine.transact(_increment) for _ in range(ROUNDS)]
        assert other.receive() == "closed"

        assert sorted(set(drawn)) == drawn
        assert max(each.result() for each in looking) <= 2 * ROUNDS
        with engine.view() as view:
            assert view.get(b"n") == b"%d" % (2 * ROUNDS)
