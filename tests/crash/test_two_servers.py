"""Two servers on one store: each job is handed out once, and one takes over for the other."""

import itertools
import json
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.server.running import DEADLINE, RawClient, Server, serving
from tests.servers import await_true
from tests.stores import Stores

JOBS = 400
WORKERS = 8


@pytest.fixture
def pair(stores: Stores, tmp_path: Path) -> Iterator[tuple[Server, Server]]:
    options = ("--engine", stores.url(), "--durability", "interval")
    with serving(tmp_path / "two", *options) as two:
        one = Server(tmp_path / "one", *options)
        yield one, two
        if one.is_running():
            one.stop()


@pytest.mark.every_engine
def test_a_pop_that_waits_at_one_server_gets_what_is_put_at_the_other(
    pair: tuple[Server, Server],
) -> None:
    one, two = pair
    with one.connect() as waiting, two.connect() as other:
        for number in range(3):
            waiting.send("JOBS.POP_WAIT", '{"queues":"q","worker":"w","timeout":20}')
            other.ask("JOBS.PUT", f'{{"queue":"q","id":"{number}"}}')

            assert [job["id"] for job in json.loads(waiting.receive())] == [str(number)]


@pytest.mark.every_engine
def test_a_subscriber_at_one_server_hears_what_is_published_at_the_other(
    pair: tuple[Server, Server],
) -> None:
    one, two = pair
    with one.connect() as listening, two.connect() as other:
        listening.ask("SUBSCRIBE", "ql:q:q")
        assert other.ask("PUBLISH", "ql:q:q", "heard") is not None

        assert listening.receive() == [b"message", b"ql:q:q", b"heard"]


class Crowd:
    """Workers on two servers. One whose server is gone goes to the other, as a client would."""

    def __init__(self, servers: tuple[Server, Server]) -> None:
        self._ports = [server.resp_port for server in servers]
        self.completed: list[str] = []
        self._threads = [threading.Thread(target=self._work, args=(n,)) for n in range(WORKERS)]
        for thread in self._threads:
            thread.start()

    def _work(self, number: int) -> None:
        for port in itertools.chain([self._ports[number % 2]], itertools.repeat(self._ports[1])):
            try:
                with RawClient(port) as client:
                    self._pop_until_all_is_done(client, f"worker-{number}")
                    return
            except (EOFError, ConnectionError):
                continue

    def _pop_until_all_is_done(self, client: RawClient, worker: str) -> None:
        while True:
            # A job whose worker was cut off comes back soon.
            jobs = _ask(client, "JOBS.POP", queue="q", worker=worker, count=3, lock_seconds=2)
            for job in jobs:
                _ask(client, "JOBS.COMPLETE", id=job["id"], worker=worker, lock=job["lock"])
                self.completed.append(job["id"])
            if not jobs and _ask(client, "JOBS.LENGTH", queue="q") == 0:
                return

    def end(self) -> None:
        for thread in self._threads:
            thread.join(6 * DEADLINE)
            assert not thread.is_alive(), "a worker does not end"


def test_when_one_server_is_killed_the_other_finishes_and_no_job_is_done_twice(
    pair: tuple[Server, Server],
) -> None:
    one, two = pair
    with two.connect() as client:
        _ask(client, "JOBS.CONFIG_SET", option="grace-period", value=0)
        new = [{"queue": "q", "id": f"{number:04}"} for number in range(JOBS)]
        _ask(client, "JOBS.PUT_MANY", jobs=new)

    crowd = Crowd(pair)
    await_true(lambda: len(crowd.completed) > JOBS // 4, seconds=DEADLINE, what="some work")
    one.kill()
    crowd.end()

    with two.connect() as client:
        complete = _ask(client, "JOBS.JOBS", state="complete", count=-1)
    assert sorted(complete) == [job["id"] for job in new]
    assert set(Counter(crowd.completed).values()) == {1}
    # The killed server may have completed a job for each of its workers without telling them.
    assert JOBS - WORKERS <= len(crowd.completed) <= JOBS


def _ask(client: RawClient, operation: str, **arguments: Any) -> Any:
    reply = client.ask(operation, json.dumps(arguments))
    assert isinstance(reply, bytes), reply
    return json.loads(reply)
