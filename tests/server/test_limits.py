"""Everything has a bound: connections, requests, what waits, and clients that do not read."""

import contextlib
import http.client
import json
import socket
import threading
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from holdfast.errors import CannotServe
from holdfast.limits import MAX_ECHO_BYTES
from holdfast.server.client_limits import ClientLimits, MemoryBudget
from tests.server.running import DEADLINE, RawClient, command, serving
from tests.server.small_server import SmallServer, small_server


def _until(condition: Any) -> None:
    """Waits for something that is about to happen."""
    deadline = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < deadline
        threading.Event().wait(0.002)


def _send_forever(client: RawClient, data: bytes) -> None:
    while True:
        client.socket.sendall(data)


def test_a_connection_too_many_is_told_so_and_closed(tmp_path: Path) -> None:
    with small_server(tmp_path, connections=2) as server:
        with server.connect() as first, server.connect() as second:
            assert first.ask("PING") == second.ask("PING") == b"PONG"
            with server.connect() as third:
                assert third.rest() == b"-ERR max number of clients reached\r\n"
            assert first.ask("PING") == b"PONG"
        _until(lambda: server.dispatcher.connections.total == 0)
        with server.connect() as another:
            assert another.ask("PING") == b"PONG"


def test_a_request_too_large_is_refused_before_it_has_come(tmp_path: Path) -> None:
    with small_server(tmp_path, request_bytes=1_000) as server, server.connect() as client:
        assert client.ask("ECHO", "x" * 990) == b"x" * 990
        client.socket.sendall(b"*2\r\n$4\r\nECHO\r\n$997\r\n")

        assert client.rest() == b"-ERR message too large: a command may have 1000 bytes\r\n"


def test_large_requests_of_all_clients_share_a_bound(tmp_path: Path) -> None:
    half = b"*2\r\n$4\r\nECHO\r\n$600000\r\n" + b"x" * 500_000
    rest = b"x" * 100_000 + b"\r\n"
    with small_server(tmp_path) as server, server.connect() as small:
        server.dispatcher.memory_budget = MemoryBudget(1_000_000)
        with server.connect() as first:
            first.socket.sendall(half)
            _until(lambda: server.dispatcher.memory_budget._left < 500_000)
            with server.connect() as second:
                second.socket.sendall(half)
                assert second.rest().startswith(b"-BUSY the requests of all clients together")
            assert small.ask("ECHO", "x" * 50_000) == b"x" * 50_000

            first.socket.sendall(rest)
            assert first.receive() == b"x" * 600_000
            assert first.ask("PING") == b"PONG"
            _until(lambda: server.dispatcher.memory_budget._left == 1_000_000)
            first.socket.sendall(half)
            _until(lambda: server.dispatcher.memory_budget._left < 500_000)
        _until(lambda: server.dispatcher.memory_budget._left == 1_000_000)


def test_a_batch_is_no_larger_than_a_request(tmp_path: Path) -> None:
    with small_server(tmp_path, request_bytes=1_000) as server, server.connect() as client:
        client.ask("MULTI")
        assert client.ask("ECHO", "x" * 400) == b"QUEUED"
        assert str(client.ask("ECHO", "x" * 100)).startswith("REQUEST_TOO_LARGE the commands of a")
        assert str(client.ask("EXEC")).startswith("EXECABORT ")
        client.ask("MULTI")
        assert client.ask("ECHO", "x" * 400) == b"QUEUED"
        assert client.ask("EXEC") == [b"x" * 400]


def test_a_quiet_connection_is_closed_and_a_subscriber_is_not(tmp_path: Path) -> None:
    with small_server(tmp_path, idle_seconds=0.2) as server, server.connect() as listener:
        listener.ask("SUBSCRIBE", "x")
        with server.connect() as quiet:
            assert quiet.rest() == b""
        assert listener.ask("PING") == [b"pong", b""]


