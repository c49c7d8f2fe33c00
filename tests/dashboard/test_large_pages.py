"""Pages and exports as data may have many megabytes: they are encoded in threads."""

import asyncio
import threading
from typing import Any

import pytest

from holdfast import Store
from holdfast.dashboard import copied_commands, page_request, rows
from holdfast.server.application import Application
from tests.server.test_http_mounted import ask
from tests.tables.schemas import simple


@pytest.mark.parametrize(
    ("module", "function", "path"),
    [
        (page_request, "as_csv", "tables/t?format=csv"),
        (copied_commands, "as_json", "tables/t?format=json"),
        (rows, "_as_csv_lines", "tables/t/export?as=csv"),
        (rows, "_as_json_lines", "tables/t/export?as=ndjson"),
    ],
)
def test_rows_are_not_encoded_on_the_loop(
    store: Store, monkeypatch: pytest.MonkeyPatch, module: Any, function: str, path: str
) -> None:
    store.tables.create(simple(table="t"))
    store.tables.put("t", {"key": "a", "place": 1, "value": "b"})
    encode, threads = getattr(module, function), []

    def encode_somewhere(*arguments: Any) -> bytes:
        threads.append(threading.current_thread())
        encoded: bytes = encode(*arguments)
        return encoded

    monkeypatch.setattr(module, function, encode_somewhere)

    async def read() -> tuple[int, bytes]:
        application = Application(store)
        page, _, query = path.partition("?")
        status, said, _ = await ask(application, "GET", f"/ui/default/{page}", query=query.encode())
        await application.close()
        return status, said

    status, said = asyncio.run(read())

    assert (status, b"a" in said) == (200, True)
    assert threads
    assert threading.main_thread() not in threads
