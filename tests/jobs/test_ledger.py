"""Records that are handed over from one operation to the next are those that were stored."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.errors import BadArgument
from holdfast.jobs import ledger
from holdfast.jobs.records import JobRecord
from holdfast.limits import MAX_CACHED_JOB_RECORD_BYTES, MAX_CACHED_JOB_RECORDS
from holdfast.store import Store, Tx
from tests.stores import Stores


class Undone(Exception):
    pass


def handed_over() -> list[tuple[bytes, JobRecord]]:
    return list(ledger._CACHED_RECORDS.values())


def test_a_taken_job_has_what_others_have_written_meanwhile(store: Store) -> None:
    store.jobs.put("queue", "klass")
    id = store.jobs.put("queue", "klass", {"n": 1})
    store.jobs.tag(id, "urgent")

    job = store.jobs.pop("queue", "worker", 2)[1]

    assert (job.id, job.tags, job.data) == (id, ("urgent",), {"n": 1})


def test_a_pop_that_was_undone_leaves_the_job_as_it_was(store: Store) -> None:
    store.jobs.put("queue", "klass")

    def pop_in_vain(tx: Tx) -> None:
        tx.jobs.pop("queue", "first")
        raise Undone

    with pytest.raises(Undone):
        store.transact(pop_in_vain)
    [job] = store.jobs.pop("queue", "second")

    assert [entry.more for entry in job.history] == [{"q": "queue"}, {"worker": "second"}]


def test_a_completion_that_was_refused_leaves_the_job_as_it_was(store: Store) -> None:
    store.jobs.put("queue", "klass")
    [job] = store.jobs.pop("queue", "worker")

    with pytest.raises(BadArgument, match="next"):
        store.jobs.complete(job.id, "worker", next="\0")

    assert store.jobs.get(job.id) == job
    assert store.jobs.complete(job.id, "worker", lock=job.lock) == "complete"


def test_records_are_kept_for_a_few_jobs_only_and_for_none_that_is_long(store: Store) -> None:
    for _ in range(MAX_CACHED_JOB_RECORDS + 10):
        store.jobs.put("queue", "klass")
    store.jobs.config_set("max-job-history", 1000)
    id = store.jobs.put("other", "klass")
    for _ in range(MAX_CACHED_JOB_RECORD_BYTES // 10):
        store.jobs.log(id, "something long enough happened")

    store.jobs.pop("other", "worker")

    assert len(handed_over()) <= MAX_CACHED_JOB_RECORDS
    assert id not in [job.jid for _, job in handed_over()]


WORK = st.sampled_from(["put", "put later", "pop", "complete", "heartbeat", "retry", "undone pop"])


@settings(max_examples=30, deadline=None)
@given(st.lists(WORK, max_size=20))
def test_nobody_changes_a_record_that_was_handed_over(stores: Stores, work: list[str]) -> None:
    ledger._CACHED_RECORDS.clear()
    with stores.open() as store:
        for each in work:
            run(store, each)

            for value, job in handed_over():
                assert ledger._decode_job(value) == job


def run(store: Store, what: str) -> None:
    held = store.jobs.worker("worker").jobs
    if what == "put":
        store.jobs.put("queue", "klass", [1])
    elif what == "put later":
        store.jobs.put("queue", "klass", priority=1, retries=3, delay=1)
    elif what == "pop":
        store.jobs.pop("queue", "worker", lock_seconds=60)
    elif what == "undone pop":
        with pytest.raises(Undone):
            store.transact(lambda tx: raise_undone(tx.jobs.pop("queue", "worker")))
    elif held and what == "complete":
        store.jobs.complete(held[0], "worker")
    elif held and what == "heartbeat":
        store.jobs.heartbeat(held[0], "worker", progress=0.5)
    elif held:
        store.jobs.retry(held[0], "worker")


def raise_undone(_: object) -> None:
    raise Undone
