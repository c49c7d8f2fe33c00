"""Error reports of runs, as Sentry's own SDK would send them."""

import sys
from collections.abc import Iterator
from typing import Any

import pytest
import sentry_sdk
from sentry_sdk.envelope import Envelope
from sentry_sdk.transport import Transport

from holdfast.contrib.sentry import SentryMiddleware
from holdfast.errors import MissingDriver
from holdfast.store import Store
from holdfast.tasks import Fail, Retry, Run, Snooze, Tasks, Worker
from holdfast.testing import run_tasks


class Collecting(Transport):
    """Keeps the envelopes that the SDK would send over the network."""

    def __init__(self) -> None:
        super().__init__()
        self.envelopes: list[Envelope] = []

    def capture_envelope(self, envelope: Envelope) -> None:
        self.envelopes.append(envelope)

    @property
    def events(self) -> list[dict[str, Any]]:
        found = [envelope.get_event() for envelope in self.envelopes]
        return [dict(event) for event in found if event is not None]


@pytest.fixture
def sent() -> Iterator[Collecting]:
    transport = Collecting()
    with sentry_sdk.isolation_scope():
        before = sentry_sdk.get_global_scope().client
        # Without its integrations: they would patch this process for all tests after this one.
        sentry_sdk.init(
            dsn="http://key@127.0.0.1/1",
            transport=transport,
            default_integrations=False,
            auto_enabling_integrations=False,
        )
        yield transport
        sentry_sdk.get_client().close()
        sentry_sdk.get_global_scope().set_client(before)


@pytest.fixture
def tasks() -> Tasks:
    tasks = Tasks(queue="mail")
    tasks.use(SentryMiddleware())
    return tasks


def test_the_exception_of_each_attempt_is_reported_with_its_job(
    store: Store, tasks: Tasks, sent: Collecting
) -> None:
    @tasks.task(name="send", retries=1, backoff=0)
    def send() -> None:
        raise ConnectionError("no route")

    job = send.put(store)
    run_tasks(store, tasks, keep_failures=True)

    known = {"task": "send", "queue": "mail", "job": job.id}
    assert [event["tags"] for event in sent.events] == [
        {**known, "attempt": "1", "outcome": "retry"},
        {**known, "attempt": "2", "outcome": "fail"},
    ]
    assert {event["transaction"] for event in sent.events} == {"send"}
    [exception] = sent.events[0]["exception"]["values"]
    assert (exception["type"], exception["value"]) == ("ConnectionError", "no route")
    assert exception["stacktrace"]["frames"][-1]["function"] == "send"


def test_a_run_that_succeeds_sends_nothing(store: Store, tasks: Tasks, sent: Collecting) -> None:
    tasks.task(name="send")(lambda: None).put(store)

    run_tasks(store, tasks)

    assert sent.envelopes == []


@pytest.mark.parametrize("raised", [Snooze(60), Retry(after=60)])
def test_what_a_task_raises_on_purpose_is_not_reported(
    store: Store, tasks: Tasks, sent: Collecting, raised: Exception
) -> None:
    @tasks.task(name="send")
    def send() -> None:
        raise raised

    send.put(store)
    run_tasks(store, tasks)

    assert sent.envelopes == []


def test_what_a_retry_was_raised_from_is_reported(
    store: Store, tasks: Tasks, sent: Collecting
) -> None:
    @tasks.task(name="send")
    def send() -> None:
        raise Retry(after=60) from ConnectionError("no route")

    send.put(store)
    run_tasks(store, tasks)

    [event] = sent.events
    assert [each["type"] for each in event["exception"]["values"]] == ["ConnectionError"]


def test_a_workflow_that_waits_is_not_reported(
    store: Store, tasks: Tasks, sent: Collecting
) -> None:
    @tasks.workflow(name="send")
    def send(run: Run) -> None:
        run.sleep(60)

    send.put(store)
    [ran] = run_tasks(store, tasks)

    assert ran.outcome.what == "retry"
    assert sent.envelopes == []


def test_a_failure_that_a_task_declares_is_reported(
    store: Store, tasks: Tasks, sent: Collecting
) -> None:
    @tasks.task(name="send")
    def send() -> None:
        raise Fail("no-such-order", "1001")

    send.put(store)
    run_tasks(store, tasks, keep_failures=True)

    [event] = sent.events
    assert event["tags"]["outcome"] == "fail"


@pytest.mark.parametrize(("threads", "async_slots"), [(4, 0), (0, 4)])
def test_what_one_run_sets_is_not_seen_by_another(
    store: Store, tasks: Tasks, sent: Collecting, threads: int, async_slots: int
) -> None:
    @tasks.task(name="send", retries=0)
    async def send(run: Run, user: str) -> None:
        sentry_sdk.set_user({"id": user})
        if user.startswith("bad"):
            raise ValueError(user)

    send.put_many(store, [(f"{kind}-{n}",) for n in range(8) for kind in ("good", "bad")])
    send.put(store, "bad-at-last")
    Worker(store, tasks, threads=threads, async_slots=async_slots).run_until_empty()

    assert len(sent.events) == 9
    for event in sent.events:
        [exception] = event["exception"]["values"]
        assert event["user"]["id"] == exception["value"]


def test_without_the_package_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentry_sdk", None)
    monkeypatch.delitem(sys.modules, "holdfast.contrib.sentry")

    with pytest.raises(MissingDriver, match=r"holdfastdb\[sentry\]"):
        __import__("holdfast.contrib.sentry")
