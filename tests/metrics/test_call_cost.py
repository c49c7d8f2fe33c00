"""Calls of metrics whose work is a product are limited in processor time."""

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from holdfast import Store
from holdfast.errors import BatchTooLong, UnknownMetric
from holdfast.metrics import registry

NOW = 1_000_000.0
SKETCHES = {"d": {"type": "distribution", "sequences": [{"timeStep": 1, "expiry": 1_000}]}}
LIMIT = {"c": {"limit": 1_000, "window": 60}}
HITS = [{"condition": "c", "entity": [number]} for number in range(20)]
RECORDS = [{"metric": "d", "op": "record", "value": 1 + n, "at": NOW - n} for n in range(20)]


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Makes every part of a call take a second of processor time, from now on."""
    seconds = itertools.count()
    return lambda: monkeypatch.setattr("holdfast.call_time.thread_time", lambda: next(seconds))


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(lambda m: m.write(RECORDS), id="writes"),
        pytest.param(lambda m: m.define({f"x{n}": {} for n in range(20)}), id="define"),
        pytest.param(lambda m: m.define_limits({f"x{n}": "1/s" for n in range(20)}), id="limits"),
        pytest.param(lambda m: m.try_incr(HITS, LIMIT), id="try_incr"),
        pytest.param(lambda m: m.require(HITS, LIMIT, algorithm="log"), id="require"),
        pytest.param(lambda m: m.limit_incr(HITS, LIMIT, algorithm="log"), id="limit_incr"),
        pytest.param(lambda m: m.peek(HITS, LIMIT), id="peek"),
        pytest.param(
            lambda m: m.distribution("d", start=NOW - 30, end=NOW, at=NOW), id="distribution"
        ),
        pytest.param(
            lambda m: m.distribution("d", latest=1, at=NOW, quantiles=[n / 20 for n in range(20)]),
            id="quantiles",
        ),
        pytest.param(
            lambda m: m.series("d", start=NOW - 30, end=NOW, step=1, value="p50", at=NOW),
            id="series",
        ),
    ],
)
def test_a_call_whose_parts_take_long_is_refused(
    store: Store, slow: Callable[[], None], call: Callable[[Any], Any]
) -> None:
    store.metrics.define(SKETCHES)
    store.metrics.write(RECORDS)

    slow()

    with pytest.raises(BatchTooLong):
        call(store.metrics)


def test_the_error_for_an_unknown_metric_reads_few_names(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.metrics.define({f"name{number:02}": {} for number in range(20)})
    monkeypatch.setattr(registry, "MAX_COMPARED_NAMES", 5)

    with pytest.raises(UnknownMetric) as near_the_first:
        store.metrics.incr("name0x")
    with pytest.raises(UnknownMetric) as near_the_last:
        store.metrics.incr("nam_19")

    assert "did you mean" in str(near_the_first.value)
    assert "name19" not in str(near_the_last.value)
