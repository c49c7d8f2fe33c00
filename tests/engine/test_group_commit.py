"""Turns: who writes when, and what is left in order when someone is interrupted."""

import random
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

from holdfast.engine import open_engine
from holdfast.engine.contract import Engine, Transaction, read_counter
from holdfast.engine.group_commit import CommitRequest, Work
from holdfast.errors import StoreClosed, StoreFull
from tests.processes import start

INTERRUPTS = 300


@pytest.fixture(params=["interval", "commit"])
def durability(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def engine(tmp_path: Path, durability: str) -> Iterator[Engine]:
    engine = open_engine(tmp_path / "store", durability=durability)
    yield engine
    engine.close()


class Line:
    """A writer that keeps its turn until it is let go, and those who line up behind it."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.log: list[str] = []
        self._pool = ThreadPoolExecutor(8)
        self._go_on = threading.Event()
        self._length = 0
        inside = threading.Event()

        def keep_the_turn(tx: Transaction) -> None:
            inside.set()
            self._go_on.wait()

        self._futures: list[Future[None]] = [self._pool.submit(engine.transact, keep_the_turn)]
        inside.wait()

    def transact(self, name: str) -> None:
        self._enqueue(lambda: self.engine.transact(lambda tx: self.log.append(name)))

    def transaction(self, name: str) -> None:
        def block() -> None:
            with self.engine.transaction():
                self.log.append(f"{name} begins")
                time.sleep(0)  # others might slip in here
                self.log.append(f"{name} ends")

        self._enqueue(block)

    def close(self) -> None:
        def close() -> None:
            self.engine.close()
            self.log.append("closed")

        self._enqueue(close)

    def _enqueue(self, call: object) -> None:
        waiting = self.engine._group_commit.waiting  # type: ignore[attr-defined]  # nothing else tells that it waits
        self._futures.append(self._pool.submit(call))  # type: ignore[arg-type]
        self._length += 1
        while len(waiting) < self._length:
            time.sleep(0.001)

    def go_on(self) -> None:
        self._go_on.set()
        for future in self._futures:
            future.result(timeout=30)


def test_all_are_served_in_the_order_in_which_they_came(engine: Engine) -> None:
    line = Line(engine)
    line.transact("one")
    line.transaction("two")
    line.transact("three")
    line.transact("four")

    line.go_on()

    assert line.log == ["one", "two begins", "two ends", "three", "four"]


def test_transactions_that_wait_when_the_store_is_closed_are_still_run(engine: Engine) -> None:
    line = Line(engine)
    line.transact("one")
    line.transaction("two")
    line.transact("three")
    line.close()
    with pytest.raises(StoreClosed):
        engine.transact(lambda tx: None)

    line.go_on()

    assert line.log == ["one", "two begins", "two ends", "three", "closed"]


def test_two_who_close_a_store_at_the_same_time_both_find_it_closed(engine: Engine) -> None:
    line = Line(engine)
    line.transact("one")
    line.close()
    line.close()

    line.go_on()

    assert line.log == ["one", "closed", "closed"]


def test_closing_inside_a_transaction_is_refused_and_does_no_harm(engine: Engine) -> None:
    with pytest.raises(RuntimeError, match="let it end first"):
        engine.transact(lambda tx: engine.close())

    engine.transact(lambda tx: tx.put(b"a", b"1"))


def interrupt_the_main_thread(
    path: str, durability: str, kind: type[BaseException], connection: Connection
) -> None:
    """A signal handler that raises at random moments of a main thread that writes, beside others
    that write too."""
    engine = open_engine(path, durability=durability)
    counts = [0, 0, 0]
    stopped = armed = False

    def count(number: int) -> None:
        while not stopped:
            engine.transact(lambda tx: tx.add(b"%d" % number, 1))
            counts[number] += 1

    def strike(*_: object) -> None:
        nonlocal armed
        if armed:
            armed = False
            raise kind

    def write_until_interrupted(seconds: float) -> None:
        nonlocal armed
        armed = True
        signal.setitimer(signal.ITIMER_REAL, seconds)
        while armed:
            engine.transact(lambda tx: tx.put(b"main", b""))
            with engine.transaction() as tx:
                tx.put(b"main", b"")

    signal.signal(signal.SIGALRM, strike)
    threads = [threading.Thread(target=count, args=(number,)) for number in range(len(counts))]
    for thread in threads:
        thread.start()
    chance = random.Random(1)
    interrupts = 0
    for _ in range(INTERRUPTS):
        try:
            write_until_interrupted(chance.uniform(0.00002, 0.001))
        except kind:
            interrupts += 1
    stopped = True
    for thread in threads:
        thread.join()
    with engine.view() as view:
        connection.send((interrupts, counts, [read_counter(view.get(b"%d" % n)) for n in range(3)]))
    engine.close()


class TimeLimit(Exception):
    """What a handler of SIGALRM may raise."""


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, TimeoutError, TimeLimit])
def test_a_signal_handler_that_raises_at_any_moment_stops_no_one_and_runs_nothing_twice(
    tmp_path: Path, durability: str, kind: type[BaseException]
) -> None:
    child = start(interrupt_the_main_thread, str(tmp_path), durability, kind)

    interrupts, acknowledged, stored = child.receive()

    assert interrupts > INTERRUPTS / 2
    assert acknowledged == stored
    assert child.join() == 0


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, TimeoutError, TimeLimit])
@pytest.mark.parametrize("size", [1, 2])
def test_what_a_signal_handler_raises_in_the_work_of_another_thread_is_not_its_outcome(
    engine: Engine, kind: type[BaseException], size: int
) -> None:
    def strike(*_: object) -> None:
        raise kind

    def interrupted(tx: Transaction) -> None:
        tx.add(b"n", 1)
        if strikes:
            strikes.pop()
            signal.raise_signal(signal.SIGUSR1)

    strikes = [1]
    commits: Any = engine._commits  # type: ignore[attr-defined]
    leader, *others = [CommitRequest((interrupted,), (b"",)) for _ in range(3)]
    before = signal.signal(signal.SIGUSR1, strike)
    try:
        with pytest.raises(kind):
            commits.run(others[:size], leader)
        assert [request.outcomes for request in others] == [None, None]
        commits.run(others, leader)
    finally:
        signal.signal(signal.SIGUSR1, before)

    outcomes = [outcome for request in others for outcome in request.outcomes or ()]
    assert [outcome.error for outcome in outcomes] == [None, None]
    assert engine.transact(lambda tx: read_counter(tx.get(b"n"))) == 2


@pytest.mark.parametrize("size", [1, 2])
def test_what_the_work_of_another_thread_raises_is_its_outcome(engine: Engine, size: int) -> None:
    def fail(tx: Transaction) -> None:
        raise SystemExit

    commits: Any = engine._commits  # type: ignore[attr-defined]
    leader, *others = [CommitRequest((fail,), (b"",)) for _ in range(size + 1)]

    commits.run(others, leader)

    outcomes = [outcome for request in others for outcome in request.outcomes or ()]
    assert [type(outcome.error) for outcome in outcomes] == [SystemExit] * size


def test_after_control_c_in_a_group_that_is_run_one_by_one_what_is_done_does_not_run_again(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A group that is too large for the disk is run like that."""
    commits: Any = engine._commits  # type: ignore[attr-defined]
    requests = [CommitRequest((lambda tx: tx.add(b"n", 1),), (b"",)) for _ in range(2)]
    run_alone, ran = commits._run_alone, list[int]()

    def refuse(*arguments: object) -> None:
        raise StoreFull("by wish of the test")

    def interrupted(work: Work, space: bytes) -> Any:
        if ran:
            raise KeyboardInterrupt
        ran.append(1)
        return run_alone(work, space)

    monkeypatch.setattr(commits, "_run_together", refuse)
    monkeypatch.setattr(commits, "_run_alone", interrupted)
    with pytest.raises(KeyboardInterrupt):
        commits.run(requests, requests[0])

    assert [request.outcomes is not None for request in requests] == [True, False]
    assert engine.transact(lambda tx: read_counter(tx.get(b"n"))) == 1
