"""New indexes are built in the background, old ones cleared there."""

import pytest

import holdfast
from holdfast.engine.contract import Transaction
from holdfast.entities import StoreEntities
from holdfast.entities.layout import entry_value
from holdfast.entities.messages import Change, Filter, Ordering, PutEntity
from holdfast.entities.table_access import access_to
from holdfast.errors import DuplicateKey, IndexNotReady
from holdfast.keys import pack_str
from holdfast.store import Store
from holdfast.testing import Clock
from tests.stores import Stores

COLUMNS = "columns: {a: {type: Int}, b: {type: Int}}"


def schema(*indexes: str) -> str:
    return (
        f"schema: s\ntables:\n  T:\n    {COLUMNS}\n    indexes:\n"
        + "\n".join(f"      - {index}" for index in indexes)
        + ("" if indexes else "      []")
    )


BY_A = "{type: simple, columns: [a]}"
BY_A_B = "{type: compound, columns: [a, b]}"
UNIQUE_A = "{type: simple, columns: [a], options: {unique: true}}"
SPARSE_A = "{type: simple, columns: [a], options: {sparse: true}}"
A_IS_1 = [Filter("a", "=", [1])]


@pytest.fixture
def full(store: Store) -> StoreEntities:
    """A table of 1,200 entities without an index."""
    store.entities.deploy(schema())
    store.entities.put_raw("s.T", [{"id": f"{n:04}", "a": n % 3, "b": n} for n in range(1200)])
    return store.entities


def states(entities: StoreEntities) -> dict[str, tuple[str, int]]:
    indexes = entities.stats()["s.T"].indexes
    return {name: (index.state, index.indexed) for name, index in indexes.items()}


def test_an_index_of_an_empty_table_is_ready_at_once(store: Store) -> None:
    store.entities.deploy(schema(BY_A), wait=False)

    assert states(store.entities) == {"s.T__a_simple": ("ready", 0)}


def test_a_deploy_that_waits_ends_with_the_index_ready(full: StoreEntities) -> None:
    full.deploy(schema(BY_A))

    assert states(full) == {"s.T__a_simple": ("ready", 1200)}
    assert full.count_raw("s.T", A_IS_1) == 400


def test_writes_maintain_an_index_while_it_is_being_built(full: StoreEntities) -> None:
    full.deploy(schema(BY_A), wait=False)

    full.put_raw("s.T", [{"id": "new", "a": 1}, {"id": "1199", "a": 1, "b": 0}])
    full.update_raw("s.T", [Filter("id", "=", ["1000"])], [Change("EXP", value=10**12)])
    full.delete_raw("s.T", [Filter("id", "IN", ["0001", "1198"])])
    page = full.select_raw("s.T", A_IS_1, partial=True)
    assert page.partial
    full.build()

    assert full.count_raw("s.T", A_IS_1) == 400
    assert not full.select_raw("s.T", A_IS_1, partial=True).partial
    assert full.check("s.T").added == full.check("s.T").removed == full.check("s.T").recounted == 0


def test_what_only_an_unfinished_index_can_serve_waits_for_it(full: StoreEntities) -> None:
    full.deploy(schema(BY_A), wait=False)

    for call in (
        lambda: full.select_raw("s.T", A_IS_1),
        lambda: full.count_raw("s.T", A_IS_1),
        lambda: full.update_raw("s.T", A_IS_1, [Change("SET", "b", 1)]),
        lambda: full.delete_raw("s.T", A_IS_1),
    ):
        with pytest.raises(IndexNotReady, match="T__a_simple"):
            call()


def test_a_complete_index_is_preferred(full: StoreEntities) -> None:
    full.deploy(schema(BY_A_B))

    full.deploy(schema(BY_A_B, BY_A), wait=False)

    assert full.count_raw("s.T", A_IS_1) == 400
    assert not full.select_raw("s.T", A_IS_1).partial


def test_an_index_is_built_by_sweeps_a_step_at_a_time(
    store: Store, full: StoreEntities, clock: Clock
) -> None:
    clock.advance(seconds=1)
    full.deploy(schema(BY_A), wait=False)
    progress = [states(full)["s.T__a_simple"]]

    while progress[-1][0] == "pending":
        clock.advance(seconds=1)
        store.sweep()
        progress.append(states(full)["s.T__a_simple"])

    assert [indexed for _, indexed in progress] == [500, 1000, 1200]


def test_a_build_can_be_bounded_and_gone_on_with(full: StoreEntities) -> None:
    full.deploy(schema(BY_A), wait=False)

    assert full.build(most=0) == 0
    assert states(full)["s.T__a_simple"][0] == "pending"
    assert full.build(most=1) == 1
    full.build()
    assert states(full)["s.T__a_simple"] == ("ready", 1200)


