"""An entity that has expired does not exist."""

import pytest

from holdfast.entities import StoreEntities
from holdfast.entities.messages import Change, Filter, Ordering, PutEntity
from holdfast.store import Store
from holdfast.testing import Clock

pytestmark = pytest.mark.every_engine

SECOND = 10**9
ALL = [Filter("id", "ALL")]


def put(entities: StoreEntities, id: str, ttl: int, **properties: object) -> None:
    entities.put_raw("test.Users", [PutEntity({"age": 1, **properties}, id, ttl)])


def test_an_expired_entity_is_seen_by_no_query(entities: StoreEntities, clock: Clock) -> None:
    put(entities, "short", 2 * SECOND)
    put(entities, "long", 0)

    clock.advance(seconds=2)

    age = [Filter("age", "=", [1])]
    assert [e.id for e in entities.get_raw("test.Users", ["short", "long"])] == ["long"]
    for filters in (ALL, age, [Filter("id", "IN", ["short", "long"])], [Filter("id", ">", [""])]):
        page = entities.select_raw("test.Users", filters, properties=["none"])
        assert ([e.id for e in page], page.total) == (["long"], 1)
    page = entities.select_raw("test.Users", ALL, order=Ordering("age"), limit=1)
    assert ([e.id for e in page], page.total) == (["long"], 1)
    assert len(list(entities.dump("test.Users"))) == 1
    assert entities.update_raw("test.Users", age, [Change("SET", "city", "x")]).num == 1
    assert entities.delete_raw("test.Users", age) == 1


def test_a_time_to_live_is_rounded_up_to_a_millisecond(
    entities: StoreEntities, clock: Clock
) -> None:
    put(entities, "u", 1)

    assert entities.count_raw("test.Users") == 1
    clock.advance(seconds=0.001)
    assert entities.count_raw("test.Users") == 0


def test_a_put_keeps_an_expiry_unless_told_otherwise(entities: StoreEntities, clock: Clock) -> None:
    for id in ("kept", "removed", "longer"):
        put(entities, id, SECOND)

    put(entities, "kept", 0)
    put(entities, "removed", -1)
    put(entities, "longer", 5 * SECOND)

    clock.advance(seconds=1)
    assert [e.id for e in entities.select_raw("test.Users", ALL)] == ["longer", "removed"]
    clock.advance(seconds=4)
    assert [e.id for e in entities.select_raw("test.Users", ALL)] == ["removed"]


def test_a_put_after_expiry_starts_a_new_entity(entities: StoreEntities, clock: Clock) -> None:
    put(entities, "u", SECOND, city="old")
    clock.advance(seconds=1)

    put(entities, "u", 0)

    clock.advance(seconds=100)
    [entity] = entities.get_raw("test.Users", ["u"])
    assert (entity.properties, entity.version) == ({"age": 1}, 1)
    assert entities.count_raw("test.Users") == 1


def test_exp_sets_shortens_and_removes_an_expiry(entities: StoreEntities, clock: Clock) -> None:
    for id in ("set", "gone", "freed", "whole"):
        put(entities, id, 0 if id == "set" else SECOND)

    def at(id: str) -> list[Filter]:
        return [Filter("id", "=", [id])]

    entities.update_raw("test.Users", at("set"), [Change("EXP", value=SECOND)])
    entities.update_raw("test.Users", at("gone"), [Change("EXP", value=0)])
    entities.update_raw("test.Users", at("freed"), [Change("EXP", value=None)])
    entities.update_raw("test.Users", at("whole"), [Change("EXP", value=float(5 * SECOND))])

    assert entities.get_raw("test.Users", ["gone"]) == []
    clock.advance(seconds=1)
    assert [e.id for e in entities.select_raw("test.Users", ALL)] == ["freed", "whole"]


# Many of them take seconds where a read is a round trip.
@pytest.mark.parametrize("number", [3, pytest.param(700, marks=pytest.mark.only_on("lmdb"))])
def test_totals_are_exact_while_expired_entities_still_lie_there(
    entities: StoreEntities, clock: Clock, number: int
) -> None:
    entities.put_raw("test.Users", [{"age": 1} for _ in range(1500)])
    entities.put_raw(
        "test.Users", [PutEntity({"age": n % 2}, ttl=SECOND) for n in range(2 * number)]
    )

    clock.advance(seconds=1)

    assert entities.select_raw("test.Users", [Filter("age", "=", [1])]).total == 1500
    assert entities.select_raw("test.Users", [Filter("age", "=", [0])]).total == 0
    assert entities.count_raw("test.Users") == 1500


def test_what_has_expired_is_removed_with_later_writes(
    store: Store, entities: StoreEntities, clock: Clock
) -> None:
    entities.put_raw("test.Users", [PutEntity({"age": 1}, ttl=SECOND) for _ in range(50)])
    clock.advance(seconds=2)

    for _ in range(5):
        store.sweep()
        clock.advance(seconds=1)

    with store.view() as view:
        begin = view._tx.space
        left = [key for key, _ in view._tx.scan(begin, begin + b"\xff")]
    assert len(left) <= 10  # the tables, their numbers, and counters that are 0 again
    assert entities.check("test.Users").checked == 0
