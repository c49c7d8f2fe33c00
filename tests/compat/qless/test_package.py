"""The package qless-py from PyPI, unchanged, on a server."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest
import qless  # type: ignore[import-untyped]  # it is older than types

from tests.server.running import DEADLINE, Server

pytestmark = pytest.mark.filterwarnings("ignore:The 'warn' method:DeprecationWarning")


@pytest.fixture(params=[2, 3])
def queue_client(request: pytest.FixtureRequest, server: Server) -> Iterator[Any]:
    """The client of qless-py, in both protocols, on a database of its own."""
    url = f"redis://127.0.0.1:{server.resp_port}/{request.param}"
    client = qless.Client(url, hostname="w1", protocol=request.param)
    client.redis.flushdb()
    yield client
    client.redis.close()


def test_a_job_lives_from_put_to_complete(queue_client: Any) -> None:
    queue = queue_client.queues["emails"]
    jid = queue.put("app.Send", {"to": "ann"}, priority=5, tags=["mail"])

    job = queue.pop()
    assert (job.jid, job.data, job.priority, job.state) == (jid, {"to": "ann"}, 5, "running")
    assert job.heartbeat() > 0
    assert job.complete() == "complete"
    assert queue_client.jobs[jid].state == "complete"
    assert queue_client.jobs.complete() == [jid]


def test_jobs_can_fail_be_retried_and_moved(queue_client: Any) -> None:
    queue = queue_client.queues["work"]
    jid = queue.put("app.Work", {})

    queue.pop().retry()
    queue.pop().fail("broken", "it broke")
    assert queue_client.jobs.failed() == {"broken": 1}
    assert queue_client.unfail("broken", "work") == 1
    queue_client.jobs[jid].move("other")
    assert queue_client.queues["other"].counts["waiting"] == 1


def test_dependencies_tags_and_tracking(queue_client: Any) -> None:
    queue = queue_client.queues["work"]
    first = queue.put("app.Work", {}, tags=["blue"])
    second = queue.put("app.Work", {}, depends=[first])

    queue_client.track(first)
    assert queue_client.jobs[second].state == "depends"
    assert queue_client.jobs.tagged("blue")["jobs"] == [first]
    assert [job.jid for job in queue_client.jobs.tracked()["jobs"]] == [first]
    queue.pop().complete()
    assert queue_client.jobs[second].state == "waiting"


def test_recurring_jobs_tell_when_they_are_next(queue_client: Any) -> None:
    queue = queue_client.queues["work"]
    jid = queue.recur("app.Work", {}, interval=60)

    recurring = queue_client.jobs[jid]
    assert recurring.interval == 60
    assert abs(recurring.next - recurring.client.redis.time()[0]) < 100
    assert queue.pop() is not None
    recurring.cancel()
    assert queue_client.jobs[jid] is None


def test_settings_and_workers(queue_client: Any) -> None:
    queue_client.config["heartbeat"] = 120
    queue = queue_client.queues["work"]
    jid = queue.put("app.Work", {})
    queue.pop()

    assert queue_client.config["heartbeat"] in (120, "120")
    assert queue_client.workers["w1"]["jobs"] == [jid]
    assert queue_client.workers.counts == [{"name": "w1", "jobs": 1, "stalled": 0}]


def test_a_refusal_is_an_exception_with_the_words_that_clients_know(queue_client: Any) -> None:
    with pytest.raises(qless.QlessException, match=r"user_script:1: .*[Jj]ob.* does not exist"):
        queue_client("complete", "nobody", "w1", "work", "{}")


def test_events_of_tracked_jobs_reach_the_client(queue_client: Any) -> None:
    heard: list[str] = []
    done = threading.Event()
    for event in ("put", "popped", "completed", "track"):
        queue_client.events.on(event, lambda jid, event=event: heard.append(event))
    queue_client.events.on("untrack", lambda jid: done.set())
    listening = threading.Thread(target=queue_client.events.listen)
    listening.start()
    _wait_for_subscribers(queue_client.redis)

    queue = queue_client.queues["work"]
    jid = queue.put("app.Work", {})
    queue_client.track(jid)
    queue.put("app.Work", {}, jid=jid)
    queue.pop().complete()
    queue_client.untrack(jid)

    assert done.wait(DEADLINE)
    queue_client.events.unlisten()
    listening.join(DEADLINE)
    assert heard == ["track", "put", "popped", "completed"]


def _wait_for_subscribers(client: Any) -> None:
    while client.publish("ql:stalled", "is anybody there?") == 0:
        pass
