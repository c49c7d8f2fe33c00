"""Calls are repeated where it is safe, others raise an error that says so; none runs twice.

The servers here end, hang and lie on purpose; all sockets are real.
"""

import asyncio
import contextlib
import signal
import socket
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast import wire
from holdfast.errors import (
    HoldfastError,
    NoAnswer,
    NotAuthenticated,
    OutcomeUnknown,
    ServerBusy,
    ServerFailed,
    StoreClosed,
    Unreachable,
)
from holdfast.limits import CONNECT_SECONDS
from tests.client.both_clients import connected
from tests.client.scripted import CLOSE, HANG, at, scripted, well
from tests.server.running import Server, serving

DEADLINE = 60.0
BUSY = wire.error('BUSY {"error": "ServerBusy", "message": "too many", "hint": ""}')


def test_a_read_is_sent_again_when_the_connection_breaks(mode: str) -> None:
    with scripted(at("JOBS.GET", CLOSE), well) as server, connected(mode, server.url) as client:
        assert client.jobs.get("a") is None

        assert server.count("JOBS.GET") == 2


def test_a_read_is_not_sent_again_for_ever(mode: str) -> None:
    with (
        scripted(at("JOBS.GET", CLOSE)) as server,
        connected(mode, server.url, retries=2) as client,
    ):
        with pytest.raises(NoAnswer, match=r"the connection to .* broke"):
            client.jobs.get("a")

        assert server.count("JOBS.GET") == 3


def test_a_write_that_may_have_been_done_is_not_sent_again(mode: str) -> None:
    behaviour = at("JOBS.UNTRACK", CLOSE)
    with scripted(behaviour, well) as server, connected(mode, server.url) as client:
        with pytest.raises(OutcomeUnknown, match="Check whether it was executed"):
            client.jobs.untrack("a")

        assert server.count("JOBS.UNTRACK") == 1


def test_a_batch_that_may_have_been_done_is_not_sent_again(mode: str) -> None:
    with scripted(at("EXEC", CLOSE), well) as server, connected(mode, server.url) as client:
        with pytest.raises(OutcomeUnknown), client.batch() as batch:
            batch.jobs.untrack("a")

        assert server.count("JOBS.UNTRACK") == 1


def test_a_write_to_a_server_that_has_closed_meanwhile_goes_to_a_new_connection(
    mode: str,
) -> None:
    with scripted(well) as server, connected(mode, server.url) as client:
        client.jobs.get("a")
        server.close_all()
        with socket.create_connection(("127.0.0.1", server.port)) as other:
            other.sendall(b"PING\r\n")
            assert other.recv(100)  # by now the end of the first connection has arrived too

        client.jobs.unpause("q")

        assert server.count("JOBS.UNPAUSE") == 1


def test_what_a_busy_server_refused_is_sent_again(mode: str) -> None:
    answers = iter([BUSY, BUSY])

    def busy_at_first(command: wire.Command) -> bytes:
        return next(answers, well(command)) if command[0] == b"JOBS.UNPAUSE" else well(command)

    with scripted(busy_at_first) as server, connected(mode, server.url) as client:
        client.jobs.unpause("q")

        assert server.count("JOBS.UNPAUSE") == 3


def test_a_server_that_stays_busy_is_an_error_in_the_end(mode: str) -> None:
    with (
        scripted(at("JOBS.UNPAUSE", BUSY)) as server,
        connected(mode, server.url, retries=1) as client,
        pytest.raises(ServerBusy, match="too many"),
    ):
        client.jobs.unpause("q")


def test_a_server_that_hangs_costs_the_time_out_and_no_more(mode: str) -> None:
    def hangs(command: wire.Command) -> bytes:
        return HANG if b"." in command[0] else well(command)

    with scripted(hangs) as server, connected(mode, server.url, timeout=0.2) as client:
        with pytest.raises(NoAnswer, match="in time"):
            client.jobs.get("a")
        with pytest.raises(OutcomeUnknown, match="in time"):
            client.jobs.untrack("a")

        assert server.came == ["JOBS.GET", "JOBS.UNTRACK"]


