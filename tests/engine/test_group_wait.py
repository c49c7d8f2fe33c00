"""Groups that wait a moment for those who come again: for whom, how long, and what comes of it."""

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.engine import group_wait, open_engine
from holdfast.engine.contract import Engine
from holdfast.engine.group_wait import GroupWait
from holdfast.limits import GROUP_WAIT_STEP_SECONDS, MAX_GROUP_WAIT_SECONDS

Pause = Callable[[], None]


class Time:
    """A clock that moves in pauses only; `at_pause` is called in each of them."""

    def __init__(self) -> None:
        self.now = 0.0
        self.pauses = 0
        self.at_pause: Pause = lambda: None

    def perf_counter(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.pauses += 1
        self.at_pause()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Time:
    clock = Time()
    monkeypatch.setattr(group_wait, "time", clock)
    return clock


def expecting(expected_writers: int, commit_seconds: float = 60.0) -> GroupWait:
    made = GroupWait()
    made.expected_writers, made.commit_seconds = expected_writers, commit_seconds
    return made


def test_who_expects_no_one_does_not_wait(clock: Time) -> None:
    expecting(1).wait(lambda: 1)
    expecting(5).wait(lambda: 5)

    assert clock.pauses == 0


def test_where_commits_are_quick_no_one_waits(clock: Time) -> None:
    expecting(5, GROUP_WAIT_STEP_SECONDS).wait(lambda: 1)

    assert clock.pauses == 0


def test_it_waits_until_all_have_come(clock: Time) -> None:
    expecting(5).wait(lambda: 1 + clock.pauses)

    assert clock.pauses == 4


def test_it_does_not_wait_for_those_who_do_not_come(clock: Time) -> None:
    expecting(5).wait(lambda: min(1 + clock.pauses, 2))

    assert clock.pauses == 3  # one came, and then no one in two looks


@given(commit_seconds=st.floats(0, 10))
def test_it_never_waits_longer_than_a_part_of_a_commit(commit_seconds: float) -> None:
    clock = Time()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(group_wait, "time", clock)
        expecting(10_000, commit_seconds).wait(lambda: 1 + clock.pauses)

    assert clock.now <= min(commit_seconds / 2, MAX_GROUP_WAIT_SECONDS) + GROUP_WAIT_STEP_SECONDS


def test_those_who_have_gone_are_soon_expected_no_more() -> None:
    group = expecting(8)
    expected = []
    for _ in range(4):
        group.note(1, 0.001)
        expected.append(group.expected_writers)

    assert expected == [4, 2, 1, 1]
    group.note(6, 0.001)
    assert group.expected_writers == 6


# --- in an engine --------------------------------------------------------------------------------


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    engine = open_engine(tmp_path / "store", durability="commit")
    yield engine
    engine.close()


def expect(engine: Engine, callers: int) -> None:
    expected = engine._group_commit._group_wait  # type: ignore[attr-defined]  # as if so many had written before
    expected.expected_writers, expected.commit_seconds = callers, 60.0


def test_a_writer_whose_turn_is_free_still_waits_for_the_others(
    engine: Engine, clock: Time
) -> None:
    line = engine._group_commit.waiting  # type: ignore[attr-defined]  # nothing else tells that they wait
    others = [
        threading.Thread(target=engine.transact, args=(lambda tx: tx.add(b"count", 1),))
        for _ in range(2)
    ]

    def another_comes() -> None:
        others[clock.pauses - 1].start()
        while len(line) < clock.pauses:
            time.sleep(0)

    clock.at_pause = another_comes
    groups = engine.stats()["groups"]
    expect(engine, 3)
    engine.transact(lambda tx: tx.add(b"count", 1))
    for other in others:
        other.join()

    stats = engine.stats()
    assert (stats["groups"] - groups, stats["transactions"]) == (1, 3)


def test_a_turn_of_its_own_waits_for_no_one(engine: Engine, clock: Time) -> None:
    expect(engine, 3)

    with engine.transaction() as tx:
        tx.put(b"a", b"1")

    assert clock.pauses == 0


def test_control_c_while_it_waits_gives_the_turn_back(engine: Engine, clock: Time) -> None:
    def strike() -> None:
        raise KeyboardInterrupt

    clock.at_pause = strike
    expect(engine, 3)
    with pytest.raises(KeyboardInterrupt):
        engine.transact(lambda tx: tx.put(b"a", b"1"))

    clock.at_pause = lambda: None
    engine.transact(lambda tx: tx.put(b"b", b"2"))
    with engine.view() as view:
        assert (view.get(b"a"), view.get(b"b")) == (None, b"2")


def test_in_interval_mode_no_writer_waits_for_others(tmp_path: Path, clock: Time) -> None:
    engine = open_engine(tmp_path / "interval", durability="interval")

    assert engine._group_commit._group_wait is None  # type: ignore[attr-defined]
    engine.close()
