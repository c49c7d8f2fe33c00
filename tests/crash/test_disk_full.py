"""A full disk: a clear error, nothing lost, and work goes on when there is space again."""

import resource
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from holdfast.engine import open_engine
from holdfast.engine.contract import Transaction
from holdfast.errors import StoreFull
from tests.processes import start

LIMIT = 2 * 2**20


def limit_file_size(size: int) -> None:
    """No file of this process may grow beyond `size`: to LMDB, a disk that is full."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def write_until_full(path: str, durability: str, connection: Connection) -> None:
    engine = open_engine(path, durability=durability, checkpoint_seconds=3600)
    limit_file_size(LIMIT)
    acknowledged = 0
    try:
        while True:
            number = acknowledged
            engine.transact(lambda tx, n=number: tx.put(b"%d" % n, bytes(20_000)))  # type: ignore[misc]
            acknowledged += 1
    except StoreFull as error:
        connection.send((acknowledged, str(error)))

    engine.checkpoint()  # in interval mode, gives pages free that the small ones can use

    # A group in which one transaction is too large: the small ones must not suffer.
    def too_large(tx: Transaction) -> None:
        for number in range(300):
            tx.put(b"large %d" % number, bytes(20_000))

    small = [lambda tx, n=n: tx.put(b"small %d" % n, b"") for n in range(2)]
    outcomes = engine.transact_many([small[0], too_large, small[1]])
    connection.send([type(outcome.error).__name__ for outcome in outcomes])

    limit_file_size(resource.RLIM_INFINITY)
    engine.transact(lambda tx: tx.put(b"room again", bytes(5_000_000)))
    connection.send(engine.check())
    engine.close()


@pytest.mark.parametrize("durability", ["commit", "interval"])
def test_a_full_disk_loses_nothing_and_stops_no_one_for_long(
    tmp_path: Path, durability: str
) -> None:
    child = start(write_until_full, str(tmp_path), durability)
    acknowledged, message = child.receive()
    assert "no space left" in message
    assert "Free some space and try again" in message
    assert child.receive() == ["NoneType", "StoreFull", "NoneType"]
    assert child.receive() == []
    assert child.join() == 0

    engine = open_engine(tmp_path)
    with engine.view() as view:
        stored = [int(key) for key, _ in view.scan(b"0", b":")]
        assert sorted(stored) == list(range(acknowledged))
        assert view.get(b"room again") is not None
        assert view.get(b"large 0") is None
    assert engine.check() == []
    engine.close()
