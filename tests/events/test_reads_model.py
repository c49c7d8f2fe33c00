"""Random events, and every read of several keys, of windows and of numbers, against plain Python.

The model keeps the events themselves and answers each question from all of them.
"""

from collections import Counter
from math import ceil
from typing import Any, NamedTuple

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, Phase, given, settings

from holdfast.events import Events
from holdfast.testing import Clock
from tests.stores import Stores

pytestmark = pytest.mark.every_engine

START = 1_700_000_000  # 2023-11-14, 22:13:20
HOUR = 3_600
HALF_LIFE = 2 * HOUR
HOURLY = "[@hour]"
SCHEMA = {
    "e": [
        {"targets": ["['seen']", "[key]"], "add": "value", "windowed_counters": True},
        {"targets": ["['kept']", "[key]"], "add": "value", "max_stored_values": 5},
        {"targets": ["['seen']", HOURLY], "add": "value"},
        {"targets": ["['board']", "[key]"], "count_frequency": "value", "weight": "weight"},
        {"targets": ["['board']", HOURLY], "count_frequency": "value"},
        {"targets": ["['hot']", "[key]"], "count_frequency": "value", "half_life": HALF_LIFE},
        {"targets": ["['paid']", "[key]"], "aggregate": "amount"},
        {"targets": ["['paid']", HOURLY], "aggregate": "amount"},
    ]
}


class Sent(NamedTuple):
    """An event of the model."""

    key: str
    value: str
    weight: int
    amount: int
    pause: int  # seconds before it is sent
    at: int = 0  # milliseconds

    def attributes(self) -> dict[str, Any]:
        return {
            "key": self.key,
            "value": self.value,
            "weight": self.weight,
            "amount": self.amount,
        }


SENT = st.builds(
    Sent,
    key=st.sampled_from("ab"),
    value=st.integers(0, 12).map(str),
    weight=st.integers(0, 9),
    amount=st.integers(-500, 5_000),
    pause=st.sampled_from([0, 1, 1, 40, 1_800, 4_000]),
)


class Model:
    """All events, in the order of their times."""

    def __init__(self, events: list[Sent]) -> None:
        self.events = events

    def of(self, *keys: str) -> list[Sent]:
        return [event for event in self.events if event.key in keys]

    def members(self, keys: str, bound: int | None = None) -> dict[str, int]:
        """The members of the sets of these keys together, newest first, with their times."""
        found: dict[str, int] = {}
        for key in keys:
            mine: dict[str, int] = {}
            for event in reversed(self.of(key)):
                mine.setdefault(event.value, event.at)
            for value, at in list(mine.items())[:bound]:
                found[value] = max(at, found.get(value, 0))
        return dict(sorted(found.items(), key=lambda pair: -pair[1]))


@settings(
    max_examples=5,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)
@given(sent=st.lists(SENT, min_size=1, max_size=30))
def test_reads_of_several_keys_say_what_the_events_say(stores: Stores, sent: list[Sent]) -> None:
    clock = Clock(START)
    with stores.open(clock=clock) as store:
        store.events.deploy(SCHEMA)
        happened = []
        for event in sent:
            clock.advance(seconds=event.pause)
            happened.append(event._replace(at=round(clock() * 1_000)))
            store.events.send({"name": "e", "attributes": event.attributes()})
        model = Model(happened)
        compare_members(store.events, model)
        compare_counts(store.events, model)
        compare_boards(store.events, model, clock())
        compare_numbers(store.events, model)
        compare_windows(store.events, model, clock())


