"""Keys that others change at the same time are expected to change for a while, and no longer."""

import pytest

from holdfast.engine.remote import contention
from holdfast.engine.remote.contention import AccessPattern, Contention
from holdfast.engine.remote.protocol import RangeRead
from holdfast.engine.remote.remembered_rows import Comparison
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


def test_an_access_pattern_lasts_as_long_as_any_of_its_keys_is_contended() -> None:
    remembered = Contention()
    remembered.note([b"a", b"b"])
    work, rest = RangeRead(b"b", b"c", 1), RangeRead(b"x", b"y", 1)
    found = Comparison(changed=[b"a"], same=[b"x", b"s"])

    remembered.learn_pattern(b"A", "pop", [b"a", b"b"], [b"a", b"s"], [work, rest], found)
    pattern = remembered.pattern(b"A", "pop")
    patterns = []
    for key in (b"b", b"b", b"a", b"a"):
        remembered.note_quiet([key])
        patterns.append(remembered.pattern(b"A", "pop"))

    assert pattern == AccessPattern(frozenset([b"a", b"b"]), [b"a"], [work])
    assert patterns == [pattern, *2 * [AccessPattern(frozenset([b"a"]), [b"a"], [work])], None]
    assert remembered.pattern(b"B", "pop") is None


def test_an_access_pattern_loses_what_only_one_call_of_its_kind_has_read() -> None:
    remembered = Contention()
    remembered.note([b"count", b"job 1", b"list"])
    work = RangeRead(b"list", b"lisu", 1)
    found = Comparison(changed=[b"count", b"job 1"], same=[])
    every = [b"count", b"job 1", b"list"]
    remembered.learn_pattern(b"A", "complete", every, [b"count", b"job 1"], [work], found)

    remembered.narrow_pattern(b"A", "complete", [b"count"], [b"count", b"job 2"], [])
    narrowed = remembered.pattern(b"A", "complete")
    remembered.narrow_pattern(b"A", "complete", [b"other"], [b"other"], [])

    assert narrowed == AccessPattern(frozenset([b"count"]), [b"count"], [])
    assert remembered.pattern(b"A", "complete") is None
    remembered.narrow_pattern(b"A", "pop", [b"count"], [b"count"], [])  # it has none
    assert remembered.pattern(b"A", "pop") is None


def test_contended_keys_make_room_for_others_when_their_time_is_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    watch = Watch()
    monkeypatch.setattr(contention, "time", watch)
    remembered = Contention()
    remembered.note(b"old %d" % number for number in range(1_500))
    watch.now += CONTENDED_SECONDS + 0.1
    remembered.note(b"new %d" % number for number in range(10))

    remembered.note([b"newest"])

    assert len(remembered.contended_among([b"newest", b"new 0", b"old 0"], [])) == 2
    assert len(remembered._until) == 11
