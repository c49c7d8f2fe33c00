"""The URL of a store in Valkey: its servers, the login, and what a commit waits for.

    valkey://host:port                            one server, or any nodes of a cluster
    valkey://user:password@one:6379,two:6379/0    a name and password, several nodes, a database
    valkeys://host                                the same over TLS (also rediss://)

Options follow a `?`: `store` names one of several stores on the same servers, `replicas` is the
number of replicas that a commit waits for, `patience` the seconds to wait for an answer, and
`persistence=none` says that the servers need not keep anything on disk.
"""

from typing import Final
from urllib.parse import parse_qsl, unquote

import msgspec

from holdfast.errors import BadInput
from holdfast.limits import RECONNECT_SECONDS

SCHEMES: Final = {"valkey": False, "redis": False, "valkeys": True, "rediss": True}  # -> TLS
DEFAULT_PORT: Final = 6379
_OPTIONS: Final = ("store", "replicas", "patience", "persistence", "ca")

Host = tuple[str, int]


class StoreAddress(msgspec.Struct, frozen=True, kw_only=True):
    """The parsed URL of a store."""

    hosts: tuple[Host, ...]
    username: str | None = None
    password: str | None = None
    tls: bool = False
    ca: str | None = None  # a file with the certificates that vouch for the servers
    database: int = 0
    store: str = "holdfast"
    replicas: int = 0
    patience: float = RECONNECT_SECONDS
    persistent: bool = True

    @property
    def name(self) -> str:
        """Returns the address for messages, without the password."""
        return ",".join(f"{host}:{port}" for host, port in self.hosts)


def parse(url: str) -> StoreAddress:
    """Reads a URL.

    >>> parse("valkey://one:7000,two/3?replicas=1").hosts
    (('one', 7000), ('two', 6379))
    """
    # By hand: the standard library takes one host, and newer versions check its brackets.
    scheme, _, rest = url.partition("://")
    place, _, query = rest.partition("?")
    netloc, _, path = place.partition("/")
    login, _, hosts = netloc.rpartition("@")
    username, _, password = login.partition(":")
    options = dict(parse_qsl(query, keep_blank_values=True))
    unknown = [name for name in options if name not in _OPTIONS]
    if "@" in path or ("@" in query and unknown):
        # The rest of a password, which must not be repeated.
        raise BadInput(
            "the login in the URL of a store in Valkey can't be read",
            hint="In a name or a password, write %2F for /, %3F for ? and %40 for @.",
        )
    if unknown:
        raise BadInput(
            f"the URL of a store in Valkey has no option {unknown[0]!r}",
            hint=f"There are {', '.join(_OPTIONS)}.",
        )
    if options.get("persistence", "") not in ("", "none"):
        raise BadInput(
            f"persistence is {options['persistence']!r}",
            hint="Leave it out, or write persistence=none for servers that keep nothing on disk.",
        )
    store = options.get("store", "holdfast")
    if not store or any(sign in store for sign in "{}"):
        raise BadInput(f"{store!r} can't name a store", hint="Use a word without braces.")
    return StoreAddress(
        hosts=tuple(_host(host) for host in hosts.split(",")),
        username=unquote(username) or None,
        password=unquote(password) or None,
        tls=SCHEMES[scheme.lower()],
        ca=options.get("ca"),
        database=_number("database", path.strip("/") or "0"),
        store=store,
        replicas=_number("replicas", options.get("replicas", "0")),
        patience=_number("patience", options["patience"])
        if "patience" in options
        else RECONNECT_SECONDS,
        persistent="persistence" not in options,
    )


def _host(text: str) -> Host:
    name, colon, port = text.rpartition(":")
    if not colon or port.endswith("]"):  # no port, maybe an IPv6 address in brackets
        name, port = text, str(DEFAULT_PORT)
    name = name.strip("[]")
    if not name or not port.isascii() or not port.isdecimal() or not 0 < int(port) < 65_536:
        raise BadInput(
            f"{text!r} in the URL of a store is not a host",
            hint="Write valkey://host:port, or valkey://host:port,host:port.",
        )
    return name, int(port)


def _number(what: str, text: str) -> int:
    if not text.isascii() or not text.isdecimal():
        raise BadInput(f"the {what} of a store's URL is {text!r}", hint="Use a number.")
    return int(text)
