"""Import of jobs that wait in RQ or Celery, as the real ones have put them."""

import json
from pathlib import Path

import pytest

from holdfast.errors import BadInput
from holdfast.job_import.celery import CelerySource
from holdfast.job_import.redis_reader import RedisReader
from holdfast.job_import.rq import RqSource
from holdfast.job_import.task_names import TaskName, TaskNames, UnfitArguments, data_of
from holdfast.job_import.transfer import Transfer, transfer
from holdfast.store import Store
from tests.job_import.conftest import restore

NAMES = TaskNames(
    {
        "app.send": TaskName(name="send", parameters=("to", "template")),
        "app.at": TaskName(name="at", parameters=("when",)),
        "app.old": None,
    }
)


def take(source: RqSource | CelerySource, store: Store) -> Transfer:
    return transfer(source, store.jobs, lambda done: None)


@pytest.mark.every_engine
def test_jobs_of_rq_arrive_in_order(store: Store, reader: RedisReader, redis_url: str) -> None:
    restore(redis_url, "rq")

    done = take(RqSource(reader, NAMES), store)

    assert (done.imported, done.left_out) == (5, 2)
    jobs = store.jobs.peek("emails", 9)
    assert [(job.id, job.klass, job.data) for job in jobs] == [
        ("rq-0", "send", {"to": "urgent"}),
        ("rq-1", "send", {"to": "ann", "template": "welcome"}),
        ("rq-2", "send", {"to": "bob"}),
    ]
    assert jobs[2].timeout == 30
    assert store.jobs.jobs("scheduled", "emails") == ["rq-later"]
    assert [job.data for job in store.jobs.peek("reports")] == [{"year": 2026}]
    assert any("rq-date" in each and "datetime" in each for each in done.problems)
    assert "job rq-old: the mapping file leaves app.old out" in done.problems


def test_jobs_of_celery_arrive_in_order(store: Store, reader: RedisReader, redis_url: str) -> None:
    restore(redis_url, "celery")

    done = take(CelerySource(reader, NAMES), store)

    assert (done.imported, done.left_out) == (6, 2)
    jobs = store.jobs.peek("celery", 9)
    assert [(job.id, job.data) for job in jobs] == [
        ("celery-1", {"to": "ann", "template": "welcome"}),
        ("celery-2", {"to": "bob"}),
        ("celery-expires", {"to": "gus"}),
        ("celery-low", {"to": "low"}),
    ]
    assert jobs[2].start_by is not None
    assert store.jobs.jobs("scheduled", "celery") == ["celery-later"]
    assert [job.id for job in store.jobs.peek("reports")] == ["celery-reports"]
    assert any("application/x-python-serialize" in each for each in done.problems)
    assert any("it has expired" in each for each in done.problems)


@pytest.mark.parametrize(("kind", "source"), [("rq", RqSource), ("celery", CelerySource)])
def test_a_second_run_doubles_nothing(
    store: Store,
    reader: RedisReader,
    redis_url: str,
    kind: str,
    source: type[RqSource | CelerySource],
) -> None:
    restore(redis_url, kind)
    first = take(source(reader, NAMES), store)

    second = take(source(reader, NAMES), store)

    assert (second.imported, second.present) == (0, first.imported)
    assert second.digest == first.digest


def test_positional_arguments_need_names(store: Store, reader: RedisReader, redis_url: str) -> None:
    restore(redis_url, "celery")

    done = take(CelerySource(reader, TaskNames({})), store)

    assert done.imported == 0
    assert any("the mapping file names 0 parameters of app.send" in each for each in done.problems)


def test_arguments_that_are_no_data_are_refused() -> None:
    task = TaskName(name="task", parameters=("value",))
    many: list[object] = []
    for _ in range(30):
        many = [many, many]  # few bytes of pickle, and a thousand million lists

    for args in ([many], [float("nan")], [object()], "text"):
        with pytest.raises(UnfitArguments):
            data_of(task, args, {})


def test_a_mapping_file_is_checked(tmp_path: Path) -> None:
    file = tmp_path / "tasks.json"
    file.write_text(json.dumps({"a": "b", "c": {"name": "d", "queue": "e"}, "f": None}))
    names = TaskNames.read(str(file))
    assert [names.get(name) for name in ("a", "c", "f", "g")] == [
        TaskName(name="b"),
        TaskName(name="d", queue="e"),
        None,
        TaskName(name="g"),
    ]

    file.write_text('{"a": {"nam": "b"}}')
    for path in (file, tmp_path / "nowhere"):
        with pytest.raises(BadInput, match="can't be read"):
            TaskNames.read(str(path))
