"""The HTTP API as a part of a user's own ASGI application."""

import asyncio
import json
import threading
from typing import Any
from urllib.parse import unquote

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from holdfast import Store
from holdfast.server.application import Application
from holdfast.tables import catalogue
from tests.tables.schemas import simple


async def ask(
    application: Any, method: str, path: str, body: bytes = b"", query: bytes = b""
) -> tuple[int, bytes, dict[str, str]]:
    """One request to an ASGI application, without a socket."""
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "scheme": "http",
        "method": method,
        "path": unquote(path),
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": query,
        "headers": [(b"host", b"testserver")],
        "client": ("127.0.0.1", 1),
        "server": ("testserver", 80),
    }
    coming = [{"type": "http.request", "body": body, "more_body": False}]
    sent: list[Any] = []

    async def receive() -> Any:
        if coming:
            return coming.pop()
        await asyncio.Event().wait()

    async def send(message: Any) -> None:
        sent.append(message)

    await application(scope, receive, send)
    headers = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return sent[0]["status"], b"".join(each.get("body", b"") for each in sent[1:]), headers


def test_a_store_is_served_below_a_path_of_another_application(store: Store) -> None:
    async def work() -> None:
        served = Application(store)
        application = Starlette(routes=[Mount("/data/store", served)])
        body = json.dumps({"queue": "q", "data": {"n": 1}}).encode()

        status, said, _ = await ask(application, "POST", "/data/store/default/jobs/put", body)
        assert (status, json.loads(said)["result"] is not None) == (200, True)
        status, _, _ = await ask(application, "GET", "/data/store/livez")
        assert status == 200
        status, _, _ = await ask(application, "GET", "/livez")
        assert status == 404
        await served.close()

    asyncio.run(work())
    assert store.jobs.length("q") == 1


def test_the_raw_path_and_links_work_below_a_path(store: Store) -> None:
    schema = {
        "table": "t",
        "attributes": {"k": "string", "r": "string"},
        "index": [{"attribute": "k", "type": "hash"}, {"attribute": "r", "type": "range"}],
    }

    async def work() -> None:
        served = Application(store)
        application = Starlette(routes=[Mount("/my store", served)])
        table = "/my%20store/default/sys/table/t"
        await ask(application, "PUT", table, json.dumps(schema).encode())
        for r in "ab":
            path = f"{table}/x%2Fy/{r}"
            status, said, _ = await ask(application, "PUT", path, b'{"attributes": {}}')
            assert status == 201, said

        status, said, headers = await ask(application, "GET", f"{table}/x%2Fy", query=b"limit=1")

        assert json.loads(said)["items"] == [{"k": "x/y", "r": "a"}]
        assert headers["link"].startswith(f"<{table}/x%2Fy?limit=1&next=")
        await served.close()

    asyncio.run(work())


def test_a_server_that_runs_it_alone_tells_it_of_the_end(store: Store) -> None:
    async def work() -> list[str]:
        served = Application(store, pixel=True)
        await ask(served, "GET", "/readyz")
        coming = [{"type": "lifespan.shutdown"}, {"type": "lifespan.startup"}]
        sent: list[str] = []

        async def receive() -> Any:
            return coming.pop()

        async def send(message: Any) -> None:
            sent.append(message["type"])

        await served({"type": "lifespan"}, receive, send)
        return sent

    assert asyncio.run(work()) == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
    store.jobs.put("still", data={})


def test_what_a_crash_has_interrupted_in_all_domains_is_resumed_by_the_next_server(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = store.space("one")

    def crash(*args: Any) -> None:
        raise KeyError("crash")

    with monkeypatch.context() as patch:
        patch.setattr(catalogue, "adopt_default", crash)
        with pytest.raises(KeyError):
            store.space("*").tables.create(simple())
    assert one.tables.names() == []

    async def work() -> None:
        served = Application(store)
        await ask(served, "GET", "/livez")
        async with asyncio.timeout(20):
            while not one.tables.names():
                await asyncio.sleep(0)
        await served.close()

    asyncio.run(work())


def test_a_request_that_finds_no_table_makes_no_domain(store: Store) -> None:
    row = b'{"attributes": {"key": "a", "place": 1}}'

    async def said(served: Application, method: str, path: str, body: bytes = b"") -> Any:
        status, text, _ = await ask(served, method, f"/nowhere/sys/table{path}", body)
        return json.loads(text).get("type", status) if text else status

    async def work() -> None:
        served = Application(store)
        assert await said(served, "GET", "") == 200
        assert await said(served, "GET", "/simple") == "table_not_found"
        assert await said(served, "GET", "/simple/a") == "table_not_found"
        assert await said(served, "PUT", "/simple/", row) == "table_not_found"
        assert await said(served, "PUT", "/simple/", b"{") == "invalid_json"
        assert await said(served, "DELETE", "/simple/a") == "table_not_found"
        assert await said(served, "DELETE", "/simple") == 204
        assert await said(served, "PUT", "/simple", b'{"attributes": {}}') == "invalid_schema"
        assert store.spaces() == ["default"]

        schema = json.dumps(simple()).encode()
        assert await said(served, "PUT", "/simple", schema) == "table_created"
        assert await said(served, "PUT", "/simple/", row) == 201
        assert store.spaces() == ["default", "nowhere"]
        await served.close()

    asyncio.run(work())


def test_the_description_of_all_operations_is_made_beside_the_event_loop(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    made_in: list[threading.Thread] = []

    def document() -> bytes:
        made_in.append(threading.current_thread())
        return b"{}"

    async def work() -> None:
        served = Application(store)
        assert (await ask(served, "GET", "/openapi.json"))[:2] == (200, b"{}")
        await served.close()

    monkeypatch.setattr("holdfast.server.routes.document", document)
    asyncio.run(work())

    assert threading.current_thread() not in made_in
    assert len(made_in) == 1
