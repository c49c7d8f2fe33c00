"""Streams over HTTP: events that come in, notices that go out."""

import asyncio
import json
from collections.abc import AsyncGenerator, Iterator
from typing import Any

import pytest

from holdfast.limits import STREAMED_AT_ONCE_BYTES
from holdfast.server.http_exchange import HttpRequest, HttpResponse, send_response
from holdfast.server.loop_turns import LoopTurns
from tests.server.http_fixtures import server
from tests.server.running import RawClient
from tests.server.serving import Reply, Server, serving

__all__ = ["server"]

NDJSON = {"Content-Type": "application/x-ndjson"}
SCHEMA = {"signup": [{"targets": ["['users']"], "add": "user"}]}


@pytest.fixture
def events(server: Server, request: pytest.FixtureRequest) -> str:
    """A space of its own, where signups become members of a set."""
    space = str(request.node.name)[:60].replace("[", "-").replace("]", "")
    reply = server.call("events.deploy", space=space, schema=SCHEMA)
    assert reply.status == 200, reply.body
    return space


def send(server: Server, space: str, body: object, headers: dict[str, str]) -> Reply:
    return server.request("POST", f"/{space}/events", body, headers)


def event(user: object) -> dict[str, object]:
    return {"name": "signup", "attributes": {"user": user}}


def size(server: Server, space: str) -> int:
    return int(server.call("events.size", space=space, key="users").result)


def test_one_event_is_answered_with_what_it_did(server: Server, events: str) -> None:
    reply = send(server, events, json.dumps(event("ann")), {})

    assert reply.result["keys"] == 1
    assert size(server, events) == 1


def test_a_bad_event_of_an_array_fails_alone(server: Server, events: str) -> None:
    body = json.dumps([event("ann"), {"nome": 1}, event("ben")])

    result = send(server, events, body, {}).result

    assert result["accepted"] == 2
    assert [each["position"] for each in result["errors"]] == [1]
    assert size(server, events) == 2


def test_a_bad_event_among_the_arguments_fails_alone(server: Server, events: str) -> None:
    many = [event("ann"), 17, {"name": "a::b"}, event("ben")]

    result = server.call("events.send_many", space=events, events=many).result

    assert result["accepted"] == 2
    assert [each["position"] for each in result["errors"]] == [1, 2]
    assert size(server, events) == 2


def test_a_stream_of_lines_is_ingested_and_its_bad_lines_are_named(
    server: Server, events: str
) -> None:
    lines = [json.dumps(event(number)).encode() for number in range(2_500)]
    lines[7] = b"{"
    lines[1_800] = b'{"nome": 1}'

    result = send(server, events, b"\n".join(lines) + b"\n\n", NDJSON).result

    assert result["accepted"] == 2_498
    assert [each["position"] for each in result["errors"]] == [7, 1_800]
    assert size(server, events) == 2_498


def test_lines_are_known_by_the_first_one_if_nobody_says_what_they_are(
    server: Server, events: str
) -> None:
    lines = json.dumps(event("ann")) + "\n" + json.dumps(event("ben")) + "\n{\n"

    result = send(server, events, lines, {}).result
    one = send(server, events, json.dumps(event("cid"), indent=2) + "\n", {}).result
    several = send(server, events, json.dumps([event("dora")], indent=2), {}).result

    assert (result["accepted"], [each["position"] for each in result["errors"]]) == (2, [2])
    assert (one["keys"], several["accepted"]) == (1, 1)
    assert size(server, events) == 4


def test_a_long_stream_takes_bounded_memory(server: Server, events: str) -> None:
    line = json.dumps({**event("ann"), "more": None, "id": None}).encode()
    padded = line + b" " * 100_000 + b"\n"

    def body() -> Iterator[bytes]:
        for _ in range(500):
            yield padded

    send(server, events, iter([padded]), NDJSON)
    before = server.memory_bytes()
    result = send(server, events, body(), NDJSON).result

    assert result["accepted"] + len(result["errors"]) == 500
    assert server.memory_bytes() - before < 30_000_000


def test_a_line_without_end_is_refused(server: Server, events: str) -> None:
    reply = send(server, events, b"{" * 3_000_000, NDJSON)

    assert (reply.status, reply.error["code"]) == (413, "request_too_large")


def test_an_invalid_event_is_refused(server: Server, events: str) -> None:
    assert send(server, events, b"17", {}).status == 400


# --- the pixel -----------------------------------------------------------------------------------


