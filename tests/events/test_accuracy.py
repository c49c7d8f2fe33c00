"""Sketches at the sizes that the specification names: what they say lies within their bounds."""

import random

import pytest

from holdfast.events.counts import _estimate
from holdfast.events.set_reads import SetOperation
from holdfast.events.sketch import DIGEST_BYTES, EMPTY, update
from holdfast.events.timed_counters import TimedCounter

VALUES = 100_000


def digests(count: int) -> list[bytes]:
    """Digests of different values, which are as good as random."""
    drawn = random.Random(7).randbytes(DIGEST_BYTES * count)
    return [drawn[n * DIGEST_BYTES : (n + 1) * DIGEST_BYTES] for n in range(count)]


def test_counts_since_a_moment_are_within_8_percent_at_100_000_values() -> None:
    # The n-th value was last added in second n // 100.
    timed = TimedCounter({digest: n // 100 for n, digest in enumerate(digests(VALUES))})
    timed.use_registers()

    for second in (-1, 99, 499, 899, 989):
        truth = VALUES - 100 * (second + 1)
        assert timed.since(second).count() == pytest.approx(truth, rel=0.08)
    assert timed.since(999).count() == 0


def test_merged_counters_with_times_count_as_one_that_has_seen_all() -> None:
    seconds = {digest: n // 100 for n, digest in enumerate(digests(20_000))}
    halves = [TimedCounter(dict(list(seconds.items())[n::2])) for n in (0, 1)]
    whole = TimedCounter(dict(seconds))
    for each in (whole, *halves):
        each.use_registers()

    merged = TimedCounter()
    for half in halves:
        merged.merge(half)

    for second in (-1, 50, 150):
        assert merged.since(second).count() == whole.since(second).count()


@pytest.mark.parametrize(
    ("operation", "truth"),
    [("union", 150_000), ("intersection", 50_000), ("difference", 50_000)],
)
def test_set_operations_on_sketches_of_100_000_values_name_their_error(
    operation: SetOperation, truth: int
) -> None:
    drawn = digests(150_000)
    sketches = [update(EMPTY, b"".join(drawn[n : n + VALUES])) for n in (0, 50_000)]

    found = _estimate(sketches, operation, incomplete=False)

    assert not found.exact
    assert abs(found.count - truth) <= 3 * found.error
    assert found.error <= 0.02 * 150_000
