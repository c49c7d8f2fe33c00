"""The guard against specs that drift."""

from typing import Any

import pytest

from holdfast.errors import BadInput, RequestTooLarge, SpecConflict, UnknownMetric
from holdfast.metrics import registry
from holdfast.store import Store
from holdfast.testing import Clock

SPEC: Any = {"sequences": [{"timeStep": 10, "expiry": 100}, {"timeStep": 60, "expiry": 600}]}


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({**SPEC, "type": "gauge"}, "counter.*gauge"),
        ({**SPEC, "resolution": 0.5}, "resolution 1, not 0.5"),
        ({**SPEC, "resolution": 1.0}, "resolution 1, not 1.0"),
        ({"sequences": [{"timeStep": 20, "expiry": 100}]}, "10, not 20"),
    ],
)
def test_a_spec_that_would_misread_what_is_stored_is_refused_with_both_values(
    store: Store, changed: Any, named: str
) -> None:
    store.metrics.define({"m": SPEC})

    for use in (store.metrics.define, store.metrics.writer, store.metrics.reader):
        with pytest.raises(SpecConflict, match=named):
            use({"m": changed})


def test_discarding_deletes_what_is_stored_and_takes_the_new_spec(store: Store) -> None:
    store.metrics.define({"m": SPEC, "other": SPEC})
    store.metrics.incr("m")
    store.metrics.incr("other")

    store.metrics.define({"m": {"resolution": 0.5}}, on_conflict="discard")

    assert store.metrics.buckets("m").buckets == {}
    assert len(store.metrics.buckets("other").buckets) == 2
    store.metrics.incr("m", value=1.5)
    assert store.metrics.rate("m", latest=3600).total == 1.5


def test_discarding_refuses_to_delete_more_than_other_writers_can_wait_for(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "MAX_DISCARDED_KEYS", 4)
    new: Any = {"m": {"resolution": 0.5}}
    store.metrics.define({"m": {**SPEC, "lifetime": True}})  # 3 keys for each entity
    store.metrics.incr("m", ["one"])
    store.metrics.incr("m", ["two"])

    with pytest.raises(RequestTooLarge, match="'m' has more than 4 stored numbers"):
        store.metrics.define(new, on_conflict="discard")

    assert store.metrics.lifetime("m", ["two"]) == 1
    store.metrics.reset([["two"]], ["m"])
    store.metrics.define(new, on_conflict="discard")
    assert store.metrics.buckets("m").buckets == {}


def test_changed_expiry_and_more_or_fewer_sequences_are_fine(store: Store) -> None:
    store.metrics.define({"m": SPEC})
    store.metrics.define({"m": {"sequences": [{"timeStep": 10, "expiry": 5000}]}})
    store.metrics.define({"m": {"sequences": [{"timeStep": 10.0}, {"timeStep": 60}, {}]}})
    store.metrics.define({"m": SPEC})


def test_a_sequence_that_was_left_out_for_a_while_is_not_misread_later(
    store: Store, clock: Clock
) -> None:
    store.metrics.define({"m": SPEC})
    store.metrics.incr("m")
    store.metrics.define({"m": {"sequences": [{"timeStep": 10, "expiry": 100}]}})

    reused = {"sequences": [{"timeStep": 10, "expiry": 100}, {"timeStep": 7, "expiry": 200}]}
    with pytest.raises(SpecConflict, match="60, not 7"):
        store.metrics.define({"m": reused})

    clock.advance(seconds=2000)
    store.sweep()
    store.metrics.define({"m": reused})


def test_a_condition_with_another_window_or_bucket_count_is_refused(store: Store) -> None:
    store.metrics.limiter({"c": "10/minute"})

    store.metrics.limiter({"c": "99/minute"})
    store.metrics.limiter({"c": "10/minute"}, algorithm="strict")
    for conditions, count in (({"c": "10/hour"}, 30), ({"c": "10/minute"}, 60)):
        with pytest.raises(SpecConflict):
            store.metrics.limiter(conditions, bucket_count=count)
    with pytest.raises(SpecConflict, match="60 seconds in 30 buckets, not 120 in 60"):
        store.metrics.limiter({"c": "10 per 2 minutes"}, bucket_count=60)
    operation = {"condition": "c"}
    for call in (store.metrics.try_incr, store.metrics.peek, store.metrics.limit_incr):
        with pytest.raises(SpecConflict):
            call([operation], {"c": "10/hour"})
    store.metrics.limiter({"c": "10/hour"}, on_conflict="discard")


def test_a_limiter_may_use_a_metric_that_was_defined_with_the_same_step(store: Store) -> None:
    store.metrics.define({"c": {"sequences": [{"timeStep": 2, "expiry": 10}]}})

    limiter = store.metrics.limiter({"c": "3/minute"})
    store.metrics.incr("c")

    assert limiter.try_incr("c").new_total == 2
    assert store.metrics.rate("c", latest=60).total == 2


def test_other_prefixes_have_other_specs(store: Store) -> None:
    store.metrics.define({"m": SPEC}, prefix="one")
    store.metrics.define({"m": {"resolution": 0.1}}, prefix="two")
    store.metrics.define({"m": {"resolution": 0.2}}, prefix=["one", "two"])


def test_no_spec_of_a_set_is_stored_if_one_is_refused(store: Store) -> None:
    store.metrics.define({"m": SPEC})

    with pytest.raises(SpecConflict):
        store.metrics.define({"a": SPEC, "m": {"resolution": 2}})

    assert store.metrics.define({"a": {"resolution": 3}})["a"].resolution == 3


def test_on_conflict_knows_two_words(store: Store) -> None:
    with pytest.raises(BadInput):
        store.metrics.define({"m": SPEC}, on_conflict="replace")  # type: ignore[arg-type]  # on purpose


def test_a_limiter_knows_no_other_words_either(store: Store) -> None:
    store.metrics.limiter({"hits": "3/minute"}).incr("hits")
    word: Any = "drop"

    with pytest.raises(BadInput):
        store.metrics.limiter({"hits": "3/hour"}, on_conflict=word)

    assert store.metrics.limiter({"hits": "3/minute"}).peek("hits").prev_total == 1


def test_another_relative_accuracy_would_misread_the_bins(store: Store) -> None:
    store.metrics.define({"times": {"type": "distribution"}})

    with pytest.raises(SpecConflict, match=r"0\.01, not 0\.02"):
        store.metrics.define({"times": {"type": "distribution", "relative_accuracy": 0.02}})


def test_an_unknown_metric_with_a_long_name_is_shown_by_its_beginning(store: Store) -> None:
    with pytest.raises(UnknownMetric) as caught:
        store.metrics.incr("m" * 100_000)

    assert "unknown metric 'mmm" in caught.value.message
    assert len(caught.value.message) < 500
