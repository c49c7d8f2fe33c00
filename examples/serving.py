"""Serves the applications of the web framework examples on a free port, and sends requests."""

import json
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple


class Answer(NamedTuple):
    status: int
    body: Any
    headers: dict[str, str]


def ask(url: str, data: Any = None) -> Answer:
    """Sends a POST with JSON, or a GET without data."""
    body = None if data is None else json.dumps(data).encode()
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=60) as found:
            return Answer(found.status, json.load(found), dict(found.headers))
    except urllib.error.HTTPError as refused:
        with refused:
            return Answer(refused.code, json.load(refused), dict(refused.headers))


@contextmanager
def serving_asgi(app: Any) -> Iterator[str]:
    """Serves an ASGI application with uvicorn, and yields its address."""
    import uvicorn

    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
        running = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        running.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            running.join()


@contextmanager
def serving_wsgi(app: Any) -> Iterator[str]:
    """Serves a WSGI application with werkzeug, a thread per request, and yields its address."""
    from werkzeug.serving import WSGIRequestHandler, make_server

    class Quiet(WSGIRequestHandler):
        def log(self, type: str, message: str, *args: Any) -> None:
            """Writes nothing."""

    server = make_server("127.0.0.1", 0, app, threaded=True, request_handler=Quiet)
    running = threading.Thread(target=server.serve_forever)
    running.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        running.join()
        server.server_close()
