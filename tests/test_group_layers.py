"""Transactions of a group that run in one buffer share a layer, and nothing that belongs to one of
them."""

from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import holdfast
from holdfast.errors import InvalidEvent, UnknownSpace
from holdfast.events import SendReply
from holdfast.store import Step, Store, Tx


def test_the_embedded_engine_runs_a_group_on_one_jobs_layer(tmp_path: Path) -> None:
    with holdfast.open(tmp_path / "store", durability="interval") as store:
        store.jobs.put("emails")
        outcomes = store.transact_many([Step(store, lambda tx: tx.jobs)] * 3)

    first, second, third = [outcome.unwrap() for outcome in outcomes]
    assert first is second is third


def test_a_transaction_reads_settings_that_another_layer_of_the_group_changed(store: Store) -> None:
    def read(tx: Tx) -> Any:
        return tx.jobs.config_get("heartbeat")

    def change(tx: Tx) -> Any:
        tx.jobs.config_get("heartbeat")
        tx.jobs.v1.set_config("heartbeat", 7)

    outcomes = store.transact_many([Step(store, read), Step(store, change), Step(store, read)])

    assert [outcome.unwrap() for outcome in outcomes] == [60, None, "7"]


def test_a_transaction_that_fails_leaves_nothing_in_the_layer_that_the_others_use(
    store: Store,
) -> None:
    def fail(tx: Tx) -> None:
        tx.jobs.put("emails", id="undone")
        raise ValueError("no")

    def put(tx: Tx) -> str:
        return tx.jobs.put("emails")

    outcomes = store.transact_many([Step(store, put), Step(store, fail), Step(store, put)])

    assert [type(outcome.error) for outcome in outcomes] == [type(None), ValueError, type(None)]
    assert store.jobs.waiting("emails") == 2
    assert store.jobs.get("undone") is None


def test_each_transaction_of_a_group_in_a_dropped_space_is_refused(store: Store) -> None:
    space = store.space("shop")
    space.jobs.put("emails")
    store.drop_space("shop")

    outcomes = store.transact_many([Step(space, lambda tx: tx.jobs.put("emails"))] * 3)

    assert [type(outcome.error) for outcome in outcomes] == [UnknownSpace] * 3


VISITS: Any = {"visit": [{"targets": ["['visitors']"], "add": "visitor"}]}


def visit(visitor: Any) -> Callable[[Tx], SendReply]:
    return lambda tx: tx.events.send({"name": "visit", "attributes": {"visitor": visitor}})


def test_an_event_follows_the_schema_that_was_deployed_before_it_in_its_group(store: Store) -> None:
    steps = [visit("ann"), lambda tx: tx.events.deploy(VISITS), visit("bob"), visit("eve")]
    outcomes = store.transact_many([Step(store, step) for step in steps])

    sent = [outcome.unwrap() for outcome in outcomes]
    assert [reply and reply.handlers for reply in sent] == [0, None, 1, 1]
    assert store.events.size("visitors") == 2


def test_each_event_of_a_group_has_its_own_time(tmp_path: Path) -> None:
    clock = count(1_000_000_000)
    with holdfast.open(tmp_path / "store", clock=lambda: next(clock)) as store:
        store.events.deploy(VISITS)
        store.transact_many([Step(store, visit(name)) for name in ("ann", "bob")])

        bob, ann = store.events.members("visitors").members

    assert (bob.value, ann.value) == ("bob", "ann")
    assert bob.at > ann.at


def test_an_event_that_is_refused_leaves_nothing_to_the_others_of_its_group(store: Store) -> None:
    store.events.deploy(VISITS)

    steps = [visit("ann"), visit({"no": "text"}), visit("bob")]
    outcomes = store.transact_many([Step(store, step) for step in steps])

    assert [type(outcome.error) for outcome in outcomes] == [type(None), InvalidEvent, type(None)]
    assert [member.value for member in store.events.members("visitors").members] == ["bob", "ann"]
    assert store.events.gross("visitors") == 2