def test_a_server_whose_replies_trickle_costs_the_time_out_and_no_more(mode: str) -> None:
    ended = threading.Event()

    def trickles(command: wire.Command) -> bytes:
        if b"." in command[0]:
            ended.wait(0.3)
            return b"+QUEUED\r\n"
        return well(command)

    with (
        scripted(trickles) as server,
        connected(mode, server.url, timeout=0.4) as client,
    ):
        begin = time.monotonic()
        with pytest.raises(OutcomeUnknown, match="in time"), client.batch() as batch:
            for _ in range(100):
                batch.jobs.untrack("a")
        ended.set()

        assert time.monotonic() - begin < 4


def test_a_server_that_reads_nothing_costs_the_time_out_and_no_more(mode: str) -> None:
    ended = threading.Event()

    def is_stuck(command: wire.Command) -> bytes:
        if command[0] == b"JOBS.LENGTH":
            ended.wait(DEADLINE)
        return well(command)

    with (
        scripted(is_stuck) as server,
        connected(mode, server.url, timeout=0.4) as client,
    ):
        begin = time.monotonic()
        with client.pipeline() as pipeline:
            pipeline.jobs.length("q")
            put = [pipeline.jobs.put("q", data="x" * 1_000_000) for _ in range(50)]
        for handle in put:
            with pytest.raises(OutcomeUnknown):
                handle.result()
        ended.set()

        assert time.monotonic() - begin < 4


@pytest.mark.parametrize("silent", [b"EXACT", b"SPACE"])
def test_a_connection_that_is_not_made_in_time_costs_the_time_out_and_no_more(
    mode: str, silent: bytes
) -> None:
    def hangs(command: wire.Command) -> bytes:
        return HANG if command[0] == silent else well(command)

    with scripted(well, hangs) as server, connected(mode, server.url, timeout=0.2) as client:
        server.close_all()
        begin = time.monotonic()
        with pytest.raises(Unreachable, match="in time"):
            client.space("shop").jobs.untrack("a")

        assert time.monotonic() - begin < CONNECT_SECONDS / 2
        assert server.came == []


def test_callers_who_wait_for_one_connection_have_their_own_time_outs() -> None:
    async def run(url: str) -> list[str]:
        client = holdfast.aio.connect(url, timeout=0.2)
        calls = [client.jobs.get(f"{number}") for number in range(50)]
        failures = await asyncio.gather(*calls, return_exceptions=True)
        await client.close()
        return [type(failure).__name__ for failure in failures]

    with scripted(lambda command: HANG) as server:
        begin = time.monotonic()

        assert set(asyncio.run(run(server.url))) == {"Unreachable"}
        assert time.monotonic() - begin < CONNECT_SECONDS


def test_a_late_answer_is_not_taken_for_that_of_the_next_call(mode: str) -> None:
    def answers_late(command: wire.Command) -> bytes:
        """The answer to UNTRACK comes when the next command has."""
        if command[0] == b"JOBS.UNTRACK":
            return HANG
        return well(command) if command[0] != b"JOBS.GET" else wire.bulk(b"\xc3") + well(command)

    with (
        scripted(answers_late, well) as server,
        connected(mode, server.url, timeout=0.2) as client,
    ):
        with pytest.raises(OutcomeUnknown):
            client.jobs.untrack("a")

        assert client.jobs.get("a") is None


def test_nobody_there_is_said_at_once(mode: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]

    url = f"holdfast://127.0.0.1:{port}"
    with pytest.raises(Unreachable, match="can't be reached"), connected(mode, url, retries=0):
        pass


