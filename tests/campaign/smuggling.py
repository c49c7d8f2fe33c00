"""Request smuggling

nginx and HAProxy, as they come and with their most lenient settings, stand before a server and
share one connection to it among all clients. An attacker sends heads and bodies that two programs
may read in two ways: a length and chunks, several lengths, folded lines, bare line ends, chunks
with extensions and trailers, and spellings of `Transfer-Encoding`, each with another request behind
it. Clients that ask meanwhile must get the answers to their own requests, and nothing of another
one. A proxy that answers that the server is busy, while the attacker's request holds the one
connection, is not the server's doing, and is counted. A proxy that is not installed is named as not
run; one of ours, which knows plain requests only, always runs. Through each proxy a server is
probed first that does smuggle, because it ignores bodies: a proxy through which that is not noticed
would prove nothing.
"""

import contextlib
import random
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from tests.campaign.frame import Result
from tests.campaign.smuggling_control import SharingProxy, answer_without_bodies, listening
from tests.server.serving import serving
from tests.servers import await_true

_NGINX: Final = """
daemon off; worker_processes 1; pid {folder}/pid; error_log {folder}/errors;
events {{ worker_connections 200; }}
http {{
  access_log off; client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi; uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  upstream holdfast {{ server 127.0.0.1:{server}; keepalive 1; }}
  server {{
    listen 127.0.0.1:{port}; {lenient}
    location / {{
      proxy_pass http://holdfast; proxy_http_version 1.1;
      proxy_set_header Connection ""; proxy_set_header Host localhost;
    }}
  }}
}}
"""
_HAPROXY: Final = """
global
  nbthread 1
defaults
  mode http
  timeout client 5s
  timeout server 5s
  timeout connect 2s
  {lenient}
frontend clients
  bind 127.0.0.1:{port}
  http-request set-header Host localhost
  default_backend holdfast
backend holdfast
  http-reuse always
  server one 127.0.0.1:{server} maxconn 1
"""
_LENIENT_NGINX: Final = (
    "ignore_invalid_headers off; underscores_in_headers on; proxy_request_buffering off;"
)
_LENIENT_HAPROXY: Final = "option accept-invalid-http-request"
_OURS: Final = "a proxy of ours"
# By name: the program, its settings, and what makes it lenient.
PROXIES: Final = {
    "nginx": ("nginx", _NGINX, ""),
    "nginx, lenient": ("nginx", _NGINX, _LENIENT_NGINX),
    "HAProxy": ("haproxy", _HAPROXY, ""),
    "HAProxy, lenient": ("haproxy", _HAPROXY, _LENIENT_HAPROXY),
    _OURS: ("", "", ""),
}

