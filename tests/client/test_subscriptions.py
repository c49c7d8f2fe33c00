"""Notices of commits, and waits for what happens, through a client."""

import asyncio
import contextlib
import gc
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast import wire
from holdfast.client.async_connection import AsyncConnection
from holdfast.entities.messages import ChangeNotice
from holdfast.errors import Unreachable
from tests.client.both_clients import connected
from tests.client.scripted import HANG, Behaviour, ScriptedServer, at, scripted, well
from tests.server.running import serving

DEADLINE = 10.0


def test_a_subscriber_has_heard_of_every_commit_that_has_returned(client: Any) -> None:
    with client.subscribe("jobs.log") as notices:
        client.jobs.put("q", id="a")
        client.jobs.put("q", id="b")

        heard = notices.poll()

        assert [notice.topic for notice in heard] == ["jobs.log", "jobs.log"]
        assert [b'"a"' in notice.payload for notice in heard] == [True, False]
        assert (notices.poll(), notices.missed) == ([], 0)
        assert notices.get(timeout=0.01) is None


def test_a_subscription_outlives_the_time_without_a_server(mode: str, tmp_path: Path) -> None:
    with serving(tmp_path / "data") as first:
        port = first.resp_port
        client = contextlib.ExitStack()
        connected_client = client.enter_context(
            connected(mode, f"holdfast://127.0.0.1:{port}", retries=0)
        )
        notices = connected_client.subscribe("jobs.ready").__enter__()
    with client:
        for _ in range(3):
            with pytest.raises(Unreachable):
                notices.get(timeout=10)

        with serving(tmp_path / "data", "--resp", f"127.0.0.1:{port}"):
            assert notices.poll() == []
            connected_client.jobs.put("q")
            assert [notice.payload for notice in notices.poll()] == [b"q"]
        assert notices.missed == 1
        notices.close()


def test_a_slow_reader_lets_notices_wait_at_the_server_and_gets_them_all(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.client.async_subscriptions.MAX_QUEUED_NOTICES", 10)

    async def run() -> tuple[list[bool], list[bytes], int]:
        async with holdfast.aio.connect(url) as client, client.subscribe("jobs.ready") as notices:
            reads = []
            for number in range(30):
                await client.jobs.put(f"slow{number}")
            while len(notices._queue) < 10:  # the tenth ends the reading
                await asyncio.sleep(0)
            assert notices._connection is not None
            reads.append(notices._connection._reads)
            heard = [await notices.get(timeout=10) for _ in range(25)]
            reads.append(notices._connection._reads)
            heard += await notices.poll()
            return reads, [notice.payload for notice in heard if notice], notices.missed

    reads, heard, missed = asyncio.run(run())
    assert (reads, missed) == ([False, True], 0)
    assert heard == [b"slow%d" % number for number in range(30)]


def test_a_subscriber_hears_its_own_space_and_topic_only(client: Any) -> None:
    with client.subscribe("jobs.ready") as notices:
        client.space("elsewhere").jobs.put("q")
        client.jobs.put("mine")

        assert [notice.payload for notice in notices.poll()] == [b"mine"]


def test_changes_of_entities_and_of_the_keys_of_events_are_heard(client: Any) -> None:
    client.entities.deploy("schema: shop\ntables:\n  Users:\n    primary: {type: random}\n")
    client.events.deploy({"visit": [{"targets": ["['visitors']"], "add": "who"}]})
    with client.entities.subscribe("shop.Users") as changes, client.events.subscribe() as keys:
        client.entities.put_raw("shop.Users", [{"id": "ann"}])
        client.events.send({"name": "visit", "attributes": {"who": "ann"}})

        [notice] = changes.poll()
        change: ChangeNotice = client.entities.read_notice(notice.payload)
        assert (change.table, change.changes[0].id) == ("shop.Users", "ann")
        assert keys.poll() == ["visitors"]


def test_a_thread_that_waits_for_a_notice_ends_when_it_is_closed(url: str) -> None:
    with holdfast.connect(url) as client:
        notices = client.subscribe()
        heard = threading.Event()

        def listen() -> None:
            for _ in notices:
                heard.set()

        thread = threading.Thread(target=listen)
        thread.start()
        client.jobs.put("q")
        assert heard.wait(10)

        notices.close()
        thread.join(10)

        assert not thread.is_alive()


def test_a_subscription_goes_on_after_a_restart_and_says_that_it_missed_something(
    tmp_path: Path, mode: str
) -> None:
    stack = contextlib.ExitStack()
    with serving(tmp_path / "data") as server:
        port = server.resp_port
        client = stack.enter_context(connected(mode, f"holdfast://127.0.0.1:{port}"))
        notices = stack.enter_context(client.subscribe("jobs.ready"))
        client.jobs.put("before")
        assert [notice.payload for notice in notices.poll()] == [b"before"]
    with stack, serving(tmp_path / "data", "--resp", f"127.0.0.1:{port}"):
        client.jobs.put("between")
        notices.poll()
        client.jobs.put("after")

        heard = [notice.payload for notice in notices.poll()]

        assert heard[-1:] == [b"after"]
        assert notices.missed == 1


def listening(*rest: bytes) -> Behaviour:
    """Subscribes a client, with more messages in the same packet as the answer."""
    subscribed = wire.array([wire.bulk(b"notices"), wire.bulk(b"")])
    return at("NOTICES", b"".join([subscribed, *rest]))


def notice(payload: bytes) -> bytes:
    return wire.array([wire.bulk(b"notice"), wire.bulk(b"topic"), wire.bulk(payload)])


def test_a_notice_may_arrive_together_with_the_answer_to_the_subscription(mode: str) -> None:
    with (
        scripted(well, listening(notice(b"1"), notice(b"2"))) as server,
        connected(mode, server.url) as client,
        client.subscribe() as notices,
    ):
        assert [notices.get(DEADLINE).payload for _ in range(2)] == [b"1", b"2"]
        assert notices.missed == 0


def test_tasks_that_share_a_subscription_connect_again_once() -> None:
    connections: list[bytes] = []

    def listens(command: wire.Command) -> bytes:
        if command[0] == b"NOTICES":
            connections.append(command[1])
            return listening(*[notice(b"again")] * (len(connections) - 1))(command)
        return well(command)

    async def listen(server: ScriptedServer) -> int:
        async with holdfast.aio.connect(server.url) as client, client.subscribe("t") as notices:
            getting = [asyncio.create_task(notices.get(DEADLINE)) for _ in range(3)]
            await asyncio.sleep(0)
            server.close_all()
            await asyncio.wait(getting, return_when=asyncio.FIRST_COMPLETED)
            await notices.close()
            await asyncio.wait(getting)
            return notices.missed

    with scripted(listens) as server:
        assert asyncio.run(listen(server)) == 1
        assert len(connections) == 2


def test_a_get_that_ends_while_it_connects_again_leaves_no_connection() -> None:
    async def listen(server: ScriptedServer) -> int:
        async with holdfast.aio.connect(server.url) as client, client.subscribe() as notices:
            server.close_all()
            for _ in range(3):
                assert await notices.get(0.2) is None
        await asyncio.sleep(0)
        # Not isinstance, which asks lazy objects of Django for their class.
        connections = [each for each in gc.get_objects() if type(each) is AsyncConnection]
        return sum(connection.is_open for connection in connections)

    with scripted(well, listening(), at("NOTICES", HANG)) as server:
        assert asyncio.run(listen(server)) == 0


def test_a_signal_handler_can_close_the_subscription_that_its_thread_waits_for(url: str) -> None:
    def give_up(*_: Any) -> None:
        raise AssertionError("the handler waits for its own thread")

    with holdfast.connect(url) as client, client.subscribe() as notices:
        previous = [signal.signal(signal.SIGUSR1, lambda *_: notices.close())]
        previous.append(signal.signal(signal.SIGALRM, give_up))
        signal.setitimer(signal.ITIMER_REAL, DEADLINE)
        main = threading.main_thread().ident or 0
        threading.Timer(0.1, signal.pthread_kill, [main, signal.SIGUSR1]).start()
        try:
            assert notices.get() is None
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGUSR1, previous[0])
            signal.signal(signal.SIGALRM, previous[1])


