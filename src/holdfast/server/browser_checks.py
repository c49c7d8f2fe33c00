"""Keeps pages of other sites from using a server through the browser of someone who can reach it.

A page of any site can make its reader's browser send requests to `127.0.0.1`. Some headers,
which pages can't forge, reveal such requests:

- `Host` is the name that the browser has looked up. A site whose name leads to this machine (DNS
  rebinding) is same-origin for the browser, so a server without users answers to addresses, to
  `localhost`, to names without a dot, which nobody can register in the DNS (`http://holdfast:9966`
  in a network of containers), and to names that it was given with `--allowed-host`.
- `Origin` and `Sec-Fetch-Site` name the page. It has to be one of this server.

Programs send neither of the last two, and are not affected.
"""

import ipaddress
import re
from collections.abc import Iterable
from typing import Final
from urllib.parse import urlsplit

from holdfast.errors import Forbidden
from holdfast.limits import MAX_KNOWN_HOSTS

ANY_HOST: Final = "*"
_HOST: Final = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\[\]:/?#@\s]+)(?::[0-9]*)?")
_FOREIGN_SITES: Final = ("cross-site", "same-site")  # another port of localhost is `same-site`
_SAFE_METHODS: Final = ("GET", "HEAD")


class Hosts:
    """The host names that a server answers to; None: the application around it decides."""

    def __init__(self, allowed: Iterable[str] | None = None) -> None:
        self._allowed = None if allowed is None else {_normalized(name) for name in allowed}
        self._known: dict[tuple[str, bool], bool] = {}  # caches parsed headers

    def refuse_others(self, host: str | None, *, is_open: bool) -> None:
        """Raises `Forbidden` unless the server answers to `host`; programs may leave it out."""
        if host is None or self._allowed is None:
            return
        answers = self._known.get((host, is_open))
        if answers is None:
            answers = self._answers_to(host, is_open)
            if len(self._known) >= MAX_KNOWN_HOSTS:
                self._known.clear()
            self._known[host, is_open] = answers
        if not answers:
            raise Forbidden(
                f"this server does not answer to the host {host!r:.100}",
                hint="Call it by its address or as localhost, or start it with --allowed-host NAME."
                " The check keeps pages of other sites out while the store has no users.",
            )

    def is_own(self, origin: str, host: str) -> bool:
        """Returns whether a page of `origin` is a page of this server, called by `host`."""
        try:
            parts = urlsplit(origin)
            name = parts.hostname or ""
        except ValueError:  # brackets that are not around an address
            return False
        return bool(name) and (
            parts.netloc.lower() == host.lower() or _normalized(name) in (self._allowed or ())
        )

    def _answers_to(self, host: str, is_open: bool) -> bool:
        assert self._allowed is not None
        if ANY_HOST in self._allowed or not (is_open or self._allowed):
            return True
        found = _HOST.fullmatch(host)
        if found is None:
            return False
        name = _normalized(found[1])
        return name in self._allowed or is_local(name) or _is_address(name)


def refuse_foreign_page(
    hosts: Hosts, method: str, headers: dict[str, str], *, is_public: bool = False
) -> None:
    """Raises `Forbidden` for a request that a page of another site makes through a browser.

    Following a link is not such a request. Public resources, such as the counting pixel, may be
    used by any page.
    """
    if is_public:
        return
    origin = headers.get("origin")
    if origin is None:
        is_foreign = headers.get("sec-fetch-site") in _FOREIGN_SITES and not (
            headers.get("sec-fetch-mode") == "navigate" and method in _SAFE_METHODS
        )
        origin = "another site"
    else:
        is_foreign = not hosts.is_own(origin, headers.get("host", ""))
    if is_foreign:
        raise Forbidden(
            f"a page of {origin:.200} may not use this server through a browser",
            hint="Send the request from a program, or start the server with --allowed-host NAME if "
            "the page is your own.",
        )


def is_local(name: str) -> bool:
    """Returns whether a name has no meaning in the public DNS, so that no site can have it.

    >>> is_local("localhost"), is_local("app.localhost"), is_local("localhost.example.com")
    (True, True, False)
    """
    return "." not in name or name.endswith(".localhost")


def _is_address(name: str) -> bool:
    """Returns whether it is an address, and not a name that someone may have put into the DNS."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _normalized(name: str) -> str:
    return name.strip().strip("[]").rstrip(".").lower()
