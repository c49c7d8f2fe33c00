"""Plain events: what they store is what the way of all other events stores, byte for byte."""

import random
from collections.abc import Callable
from typing import Any

import pytest

from holdfast.events import codec, event_fast_path, set_add_fast_path, sets
from holdfast.events.event_fast_path import Expansions
from holdfast.events.record_cache import RecordWriter
from holdfast.store import Store
from holdfast.testing import Clock
from holdfast.testing.factories import BEGINNING
from tests.events.conftest import Send, keys, values

SCHEMA: dict[str, Any] = {
    "view": [
        {
            "targets": ["['viewers', 'all']", "[@event_name, country, artist]", "[@hour, @day]"],
            "add": "visitor",
            "max_stored_values": 40,
        },
        {"targets": ["['popular']", "[@week]"], "count_frequency": "artist"},
    ],
    "follow": [{"targets": ["[user].followers"], "add": "visitor"}],
    "end": [{"targets": ["['gone']", "[country]"], "add": "visitor", "expire_after": "90s"}],
    "no end": [{"targets": ["['gone']", "[country]"], "add": "visitor"}],
    "sooner": [{"targets": ["['gone']", "[country]"], "add": "visitor", "expire_after": "60s"}],
    "short": [{"targets": ["['short']", "[country]"], "add": "visitor", "max_stored_values": 33}],
}


def some_events(chance: random.Random, count: int) -> list[dict[str, Any]]:
    found = []
    for _ in range(count):
        attributes: dict[str, Any] = {
            "country": chance.choice(["fr", "de", "shop"]),
            "artist": chance.choice(["fr", "monet", "k\0lee", "m\x01\x02"]),
            "user": f"user:{chance.randrange(3)}",
            "visitor": chance.choice([str(chance.randrange(60)), "\0", "long" * 70, ""]),
        }
        if chance.random() < 0.1:
            attributes[chance.choice(list(attributes))] = chance.choice([7, ["a", "b"], None])
        event: dict[str, Any] = {
            "name": chance.choice([*SCHEMA, "view"]),
            "attributes": attributes,
        }
        if chance.random() < 0.1:
            event["at"] = int(BEGINNING * 1_000) + chance.randrange(-(10**5), 10**8)
        found.append(event)
    return found


def stored(store: Store, space: str) -> dict[bytes, bytes]:
    """All that a space holds, with keys that do not name it."""
    with store.space(space).view() as view:
        raw = view.raw
        begin = raw.space
        return {key[len(begin) :]: value for key, value in raw.scan(begin, begin + b"\xff")}


