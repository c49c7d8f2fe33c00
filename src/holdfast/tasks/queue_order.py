"""The order in which a worker asks its queues for jobs."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Final

from holdfast.errors import BadInput
from holdfast.tasks.fetching import QueueOrder, strict

__all__ = ["order_of", "round_robin", "weighted"]

_HINT: Final = "Use strict, round-robin, shuffled, or weighted with numbers: weighted a=5,b=1."


def round_robin() -> QueueOrder:
    """Starts with another queue each time, so that no queue waits until the others are empty."""
    turns = itertools.count()

    def order(queues: Sequence[str]) -> tuple[str, ...]:
        first = next(turns) % len(queues) if queues else 0
        return (*queues[first:], *queues[:first])

    return order


def weighted(weights: Mapping[str, int]) -> QueueOrder:
    """Starts with each queue in proportion to its weight; the default weight is 1.

    The turns of a queue are spread out: with a=2, b=1 they are a, b, a.
    """
    credit: dict[str, float] = {}

    def order(queues: Sequence[str]) -> tuple[str, ...]:
        if not queues:
            return ()
        for queue in queues:
            credit[queue] = credit.get(queue, 0.0) + weights.get(queue, 1)
        first = max(queues, key=lambda queue: credit[queue])
        credit[first] -= sum(weights.get(queue, 1) for queue in queues)
        rest = sorted((each for each in queues if each != first), key=lambda each: -credit[each])
        return (first, *rest)

    return order


def shuffled() -> QueueOrder:
    """Asks the queues in a new random order each time."""
    import random

    return lambda queues: tuple(random.sample(list(queues), len(queues)))


def order_of(words: str) -> QueueOrder:
    """Returns the order that `--order` names.

    >>> order_of("weighted a=2,b=1")(["a", "b"])
    ('a', 'b')
    """
    name, _, rest = words.strip().partition(" ")
    if name in ("strict", "ordered"):
        return strict
    if name == "round-robin":
        return round_robin()
    if name == "shuffled":
        return shuffled()
    if name == "weighted" and rest:
        return weighted(dict(_weight(each) for each in rest.replace(",", " ").split()))
    raise BadInput(f"{words!r} is not an order of queues", hint=_HINT)


def _weight(text: str) -> tuple[str, int]:
    queue, _, number = text.rpartition("=")
    if not queue or not number.isdigit() or int(number) < 1:
        raise BadInput(f"{text!r} is not the weight of a queue", hint=_HINT)
    return queue, int(number)
