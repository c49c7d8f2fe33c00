"""When a server collects garbage, and returns memory to the system."""

import asyncio

from holdfast.server.back_pressure import BackPressure
from holdfast.server.client_limits import MemoryBudget
from holdfast.server.memory import Garbage, MemoryWatch

MEGABYTE = 1024 * 1024


def looks(*megabytes: int, held: int = 0) -> list[bool]:
    """Looks at a process of these sizes, one after the other, and returns memory when told to."""
    sizes = iter(megabytes)
    current = [next(sizes)]

    async def look() -> list[bool]:
        budget = MemoryBudget()
        budget.take(held * MEGABYTE)
        unsent = BackPressure(asyncio.get_running_loop())
        memory = MemoryWatch(budget, unsent, lambda: current[0] * MEGABYTE)
        seen = []
        for size in sizes:
            current[0] = size
            seen.append(memory.is_to_be_returned())
            if seen[-1]:
                memory.returned()
        return seen

    return asyncio.run(look())


def test_it_is_returned_once_when_a_process_has_grown_and_grows_no_more() -> None:
    assert looks(50, 200, 200, 200) == [False, True, False]


def test_a_process_that_still_grows_is_left_alone() -> None:
    assert looks(50, 100, 150, 200) == [False, False, False]


def test_a_little_is_not_worth_the_time() -> None:
    assert looks(50, 55, 55) == [False, False]


def test_what_requests_still_hold_is_not_free() -> None:
    assert looks(50, 200, 200, held=100) == [False, False]


def test_it_is_returned_again_after_it_has_grown_again() -> None:
    assert looks(50, 200, 200, 60, 100, 60) == [False, True, False, False, True]


def test_what_was_in_use_the_first_time_is_returned_later_but_more_and_more_rarely() -> None:
    seen = looks(50, 200, *[200] * 60)

    assert [number for number, is_returned in enumerate(seen) if is_returned] == [1, 9, 25, 57]


def collections(*blocks: int) -> list[int]:
    """Looks at a process with so many pieces of memory, in thousands, and collects when told to:
    the numbers of the looks at which that was."""
    sizes = iter(blocks)
    current = [next(sizes)]
    garbage = Garbage(lambda: current[0] * 1_000)
    seen = []
    for number, size in enumerate(sizes):
        current[0] = size
        if garbage.is_to_be_collected():
            seen.append(number)
            garbage.collected()
    return seen


def test_garbage_is_collected_once_when_a_process_has_grown() -> None:
    assert collections(500, 540, 600, 600, 600) == [1]


def test_nothing_is_collected_in_the_midst_of_a_flood() -> None:
    assert collections(500, 3_000, 2_000, 3_000, 510, 510) == []


def test_what_a_flood_has_left_is_collected_after_it() -> None:
    assert collections(500, 3_000, 3_000, 600, 600) == [2]


def test_a_process_that_stays_large_is_looked_at_after_a_minute_and_when_it_has_grown_again() -> (
    None
):
    assert collections(500, *[1_500] * 100, *[1_600] * 100, *[1_800] * 60) == [59, 259]


def test_a_process_of_few_objects_is_collected_in_a_moment() -> None:
    blocks = [500_000]
    garbage = Garbage(lambda: blocks[0])

    blocks[0] = 600_000
    assert garbage.is_quickly_collected()
    blocks[0] = 3_000_000
    assert not garbage.is_quickly_collected()
