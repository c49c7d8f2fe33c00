"""From an event to the writes of its handlers."""

from enum import StrEnum
from typing import Any

import msgspec
import pytest

from holdfast.errors import ExpandsTooFar, InvalidEvent
from holdfast.events import Event, Events, Settings, Skipped
from holdfast.store import Store, Tx
from tests.events.conftest import Send, keys, values

# --- which handlers run -----------------------------------------------------------------------


def test_a_prefix_matches_whole_segments(store: Store, send: Send) -> None:
    store.events.deploy({"client:gravity:action": [{"targets": ["[@event_name]"], "add": "'v'"}]})

    send("client:gravity:action")
    send("client:gravity:action:follow")
    send("client:gravity:actionable")
    send("client:gravity")

    assert keys(store) == ["client:gravity:action", "client:gravity:action:follow"]


def test_a_trailing_colon_changes_nothing_in_what_matches(store: Store, send: Send) -> None:
    store.events.deploy(
        {
            "a:b:": [{"targets": ["['one']"], "add": "v"}],
            "a:b": [{"targets": ["['two']"], "add": "v"}],
        }
    )

    reply = send("a:b", v=1)

    assert (reply.handlers, keys(store)) == (2, ["one", "two"])


def test_the_empty_prefix_matches_every_event(store: Store, send: Send) -> None:
    store.events.deploy({"": [{"targets": ["['all']"], "add": "@event_name"}]})

    send("a")
    send("b:c")

    assert values(store, "all") == ["b:c", "a"]


def test_shorter_prefixes_run_first_then_schema_order_then_list_order(
    store: Store, send: Send
) -> None:
    def mark(text: str) -> dict[str, Any]:
        return {"targets": ["['log']"], "add": f"'{text}'"}

    store.events.deploy(
        {"a:b": [mark("4"), mark("5")], "a": [mark("2")], "a:": [mark("3")], "": [mark("1")]}
    )

    send("a:b:c")

    assert values(store, "log") == ["5", "4", "3", "2", "1"]


def test_later_handlers_see_the_writes_of_earlier_ones(store: Store, send: Send) -> None:
    store.events.deploy(
        {
            "e": [
                {"targets": ["['x'].members"], "add": "v"},
                {"targets": ["['x'].members", "['seen']"], "add": "'yes'"},
            ]
        }
    )

    send("e", v="ann")

    assert values(store, "ann:seen") == ["yes"]


def test_schemas_of_several_names_work_side_by_side(store: Store, send: Send) -> None:
    store.events.deploy({"e": [{"targets": ["['one']"], "add": "v"}]})
    store.events.deploy({"e": [{"targets": ["[missing]"], "add": "v"}]}, name="other")

    reply = send("e", v=1)

    assert keys(store) == ["one"]
    assert reply.skipped == [Skipped(handler="e[0]", missing="missing", schema="other")]


# --- events -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    ["", ":", "a:", ":a", "a::b", ":".join("a" * 33), "a" * 513, "é" * 257, "\ud800"],
)
def test_a_bad_name_is_refused(store: Store, send: Send, name: str) -> None:
    with pytest.raises(InvalidEvent):
        send(name)


@pytest.mark.parametrize("name", [":".join("a" * 32), "a" * 512, "é" * 256, "a b:ü"])
def test_a_name_of_any_other_kind_is_taken(send: Send, name: str) -> None:
    assert send(name).handlers == 0


@pytest.mark.parametrize(
    "event",
    [
        {},
        {"name": 7},
        {"name": "e", "attributes": []},
        {"name": "e", "attributes": {"a": {"b": 1}}},
        {"name": "e", "attributes": {"a": [[1]]}},
        {"name": "e", "colour": "red"},
        {"name": "e", "at": "yesterday"},
        {"name": "e", "at": -1},
        {"name": "e", "at": 2**42},
        {"name": "e", "at": True},
        {"name": "e", "id": ""},
        {"name": "e", "id": "i" * 257},
        {"name": "e", "id": "\ud800"},
        {"name": "e", "attributes": {"v": 10**5_000}},
        Event(name=7),  # type: ignore[arg-type]  # this and the others: what a struct lets in
        Event(name="e", attributes=None),  # type: ignore[arg-type]
        Event(name="e", ip=7),  # type: ignore[arg-type]
        Event(name="e", id=7),  # type: ignore[arg-type]
        "e",
    ],
)
def test_a_bad_event_is_refused(store: Store, event: Any) -> None:
    store.events.deploy({"e": [{"targets": ["['s']"], "add": "v"}]})

    with pytest.raises(InvalidEvent):
        store.events.send(event)


