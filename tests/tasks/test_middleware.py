"""Middleware: before and after each run, and the headers that travel with a job."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest

from holdfast.store import Store
from holdfast.tasks import Outcome, Run, Tasks
from holdfast.testing import run_tasks


class Noting:
    def __init__(self, name: str, log: list[str]) -> None:
        self.name = name
        self.log = log

    def before(self, run: Run) -> AbstractContextManager[object] | None:
        return self.around(run)

    @contextmanager
    def around(self, run: Run) -> Iterator[None]:
        self.log.append(f"{self.name} before")
        try:
            yield
        except Exception as error:
            self.log.append(f"{self.name} saw {type(error).__name__}")
            raise
        finally:
            self.log.append(f"{self.name} left")

    def after(self, run: Run, outcome: Outcome) -> None:
        self.log.append(f"{self.name} after {outcome.what}")


def test_middleware_is_around_each_run(store: Store) -> None:
    tasks, log = Tasks(), list[str]()
    tasks.use(Noting("outer", log))
    tasks.use(Noting("inner", log))

    @tasks.task
    def work() -> None:
        log.append("work")

    work.put(store)
    run_tasks(store, tasks)

    assert log == [
        *("outer before", "inner before", "work"),
        *("inner after complete", "outer after complete", "inner left", "outer left"),
    ]


@pytest.mark.parametrize("is_async", [False, True])
def test_middleware_sees_what_the_task_raised(store: Store, is_async: bool) -> None:
    tasks, log = Tasks(), list[str]()
    tasks.use(Noting("it", log))

    if is_async:

        @tasks.task(name="work", retries=1)
        async def work() -> None:
            raise OSError
    else:

        @tasks.task(name="work", retries=1)
        def work() -> None:
            raise OSError

    store.jobs.put("default", "work", {})
    [ran] = run_tasks(store, tasks, keep_failures=True)

    assert log == ["it before", "it after retry", "it saw OSError", "it left"]
    assert isinstance(ran.outcome.error, OSError)


def test_middleware_that_fails_before_a_run_fails_it(store: Store) -> None:
    tasks = Tasks()

    class Broken:
        def before(self, run: Run) -> None:
            raise ConnectionError("no session")

        def after(self, run: Run, outcome: Outcome) -> None:
            raise ValueError("nobody hears of it but the log")

    tasks.use(Broken())
    tasks.task(name="work", retries=0)(lambda: None).put(store)
    run_tasks(store, tasks, keep_failures=True)

    assert store.jobs.failed() == {"default-ConnectionError": 1}


def test_a_header_travels_with_the_job_and_is_no_argument(store: Store) -> None:
    tasks, seen = Tasks(), list[str]()

    class Tracing:
        def headers(self) -> dict[str, str]:
            return {"traceparent": "00-1-2-01"}

        def before(self, run: Run) -> None:
            seen.append(run.headers["traceparent"])

        def after(self, run: Run, outcome: Outcome) -> None: ...

    tasks.use(Tracing())

    @tasks.task
    def work(order: str) -> None: ...

    job = work.put(store, "1001").get()
    run_tasks(store, tasks)

    assert job is not None
    assert job.data == {"order": "1001", "$traceparent": "00-1-2-01"}
    assert seen == ["00-1-2-01"]
