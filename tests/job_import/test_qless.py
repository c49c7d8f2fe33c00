"""Import of a live Qless queue: every state, list and setting arrives, and nothing twice."""

import json
from functools import partial
from pathlib import Path

import pytest

from holdfast.job_import.qless import QlessSource
from holdfast.job_import.redis_reader import RedisReader
from holdfast.job_import.transfer import Transfer, transfer
from holdfast.jobs import StoreJobs
from holdfast.store import Store, open
from holdfast.testing import Clock, crash_at_write
from tests.job_import.conftest import OriginalQless
from tests.jobs.test_consistency import problems

NOW = 1_700_000_000


def put(original: OriginalQless, jid: str, now: float = NOW, delay: float = 0, **more: str) -> None:
    options = [word for pair in more.items() for word in pair]
    original("put", now, "emails", jid, "app.Send", '{"to":  "ann", "n": []}', delay, *options)


def fill(original: OriginalQless) -> None:
    """A job in every state, a recurring one, a paused queue, an option."""
    put(original, "plain", priority="0", tags='["red", "vip"]')
    put(original, "second", NOW + 1)
    put(original, "urgent", NOW + 2, priority="10", retries="2")
    put(original, "later", NOW, 3600)
    put(original, "blocks", NOW + 3)
    put(original, "blocked", NOW + 3, depends='["blocks", "later"]')
    put(original, "twice-blocked", NOW + 3, depends='["blocked"]')
    for jid in ("runs", "fails", "done"):
        original("put", NOW, "work", jid, "app.Work", "{}", 0)
        original("pop", NOW + 10, "work", f"worker-{jid}", 1)
    original("fail", NOW + 20, "fails", "worker-fails", "smtp", "no answer")
    original("complete", NOW + 30, "done", "worker-done", "work", '{"ok": true}')
    original("recur", NOW, "work", "daily", "app.Daily", "{}", "interval", 86_400, 60)
    original("track", NOW, "track", "plain")
    original("config.set", NOW, "heartbeat", 90)
    original("pause", NOW, "emails")


def import_all(url: str, store: Store) -> None:
    """Imports in a process of its own."""
    with RedisReader(url) as reader:
        imported(reader, store.jobs)


def imported(reader: RedisReader, jobs: StoreJobs) -> Transfer:
    return transfer(QlessSource(reader), jobs, lambda done: None)


@pytest.mark.every_engine
def test_every_state_arrives(store: Store, original: OriginalQless, reader: RedisReader) -> None:
    fill(original)

    done = imported(reader, store.jobs)

    assert done.problems == []
    assert (done.read, done.imported, done.present, done.recurring) == (10, 10, 0, 1)
    assert done.states == {
        "waiting": 4,
        "scheduled": 1,
        "depends": 2,
        "running": 1,
        "failed": 1,
        "complete": 1,
    }
    counts = store.jobs.counts("emails", now=NOW)
    assert (counts.waiting, counts.scheduled, counts.depends, counts.paused) == (4, 1, 2, True)
    assert store.jobs.failed() == {"smtp": 1}
    assert store.jobs.recur_get("daily").next == NOW + 60  # type: ignore[union-attr]  # it exists
    assert store.jobs.config_get("heartbeat") == "90"
    assert [job.id for job in store.jobs.tracked().jobs] == ["plain"]
    assert problems(store) == []


def test_jobs_are_what_they_were(
    store: Store, original: OriginalQless, reader: RedisReader
) -> None:
    fill(original)
    before = {jid: json.loads(original("get", NOW, jid)) for jid in ("plain", "runs", "fails")}

    imported(reader, store.jobs)

    for jid, there in before.items():
        job = store.jobs.get(jid)
        assert job is not None
        assert (job.klass, job.queue, job.state) == (there["klass"], there["queue"], there["state"])
        assert (job.worker, job.expires) == (there["worker"], there["expires"])
        assert (job.priority, job.retries, job.remaining) == (
            there["priority"],
            there["retries"],
            there["remaining"],
        )
        assert job.data == json.loads(there["data"])
        assert list(job.tags) == list(there["tags"])
        assert [entry.what for entry in job.history] == [each["what"] for each in there["history"]]
    failure = store.jobs.get("fails").failure  # type: ignore[union-attr]  # it exists
    assert failure is not None
    assert (failure.group, failure.message, failure.worker) == ("smtp", "no answer", "worker-fails")


