"""Sets of any size: what they keep does not depend on the form that they are stored in."""

import random

import pytest

from holdfast.events.layout import Keys
from holdfast.limits import MAX_EVENT_KEY_BYTES
from holdfast.store import Store
from holdfast.testing import Clock
from tests.events.conftest import Send, values
from tests.plain_keys import keys_below


def numbers(begin: int, end: int) -> list[str]:
    return [str(number) for number in range(begin, end)]


def deploy(store: Store, bound: int | None = None) -> None:
    handler = {"targets": ["['s']"], "add": "v"}
    if bound is not None:
        handler |= {"max_stored_values": bound}  # type: ignore[dict-item]  # a number among texts
    store.events.deploy({"add": [handler], "remove": [{"targets": ["['s']"], "remove": "v"}]})


def test_adding_a_present_value_moves_it_to_the_front(
    store: Store, clock: Clock, send: Send
) -> None:
    deploy(store)
    send("add", v=["a", "b", "c"])
    clock.advance(seconds=1)

    send("add", v="a")

    assert values(store, "s") == ["a", "c", "b"]
    first = store.events.contains("s", "a")
    second = store.events.contains("s", "b")
    assert first is not None
    assert second is not None
    assert first.at - second.at == 1_000


@pytest.mark.parametrize("count", [1, 31, 32, 33, 34, 255, 256, 257, 300, 520, 900])
def test_a_set_keeps_all_of_its_values_in_order(store: Store, send: Send, count: int) -> None:
    deploy(store)

    for value in numbers(0, count):
        send("add", v=value)
    send("add", v=["0", str(count // 2)])

    moved = [str(count // 2), "0"] if count > 1 else ["0"]
    rest = [value for value in numbers(0, count)[::-1] if value not in moved]
    assert values(store, "s") == moved + rest
    assert store.events.size("s") == count
    distinct = store.events.distinct("s")
    assert (distinct.count, distinct.exact) == (count, True)


@pytest.mark.parametrize("bound", [1, 5, 31, 32, 33, 100, 256, 257, 400])
def test_a_bounded_set_keeps_its_newest_values(store: Store, send: Send, bound: int) -> None:
    deploy(store, bound)

    for begin in range(0, 900, 30):
        send("add", v=numbers(begin, begin + 30))

    assert values(store, "s") == numbers(900 - bound, 900)[::-1]
    assert (store.events.size("s"), store.events.gross("s")) == (bound, 900)
    assert store.events.contains("s", "0") is None
    assert store.events.distinct("s").count == pytest.approx(900, rel=0.04)


@pytest.mark.parametrize("count", [3, 40, 300])
def test_values_are_removed_from_a_set_of_any_size(store: Store, send: Send, count: int) -> None:
    deploy(store)
    send("add", v=numbers(0, count))

    reply = send("remove", v=["1", "absent"])
    again = send("remove", v=["1", "absent"])

    assert (reply.keys, again.keys) == (1, 0)
    assert values(store, "s") == [value for value in numbers(0, count)[::-1] if value != "1"]
    assert store.events.gross("s") == count
    assert store.events.distinct("s").count == pytest.approx(count, rel=0.03)


def test_a_value_that_was_removed_and_comes_back_is_not_counted_again(
    store: Store, send: Send
) -> None:
    deploy(store)
    send("add", v=["a", "b"])

    send("remove", v="a")
    send("add", v="a")

    assert values(store, "s") == ["a", "b"]
    assert (store.events.distinct("s").count, store.events.gross("s")) == (2, 3)


def test_a_large_set_that_shrinks_is_packed_again_and_can_grow_again(
    store: Store, send: Send
) -> None:
    deploy(store)
    send("add", v=numbers(0, 600))
    large = keys_below(store, store)

    send("remove", v=numbers(0, 560))
    store.sweep()
    small = keys_below(store, store)
    remaining = values(store, "s")
    send("add", v=numbers(0, 400))

    assert remaining == numbers(560, 600)[::-1]
    assert small < large - 1_100
    assert store.events.size("s") == 440


def test_removing_from_an_unknown_key_does_nothing(store: Store, send: Send) -> None:
    deploy(store)

    assert send("remove", v="a").keys == 0
    assert store.events.keys().keys == []


def test_the_bound_of_the_handler_that_writes_applies_to_its_write(
    store: Store, send: Send
) -> None:
    store.events.deploy(
        {
            "many": [{"targets": ["['s']"], "add": "v"}],
            "hundred": [{"targets": ["['s']"], "add": "v", "max_stored_values": 100}],
            "three": [{"targets": ["['s']"], "add": "v", "max_stored_values": 3}],
        }
    )

    send("many", v=numbers(0, 2_500))
    send("hundred", v="a")
    after_hundred = values(store, "s")
    send("three", v="b")
    after_three = values(store, "s")
    send("hundred", v="c")

    assert after_hundred == ["a", *numbers(2_401, 2_500)[::-1]]
    assert after_three == ["b", "a", "2499"]
    assert values(store, "s") == ["c", "b", "a", "2499"]


def test_what_a_bound_has_evicted_does_not_come_back_under_a_larger_one(
    store: Store, send: Send
) -> None:
    store.events.deploy(
        {
            "fifty": [{"targets": ["['s']"], "add": "v", "max_stored_values": 50}],
            "ninety": [{"targets": ["['s']"], "add": "v", "max_stored_values": 90}],
        }
    )
    send("fifty", v=numbers(0, 80))

    send("ninety", v="a")

    assert store.events.size("s") == 51


def test_long_values_are_kept_whole(store: Store, send: Send) -> None:
    deploy(store)
    long = [f"{number}{'x' * 2_000}" for number in range(12)]

    for value in long:
        send("add", v=value)
    send("add", v=long[0])
    send("remove", v=long[5])

    expected = [long[0], *(value for value in long[:0:-1] if value != long[5])]
    assert values(store, "s") == expected
    assert store.events.contains("s", long[5]) is None
    assert store.events.contains("s", long[6]) is not None


def test_pages_follow_each_other_in_every_form(store: Store, send: Send) -> None:
    for count in (20, 100, 400):
        deploy(store)
        store.events.forget("s")
        send("add", v=numbers(0, count))

        walked: list[str] = []
        after = None
        for _ in range(100):
            page = store.events.members("s", limit=7, after=after)
            walked += [member.value for member in page.members]
            after = page.next
            if after is None:
                break

        assert walked == numbers(0, count)[::-1]


def test_a_walk_goes_on_while_the_set_changes(store: Store, clock: Clock, send: Send) -> None:
    deploy(store)
    for value in numbers(0, 250):
        clock.advance(seconds=1)
        send("add", v=value)
    first = store.events.members("s", limit=10)

    clock.advance(seconds=1)
    send("remove", v="240")  # the last member of the first page
    send("add", v=numbers(1_000, 1_100))  # the set becomes rows
    second = store.events.members("s", limit=10, after=first.next)

    assert [member.value for member in second.members] == numbers(230, 240)[::-1]


def test_random_adds_and_removals_in_batches_keep_the_order(store: Store, clock: Clock) -> None:
    deploy(store, 300)
    chance = random.Random(7)
    expected: list[str] = []
    for _ in range(60):
        clock.advance(seconds=1)
        events = []
        for _ in range(chance.choice([1, 20])):
            name = chance.choice(["add", "add", "add", "remove"])
            some = [str(chance.randrange(500)) for _ in range(chance.choice([1, 5, 40]))]
            events.append({"name": name, "attributes": {"v": some}})
            for value in some:
                if value in expected:
                    expected.remove(value)
                if name == "add":
                    expected = [value, *expected][:300]
        store.events.send_many(events)

    assert values(store, "s") == expected


def test_no_key_is_made_of_one_that_is_too_long_to_exist(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(Keys, "board_beside")

    assert not store.events.forget("k" * (MAX_EVENT_KEY_BYTES + 1))
