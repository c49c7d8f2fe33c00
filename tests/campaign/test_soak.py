"""A few seconds of the soak, and what it would notice."""

import random

from tests.campaign import soak


def test_nothing_grows_while_the_same_work_is_done_over_and_over() -> None:
    result = soak.run(random.Random(17), seconds=3.0)

    assert result.broken == []
    assert result.tried["cycles"] > 60
    assert result.tried["spaces"] >= 1


def test_a_leak_of_a_little_in_each_cycle_is_noticed() -> None:
    samples = [
        soak.Sample(cycles=n * 1_000, file=2**20, memory=n * 2**20, descriptors=n, threads=9)
        for n in range(soak.SAMPLES)
    ]

    found = soak._slopes(samples)

    assert [each.split(" ")[0] for each in found] == ["memory", "descriptors"]


def test_after_a_long_warm_up_less_may_be_gained_than_before() -> None:
    def samples(cycles: int) -> list[soak.Sample]:
        return [
            soak.Sample(cycles=n * cycles, file=n * 2**20, memory=0, descriptors=9, threads=9)
            for n in range(soak.SAMPLES)
        ]

    assert soak._slopes(samples(cycles=100)) == []
    assert [each.split(" ")[0] for each in soak._slopes(samples(cycles=10_000))] == ["file"]


def test_a_wave_is_no_slope() -> None:
    samples = [
        soak.Sample(cycles=n, file=2**30 + n % 7 * 2**20, memory=n % 5, descriptors=8, threads=9)
        for n in range(soak.SAMPLES)
    ]

    assert soak._slopes(samples) == []