def test_more_pipelined_commands_than_may_wait_are_read_later_and_answered_all(
    tmp_path: Path,
) -> None:
    with small_server(tmp_path, pipelined=10) as server, server.connect() as client:
        client.socket.sendall(
            command("JOBS.PUT", '{"queue":"q"}') * 300 + command("ECHO", "x") * 300
        )

        assert all(isinstance(client.receive(), bytes) for _ in range(300))
        assert [client.receive() for _ in range(300)] == [b"x"] * 300


def test_a_client_that_does_not_read_is_not_served_and_then_dropped(tmp_path: Path) -> None:
    bounds: dict[str, Any] = {"pause_unsent_bytes": 10_000, "stalled_seconds": 0.3}
    with small_server(tmp_path, **bounds) as server, server.connect() as healthy:
        with server.connect() as lazy:
            lazy.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            with pytest.raises(ConnectionError):
                _send_forever(lazy, command("ECHO", "x" * 100_000))
            assert healthy.ask("PING") == b"PONG"
        _until(lambda: server.dispatcher.connections.total == 1)


def test_a_client_that_reads_late_gets_everything(tmp_path: Path) -> None:
    with small_server(tmp_path, pause_unsent_bytes=10_000) as server, server.connect() as client:
        for number in range(100):
            client.send("ECHO", str(number) * 10_000)

        for number in range(100):
            assert client.receive() == (str(number) * 10_000).encode()


def test_a_subscriber_that_does_not_read_is_dropped(tmp_path: Path) -> None:
    with small_server(tmp_path, unsent_bytes=200_000) as server, server.connect() as speaker:
        with server.connect() as lazy:
            lazy.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            lazy.ask("SUBSCRIBE", "x")
            while speaker.ask("PUBLISH", "x", "y" * 50_000) == 1:
                pass
        assert speaker.ask("PING") == b"PONG"


def test_bounds_can_be_given_on_the_command_line(tmp_path: Path) -> None:
    with serving(tmp_path / "data", "--limit", "connections=1") as server, server.connect() as one:
        assert one.ask("CONFIG", "GET", "maxclients") == [b"maxclients", b"1"]
        with server.connect() as another:
            assert another.rest() == b"-ERR max number of clients reached\r\n"


def test_bounds_are_for_http_too(tmp_path: Path) -> None:
    options = ("--limit", "connections=2", "--limit", "request_bytes=1000")
    with (
        serving(tmp_path / "data", *options) as server,
        server.connect() as redis_client,
        _http(server.http_port) as first,
    ):
        assert redis_client.ask("PING") == b"PONG"
        first.request("POST", "/default/jobs/put", b" " * 1_001)
        refused = first.getresponse()
        assert (refused.status, b"request_too_large" in refused.read()) == (413, True)
        first.request("GET", "/livez")
        assert first.getresponse().read() == b"ok\n"

        with _http(server.http_port) as third:
            third.request("GET", "/livez")
            busy = third.getresponse()
            assert (busy.status, json.load(busy)["error"]["code"]) == (503, "busy")
        with server.connect() as third_too:
            assert third_too.rest() == b"-ERR max number of clients reached\r\n"


def _http(port: int) -> Any:
    return contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=DEADLINE))


@pytest.mark.parametrize("text", ["cake=1", "connections=many", "connections=0", "connections"])
def test_a_bound_that_makes_no_sense_is_refused(text: str) -> None:
    with pytest.raises(CannotServe):
        ClientLimits.parse([text])


# --- waiting -------------------------------------------------------------------------------------


def _begin_to_wait(server: SmallServer, client: RawClient, **arguments: Any) -> None:
    before = server.dispatcher.figures()["waits"]
    client.send("JOBS.POP_WAIT", json.dumps({"queues": "q", "worker": "w", **arguments}))
    _until(lambda: server.dispatcher.figures()["waits"] > before)


def test_a_wait_ends_as_soon_as_there_is_a_job(tmp_path: Path) -> None:
    with small_server(tmp_path) as server, server.connect() as waiting, server.connect() as other:
        _begin_to_wait(server, waiting, timeout=DEADLINE)
        other.ask("JOBS.PUT", '{"queue":"q","id":"a"}')

        assert [job["id"] for job in json.loads(waiting.receive())] == ["a"]


