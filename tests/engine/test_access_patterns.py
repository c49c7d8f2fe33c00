"""Works of one kind that had to wait their turn wait first the next time, and run once."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from holdfast.engine import open_engine
from holdfast.engine.contract import Transaction
from holdfast.engine.remote import RemoteEngine
from tests.stores import Stores

pytestmark = pytest.mark.only_on("postgres", "valkey", "cluster")

SPACE = b"A"
KIND = "Counter.count"


@pytest.fixture
def engines(stores: Stores) -> Iterator[list[RemoteEngine]]:
    """Two engines on one store, as of two processes."""
    url = stores.url()
    opened = [open_engine(url, durability="interval") for _ in range(2)]
    assert all(isinstance(each, RemoteEngine) for each in opened)
    yield opened  # type: ignore[misc]  # they are
    for each in opened:
        each.close()


class Counting:
    """A work that counts in a contended key, and how often it was run."""

    def __init__(self, then: Callable[[Transaction], Any] = lambda tx: None) -> None:
        self.runs = 0
        self._then = then

    def __call__(self, tx: Transaction) -> int:
        self.runs += 1
        number = int(tx.get(b"An") or b"0") + 1
        tx.put(b"An", b"%d" % number)
        self._then(tx)
        return number


def contend(engine: RemoteEngine, *keys: bytes) -> None:
    for key in keys:
        engine._runner._contention._until[key] = float("inf")


def count(engine: RemoteEngine, work: Callable[[Transaction], Any]) -> Any:
    return engine.transact(work, space=SPACE, kind=KIND)


def test_what_has_waited_its_turn_once_runs_once_the_next_time(engines: list[RemoteEngine]) -> None:
    one, other = engines
    contend(one, b"An")
    first, second = Counting(), Counting()
    count(one, first)

    for number in range(2, 6, 2):
        assert count(other, Counting()) == number
        assert count(one, second) == number + 1

    assert (first.runs, second.runs) == (2, 2)
    assert one.stats()["conflicts"] == 0


def test_a_list_is_fetched_in_its_turn_too(engines: list[RemoteEngine]) -> None:
    one, other = engines

    def take(tx: Transaction) -> bytes:
        [(key, value)] = tx.scan(b"Al", b"Am", limit=1)
        tx.delete(key)
        return value

    def fill(tx: Transaction) -> None:
        for number in range(10):
            tx.put(b"Al%d" % number, b"%d" % number)

    other.transact(fill, space=SPACE)
    contend(one, b"Al")
    taken = [count(engine, take) for _ in range(4) for engine in (one, other)]

    assert taken == [b"%d" % number for number in range(8)]


def test_a_guess_beside_the_turn_that_was_wrong_is_made_good(engines: list[RemoteEngine]) -> None:
    one, other = engines
    contend(one, b"An")
    count(one, Counting())
    copied = Counting(lambda tx: tx.put(b"Acopy", tx.get(b"Aother") or b"nothing"))
    count(one, copied)
    other.transact(lambda tx: tx.put(b"Aother", b"something"), space=SPACE)

    assert count(one, copied) == 3

    with one.view(space=SPACE) as view:
        assert view.get_many([b"An", b"Acopy"]) == [b"3", b"something"]


def test_a_kind_that_reads_something_else_waits_for_that(engines: list[RemoteEngine]) -> None:
    one, other = engines
    contend(one, b"An", b"Am")
    count(one, Counting())

    def count_elsewhere(tx: Transaction) -> int:
        number = int(tx.get(b"Am") or b"0") + 1
        tx.put(b"Am", b"%d" % number)
        return number

    counted = [count(engine, count_elsewhere) for _ in range(3) for engine in (one, other)]

    assert counted == [1, 2, 3, 4, 5, 6]
    assert count(one, Counting()) == 2


def test_a_kind_that_then_writes_nothing_reads_one_moment(engines: list[RemoteEngine]) -> None:
    one, other = engines
    contend(one, b"An")
    count(one, Counting())
    count(other, Counting(lambda tx: tx.put(b"Aother", b"2")))

    read = count(one, lambda tx: [tx.get(b"An"), tx.get(b"Aother")])

    assert read == [b"2", b"2"]
    assert one.stats()["conflicts"] == 0


def test_an_error_in_a_turn_leaves_nothing_and_passes_the_turn_on(
    engines: list[RemoteEngine],
) -> None:
    one, other = engines
    contend(one, b"An")
    contend(other, b"An")
    count(one, Counting())
    count(other, Counting())

    def fail(tx: Transaction) -> None:
        raise LookupError(tx.get(b"An"))

    with pytest.raises(LookupError, match="3"):
        count(one, Counting(fail))

    assert count(other, Counting()) == 3
