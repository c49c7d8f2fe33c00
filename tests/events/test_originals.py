"""The examples of the original description of MQL."""

from holdfast.events import Skipped
from holdfast.store import Store
from holdfast.testing import Clock
from tests.events.conftest import Send, values

NOON = 1_344_427_200.0  # 2012-08-08T12:00Z

SAMPLE = {
    "client:gravity:action": [
        {
            "targets": ["['unique']", "[@event_name]", "[@daily, @weekly, @monthly]"],
            "add": "@request_ip",
        }
    ],
    "client:gravity:action:follow": [
        {"targets": ["[followee].followers"], "add": "follower"},
        {
            "targets": ["[followers]", "[@weekly]"],
            "count_frequency": "followee",
            "max_stored_values": 10,
        },
    ],
}


def test_the_sample_schema_writes_unique_visitors_and_followers(
    store: Store, clock: Clock, send: Send
) -> None:
    clock.set(NOON)
    store.events.deploy(SAMPLE)

    reply = send(
        "client:gravity:action:follow", followee="user:a", follower="user:b", _ip="10.0.0.1"
    )

    unique = "unique:client:gravity:action:follow"
    for label in ("2012-08-08", "2012-W32", "2012-08"):
        assert values(store, f"{unique}:{label}") == ["10.0.0.1"]
    assert values(store, "user:a:followers") == ["user:b"]
    assert (reply.handlers, reply.keys, reply.duplicate) == (2, 4, False)
    assert reply.skipped == [
        Skipped(handler="client:gravity:action:follow[1]", missing="followers")
    ]


def test_the_third_handler_runs_for_an_event_that_has_followers(
    store: Store, clock: Clock, send: Send
) -> None:
    clock.set(NOON)
    store.events.deploy(SAMPLE)

    reply = send("client:gravity:action:follow", followee="user:a", followers="user:c")

    [entry] = store.events.top("user:c:2012-W32")
    assert (entry.value, entry.count, entry.error) == ("user:a", 1, 0)
    assert [skipped.missing for skipped in reply.skipped] == ["@request_ip", "follower"]


def test_the_third_handler_runs_with_a_literal(store: Store, clock: Clock, send: Send) -> None:
    clock.set(NOON)
    store.events.deploy(
        {"follow": [{"targets": ["['followers']", "[@weekly]"], "count_frequency": "followee"}]}
    )

    send("follow", followee="user:a")

    assert [entry.value for entry in store.events.top("followers:2012-W32")] == ["user:a"]


def test_optimistic_schemas_reach_users_and_visitors(store: Store, send: Send) -> None:
    store.events.deploy(
        {
            "visit": [
                {"targets": ["['users']"], "add": "user_id"},
                {"targets": ["['visitors']"], "add": "visitor_id"},
            ]
        }
    )

    send("visit", user_id=1)
    send("visit", visitor_id="v")
    send("visit", user_id=2, visitor_id="w")

    assert values(store, "users") == ["2", "1"]
    assert values(store, "visitors") == ["w", "v"]


def test_targets_are_the_cartesian_product_of_their_expressions(store: Store, send: Send) -> None:
    store.events.deploy({"e": [{"targets": ["['a']", "['b','c']", "['d','e','f']"], "add": "v"}]})

    explained = store.events.explain({"name": "e", "attributes": {"v": 1}})

    expected = ["a:b:d", "a:b:e", "a:b:f", "a:c:d", "a:c:e", "a:c:f"]
    assert explained.handlers[0].keys == expected


def test_the_last_step_of_an_add_names_the_set(store: Store, send: Send) -> None:
    store.events.deploy(
        {
            "link": [{"targets": ["['a','b'].artworks"], "add": "artwork"}],
            "paint": [{"targets": ["['a','b'].artworks.artists"], "add": "artist"}],
        }
    )

    send("link", artwork="mona")
    send("link", artwork="lisa")
    send("paint", artist="leonardo")

    assert values(store, "a:artworks") == values(store, "b:artworks") == ["lisa", "mona"]
    assert values(store, "mona:artists") == values(store, "lisa:artists") == ["leonardo"]
    assert values(store, "a:artworks:artists") == []


def test_boards_are_named_by_what_a_chain_looks_up(store: Store, send: Send) -> None:
    store.events.deploy(
        {
            "own": [{"targets": ["[artwork_id].partner_id"], "add": "partner"}],
            "view": [{"targets": ["[artwork_id].partner_id"], "count_frequency": "artwork_id"}],
        }
    )
    send("own", artwork_id="mona", partner="louvre")

    send("view", artwork_id="mona")
    send("view", artwork_id="mona")
    send("view", artwork_id="unknown")

    [entry] = store.events.top("louvre")
    assert (entry.value, entry.count) == ("mona", 2)
    assert [info.key for info in store.events.keys().keys] == ["louvre", "mona:partner_id"]


def test_a_set_keeps_its_newest_ten_values(store: Store, send: Send) -> None:
    store.events.deploy({"e": [{"targets": ["['s']"], "add": "v", "max_stored_values": 10}]})

    for value in range(15):
        send("e", v=value)

    assert values(store, "s") == [str(value) for value in range(14, 4, -1)]
    assert store.events.gross("s") == 15
    assert store.events.distinct("s").count == 15


def test_one_stored_value_makes_a_variable(store: Store, send: Send) -> None:
    store.events.deploy({"e": [{"targets": ["['s']"], "add": "v", "max_stored_values": 1}]})

    send("e", v="old")
    send("e", v="new")

    assert values(store, "s") == ["new"]
    assert (store.events.size("s"), store.events.distinct("s").count) == (1, 2)


def test_no_stored_value_keeps_the_counters_only(store: Store, send: Send) -> None:
    store.events.deploy({"e": [{"targets": ["['s']"], "add": "v", "max_stored_values": 0}]})

    for value in ("a", "b", "a"):
        send("e", v=value)

    assert values(store, "s") == []
    assert store.events.gross("s") == 3
    distinct = store.events.distinct("s")
    assert (distinct.count, distinct.exact) == (2, True)


def test_counters_are_switched_off_one_by_one(store: Store, send: Send) -> None:
    handlers = [
        {"targets": ["['no-gross']"], "add": "v", "store_gross_counters": False},
        {"targets": ["['no-distinct']"], "add": "v", "store_distinct_counters": False},
    ]
    store.events.deploy({"e": handlers})

    send("e", v="a")
    send("e", v="b")

    assert store.events.gross("no-gross") == 0
    assert store.events.distinct("no-gross").count == 2
    assert store.events.gross("no-distinct") == 2
    assert store.events.distinct("no-distinct").count == 0
    assert values(store, "no-gross") == values(store, "no-distinct") == ["b", "a"]
