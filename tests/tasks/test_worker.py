"""`Worker`: slots in threads, one fetcher, one heartbeat thread."""

import asyncio
import logging
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

import holdfast
from holdfast.errors import BadTask, Forbidden, StoreUnreachable
from holdfast.store import Store
from holdfast.tasks import Batch, Run, Tasks, Tx, Worker, provided
from holdfast.testing import temporary_server
from tests.stores import Stores
from tests.tasks.waiting import until

pytestmark = pytest.mark.every_engine


@pytest.fixture
def store(stores: Stores) -> Iterator[Store]:
    """A store on the real clock: workers wait for real."""
    with stores.open(clock=time.time) as store:
        yield store


def test_all_that_is_due_is_run_and_what_it_puts(store: Store) -> None:
    tasks, ran = Tasks(queue="q"), list[int]()

    @tasks.task
    def count(run: Run, number: int) -> None:
        ran.append(number)
        if number < 10:
            count.put(store, number + 10)

    count.put_many(store, [(number,) for number in range(10)])
    count.options(delay=100).put(store, 99)
    runs = Worker(store, tasks, threads=3).run_until_empty()

    assert sorted(ran) == list(range(20))
    assert runs == 20
    assert store.jobs.counts("q").running == 0
    assert store.jobs.counts("q").scheduled == 1


def test_runs_are_counted_in_the_metrics_of_the_space(store: Store) -> None:
    tasks = Tasks(queue="q")

    @tasks.task(retries=0)
    def check(number: int) -> None:
        assert number

    check.put_many(store, [(number,) for number in range(4)])
    Worker(store, tasks).run_until_empty()
    check.put(store, 1)
    Worker(store, tasks).run_until_empty()

    def runs(outcome: str) -> float:
        entity = ["q", outcome]
        return store.metrics.rate("runs", entity, latest=3_600, prefix="worker").total

    assert runs("complete") == 4
    assert runs("fail") == 1
    assert store.metrics.defined() == {}


def test_slots_run_at_the_same_time_under_names_of_their_own(store: Store) -> None:
    tasks, names = Tasks(queue="q"), set[str]()
    together = threading.Barrier(3, timeout=20)

    @tasks.task
    def meet(run: Run) -> None:
        together.wait()
        names.add(run.job.worker)

    meet.put_many(store, [(), (), ()])
    Worker(store, tasks, threads=3, name="w").run_until_empty()

    assert names == {"w-0", "w-1", "w-2"}


def test_a_worker_beside_a_program_takes_jobs_as_they_come(store: Store) -> None:
    tasks = Tasks(queue="q")

    @tasks.task
    def double(number: int) -> int:
        return 2 * number

    with Worker(store, tasks, threads=2):
        assert [double.put(store, number).result(timeout=20) for number in range(5)] == [
            *(0, 2, 4, 6, 8)
        ]


def test_a_job_that_is_scheduled_starts_when_it_is_due(store: Store) -> None:
    tasks = Tasks(queue="q")
    tasks.task(name="work")(lambda: 1)

    with Worker(store, tasks):
        store.jobs.put("q", "work", {}, id="a", delay=0.2)

        assert store.jobs.result_wait("a", timeout=20).state == "complete"


def test_async_tasks_run_too(store: Store) -> None:
    tasks = Tasks(queue="q")

    @tasks.task
    async def work(number: int) -> int:
        await asyncio.sleep(0)
        return number

    jobs = work.put_many(store, [(number,) for number in range(5)])
    Worker(store, tasks, threads=2).run_until_empty()

    assert [job.result(timeout=0) for job in jobs] == [0, 1, 2, 3, 4]


def test_the_effects_of_tx_tasks_happen_once(store: Store) -> None:
    store.metrics.define({"done": {"lifetime": True}})
    tasks = Tasks(queue="q")

    @tasks.task
    def count(tx: Tx) -> None:
        tx.metrics.incr("done")

    count.put_many(store, [()] * 30)
    Worker(store, tasks, threads=4).run_until_empty()

    assert store.metrics.lifetime("done") == 30


def test_locks_are_renewed_while_tasks_run(store: Store) -> None:
    tasks = Tasks(queue="q")
    may_end = threading.Event()

    @tasks.task
    def slow(run: Run) -> str:
        run.progress(0.5, "half")
        may_end.wait(20)
        return run.job.worker

    with Worker(store, tasks, name="w", lock_seconds=2):
        job = slow.put(store)
        until(lambda: store.jobs.get(job.id).state == "running")  # type: ignore[union-attr]
        begun = store.jobs.get(job.id)
        assert begun is not None
        until(lambda: store.jobs.get(job.id).expires > begun.expires + 1)  # type: ignore[union-attr]
        assert store.jobs.pop("q", "thief") == []
        until(lambda: store.jobs.get(job.id).progress == 0.5)  # type: ignore[union-attr]
        may_end.set()
        assert job.result(timeout=20) == "w-0"


