"""Many workers at once: every job is handed out once, and none is lost when workers die."""

import threading
from collections import Counter
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from pathlib import Path

import holdfast
from holdfast.jobs import NewJob
from tests.jobs.crowd import work
from tests.stores import Stores

JOBS = 10_000
HOUR = 3_600  # longer than any machine takes, so that no lock ends by itself
WORKERS = 8
DEADLINE = 300


def fill(url: str, count: int) -> None:
    with holdfast.open(url, durability="interval") as store:
        store.jobs.config_set("grace-period", 0)
        store.jobs.put_many([NewJob(queue="queue", id=f"{n:05}") for n in range(count)])


def start(
    url: str, output: Path, *, count: int, die_after: int | None = None
) -> tuple[BaseProcess, Path]:
    process = get_context("spawn").Process(
        target=work,
        args=(url, output.name, str(output)),
        kwargs={"count": count, "die_after": die_after},
        daemon=True,
    )
    process.start()
    return process, output


def end(process: BaseProcess) -> None:
    """Waits for a worker: the others wait for ever for the jobs of one that broke."""
    process.join(DEADLINE)
    assert process.exitcode == 0


def read(output: Path) -> tuple[list[str], list[str]]:
    given, _, done = output.read_text().partition("\n\n")
    return given.split(), done.split()


def test_eight_threads_get_each_of_ten_thousand_jobs_once(stores: Stores) -> None:
    url = stores.url()
    fill(url, JOBS)
    given: list[list[str]] = [[] for _ in range(WORKERS)]
    with holdfast.open(url, durability="interval") as store:

        def run(mine: list[str], name: str) -> None:
            while jobs := store.jobs.pop("queue", name, 20, lock_seconds=HOUR):
                mine += [job.id for job in jobs]
                for job in jobs[::10]:
                    store.jobs.complete(job.id, name, lock=job.lock)

        threads = [
            threading.Thread(target=run, args=(mine, f"worker-{n}")) for n, mine in enumerate(given)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        counts = store.jobs.counts("queue")
        assert (counts.waiting, counts.running) == (0, JOBS - JOBS // 10)
        assert store.check() == []

    handed_out = Counter(jid for mine in given for jid in mine)
    assert len(handed_out) == JOBS
    assert set(handed_out.values()) == {1}


def test_eight_processes_get_each_of_ten_thousand_jobs_once(stores: Stores, tmp_path: Path) -> None:
    url = stores.url()
    fill(url, JOBS)

    workers = [start(url, tmp_path / f"worker-{n}", count=25) for n in range(WORKERS)]
    for process, _ in workers:
        end(process)

    handed_out = Counter(jid for _, output in workers for jid in read(output)[0])
    assert len(handed_out) == JOBS
    assert set(handed_out.values()) == {1}


def test_no_job_is_lost_when_workers_are_killed(stores: Stores, tmp_path: Path) -> None:
    url = stores.url()
    fill(url, 1_000)

    victims = [start(url, tmp_path / f"victim-{n}", count=20, die_after=100 + n) for n in range(3)]
    for process, _ in victims:
        process.join(DEADLINE)
    survivors = [start(url, tmp_path / f"survivor-{n}", count=20) for n in range(2)]
    for process, _ in survivors:
        end(process)

    assert not any(output.exists() for _, output in victims)
    with holdfast.open(url) as store:
        complete = store.jobs.jobs("complete", count=-1)
        assert sorted(complete) == [f"{n:05}" for n in range(1_000)]
        assert store.check() == []
    handed_over = [jid for _, output in survivors for jid in read(output)[1]]
    assert len(handed_over) == len(set(handed_over))
