"""Keys that expire, and what is removed when they do."""

from typing import Any

import pytest

from holdfast.store import Store
from holdfast.testing import Clock
from tests.events.conftest import Send, values
from tests.plain_keys import keys_below

pytestmark = pytest.mark.every_engine


def deploy(store: Store, expire_after: Any = "1h") -> None:
    store.events.deploy(
        {
            "e": [{"targets": ["['s']"], "add": "v", "expire_after": expire_after}],
            "plain": [{"targets": ["['s']"], "add": "v"}],
            "board": [{"targets": ["['b']"], "count_frequency": "v", "expire_after": "1h"}],
        }
    )


def sweep_all(store: Store, clock: Clock) -> None:
    for _ in range(20):
        clock.advance(seconds=60)
        store.sweep()


def test_a_key_disappears_after_its_last_write(store: Store, clock: Clock, send: Send) -> None:
    deploy(store)
    send("e", v="a")
    clock.advance(seconds=3_000)
    send("e", v="b")

    clock.advance(seconds=3_599)
    before = values(store, "s")
    clock.advance(seconds=1)

    assert before == ["b", "a"]
    assert values(store, "s") == []
    assert (store.events.gross("s"), store.events.distinct("s").count) == (0, 0)
    assert store.events.keys().keys == []


def test_a_write_of_a_handler_without_expiry_keeps_the_lifetime_of_the_key(
    store: Store, clock: Clock, send: Send
) -> None:
    deploy(store)
    send("e", v="a")
    clock.advance(seconds=3_000)
    send("plain", v="b")

    clock.advance(seconds=3_599)
    before = values(store, "s")
    clock.advance(seconds=1)

    assert (before, values(store, "s")) == (["b", "a"], [])


def test_a_key_that_is_written_after_it_expired_starts_empty(
    store: Store, clock: Clock, send: Send
) -> None:
    deploy(store)
    for value in range(300):
        send("e", v=value)
        send("board", v=value)
    clock.advance(seconds=3_600)

    send("e", v="new")
    send("board", v="new")

    assert values(store, "s") == ["new"]
    assert (store.events.gross("s"), store.events.distinct("s").count) == (1, 1)
    assert [(entry.value, entry.count) for entry in store.events.top("b")] == [("new", 1)]


def test_all_that_belongs_to_an_expired_key_is_removed(
    store: Store, clock: Clock, send: Send
) -> None:
    deploy(store)
    stored = keys_below(store, store)
    for begin in range(0, 3_000, 300):
        send("e", v=[str(number) for number in range(begin, begin + 300)])
        send("board", v=[str(number) for number in range(begin, begin + 300)])

    clock.advance(seconds=3_600)
    sweep_all(store, clock)

    assert keys_below(store, store) == stored


def test_a_key_that_was_written_to_meanwhile_is_not_removed(
    store: Store, clock: Clock, send: Send
) -> None:
    deploy(store)
    send("e", v="a")
    for _ in range(5):
        clock.advance(seconds=2_000)
        send("e", v="b")
        store.sweep()

    assert values(store, "s") == ["b", "a"]

    clock.advance(seconds=3_600)
    assert store.sweep() == 1
    assert store.events.keys().keys == []


def test_a_shorter_lifetime_takes_effect_at_once(store: Store, clock: Clock, send: Send) -> None:
    deploy(store, "10d")
    send("e", v="a")
    stored = keys_below(store, store)
    deploy(store, 60)
    send("e", v="b")

    clock.advance(seconds=60)

    assert values(store, "s") == []
    store.sweep()
    assert keys_below(store, store) < stored
