"""Statistics: times, histograms in both views, counters, retention."""

import struct
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.errors import BadArgument
from holdfast.jobs.ledger import Ledger
from holdfast.jobs.statistics import (
    DAY,
    DayTimes,
    add_times,
    bucket_of,
    totals,
)
from holdfast.store import Store
from tests.jobs.conftest import Qless
from tests.stores import Stores


def put(qless: Qless, jid: str, now: float = 0) -> None:
    qless("put", now, "worker", "queue", jid, "klass", "{}", 0)


def test_a_queue_without_a_past_has_zeros(qless: Qless) -> None:
    stats = qless("stats", 0, "queue", 0)

    assert {name: stats[name] for name in ("retries", "failed", "failures")} == {
        "retries": 0,
        "failed": 0,
        "failures": 0,
    }
    for kind in ("wait", "run"):
        assert (stats[kind]["count"], stats[kind]["mean"], stats[kind]["std"]) == (0, 0, 0)
        assert stats[kind]["histogram"] == [0] * 148


def test_wait_and_run_times_have_mean_and_deviation(qless: Qless) -> None:
    for n in range(20):
        put(qless, f"j{n:02}")
    for n in range(20):
        qless("pop", n, "queue", "worker", 1)
    for n in range(20):
        qless("complete", 2 * n, f"j{n:02}", "worker", "queue", "{}")

    stats = qless("stats", 0, "queue", 0)

    for kind in ("wait", "run"):
        assert stats[kind]["count"] == 20
        assert stats[kind]["mean"] == pytest.approx(9.5, abs=1e-12)
        assert stats[kind]["std"] == pytest.approx(5.916079783099, abs=1e-12)
        assert stats[kind]["histogram"][:20] == [1] * 20
        assert sum(stats[kind]["histogram"]) == 20


@pytest.mark.parametrize("way", ["timeout", "retry", "fail and unfail"])
def test_a_job_that_comes_back_has_waited_since_it_was_popped_before(
    qless: Qless, way: str
) -> None:
    put(qless, "jid")
    qless("pop", 0, "queue", "worker", 1)
    if way == "timeout":
        qless("timeout", 20, "jid")
    elif way == "retry":
        qless("retry", 20, "jid", "queue", "worker")
    else:
        qless("fail", 10, "jid", "worker", "group", "message")
        qless("unfail", 20, "queue", "group")
    qless("pop", 30, "queue", "worker", 1)

    assert qless("stats", 0, "queue", 0)["wait"]["mean"] == 15


def test_times_count_on_the_day_on_which_they_end(qless: Qless) -> None:
    put(qless, "jid", DAY - 10)
    qless("pop", DAY + 5, "queue", "worker", 1)
    qless("complete", 2 * DAY + 5, "jid", "worker", "queue", "{}")

    assert qless("stats", 0, "queue", 0)["wait"]["count"] == 0
    assert qless("stats", 0, "queue", DAY + 80_000)["wait"]["mean"] == 15
    assert qless("stats", 0, "queue", 2 * DAY)["run"]["mean"] == DAY


def test_a_clock_that_runs_behind_counts_as_no_time(qless: Qless) -> None:
    put(qless, "jid", 100)
    qless("pop", 50, "queue", "worker", 1)

    assert qless("stats", 0, "queue", 0)["wait"]["mean"] == 0


def test_failed_counts_those_that_are_still_failed(qless: Qless) -> None:
    for jid in ("a", "b", "c", "d"):
        put(qless, jid)
    qless("pop", 0, "queue", "worker", 4)
    for jid in ("a", "b", "c", "d"):
        qless("fail", 0, jid, "worker", "group", "message")
    assert qless("stats", 0, "queue", 0)["failed"] == 4

    qless("put", DAY, "worker", "other", "a", "klass", "{}", 0)
    qless("cancel", DAY, "b")
    qless("unfail", DAY, "elsewhere", "group", 1)

    stats = qless("stats", DAY, "queue", 0)
    assert (stats["failed"], stats["failures"]) == (1, 4)
    assert qless("stats", DAY, "other", DAY)["failed"] == 0


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ([], "Queue(): no queue name provided"),
        (["queue"], 'Stats(): Arg "date" missing or not a number: nil'),
        (["queue", "foo"], 'Stats(): Arg "date" missing or not a number: foo'),
    ],
)
def test_malformed_stats_are_refused(qless: Qless, words: list[str], text: str) -> None:
    with pytest.raises(BadArgument) as refused:
        qless("stats", 0, *words)

    assert refused.value.message == text


# --- histograms ---------------------------------------------------------------------------------


def measured(*values: float) -> DayTimes:
    *numbers, rest = add_times(0, 0.0, 0.0, 0, b"", values)
    return DayTimes(struct.pack(">QddI", *numbers) + rest)


@pytest.mark.parametrize(
    ("seconds", "at"),
    [(0, 0), (59.9, 59), (60, 60), (3599, 118), (3600, 119), (7199, 119), (7200, 120), (86399, 141),
     (86400, 142), (172800, 143), (259200, 144), (604799, 147)],
)  # fmt: skip
def test_the_later_view_has_148_numbers(seconds: float, at: int) -> None:
    histogram = measured(seconds).histogram()

    assert len(histogram) == 148
    assert [number for number, count in enumerate(histogram) if count] == [at]