def test_a_thread_waits_no_longer_than_it_asked_for_while_another_one_listens(url: str) -> None:
    with holdfast.connect(url) as client, client.subscribe() as notices:
        thread = threading.Thread(target=notices.get, args=(DEADLINE,))
        thread.start()
        begin = time.monotonic()

        for _ in range(5):
            assert notices.get(0.02) is None
            assert notices.wait(0.02) is False

        assert time.monotonic() - begin < DEADLINE / 2
        notices.close()
        thread.join()


# --- waits ---------------------------------------------------------------------------------------


def test_a_pop_waits_for_a_job_that_another_client_puts(client: Any, url: str) -> None:
    with holdfast.connect(url) as other, other.subscribe("jobs.") as notices:
        found: list[Any] = []
        thread = threading.Thread(
            target=lambda: found.extend(client.jobs.pop_wait("q", "worker", timeout=20))
        )
        thread.start()
        while not any(notice.payload == b"q" for notice in notices.poll()):
            other.jobs.put("q", id="a")  # whether the pop waits already or not, it finds the job
        thread.join()

        assert [job.id for job in found] == ["a"]


def test_a_pop_that_finds_nothing_in_time_gives_nothing(client: Any) -> None:
    assert client.jobs.pop_wait("q", "worker", timeout=0.05) == []
    assert client.jobs.pop_wait("q", "worker", timeout=0) == []


def test_other_calls_do_not_wait_for_a_pop_that_waits(url: str) -> None:
    import asyncio

    async def program() -> list[str]:
        async with holdfast.aio.connect(url, timeout=5) as client:
            popping = asyncio.ensure_future(client.jobs.pop_wait("q", "worker", timeout=20))
            await client.jobs.put("other")
            await client.jobs.put("q", id="a")
            return [job.id for job in await popping]

    assert asyncio.run(program()) == ["a"]


def test_the_result_of_a_job_is_waited_for(client: Any) -> None:
    client.jobs.put("q", id="a")
    client.jobs.pop("q", "worker")

    assert client.jobs.result_wait("a", timeout=0.05).state == "running"
    client.jobs.complete("a", "worker", result=5)
    assert client.jobs.result_wait("a", timeout=20).state == "complete"
