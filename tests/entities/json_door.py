"""A door of two screens: the raw operations over HTTP, with values as Extended JSON."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import msgspec

from holdfast.entities import extended_json
from holdfast.entities.messages import Change, Filter, Ordering, PutEntity
from holdfast.entities.values import give, keep
from holdfast.errors import HoldfastError
from holdfast.store import Store

RECORDS: dict[str, Any] = {
    "entities": list[PutEntity],
    "filters": list[Filter],
    "changes": list[Change],
    "order": Ordering | None,
}


@contextmanager
def json_door(store: Store) -> Iterator[str]:
    """Listens on a free port until the block ends, and gives its URL."""

    class Door(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            _, space, layer, operation = self.path.split("/")
            assert (space, layer) == ("default", "entities")
            body = self.rfile.read(int(self.headers["Content-Length"]))
            try:
                answer, status = {"result": _call(store, operation, body)}, 200
            except HoldfastError as error:
                told = {"code": error.code, "message": error.message, "hint": error.hint}
                answer, status = {"error": told}, error.status
            self.send_response(status)
            self.end_headers()
            self.wfile.write(json.dumps(answer).encode())

        def log_message(self, *args: Any) -> None:
            """Tests are quiet."""

    server = HTTPServer(("127.0.0.1", 0), Door)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _call(store: Store, operation: str, body: bytes) -> Any:
    arguments = {
        name: msgspec.convert(give(kept), RECORDS.get(name, Any))
        for name, kept in extended_json.read(body).items()
    }
    result = getattr(store.entities, operation)(**arguments)
    return _written(msgspec.to_builtins(result, builtin_types=(bytes, datetime)))


def _written(value: Any) -> Any:
    """The result with the properties of its entities as Extended JSON."""
    if isinstance(value, list):
        return [_written(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        name: extended_json.write(keep(item)) if name == "properties" else _written(item)
        for name, item in value.items()
    }
