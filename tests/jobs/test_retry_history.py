"""A job that was done again says so: in its history, its retries and to Qless clients."""

import pytest

from holdfast.store import Store
from holdfast.testing import Clock
from tests.jobs.conftest import Qless


@pytest.mark.every_engine
def test_a_job_that_was_done_again_after_a_crash_tells_how_many_retries_were_left(
    store: Store, clock: Clock
) -> None:
    store.jobs.config_set("grace-period", 0)
    store.jobs.put("q", id="a", retries=5)
    store.jobs.pop("q", "crashed", lock_seconds=60)
    clock.advance(seconds=61)
    store.jobs.pop("q", "second", lock_seconds=60)

    store.jobs.complete("a", "second")

    job = store.jobs.get("a")
    assert job is not None
    assert (job.state, job.retries, job.remaining) == ("complete", 5, 4)
    happened = [(entry.what, entry.more.get("worker")) for entry in job.history]
    assert happened == [
        ("put", None),
        ("popped", "crashed"),
        ("timed-out", None),
        ("popped", "second"),
        ("done", None),
    ]


def test_a_retry_is_part_of_the_history(store: Store, clock: Clock) -> None:
    store.jobs.put("q", id="a", retries=5)
    for number in range(2):
        store.jobs.pop("q", f"w{number}")
        store.jobs.retry("a", f"w{number}", group="http", message="503")
    store.jobs.pop("q", "last")
    store.jobs.complete("a", "last")

    job = store.jobs.get("a")

    assert job is not None
    retried = [entry.more for entry in job.history if entry.what == "retried"]
    assert retried == [
        {"worker": "w0", "remaining": 4, "group": "http", "message": "503"},
        {"worker": "w1", "remaining": 3, "group": "http", "message": "503"},
    ]
    assert (job.remaining, job.failure) == (3, None)


def test_qless_clients_see_what_the_original_shows_of_a_retry(store: Store, qless: Qless) -> None:
    store.jobs.put("q", id="a", retries=5)
    store.jobs.pop("q", "w")
    store.jobs.retry("a", "w")
    store.jobs.log("a", "retried", {"by": "hand"})
    store.jobs.pop("q", "w")
    store.jobs.complete("a", "w")

    shown = qless("get", 0, "a")

    assert [entry["what"] for entry in shown["history"]] == [
        "put",
        "popped",
        "retried",  # what a user has written under that name is shown
        "popped",
        "done",
    ]
    assert shown["history"][2]["by"] == "hand"
    assert (shown["retries"], shown["remaining"]) == (5, 5)


def test_a_job_that_goes_on_to_another_queue_has_all_its_retries_there(store: Store) -> None:
    store.jobs.put("q", id="a", retries=5)
    store.jobs.pop("q", "w")
    store.jobs.retry("a", "w")
    store.jobs.pop("q", "w")

    store.jobs.complete("a", "w", next="other")

    job = store.jobs.get("a")
    assert job is not None
    assert (job.queue, job.remaining) == ("other", 5)
    store.jobs.pop("other", "w")
    store.jobs.retry("a", "w")
    store.jobs.pop("other", "w")
    store.jobs.complete("a", "w")
    store.jobs.put("q", id="a")
    again = store.jobs.get("a")
    assert again is not None
    assert again.remaining == 5
