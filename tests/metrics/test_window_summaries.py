"""Tallies spare a limiter its reads, and change no answer."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.metrics import Metrics
from holdfast.metrics.layout import WINDOW_SUMMARIES, keys_of
from holdfast.store import Space, Store
from holdfast.testing import Clock
from tests.repetitions import repeated
from tests.stores import Stores

CONDITIONS: Any = {"c": {"limit": 4, "window": 10}}
NAMES = ["ann", "bob"]

# Seconds on a line of four windows: hits of different clocks, out of order, and long pauses.
MOMENTS = st.integers(0, 400).map(lambda tenths: 1_000 + tenths / 10)
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["try", "try", "try", "peek", "charge", "incr", "reset", "sweep"]),
        MOMENTS,
        st.sampled_from(NAMES),
        st.integers(0, 3),
        st.sampled_from(["estimate", "strict"]),
    ),
    max_size=30,
)


def summaries(store: Space) -> list[bytes]:
    with store._runner.view() as view:
        begin = keys_of(view.space, ("WRStats",)).family(WINDOW_SUMMARIES)
        return [value for _, value in view.scan(begin, begin + b"\xff")]


def forget_summaries(store: Space) -> None:
    def clear(tx: Any) -> None:
        begin = keys_of(tx.space, ("WRStats",)).family(WINDOW_SUMMARIES)
        tx.clear(begin, begin + b"\xff")

    store._runner.transact(clear)


def call(metrics: Metrics, step: tuple[str, float, str, int, str], bucket_count: int) -> Any:
    what, at, name, amount, algorithm = step
    operation = {"condition": "c", "entity": [name], "amount": amount}
    options: Any = {"bucket_count": bucket_count, "algorithm": algorithm, "at": at}
    if what == "try":
        return metrics.try_incr([operation], CONDITIONS, **options)
    if what == "peek":
        return metrics.peek([operation], CONDITIONS, **options)
    if what == "charge":
        return metrics.limit_incr([operation], CONDITIONS, **options)
    if what == "incr":
        return metrics.incr("c", [name], amount, at=at)
    return metrics.reset([[name]], ["c"])


@settings(max_examples=repeated(40, full=100), deadline=None)
@given(steps=STEPS, bucket_count=st.sampled_from([1, 3, 10]), clock_runs=st.booleans())
def test_a_summary_changes_no_answer(
    stores: Stores, steps: Any, bucket_count: int, clock_runs: bool
) -> None:
    """One space keeps its summaries, the other one forgets them before each step."""
    clock = Clock(1_000)
    with stores.open(clock=clock) as both:
        keeps, forgets = both.space("keeps"), both.space("forgets")
        for store in (keeps, forgets):
            store.metrics.limiter(CONDITIONS, bucket_count=bucket_count)
        for step in sorted(steps, key=lambda step: step[1]) if clock_runs else steps:
            forget_summaries(forgets)
            if clock_runs:
                clock.set(step[1])
            if step[0] == "sweep":
                assert keeps.sweep() == forgets.sweep()
                continue
            assert call(keeps.metrics, step, bucket_count) == call(
                forgets.metrics, step, bucket_count
            )


def test_a_summary_goes_with_the_last_counter_that_it_repeats(store: Store, clock: Clock) -> None:
    limiter = store.metrics.limiter({"c": "3/minute"})
    for name in NAMES:
        limiter.try_incr("c", [name])
    clock.advance(seconds=50)
    limiter.try_incr("c", ["bob"])
    before = len(summaries(store))

    clock.advance(seconds=60)
    store.sweep()
    without_ann = len(summaries(store))
    clock.advance(seconds=120)
    store.sweep()

    assert (before, without_ann, summaries(store)) == (2, 1, [])


def test_a_summary_is_as_long_as_the_window_at_most(store: Store, clock: Clock) -> None:
    limiter = store.metrics.limiter({"c": "1000/minute"})

    for _ in range(300):
        limiter.try_incr("c")
        clock.advance(seconds=1)

    [summary] = summaries(store)
    assert len(summary) <= 8 * (2 + 30 + 2)


def test_another_spec_forgets_the_summaries_of_the_old_one(store: Store) -> None:
    store.metrics.limiter({"c": "3/minute"}).try_incr("c")

    other = store.metrics.limiter({"c": "3/hour"}, on_conflict="discard")

    assert summaries(store) == []
    assert other.try_incr("c").prev_total == 0
