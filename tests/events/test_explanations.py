"""Dry runs: what an event would do, with nothing written."""

from holdfast.events import Write
from holdfast.store import Store
from holdfast.testing import Clock
from tests.events.conftest import Send
from tests.plain_keys import keys_below


def test_an_explanation_names_handlers_keys_writes_and_reasons(store: Store, clock: Clock) -> None:
    store.events.deploy(
        {
            "e": [
                {"targets": ["['a', 'b']"], "add": "v"},
                {"targets": ["['c']"], "add": "w"},
                {"targets": ["['a']"], "count_frequency": "v"},
                {"enqueue": {"queue": "q", "klass": "K", "data": {"v": "v"}}},
                {"targets": ["[many]", "[many]"], "add": "v"},
            ]
        }
    )
    stored = keys_below(store, store)
    many = [str(number) for number in range(101)]

    explained = store.events.explain({"name": "e", "attributes": {"v": 1, "many": many}})

    add, lacking, wrong, job, too_many = explained.handlers
    assert (add.handler, add.operation, add.keys) == ("e[0]", "add", ["a", "b"])
    assert add.writes == [Write(key="a", value="1"), Write(key="b", value="1")]
    assert (lacking.missing, lacking.keys, lacking.writes) == ("w", [], [])
    assert (wrong.error, wrong.writes) == ("key a holds a set", [])
    assert job.job == {"queue": "q", "klass": "K", "data": {"v": "1"}}
    assert too_many.error == "expands to 10201 keys, the limit is 10000"
    assert explained.at == clock() * 1_000
    assert keys_below(store, store) == stored
    assert store.events.keys().keys == []


def test_a_handler_that_keeps_nothing_is_reported(store: Store, send: Send) -> None:
    off = {"store_gross_counters": False, "store_distinct_counters": False, "max_stored_values": 0}
    store.events.deploy(
        {
            "e": [
                {"targets": ["['s']"], "add": "v", **off},
                {"targets": ["['b']"], "count_frequency": "v", **off},
                {"targets": ["['k']"], "add": "v", **off, "store_gross_counters": True},
            ]
        }
    )
    nothing = "keeps nothing: `max_stored_values` is 0 and both counters are off"

    explained = store.events.explain({"name": "e", "attributes": {"v": 1}})
    reply = send("e", v=1)

    assert [handler.error for handler in explained.handlers] == [nothing, nothing, None]
    assert [(each.handler, each.error) for each in reply.skipped] == [
        ("e[0]", nothing),
        ("e[1]", nothing),
    ]
    assert (reply.handlers, reply.keys) == (1, 1)
    assert [each.key for each in store.events.keys().keys] == ["k"]


def test_a_later_handler_sees_what_an_earlier_one_would_write(store: Store, send: Send) -> None:
    store.events.deploy(
        {
            "e": [
                {"targets": ["['club'].members"], "add": "who"},
                {"targets": ["['club'].members", "['feed']"], "add": "who"},
            ]
        }
    )
    send("e", who=[str(number) for number in range(300)])

    explained = store.events.explain({"name": "e", "attributes": {"who": ["299", "new"]}})

    fed = explained.handlers[1].keys
    assert fed[:3] == ["new:feed", "299:feed", "298:feed"]
    assert len(fed) == 301
    assert store.events.size("club:members") == 300


def test_an_explanation_says_whether_the_event_is_a_duplicate(store: Store, send: Send) -> None:
    send("e", _id="one")

    assert store.events.explain({"name": "e", "id": "one"}).duplicate
    assert not store.events.explain({"name": "e", "id": "two"}).duplicate
