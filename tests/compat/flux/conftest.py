"""A Flux client: what its users have, pointed at Holdfast by its base URL alone."""

import json
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import Request, urlopen

import pytest

from tests.server.conftest import server, space
from tests.server.running import Server

__all__ = ["server", "space"]


class Flux:
    """Calls below `/{space}/flux`; answers are (status, decoded body)."""

    def __init__(self, base: str) -> None:
        self.base = base

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        request = Request(self.base + path, data, headers, method=method)
        try:
            with urlopen(request) as answer:
                status, text = answer.status, answer.read()
        except HTTPError as refused:
            status, text = refused.code, refused.read()
        return status, json.loads(text) if text else None

    def get(self, path: str, **parameters: Any) -> Any:
        """The body of an answer that must be 200."""
        status, answer = self.call("GET", path + query(**parameters))
        assert status == 200, answer
        return answer

    def deploy(self, schema: Any) -> str:
        status, answer = self.call("POST", "/schema", schema)
        assert status == 200, answer
        id: str = answer["id"]
        return id

    def send(self, id: str, *events: Any) -> Any:
        status, answer = self.call("POST", f"/schema/{id}/events", list(events))
        assert status == 200, answer
        return answer

    def results(self, *keys: str, **parameters: Any) -> list[str]:
        found: list[str] = self.get("/query", keys=list(keys), **parameters)["results"]
        return found

    def distinct(self, *keys: str, **parameters: Any) -> int:
        found: int = self.get("/distinct", keys=list(keys), **parameters)["count"]
        return found

    def gross(self, *keys: str, **parameters: Any) -> int:
        found: int = self.get("/gross", keys=list(keys), **parameters)["count"]
        return found


def query(**parameters: Any) -> str:
    pairs = []
    for name, value in parameters.items():
        for each in value if isinstance(value, list) else [value]:
            brackets = "[]" if isinstance(value, list) else ""
            pairs.append(f"{quote(name + brackets)}={quote(str(each))}")
    return "?" + "&".join(pairs) if pairs else ""


@pytest.fixture
def flux(server: Server, space: str) -> Flux:
    return Flux(f"{server.http_url}/{space}/flux")


ADD = {"add": [{"targets": ["[k]"], "add": "v"}]}
