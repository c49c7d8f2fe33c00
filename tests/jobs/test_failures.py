"""Failures: groups, the way back, dead letters."""

import pytest

from holdfast.errors import BadArgument
from holdfast.jobs import Match, NewJob
from holdfast.limits import JOBS_PER_STEP
from holdfast.store import Store
from holdfast.testing import Clock
from tests.jobs.conftest import Qless


def fail(qless: Qless, jid: str, group: str = "group", now: float = 0) -> None:
    qless("put", now, "worker", "queue", jid, "klass", "{}", 0)
    qless("pop", now, "queue", "worker", 1)
    qless("fail", now, jid, "worker", group, "message")


def test_groups_are_counted_and_listed_newest_first(qless: Qless) -> None:
    for now in range(5):
        fail(qless, f"j{now}", "one", now)
    fail(qless, "other", "two", 9)

    assert qless("failed", 9) == {"one": 5, "two": 1}
    assert qless("failed", 9, "one") == {"total": 5, "jobs": ["j4", "j3", "j2", "j1", "j0"]}
    assert qless("failed", 9, "one", 1, 2) == {"total": 5, "jobs": ["j3", "j2"]}
    assert qless("failed", 9, "nothing") == {"total": 0, "jobs": {}}


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["g", "x"], 'Failed(): Arg "start" is not a number: x'),
        (["g", "0", "x"], 'Failed(): Arg "limit" is not a number: x'),
    ],
)
def test_malformed_pages_are_refused(qless: Qless, words: list[str], text: str) -> None:
    with pytest.raises(BadArgument) as refused:
        qless("failed", 0, *words)

    assert refused.value.message == text


def test_the_oldest_of_a_group_go_back_first(qless: Qless) -> None:
    for now in range(5):
        fail(qless, f"j{now}", "group", now)

    assert qless("unfail", 9, "back", "group", 3) == 3

    assert qless("failed", 9, "group")["jobs"] == ["j4", "j3"]
    assert [job["jid"] for job in qless("peek", 9, "back", 9)] == ["j0", "j1", "j2"]
    job = qless("get", 9, "j0")
    assert (job["state"], job["queue"], job["failure"]["group"]) == ("waiting", "back", "group")
    assert job["history"][-1] == {"what": "put", "when": 9, "q": "back"}
    assert qless("unfail", 9, "back", "group") == 2
    assert qless("unfail", 9, "back", "group") == 0
    assert qless("failed", 9) == {}


def test_unfail_gives_the_retries_back(qless: Qless) -> None:
    qless("put", 0, "worker", "queue", "jid", "klass", "{}", 0, "retries", 0)
    qless("pop", 0, "queue", "worker", 1)
    qless("retry", 0, "jid", "queue", "worker")

    qless("unfail", 1, "queue", "failed-retries-queue")

    assert qless("get", 1, "jid")["remaining"] == 0


# --- a great many, and dead letters -------------------------------------------------------------


def fail_many(store: Store, count: int) -> list[str]:
    """Failed jobs; every third is of class `odd`, in queue `odd`, with a tag and another
    message.
    """
    names = ["odd" if n % 3 == 0 else "even" for n in range(count)]
    ids = store.jobs.put_many(
        [
            NewJob(queue=name, klass=name, id=f"j{n:05}", tags=(name,))
            for n, name in enumerate(names)
        ]
    )
    for name in ("odd", "even"):
        store.jobs.pop(name, "worker", count)
    for n, jid in enumerate(ids):
        store.jobs.fail(jid, "worker", f"group-{n % 2}", f"{names[n]} went wrong")
    return ids


def test_unfail_of_a_great_many_goes_in_steps(store: Store) -> None:
    ids = fail_many(store, JOBS_PER_STEP * 2 + 20)

    assert store.jobs.unfail("back", "group-0", 10**6) == len(ids) // 2
    assert store.jobs.length("back") == len(ids) // 2
    with pytest.raises(BadArgument, match="at most"), store.transaction() as tx:
        tx.jobs.unfail("back", "group-1", JOBS_PER_STEP + 1)


def test_dead_letters_are_paged_over_all_groups(store: Store) -> None:
    ids = fail_many(store, 60)

    found: list[str] = []
    cursor = None
    while True:
        page = store.jobs.dead_letters(cursor=cursor, count=7)
        found += [job.id for job in page.jobs]
        cursor = page.cursor
        if cursor is None:
            break

    assert sorted(found) == sorted(ids)
    assert len(set(found)) == len(ids)
    with pytest.raises(BadArgument):
        store.jobs.dead_letters(cursor="?")


@pytest.mark.parametrize(
    "match",
    [Match(klass="odd"), Match(queue="odd"), Match(tag="odd"), Match(message="odd went")],
)
def test_everything_that_matches_is_retried_in_its_own_queue(store: Store, match: Match) -> None:
    ids = fail_many(store, 60)
    odd = {jid for n, jid in enumerate(ids) if n % 3 == 0}
    assert {job.id for job in store.jobs.dead_letters(match, count=100).jobs} == odd

    assert store.jobs.retry_failed(match) == len(odd)

    assert {job.id for job in store.jobs.peek("odd", 100)} == odd
    assert store.jobs.retry_failed(Match(group="group-1")) == 20
    assert store.jobs.retry_failed(Match()) == 20
    assert store.jobs.failed() == {}


def test_retrying_everything_that_matches_goes_in_steps(store: Store) -> None:
    ids = fail_many(store, JOBS_PER_STEP * 2 + 5)

    assert store.jobs.retry_failed(Match()) == len(ids)


def test_dead_letters_can_be_chosen_by_time(store: Store, clock: Clock) -> None:
    fail_many(store, 3)
    clock.advance(seconds=100)
    since = clock()
    store.jobs.put("queue", id="late")
    store.jobs.pop("queue", "worker")
    store.jobs.fail("late", "worker", "group", "message")

    late = store.jobs.dead_letters(Match(failed_since=since))
    early = store.jobs.dead_letters(Match(failed_before=since))

    assert [job.id for job in late.jobs] == ["late"]
    assert len(early.jobs) == 3
    assert store.jobs.failed_in("group").jobs == ("late",)
