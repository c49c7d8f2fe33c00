"""Reads that turn out to be too large for the server's event loop: abandoned there, and run again
in a thread."""

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import pytest

import holdfast
from holdfast.limits import MAX_READ_ON_LOOP_BYTES
from holdfast.operations import OPERATIONS
from holdfast.server.application import make_dispatcher
from holdfast.server.commands import plan_of
from holdfast.server.dispatcher import Dispatcher
from holdfast.server.options import DispatcherOptions
from holdfast.server.resp_session import Later, Read, RespSession
from holdfast.store import View
from tests.server.test_direct_answers import Connected, request

_ROWS: Final = 12
_TABLE: Final = {
    "table": "pages",
    "attributes": {"title": "string", "rev": "int", "text": "string"},
    "index": [{"attribute": "title", "type": "hash"}, {"attribute": "rev", "type": "range"}],
}
_GET: Final = {"table": "pages", "attributes": {"title": "many"}}
_TEXT: Final = "<é>" * 100_000  # a thousand bytes when it is stored


def _fill(store: holdfast.Store) -> None:
    store.tables.create(_TABLE)
    for number in range(_ROWS):
        store.tables.put("pages", {"title": "many", "rev": number, "text": _TEXT})
    store.tables.put("pages", {"title": "one", "rev": 1, "text": "short"})


def _run(folder: Path, use: Callable[[Dispatcher], Awaitable[None]]) -> None:
    async def main() -> None:
        with holdfast.open(folder, durability="interval") as store:
            _fill(store)
            dispatcher = make_dispatcher(store, DispatcherOptions(record=True))
            try:
                await use(dispatcher)
            finally:
                await dispatcher.close()

    asyncio.run(main())


def _is_on_loop() -> bool:
    return threading.current_thread() is threading.main_thread()


@pytest.mark.parametrize(
    "read",
    [
        lambda view: view.tables.get("pages", {"title": "many"}),
        lambda view: view.tables.get("pages", {"title": "many"}, order={"rev": "desc"}),
        lambda view: view.tables.get_by_url("pages", ["many"], ""),
    ],
    ids=["the fast path", "any other page", "by URL"],
)
def test_the_first_large_page_of_its_kind_is_read_in_a_thread(
    tmp_path: Path, read: Callable[[View], Any]
) -> None:
    began: list[bool] = []
    ended: list[bool] = []

    def work(view: View) -> Any:
        began.append(_is_on_loop())
        page = read(view)
        ended.append(_is_on_loop())
        return page

    async def use(dispatcher: Dispatcher) -> None:
        page = await dispatcher.read(dispatcher.store, work, "a kind")
        assert [len(item["text"]) for item in page.items] == [len(_TEXT)] * _ROWS
        assert (began, ended) == ([True, False], [False])

        await dispatcher.read(dispatcher.store, work, "a kind")
        assert began == [True, False, False]  # the next one of its kind is not tried on the loop

    _run(tmp_path, use)


def test_a_large_value_is_read_in_a_thread_and_a_small_one_on_the_loop(tmp_path: Path) -> None:
    ended: dict[str, bool] = {}

    async def use(dispatcher: Dispatcher) -> None:
        store = dispatcher.store
        store.jobs.put("q", id="large", data="x" * (MAX_READ_ON_LOOP_BYTES + 1))
        store.jobs.put("q", id="small", data="x" * 1_000)

        def get(view: View, id: str) -> Any:
            job = view.jobs.get(id)
            ended[id] = _is_on_loop()
            return job

        for id in ("small", "large"):
            job = await dispatcher.read(store, lambda view, id=id: get(view, id))  # type: ignore[misc]  # bound now
            assert job.id == id

    _run(tmp_path, use)
    assert ended == {"small": True, "large": False}


def test_a_large_read_over_resp_is_planned_for_a_thread(tmp_path: Path) -> None:
    async def use(dispatcher: Dispatcher) -> None:
        session = RespSession(dispatcher, lambda data: None)

        def run(arguments: object) -> Any:
            read = plan_of(session, [b"TABLES.GET", json.dumps(arguments).encode()])
            assert isinstance(read, Read)
            assert not read.is_large
            return session.run(read)

        assert b"short" in run({**_GET, "attributes": {"title": "one"}})
        later = run(_GET)
        assert isinstance(later, Later)
        reply = later.encode(await later.start())
        assert isinstance(reply, bytes)
        assert len(json.loads(reply.split(b"\r\n")[1])["items"]) == _ROWS

    _run(tmp_path, use)


def test_a_large_read_over_http_is_answered_by_a_task(tmp_path: Path) -> None:
    async def use(dispatcher: Dispatcher) -> None:
        connected = Connected(dispatcher)

        async def get(title: str) -> bytes:
            body = json.dumps({"table": "pages", "attributes": {"title": title}}).encode()
            return await connected.say(request(body, path="/default/tables/get"))

        small = await get("one")
        assert (connected.tasks, b"short" in small) == (0, True)
        large = await get("many")

        assert connected.tasks == 1
        assert len(json.loads(large.partition(b"\r\n\r\n")[2])["result"]["items"]) == _ROWS

    _run(tmp_path, use)


def test_an_abandoned_read_is_counted_once_and_not_as_an_error(tmp_path: Path) -> None:
    async def use(dispatcher: Dispatcher) -> None:
        operation = OPERATIONS["tables.get"]
        arguments = operation.arguments(table="pages", attributes={"title": "many"})
        await dispatcher.run(dispatcher.store, operation, arguments)

        calls = dispatcher.recorder._calls["tables.get"]
        assert (sum(calls.buckets), calls.errors) == (1, 0)

    _run(tmp_path, use)