@pytest.mark.every_engine
def test_past_statistics_are_those_of_the_original_however_often_they_are_imported(
    store: Store, original: OriginalQless, reader: RedisReader
) -> None:
    yesterday = NOW - 86_400
    for number in range(4):
        original("put", yesterday, "work", f"old{number}", "app.Work", "{}", 0)
        original("pop", yesterday + 40 * number, "work", "w", 1)
        original("complete", yesterday + 4_000 * number, f"old{number}", "w", "work", "{}")
    fill(original)

    done = [imported(reader, store.jobs) for _ in range(2)]

    assert [each.days for each in done] == [2, 0]
    for date in (yesterday, NOW):
        there = json.loads(original("stats", NOW, "work", date))
        here = store.jobs.stats("work", date)
        assert (here.retries, here.failures) == (there["retries"], there["failures"])
        for kind in ("wait", "run"):
            times = getattr(here, kind)
            assert (times.count, list(times.histogram)) == (
                there[kind]["count"],
                there[kind]["histogram"],
            )
            assert (times.mean, times.std) == pytest.approx(
                (there[kind]["mean"], there[kind]["std"])
            )
    before = store.jobs.stats("work", NOW).run.count
    store.jobs.complete("runs", "worker-runs", now=NOW + 60)
    assert store.jobs.stats("work", NOW).run.count == before + 1
    assert problems(store) == []


def test_jobs_leave_in_the_order_of_the_original(
    store: Store, original: OriginalQless, reader: RedisReader
) -> None:
    fill(original)
    imported(reader, store.jobs)
    original("unpause", NOW, "emails")
    store.jobs.unpause("emails")

    there = [job["jid"] for job in json.loads(original("pop", NOW + 50, "emails", "w", 9))]
    here = [job.id for job in store.jobs.pop("emails", "w", 9, now=NOW + 50)]

    assert here == there == ["urgent", "plain", "second", "blocks"]
    store.jobs.complete("runs", "worker-runs", now=NOW + 60)  # its worker goes on here


def test_a_second_run_doubles_nothing(
    store: Store, original: OriginalQless, reader: RedisReader
) -> None:
    fill(original)

    class Killed(Exception):
        pass

    def kill(done: int) -> None:
        raise Killed

    with pytest.raises(Killed):
        transfer(QlessSource(reader), store.jobs, kill)
    first = imported(reader, store.jobs)
    second = imported(reader, store.jobs)

    assert first.present > 0
    assert first.imported > 0
    assert (second.imported, second.present, second.recurring) == (0, 10, 0)
    assert first.digest == second.digest != "00" * 32
    assert store.jobs.counts("emails", now=NOW).waiting == 4


def test_an_import_whose_process_is_killed_goes_on_where_it_was(
    tmp_path: Path, original: OriginalQless, reader: RedisReader, redis_url: str
) -> None:
    fill(original)
    clock = Clock(NOW + 40)
    with open(tmp_path / "whole", clock=clock) as store:
        whole = imported(reader, store.jobs)
        queues = store.jobs.queues(now=NOW)

    work = partial(import_all, redis_url)
    killed = [crash_at_write(tmp_path / "killed", work, n=n, clock=clock) for n in (40, 5)]
    with open(tmp_path / "killed", clock=clock) as store:
        rest, again = imported(reader, store.jobs), imported(reader, store.jobs)

        assert killed == [True, True]
        assert rest.imported > 0
        assert rest.present > 0
        assert (again.imported, again.present, again.recurring) == (0, 10, 0)
        assert rest.digest == again.digest == whole.digest
        assert store.jobs.queues(now=NOW) == queues
        assert problems(store) == []


def test_the_older_form_of_history_is_read(
    store: Store, original: OriginalQless, reader: RedisReader
) -> None:
    put(original, "old")
    original.client.delete("ql:j:old-history")
    stays = [
        {"q": "emails", "put": 5.5, "popped": 7, "worker": "w", "failed": 8},
        {"q": "x", "put": 9},
    ]
    original.client.hset("ql:j:old", "history", json.dumps(stays))

    imported(reader, store.jobs)

    job = store.jobs.get("old")
    assert job is not None
    assert [(entry.what, entry.when) for entry in job.history] == [
        ("put", 5),
        ("popped", 7),
        ("failed", 8),
        ("put", 9),
    ]
    assert job.history[1].more == {"worker": "w"}


def test_a_job_that_is_another_one_here_is_told_and_kept(
    store: Store, original: OriginalQless, reader: RedisReader
) -> None:
    put(original, "same")
    store.jobs.put("mine", "other.Class", id="same")

    done = imported(reader, store.jobs)

    assert (done.imported, done.differing) == (0, 1)
    assert done.problems == ["job same: what is here is not what the source has"]
    assert store.jobs.get("same").klass == "other.Class"  # type: ignore[union-attr]  # it exists


def test_what_can_not_be_read_is_left_out_with_the_reason(
    store: Store, original: OriginalQless, reader: RedisReader
) -> None:
    put(original, "sound")
    put(original, "broken")
    original.client.hset("ql:j:broken", "priority", "high")
    original.client.zadd("ql:q:emails-work", {"ghost": 1})

    done = imported(reader, store.jobs)

    assert (done.imported, done.left_out) == (1, 2)
    assert any("job ghost: a list has it" in problem for problem in done.problems)
    assert any("job broken: it can't be read" in problem for problem in done.problems)
