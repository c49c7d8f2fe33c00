"""Tools for our users' tests: a clock to turn, a throw-away store, a crash to survive."""

from pathlib import Path

import pytest

import holdfast
from holdfast.engine.contract import Transaction
from holdfast.errors import Unreachable
from holdfast.store import Store, Tx
from holdfast.testing import Clock, crash_at_write, temporary_server, temporary_store
from tests.plain_keys import get_from, put, put_in

# --- the clock ------------------------------------------------------------------------------------


def test_a_clock_does_not_move_until_it_is_advanced() -> None:
    clock = Clock(100)
    assert (clock(), clock()) == (100.0, 100.0)

    clock.advance(seconds=0.5)
    assert clock() == 100.5

    clock.set(7)
    assert clock() == 7.0


# --- the store ------------------------------------------------------------------------------------


def test_a_temporary_store_is_gone_afterwards() -> None:
    with temporary_store() as store:
        put_in(store, b"k", b"v")
        assert get_from(store, b"k") == b"v"
        path: Path = store.engine.path  # type: ignore[attr-defined]  # the embedded engine has one
        assert path.is_dir()

    assert not path.exists()


def test_temporary_stores_share_nothing() -> None:
    with temporary_store() as one, temporary_store() as two:
        put_in(one, b"k", b"v")

        assert get_from(two, b"k") is None


def test_a_temporary_store_takes_a_clock_and_the_options_of_open() -> None:
    clock = Clock(5)

    with temporary_store(clock=clock, durability="commit") as store:
        clock.advance(seconds=1)
        assert store.transact(lambda tx: tx.now) == 6.0


# --- the crash ------------------------------------------------------------------------------------


def write_in_every_way(store: Store) -> None:
    """Seven writes: a pair, a pair, a group of a pair and of one more."""

    def both(tx: Tx) -> None:
        put(tx, b"a1")
        put(tx, b"a2")

    store.transact(both)
    with store.transaction() as tx:
        put(tx, b"b1")
        tx._tx.add(tx._tx.space + b"b2", 1)
    prefix = store._runner.prefix

    def pair(tx: Transaction) -> None:
        write = tx.put  # held, as a loop of many writes does
        write(prefix + b"c1", b"")
        write(prefix + b"c2", b"")

    store.engine.transact_many([pair, lambda tx: tx.delete(prefix + b"a1")], spaces=[prefix] * 2)


def keys_of(store: Store) -> list[bytes]:
    prefix = store._runner.prefix
    with store.engine.view() as view:
        return [key[len(prefix) :] for key, _ in view.scan(prefix, prefix + b"\xff")]


@pytest.mark.parametrize(
    ("n", "left"),
    [
        (1, []),
        (2, []),
        (3, [b"a1", b"a2"]),
        (4, [b"a1", b"a2"]),
        (5, [b"a1", b"a2", b"b1", b"b2"]),
        (6, [b"a1", b"a2", b"b1", b"b2"]),
        (7, [b"a1", b"a2", b"b1", b"b2"]),  # a group is one commit
    ],
)
def test_a_crash_at_any_write_leaves_whole_transactions(
    tmp_path: Path, n: int, left: list[bytes]
) -> None:
    assert crash_at_write(tmp_path, write_in_every_way, n=n)

    with holdfast.open(tmp_path) as store:
        assert keys_of(store) == left
        assert store.check() == []


def test_a_work_of_fewer_writes_ends_by_itself(tmp_path: Path) -> None:
    assert not crash_at_write(tmp_path, write_in_every_way, n=8, durability="interval")

    with holdfast.open(tmp_path) as store:
        assert keys_of(store) == [b"a2", b"b1", b"b2", b"c1", b"c2"]


def fail(store: Store) -> None:
    raise SystemExit(3)


def test_a_work_that_fails_by_itself_is_no_crash(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="ended with 3 before its write number 1"):
        crash_at_write(tmp_path, fail, n=1)


def wait_for_ever(store: Store) -> None:
    with store.subscribe() as subscription:
        subscription.get()


def test_a_work_that_never_ends_is_ended(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"not done after 0\.5 seconds"):
        crash_at_write(tmp_path, wait_for_ever, n=1, timeout_seconds=0.5)


def test_a_temporary_server_is_empty_and_gone_afterwards() -> None:
    with temporary_server() as url, holdfast.connect(url) as client:
        assert client.jobs.queues() == []

    with pytest.raises(Unreachable):
        holdfast.connect(url, retries=0)


def test_a_temporary_server_that_does_not_start_says_why() -> None:
    with pytest.raises(RuntimeError, match="No such option"), temporary_server("--cake"):
        pass
