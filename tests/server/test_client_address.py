"""Events that name no address came from where their client is."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
import redis

import holdfast
from holdfast.errors import BadInput
from holdfast.server.application import Application
from holdfast.store import Store
from tests.server.http_fixtures import server
from tests.server.serving import Server, serving

__all__ = ["server"]

SCHEMA = {"visit": [{"targets": ["['seen']"], "add": "@request_ip"}]}
VISIT = {"name": "visit"}
ELSEWHERE = {"X-Forwarded-For": "203.0.113.9"}
NDJSON = {"Content-Type": "application/x-ndjson"}


@pytest.fixture
def visits(server: Server, request: pytest.FixtureRequest) -> str:
    """A space of its own, where visits are remembered by their address."""
    space = str(request.node.name)[:60].replace("[", "-").replace("]", "")
    assert server.call("events.deploy", space=space, schema=SCHEMA).status == 200
    return space


def seen(server: Server, space: str) -> list[str]:
    page = server.call("events.members", space=space, key="seen").result
    return [member["value"] for member in page["members"]]


@pytest.mark.parametrize(
    ("path", "body", "headers"),
    [
        ("events", VISIT, {}),
        ("events", {**VISIT, "ip": None}, {}),
        ("events", [VISIT], {}),
        ("events", VISIT, NDJSON),
        ("events/send", {"event": VISIT}, {}),
        ("events/send_many", {"events": [VISIT]}, {}),
        ("batch", [{"operation": "events.send", "arguments": {"event": VISIT}}], {}),
        ("events", VISIT, ELSEWHERE),  # from a stranger it is just something that it says
    ],
)
def test_an_event_that_comes_over_http_has_the_address_of_its_client(
    server: Server, visits: str, path: str, body: Any, headers: dict[str, str]
) -> None:
    reply = server.request("POST", f"/{visits}/{path}", json.dumps(body), headers)

    assert reply.status == 200, reply.body
    assert seen(server, visits) == ["127.0.0.1"]


def test_the_pixel_knows_who_sees_it(server: Server, visits: str) -> None:
    server.get(f"/{visits}/events/pixel.gif?name=visit")

    assert seen(server, visits) == ["127.0.0.1"]


def test_an_explanation_knows_the_address_too(server: Server, visits: str) -> None:
    [handler] = server.call("events.explain", space=visits, event=VISIT).result["handlers"]

    assert handler["writes"] == [{"key": "seen", "value": "127.0.0.1"}]


def test_an_event_that_comes_over_resp_has_the_address_of_its_client(
    server: Server, visits: str
) -> None:
    with redis.Redis(host=server.host, port=server.resp_port) as client:
        client.execute_command("SPACE", visits)
        client.execute_command("EVENTS.SEND", "visit")
    assert seen(server, visits) == ["127.0.0.1"]

    with holdfast.connect(f"holdfast://{server.host}:{server.resp_port}") as remote:
        own = remote.space(visits).events
        own.forget("seen")
        own.send(VISIT)
        own.send_many([{**VISIT, "ip": "192.0.2.1"}, VISIT])

    assert seen(server, visits) == ["127.0.0.1", "192.0.2.1"]


def test_an_event_may_name_an_address_of_its_own(server: Server, visits: str) -> None:
    server.request("POST", f"/{visits}/events", json.dumps({**VISIT, "ip": "192.0.2.1"}))
    server.request("POST", f"/{visits}/events", json.dumps({**VISIT, "ip": ""}))

    assert seen(server, visits) == ["192.0.2.1"]


@pytest.fixture(scope="module")
def behind_proxies(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    data = tmp_path_factory.mktemp("proxies")
    with serving(data, "--trusted-proxies", "127.0.0.0/8, 10.0.0.0/8", "--pixel") as own:
        own.call("events.deploy", schema=SCHEMA)
        yield own


@pytest.mark.parametrize(
    ("forwarded_for", "address"),
    [
        ("203.0.113.9", "203.0.113.9"),
        ("6.6.6.6, 203.0.113.9, 10.0.0.7", "203.0.113.9"),  # what the client itself says is first
        ("", "127.0.0.1"),
        ("rubbish", "127.0.0.1"),
    ],
)
def test_a_trusted_proxy_says_where_the_client_is(
    behind_proxies: Server, forwarded_for: str, address: str
) -> None:
    behind_proxies.call("events.forget", key="seen")

    behind_proxies.get("/default/events/pixel.gif?name=visit", **{"X-Forwarded-For": forwarded_for})

    assert seen(behind_proxies, "default") == [address]


def test_a_mounted_application_trusts_the_proxies_that_it_is_given(store: Store) -> None:
    store.events.deploy(SCHEMA)

    async def work() -> None:
        served = Application(store, trusted_proxies=["10.0.0.0/8"])
        lines = [(b"x-forwarded-for", b"203.0.113.9"), (b"x-forwarded-for", b"10.0.0.7")]
        scope = {
            "type": "http",
            "method": "POST",
            "path": "/default/events",
            "query_string": b"",
            "headers": lines,
            "client": ("10.0.0.1", 4711),
        }
        coming = [{"type": "http.request", "body": json.dumps(VISIT).encode()}]

        async def receive() -> Any:
            return coming.pop()

        async def send(message: Any) -> None:
            pass

        await served(scope, receive, send)
        await served.close()

    asyncio.run(work())
    assert [member.value for member in store.events.members("seen").members] == ["203.0.113.9"]


def test_what_is_no_network_is_refused(store: Store) -> None:
    async def work() -> None:
        served = Application(store, trusted_proxies=["proxy.example"])
        await served({"type": "http"}, None, None)  # type: ignore[arg-type]  # nothing is asked

    with pytest.raises(BadInput, match="this is not a network"):
        asyncio.run(work())