def test_values_are_turned_into_strings(store: Store, send: Send) -> None:
    store.events.deploy({"e": [{"targets": ["['s']"], "add": "v"}]})

    for value in ("text", 7, -1, 2.5, 1.0, 0.1, 1e300, True, False, 2**70):
        send("e", v=value)

    expected = ["text", "7", "-1", "2.5", "1.0", "0.1", "1e+300", "true", "false", str(2**70)]
    assert values(store, "s") == expected[::-1]


def test_a_list_attribute_means_all_of_its_values(store: Store, send: Send) -> None:
    store.events.deploy({"e": [{"targets": ["[tags]", "['x']"], "add": "users"}]})

    send("e", tags=["red", "blue", "red", None], users=["ann", "bob"])

    assert keys(store) == ["blue:x", "red:x"]
    assert values(store, "red:x") == values(store, "blue:x") == ["bob", "ann"]


def test_the_repeats_of_a_list_attribute_count_as_gross(store: Store, send: Send) -> None:
    store.events.deploy(
        {
            "e": [
                {"targets": ["['term']"], "add": "v"},
                {"targets": ["['list']"], "add": "[v, 'c']"},
            ]
        }
    )

    send("e", v=["a", "a", "b"])

    assert (store.events.gross("term"), store.events.distinct("term").count) == (3, 2)
    assert (store.events.gross("list"), values(store, "list")) == (3, ["c", "b", "a"])


def test_null_counts_as_absent(send: Send, store: Store) -> None:
    store.events.deploy({"e": [{"targets": ["['s']"], "add": "v"}]})

    reply = send("e", v=None)

    assert reply.skipped == [Skipped(handler="e[0]", missing="v")]


def test_an_empty_list_writes_nothing_and_skips_nothing(send: Send, store: Store) -> None:
    store.events.deploy({"e": [{"targets": ["['s']"], "add": "v"}]})

    reply = send("e", v=[])

    assert (reply.handlers, reply.keys, reply.skipped) == (1, 0, [])
    assert keys(store) == []


def test_control_characters_in_keys_and_values_come_back(store: Store, send: Send) -> None:
    store.events.deploy({"e": [{"targets": ["[k]"], "add": "v"}]})
    odd = ["a\x00b", "\x01", "\x02\x03", "\x00", "", "\x01\x00", "x\x02"]

    for value in odd:
        send("e", k="k\x00\x01", v=value)

    assert values(store, "k\x00\x01") == odd[::-1]
    assert keys(store) == ["k\x00\x01"]
    assert all(store.events.contains("k\x00\x01", value) for value in odd)


def test_the_text_of_an_event_may_be_an_enum(store: Store) -> None:
    class Name(StrEnum):
        VIEW = "view"

    store.events.deploy({"view": [{"targets": ["['s']"], "add": "v"}]})

    store.events.send(Event(name=Name.VIEW, attributes={"v": Name.VIEW}))

    assert values(store, "s") == ["view"]


def test_an_event_may_be_a_struct(store: Store) -> None:
    store.events.deploy({"e": [{"targets": ["['s']"], "add": "@timestamp"}]})

    store.events.send(Event(name="e", at=1_344_427_200_123))

    assert values(store, "s") == ["1344427200123"]


# --- built-ins --------------------------------------------------------------------------------


def test_built_ins_are_taken_from_the_time_of_the_event(store: Store, send: Send) -> None:
    names = "minute hour day daily week weekly month monthly year yearly timestamp event_name"
    targets = ", ".join(f"@{name}" for name in names.split())
    store.events.deploy({"e": [{"targets": ["['s']"], "add": f"[{targets}]"}]})

    send("e", _at="2012-08-08T18:43:07Z")

    assert values(store, "s")[::-1] == [
        "2012-08-08T18-43",
        "2012-08-08T18",
        "2012-08-08",
        "2012-W32",
        "2012-08",
        "2012",
        "1344451387000",
        "e",
    ]


def test_the_week_belongs_to_its_iso_year(store: Store, send: Send) -> None:
    store.events.deploy({"e": [{"targets": ["['s']"], "add": "@week"}]})

    send("e", _at="2021-01-03T12:00:00Z")
    send("e", _at="2018-12-31T12:00:00Z")

    assert values(store, "s") == ["2020-W53", "2019-W01"]


