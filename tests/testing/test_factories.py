"""Factories make objects that can be put, from what their models say."""

from datetime import datetime, timedelta
from typing import Literal

import pytest

import holdfast
from holdfast.entities import Col, Model, column, index, now, schema_yaml
from holdfast.errors import BadKey, UnknownColumn
from holdfast.store import Store, Tx
from holdfast.testing import Factory, sequence, temporary_server


class Order(Model, schema="shop", table="Orders", primary="number"):
    number: Col[str] = column(default="")
    customer: Col[str] = column(required=True)
    status: Col[Literal["open", "paid"]] = column(required=True)
    total: Col[int] = column(default=0)
    tags: Col[list[str]] = column(default=list)


class Everything(Model, schema="shop", table="Everything", indexes=[index("code", unique=True)]):
    integer: int
    unsigned: int = column(type="Uint", required=True)
    number: float
    text: str
    short: str = column(required=True, max_len=2)
    flag: bool
    moment: datetime
    data: bytes
    few: bytes = column(required=True, max_len=3)
    names: set[str]
    items: list[int]
    parts: dict[str, float]
    choice: int = column(required=True, choices=(7, 9))
    code: str | None = None
    note: str | None = None
    made: datetime = column(default=now)


@pytest.fixture
def shop(store: Store) -> Store:
    store.entities.deploy(schema_yaml(Order, Everything))
    return store


@pytest.mark.every_engine
def test_objects_can_be_put_without_naming_a_column(shop: Store) -> None:
    first, second = Factory(Everything).put_many(shop, 2)

    assert shop.entities.get(Everything, first.id or "", second.id or "") == [first, second]
    assert (first.integer, first.unsigned, first.number) == (1, 1, 1.0)
    assert (first.text, second.text) == ("text-1", "text-2")
    assert (first.short, first.few, first.choice) == ("-1", b"w-1", 7)
    assert (first.flag, second.flag, second.choice) == (False, True, 9)
    assert (first.names, first.items, first.parts) == (set(), [], {})
    assert second.moment - first.moment == timedelta(seconds=1)
    assert (first.code, second.code) == ("code-1", "code-2")  # a unique index tells them apart
    assert first.note is None


def test_values_of_the_factory_and_of_a_call_win_over_what_is_derived() -> None:
    orders = Factory(
        Order, customer=sequence("customer-{}"), total=sequence(lambda n: 10 * n), tags=["new"]
    )

    first, second = orders.build(), orders.build(customer="ann", status="paid")

    assert first == Order(
        number="number-1", customer="customer-1", status="open", total=10, tags=["new"]
    )
    assert second == Order(number="number-2", customer="ann", status="paid", total=20, tags=["new"])


def test_objects_share_no_value_that_can_change() -> None:
    orders = Factory(Order, tags=["new"])
    first, second = orders.build_many(2)

    first.tags.append("seen")

    assert (first.tags, second.tags, orders.build().tags) == (["new", "seen"], ["new"], ["new"])


def test_a_factory_puts_in_a_transaction(shop: Store) -> None:
    def put_and_fail(tx: Tx) -> None:
        Factory(Order).put_many(tx, 3)
        raise RuntimeError(f"{tx.entities.count(Order)} orders")

    with pytest.raises(RuntimeError, match="3 orders"):
        shop.transact(put_and_fail)

    assert shop.entities.count(Order) == 0


def test_a_factory_puts_over_the_network() -> None:
    with temporary_server() as url, holdfast.connect(url) as client:
        client.entities.deploy(Order.schema_yaml())

        order = Factory(Order).put(client, total=5)

        assert client.entities.get(Order, "number-1|") == [order]


def test_two_objects_with_one_id_are_refused(shop: Store) -> None:
    with pytest.raises(BadKey, match=r"two objects of Order have the id 'same\|'"):
        Factory(Order).put_many(shop, 2, number="same")


def test_a_column_that_does_not_exist_is_refused_at_once() -> None:
    with pytest.raises(UnknownColumn, match="customer"):
        Factory(Order, custmer="ann")