def test_a_run_whose_lock_is_lost_is_told(store: Store) -> None:
    tasks, seen = Tasks(queue="q"), list[str]()
    begun = threading.Event()

    @tasks.task(lock_seconds=0.3)
    def slow(run: Run) -> None:
        begun.set()
        until(lambda: run.is_lost)
        try:
            run.check()
        except Exception as error:
            seen.append(type(error).__name__)
            raise

    with Worker(store, tasks):
        job = slow.put(store)
        assert begun.wait(20)
        store.jobs.cancel(job.id)
        until(lambda: seen)

    assert seen == ["Canceled"]


def test_a_task_beyond_its_timeout_ends_at_its_check(store: Store) -> None:
    tasks = Tasks(queue="q")

    @tasks.task(timeout=0.05, retries=0)
    def slow(run: Run) -> None:
        for _ in range(10_000):
            run.check()
            threading.Event().wait(0.01)

    slow.put(store)
    Worker(store, tasks).run_until_empty()

    assert store.jobs.failed() == {"timeout": 1}


def test_the_timeout_of_a_job_comes_before_that_of_its_task(store: Store) -> None:
    tasks, ran = Tasks(queue="q"), list[float]()

    @tasks.task(timeout=3600, retries=0)
    def slow(run: Run) -> None:
        assert run.deadline is not None
        ran.append(run.deadline - time.monotonic())

    slow.options(timeout=100).put(store)
    slow.put(store)
    Worker(store, tasks).run_until_empty()

    short, long = sorted(ran)
    assert short <= 100 < long


