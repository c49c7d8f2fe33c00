"""The check of jobs reports nothing where nothing is wrong."""

from collections.abc import Callable

import pytest

from holdfast.engine.contract import Transaction, pack_counter
from holdfast.jobs import JobSearch
from holdfast.jobs.consistency import problems_at
from holdfast.jobs.layout import below
from holdfast.jobs.space_keys import Keys, keys_of
from holdfast.store import Store
from holdfast.testing import Clock


def problems(store: Store) -> list[str]:
    with store._runner.view() as reader:
        begin = keys_of(reader.space).all
        pairs = list(reader.scan(begin, begin + b"\xff"))
        return [text for key, value in pairs for text in problems_at(reader, key, value)]


def test_a_job_in_its_grace_period_is_in_order(store: Store, clock: Clock) -> None:
    store.jobs.put("queue", id="jid")
    store.jobs.pop("queue", "one", lock_seconds=60)
    clock.advance(seconds=61)

    assert store.jobs.pop("queue", "two") == []

    assert problems(store) == []


def test_a_lock_that_outlives_its_worker_is_in_order(store: Store, clock: Clock) -> None:
    store.jobs.put("queue", id="jid")
    store.jobs.pop("queue", "one", lock_seconds=10**6)
    clock.advance(seconds=86400)

    assert store.jobs.workers() == []
    assert problems(store) == []

    store.jobs.pop("queue", "one")
    assert problems(store) == []


def test_a_worker_that_lacks_a_job_of_its_own_is_not(store: Store) -> None:
    store.jobs.put("queue", id="jid")
    store.jobs.pop("queue", "one")

    store._runner.transact(lambda tx: tx.delete(keys_of(tx.space).held_job("one", "jid")))

    assert problems(store) == ["job jid: the list of its worker one lacks it"]
    store.jobs.heartbeat("jid", "one")  # which lists it again


# --- rates, batches, bulk actions, statistics -----------------------------------------------------


def busy(store: Store) -> None:
    """Something of each kind: a job that waits for a rate, a batch, a bulk action, statistics."""
    store.jobs.config_set("limited-rate-per-key", "1/60")
    for id in ("a", "b"):
        store.jobs.put("limited", id=id, rate_key="ann")
    store.jobs.pop("limited", "worker", 2)
    store.jobs.batch_open("batch")
    store.jobs.put("queue", id="member", batch="batch")
    store.jobs.bulk_start("cancel", JobSearch(queue="nowhere"), id="bulk")
    for day in range(40):
        store.jobs.put("queue", "Send", id=f"day-{day}", now=day * 86400, priority=9)
        store.jobs.pop("queue", "worker", now=day * 86400)
        store.jobs.complete(f"day-{day}", "worker", now=day * 86400)


def test_all_that_queues_keep_is_looked_at_and_in_order(store: Store) -> None:
    busy(store)

    assert problems(store) == []


def first(prefix: bytes) -> Callable[[Transaction], bytes]:
    return lambda tx: next(iter(tx.scan(*below(prefix), limit=1)))[0]


DAMAGES: dict[str, tuple[Callable[[Transaction, Keys], None], str]] = {
    "a count of waiters": (
        lambda tx, keys: tx.put(keys.rate_waiters("limited", "ann"), pack_counter(7)),
        "rate of 'ann' in queue limited: counts 7 jobs that wait, has 1",
    ),
    "no count of waiters": (
        lambda tx, keys: tx.delete(keys.rate_waiters("limited", "ann")),
        "job b: waits for the rate of 'ann', which counts no waiting job",
    ),
    "a batch": (
        lambda tx, keys: tx.delete(keys.batch("batch")),
        "batch 'batch': 'total' is left over",
    ),
    "a member of a batch": (
        lambda tx, keys: tx.delete(keys.batch_job("batch", "member")),
        "job member: batch 'batch' does not list it",
    ),
    "a stranger in a batch": (
        lambda tx, keys: tx.put(keys.batch_job("batch", "a"), b""),
        "batch 'batch': lists job a, which does not belong to it",
    ),
    "outcomes of a batch": (
        lambda tx, keys: tx.put(keys.batch_count("batch", "failed"), pack_counter(7)),
        "batch 'batch': counts more outcomes than jobs",
    ),
    "a name in the statistics": (
        lambda tx, keys: tx.delete(_last_name(tx, keys)),
        "queue queue: day 38 counts 1 names, has 0",
    ),
}


def _last_name(tx: Transaction, keys: Keys) -> bytes:
    prefix = keys.queue("queue").breakdown
    return next(iter(tx.scan(*below(prefix), limit=1, reverse=True)))[0]


@pytest.mark.damages
@pytest.mark.parametrize("damage", DAMAGES)
def test_planted_damage_is_found(store: Store, damage: str) -> None:
    plant, words = DAMAGES[damage]
    busy(store)

    store._runner.transact(lambda tx: plant(tx, keys_of(tx.space)))

    assert words in problems(store)


@pytest.mark.damages
@pytest.mark.parametrize("kind", ["batches", "bulk_actions", "totals", "breakdown"])
def test_a_record_that_is_garbage_is_found(store: Store, kind: str) -> None:
    busy(store)

    def spoil(tx: Transaction) -> None:
        keys = keys_of(tx.space)
        prefix = getattr(keys.queue("queue") if kind in ("totals", "breakdown") else keys, kind)
        tx.put(first(prefix)(tx), b"\xc1")

    store._runner.transact(spoil)

    with pytest.raises(ValueError):  # noqa: PT011  # the walk over the store tells where
        problems(store)
