"""Statistics by class, tag and worker, over days."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.errors import BadArgument
from holdfast.jobs import StatsTable
from holdfast.jobs.breakdown import Sketch, split_notes
from holdfast.jobs.statistics import DAY
from holdfast.limits import MAX_NOTES_BYTES, MAX_STATS_DAYS, MAX_STATS_NAMES
from holdfast.store import Store
from tests.jobs.conftest import Qless
from tests.jobs.test_consistency import problems
from tests.stores import Stores


def run(
    store: Store,
    klass: str = "Send",
    worker: str = "worker",
    *,
    at: float = 0,
    waits: float = 0,
    takes: float = 0,
    tags: tuple[str, ...] = (),
    queue: str = "queue",
) -> None:
    """Lets one job wait, run and complete."""
    store.jobs.put(queue, klass, now=at, tags=tags)
    [job] = store.jobs.pop(queue, worker, now=at + waits)
    store.jobs.complete(job.id, worker, now=at + waits + takes)


def completed(table: StatsTable) -> dict[str, int]:
    return {row.name: row.completed for row in table.rows}


@pytest.mark.every_engine
def test_jobs_are_counted_by_class_worker_and_chosen_tags(store: Store) -> None:
    store.jobs.config_set("stats-tags", "vip, eu")
    run(store, "Send", "one", tags=("vip", "red"), takes=2)
    run(store, "Send", "two", tags=("vip", "eu"), takes=4)
    run(store, "Bill", "one", waits=7)

    by = {by: store.jobs.stats_by("queue", by, until=0) for by in ("all", "class", "tag", "worker")}

    assert completed(by["all"]) == {"": 3}
    assert completed(by["class"]) == {"Send": 2, "Bill": 1}
    assert completed(by["worker"]) == {"one": 2, "two": 1}
    assert completed(by["tag"]) == {"vip": 2, "eu": 1}
    send, bill = by["class"].rows
    assert (send.run.mean, send.run.longest, bill.wait.mean) == (3, 4, 7)


def test_failures_and_lost_locks_are_counted_where_they_happened(store: Store) -> None:
    store.jobs.config_set("grace-period", 0)
    store.jobs.config_set("dead-dead-letter", "letters")
    for queue in ("queue", "dead"):
        store.jobs.put(queue, "Send", now=0)
        store.jobs.pop(queue, "one", lock_seconds=5, now=0)
        [job] = store.jobs.pop(queue, "two", now=10)
        store.jobs.fail(job.id, "two", "group", "message", now=20)

    for queue in ("queue", "dead"):
        [row] = store.jobs.stats_by(queue, until=0).rows
        assert (row.name, row.retries, row.failures, row.completed) == ("Send", 1, 1, 0)
        workers = store.jobs.stats_by(queue, "worker", until=0).rows
        assert {row.name: (row.retries, row.failures) for row in workers} == {
            "one": (1, 0),
            "two": (0, 1),
        }


@pytest.mark.every_engine
def test_runs_that_are_retried_after_an_error_are_counted_as_retries(store: Store) -> None:
    store.jobs.put("queue", "Send", retries=1, now=0)
    for _ in range(2):
        [job] = store.jobs.pop("queue", "one", now=0)
        store.jobs.retry(job.id, "one", group="ValueError", message="no address", now=0)

    [row] = store.jobs.stats_by("queue", until=0).rows
    [worker] = store.jobs.stats_by("queue", "worker", until=0).rows

    assert (row.retries, row.failures, row.completed) == (1, 1, 0)
    assert (worker.name, worker.retries, worker.failures) == ("one", 1, 1)
    assert store.jobs.stats("queue", date=0).retries == 0  # Qless counts only locks that have ended


def test_a_free_retry_is_no_retry_in_the_statistics(store: Store) -> None:
    store.jobs.put("queue", "Send", now=0)
    [job] = store.jobs.pop("queue", "one", now=0)

    store.jobs.retry(job.id, "one", free=True, now=0)

    assert store.jobs.stats_by("queue", until=0).rows == ()


@pytest.mark.every_engine
def test_many_jobs_and_few_give_the_same_numbers(store: Store) -> None:
    jobs = 3 * MAX_NOTES_BYTES // 12  # the notes of several records
    for number in range(jobs):
        run(store, f"Class{number % 3}", f"worker-{number % 2}", at=number, takes=number % 10)

    classes = store.jobs.stats_by("queue", "class", until=0)
    workers = store.jobs.stats_by("queue", "worker", until=0)
    [everything] = store.jobs.stats_by("queue", "all", until=0).rows

    assert sum(completed(classes).values()) == sum(completed(workers).values()) == jobs
    assert len(classes.rows) == 3
    assert len(workers.rows) == 2
    assert everything.run.mean == pytest.approx(4.5, rel=0.02)
    assert everything.run.p50 == pytest.approx(4, rel=0.05)
    assert everything.run.p90 == pytest.approx(8, rel=0.05)
    assert problems(store) == []


def test_a_range_of_days_is_summed_up(store: Store) -> None:
    for day in range(5):
        run(store, at=day * DAY, takes=10 * (day + 1))

    table = store.jobs.stats_by("queue", since=1 * DAY + 5, until=3 * DAY + 7)

    [row] = table.rows
    assert (row.completed, row.run.longest) == (3, 40)
    assert row.run.mean == pytest.approx(30)
    assert row.run.std == pytest.approx(10)
    assert (table.since, table.until) == (DAY, 4 * DAY)
    assert store.jobs.stats_by("queue", since=5 * DAY, until=9 * DAY).rows == ()


def test_one_name_can_be_asked_for(store: Store) -> None:
    for day in range(2):
        for worker in ("one", "two"):
            run(store, worker=worker, at=day * DAY)

    found = store.jobs.stats_by("queue", "worker", name="two", since=0, until=DAY)

    assert completed(found) == {"two": 2}
    assert store.jobs.stats_by("queue", "worker", name="three", since=0, until=DAY).rows == ()


def test_rows_come_busiest_first_and_as_many_as_asked_for(store: Store) -> None:
    for klass in ("B", "A", "C", "C"):
        run(store, klass)

    table = store.jobs.stats_by("queue", until=0, count=2)

    assert [row.name for row in table.rows] == ["C", "A"]
    assert table.names == 3


def test_names_beyond_the_bound_are_counted_as_others(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.jobs.breakdown.MAX_STATS_NAMES", 3)
    monkeypatch.setattr("holdfast.jobs.statistics.MAX_NOTES_BYTES", 0)
    for number in range(5):
        run(store, f"Class{number}", takes=number)
    run(store, "Class0")

    table = store.jobs.stats_by("queue", until=0)

    assert completed(table) == {"Class0": 2, "Class1": 1, "Class2": 1}
    assert table.others is not None
    assert (table.others.completed, table.others.run.mean) == (2, 3.5)
    assert problems(store) == []
    assert MAX_STATS_NAMES > 3


def test_days_are_kept_as_long_as_the_statistics_of_the_queue(store: Store) -> None:
    store.jobs.config_set("stats-history", 3)
    for day in range(6):
        run(store, at=day * DAY)

    found = [store.jobs.stats_by("queue", until=day * DAY).names for day in range(6)]

    assert found == [0, 0, 0, 1, 1, 1]


def test_names_may_be_as_long_as_names_can_be(store: Store) -> None:
    run(store, "k" * 1024, "w" * 1024)

    assert completed(store.jobs.stats_by("queue", until=0)) == {"k" * 1024: 1}


def test_what_makes_no_sense_is_refused(store: Store) -> None:
    for refused in (
        {"by": "weather"},
        {"since": 2 * DAY, "until": 0},
        {"since": 0, "until": MAX_STATS_DAYS * DAY},
    ):
        with pytest.raises(BadArgument):
            store.jobs.stats_by("queue", **refused)
    for tags in ("[1", ",".join(f"tag{number}" for number in range(33)), "[[]]"):
        with pytest.raises(BadArgument):
            store.jobs.config_set("stats-tags", tags)


def test_the_wire_of_qless_gives_one_name(qless: Qless) -> None:
    qless("put", 0, "", "queue", "jid", "Send", "{}", 0)
    qless("pop", 3, "queue", "worker", 1)
    qless("complete", 8, "jid", "worker", "queue", "{}")

    for by, name in (("worker", "worker"), ("klass", "Send")):
        found = qless("stats", 9, "queue", 0, by, name)
        assert (found["wait"]["mean"], found["run"]["mean"], found["run"]["p99"]) == (3, 5, 5)
    assert qless("stats", 9, "queue", 0, "tag", "vip")["run"]["count"] == 0
    with pytest.raises(BadArgument, match=r"Stats\(\): Arg"):
        qless("stats", 9, "queue", 0, "weather", "rain")


@settings(deadline=None, max_examples=50)
@given(st.lists(st.floats(0, 10**7), min_size=1, max_size=200), st.integers(1, 200))
def test_merged_sketches_know_what_one_of_all_knows(times: list[float], at: int) -> None:
    whole, merged = Sketch.of(times), Sketch.of(times[:at])
    merged.merge(Sketch.of(times[at:]))

    assert (merged.count, merged.buckets) == (whole.count, whole.buckets)
    assert merged.mean == pytest.approx(whole.mean, abs=1e-6)
    assert merged.vk == pytest.approx(whole.vk, rel=1e-6, abs=1e-3)
    exact = sorted(times)[-(-len(times) // 2) - 1]
    assert whole.percentile(0.5) == pytest.approx(exact, rel=0.05, abs=0.001)


def test_a_flow_from_before_there_were_notes_has_none(stores: Stores) -> None:
    flow = bytes(44)

    assert split_notes(flow) == (flow, b"")
