"""Random bytes: as many as were asked for, and never the same for two callers."""

import os
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.engine.contract import RepeatableRandom, random_bytes


@given(st.lists(st.integers(0, 10_000), max_size=20))
def test_as_many_bytes_come_as_were_asked_for(counts: list[int]) -> None:
    assert [len(random_bytes(count)) for count in counts] == counts


def test_no_two_draws_are_alike_in_any_threads() -> None:
    with ThreadPoolExecutor(4) as pool:
        drawn = list(pool.map(lambda _: random_bytes(16), range(20_000)))

    assert len(set(drawn)) == len(drawn)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_process_draws_other_bytes_than_its_parent() -> None:
    random_bytes(1)  # so that there are some to be inherited
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, random_bytes(16))
        os._exit(0)
    os.waitpid(child, 0)
    inherited = os.read(reading, 16)
    os.close(reading)
    os.close(writing)

    assert random_bytes(16) != inherited


def test_work_that_is_run_again_draws_the_same_again() -> None:
    draws = RepeatableRandom()
    with draws:
        first = [random_bytes(8), random_bytes(16)]
    with draws:
        again = [random_bytes(8), random_bytes(16)]

    assert again == first
    assert random_bytes(8) != first[0]
