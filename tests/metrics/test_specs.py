"""Defaults, names, order, and what can't be meant."""

import math
from typing import Any

import pytest

from holdfast.errors import BadMetricSpec, UnknownMetric
from holdfast.metrics import MetricSpec, SequenceSpec
from holdfast.metrics.specs import known_metric, normalize


def _names(sequences: Any) -> list[str]:
    spec = {"sequences": sequences}
    return [sequence.name for sequence in normalize({"m": spec})["m"].sequences]


def test_everything_has_a_default() -> None:
    metric = normalize({"m": {}})["m"]

    assert (metric.type, metric.resolution) == ("counter", 1)
    [sequence] = metric.sequences
    assert (sequence.name, sequence.time_step, sequence.soft_expiry) == ("", 600, 3600)
    assert sequence.hard_expiry == 4200
    assert normalize({"m": {"sequences": []}}) == normalize({"m": {"sequences": {}}})


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ([{}], [""]),
        ([{}, {}, {}], ["", "s1", "s2"]),
        ([{}, {}, {"name": "L"}], ["", "s1", "L"]),
        ({"fast": {}, "slow": {}}, ["", "sslow"]),
        (
            [{"name": "s2"}, {}, {}, {}, {"name": "s2"}],
            ["s2", "", "s2s2", "s3", "s2s4"],
        ),
    ],
)
def test_a_taken_name_gets_the_key_appended_until_it_is_free(given: Any, names: list[str]) -> None:
    assert _names(given) == names


def test_sequences_are_searched_by_hard_expiry_and_equal_ones_as_given() -> None:
    given = [
        {"timeStep": 60, "expiry": 100, "name": "a"},
        {"timeStep": 10, "expiry": 120, "name": "b"},
        {"timeStep": 20, "expiry": 140, "name": "c"},
    ]

    assert _names(given) == ["b", "a", "c"]


def test_the_hard_expiry_is_a_whole_number_of_seconds() -> None:
    [sequence] = normalize({"m": {"sequences": [{"timeStep": 0.1, "expiry": 2}]}})["m"].sequences

    assert (sequence.hard_expiry, type(sequence.hard_expiry)) == (3, int)


def test_typed_specs_and_the_originals_form_mean_the_same() -> None:
    typed = MetricSpec(resolution=0.01, sequences=(SequenceSpec(time_step=1, expiry=60),))
    plain = {"resolution": 0.01, "sequences": [{"timeStep": 1, "expiry": 60}]}
    other = {"resolution": 0.01, "sequences": [{"time_step": 1, "expiry": 60}]}

    assert normalize({"m": typed}) == normalize({"m": plain}) == normalize({"m": other})


@pytest.mark.parametrize(
    "spec",
    [
        {"timeStep": 10},
        {"time_step": 10},
        {"expiry": 10, "sequences": [{}]},
        {"sequences": [5]},
        {"sequences": [[]]},
        {"sequences": "day"},
        {"sequences": [{"timestep": 1}]},
        {"sequences": [{"timeStep": 1, "time_step": 1}]},
        {"sequences": [{"name": 3}]},
        {"sequences": [{"timeStep": 0}]},
        {"sequences": [{"timeStep": -1}]},
        {"sequences": [{"timeStep": "10"}]},
        {"sequences": [{"timeStep": True}]},
        {"sequences": [{"timeStep": math.nan}]},
        {"sequences": [{"timeStep": 0.0009, "expiry": 1}]},
        {"sequences": [{"timeStep": 1, "expiry": 100_001}]},
        {"sequences": [{"expiry": math.inf}]},
        {"sequences": [{"timeStep": 1e300, "expiry": 1e300}]},
        {"sequences": [{"timeStep": 1, "expiry": 1}, {"timeStep": 1e12}]},
        {"sequences": [{}] * 17},
        {"resolution": 2**53 + 1},
        {"type": "distribution", "max_bins": 65_537},
        {"resolution": 0},
        {"resolution": -0.1},
        {"resolution": math.inf},
        {"resolution": "1"},
        {"resolution": None},
        {"type": "histogram"},
        {"unknown": 1},
        {"lifetime": 1},
        {"help": 3},
        {"type": "distribution", "relative_accuracy": 1},
        {"type": "distribution", "relative_accuracy": 0},
        {"type": "distribution", "max_bins": 0},
        7,
        None,
    ],
)
def test_what_cant_be_meant_is_refused(spec: Any) -> None:
    with pytest.raises(BadMetricSpec):
        normalize({"m": spec})


@pytest.mark.parametrize("specs", [{"": {}}, {3: {}}, [], None])
def test_a_metric_has_a_name(specs: Any) -> None:
    with pytest.raises(BadMetricSpec):
        normalize(specs)


def test_the_bounds_themselves_are_possible() -> None:
    normalize({"m": {"sequences": [{"timeStep": 1, "expiry": 100_000}]}})
    normalize({"m": {"sequences": [{"timeStep": 0.001, "expiry": 1}] * 16}})


def test_an_unknown_name_is_answered_with_the_nearest_known_one() -> None:
    with pytest.raises(UnknownMetric, match="did you mean 'edits'"):
        known_metric(normalize({"edits": {}, "bytes": {}}), "edit")
    with pytest.raises(BadMetricSpec, match="did you mean 'sequences'"):
        normalize({"m": {"sequence": []}})


def test_a_help_text_that_would_fill_pages_and_scrapes_is_refused() -> None:
    with pytest.raises(BadMetricSpec, match="has 4097 characters, at most 4096"):
        normalize({"edits": {"help": "x" * 4_097}})

    assert normalize({"edits": {"help": "x" * 4_096}})


@pytest.mark.parametrize("kind", [[], {}, ["counter"], None, 5, "cake"])
def test_a_type_that_there_is_not_is_refused_whatever_it_is(kind: Any) -> None:
    with pytest.raises(BadMetricSpec, match="expected one of counter"):
        normalize({"m": {"type": kind}})
