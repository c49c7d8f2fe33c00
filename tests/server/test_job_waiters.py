"""Those who wait for jobs: one job wakes one of them, and who came first is first."""

import json
from pathlib import Path
from typing import Any

from tests.server.running import DEADLINE, RawClient
from tests.server.small_server import SmallServer, small_server


def _wait_for_a_job(server: SmallServer, client: RawClient, *queues: str) -> None:
    """Begins to wait, and is asleep when this returns."""
    before = _asleep(server)
    payload = {"queues": queues, "worker": "w", "timeout": DEADLINE}
    client.send("JOBS.POP_WAIT", json.dumps(payload))
    server.until(lambda: _asleep(server) == before + len(queues))


def _asleep(server: SmallServer) -> int:
    return sum(len(each._asleep) for each in list(server.dispatcher.job_waiters._queues.values()))


def _put(client: RawClient, queue: str, *ids: str) -> None:
    jobs = [{"queue": queue, "id": id} for id in ids]
    client.ask("JOBS.PUT_MANY", json.dumps({"jobs": jobs}))


def _ids(client: RawClient) -> list[str]:
    reply: Any = client.receive()
    return [job["id"] for job in json.loads(reply)]


def _count_pops(server: SmallServer) -> list[int]:
    """Grows by the transactions of each group from now on."""
    groups: list[int] = []
    transact_many = server.dispatcher.store.transact_many

    def counted(steps: Any) -> Any:
        groups.append(len(steps))
        return transact_many(steps)

    server.dispatcher.store.transact_many = counted  # type: ignore[method-assign]  # to look over its shoulder
    return groups


def test_a_job_wakes_one_and_who_came_first_is_first(tmp_path: Path) -> None:
    with small_server(tmp_path) as server, server.connect() as putter:
        waiters = [server.connect() for _ in range(5)]
        for waiter in waiters:
            _wait_for_a_job(server, waiter, "q")
        transactions = _count_pops(server)

        for number, waiter in enumerate(waiters):
            _put(putter, "q", str(number))
            assert _ids(waiter) == [str(number)]

        assert sum(transactions) == 2 * 5  # for each job a put and a pop
        for waiter in waiters:
            waiter.close()


def test_many_jobs_of_one_transaction_wake_as_many(tmp_path: Path) -> None:
    with small_server(tmp_path) as server, server.connect() as putter:
        waiters = [server.connect() for _ in range(5)]
        for waiter in waiters:
            _wait_for_a_job(server, waiter, "q")

        _put(putter, "q", "a", "b", "c")
        first = sorted([_ids(waiter)[0] for waiter in waiters[:3]])
        _put(putter, "q", "d", "e")

        assert first == ["a", "b", "c"]
        assert sorted([_ids(waiter)[0] for waiter in waiters[3:]]) == ["d", "e"]
        for waiter in waiters:
            waiter.close()


def test_who_takes_a_job_of_another_queue_leaves_this_one_to_the_next(tmp_path: Path) -> None:
    jobs = [{"queue": "b", "id": "in b"}, {"queue": "a", "id": "in a"}]
    with small_server(tmp_path) as server, server.connect() as both, server.connect() as second:
        _wait_for_a_job(server, both, "a", "b")
        _wait_for_a_job(server, second, "b")

        with server.connect() as putter:
            putter.ask("JOBS.PUT_MANY", json.dumps({"jobs": jobs}))

        assert (_ids(both), _ids(second)) == (["in a"], ["in b"])


def test_a_job_for_one_who_went_away_goes_to_the_next(tmp_path: Path) -> None:
    with small_server(tmp_path) as server, server.connect() as putter, server.connect() as second:
        with server.connect() as first:
            _wait_for_a_job(server, first, "q")
            _wait_for_a_job(server, second, "q")
        server.until(lambda: server.dispatcher.figures()["waits"] == 1)

        _put(putter, "q", "a")

        assert _ids(second) == ["a"]


def test_a_queue_that_no_one_waits_for_is_forgotten(tmp_path: Path) -> None:
    with small_server(tmp_path) as server, server.connect() as putter:
        with server.connect() as waiter:
            _wait_for_a_job(server, waiter, "q")
            _put(putter, "q", "a")
            _ids(waiter)

        server.until(lambda: not server.dispatcher.job_waiters._queues)
