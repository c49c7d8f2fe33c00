"""Random specs, writes and reads against a model that is as simple as can be."""

import math
from collections import Counter
from fractions import Fraction
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.testing import Clock
from tests.stores import Stores

steps = st.sampled_from([0.1, 0.7, 1, 5, 10, 60, 7.5])
times = st.integers(0, 4_000).map(lambda tick: 1_000_000 + tick / 8)
entities = st.sampled_from([None, ["a"], ["a", 1], {"global": True, "components": ["a"]}])
modest = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@st.composite
def specs(draw: Any) -> dict[str, Any]:
    sequences = []
    for _ in range(draw(st.integers(1, 3))):
        step = draw(steps)
        sequences.append({"timeStep": step, "expiry": step * draw(st.sampled_from([1, 3.5, 20]))})
    return {"sequences": sequences, "resolution": draw(st.sampled_from([1, 10, 0.01, 0.25, 1.0]))}


writes = st.lists(
    st.tuples(entities, st.one_of(st.integers(0, 500), st.floats(0, 500)), times), max_size=25
)
reads = st.lists(st.tuples(entities, times, times, times), min_size=1, max_size=8)


class Model:
    """Increments as they came; a read adds up, slowly and by the book."""

    def __init__(self, metric: Any) -> None:
        self.metric = metric
        self.counts: Counter[tuple[str, str, int]] = Counter()

    def incr(self, entity: Any, value: float, at: float) -> None:
        units = _round(value / self.metric.resolution)
        for sequence in self.metric.sequences:
            self.counts[sequence.name, repr(entity), math.trunc(at / sequence.time_step)] += units

    def total(self, entity: Any, start: float, end: float, now: float) -> Any:
        resolution = self.metric.resolution
        whole = isinstance(resolution, int)
        if start >= now or start == end:
            return 0 if whole else 0.0
        end = min(end, now)
        fitting = [s for s in self.metric.sequences if now - s.soft_expiry <= start]
        sequence = (fitting or self.metric.sequences[-1:])[0]
        step = sequence.time_step
        first, last = math.trunc(start / step), math.trunc(end / step)
        added: float = 0
        for bucket in range(first, last + 1):
            count = self.counts[sequence.name, repr(entity), bucket]
            if not count or now >= (bucket + 1) * step + sequence.hard_expiry:
                continue
            begin = bucket * step
            length = min(begin + step, now) - begin
            if first == last:
                added += count * (end - start) / length if length > 0 else 0
            elif bucket == first:
                added += count * max(begin + step - start, 0) / step
            elif bucket == last:
                overlap = max(end - begin, 0)
                added += count if overlap == length else count * overlap / length
            else:
                added += count
        return _round(added) * resolution if whole else float(_round(added)) * resolution


def _round(number: float) -> int:
    """15 significant digits in decimal, then half away from zero."""
    if 1 <= number < 1e14:
        number = float(f"{number:.14e}")
    return math.floor(number + 0.5)


@modest
@given(spec=specs(), written=writes, asked=reads)
def test_reads_are_those_of_the_model(stores: Stores, spec: Any, written: Any, asked: Any) -> None:
    clock = Clock(1_000_000)
    with stores.open(clock=clock) as store:
        model = Model(store.metrics.define({"m": spec})["m"])
        writer = store.metrics.writer({"m": spec})
        for entity, value, at in written:
            model.incr(entity, value, at)
            writer.set_current_time(at)
            writer.incr("m", entity, value)
        writer.flush()
        for entity, start, end, now in asked:
            start, end = min(start, end), max(start, end)
            reader = store.metrics.reader({"m": spec})
            reader.set_current_time(now)
            promise = reader.get_rate("m", entity, reader.time_range(start, end))

            total, expected = promise.total(), model.total(entity, start, end, now)
            assert type(total) is type(expected)
            assert math.isclose(total, expected, rel_tol=1e-9)


class LimitModel:
    """Every admitted hit by its bucket."""

    def __init__(self, limit: int, window: float, bucket_count: int) -> None:
        self.limit, self.window, self.step = limit, window, window / bucket_count
        self.hits: Counter[int] = Counter()

    def total(self, now: float, *, strict: bool) -> int:
        start = max(now - self.window, 0)
        first = math.trunc(start / self.step)
        added: float = 0
        for bucket, count in sorted(self.hits.items()):
            if bucket > first or (strict and bucket == first):
                added += count
            elif bucket == first:
                added += count * max((bucket + 1) * self.step - start, 0) / self.step
        return _round(added)

    def hit(self, now: float, amount: int, *, strict: bool) -> bool:
        allowed = self.total(now, strict=strict) + amount <= self.limit
        if allowed:
            self.hits[math.trunc(now / self.step)] += amount
        return allowed


@modest
@given(
    limit=st.integers(0, 12),
    window=st.sampled_from([1, 7.5, 10, 60]),
    bucket_count=st.sampled_from([1, 3, 10, 30]),
    strict=st.booleans(),
    hits=st.lists(st.tuples(st.floats(0, 20), st.integers(0, 5)), max_size=40),
)
def test_limiters_admit_what_the_model_admits_and_strict_never_more_than_the_limit(
    stores: Stores,
    limit: int,
    window: float,
    bucket_count: int,
    strict: bool,
    hits: list[tuple[float, int]],
) -> None:
    clock = Clock(1_784_500_000)
    model = LimitModel(limit, window, bucket_count)
    admitted: list[tuple[float, int]] = []
    with stores.open(clock=clock) as store:
        limiter = store.metrics.limiter(
            {"c": {"limit": limit, "window": window}},
            bucket_count=bucket_count,
            algorithm="strict" if strict else "estimate",
        )
        for wait, amount in hits:
            clock.advance(seconds=round(wait, 3))
            before = model.total(clock(), strict=strict)
            result = limiter.try_incr("c", amount=amount)
            assert result.prev_total == before
            assert result.allowed == model.hit(clock(), amount, strict=strict)
            if result.allowed:
                admitted.append((clock(), amount))
    if strict:
        for begin, _ in admitted:
            inside = [amount for at, amount in admitted if begin <= at < begin + window]
            assert sum(inside) <= limit


class CellModel:
    """A bucket of tokens, as fractions would have it."""

    def __init__(self, limit: int, window: int, capacity: int) -> None:
        self.refill = Fraction(limit, window * 1_000_000)
        self.capacity = Fraction(capacity)
        self.tokens = self.capacity
        self.at = 0

    def take(self, at: int, amount: int) -> bool:
        self.tokens = min(self.capacity, self.tokens + (at - self.at) * self.refill)
        self.at = at
        if amount > self.tokens:
            return False
        self.tokens -= amount
        return True


@modest
@given(
    limit=st.integers(1, 50),
    window=st.integers(1, 60),
    burst=st.integers(1, 20),
    takes=st.lists(st.tuples(st.integers(0, 3_000_000), st.integers(0, 6)), max_size=30),
)
def test_a_token_bucket_is_exact(
    stores: Stores, limit: int, window: int, burst: int, takes: list[tuple[int, int]]
) -> None:
    clock = Clock(1_000)
    model = CellModel(limit, window, burst)
    at = 0
    with stores.open(clock=clock) as store:
        condition = {"limit": limit, "window": window, "burst": burst}
        limiter = store.metrics.limiter({"c": condition}, algorithm="token_bucket")
        for wait, amount in takes:
            at += wait
            clock.set(1_000 + at / 1_000_000)
            result = limiter.try_incr("c", amount=amount)
            assert result.allowed == model.take(at, amount)
            assert result.remaining == math.floor(model.tokens)
