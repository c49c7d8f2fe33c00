"""Limits how long a group of writes may take: each call is bounded, but a group has a thousand.

The changes of a group stay in memory until it is committed. So a group that takes long is committed
in parts: a transaction that would begin too late raises instead, and runs with the next part.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any

from holdfast.engine.contract import NotBegun, Outcome
from holdfast.limits import MAX_GROUP_SECONDS
from holdfast.server.error_frames import forget_frames
from holdfast.store import AnyStep, Step, Store, Tx


class Postponed(NotBegun):
    """A transaction was not started, because those before it in its group took long."""


def transact_in_parts(store: Store, steps: Sequence[AnyStep]) -> list[Outcome[Any]]:
    """Runs the transactions of a group, in order, and returns their outcomes."""
    if len(steps) < 2:
        return store.transact_many(steps) if steps else []
    outcomes = store.transact_many(within_time(steps))
    while left := [at for at, each in enumerate(outcomes) if type(each.error) is Postponed]:
        for at in left:
            forget_frames(outcomes[at].error)
        again = store.transact_many(within_time([steps[at] for at in left]))
        for at, outcome in zip(left, again, strict=True):
            outcomes[at] = outcome
    return outcomes


def within_time(
    steps: Sequence[AnyStep], clock: Callable[[], float] = time.monotonic
) -> list[AnyStep]:
    """Wraps the steps so that all but the first raise `Postponed` once the group has taken long."""
    end = clock() + MAX_GROUP_SECONDS

    def in_time(work: Callable[[Tx], Any]) -> Callable[[Tx], Any]:
        def run(tx: Tx) -> Any:
            if clock() > end:
                raise Postponed
            return work(tx)

        return run

    first, *others = steps
    return [first, *(Step(step.space, in_time(step.work)) for step in others)]
