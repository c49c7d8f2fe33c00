"""Change notices, and events among other work of a transaction."""

import pytest

from holdfast.events.store import KeySubscription
from holdfast.store import Store, Tx
from tests.events.conftest import Send, values

pytestmark = pytest.mark.every_engine


def deploy(store: Store) -> None:
    store.events.deploy(
        {"e": [{"targets": ["[k]"], "add": "v"}], "r": [{"targets": ["[k]"], "remove": "v"}]}
    )


def test_a_subscriber_is_told_of_each_change_of_a_key(store: Store, send: Send) -> None:
    deploy(store)
    with store.events.subscribe("a") as changes:
        send("e", k=["a", "b"], v=1)
        send("e", k="ab", v=1)
        send("r", k="a", v="absent")
        send("r", k="a", v="1")
        store.events.forget("a")

        assert changes.poll() == ["a", "a", "a"]
        assert changes.get(timeout=0) is None


def test_a_subscriber_may_ask_for_all_keys_below_a_prefix(store: Store, send: Send) -> None:
    deploy(store)
    with store.events.subscribe(prefix="a:") as changes:
        send("e", k=["a:1", "b", "a:2"], v=1)

        assert changes.get(timeout=5) == "a:1"
        assert changes.poll() == ["a:2"]


def test_a_batch_names_each_changed_key_once(store: Store) -> None:
    deploy(store)
    with store.events.subscribe() as changes:
        store.events.send_many([{"name": "e", "attributes": {"k": "a", "v": n}} for n in range(5)])

        assert changes.poll() == ["a"]


def send_and_fail(tx: Tx) -> None:
    tx.events.send({"name": "e", "attributes": {"k": "a", "v": 1}})
    assert tx.events.size("a") == 1
    raise ZeroDivisionError


def test_no_one_is_told_of_what_was_not_committed(store: Store) -> None:
    deploy(store)
    with store.events.subscribe() as changes:
        with pytest.raises(ZeroDivisionError):
            store.transact(send_and_fail)

        assert changes.poll() == []
    assert values(store, "a") == []


def test_events_of_one_transaction_are_written_together(store: Store) -> None:
    deploy(store)

    with store.transaction() as tx:
        for value in range(3):
            tx.events.send({"name": "e", "attributes": {"k": "a", "v": value}})

    assert values(store, "a") == ["2", "1", "0"]


def test_a_subscriber_that_comes_while_a_transaction_runs_is_told_of_it(store: Store) -> None:
    deploy(store)
    opened: list[KeySubscription] = []

    def work(tx: Tx) -> None:
        tx.events.send({"name": "e", "attributes": {"k": "a", "v": 1}})
        if not opened:
            opened.append(store.events.subscribe("a"))

    store.transact(work)

    with opened[0] as changes:
        assert changes.poll() == ["a"]
