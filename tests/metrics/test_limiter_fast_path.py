"""A single hit takes a shorter way than a batch, and says and writes the same."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.errors import LimitExceeded
from holdfast.metrics import GlobalEntityKey, LocalEntityKey
from holdfast.metrics.conditions import ALGORITHMS
from holdfast.store import Space, Store
from holdfast.testing import Clock
from tests.repetitions import repeated
from tests.stores import Stores

CONDITIONS: Any = {"c": {"limit": 9, "window": 10}, "other": {"limit": 9, "window": 10}}
ENTITIES: list[Any] = [
    None,
    ["ann", 1],
    LocalEntityKey(["ann", "1"]),
    GlobalEntityKey(["ann", 1]),
    {"ann": 1},
]

# Seconds from one hit to the next: mostly in the same bucket, sometimes windows apart, or back.
PAUSES = st.sampled_from([0.0, 0.1, 0.1, 0.3, 0.7, 1.0, 2.5, 9.9, 10.0, 11.0, 25.0, -0.4, -3.0])
HITS = st.lists(
    st.tuples(PAUSES, st.sampled_from(ENTITIES), st.sampled_from([0, 1, 1, 1, 2, 5, 10])),
    max_size=40,
)


def stored(space: Space) -> dict[bytes, bytes]:
    with space._runner.view() as view:
        begin = len(view.space)
        return {key[begin:]: value for key, value in view.scan(view.space, view.space + b"\xff")}


@settings(max_examples=repeated(40, full=100), deadline=None)
@given(
    hits=HITS,
    algorithm=st.sampled_from(ALGORITHMS),
    bucket_count=st.sampled_from([1, 4, 10]),
    begin=st.sampled_from([2.0, 1_784_500_000.125]),
)
def test_a_hit_says_and_writes_what_a_batch_does(
    stores: Stores, hits: Any, algorithm: Any, bucket_count: int, begin: float
) -> None:
    clock = Clock(begin)
    with stores.open(clock=clock) as both:
        options: Any = {"algorithm": algorithm, "bucket_count": bucket_count}
        alone, together = both.space("alone"), both.space("together")
        single = alone.metrics.limiter(CONDITIONS, **options)
        batch = together.metrics.limiter(CONDITIONS, **options)
        for pause, entity, amount in hits:
            clock.set(max(clock() + pause, 0.0))
            asked: Any = {"condition": "c", "entity": entity, "amount": amount}

            said = single.try_incr("c", entity, amount)

            # What counts nothing makes it a list of two, which takes the long way.
            assert said == batch.try_all([asked, {"condition": "other", "amount": 0}]).results[0]
        assert stored(alone) == stored(together)


def test_an_entity_that_is_kept_counts_in_the_namespace_of_its_limiter(store: Store) -> None:
    ann = LocalEntityKey(["ann"])
    one = store.metrics.limiter({"c": "3/minute"}, namespace="one")
    two = store.metrics.limiter({"c": "3/minute"}, namespace="two")

    counted = [limiter.try_incr("c", ann).new_total for limiter in (one, two, one, two, one)]

    assert counted == [1, 1, 2, 2, 3]


@pytest.mark.parametrize("algorithm", ["strict", "gcra"])
def test_a_hit_that_was_undone_is_not_remembered(store: Store, algorithm: Any) -> None:
    limiter = store.metrics.limiter({"c": "9/minute"}, algorithm=algorithm)
    limiter.try_incr("c", ["ann"])

    def fail(tx: Any) -> None:
        inner = tx.metrics.limiter({"c": "9/minute"}, algorithm=algorithm)
        inner.try_incr("c", ["ann"])
        inner.require("c", ["ann"], 100)

    with pytest.raises(LimitExceeded):
        store.transact(fail)

    assert limiter.try_incr("c", ["ann"]).prev_total == 1
