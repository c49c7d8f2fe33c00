"""The URL of a server: its address and the options of the client."""

import re
import ssl
from typing import Any, Final
from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec

from holdfast.defaults import DEFAULT_SPACE, RESP_PORT
from holdfast.error_text import misfit
from holdfast.errors import BadInput
from holdfast.limits import (
    CALL_SECONDS,
    CLIENT_CONNECTIONS,
    CLIENT_RETRIES,
    CONNECT_SECONDS,
    LONG_CALL_SECONDS,
    MAX_TIMEOUT_SECONDS,
)

SCHEMES: Final = {"holdfast": False, "holdfasts": True}  # whether it is encrypted
_HOST_AND_PORT: Final = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[\w.-]+):\d+")
_HINT: Final = (
    f"Write holdfast://user:password@host:{RESP_PORT}/space?timeout=5; most of it may be left out."
)
RESP_SIDE: Final = (
    f"RESP side, whose port is another one ({RESP_PORT}, unless --resp says otherwise)"
)
_HTTP_SIDE: Final = (
    "That is the HTTP side of a server, for curl and browsers. The client uses the "
    f"{RESP_SIDE}: holdfast://host:{RESP_PORT}."
)
_ENGINE: Final = "That is the URL of an engine: `holdfast.open(url)` opens a store there by itself."
_HINTS: Final = {
    "": f"{_HINT} A folder is opened with `holdfast.open(path)`.",
    "http": _HTTP_SIDE,
    "https": _HTTP_SIDE,
    "redis": "Write holdfast:// for redis://; the port and the rest stay as they are.",
    "rediss": "Write holdfasts:// for rediss://; the port and the rest stay as they are.",
    **dict.fromkeys(("postgresql", "postgres", "valkey", "valkeys"), _ENGINE),
}


class ServerTarget(msgspec.Struct, frozen=True, kw_only=True):
    """The parsed URL and arguments of `connect`."""

    host: str
    port: int = RESP_PORT
    user: str = ""
    password: str = ""
    space: str = DEFAULT_SPACE
    is_encrypted: bool = False
    ca: str = ""  # a file with the certificate of the server's CA
    timeout: float = CALL_SECONDS
    long_timeout: float = LONG_CALL_SECONDS
    connect_timeout: float = CONNECT_SECONDS
    connections: int = CLIENT_CONNECTIONS
    retries: int = CLIENT_RETRIES

    @classmethod
    def parse(cls, url: str, **options: Any) -> "ServerTarget":
        """Returns the target that a URL names; options that are not None override those of the URL.

        >>> ServerTarget.parse("holdfast://db:9000/shop?timeout=5", timeout=None).timeout
        5.0
        >>> ServerTarget.parse("127.0.0.1:9000").place
        'holdfast://127.0.0.1:9000'
        """
        if isinstance(url, str) and _HOST_AND_PORT.fullmatch(url):
            url = f"holdfast://{url}"
        try:
            parts = urlsplit(url)
            port = parts.port
        except (ValueError, AttributeError, TypeError):
            raise BadInput(f"{_shown(str(url))} is not the URL of a server", hint=_HINT) from None
        if parts.scheme not in SCHEMES or not parts.hostname or "/" in parts.path[1:]:
            hint = _HINTS.get(parts.scheme, _HINT)
            raise BadInput(f"{_shown(url)} is not the URL of a server", hint=hint)
        given: dict[str, Any] = {
            "host": parts.hostname,
            "port": RESP_PORT if port is None else port,
            "user": unquote(parts.username or ""),
            "password": unquote(parts.password or ""),
            "space": unquote(parts.path[1:]) or DEFAULT_SPACE,
            "is_encrypted": SCHEMES[parts.scheme],
            **cls._options(parts.query),
            **{name: value for name, value in options.items() if value is not None},
        }
        return cls._checked(given)

    @classmethod
    def _options(cls, query: str) -> dict[str, str]:
        known = ("ca", "timeout", "long_timeout", "connect_timeout", "connections", "retries")
        options = dict(parse_qsl(query, keep_blank_values=True))
        for name in options:
            if name not in known:
                raise BadInput(
                    f"unknown option {_shown(name)}", hint=f"There are {', '.join(known)}."
                )
        return options

    @classmethod
    def _checked(cls, given: dict[str, Any]) -> "ServerTarget":
        try:
            target = msgspec.convert(given, cls, strict=False)
        except msgspec.ValidationError as error:
            raise BadInput(f"the option {misfit(error, 'of the connection')}") from None
        seconds = target.timeout, target.long_timeout, target.connect_timeout
        if not all(0 < each <= MAX_TIMEOUT_SECONDS for each in seconds):
            raise BadInput(
                f"a timeout must be a number of seconds above 0, at most {MAX_TIMEOUT_SECONDS:.0f}"
            )
        if target.connections < 1 or target.retries < 0:
            raise BadInput("`connections` must be at least 1, `retries` at least 0")
        return target

    @property
    def place(self) -> str:
        """Returns the server's URL without the password."""
        scheme = "holdfasts" if self.is_encrypted else "holdfast"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{scheme}://{host}:{self.port}"

    def tls(self) -> ssl.SSLContext | None:
        """Returns the TLS context of encrypted connections, or None."""
        if not self.is_encrypted:
            return None
        try:
            return ssl.create_default_context(cafile=self.ca or None)
        except OSError as error:
            raise BadInput(f"{self.ca} can't be read as a certificate: {error.strerror}") from None


def _shown(url: str) -> str:
    """Returns a URL, or a part of one, for an error message, without what may be a password."""
    return repr(url.rpartition("@")[2])