def test_a_run_that_does_not_complete_its_job_is_logged_with_the_reason(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    tasks = Tasks(queue="q")

    @tasks.task(name="breaks", retries=1, backoff=0)
    def breaks(text: str) -> None:
        raise ConnectionError(text)

    @tasks.task
    def works() -> None: ...

    works.put(store)
    job = breaks.put(store, "no route " + "x" * 1000 + "\nand more")
    with caplog.at_level(logging.INFO, "holdfast.tasks"):
        Worker(store, tasks, name="w").run_until_empty()

    lines = [record for record in caplog.records if hasattr(record, "job")]
    assert [(line.levelname, line.job) for line in lines] == [
        ("WARNING", job.id),
        ("ERROR", job.id),
    ]
    again, failed = (line.message for line in lines)
    reason = "ConnectionError: no route xxx"
    assert f"job {job.id} (breaks) runs again in 0 s: {reason}" in again
    assert f"job {job.id} (breaks) failed in the group q-ConnectionError: {reason}" in failed
    assert len(failed) < 700
    assert vars(lines[0])["queue"] == "q"
    assert vars(lines[0])["worker"].startswith("w")


def test_a_worker_that_stops_lets_tasks_finish_and_hands_back_the_rest(store: Store) -> None:
    tasks = Tasks(queue="q")
    begun, may_end = threading.Semaphore(0), threading.Event()

    @tasks.task
    def quick(run: Run) -> None:
        begun.release()
        until(lambda: may_end.is_set() or run.is_lost)

    @tasks.task(priority=-1)
    def stuck(run: Run) -> None:
        begun.release()
        until(lambda: run.is_lost)

    done, left = quick.put(store), stuck.put(store)
    worker = Worker(store, tasks, threads=2)
    worker.start()
    assert begun.acquire(timeout=20)
    assert begun.acquire(timeout=20)
    may_end.set()
    worker.stop(drain_seconds=0.5)

    states = [job.get().state for job in (done, left)]  # type: ignore[union-attr]
    assert states == ["complete", "stalled"], "the second is first in the queue"
    assert left.get().remaining == 5  # type: ignore[union-attr]


def test_a_report_that_can_not_be_stored_fails_its_job_alone(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    tasks = Tasks(queue="q")

    @tasks.task
    def large() -> str:
        return "x" * 17_000_000

    @tasks.task
    def small() -> str:
        return "x"

    with caplog.at_level(logging.CRITICAL, "holdfast.tasks"):
        jobs = [large.put(store), small.put(store)]
        Worker(store, tasks, threads=2).run_until_empty()

    assert [job.get().state for job in jobs] == ["failed", "complete"]  # type: ignore[union-attr]


def test_a_worker_deploys_schedules_when_it_starts(store: Store) -> None:
    tasks = Tasks(queue="q")
    ran = threading.Semaphore(0)

    @tasks.every(0.1)
    @tasks.task
    def tick() -> None:
        ran.release()

    with Worker(store, tasks):
        assert ran.acquire(timeout=20)
        assert ran.acquire(timeout=20)


def test_provided_objects_are_closed_when_the_worker_stops(store: Store) -> None:
    tasks, log = Tasks(queue="q"), list[str]()

    class Session:
        def close(self) -> None:
            log.append("closed")

    tasks.provide(Session, Session)

    @tasks.task
    def use(session: Session = provided) -> None:
        log.append("used")

    use.put_many(store, [(), ()])
    Worker(store, tasks, threads=2).run_until_empty()

    assert log == ["used", "used", "closed"]


# --- over the network -----------------------------------------------------------------------------


@pytest.mark.only_on("lmdb")
def test_a_worker_on_a_server_runs_tasks_with_batches() -> None:
    tasks = Tasks(queue="q")

    @tasks.task
    def count(batch: Batch, by: int) -> int:
        batch.metrics.incr("done", value=by)
        return by

    @tasks.task
    async def count_async(run: Run, batch: Batch) -> None:
        run.log("info", "counting")
        batch.metrics.incr("done")

    with temporary_server() as url, holdfast.connect(url) as client:
        client.metrics.define({"done": {"lifetime": True}})
        with Worker(client, tasks, threads=2):
            assert count.put(client, 3).result(timeout=20) == 3
            job = count_async.put(client)
            job.result(timeout=20)

        assert client.metrics.lifetime("done") == 4
        assert [line.text for line in client.jobs.read_log(job.id)] == ["counting"]


@pytest.mark.only_on("lmdb")
def test_tx_on_a_server_is_refused_when_the_worker_is_made() -> None:
    tasks = Tasks()

    @tasks.task(name="mark")
    def mark(tx: Tx) -> None: ...

    with (
        temporary_server() as url,
        holdfast.connect(url) as client,
        pytest.raises(
            BadTask, match="task mark takes a Tx, but this worker is connected to a server"
        ),
    ):
        Worker(client, tasks)


@pytest.mark.only_on("lmdb")
def test_a_worker_without_the_right_to_work_says_which_grant_is_missing() -> None:
    tasks = Tasks()

    @tasks.task
    def idle() -> None: ...

    with temporary_server() as url:
        with holdfast.connect(url) as client:
            client.admin.add_user("eve", ["read:default:jobs"], password="quiet-harbour-7")
        with (
            holdfast.connect(url.replace("//", "//eve:quiet-harbour-7@")) as client,
            pytest.raises(
                Forbidden, match=r"eve may not write to jobs in the space 'default'.*user grant"
            ),
        ):
            Worker(client, tasks).start()


def test_a_worker_that_may_not_write_metrics_says_so_and_runs_its_jobs(
    caplog: pytest.LogCaptureFixture,
) -> None:
    tasks, ran = Tasks(queue="q"), list[int]()

    @tasks.task
    def work(number: int) -> None:
        ran.append(number)

    caplog.set_level(logging.INFO, "holdfast.tasks")
    with temporary_server() as url:
        with holdfast.connect(url) as client:
            client.admin.add_user("ann", ["write:default:jobs"], password="quiet-harbour-7")
        with holdfast.connect(url.replace("//", "//ann:quiet-harbour-7@")) as client:
            work.put(client, 7)
            Worker(client, tasks).run_until_empty()
    assert ran == [7]
    assert "the runs of this worker are not counted: ann may not" in caplog.text


def test_reports_wait_for_a_store_that_is_away(
    store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    tasks = Tasks(queue="q")
    tasks.task(name="work")(lambda: 1)
    report, calls = store.jobs.report, list[int]()

    def away_at_first(*args: Any, **kwargs: Any) -> Any:
        calls.append(len(args[0]))
        if args[0] and calls.count(1) == 1:
            raise StoreUnreachable("for a moment")
        return report(*args, **kwargs)

    monkeypatch.setattr(store.jobs, "report", away_at_first)
    with caplog.at_level(logging.CRITICAL, "holdfast.tasks"), Worker(store, tasks):
        store.jobs.put("q", "work", {}, id="a")
        assert store.jobs.result_wait("a", timeout=20).state == "complete"
