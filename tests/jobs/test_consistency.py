"""What `check` says of jobs: nothing where nothing is wrong."""

from holdfast.jobs.consistency import problems_at
from holdfast.jobs.layout import keys_of
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

    assert problems(store) == ["job jid: its worker one does not know that it holds it"]
    store.jobs.heartbeat("jid", "one")  # which lists it again
