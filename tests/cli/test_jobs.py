"""`holdfast jobs`: looking after jobs."""

import re

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


def test_a_queue_is_named_as_an_argument_or_as_an_option(
    command: Command, emails: holdfast.Store
) -> None:
    named = command("jobs", "list", "emails", "--json")
    refused = command("jobs", "list", "emails", "--queue", "broken")

    assert ids(named) == ids(command("jobs", "list", "--queue", "emails", "--json"))
    assert "name one queue, not both 'emails' and 'broken'" in refused.err


def test_an_unknown_command_is_answered_with_the_nearest_or_with_all(command: Command) -> None:
    near = command("jobs", "lst")
    far = command("jobs", "queues")

    assert "There is no command 'lst'. Did you mean 'list'?" in near.err
    assert "There is no command 'queues'. The commands are cancel, import, list, move" in far.err


def test_lists_are_tables_for_people(command: Command, emails: holdfast.Store) -> None:
    lines = command("jobs", "list", "--queue", "emails").out.splitlines()

    assert lines[0].split() == ["id", "class", "state", "queue", "worker", "priority"]
    assert lines[2].split() == ["first", "app.Send", "waiting", "emails", "0"]


def test_a_job_is_shown_with_its_history(command: Command, emails: holdfast.Store) -> None:
    shown = command("jobs", "show", "failed")

    assert "failed: timeout: no answer from ann" in shown.out
    assert re.search(r"^history:\n  \S+ \S+ put queue=broken$", shown.out, re.M)
    [job] = emails.jobs.pop("emails", "w", 1)
    emails.jobs.retry(job.id, "w", group="slow", message="not yet")
    assert "failed before: slow: not yet" in command("jobs", "show", job.id).out
    emails.jobs.pop("emails", "w", 2)
    emails.jobs.complete(job.id, "w", result={"sent": 1})
    assert 'result: {"sent":1}' in command("jobs", "show", job.id).out
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


def test_a_workflow_is_shown_with_its_steps(command: Command, emails: holdfast.Store) -> None:
    tasks = Tasks(queue="tasks")

    @tasks.workflow
    def flow(run: Run) -> None:
        run.step(abs, -3)
        run.wait("approved")

    job = flow.put(emails)
    run_tasks(emails, tasks)

    lines = command("jobs", "show", job.id).out.splitlines()
    assert lines[-3] == "steps:"
    assert lines[-2].endswith("abs: 3")
    assert lines[-1].endswith("wait approved: waits")


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


def test_a_queue_holds_together_with_every_state(command: Command, emails: holdfast.Store) -> None:
    for queue in ("emails", "broken"):
        emails.jobs.put(queue, id=f"done-{queue}", priority=9)
        emails.jobs.pop(queue, "worker")
        emails.jobs.complete(f"done-{queue}", "worker")

    complete = command("jobs", "list", "--queue", "broken", "--state", "complete", "--json")
    failed = command("jobs", "list", "--queue", "emails", "--state", "failed", "--json")

    assert (ids(complete), ids(failed)) == (["done-broken"], [])


def test_a_stalled_job_is_called_stalled(command: Command, emails: holdfast.Store) -> None:
    emails.jobs.pop("emails", "worker", lock_seconds=0)

    lines = command("jobs", "list", "--queue", "emails", "--state", "stalled").out.splitlines()

    assert lines[1].split()[:3] == ["second", "app.Send", "stalled"]


def test_an_unknown_queue_is_told_so_with_the_nearest_name(
    command: Command, emails: holdfast.Store
) -> None:
    result = command("jobs", "list", "--queue", "email", "--json")

    assert (result.code, result.error["code"]) == (1, "unknown_queue")
    assert "did you mean 'emails'?" in result.error["message"]


def test_failed_jobs_are_shown_with_group_message_and_age(
    command: Command, emails: holdfast.Store
) -> None:
    lines = command("jobs", "list", "--state", "failed").out.splitlines()
    status = command("status").out

    assert lines[0].split() == ["id", "class", "queue", "group", "message", "age"]
    assert lines[1].split()[:4] == ["failed", "app.Send", "broken", "timeout"]
    assert "no answer from ann" in lines[1]
    assert "1 failed job, the newest" in status