def test_a_store_may_have_a_time_zone_of_its_own(store: Store) -> None:
    store.events.deploy({"e": [{"targets": ["[@day]"], "add": "'v'"}]})
    settings = Settings(timezone="Asia/Tokyo")

    store.transact(
        lambda tx: Events(tx.raw, settings=settings).send(
            {"name": "e", "at": "2012-08-08T18:00:00Z"}
        )
    )

    assert keys(store) == ["2012-08-09"]


def test_a_unique_id_is_one_for_each_event(store: Store, send: Send) -> None:
    store.events.deploy({"e": [{"targets": ["[@unique_id]", "['x','y']"], "add": "@unique_id"}]})

    send("e")
    send("e")

    found = keys(store)
    assert len({key.split(":")[0] for key in found}) == 2
    assert all(values(store, key) == [key.split(":")[0]] for key in found)


# --- expanding --------------------------------------------------------------------------------


def test_lists_and_products_have_no_duplicates(store: Store) -> None:
    store.events.deploy({"e": [{"targets": ["[x, x, 'a', 'a:b']", "['b:c', 'c']"], "add": "x"}]})

    explained = store.events.explain({"name": "e", "attributes": {"x": ["a", "q"]}})

    assert explained.handlers[0].keys == ["a:b:c", "a:c", "q:b:c", "q:c", "a:b:b:c"]


def test_both_ways_to_fan_out_on_write_mean_the_same(store: Store, send: Send) -> None:
    store.events.deploy(
        {
            "follow": [{"targets": ["[user].followers"], "add": "follower"}],
            "one": [{"targets": ["[user].followers", "['feed']"], "add": "post"}],
            "two": [{"targets": ["[user].followers.feed"], "add": "post"}],
        }
    )
    send("follow", user="ann", follower=["bob", "cid"])

    send("one", user="ann", post="1")
    send("two", user="ann", post="2")

    assert values(store, "bob:feed") == values(store, "cid:feed") == ["2", "1"]


def test_a_chain_ending_in_a_name_names_several_sets(store: Store, send: Send) -> None:
    store.events.deploy({"e": [{"targets": ["['x']", "['a','b'].n"], "add": "v"}]})

    send("e", v=1)

    assert keys(store) == ["x:a:n", "x:b:n"]


def test_the_values_of_an_add_may_be_looked_up(store: Store, send: Send) -> None:
    store.events.deploy(
        {
            "tag": [{"targets": ["[post].tags"], "add": "tag"}],
            "like": [{"targets": ["[user].likes"], "add": "[post].tags"}],
        }
    )
    send("tag", post="p", tag=["red", "blue"])

    send("like", user="ann", post="p")

    assert values(store, "ann:likes") == ["red", "blue"]


def test_a_look_up_of_nothing_yields_nothing(store: Store, send: Send) -> None:
    store.events.deploy({"e": [{"targets": ["[user].followers", "['feed']"], "add": "post"}]})

    reply = send("e", user="nobody", post="p")

    assert (reply.handlers, reply.keys, reply.skipped) == (1, 0, [])


def test_a_look_up_of_a_leaderboard_yields_nothing(store: Store, send: Send) -> None:
    store.events.deploy(
        {
            "e": [
                {"targets": ["['x:y']"], "count_frequency": "v"},
                {"targets": ["['x'].y", "['z']"], "add": "v"},
            ]
        }
    )

    assert send("e", v="a").keys == 1


def test_too_many_keys_are_an_error_and_nothing_of_the_event_is_written(
    store: Store, send: Send
) -> None:
    store.events.deploy(
        {
            "e": [
                {"targets": ["['first']"], "add": "'v'"},
                {"targets": ["[a]", "[b]"], "add": "'v'"},
            ]
        }
    )
    many = [str(number) for number in range(101)]

    with pytest.raises(ExpandsTooFar, match="expands to 10201 keys, the limit is 10000"):
        send("e", a=many, b=many)

    assert keys(store) == []


def test_ten_thousand_keys_are_not_too_many(store: Store, send: Send) -> None:
    store.events.deploy({"e": [{"targets": ["[a]", "[b]"], "add": "'v'"}]})
    many = [str(number) for number in range(100)]

    assert send("e", a=many, b=many).keys == 10_000


