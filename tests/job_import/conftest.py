"""A Redis that holds another queue: a real server, with the original script or recorded keys."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import qless  # type: ignore[import-untyped]  # it is older than types
import valkey

from holdfast.job_import.redis_reader import RedisReader
from tests.servers.valkey import ValkeyServer

RECORDED = Path(__file__).parent / "recorded"


@pytest.fixture(scope="module")
def redis_server() -> Iterator[ValkeyServer]:
    with ValkeyServer.started() as server:
        yield server


@pytest.fixture
def redis_url(redis_server: ValkeyServer) -> str:
    """The URL of an empty server."""
    redis_server.empty()
    return f"redis://127.0.0.1:{redis_server.port}/0"


@pytest.fixture
def reader(redis_url: str) -> Iterator[RedisReader]:
    with RedisReader(redis_url) as reader:
        yield reader


def client_of(url: str) -> Any:
    return valkey.Valkey.from_url(url)


def restore(url: str, kind: str) -> None:
    """Makes the keys that the real RQ or Celery has made; see recorded/record.py."""
    client = client_of(url)
    for words in json.loads((RECORDED / f"{kind}.json").read_text()):
        client.execute_command(*map(base64.b64decode, words))


class OriginalQless:
    """The script of the published Python client, run by a real server."""

    def __init__(self, url: str) -> None:
        text = (Path(qless.__file__).parent / "qless-core" / "qless.lua").read_text()
        # Servers of today let no script add to Lua's own tables; nothing else is changed.
        text = text.replace("function table.extend(", "local function table_extend(")
        self.client = client_of(url)
        self.load(text.replace("table.extend(", "table_extend("))

    def load(self, script: str) -> None:
        """Replaces the script."""
        self.script = script
        self._digest = self.client.script_load(script)

    def __call__(self, command: str, now: float, *words: Any) -> Any:
        return self.client.evalsha(self._digest, 0, command, now, *words)


@pytest.fixture
def original(redis_url: str) -> OriginalQless:
    return OriginalQless(redis_url)
