"""The order in which a worker asks its queues."""

from collections import Counter

import pytest

from holdfast.errors import BadInput
from holdfast.tasks.queue_order import order_of

QUEUES = ["c", "b", "a"]


def drained(order: str, sizes: dict[str, int]) -> str:
    """The queues from which jobs come, one at a time, until all are empty."""
    ask, left, found = order_of(order), Counter(sizes), ""
    while left.total():
        queue = next(each for each in ask(QUEUES) if left[each])
        left[queue] -= 1
        found += queue
    return found


def test_strict_empties_one_queue_after_the_other() -> None:
    assert drained("strict", {"c": 3, "b": 2, "a": 5}) == "cccbbaaaaa"


def test_round_robin_takes_from_each_in_turn() -> None:
    assert drained("round-robin", {"c": 3, "b": 3, "a": 3}) == "cbacbacba"


def test_weights_are_kept_over_a_round_and_spread_over_it() -> None:
    taken = drained("weighted c=5,b=1", {"c": 50, "b": 10, "a": 10})[:28]

    assert Counter(taken) == {"c": 20, "b": 4, "a": 4}
    assert "cccccc" not in taken


def test_shuffled_asks_each_queue_once() -> None:
    assert sorted(order_of("shuffled")(QUEUES)) == ["a", "b", "c"]


@pytest.mark.parametrize(
    "words", ["", "fast", "weighted", "weighted a", "weighted a=0", "weighted =1"]
)
def test_what_is_no_order_is_refused_with_those_there_are(words: str) -> None:
    with pytest.raises(BadInput, match="round-robin"):
        order_of(words)