def test_a_wait_holds_up_no_one_and_its_connection_keeps_its_order(tmp_path: Path) -> None:
    with small_server(tmp_path) as server, server.connect() as waiting, server.connect() as other:
        _begin_to_wait(server, waiting, timeout=DEADLINE)
        waiting.send("PING")
        assert other.ask("PING") == b"PONG"
        other.ask("JOBS.PUT", '{"queue":"q","id":"a"}')

        assert b'"a"' in waiting.receive()
        assert waiting.receive() == b"PONG"


def test_a_wait_ends_with_nothing_when_its_time_is_over(tmp_path: Path) -> None:
    with small_server(tmp_path) as server, server.connect() as client:
        assert client.ask("JOBS.POP_WAIT", '{"queues":"q","worker":"w","timeout":0.05}') == b"[]"


def test_a_wait_for_no_number_of_seconds_is_refused(tmp_path: Path) -> None:
    arguments = {"queues": "q", "worker": "w", "timeout": float("nan")}
    with small_server(tmp_path) as server, server.connect() as client:
        refused = client.ask("JOBS.POP_WAIT", msgspec.msgpack.encode(arguments))

        assert str(refused).startswith("BAD_ARGUMENT ")


def test_a_wait_ends_when_its_client_goes_away(tmp_path: Path) -> None:
    with small_server(tmp_path) as server, server.connect() as other:
        waiting = server.connect()
        _begin_to_wait(server, waiting)
        waiting.close()
        _until(lambda: server.dispatcher.figures()["waits"] == 0)

        other.ask("JOBS.PUT", '{"queue":"q","id":"a"}')
        assert json.loads(other.ask("JOBS.GET", '{"id":"a"}'))["state"] == "waiting"


@pytest.mark.parametrize("id", ["a", 'a "b" \\ / \n', "\N{SNOWMAN}"])
def test_a_result_can_be_waited_for(tmp_path: Path, id: str) -> None:
    with small_server(tmp_path) as server, server.connect() as waiting, server.connect() as worker:
        worker.ask("JOBS.PUT", json.dumps({"queue": "q", "id": id}))
        worker.ask("JOBS.POP", '{"queue":"q","worker":"w"}')
        waiting.send("JOBS.RESULT_WAIT", json.dumps({"id": id}))
        _until(lambda: server.dispatcher.figures()["waits"] == 1)
        worker.ask("JOBS.COMPLETE", json.dumps({"id": id, "worker": "w", "result": 42}))

        assert json.loads(waiting.receive())["state"] == "complete"
        assert waiting.ask("JOBS.RESULT", json.dumps({"id": id})) == b"42"


# --- the end -------------------------------------------------------------------------------------


def test_a_server_that_stops_answers_what_has_come_and_ends_waits(tmp_path: Path) -> None:
    with small_server(tmp_path) as server:
        waiting, busy = server.connect(), server.connect()
        _begin_to_wait(server, waiting)
        # They come in one packet, so with the first reply all of them are there.
        busy.socket.sendall(command("JOBS.PUT", '{"queue":"x"}') * 20 + command("ECHO", "end"))
        busy.exactly(1)

    with waiting, busy:
        assert waiting.rest() == b"$2\r\n[]\r\n"
        assert busy.rest().endswith(b"$3\r\nend\r\n")


@pytest.mark.parametrize("name", ["ECHO", "PING"])
def test_only_a_text_of_a_sensible_size_is_sent_back(client: RawClient, name: str) -> None:
    fits = "x" * MAX_ECHO_BYTES

    assert client.ask(name, fits) == fits.encode()
    refused = str(client.ask(name, fits + "x"))
    assert refused.startswith("REQUEST_TOO_LARGE the text has 1048577 bytes, at most 1048576 are")
    assert client.ask("PING") == b"PONG"
