"""Turns of the event loop: what is much is done in pieces, and others come in between."""

import asyncio
from collections.abc import Iterator

import pytest

from holdfast.limits import (
    CROWDED_TURN_CONNECTIONS,
    CROWDED_TURN_SECONDS,
    ENDED_PER_TURN,
    TURN_SECONDS,
    TURN_SENT_BYTES,
)
from holdfast.server import loop_turns as module
from holdfast.server.loop_turns import LoopTurns


class Clock:
    """The time of these tests: it passes when work is done."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def monotonic(self) -> float:
        return self.now

    def work(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(module, "time", clock)
    return clock


async def next_turn() -> None:
    await asyncio.sleep(0)


def test_a_turn_is_over_when_it_has_taken_long_and_the_next_one_is_not(clock: Clock) -> None:
    async def ask() -> list[bool]:
        turns = LoopTurns(asyncio.get_running_loop())
        seen = [turns.is_over()]
        clock.work(0.001)
        seen.append(turns.is_over())
        clock.work(0.1)
        seen.append(turns.is_over())
        await next_turn()
        seen.append(turns.is_over())
        return seen

    assert asyncio.run(ask()) == [False, False, True, False]


def test_a_turn_is_over_when_much_was_sent(clock: Clock) -> None:
    async def ask() -> list[bool]:
        turns = LoopTurns(asyncio.get_running_loop())
        turns.note_sent(TURN_SENT_BYTES // 2)
        seen = [turns.is_over()]
        turns.note_sent(TURN_SENT_BYTES)
        seen.append(turns.is_over())
        await next_turn()
        seen.append(turns.is_over())
        return seen

    assert asyncio.run(ask()) == [False, True, False]


def test_steps_are_taken_over_several_turns_and_in_order(clock: Clock) -> None:
    taken: list[str] = []

    def steps(name: str, count: int) -> Iterator[None]:
        for number in range(count):
            clock.work(0.001)
            taken.append(f"{name} {number}")
            yield

    async def go() -> list[int]:
        turns = LoopTurns(asyncio.get_running_loop())
        assert not turns.is_over()
        turns.run_steps(steps("first", 12))
        turns.run_steps(steps("second", 2))
        seen = [len(taken)]
        while turns.has_steps_left:
            await next_turn()
            seen.append(len(taken))
        return seen

    seen = asyncio.run(go())

    assert taken == [*(f"first {number}" for number in range(12)), "second 0", "second 1"]
    assert seen[0] < 12
    assert len(set(seen)) > 2


def test_steps_that_fail_keep_no_others_back(clock: Clock) -> None:
    taken = []

    def failing() -> Iterator[None]:
        yield
        raise ValueError("on purpose")

    def working() -> Iterator[None]:
        taken.append("done")
        yield

    async def go() -> None:
        turns = LoopTurns(asyncio.get_running_loop())
        turns.run_steps(failing())
        turns.run_steps(working())

    asyncio.run(go())

    assert taken == ["done"]


def test_work_that_is_put_off_is_done_in_turns_of_bounded_length(clock: Clock) -> None:
    done: list[int] = []

    def piece() -> None:
        clock.work(TURN_SECONDS / 2)
        done.append(1)

    async def go() -> int:
        turns = LoopTurns(asyncio.get_running_loop())
        for _ in range(20):
            turns.put(piece)
        most = 0
        while len(done) < 20:
            before = len(done)
            await next_turn()
            most = max(most, len(done) - before)
        return most

    assert 1 <= asyncio.run(go()) <= 6


def test_requests_that_wait_for_a_turn_begin_one_after_the_other(clock: Clock) -> None:
    begun: list[int] = []

    async def go() -> None:
        turns = LoopTurns(asyncio.get_running_loop())
        assert not turns.is_over()
        clock.work(0.1)

        async def request(number: int) -> None:
            await turns.wait_for_time()
            begun.append(number)

        async with asyncio.TaskGroup() as group:
            for number in range(5):
                group.create_task(request(number))

    asyncio.run(go())

    assert begun == [0, 1, 2, 3, 4]


def test_connections_that_end_together_are_closed_a_few_in_each_turn(clock: Clock) -> None:
    async def end() -> list[int]:
        turns = LoopTurns(asyncio.get_running_loop())
        closed: list[int] = []
        later = [
            turns.defer_close(lambda number=number: closed.append(number))  # type: ignore[misc]  # bound now
            for number in range(3 * ENDED_PER_TURN)
        ]
        assert later.index(True) == ENDED_PER_TURN
        counts = []
        while len(closed) < 2 * ENDED_PER_TURN:
            await next_turn()
            counts.append(len(closed))
        assert closed == list(range(ENDED_PER_TURN, 3 * ENDED_PER_TURN))
        assert not turns.defer_close(lambda: None)
        return counts

    assert asyncio.run(end()) == [ENDED_PER_TURN, 2 * ENDED_PER_TURN]


def test_a_client_waits_behind_a_flood_of_another_one_for_a_single_piece(clock: Clock) -> None:
    done: list[str] = []

    def piece(client: str) -> None:
        clock.work(TURN_SECONDS)
        done.append(client)

    async def go() -> None:
        turns = LoopTurns(asyncio.get_running_loop())
        for _ in range(10):
            turns.put(lambda: piece("many"), "many")
        turns.put(lambda: piece("one"), "one")
        while len(done) < 11:
            await next_turn()

    asyncio.run(go())

    assert done[:3] == ["many", "one", "many"]


def test_a_request_waits_behind_a_flood_of_another_client_for_a_single_one(clock: Clock) -> None:
    begun: list[str] = []

    async def go() -> None:
        turns = LoopTurns(asyncio.get_running_loop())

        async def request(client: str) -> None:
            await turns.wait_for_time(client)
            clock.work(2 * TURN_SECONDS)
            begun.append(client)

        async with asyncio.TaskGroup() as group:
            for client in ["many"] * 5 + ["one"]:
                group.create_task(request(client))

    asyncio.run(go())

    assert begun[:3] == ["many", "many", "one"]  # the first one began at once


@pytest.mark.parametrize(
    ("accepted", "seconds"), [(1, TURN_SECONDS), (CROWDED_TURN_CONNECTIONS, CROWDED_TURN_SECONDS)]
)
def test_a_turn_after_many_new_connections_is_short(
    clock: Clock, accepted: int, seconds: float
) -> None:
    async def go() -> list[bool]:
        turns = LoopTurns(asyncio.get_running_loop())
        for _ in range(accepted):
            turns.note_accepted()
        await next_turn()
        seen = [turns.is_over()]
        clock.work(0.9 * seconds)
        seen.append(turns.is_over())
        clock.work(0.2 * seconds)
        seen.append(turns.is_over())
        return seen

    assert asyncio.run(go()) == [False, False, True]


def test_what_the_loop_has_used_counts_from_the_beginning_of_a_turn(clock: Clock) -> None:
    async def ask() -> tuple[float, float]:
        turns = LoopTurns(asyncio.get_running_loop())
        turns.is_over()
        while (first := turns.used().seconds) < 0.02:
            pass
        clock.work(0.1)
        await next_turn()
        turns.is_over()
        return first, turns.used().seconds

    first, second = asyncio.run(ask())
    assert first >= 0.02
    assert second < 0.02
