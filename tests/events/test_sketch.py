"""The distinct sketch: its error is what it says, at any number of values."""

import random

import pytest

from holdfast.events.sketch import DIGEST_BYTES, EMPTY, digest, estimate, merged_estimate, update


def sketch_of(chance: random.Random, count: int) -> bytes:
    """A sketch of `count` different values; their digests are as good as random."""
    return update(EMPTY, chance.randbytes(DIGEST_BYTES * count))


@pytest.mark.parametrize(
    ("count", "runs"), [(100, 40), (1_000, 60), (10_000, 30), (100_000, 10), (1_000_000, 2)]
)
def test_the_standard_error_is_at_most_one_percent(count: int, runs: int) -> None:
    chance = random.Random(count)

    errors = [estimate(sketch_of(chance, count)) / count - 1 for _ in range(runs)]

    assert (sum(error**2 for error in errors) / runs) ** 0.5 <= 0.01
    assert abs(sum(errors) / runs) <= 0.01


def test_an_empty_sketch_has_seen_nothing() -> None:
    assert estimate(EMPTY) == 0


def test_repeats_change_nothing() -> None:
    digests = b"".join(digest(b"%d" % number) for number in range(5_000))
    once = update(EMPTY, digests)

    assert update(once, digests) == once
    assert update(EMPTY, digests * 2) == once


def test_the_order_of_values_changes_nothing() -> None:
    digests = [digest(b"%d" % number) for number in range(5_000)]
    once = update(EMPTY, b"".join(digests))

    random.Random(1).shuffle(digests)

    assert update(EMPTY, b"".join(digests)) == once


def test_sketches_are_merged_as_if_one_had_seen_all() -> None:
    digests = [digest(b"%d" % number) for number in range(30_000)]
    parts = [update(EMPTY, b"".join(digests[begin : begin + 20_000])) for begin in (0, 10_000)]

    whole = update(EMPTY, b"".join(digests))

    assert merged_estimate([*parts, EMPTY]) == pytest.approx(estimate(whole))
    assert estimate(whole) == pytest.approx(30_000, rel=0.03)


def test_a_digest_is_the_same_for_ever() -> None:
    assert digest(b"user:1").hex() == "96df4228de1f"


def test_a_sketch_that_has_seen_all_digests_still_gives_a_number() -> None:
    assert estimate(bytes([36 << 2 | 3]) * 8_192) > 1e14
