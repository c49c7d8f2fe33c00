"""Dead letters: jobs that would fail go to another queue, and back."""

import pytest

from holdfast.errors import BadArgument, WrongState
from holdfast.jobs import Match
from holdfast.store import Store
from holdfast.testing import Clock

pytestmark = pytest.mark.every_engine


@pytest.fixture
def letters(store: Store) -> Store:
    store.jobs.config_set("emails-dead-letter", "dead")
    return store


def fail(store: Store, id: str, group: str = "smtp", queue: str = "emails") -> None:
    store.jobs.put(queue, "SendMail", {"to": id}, id=id)
    store.jobs.pop(queue, "worker")
    store.jobs.fail(id, "worker", group, f"no route to {id}")


def test_a_job_that_would_fail_waits_in_the_dead_letter_queue(letters: Store) -> None:
    fail(letters, "ann")

    job = letters.jobs.get("ann")

    assert job is not None
    assert (job.state, job.queue, job.origin) == ("waiting", "dead", "emails")
    assert job.failure is not None
    assert (job.failure.group, job.failure.message) == ("smtp", "no route to ann")
    assert letters.jobs.failed() == {}
    assert letters.jobs.stats("emails").failures == 1


def test_a_job_without_retries_goes_there_too(letters: Store, clock: Clock) -> None:
    letters.jobs.config_set("grace-period", 0)
    letters.jobs.put("emails", id="ann", retries=0)
    letters.jobs.pop("emails", "lost")

    clock.advance(seconds=61)
    letters.jobs.pop("emails", "worker")
    job = letters.jobs.get("ann")

    assert job is not None
    assert (job.queue, job.remaining) == ("dead", 0)


def test_requeue_without_a_queue_sends_a_letter_back(letters: Store) -> None:
    fail(letters, "ann")

    letters.jobs.requeue(None, "ann")
    job = letters.jobs.get("ann")

    assert job is not None
    assert (job.state, job.queue, job.origin, job.data) == (
        "waiting",
        "emails",
        None,
        {"to": "ann"},
    )


def test_requeue_without_a_queue_brings_a_failed_job_back(store: Store) -> None:
    fail(store, "ann")

    store.jobs.requeue(None, "ann")

    assert store.jobs.counts("emails").waiting == 1
    with pytest.raises(WrongState, match="name a queue"):
        store.jobs.requeue(None, "ann")


def test_all_letters_that_match_go_back(letters: Store) -> None:
    for id in ("ann", "bob", "eve"):
        fail(letters, id, "smtp" if id != "bob" else "address")
    letters.jobs.put("dead", id="by hand")

    assert letters.jobs.requeue_letters("dead", Match(group="smtp")) == 2

    assert letters.jobs.counts("emails").waiting == 2
    assert {job.id for job in letters.jobs.peek("dead", 9)} == {"bob", "by hand"}
    assert letters.jobs.requeue_letters("dead") == 1


def test_a_letter_that_fails_again_fails_in_its_dead_letter_queue(letters: Store) -> None:
    fail(letters, "ann")

    letters.jobs.pop("dead", "worker")
    letters.jobs.fail("ann", "worker", "smtp", "still no route")

    assert letters.jobs.failed() == {"smtp": 1}


def test_a_queue_can_not_be_its_own_dead_letter_queue(store: Store) -> None:
    with pytest.raises(BadArgument, match="another queue"):
        store.jobs.config_set("emails-dead-letter", "emails")