@pytest.mark.parametrize("seed", range(4))
def test_what_is_stored_is_what_any_other_event_stores(
    store: Store, clock: Clock, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    chance = random.Random(seed)
    steps = [some_events(chance, chance.choice([1, 1, 7, 60])) for _ in range(60)]
    pauses = [chance.choice([0, 0.001, 1, 40]) for _ in steps]

    def send_all(space: str) -> list[Any]:
        clock.set(begin)
        events = store.space(space).events
        events.deploy(SCHEMA)
        replies: list[Any] = []
        for batch, pause in zip(steps, pauses, strict=True):
            clock.advance(seconds=pause)
            replies.append(events.send(batch[0]))
            replies.append(events.send_many(batch[1:]))
        return replies

    begin = clock()
    plain = send_all("plain")
    monkeypatch.setattr(Expansions, "resolve", lambda *arguments: None)
    general = send_all("general")

    assert plain == general
    assert stored(store, "plain") == stored(store, "general")


def test_a_plain_event_decodes_no_record(
    store: Store, send: Send, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.events.deploy({"e": [{"targets": ["['s']", "[a, @event_name]"], "add": "v"}]})
    send("e", v="1", a="x")

    def refuse(*arguments: Any) -> Any:
        raise AssertionError("decoded")

    monkeypatch.setattr(codec, "decode", refuse)
    monkeypatch.setattr(RecordWriter, "records", refuse)
    send("e", v="2", a="x")
    monkeypatch.undo()

    assert values(store, "s:x") == ["2", "1"]


def test_a_handler_that_names_its_set_by_a_step_is_plain_too(store: Store, send: Send) -> None:
    store.events.deploy({"e": [{"targets": ["[user].followers"], "add": "v"}]})

    reply = send("e", user="ann", v="bob")

    assert (reply.keys, values(store, "ann:followers")) == (1, ["bob"])


def test_texts_that_lead_to_one_key_write_it_once(store: Store, send: Send) -> None:
    store.events.deploy({"e": [{"targets": ["[a, b]", "['x:y', 'y']"], "add": "v"}]})

    reply = send("e", a="k", b="k:x", v="1")

    assert (reply.keys, keys(store)) == (3, ["k:x:x:y", "k:x:y", "k:y"])
    assert store.events.gross("k:x:y") == 1


def test_a_key_that_holds_a_board_keeps_the_whole_handler_from_writing(
    store: Store, send: Send
) -> None:
    store.events.deploy(
        {
            "board": [{"targets": ["['k']"], "count_frequency": "v"}],
            "set": [{"targets": ["['new', 'k']"], "add": "v"}],
            "both": [{"targets": ["['k']"], "add": "v"}, {"targets": ["['s']"], "add": "v"}],
        }
    )
    send("board", v="1")

    reply, other = send("set", v="2"), send("both", v="3")

    assert [each.error for each in reply.skipped] == ["key k holds a leaderboard"]
    assert (reply.handlers, reply.keys, keys(store)) == (0, 0, ["k", "s"])
    assert (other.handlers, other.keys, values(store, "s")) == (1, 1, ["3"])


def test_a_board_does_not_count_where_a_set_is(store: Store, send: Send) -> None:
    store.events.deploy(
        {
            "set": [{"targets": ["['k']"], "add": "v"}],
            "board": [{"targets": ["['k']"], "count_frequency": "v"}],
        }
    )
    send("set", v="1")

    reply = send("board", v="2")

    assert [each.error for each in reply.skipped] == ["key k holds a set"]
    assert (values(store, "k"), store.events.gross("k")) == (["1"], 1)


def test_a_batch_in_which_other_handlers_write_to_the_same_keys_loses_nothing(
    store: Store,
) -> None:
    store.events.deploy(
        {
            "plain": [{"targets": ["['k']"], "add": "v"}],
            "expires": [{"targets": ["['k']"], "add": "v", "expire_after": "1h"}],
            "off": [{"targets": ["['k']"], "add": "v", "store_gross_counters": False}],
            "removes": [{"targets": ["['k']"], "remove": "v"}],
        }
    )
    names = ["plain", "off", "plain", "expires", "plain", "removes", "plain"]

    store.events.send_many(
        [{"name": name, "attributes": {"v": str(n)}} for n, name in enumerate(names)]
    )

    assert values(store, "k") == ["6", "4", "3", "2", "1", "0"]
    assert store.events.gross("k") == 5


def test_a_subscriber_is_told_of_the_keys_of_a_plain_event(store: Store, send: Send) -> None:
    store.events.deploy({"e": [{"targets": ["['s']", "[a]"], "add": "v"}]})
    with store.events.subscribe() as changes:
        store.events.send_many(
            [{"name": "e", "attributes": {"a": a, "v": "1"}} for a in ("x", "y", "x")]
        )
        heard = [changes.get(timeout=5), changes.get(timeout=5)]

    assert heard == ["s:x", "s:y"]


def test_labels_of_another_day_lead_to_other_keys(store: Store, clock: Clock, send: Send) -> None:
    store.events.deploy({"e": [{"targets": ["['s']", "[@day]"], "add": "v"}]})
    clock.set(1_344_451_380.0)
    send("e", v="1")
    clock.advance(seconds=86_400)
    send("e", v="2")
    send("e", v="3", _at="2012-08-01T00:00Z")
    send("e", v="4")

    assert values(store, "s:2012-08-08") == ["1"]
    assert values(store, "s:2012-08-09") == ["4", "2"]
    assert values(store, "s:2012-08-01") == ["3"]


def test_keys_are_remembered_for_a_bounded_number_of_texts(
    store: Store, send: Send, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_fast_path, "MAX_EXPANDED_KEYS", 3)
    store.events.deploy({"e": [{"targets": ["['s']", "[a]"], "add": "v"}]})

    for text in "abcdefgab":
        send("e", a=text, v="1")

    assert keys(store) == [f"s:{text}" for text in "abcdefg"]
    assert [store.events.gross(f"s:{text}") for text in "abc"] == [2, 2, 1]


@pytest.mark.parametrize("flags", [0, codec.PARTIAL, codec.DENSE | codec.PARTIAL])
@pytest.mark.parametrize("size", [0, 1, 31, 32])
def test_a_usual_add_to_stored_bytes_is_that_of_a_record(
    store: Store, flags: int, size: int
) -> None:
    def stored_by(add: Callable[[RecordWriter, codec.Value], object]) -> dict[bytes, bytes]:
        def work(tx: Any) -> dict[bytes, bytes]:
            cache = RecordWriter(tx.raw)
            record = cache.record(b"k")
            record.flags, record.bound, record.gross = flags, 100, 1_000
            for n in range(size):
                old = codec.prepare(b"%d" % n, b"%06d" % n, 1_000 + n)
                sets.add(cache, [record], old, 100, gross=1, counted=True)
            record.dirty = True
            cache.finish()
            writing = RecordWriter(tx.raw)
            add(writing, codec.prepare(b"new", b"digest", 2_000))
            writing.finish()
            begin = tx.raw.space
            found = dict(tx.raw.scan(begin, begin + b"\xff"))
            tx.raw.clear(begin, begin + b"\xff")
            return found

        found: dict[bytes, bytes] = store.transact(work)
        return found

    options = plain_options()
    by_record = stored_by(
        lambda cache, value: sets.add(
            cache, [cache.record(b"k")], value, 100, gross=1, counted=True
        )
    )
    by_bytes = stored_by(
        lambda cache, value: set_add_fast_path.add(
            cache, [b"k"], [cache.keys.record(b"k")], value, options
        )
    )

    assert by_bytes == by_record


def plain_options() -> Any:
    from holdfast.events.schema import read_handlers

    [handler] = read_handlers([{"targets": ["['k']"], "add": "v", "max_stored_values": 100}])
    return handler.options
