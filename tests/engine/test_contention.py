"""Keys that others change at the same time are expected to change for a while, and no longer."""

import pytest

from holdfast.engine.remote import contention
from holdfast.engine.remote.contention import Contention, Habit
from holdfast.engine.remote.protocol import RangeRead
from holdfast.engine.remote.remembered_rows import Compared
from holdfast.limits import CONTENDED_SECONDS


class Watch:
    """A monotonic clock that the test turns."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


def test_a_key_that_also_begins_a_range_is_forgotten_once_its_time_is_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    watch = Watch()
    monkeypatch.setattr(contention, "time", watch)
    remembered = Contention()
    keys, pages = [b"a", b"a"], [RangeRead(b"a", b"b", 1)]
    assert not remembered.contended_among(keys, pages)

    remembered.note([b"a"])
    assert remembered.contended_among(keys, pages)
    assert not remembered.contended_among([b"c"], [RangeRead(b"b", b"c", 1)])
    watch.now += CONTENDED_SECONDS + 0.1

    assert not remembered.contended_among(keys, pages)
    assert not remembered.contended_among(keys, pages)


def test_a_key_that_two_turns_in_a_row_found_unchanged_is_contended_no_more() -> None:
    remembered = Contention()
    remembered.note([b"a", b"b"])

    remembered.note_quiet([b"a", b"b"])
    remembered.note([b"b"])
    remembered.note_quiet([b"a", b"b"])

    assert remembered.contended_among([b"a", b"b"], []) == [b"b"]


def test_a_habit_lasts_as_long_as_all_its_keys_are_contended() -> None:
    remembered = Contention()
    remembered.note([b"a", b"b"])
    work, rest = RangeRead(b"b", b"c", 1), RangeRead(b"x", b"y", 1)
    found = Compared(changed=[b"a"], same=[b"x", b"s"])

    remembered.learn_habit(b"A", "pop", [b"a", b"b"], [b"a", b"s"], [work, rest], found)
    habit = remembered.habit(b"A", "pop")
    remembered.note_quiet([b"b"])
    remembered.note_quiet([b"b"])

    assert habit == Habit(frozenset([b"a", b"b"]), [b"a"], [work])
    assert remembered.habit(b"A", "pop") is None
    assert remembered.habit(b"B", "pop") is None
