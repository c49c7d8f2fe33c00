"""Batches of events, their ids and their times."""

from typing import Any

import pytest

from holdfast.errors import BadInput, ExpandsTooFar, HoldfastError
from holdfast.store import Store
from holdfast.testing import Clock
from tests.events.conftest import Send, keys, values
from tests.plain_keys import keys_below

DAY = 86_400


def test_a_bad_event_of_a_batch_fails_alone(store: Store) -> None:
    store.events.deploy({"e": [{"targets": ["['s']"], "add": "v"}]})

    reply = store.events.send_many(
        [
            {"name": "e", "attributes": {"v": 1}},
            {"name": "", "attributes": {"v": 2}},
            {"name": "e", "attributes": {"v": {}}},
            {"name": "e", "attributes": {"v": 3}},
        ]
    )

    assert values(store, "s") == ["3", "1"]
    assert (reply.accepted, [error.position for error in reply.errors]) == (2, [1, 2])
    assert "empty segment" in reply.errors[0].message


def test_what_an_event_wrote_before_it_failed_is_taken_back(store: Store) -> None:
    store.events.deploy(
        {
            "join": [{"targets": ["[club].members"], "add": "who"}],
            "news": [
                {"targets": ["['log', 'big']"], "add": "text"},
                {"targets": ["['counts']"], "count_frequency": "text"},
                {"targets": ["[club].members", "[club].members", "['n']"], "add": "text"},
            ],
        }
    )
    small = {"name": "news", "attributes": {"club": "small", "text": "first"}}
    large = {"name": "news", "attributes": {"club": "large", "text": "second"}}
    join = [
        {"name": "join", "attributes": {"club": "large", "who": [str(n) for n in range(300)]}},
        {"name": "join", "attributes": {"club": "small", "who": "ann"}},
    ]

    reply = store.events.send_many([*join, small, large, small])

    assert [(error.position, error.message) for error in reply.errors] == [
        (3, "expands to 90000 keys, the limit is 10000")
    ]
    assert values(store, "log") == ["first"]
    assert store.events.gross("log") == 2
    assert [(entry.value, entry.count) for entry in store.events.top("counts")] == [("first", 2)]


def test_a_failing_event_undoes_a_change_of_form(store: Store) -> None:
    store.events.deploy(
        {
            "fill": [{"targets": ["['s']"], "add": "v"}],
            "fail": [
                {"targets": ["['s']"], "add": "v"},
                {"targets": ["['b']"], "count_frequency": "v"},
                {"targets": ["['s']"], "add": "'one more'", "max_stored_values": 5},
                {"targets": ["[v]", "[v]", "['none'].x"], "add": "v"},
                {"targets": ["[v]", "[v]"], "add": "v"},
            ],
        }
    )
    before = [str(number) for number in range(250)]
    more = [str(number) for number in range(250, 500)]
    store.events.send({"name": "fill", "attributes": {"v": before}})

    reply = store.events.send_many([{"name": "fail", "attributes": {"v": more}}])

    assert len(reply.errors) == 1
    assert values(store, "s") == before[::-1]
    assert store.events.distinct("s").count == 250
    assert keys(store) == ["s"]


def test_a_batch_has_a_bound_and_a_stream_has_none(store: Store) -> None:
    store.events.deploy({"e": [{"targets": ["['s']"], "add": "v", "max_stored_values": 2}]})
    events = ({"name": "e" if n % 1_000 else "", "attributes": {"v": n}} for n in range(2_500))

    with pytest.raises(HoldfastError, match="10001 events"):
        store.events.send_many([{"name": "e"}] * 10_001)
    reply = store.events.send_stream(events)

    assert reply.accepted == 2_497
    assert [error.position for error in reply.errors] == [0, 1_000, 2_000]
    assert values(store, "s") == ["2499", "2498"]


@pytest.mark.parametrize("events", [None, 17, "abc", {"name": "e"}, iter([{"name": "e"}])])
def test_what_is_no_list_of_events_is_refused(store: Store, events: Any) -> None:
    with pytest.raises(BadInput, match="a batch must be a list of events"):
        store.events.send_many(events)


def test_a_second_event_with_the_same_id_changes_nothing(
    store: Store, clock: Clock, send: Send
) -> None:
    store.events.deploy({"e": [{"targets": ["['s']"], "add": "v"}]})
    first = send("e", v=1, _id="one")

    second = send("e", v=2, _id="one")
    clock.advance(seconds=DAY - 1)
    third = send("e", v=3, _id="one")

    assert (first.duplicate, second.duplicate, third.duplicate) == (False, True, True)
    assert (second.handlers, second.keys) == (0, 0)
    assert values(store, "s") == ["1"]


def test_an_id_is_forgotten_after_the_dedup_window(store: Store, clock: Clock, send: Send) -> None:
    store.events.deploy({"e": [{"targets": ["['s']"], "add": "v"}]})
    send("e", v=1, _id="one")
    stored = keys_below(store, store)

    clock.advance(seconds=DAY)
    again = send("e", v=2, _id="one")
    clock.advance(seconds=2 * DAY)
    store.sweep()

    assert not again.duplicate
    assert values(store, "s") == ["2", "1"]
    assert keys_below(store, store) == stored - 2


def test_a_duplicate_within_a_batch_is_accepted_and_does_nothing(store: Store) -> None:
    store.events.deploy({"e": [{"targets": ["['s']"], "add": "v"}]})
    event = {"name": "e", "attributes": {"v": 1}, "id": "one"}

    reply = store.events.send_many([event, event])

    assert (reply.accepted, store.events.gross("s")) == (2, 1)


def test_a_failed_event_does_not_use_up_its_id(store: Store) -> None:
    store.events.deploy({"e": [{"targets": ["[a]", "[a]"], "add": "'v'"}]})
    many = [str(number) for number in range(101)]

    with pytest.raises(ExpandsTooFar):
        store.events.send({"name": "e", "attributes": {"a": many}, "id": "one"})
    reply = store.events.send({"name": "e", "attributes": {"a": "x"}, "id": "one"})

    assert not reply.duplicate


def test_a_late_event_takes_its_place_by_its_time(store: Store, send: Send) -> None:
    store.events.deploy({"e": [{"targets": ["['s']"], "add": "v", "max_stored_values": 3}]})

    for value, at in (("b", 2_000), ("d", 4_000), ("a", 1_000), ("c", 3_000), ("d", 500)):
        send("e", v=value, _at=at)

    page = store.events.members("s")
    assert [(member.value, member.at) for member in page.members] == [
        ("d", 4_000),
        ("c", 3_000),
        ("b", 2_000),
    ]
    assert (store.events.gross("s"), store.events.distinct("s").count) == (5, 4)