def test_a_removed_index_is_no_longer_considered_and_its_entries_go(
    store: Store, full: StoreEntities
) -> None:
    full.deploy(schema(BY_A))

    full.deploy(schema(), wait=False)

    assert states(full)["s.T__a_simple"][0] == "removing"
    full.build()
    assert states(full) == {}
    full.deploy(schema(BY_A))
    assert full.count_raw("s.T", A_IS_1) == 400


def test_all_in_the_order_of_a_new_index(full: StoreEntities) -> None:
    full.deploy(schema(BY_A_B))

    page = full.select_raw("s.T", [Filter("id", "ALL")], order=Ordering("a", asc=False), limit=2)

    assert ([e.id for e in page], page.total) == (["1199", "1196"], 1200)


def test_a_unique_index_refuses_equal_values(store: Store, clock: Clock) -> None:
    entities = store.entities
    entities.deploy(schema(UNIQUE_A))
    entities.put_raw("s.T", [{"id": "x", "a": 1}, {"id": "n"}, {"id": "m", "a": None}])
    entities.put_raw("s.T", [{"id": "x", "a": 1.0, "b": 2}])

    with pytest.raises(DuplicateKey, match="T__a_simple"):
        entities.put_raw("s.T", [{"id": "y", "a": 1}])
    with pytest.raises(DuplicateKey):
        entities.put_raw("s.T", [{"a": 5}, {"a": 5}])
    with pytest.raises(DuplicateKey):
        entities.update_raw("s.T", [Filter("id", "=", ["n"])], [Change("SET", "a", 1)])

    entities.put_raw("s.T", [PutEntity({"a": 7}, "short", ttl=10**9)])
    clock.advance(seconds=1)
    entities.put_raw("s.T", [{"id": "y", "a": 7}])
    assert entities.count_raw("s.T") == 4


def test_a_unique_index_over_equal_values_reports_them_and_is_not_ready(
    full: StoreEntities,
) -> None:
    full.deploy(schema(UNIQUE_A))

    found = full.stats()["s.T"].indexes["s.T__a_simple"]
    assert (found.state, found.conflicts, found.conflict) == ("pending", 1197, "0003")

    full.delete_raw("s.T", [Filter("id", ">", ["0002"])])
    full.deploy(schema(UNIQUE_A))
    found = full.stats()["s.T"].indexes["s.T__a_simple"]
    assert (found.state, found.indexed, found.conflicts) == ("ready", 3, 0)


def test_a_sparse_index_leaves_out_entities_without_values(store: Store) -> None:
    store.entities.deploy(schema(SPARSE_A))
    store.entities.put_raw("s.T", [{"id": "x", "a": 1}, {"id": "none", "b": 1}])

    assert states(store.entities) == {"s.T__a_simple": ("ready", 1)}
    assert store.entities.count_raw("s.T", [Filter("a", "=", [None])]) == 0


def test_repair_adds_what_is_missing_and_removes_what_is_wrong(
    store: Store, full: StoreEntities
) -> None:
    full.deploy(schema(BY_A))
    assert full.check("s.T").checked == 1200

    def damage(tx: Transaction) -> None:
        index = access_to(tx, "s.T").indexes[0]
        values, wrong = (index.values_part({"a": number}) or b"" for number in (1, 9))
        tx.delete(index.entries + values + pack_str("0001"))
        tx.put(index.entries + wrong + pack_str("0004"), entry_value(pack_str("0004"), 0))
        tx.put(index.entries + wrong + pack_str("gone"), entry_value(pack_str("gone"), 0))

    store._runner.transact(damage)
    found = full.check("s.T")
    repaired = full.repair("s.T")

    assert (found.added, found.removed) == (repaired.added, repaired.removed) == (1, 2)
    after = full.check("s.T")
    assert (after.added, after.removed, after.recounted) == (0, 0, 0)
    assert full.count_raw("s.T", A_IS_1) == 400


def test_building_goes_on_after_a_restart(stores: Stores, clock: Clock) -> None:
    url = stores.url()
    with holdfast.open(url, clock=clock, durability="interval") as store:
        store.entities.deploy(schema())
        store.entities.put_raw("s.T", [{"a": n % 3} for n in range(1200)])
        store.entities.deploy(schema(BY_A), wait=False)
        assert states(store.entities)["s.T__a_simple"][0] == "pending"

    with holdfast.open(url, clock=clock, durability="interval") as store:
        while states(store.entities)["s.T__a_simple"][0] == "pending":
            clock.advance(seconds=1)
            store.entities.put_raw("s.T", [{"a": 5}])

        assert store.entities.count_raw("s.T", A_IS_1) == 400
