"""Long keys on an engine with short ones."""

from hypothesis import given
from hypothesis import strategies as st

from holdfast.engine.long_keys import LongKeys

RULE = LongKeys(24)  # small, so that examples are too: keys from 8 bytes on are long
keys = st.binary(min_size=1, max_size=12) | st.builds(
    lambda letter, tail: letter * 8 + tail, st.sampled_from([b"a", b"b"]), st.binary(max_size=3)
)


def stored(key: bytes) -> bytes:
    return RULE.fold(key) if len(key) >= RULE.whole else key


@given(key=keys, begin=keys, end=keys)
def test_the_stored_range_holds_every_key_of_the_range(
    key: bytes, begin: bytes, end: bytes
) -> None:
    stored_begin, stored_end = RULE.stored_range(begin, end)

    if begin <= key < end:
        assert stored_begin <= stored(key) < stored_end
    elif len(key) < RULE.whole:
        assert not stored_begin <= stored(key) < stored_end


@given(first=keys, second=keys)
def test_only_long_keys_with_one_beginning_can_be_stored_out_of_order(
    first: bytes, second: bytes
) -> None:
    if first < second and stored(first) > stored(second):
        assert min(len(first), len(second)) >= RULE.whole
        assert first[: RULE.whole] == second[: RULE.whole]


@given(group=st.sets(keys.map(lambda key: b"a" * 8 + key)), begin=keys, end=keys)
def test_a_group_comes_out_in_the_order_of_its_whole_keys(
    group: set[bytes], begin: bytes, end: bytes
) -> None:
    pairs = [(RULE.fold(key), RULE.join(key, key[::-1])) for key in group]

    ordered = RULE.ordered(pairs, begin, end)

    assert ordered == sorted((key, key[::-1]) for key in group if begin <= key < end)


def test_a_stored_long_key_has_a_length_that_no_short_key_has() -> None:
    assert len(RULE.fold(b"k" * 100)) == RULE.stored_bytes > RULE.whole