_END: Final = b"0\r\n\r\n"
_CODINGS: Final = [
    b"Transfer-Encoding: chunked", b"Transfer-Encoding : chunked", b"Transfer-Encoding:\tchunked",
    b"Transfer-Encoding: xchunked", b"Transfer-Encoding: chunked, identity",
    b"Transfer-Encoding: identity, chunked", b"Transfer-Encoding: gzip, chunked",
    b"Transfer-Encoding: \x0bchunked", b"Transfer-Encoding: chunked\x0b",
    b"Transfer-Encoding:\r\n chunked", b"X: y\r\n Transfer-Encoding: chunked",
    b"X: y\nTransfer-Encoding: chunked", b"Transfer-Encoding: Chunked",
    b'Transfer-Encoding: "chunked"', b"Transfer_Encoding: chunked",
    b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
    b"Transfer-Encoding: identity\r\nTransfer-Encoding: chunked", b"Transfer-Encoding;: chunked",
    b"\tTransfer-Encoding: chunked", b"Transfer-Encoding: ,chunked",
    b"Transfer-Encoding: chunked;q=1", b"Transfer-Encoding\x00: chunked",
]  # fmt: skip
# In each, `N` is the length of the request behind the head.
_LENGTHS: Final = [
    b"Content-Length: 0\r\nContent-Length: N", b"Content-Length: N\r\nContent-Length: 0",
    b"Content-Length: 0, N", b"Content-Length: +N", b"Content-Length: 0xN", b"Content-Length : N",
    b"Content-Length:\r\n N", b"Content-Length: N\r\n ", b"X: y\r\n Content-Length: N",
    b"Content-Length: -1", b"Content-Length: 18446744073709551616", b"Content-Length: 1 0",
    b"Content-Length: N;a", b"Content_Length: N", b"Content-Length: N\nX: y",
    b"Content-Length: N\r\nExpect: 100-continue", b"Content-Length\x0b: N",
    b"Connection: Content-Length\r\nContent-Length: N", b"Content-Length: 000000N",
]  # fmt: skip
_CHUNKS: Final = [
    b"0;a=b\r\n\r\n", b'0;a="\r\n\r\n"\r\n\r\n', b"0\n\r\n", b"0\r\n\n", b"0\n\n",
    b"1;x\r\nA\r\n0\r\n\r\n", b"1\r\nAB\r\n0\r\n\r\n", b"0x0\r\n\r\n", b"-0\r\n\r\n", b"+0\r\n\r\n",
    b"00000000000000000000\r\n\r\n", b"ffffffffffffffff\r\n\r\n", b"10000000000000000\r\n\r\n",
    b" 0\r\n\r\n", b"0 \r\n\r\n", b"0\r\nContent-Length: 5\r\n\r\n", b"0\r\n\r\n\r\n",
    b"0\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\rA\r\n0\r\n\r\n", b"3\r\na\r\n\r\n0\r\n\r\n",
    b"0;\ra\r\n\r\n", b"0;\n\r\n\r\n", b"0\r\nX: y\nZ: t\r\n\r\n",
]  # fmt: skip
_HEADS: Final = [
    b"GET /default/probe\r\n\r\n", b"GET /default/probe HTTP/1.1\n\n",
    b"GET /default/probe HTTP/1.1\nHost: localhost\n\n",
    b"\r\n\r\nGET /default/probe HTTP/1.1\r\nHost: a\r\n\r\n",
    b"GET /default/probe HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    b"GET /default/probe HTTP/1.1\r\nHost: a\rX: y\r\n\r\n",
    b"GET http://a/default/probe HTTP/1.1\r\nHost: b\r\n\r\n",
    b"GET /default/probe HTTP/1.1 HTTP/1.1\r\nHost: b\r\n\r\n",
    b"GET /default/probe HTTP/2.0\r\nHost: b\r\n\r\n", b"OPTIONS * HTTP/1.1\r\nHost: b\r\n\r\n",
    b"CONNECT a:1 HTTP/1.1\r\nHost: b\r\n\r\n",
    b"GET /default/probe HTTP/1.1\r\nHost: b\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
]  # fmt: skip


def run(random: random.Random, seconds: float) -> Result:
    """Sends each probe through each proxy, in random order, as far as the time allows."""
    return _run_proxies(list(PROXIES), random, seconds)


def run_rest(left: Iterable[str], random: random.Random, seconds: float) -> Result:
    """Runs the proxies that another run has left."""
    wanted = set(left)
    return _run_proxies([name for name in PROXIES if name in wanted], random, seconds)


def _run_proxies(names: list[str], random: random.Random, seconds: float) -> Result:
    found = [name for name in names if name == _OURS or shutil.which(PROXIES[name][0])]
    left = [name for name in names if name not in found]
    rows: dict[str, dict[str, int]] = {}
    broken: list[str] = []
    probes = list(_probes())
    end = time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder) / "data") as server:
        Path(folder).chmod(0o755)  # nginx gives up its rights
        for number, name in enumerate(found):
            if rows and time.monotonic() > end:
                left.append(name)
                continue
            if not finds_a_server_that_smuggles(name, Path(folder) / f"control-{number}"):
                broken.append(f"{name}: a server that ignores bodies was not noticed")
            with _proxy(name, Path(folder) / str(number), server.http_port) as port:
                rows[name] = _probe_all(name, port, random.sample(probes, len(probes)), broken)
    figures = ("probes", "answers", "busy")
    tried = {key: sum(row[key] for row in rows.values()) for key in figures}
    return Result(tried=tried, broken=broken, rows=rows, left=left)