def compare_members(events: Events, model: Model) -> None:
    newest = model.members("ab", bound=5)
    first, second = (model.members(key, bound=5) for key in "ab")
    times = sorted(newest.values())
    since, until = times[len(times) // 4] - 1, times[-1]
    expected = {
        "union": set(newest),
        "intersection": set(first) & set(second),
        "difference": set(first) - set(second),
    }
    for op, members in expected.items():
        walked, after = [], None
        while True:
            page = events.members(["kept:a", "kept:b"], 2, after, op=op)  # type: ignore[arg-type]  # one of three
            walked += [(member.value, member.at) for member in page.members]
            after = page.next
            if after is None:
                break
        assert sorted(value for value, _ in walked) == sorted(members)
        assert [at for _, at in walked] == sorted((at for _, at in walked), reverse=True)
        kept = events.keep_members(["kept:a", "kept:b"], op=op)  # type: ignore[arg-type]  # one of three
        stored = [(member.value, member.at) for member in events.members(kept.key).members]
        assert sorted(stored) == sorted(walked)
        assert (kept.size, kept.complete) == (len(members), True)
    bounded = events.members(["kept:a", "kept:b"], since=since, until=until).members
    assert {m.value: m.at for m in bounded} == {v: at for v, at in newest.items() if at > since}


def compare_counts(events: Events, model: Model) -> None:
    keys = ["seen:a", "seen:b"]
    ever = [{event.value for event in model.of(key)} for key in "ab"]
    assert events.distinct(keys).count == len(ever[0] | ever[1])
    assert events.distinct(keys, op="intersection").count == len(ever[0] & ever[1])
    assert events.distinct(keys, op="difference").count == len(ever[0] - ever[1])
    assert events.gross(keys) == len(model.events)
    assert events.distinct(events.keep_distinct(keys).key).count == len(ever[0] | ever[1])
    second = model.events[len(model.events) // 2].at // 1_000
    later = [event for event in model.events if event.at // 1_000 > second]
    since = second * 1_000 + 999
    assert events.gross(keys, since=since) == len(later)
    assert events.distinct(keys, since=since).count == len({event.value for event in later})
    since_each = [{event.value for event in later if event.key == key} for key in "ab"]
    both = events.distinct(keys, op="intersection", since=since)
    assert (both.count, both.exact) == (len(since_each[0] & since_each[1]), True)


def compare_boards(events: Events, model: Model, now: float) -> None:
    counts: Counter[str] = Counter()
    for event in model.events:
        counts[event.value] += event.weight
    expected = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    top = events.top(["board:a", "board:b"], k=100)
    assert [(entry.value, entry.count, entry.error) for entry in top] == [
        (value, count, 0) for value, count in expected
    ]
    kept = events.keep_top(["board:a", "board:b"], k=3)
    assert events.top(kept.key) == top[:3]
    fading: dict[str, float] = {}
    for event in model.events:
        age = (round(now * 1_000) - event.at) / 1_000 / HALF_LIFE
        fading[event.value] = fading.get(event.value, 0.0) + 2.0**-age
    hot = events.top(["hot:a", "hot:b"], k=100)
    assert {entry.value for entry in hot} == set(fading)
    for entry in hot:
        assert entry.score == pytest.approx(fading[entry.value], rel=0.001, abs=0.001)


def compare_numbers(events: Events, model: Model) -> None:
    for keys in (["paid:a"], ["paid:a", "paid:b"]):
        happened = model.of(*(key[-1] for key in keys))
        amounts = sorted(event.amount for event in happened)
        found = events.aggregate(keys, percentiles=[0, 50, 90, 100])
        assert (found.count, found.sum) == (len(amounts), sum(amounts))
        if not amounts:
            continue
        assert (found.min, found.max) == (amounts[0], amounts[-1])
        assert found.last in {e.amount for e in happened if e.at == happened[-1].at}
        assert found.avg == pytest.approx(sum(amounts) / len(amounts))
        for percent in (50, 90):
            rank = percent / 100 * (len(amounts) - 1)
            near = amounts[int(rank)], amounts[ceil(rank)]
            bounds = [edge + sign * 0.011 * abs(edge) for edge in near for sign in (-1, 1)]
            assert min(bounds) <= found.percentiles[f"p{percent}"] <= max(bounds)


def compare_windows(events: Events, model: Model, now: float) -> None:
    def label(at: int) -> int:
        return at // 1_000 // HOUR

    last_hour = int(now) // HOUR
    recent = [event for event in model.events if label(event.at) > last_hour - 3]
    assert events.distinct("seen:{hour}", last="3h").count == len({e.value for e in recent})
    assert events.gross("seen:{hour}", last="3h") == len(recent)
    assert {m.value for m in events.members("seen:{hour}", last="3h").members} == {
        event.value for event in recent
    }
    counts = Counter(event.value for event in recent)
    assert [
        (entry.value, entry.count) for entry in events.top("board:{hour}", last="3h")
    ] == sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    assert events.aggregate("paid:{hour}", last="3h").sum == sum(e.amount for e in recent)
    hours: dict[int, list[Sent]] = {}
    for event in model.events:
        hours.setdefault(label(event.at), []).append(event)
    steps = range(START // HOUR, last_hour + 1)
    distinct = [len({event.value for event in hours.get(step, [])}) for step in steps]
    gross = [len(hours.get(step, [])) for step in steps]
    for by, expected in (("gross", gross), ("distinct", distinct)):
        series = events.series("seen:{hour}", by, START * 1_000, round(now * 1_000))
        assert [point.value for point in series] == expected
    for by, reduced, empty in (
        ("sum", sum, 0),
        ("count", len, 0),
        ("min", min, None),
        ("max", max, None),
    ):
        series = events.series("paid:{hour}", by, START * 1_000, round(now * 1_000))
        amounts = [[event.amount for event in hours.get(step, [])] for step in steps]
        assert [point.value for point in series] == [
            reduced(each) if each else empty for each in amounts
        ]
