"""When a server collects garbage, and returns memory to the system."""

import asyncio

from holdfast.server.back_pressure import BackPressure
from holdfast.server.client_limits import MemoryBudget
from holdfast.server.memory import FullCollections, MemoryWatch

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
            seen.append(memory.should_return_memory())
            if seen[-1]:
                memory.note_returned()
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


class Collector:
    """Notes what it is told to do, and how many blocks it would look at."""

    def __init__(self, *blocks: int) -> None:
        self.blocks = blocks[0] * 1_000
        self.frozen = self.blocks
        self.number = 0  # of the look
        self.done: list[tuple[int, str]] = []
        self.replaced = 0  # frozen objects that are gone
        self.most = 0  # blocks that a collection has looked at, besides those of the start
        self._full_collections = FullCollections(lambda: self.blocks, self)
        self.look(*blocks[1:])

    def look(self, *blocks: int) -> None:
        for self.number, size in enumerate(blocks):
            self.blocks = size * 1_000
            self._full_collections.collect_if_due()

    def collect(self) -> None:
        self.done.append((self.number, "collect"))
        self.most = max(self.most, self.blocks - self.frozen)

    def freeze(self) -> None:
        self.done.append((self.number, "freeze"))
        self.frozen = self.blocks

    def get_freeze_count(self) -> int:
        return self.frozen - self.replaced

    def unfreeze(self) -> None:
        self.done.append((self.number, "unfreeze"))
        self.frozen = 500_000


def collections(*blocks: int) -> list[int]:
    """Looks at a process of so many thousand blocks, one after the other; returns the numbers of
    the looks at which garbage was collected."""
    return [number for number, what in Collector(*blocks).done if what == "collect"]


def test_full_collections_is_collected_once_when_a_process_has_grown() -> None:
    assert collections(500, 540, 600, 600, 600) == [1]


def test_nothing_is_collected_in_the_midst_of_a_flood() -> None:
    assert collections(500, 3_000, 2_000, 3_000, 510, 510) == []


def test_what_a_flood_has_left_is_collected_after_it() -> None:
    assert collections(500, 3_000, 3_000, 600, 600) == [2]


def test_objects_of_a_process_that_stays_large_are_frozen_and_not_looked_at() -> None:
    seen = Collector(500, *[3_000] * 100, *[3_700] * 10, 3_100, *[3_000] * 10, *[3_900] * 100)

    assert seen.done == [(59, "freeze"), (180, "freeze")]
    assert seen.most == 0


def test_what_comes_after_frozen_objects_is_collected_as_at_the_start() -> None:
    seen = Collector(500, *[900] * 60, *[1_030] * 10)

    assert seen.done == [(59, "freeze"), (60, "collect")]
    assert seen.most == 130_000


def test_objects_that_have_replaced_frozen_ones_are_not_looked_at() -> None:
    collector = Collector(500, *[3_000] * 60)
    collector.replaced = 2_000_000
    collector.look(2_000, 3_050)

    assert [what for _, what in collector.done] == ["freeze"]

    collector.look(*[3_050] * 60)
    assert [what for _, what in collector.done] == ["freeze", "freeze"]


def test_frozen_objects_are_collected_when_the_process_is_small_again() -> None:
    seen = Collector(500, *[3_000] * 60, 2_000, 600, 600)

    thawed = [(61, "unfreeze"), (61, "collect"), (61, "freeze")]
    assert seen.done == [(59, "freeze"), *thawed]
    assert seen.most == 100_000


def test_a_process_that_has_grown_anyway_is_collected_if_it_has_few_objects() -> None:
    collector = Collector(500, 510)
    collector._full_collections.collect_if_due(is_worthwhile=True)
    collector.blocks = 3_000_000
    collector._full_collections.collect_if_due(is_worthwhile=True)

    assert collector.done == [(0, "collect")]