def test_a_failure_with_a_traceback_is_listed_by_its_exception(
    command: Command, store: holdfast.Store
) -> None:
    traceback = 'Traceback (most recent call last):\n  File "shop.py", line 41\nOSError: disk full'
    store.jobs.put("emails", id="a")
    store.jobs.pop("emails", worker="w")
    store.jobs.fail("a", "w", "OSError", traceback)

    listed = command("jobs", "list", "--state", "failed").out
    status = command("status").out

    assert "OSError: disk full" in listed
    assert "ago: OSError: disk full" in status
    assert "Traceback" not in listed + status


def test_jobs_are_put_moved_and_their_queues_paused(
    command: Command, emails: holdfast.Store
) -> None:
    put = command(
        *("jobs", "put", "letters", "app.Print", '{"to": "eve"}'),
        *("--id", "letter", "--priority", "3", "--tag", "red"),
    )
    assert put.out == "put letter into letters\n"
    job = emails.jobs.get("letter")
    assert job is not None
    assert (job.data, job.priority, job.tags) == ({"to": "eve"}, 3, ("red",))

    assert command("jobs", "move", "urgent", "letter").out == "moved letter into urgent\n"
    assert command("jobs", "pause", "urgent").out == "paused urgent\n"
    assert emails.jobs.pop("urgent", "worker") == []
    assert command("jobs", "resume", "urgent").out == "resumed urgent\n"
    assert [job.id for job in emails.jobs.pop("urgent", "worker")] == ["letter"]

    assert command("jobs", "put", "letters", "app.Print", "{").code == 2
    assert command("jobs", "move", "urgent", "nobody", "--json").error["code"] == "unknown_job"


def test_workers_and_recurring_jobs_are_listed(command: Command, emails: holdfast.Store) -> None:
    [worker] = command("jobs", "workers", "--json").json["workers"]
    [job] = command("jobs", "recurring", "--json").json["recurring"]

    assert (worker["name"], worker["jobs"]) == ("worker", 0)
    assert (job["id"], job["queue"]) == ("daily", "emails")
    assert "every 1 d" in command("jobs", "recurring", "--queue", "emails").out


def test_jobs_are_found_and_changed_together(command: Command, emails: holdfast.Store) -> None:
    found = command("jobs", "search", "--queue", "emails", "--text", "ann", "--json").json

    assert ([job["id"] for job in found["jobs"]], found["searched"], found["of"]) == (
        ["first"],
        4,
        4,
    )
    moved = command("jobs", "search", "--tag", "red", "--do", "move", "--to", "urgent")
    assert moved.out == "move: changed 1 job\n"
    assert command("jobs", "search", "--queue", "urgent", "--do", "cancel").code == 0
    assert emails.jobs.get("first") is None
    assert command("jobs", "search", "--do", "cancel", "--to", "x").code == 2
    assert command("jobs", "search", "--to", "x").code == 2


def test_statistics_are_shown_by_class_and_worker(command: Command, emails: holdfast.Store) -> None:
    [job] = emails.jobs.pop("emails", "worker-1")
    emails.jobs.complete(job.id, "worker-1")

    lines = command("jobs", "stats", "emails", "--days", "2").out.splitlines()
    assert lines[0].split()[:3] == ["class", "completed", "failed"]
    assert lines[1].split()[:3] == ["app.Send", "1", "0"]

    [row] = command("jobs", "stats", "broken", "--by", "worker", "--days", "2", "--json").json[
        "rows"
    ]
    assert (row["name"], row["failures"]) == ("worker", 1)


def test_a_list_without_jobs_says_so_and_a_paused_queue_is_marked(
    command: Command, store: holdfast.Store
) -> None:
    store.jobs.put("emails", id="a")
    store.jobs.pop("emails", worker="w")
    store.jobs.pause("emails")

    empty = command("jobs", "list", "--queue", "emails")
    [heads, row] = command("jobs", "list").out.splitlines()

    assert (empty.out, empty.err) == ("", "no waiting jobs in emails; --state lists others\n")
    assert (heads.split()[-1], row.split()[-1]) == ("paused", "yes")


def test_a_store_without_queues_says_so(command: Command, store: holdfast.Store) -> None:
    found = command("jobs", "list")

    assert (found.out, found.err) == ("", "no queues\n")
