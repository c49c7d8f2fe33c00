"""Batches: jobs that belong together, and jobs that follow when all of them are done."""

import random
from typing import Any

import pytest

from holdfast.errors import BadArgument, UnknownBatch, WrongState
from holdfast.jobs import NewJob
from holdfast.limits import MAX_JOB_DATA_BYTES
from holdfast.store import Store
from holdfast.testing import Clock

pytestmark = pytest.mark.every_engine

SUCCESS = NewJob(queue="after", id="success")
SETTLED = NewJob(queue="after", id="settled")


def opened(store: Store, *ids: str) -> str:
    batch = store.jobs.batch_open("batch", on_success=SUCCESS, on_settled=SETTLED)
    store.jobs.put_many([NewJob(queue="work", id=id, batch=batch) for id in ids])
    return batch


def followers(store: Store) -> set[str]:
    return {job.id for job in store.jobs.peek("after", 9)}


def complete(store: Store, count: int = 1) -> None:
    for job in store.jobs.pop("work", "worker", count):
        store.jobs.complete(job.id, "worker")


def test_both_callbacks_follow_the_last_completion(store: Store) -> None:
    batch = opened(store, "a", "b")
    store.jobs.batch_close(batch)

    complete(store)
    assert followers(store) == set()
    complete(store)

    assert followers(store) == {"success", "settled"}


def test_nothing_follows_while_the_batch_is_open(store: Store) -> None:
    batch = opened(store, "a")
    complete(store)
    assert followers(store) == set()

    store.jobs.batch_close(batch)

    assert followers(store) == {"success", "settled"}


def test_an_empty_batch_succeeds_when_it_is_closed(store: Store) -> None:
    assert store.jobs.batch_close(opened(store)).is_settled
    assert followers(store) == {"success", "settled"}


def test_a_failed_job_settles_and_its_later_completion_succeeds(store: Store) -> None:
    batch = opened(store, "a", "b")
    store.jobs.batch_close(batch)
    complete(store)
    [job] = store.jobs.pop("work", "worker")

    store.jobs.fail(job.id, "worker", "broken", "it broke")
    assert followers(store) == {"settled"}
    store.jobs.requeue(None, job.id)
    complete(store)

    assert followers(store) == {"settled", "success"}


def test_a_batch_counts_what_became_of_its_jobs(store: Store) -> None:
    batch = opened(store, "a", "b", "c", "d")
    complete(store)
    store.jobs.pop("work", "worker")
    store.jobs.fail("b", "worker", "broken", "it broke")
    store.jobs.cancel("c")

    found = store.jobs.batch(batch)

    assert found is not None
    counts = (found.total, found.complete, found.failed, found.canceled, found.pending)
    assert counts == (4, 1, 1, 1, 1)
    assert not found.is_settled
    assert store.jobs.batch_jobs(batch) == ["a", "b", "d"]
    assert store.jobs.batch_jobs(batch, after="a", count=1) == ["b"]


def test_a_job_that_moves_on_is_not_done(store: Store) -> None:
    batch = opened(store, "a")
    store.jobs.batch_close(batch)
    [job] = store.jobs.pop("work", "worker")

    store.jobs.complete(job.id, "worker", next="more")
    assert followers(store) == set()
    store.jobs.pop("more", "worker")
    store.jobs.complete(job.id, "worker")

    assert followers(store) == {"success", "settled"}


def test_a_batch_is_canceled_as_a_whole(store: Store) -> None:
    batch = opened(store, "a", "b", "c")
    complete(store)

    assert store.jobs.batch_cancel(batch) == 2

    found = store.jobs.batch(batch)
    assert found is not None
    assert (found.complete, found.canceled, found.is_settled) == (1, 2, True)
    assert followers(store) == {"settled"}


def test_a_batch_can_be_made_in_one_transaction(store: Store) -> None:
    with store.transaction() as tx:
        batch = tx.jobs.batch_open(on_success=SUCCESS)
        tx.jobs.put("work", id="a", batch=batch)
        tx.jobs.batch_close(batch)

    complete(store)

    assert followers(store) == {"success"}


def test_a_closed_batch_takes_no_more_jobs(store: Store) -> None:
    batch = opened(store, "a")
    store.jobs.batch_close(batch)

    with pytest.raises(WrongState, match="is closed"):
        store.jobs.put("work", id="b", batch=batch)
    store.jobs.put("work", id="a", batch=batch)  # it is in there already

    found = store.jobs.batch(batch)
    assert found is not None
    assert found.total == 1


