"""What the events of one call cost together has a bound, whatever their handlers ask for."""

from itertools import count
from typing import Any

import pytest

from holdfast.errors import AnswerTooLarge, BatchTooLong, ExpandsTooFar, InvalidEvent
from holdfast.store import Store

ADD = {"targets": ["[k]"], "add": "v"}


def event(handlers: int, keys: int = 3, values: int = 3) -> dict[str, Any]:
    return {
        "name": "e",
        "attributes": {
            "k": [f"k{each}" for each in range(keys)],
            "v": [f"v{each}" for each in range(values)],
        },
        "handlers": [ADD] * handlers,
    }


def test_the_writes_of_all_handlers_of_an_event_are_limited_together(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.events.event_run.MAX_EVENT_WRITES", 20)

    store.events.send(event(2))
    with pytest.raises(ExpandsTooFar, match="27 writes of all its handlers, the limit is 20"):
        store.events.send(event(3))

    assert store.events.gross("k0") == 6  # the second one has written nothing


def test_an_event_carries_a_hundred_handlers_at_most(store: Store) -> None:
    store.events.send(event(100, keys=1, values=1))

    with pytest.raises(InvalidEvent, match="carries 101 handlers, at most 100 fit"):
        store.events.send(event(101, keys=1, values=1))


def test_events_that_take_long_together_are_refused_together(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.call_time.thread_time", count(0, 1_000).__next__)

    with pytest.raises(BatchTooLong, match="Send fewer in one call"):
        store.events.send_many([event(1), event(1)])

    assert store.events.gross("k0") == 0


def test_handlers_whose_look_ups_take_long_are_refused(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.call_time.thread_time", count(0, 1_000).__next__)
    looks_up = {**event(1), "handlers": [{"targets": ["[k].friends"], "count_frequency": "v"}]}

    with pytest.raises(BatchTooLong):
        store.events.send(looks_up)
    with pytest.raises(BatchTooLong):
        store.events.explain(looks_up)


def test_the_writes_that_an_explanation_lists_are_limited(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.events.explanations.MAX_ANSWER_BYTES", 80)

    store.events.explain(event(2))
    with pytest.raises(AnswerTooLarge, match="more than 80 bytes"):
        store.events.explain(event(3))