@pytest.mark.parametrize("attributes", [{"k": "k" * 4_097, "v": 1}, {"k": "k", "v": "v" * 8_193}])
def test_keys_and_values_have_a_length(
    store: Store, send: Send, attributes: dict[str, Any]
) -> None:
    store.events.deploy({"e": [{"targets": ["[k]"], "add": "v"}]})

    with pytest.raises(InvalidEvent, match="fit"):
        send("e", **attributes)


def test_one_event_makes_a_bounded_number_of_writes(store: Store, send: Send) -> None:
    store.events.deploy({"e": [{"targets": ["[a]"], "add": "a"}]})

    with pytest.raises(ExpandsTooFar, match="160000 writes"):
        send("e", a=[str(number) for number in range(400)])


# --- kinds ------------------------------------------------------------------------------------


def test_a_key_that_holds_a_set_is_no_leaderboard(store: Store, send: Send) -> None:
    store.events.deploy(
        {
            "add": [{"targets": ["['x']"], "add": "v"}],
            "count": [
                {"targets": ["['x', 'y']"], "count_frequency": "v"},
                {"targets": ["['z']"], "add": "v"},
            ],
        }
    )
    send("add", v=1)

    reply = send("count", v=2)

    assert reply.skipped == [Skipped(handler="count[0]", error="key x holds a set")]
    assert (reply.handlers, keys(store)) == (1, ["x", "z"])
    assert store.events.gross("x") == 1


def test_skipped_handlers_are_named_in_their_order_whatever_the_reason(
    store: Store, send: Send
) -> None:
    store.events.deploy(
        {
            "e": [
                {"targets": ["['k']"], "add": "'v'"},
                {"targets": ["['k']"], "count_frequency": "'v'"},
                {"targets": ["['l']"], "add": "missing"},
                {"targets": ["['k']"], "count_frequency": "'v'"},
            ]
        }
    )

    reply = send("e")

    assert [skipped.handler for skipped in reply.skipped] == ["e[1]", "e[2]", "e[3]"]


def test_a_key_that_holds_a_leaderboard_is_no_set(store: Store, send: Send) -> None:
    store.events.deploy(
        {
            "e": [
                {"targets": ["['x']"], "count_frequency": "v"},
                {"targets": ["['x']"], "add": "v"},
                {"targets": ["['x']"], "remove": "v"},
            ]
        }
    )

    reply = send("e", v=1)

    errors = [skipped.error for skipped in reply.skipped]
    assert errors == ["key x holds a leaderboard", "key x holds a leaderboard"]


# --- replies and records ------------------------------------------------------------------------


def test_the_reply_names_a_schema_only_if_it_is_not_the_default_one(
    store: Store, send: Send
) -> None:
    handlers = {"e": [{"targets": ["['s']"], "add": "follower"}]}
    store.events.deploy(handlers)
    store.events.deploy(handlers, name="other")

    reply = send("e")

    assert msgspec.to_builtins(reply.skipped) == [
        {"handler": "e[0]", "missing": "follower"},
        {"handler": "e[0]", "missing": "follower", "schema": "other"},
    ]


def test_a_record_that_stayed_decoded_counts_only_if_it_is_what_is_stored(store: Store) -> None:
    store.events.deploy({"e": [{"targets": ["[k]"], "add": "v", "max_stored_values": 3}]})

    def fails(tx: Tx) -> None:
        tx.events.send({"name": "e", "attributes": {"k": "a", "v": "lost"}})
        raise ZeroDivisionError

    store.events.send({"name": "e", "attributes": {"k": "a", "v": "1"}})
    with pytest.raises(ZeroDivisionError):
        store.transact(fails)
    store.events.explain({"name": "e", "attributes": {"k": "a", "v": "tried"}})
    store.events.send({"name": "e", "attributes": {"k": "a", "v": "2"}})
    store.events.forget("a")
    store.events.send({"name": "e", "attributes": {"k": "a", "v": "3"}})
    store.space("other").events.deploy({"e": [{"targets": ["[k]"], "add": "v"}]})
    store.space("other").events.send({"name": "e", "attributes": {"k": "a", "v": "other"}})
    store.events.send({"name": "e", "attributes": {"k": "a", "v": "4"}})

    assert values(store, "a") == ["4", "3"]
    assert store.events.gross("a") == 2
    assert values(store.space("other"), "a") == ["other"]
