"""Chance: what is drawn is as long as was asked for, and never drawn again by anyone else."""

import os
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.engine.contract import Draws, draw


@given(st.lists(st.integers(0, 10_000), max_size=20))
def test_as_many_bytes_come_as_were_asked_for(counts: list[int]) -> None:
    assert [len(draw(count)) for count in counts] == counts


def test_no_two_draws_are_alike_in_any_threads() -> None:
    with ThreadPoolExecutor(4) as pool:
        drawn = list(pool.map(lambda _: draw(16), range(20_000)))

    assert len(set(drawn)) == len(drawn)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_process_draws_other_bytes_than_its_parent() -> None:
    draw(1)  # so that there are some to be inherited
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, draw(16))
        os._exit(0)
    os.waitpid(child, 0)
    inherited = os.read(reading, 16)
    os.close(reading)
    os.close(writing)

    assert draw(16) != inherited


def test_work_that_is_run_again_draws_the_same_again() -> None:
    draws = Draws()
    with draws:
        first = [draw(8), draw(16)]
    with draws:
        again = [draw(8), draw(16)]

    assert again == first
    assert draw(8) != first[0]
