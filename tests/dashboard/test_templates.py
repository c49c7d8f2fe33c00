"""Templates are compiled when a page is first asked for, and nobody else waits for that."""

import asyncio
import importlib.resources
import threading
from pathlib import Path
from typing import Any

import jinja2
import pytest

from holdfast.dashboard import static_files, templates
from tests.server.test_released_requests import held_after


def test_the_pages_of_the_dashboard_are_compiled_and_its_files_read_in_a_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[threading.Thread] = []
    compile_ = jinja2.Environment.compile

    def noted(*arguments: Any, **named: Any) -> Any:
        threads.append(threading.current_thread())
        return compile_(*arguments, **named)

    def files(package: str) -> Any:
        threads.append(threading.current_thread())
        return importlib.resources.files(package)

    monkeypatch.setattr(jinja2.Environment, "compile", noted)
    monkeypatch.setattr(static_files, "files", files)
    for cached in (templates._environment, templates._prepared, static_files.load):
        cached.cache_clear()

    async def visit(resp: int, http: int) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", http)
        head = "GET /ui/default/ HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        writer.write(head.encode())
        said = await reader.read()
        writer.close()
        return said

    said, _ = held_after(tmp_path, visit)

    assert said.startswith(b"HTTP/1.1 200")
    assert threads
    assert threading.current_thread() not in threads


def test_first_pages_that_are_asked_for_at_once_compile_each_template_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compiled: list[str] = []
    compile_ = jinja2.Environment.compile

    def noted(environment: Any, source: Any, name: Any = None, *more: Any) -> Any:
        compiled.append(name)
        return compile_(environment, source, name, *more)

    monkeypatch.setattr(jinja2.Environment, "compile", noted)
    for cached in (templates._environment, templates._prepared):
        cached.cache_clear()

    async def prepare() -> None:
        await asyncio.gather(*(templates.prepare("limits.html", "events.html") for _ in range(8)))

    asyncio.run(prepare())

    assert len(compiled) == len(set(compiled))