@pytest.mark.parametrize(
    ("seconds", "at"),
    [(0, 0), (60, 60), (3599, 118), (3600, 119), (4500, 120), (86399, 210), (86400, 211),
     (259199, 258), (259200, 259), (30 * DAY - 1, 285)],
)  # fmt: skip
def test_the_seeds_view_has_286_numbers(seconds: float, at: int) -> None:
    histogram = measured(seconds).v1_histogram()

    assert len(histogram) == 286
    assert [number for number, count in enumerate(histogram) if count] == [at]


def test_very_long_times_are_counted_but_not_listed() -> None:
    found = measured(7 * DAY, 10_000 * DAY)

    assert found.count == 2
    assert sum(found.histogram()) == 0
    assert sum(found.v1_histogram()) == 1
    assert bucket_of(10**12) == 286


# --- retention ----------------------------------------------------------------------------------


def wait_on_day(store: Store, day: int) -> None:
    now = day * DAY
    store.jobs.put("queue", id=f"day-{day}", now=now)
    store.jobs.pop("queue", "worker", now=now)
    store.jobs.fail(f"day-{day}", "worker", "group", "message", now=now)


def test_old_histograms_then_old_days_are_dropped(store: Store) -> None:
    for day in (0, 8, 31):
        wait_on_day(store, day)

    assert store.jobs.stats("queue", 0).wait.count == 0
    assert store.jobs.stats("queue", 0).failures == 0
    old = store.jobs.stats("queue", 8 * DAY)
    assert (old.wait.count, sum(old.wait.histogram), old.failures) == (1, 0, 1)
    new = store.jobs.stats("queue", 31 * DAY)
    assert (new.wait.count, sum(new.wait.histogram)) == (1, 1)


def test_how_long_statistics_are_kept_is_configured(store: Store) -> None:
    store.jobs.config_set("stats-history", 1)
    for day in (0, 2):
        wait_on_day(store, day)

    assert store.jobs.stats("queue", 0).wait.count == 0


# --- days that change -----------------------------------------------------------------------------


@settings(deadline=None, max_examples=40)
@given(
    st.lists(
        st.tuples(st.sampled_from(["put", "pop", "complete", "fail", "cancel"]), st.integers(0, 3)),
        max_size=30,
    )
)
def test_counts_and_times_are_right_however_the_days_alternate(
    stores: Stores,
    steps: list[tuple[str, int]],
) -> None:
    waiting: list[str] = []
    locked: list[str] = []
    popped: Counter[int] = Counter()
    completed: Counter[int] = Counter()
    with stores.open() as store:
        store.jobs.config_set("heartbeat", 9 * DAY)
        for number, (step, day) in enumerate(steps):
            now = day * DAY + number
            if step == "put":
                waiting.append(store.jobs.put("queue", now=now))
            elif step == "pop":
                for job in store.jobs.pop("queue", "worker", now=now):
                    waiting.remove(job.id)
                    locked.append(job.id)
                    popped[day] += 1
            elif step == "cancel" and waiting:
                store.jobs.cancel(waiting.pop(), now=now)
            elif step == "complete" and locked:
                store.jobs.complete(locked.pop(), "worker", now=now)
                completed[day] += 1
            elif step == "fail" and locked:
                store.jobs.fail(locked.pop(), "worker", "group", "message", now=now)

        counts = store.jobs.counts("queue", now=0)
        stats = [store.jobs.stats("queue", day * DAY) for day in range(4)]

    assert (counts.waiting, counts.running) == (len(waiting), len(locked))
    assert [each.wait.count for each in stats] == [popped[day] for day in range(4)]
    assert [each.run.count for each in stats] == [completed[day] for day in range(4)]
    assert [sum(each.wait.histogram) for each in stats] == [popped[day] for day in range(4)]


def test_a_day_whose_histogram_was_dropped_can_be_added_to(store: Store) -> None:
    store.jobs.config_set("histogram-history", 1)
    for day in (0, 5):
        wait_on_day(store, day)
    store.jobs.put("queue", id="late", now=0)

    store.jobs.pop("queue", "worker", now=7)

    late = store.jobs.stats("queue", 0).wait
    assert (late.count, late.histogram[7], sum(late.histogram)) == (2, 1, 1)


def test_a_history_of_three_days_keeps_three_days(store: Store) -> None:
    store.jobs.config_set("stats-history", 3)
    store.jobs.config_set("histogram-history", 2)
    for day in range(5):
        wait_on_day(store, day)

    waits = [store.jobs.stats("queue", day * DAY).wait for day in range(5)]

    assert [wait.count for wait in waits] == [0, 0, 1, 1, 1]
    assert [sum(wait.histogram) for wait in waits] == [0, 0, 0, 1, 1]


def test_totals_outlive_the_days_that_they_were_counted_on(store: Store) -> None:
    store.jobs.config_set("stats-history", 2)
    store.jobs.config_set("histogram-history", 1)
    for day in range(6):
        wait_on_day(store, day)

    with store._runner.view() as reader:
        ledger = Ledger(reader)  # type: ignore[arg-type]  # it only reads
        wait = totals(ledger, ledger.keys.queue("queue")).wait

    assert wait.number == 6
    assert sum(wait.tiers) == 6