def test_the_pixel_counts_who_sees_it(server: Server, events: str) -> None:
    reply = server.get(f"/{events}/events/pixel.gif?name=signup&user=ann")

    assert reply.headers["content-type"] == "image/gif"
    assert reply.headers["cache-control"] == "no-store"
    assert reply.body.startswith(b"GIF89a")
    assert size(server, events) == 1


def test_a_parameter_of_the_pixel_that_is_given_twice_is_a_list(
    server: Server, events: str
) -> None:
    server.get(f"/{events}/events/pixel.gif?user=ann&name=signup&user=ben%20z&other=")

    page = server.call("events.members", space=events, key="users").result
    assert [member["value"] for member in page["members"]] == ["ben z", "ann"]


# --- notices -------------------------------------------------------------------------------------


def test_notices_come_as_server_sent_events(server: Server, events: str) -> None:
    connection = server.connect()
    connection.request("GET", f"/{events}/notices?topic=events:")
    response = connection.getresponse()
    assert response.getheader("content-type") == "text/event-stream"
    assert response.readline() == b": listening\n"

    send(server, events, json.dumps(event("ann")), {})

    assert response.readline() == b"\n"
    assert response.readline() == b"event: events:users\n"
    assert response.readline() == b"data: set\n"
    connection.close()


def test_a_message_is_heard_as_it_was_published(server: Server) -> None:
    """Only line feeds and carriage returns end a line of an event."""
    message = json.dumps({"text": "one\u2028two\x85three\x0cfour"}, ensure_ascii=False) + "\n"
    connection = server.connect()
    connection.request("GET", "/default/notices?topic=pubsub.said")
    response = connection.getresponse()
    assert response.readline() == b": listening\n"

    with RawClient(server.resp_port) as speaker:
        speaker.ask("PUBLISH", "said", message.encode())

    assert response.readline() == b"\n"
    assert response.readline().startswith(b"event: ")
    assert response.readline() == f"data: {message}".encode()
    assert response.readline() == b"data: \n"
    connection.close()


def test_a_notice_of_another_space_or_topic_is_not_heard(server: Server, events: str) -> None:
    connection = server.connect()
    connection.request("GET", f"/{events}/notices?topic=events:")
    response = connection.getresponse()
    response.readline()

    server.call("jobs.put", space=events, queue="q", data={})
    send(server, "default", json.dumps(event("zoe")), {})
    send(server, events, json.dumps(event("ann")), {})

    response.readline()
    assert response.readline() == b"event: events:users\n"
    connection.close()


def test_notices_refuse_a_misspelt_parameter(server: Server) -> None:
    assert server.get("/default/notices?topics=x").status == 400


def test_a_server_that_stops_ends_its_streams_and_its_waits(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    with serving(tmp_path_factory.mktemp("stopping")) as own:
        assert own.get("/default/events/pixel.gif?name=x").status == 404  # off by default
        stream, wait = own.connect(), own.connect()
        stream.request("GET", "/default/notices")
        response = stream.getresponse()
        response.readline()
        body = json.dumps({"queues": ["q"], "worker": "w", "timeout": 600})
        wait.request("POST", "/default/jobs/pop_wait", body)
        own.call("jobs.put", queue="other", data={})  # the wait has begun: requests keep order

        assert own.stop() == 0

        assert response.read().startswith(b"\n")
        assert wait.getresponse().status in (200, 503)  # no job, or no answer any more
        stream.close()
        wait.close()


def test_a_large_part_of_a_stream_is_sent_in_pieces() -> None:
    parts = [b"", b"a" * 10, b"b" * (2 * STREAMED_AT_ONCE_BYTES + 1), b"c"]

    async def stream() -> AsyncGenerator[bytes]:
        for part in parts:
            yield part

    async def sent() -> list[bytes]:
        messages: list[Any] = []

        async def keep(message: Any) -> None:
            messages.append(message)

        async def receive() -> Any:
            await asyncio.Event().wait()

        scope = {"method": "GET", "path": "/", "query_string": b"", "headers": []}
        turns = LoopTurns(asyncio.get_running_loop())
        await send_response(HttpRequest(scope, receive), HttpResponse(stream()), keep, turns)
        return [message["body"] for message in messages[1:]]

    bodies = asyncio.run(sent())

    assert b"".join(bodies) == b"".join(parts)
    assert [len(body) for body in bodies] == [10, *[STREAMED_AT_ONCE_BYTES] * 2, 1, 1, 0]