def test_a_server_of_something_else_is_not_mistaken_for_one(mode: str) -> None:
    def redis(command: wire.Command) -> bytes:
        return wire.error(f"ERR unknown command '{command[0].decode()}'")

    with (
        scripted(redis) as server,
        pytest.raises(ServerFailed, match="unknown command"),
        connected(mode, server.url, retries=0),
    ):
        pass


def test_a_closed_client_says_so(url: str, mode: str) -> None:
    with connected(mode, url) as client:
        client.close()

        with pytest.raises(StoreClosed, match=r"Connect again with `holdfast\..*connect`"):
            client.jobs.get("a")


def test_a_wrong_password_is_refused_when_connecting(tmp_path: Path, mode: str) -> None:
    with holdfast.open(tmp_path / "data") as store:
        from holdfast.users import Grant, add_user

        add_user(store.engine, "ann", "right", (Grant(role="write", space="default"),))
    with serving(tmp_path / "data") as server:
        place = f"127.0.0.1:{server.resp_port}"

        with connected(mode, f"holdfast://ann:right@{place}") as client:
            client.jobs.put("q", id="a")
            with pytest.raises(HoldfastError, match="no grant for the space") as refused:
                client.space("other").jobs.get("a")
        for url in (f"holdfast://ann:wrong@{place}", f"holdfast://{place}"):
            with pytest.raises(NotAuthenticated, match="The URL names"), connected(mode, url):
                pass

    assert refused.value.code == "forbidden"


# --- a real server under the client's feet -------------------------------------------------------


def _counted(client: Any) -> int:
    return int(client.metrics.lifetime("edits"))


def _define(client: Any) -> None:
    client.metrics.define({"edits": {"lifetime": True}})


def test_a_server_that_was_restarted_is_not_even_noticed(tmp_path: Path, mode: str) -> None:
    with serving(tmp_path / "data") as server:
        port = server.resp_port
        stack = contextlib.ExitStack()
        client = stack.enter_context(connected(mode, f"holdfast://127.0.0.1:{port}"))
        _define(client)
        client.metrics.incr("edits")
    with stack, serving(tmp_path / "data", "--resp", f"127.0.0.1:{port}"):
        client.metrics.incr("edits")

        assert _counted(client) == 2


def test_writes_while_the_server_is_killed_are_done_once_or_said_to_be_unknown(
    tmp_path: Path,
) -> None:
    first = Server(tmp_path / "data", "--durability", "interval")
    url = f"holdfast://127.0.0.1:{first.resp_port}"
    done, unknown = [0] * 8, [0] * 8
    may_kill = threading.Event()

    with holdfast.connect(url, retries=100, timeout=30) as client:
        _define(client)

        def work(number: int) -> None:
            for _ in range(200):
                try:
                    client.metrics.incr("edits")
                    done[number] += 1
                except OutcomeUnknown:
                    unknown[number] += 1
                if done[number] > 20:
                    may_kill.set()

        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        may_kill.wait()
        first.kill()
        with serving(tmp_path / "data", "--resp", f"127.0.0.1:{first.resp_port}"):
            for thread in threads:
                thread.join()
            counted = _counted(client)

    assert sum(done) + sum(unknown) == 8 * 200
    assert sum(done) <= counted <= sum(done) + sum(unknown)
    assert sum(unknown) <= 8  # one for each connection that had something under way


def test_a_server_that_is_stopped_and_continued_has_done_each_write_once(
    tmp_path: Path, mode: str
) -> None:
    with serving(tmp_path / "data") as server:
        url = f"holdfast://127.0.0.1:{server.resp_port}"
        with connected(mode, url, timeout=0.3) as client:
            _define(client)
            server.signal(signal.SIGSTOP)
            try:
                with pytest.raises(OutcomeUnknown):
                    client.metrics.incr("edits")
                with pytest.raises((NoAnswer, Unreachable)):
                    client.metrics.lifetime("edits")
            finally:
                server.signal(signal.SIGCONT)

        with connected(mode, url) as client:
            client.metrics.incr("edits")
            assert _counted(client) == 2
