"""Attacks with values: hostile words in commands, and in the parameters and forms of all pages.

What they are made to find is an internal error, which the oracle reads in the server's log. Like
those of `attacks.py`, of which this is a part: importing it adds them to the list.
"""

import contextlib
import json
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import quote, urlencode

import hiredis

import holdfast.dashboard
from holdfast.dashboard import pages
from tests.campaign.attacks import Attacker, attack
from tests.server.running import command

_NUMBERS: Final = (
    *("\u00b2", "\u0663", "-0", "1e999", "nan", "9" * 5_000, "0" * 5_000 + "1"),
    *("9223372036854775808", "-9223372036854775809", "1_0", "0x1", "1.5", ""),
)
_TEXTS: Final = (
    *("\0", "\u202e", "\u017f", "\ud800", "a\r\nX: y", "//evil.example", '"><script>', "..", "*"),
    *("{}", "[]", "null", "[" * 3_000, '{"a":' * 3_000, "%ff", "x" * 3_000),
)
_VALUES: Final = (*_NUMBERS, *_TEXTS)
_READ: Final = re.compile(r"""(?:parameter|count|form[a-z_]*|get)[(\[]+"(\w+)\"""")
# Users would close the server for all attacks that follow, and the others take long.
_LEFT_OUT: Final = ("users", "backups", "check")
_COMMANDS: Final = (
    *("SELECT", "HELLO", "CLIENT", "CONFIG GET", "COMMAND INFO", "COMMAND DOCS", "COMMAND GETKEYS"),
    *(
        "COMMAND LIST FILTERBY PATTERN",
        "SCRIPT",
        "SCRIPT EXISTS",
        "SPACE",
        "BIGINT",
        "INFO",
        "HELP",
    ),
    *("CL.THROTTLE k 1 1", "ZRANGE ql:q:q-work 0", "TYPE", "JOBS.PUT", "QLESS put * w q", "QLESS1"),
)


@attack
def hostile_words(by: Attacker) -> None:
    tries = [(words.split(), value) for words in _COMMANDS for value in _VALUES]
    for words, value in by.random.sample(tries, by.times(len(tries))):
        hostile = value.encode(errors="surrogatepass")
        by.push(by.resp(), command(*words, hostile) + command(*words[:2]))


@attack
def hostile_values_of_pages(by: Attacker) -> None:
    """Each value in each parameter and field that a module of the dashboard reads, in all pages and
    actions of that module."""
    opened = by.http()
    head, token = _form(by)
    chosen = by.random.sample(list(_requests()), by.times(6_000))
    for method, path, name, value in chosen:
        fields = urlencode({"token": token, name: value}, errors="surrogatepass")
        if method == "GET":
            request = f"GET {path}?{fields} HTTP/1.1\r\n{head}\r\n"
        else:
            request = f"POST {path} HTTP/1.1\r\n{head}Content-Length: {len(fields)}\r\n\r\n{fields}"
        opened = _asked(by, opened, request.encode())


def _requests() -> Iterator[tuple[str, str, str, str]]:
    folder = Path(holdfast.dashboard.__file__).parent
    for method, found in (("GET", pages.PAGES), ("POST", pages.ACTIONS)):
        for each in found:
            if "/".join(each.segments) in _LEFT_OUT:
                continue
            path = "/".join(quote("q") if part[:1] == "{" else part for part in each.segments)
            module = folder / f"{each.show.__module__.rpartition('.')[2]}.py"
            for name in sorted({*_READ.findall(module.read_text()), "cursor", "format", "to"}):
                for value in _VALUES:
                    yield method, f"/ui/default/{path}", name, value


def _form(by: Attacker) -> tuple[str, str]:
    """Returns the headers of a form, and its token."""
    page = by.server.get("/ui/default/", Accept="text/html")
    cookie = page.headers["set-cookie"].partition(";")[0]
    found = re.search(rb'name="token" value="([^"]*)"', page.body)
    assert found is not None
    kind = "application/x-www-form-urlencoded"
    return f"Host: localhost\r\nCookie: {cookie}\r\nContent-Type: {kind}\r\n", found[1].decode()


def _asked(by: Attacker, opened: socket.socket, request: bytes) -> socket.socket:
    """Sends a request and reads some of its answer; returns the connection, or a new one."""
    opened.settimeout(2)
    try:
        opened.sendall(request)
        if opened.recv(65_536):
            return opened
    except OSError:
        pass
    opened.close()
    return by.http()


@attack
def cron_expressions_of_many_parts(by: Attacker) -> None:
    for expression in ("*," * 400_000 + "* * * * *", "9" * 5_000 + " * * * *"):
        body = {"id": "r", "queue": "q", "cron": expression}
        with contextlib.suppress(hiredis.HiredisError):
            by.push(by.resp(), command("JOBS.RECUR", json.dumps(body)), wait=5)
