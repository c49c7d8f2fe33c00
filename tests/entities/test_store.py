"""Queries of several tables in one transaction, change notices, statistics."""

import pytest

from holdfast.entities import StoreEntities
from holdfast.entities.messages import (
    Change,
    Changed,
    Del,
    Filter,
    Get,
    Page,
    Ping,
    Put,
    PutEntity,
    Query,
    Update,
    Updated,
)
from holdfast.errors import DuplicateKey
from holdfast.store import Store
from holdfast.testing import Clock

pytestmark = pytest.mark.every_engine

U = [Filter("id", "=", ["u"])]


def test_queries_on_several_tables_are_all_or_none(entities: StoreEntities) -> None:
    entities.put_raw("test.Plain", [{"id": "p"}])
    queries: list[Query] = [
        Put("test.Users", [PutEntity({"age": 1}, "u")]),
        Update("test.Users", U, [Change("INCR", "age", 1)]),
        Put("test.Plain", [PutEntity({}, "p")], mode="insert"),
    ]

    with pytest.raises(DuplicateKey):
        entities.execute(queries)
    assert entities.count_raw("test.Users") == 0

    replies = entities.execute(
        [*queries[:2], Get("test.Users", U), Del("test.Plain", [Filter("id", "ALL")]), Ping()]
    )
    assert replies[:2] == [["u"], Updated(1)]
    assert isinstance(replies[2], Page)
    assert replies[2].entities[0].properties == {"age": 2}
    assert replies[3:] == [1, None]


def test_a_commit_tells_what_it_changed(
    store: Store, entities: StoreEntities, clock: Clock
) -> None:
    with entities.subscribe("test.Users") as changes, entities.subscribe() as all_tables:
        entities.put_raw("test.Users", [{"id": "u", "age": 1}, PutEntity({}, "v", ttl=10**9)])
        entities.update_raw("test.Users", U, [Change("SET", "city", "x")])
        entities.delete_raw("test.Users", U)
        entities.put_raw("test.Plain", [{"id": "p"}])
        clock.advance(seconds=2)
        store.sweep()

        told = [entities.read_notice(notice.payload) for notice in changes.poll()]
        assert [notice.table for notice in told] == ["test.Users"] * 4
        assert [change for notice in told for change in notice.changes] == [
            Changed("u", "put", 1, ("age",)),
            Changed("v", "put", 1, ()),
            Changed("u", "update", 2, ("city",)),
            Changed("u", "delete", 2),
            Changed("v", "expire", 1),
        ]
        assert len(all_tables.poll()) == 5


def test_many_changes_share_several_notices(entities: StoreEntities) -> None:
    with entities.subscribe("test.Plain") as changes:
        entities.put_raw("test.Plain", [{} for _ in range(2500)])

        told = [entities.read_notice(notice.payload) for notice in changes.poll()]
        assert [len(notice.changes) for notice in told] == [1000, 1000, 500]


def test_a_table_that_is_emptied_names_no_entity(entities: StoreEntities) -> None:
    entities.put_raw("test.Plain", [{"id": "p"}])
    with entities.subscribe("test.Plain") as changes:
        entities.drop("test.Plain")

        [notice] = changes.poll()
        told = entities.read_notice(notice.payload)
        assert (told.is_emptied, told.changes) == (True, [])


def test_a_transaction_that_fails_tells_nothing(entities: StoreEntities) -> None:
    with entities.subscribe() as changes:
        with pytest.raises(DuplicateKey):
            entities.put_raw("test.Plain", [{"id": "p"}, {"id": "p"}], mode="insert")

        assert changes.poll() == []


def test_stats_tell_rows_sizes_and_index_states(entities: StoreEntities) -> None:
    entities.put_raw("test.Users", [{"id": f"{n:03}", "name": "x" * 100} for n in range(300)])

    stats = entities.stats()

    assert set(stats) == {"test.Users", "test.Keyed", "test.Hashed", "test.Plain"}
    users = stats["test.Users"]
    assert users.num_rows == 300
    assert 300 * 100 < users.data_size < 300 * 150
    assert 300 * 3 < users.keys_size < 300 * 20
    assert {(index.state, index.indexed) for index in users.indexes.values()} == {("ready", 300)}
    assert (stats["test.Plain"].num_rows, stats["test.Plain"].data_size) == (0, 0)
    assert list(entities.stats(limit=2)) == ["test.Hashed", "test.Keyed"]
    assert entities.stats(after="test.Plain") == {"test.Users": users}


def test_spaces_do_not_see_each_other(store: Store, entities: StoreEntities) -> None:
    other = store.space("other").entities
    other.deploy("schema: test\ntables: {Plain: }")
    other.put_raw("test.Plain", [{"id": "x"}])

    assert entities.count_raw("test.Plain") == 0
    assert other.count_raw("test.Plain") == 1
