"""Buffers: writes that wait above a reader."""

from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.engine.write_buffer import WriteBuffer
from holdfast.errors import OutsideSpace
from tests.engine.model import END, apply, compare, keys, operation, short_keys, values


class Map:
    """The simplest reader there is."""

    def __init__(self, pairs: dict[bytes, bytes]) -> None:
        self.pairs = pairs
        self.space = b""
        self.now = 0.0

    def get(self, key: bytes) -> bytes | None:
        return self.pairs.get(key)

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        return [self.pairs.get(key) for key in keys]

    def scan(
        self, begin: bytes, end: bytes, *, limit: int | None = None, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        found = sorted(pair for pair in self.pairs.items() if begin <= pair[0] < end)
        return iter((found[::-1] if reverse else found)[:limit])


pairs = st.dictionaries(
    (keys | short_keys).filter(lambda key: not key.startswith(b"#")), values, max_size=8
)
operations = st.lists(operation, max_size=12)


@given(pairs, operations, operations, st.tuples(short_keys, short_keys))
def test_it_reads_as_if_its_writes_had_been_made(
    below: dict[bytes, bytes], first: list[tuple[object, ...]], second: list[tuple[object, ...]],
    part: tuple[bytes, bytes],
) -> None:  # fmt: skip
    kept, model = dict(below), dict(below)
    lower = WriteBuffer(Map(below), b"", 0.0)
    for each in first:
        apply(lower, model, each)
    compare(lower, model, b"", END)
    compare(lower, model, *part)

    upper = WriteBuffer(lower, b"", 0.0)
    before = dict(model)
    for each in second:
        apply(upper, model, each)
    compare(upper, model, b"", END)
    compare(upper, model, *part)
    compare(lower, before, b"", END)

    lower.merge(upper)
    compare(lower, model, b"", END)
    assert below == kept


letters = st.sampled_from([bytes((letter,)) for letter in b"abcdefgh"])


@given(st.sets(letters), st.dictionaries(letters, st.none() | values), letters, letters)
def test_the_first_pair_of_a_range_is_the_one_that_a_whole_scan_begins_with(
    below: set[bytes], writes: dict[bytes, bytes | None], begin: bytes, end: bytes
) -> None:
    buffer = WriteBuffer(Map(dict.fromkeys(below, b"below")), b"", 0.0)
    for key, value in writes.items():
        if value is None:
            buffer.delete(key)
        else:
            buffer.put(key, value)

    for reverse in (False, True):
        whole = list(buffer.scan(begin, end, reverse=reverse))
        assert list(buffer.scan(begin, end, limit=1, reverse=reverse)) == whole[:1]


@given(pairs, operations)
def test_its_writes_have_the_same_effect_on_the_reader_below(
    below: dict[bytes, bytes], writes: list[tuple[object, ...]]
) -> None:
    model = dict(below)
    buffer = WriteBuffer(Map(dict(below)), b"", 0.0)
    for each in writes:
        apply(buffer, model, each)
    for begin, end in buffer.cleared:
        for key in [key for key in below if begin <= key < end]:
            del below[key]
    for key, value in buffer.written.items():
        if value is None:
            below.pop(key, None)
        else:
            below[key] = value
    assert below == model


def test_a_scan_sees_the_writes_that_lie_ahead_of_it() -> None:
    buffer = WriteBuffer(Map({b"b": b"1", b"d": b"1", b"f": b"1"}), b"", 0.0)
    seen = []
    for key, _ in buffer.scan(b"a", b"z"):
        seen.append(key)
        if key == b"b":
            buffer.put(b"a", b"2")
            buffer.put(b"c", b"2")
            buffer.delete(b"d")
    assert seen == [b"b", b"c", b"f"]


def test_what_can_not_be_stored_is_refused_at_once() -> None:
    buffer = WriteBuffer(Map({}), b"s", 0.0)
    with pytest.raises(OutsideSpace):
        buffer.put(b"t", b"")
    with pytest.raises(OutsideSpace):
        buffer.clear(b"s", b"u")
    with pytest.raises(TypeError, match="a value must be bytes, str was given"):
        buffer.put(b"s", "text")  # type: ignore[arg-type]  # the mistake under test
    assert buffer.written == {}
