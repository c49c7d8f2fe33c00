"""A browser without a script: keeps cookies, follows redirects, sends the forms it was given."""

import re
import time
from collections.abc import Callable
from html import unescape
from http.cookies import SimpleCookie
from urllib.parse import urlencode

from tests.server.serving import Reply, Server

DEADLINE = 60.0  # seconds for what happens in the background
TOKEN = re.compile(r'name="token" value="([^"]*)"')


class Visitor:
    """Someone who reads the dashboard of a server."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.cookies: dict[str, str] = {}
        self.token = ""

    def request(self, method: str, path: str, body: str | None = None, **headers: str) -> Reply:
        """Sends one request and keeps the cookies of its answer."""
        sent = {"Accept": "text/html", "Cookie": self._cookie(), **headers}
        if body is not None:
            sent.setdefault("Content-Type", "application/x-www-form-urlencoded")
        connection = self.server.connect()
        try:
            connection.request(method, path, body, sent)
            response = connection.getresponse()
            for value in response.headers.get_all("set-cookie") or []:
                for name, morsel in SimpleCookie(value).items():
                    self.cookies[name] = morsel.value
            return Reply(response)
        finally:
            connection.close()

    def get(self, path: str) -> str:
        """Reads a page, and remembers the token of its forms."""
        reply = self.read(path)
        assert reply.status == 200, (path, reply.status, reply.body[-2000:])
        return reply.body.decode()

    def get_until(self, path: str, is_so: Callable[[str], bool]) -> str:
        """Reads a page again and again until it is as expected."""
        limit = time.monotonic() + DEADLINE
        while not is_so(page := self.get(path)):
            assert time.monotonic() < limit, page
        return page

    def read(self, path: str) -> Reply:
        """Reads whatever is there, after redirects."""
        reply = self.request("GET", path)
        while reply.status == 303:
            reply = self.request("GET", reply.headers["location"])
        if found := TOKEN.search(reply.body.decode()):
            self.token = unescape(found[1])
        return reply

    def post(self, path: str, **fields: object) -> Reply:
        """Sends a form with its token; a field may have several values."""
        sent = {"token": self.token, **fields}
        return self.request("POST", path, urlencode(sent, doseq=True))

    def do(self, path: str, **fields: object) -> str:
        """Sends a form and returns the page that it leads to."""
        reply = self.post(path, **fields)
        assert reply.status == 303, (path, reply.status, reply.body[-2000:])
        return self.get(reply.headers["location"])

    def log_in(self, name: str, secret: str) -> Reply:
        self.read("/ui/-/login")
        return self.post("/ui/-/login", name=name, secret=secret)

    def _cookie(self) -> str:
        return "; ".join(f"{name}={value}" for name, value in self.cookies.items() if value)