def test_a_batch_that_does_not_exist_is_refused(store: Store) -> None:
    with pytest.raises(UnknownBatch, match="there is no batch 'nothing'"):
        store.jobs.put("work", batch="nothing")
    with pytest.raises(UnknownBatch):
        store.jobs.batch_close("nothing")
    assert store.jobs.batch("nothing") is None


def test_a_callback_that_could_not_be_put_is_refused_at_once(store: Store) -> None:
    with pytest.raises(BadArgument, match="queue must not be empty"):
        store.jobs.batch_open(on_success=NewJob(queue=""))


@pytest.mark.parametrize(
    "callback",
    [
        NewJob(queue="after", data="x" * (MAX_JOB_DATA_BYTES + 1)),
        NewJob(queue="after", tags=("",)),
        NewJob(queue="after", depends=("",)),
        NewJob(queue="after", throttles=("",)),
        NewJob(queue="after", unique="key", unique_for="always"),
        NewJob(queue="after", rate_key=""),
        NewJob(queue="after", timeout=-1),
        NewJob(queue="after", delay=1, at=1),
    ],
)
def test_every_option_of_a_callback_is_checked_when_the_batch_is_opened(
    store: Store, callback: NewJob
) -> None:
    with pytest.raises(BadArgument):
        store.jobs.batch_open(on_settled=callback)


@pytest.mark.parametrize(
    ("options", "follows"),
    [
        ({"batch": "closed"}, True),
        ({"batch": "never opened"}, True),
        ({"unique": "key", "unique_mode": "error"}, False),
        ({"expires": 1_700_000_010.0}, False),
    ],
)
def test_a_callback_that_is_refused_later_does_not_keep_the_last_job_from_completing(
    store: Store, clock: Clock, options: dict[str, Any], follows: bool
) -> None:
    store.jobs.batch_open("closed")
    store.jobs.batch_close("closed")
    store.jobs.put("other", unique="key")
    batch = store.jobs.batch_open(on_success=NewJob(queue="after", id="success", **options))
    store.jobs.put("work", id="a", batch=batch)
    store.jobs.batch_close(batch)

    clock.advance(seconds=20)
    complete(store)

    assert store.jobs["a"].get().state == "complete"
    assert followers(store) == ({"success"} if follows else set())


def test_a_batch_is_forgotten_when_all_is_settled(store: Store) -> None:
    batch = opened(store, "a")
    store.jobs.batch_close(batch)
    with pytest.raises(WrongState, match="not settled"):
        store.jobs.batch_forget(batch)
    complete(store)

    assert store.jobs.batch_forget(batch)

    assert store.jobs.batch(batch) is None
    assert not store.jobs.batch_forget(batch)
    job = store.jobs.get("a")
    assert job is not None
    assert job.batch is None


@pytest.mark.parametrize("seed", range(3))
def test_counts_agree_with_the_jobs_whatever_happens_to_them(
    store: Store, clock: Clock, seed: int
) -> None:
    chance = random.Random(seed)
    store.jobs.config_set("grace-period", 0)
    batch = opened(store, *"abcdefgh")
    store.jobs.batch_close(batch)
    canceled: set[str] = set()

    for _ in range(60):
        id = chance.choice("abcdefgh")
        job = store.jobs.get(id)
        if job is None:
            continue
        match chance.randrange(6):
            case 0 | 1:
                store.jobs.pop("work", "worker")
            case 2 if job.state == "running":
                store.jobs.complete(id, "worker")
            case 3 if job.state == "running":
                store.jobs.fail(id, "worker", "broken", "it broke")
            case 4 if job.state == "failed":
                store.jobs.requeue(None, id)
            case 5 if job.state != "complete" and not chance.randrange(4):
                store.jobs.cancel(id)
                canceled.add(id)
            case _:
                clock.advance(seconds=20)

        jobs = [job for job in map(store.jobs.get, "abcdefgh") if job is not None]
        found = store.jobs.batch(batch)
        assert found is not None
        assert found.complete == sum(job.state == "complete" for job in jobs)
        assert found.failed == sum(job.state == "failed" for job in jobs)
        assert found.canceled == len(canceled)
        assert found.is_settled == all(job.state in ("complete", "failed") for job in jobs)
        assert ("settled" in followers(store)) >= found.is_settled
