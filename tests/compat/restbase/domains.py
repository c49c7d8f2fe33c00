"""The tables of one domain on a server, for the tests of RESTBase's paths."""

import json
from typing import Any
from urllib.parse import quote

import pytest

from tests.server.serving import Reply, Server

SCHEMA = {
    "table": "pages",
    "attributes": {"title": "string", "tid": "timeuuid", "n": "int", "body": "string"},
    "index": [
        {"attribute": "title", "type": "hash"},
        {"attribute": "tid", "type": "range", "order": "desc"},
    ],
    "secondaryIndexes": {"by_n": [{"attribute": "n", "type": "hash"}]},
}
PLAIN = {
    "table": "plain",
    "attributes": {"k": "string", "r": "string", "v": "json"},
    "index": [{"attribute": "k", "type": "hash"}, {"attribute": "r", "type": "range"}],
}
TID = "30b68d20-6ba1-11e4-b3d9-550dc866dac4"
UNKNOWN = "unknown_attribute"
JSON = {"Content-Type": "application/json"}


class Domain:
    """The tables of one domain."""

    def __init__(self, server: Server, name: str) -> None:
        self.server = server
        self.root = f"/{name}/sys/table"

    def ask(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> Reply:
        data = None if body is None else json.dumps(body)
        return self.server.request(
            method,
            self.root + path,
            data,
            {**(JSON if body is not None else {}), **(headers or {})},
        )

    def put(self, table: str, **attributes: Any) -> Reply:
        return self.ask("PUT", f"/{table}/", {"table": table, "attributes": attributes})


@pytest.fixture
def domain(server: Server, request: pytest.FixtureRequest) -> Domain:
    """A domain of its own with both tables."""
    name = str(request.node.name)[:80].replace("[", "-").replace("]", "").replace("/", "_")
    found = Domain(server, quote(name, safe=""))
    for schema in (SCHEMA, PLAIN):
        reply = found.ask("PUT", f"/{schema['table']}", schema)
        assert reply.status == 201, reply.body
    return found