def finds_a_server_that_smuggles(name: str, folder: Path) -> bool:
    """Returns whether the probes notice, through this proxy, a server that ignores bodies."""
    found: list[str] = []
    body = b"GET /default/smuggled HTTP/1.1\r\nX: "
    probe = _request(b"Content-Length: %d" % len(body), body=body)
    with listening(answer_without_bodies) as server, _proxy(name, folder, server) as port:
        _probe_all(name, port, [probe] * 3, found)
    return any("/default/smuggled" in each.partition(" got ")[2] for each in found)


@contextlib.contextmanager
def _proxy(name: str, folder: Path, server: int) -> Iterator[int]:
    program, settings, lenient = PROXIES[name]
    if name == _OURS:
        sharing = SharingProxy(server)
        with listening(sharing.serve) as port:
            yield port
        sharing.close()
        return
    folder.mkdir()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    file = folder / "settings"
    file.write_text(settings.format(folder=folder, server=server, port=port, lenient=lenient))
    options = (
        ["-c", str(file), "-p", str(folder)] if program == "nginx" else ["-db", "-f", str(file)]
    )
    with (folder / "log").open("w") as log:
        process = subprocess.Popen([program, *options], stdout=log, stderr=log)
    try:
        await_true(lambda: _listens(port), seconds=30, what=f"{name} listens")
        yield port
    finally:
        process.terminate()
        process.wait()


def _listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


def _probe_all(name: str, port: int, probes: list[bytes], broken: list[str]) -> dict[str, int]:
    row = {"probes": len(probes), "answers": 0, "busy": 0}
    for number, probe in enumerate(probes):
        with socket.create_connection(("127.0.0.1", port), 10) as attacker:
            attacker.settimeout(0.1)
            with contextlib.suppress(OSError):
                attacker.sendall(probe)
                attacker.recv(65_536)
            for client in range(2):
                path = b"/default/client-%d-%d" % (number, client)
                said = _answer(port, path)
                row["answers"] += 1
                if said.startswith(b"HTTP/1.1 503 ") and b"smuggled" not in said:
                    row["busy"] += 1
                elif said.count(b"HTTP/1.1 ") != 1 or b"nothing at " + path not in said:
                    broken.append(f"{name}: behind {probe!r}, {path!r} got {said[:300]!r}")
    return row


def _answer(port: int, path: bytes) -> bytes:
    """Returns all that a client is told about a path of its own, which does not exist."""
    said = b""
    with (
        socket.create_connection(("127.0.0.1", port), 10) as opened,
        contextlib.suppress(ConnectionError),
    ):
        opened.sendall(b"GET %b HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n" % path)
        while more := opened.recv(65_536):
            said += more
    return said


def _probes() -> Iterator[bytes]:
    whole = b"GET /default/smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n"
    part = b"GET /default/smuggled HTTP/1.1\r\nX: "  # whose end would be another client's request
    for behind in (whole, part):
        first = b"%x\r\n" % len(behind)
        for coding in _CODINGS:
            length = b"Content-Length: %d" % len(_END + behind)
            yield _request(length, coding, body=_END + behind)
            yield _request(coding, length, body=_END + behind)
            length = b"Content-Length: %d" % len(first)
            yield _request(length, coding, body=first + behind + b"\r\n" + _END)
            yield _request(coding, body=_END + behind)
            yield _request(coding, body=_END + behind, version=b"1.0")
            yield _request(coding, body=_END + behind, method=b"GET")
        for lengths in _LENGTHS:
            for method in (b"POST", b"GET", b"HEAD"):
                headers = lengths.replace(b"N", b"%d" % len(behind))
                yield _request(headers, body=behind, method=method)
        for chunks in _CHUNKS:
            yield _request(b"Transfer-Encoding: chunked", body=chunks + behind)
        for head in _HEADS:
            yield head + behind


def _request(
    *headers: bytes, body: bytes, method: bytes = b"POST", version: bytes = b"1.1"
) -> bytes:
    lines = [b"%b /default/probe HTTP/%b" % (method, version), b"Host: localhost", *headers]
    return b"\r\n".join([*lines, b"", b""]) + body
