"""`holdfast jobs`: looking after jobs."""

import pytest

import holdfast
from holdfast.tasks import Run, Tasks
from holdfast.testing import run_tasks
from tests.cli.conftest import Command


@pytest.fixture
def emails(store: holdfast.Store) -> holdfast.Store:
    store.jobs.put("emails", "app.Send", {"to": "ann"}, id="first", tags=["red"])
    store.jobs.put("emails", "app.Send", id="second", priority=5)
    store.jobs.put("emails", "app.Send", id="later", delay=3600)
    store.jobs.recur("emails", "app.Daily", interval=86_400, offset=86_400, id="daily")
    store.jobs.put("broken", "app.Send", id="failed")
    store.jobs.pop("broken", "worker")
    store.jobs.fail("failed", "worker", "timeout", "no answer from ann")
    return store


def ids(result: object) -> list[str]:
    return [job["id"] for job in result.json["jobs"]]  # type: ignore[attr-defined]


def test_queues_and_their_jobs_are_listed(command: Command, emails: holdfast.Store) -> None:
    queues = command("jobs", "list", "--json").json["queues"]

    assert {each["name"]: each["waiting"] for each in queues} == {"emails": 2, "broken": 0}
    assert ids(command("jobs", "list", "--queue", "emails", "--json")) == ["second", "first"]
    for state, expected in {"scheduled": ["later"], "recurring": ["daily"], "running": []}.items():
        listed = command("jobs", "list", "--queue", "emails", "--state", state, "--json")
        assert ids(listed) == expected
    assert ids(command("jobs", "list", "--state", "failed", "--json")) == ["failed"]


def test_lists_are_tables_for_people(command: Command, emails: holdfast.Store) -> None:
    lines = command("jobs", "list", "--queue", "emails").out.splitlines()

    assert lines[0].split() == ["id", "class", "state", "queue", "worker", "priority"]
    assert lines[2].split() == ["first", "app.Send", "waiting", "emails", "0"]


def test_a_job_is_shown_with_its_history(command: Command, emails: holdfast.Store) -> None:
    shown = command("jobs", "show", "failed")

    assert "failed: timeout: no answer from ann" in shown.out
    assert command("jobs", "show", "first", "--json").json["data"] == {"to": "ann"}


def test_a_job_of_a_task_is_shown_with_its_progress_log_and_retries(
    command: Command, emails: holdfast.Store
) -> None:
    tasks = Tasks(queue="tasks")

    @tasks.task(retries=1, backoff=0)
    def work(run: Run) -> None:
        run.progress(0.5, "half")
        run.log("warning", "it is slow")
        if run.job.attempt == 1:
            raise OSError("no route")

    job = work.put(emails)
    run_tasks(emails, tasks, keep_failures=True)

    shown = command("jobs", "show", job.id)
    assert "progress: 50% half" in shown.out
    assert "message=OSError: no route" in shown.out
    assert shown.out.splitlines()[-1].endswith("warning it is slow")
    logged = command("jobs", "show", job.id, "--json").json["log"]
    assert [line["text"] for line in logged] == ["it is slow", "it is slow"]


def test_failed_jobs_are_retried_by_name_and_by_what_they_are(
    command: Command, emails: holdfast.Store
) -> None:
    none = command("jobs", "retry", "--group", "other", "--json")
    by_name = command("jobs", "retry", "failed", "--json")
    emails.jobs.pop("broken", "worker")
    emails.jobs.fail("failed", "worker", "timeout", "no answer")
    by_group = command("jobs", "retry", "--group", "timeout", "--json")

    assert [each.json["retried"] for each in (none, by_name, by_group)] == [0, 1, 1]
    job = emails.jobs.get("failed")
    assert job is not None
    assert (job.state, job.queue) == ("waiting", "broken")


def test_a_job_that_has_not_failed_is_not_retried(command: Command, emails: holdfast.Store) -> None:
    result = command("jobs", "retry", "first", "failed", "--json")

    assert (result.code, result.error["code"]) == (1, "wrong_state")
    assert command("jobs", "retry").code == command("jobs", "retry", "a", "--all").code == 2


def test_jobs_are_canceled(command: Command, emails: holdfast.Store) -> None:
    assert command("jobs", "cancel", "first", "second").out == "canceled first, second\n"
    assert emails.jobs.multiget("first", "second") == []


def test_an_unknown_job_is_told_so_and_nothing_happens(
    command: Command, emails: holdfast.Store
) -> None:
    for words in (("show", "nobody"), ("cancel", "first", "nobody"), ("retry", "nobody")):
        result = command("jobs", *words, "--json")
        assert (result.code, result.error["code"]) == (1, "unknown_job")

    assert emails.jobs.get("first") is not None
