"""Work in steps that a clock ahead has begun goes on when that clock is set back."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from holdfast.jobs import JobSearch, NewJob
from holdfast.limits import EXPIRY_RETRY_MS, JOBS_PER_STEP
from holdfast.store import Store
from holdfast.testing import Clock
from tests.tables.schemas import hash_on, simple

pytestmark = pytest.mark.every_engine

YEARS = 10 * 365 * 86_400.0


@contextmanager
def ahead(clock: Clock) -> Iterator[None]:
    clock.advance(seconds=YEARS)
    yield
    clock.advance(seconds=-YEARS)


def sweep(store: Store, clock: Clock) -> None:
    for _ in range(20):
        store.sweep()
        clock.advance(seconds=EXPIRY_RETRY_MS / 1_000)


def test_the_index_of_a_schema_is_built(store: Store, clock: Clock) -> None:
    table = "schema: s\ntables:\n  T:\n    columns: {a: {type: Int}}\n    indexes: [%s]"
    store.entities.deploy(table % "")
    store.entities.put_raw("s.T", [{"id": f"{n:04}", "a": n} for n in range(1_200)])
    with ahead(clock):
        store.entities.deploy(table % "{type: simple, columns: [a]}", wait=False)

    sweep(store, clock)

    [index] = store.entities.stats()["s.T"].indexes.values()
    assert (index.state, index.indexed) == ("ready", 1_200)


def test_the_index_of_a_table_is_built(store: Store, clock: Clock) -> None:
    store.tables.create(simple())
    rows = [{"key": "a", "place": place, "value": "v"} for place in range(900)]
    store.tables.batch([{"op": "put", "table": "simple", "attributes": row} for row in rows])
    with ahead(clock):
        store.tables.add_index("simple", "by_value", [hash_on("value")])

    sweep(store, clock)

    assert store.tables.index_progress("simple", "by_value").complete


def test_an_action_on_many_jobs_is_finished(store: Store, clock: Clock) -> None:
    many = 3 * JOBS_PER_STEP
    list(store.jobs.put_all([NewJob(queue="q", id=f"{n:04}") for n in range(many)]))
    with ahead(clock):
        action = store.jobs.bulk_start("cancel", JobSearch(queue="q"))

    sweep(store, clock)

    done = store.jobs.bulk(action.id)
    assert done is not None
    assert (done.state, done.changed) == ("done", many)


def test_a_fan_out_in_the_background_reaches_everyone(store: Store, clock: Clock) -> None:
    store.events.deploy(
        {
            "follow": [{"targets": ["[user].followers"], "add": "who"}],
            "post": [
                {"targets": ["[user].followers.feed"], "add": "post", "fan_out": "background"}
            ],
        }
    )
    who = [f"u{n}" for n in range(1_000)]
    store.events.configure(looked_up_members=300, fan_out_keys=1_000)
    store.events.send({"name": "follow", "attributes": {"user": "ann", "who": who}})
    with ahead(clock):
        store.events.send({"name": "post", "attributes": {"user": "ann", "post": "p"}})

    sweep(store, clock)

    assert all(store.events.contains(f"{each}:feed", "p") for each in who)
