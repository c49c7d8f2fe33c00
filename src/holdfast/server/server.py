"""A complete server: RESP and HTTP on one store, background work, and an orderly shutdown."""

import asyncio
import logging
import socket
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec

from holdfast.admin import Origin, SettingEntry
from holdfast.compat.flux.http import FluxApi
from holdfast.errors import CannotServe, HoldfastError
from holdfast.limits import (
    DEFAULT_KEPT_SECONDS,
    MAX_EXPIRE_AFTER_SECONDS,
    MAX_SERVER_PROCESSES,
)
from holdfast.server.addresses import Address, SpaceAddress
from holdfast.server.application import make_dispatcher
from holdfast.server.background import sweep
from holdfast.server.call_tracing import CallTracer
from holdfast.server.client_limits import ClientLimits
from holdfast.server.connection_counts import fitted_to_open_files
from holdfast.server.dispatcher import Dispatcher
from holdfast.server.http import HttpApi
from holdfast.server.options import DispatcherOptions
from holdfast.server.resp_server import RespServer
from holdfast.server.signals import handle_signals
from holdfast.server.tls import Certificate
from holdfast.server.uvicorn_server import HttpServer
from holdfast.store import Store

_log = logging.getLogger(__name__)


class ServerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of a server. Each field is named like its setting: `resp` is the flag --resp,
    the variable HOLDFAST_RESP and the key `resp` of the file (see cli/settings.py).
    """

    resp: Address
    http: Address
    tls_cert: Path | None = None
    tls_key: Path | None = None
    insecure: bool = False  # listen everywhere, although every client is an admin
    allow_flush: bool = False
    pixel: bool = False
    no_ui: bool = False
    no_record: bool = False
    trace: bool = False
    flux: SpaceAddress | None = None  # where Flux's API is served at the root
    flux_read_only: bool = False
    flux_ttl: float = DEFAULT_KEPT_SECONDS
    backups: Path | None = None  # the folder for backups that clients ask for
    schemas: Path | None = None  # the folder whose schema files clients may name
    trusted_proxies: tuple[str, ...] = ()  # networks whose X-Forwarded-For is believed
    allowed_host: tuple[str, ...] = ()  # host names that HTTP answers to, besides addresses
    processes: int = 1  # that serve on the same ports
    limits: ClientLimits = ClientLimits()

    @classmethod
    def parse(cls, given: Mapping[str, Any]) -> "ServerSettings":
        """Reads settings as they are written in flags, variables and files.

        >>> given = {"resp": "127.0.0.1:9977", "http": "[::1]:80", "allowed_host": "a.org, b.org"}
        >>> ServerSettings.parse(given).allowed_host
        ('a.org', 'b.org')
        """
        fields = {each.name: each.type for each in msgspec.structs.fields(cls)}
        written = {name: text for name, text in given.items() if text is not None}
        return cls(**{name: _READERS[fields[name]](text) for name, text in written.items()})

    def check(self, *, is_open: bool) -> None:
        """Raises if these settings would let in clients without credentials."""
        if (self.tls_cert is None) != (self.tls_key is None):
            raise CannotServe("--tls-cert and --tls-key belong together")
        if not 1 <= self.processes <= MAX_SERVER_PROCESSES:
            raise CannotServe(f"--processes must be a number from 1 to {MAX_SERVER_PROCESSES}")
        if not 0 < self.flux_ttl <= MAX_EXPIRE_AFTER_SECONDS:
            raise CannotServe(
                f"--flux-ttl must be a number of seconds from 0 to {MAX_EXPIRE_AFTER_SECONDS}"
            )
        for address in self.addresses:
            if is_open and not self.insecure and not address.is_loopback:
                raise CannotServe(
                    f"{address} can be reached from other machines, and the store has no users",
                    hint="Add one with `holdfast user add NAME --grant ROLE`, listen on "
                    "127.0.0.1, or let everyone in with --insecure.",
                )

    @property
    def reaches_others(self) -> bool:
        """Returns whether other machines can connect to one of the ports."""
        return not all(address.is_loopback for address in self.addresses)

    @property
    def addresses(self) -> list[Address]:
        """Returns the addresses of all ports."""
        return [self.resp, self.http, *([] if self.flux is None else [self.flux.address])]

    def at(self, addresses: Sequence[Address]) -> "ServerSettings":
        """Returns the settings with other addresses, in the order of `addresses`."""
        resp, http, *flux = addresses
        moved = None if self.flux is None else SpaceAddress(self.flux.space, flux[0])
        return msgspec.structs.replace(self, resp=resp, http=http, flux=moved)

    def certificate(self) -> Certificate | None:
        if self.tls_cert is None or self.tls_key is None:
            return None
        return Certificate(self.tls_cert, self.tls_key)

    def for_dispatcher(self, tracer: CallTracer | None = None) -> DispatcherOptions:
        """Returns the settings that are not about ports, and the tracer."""
        return DispatcherOptions(
            allow_flush=self.allow_flush,
            pixel=self.pixel,
            ui=not self.no_ui,
            record=not self.no_record,
            flux_read_only=self.flux_read_only,
            flux_ttl=self.flux_ttl,
            bounds=self.limits.shared_by(self.processes),
            processes=self.processes,
            backups=self.backups,
            schemas=self.schemas,
            trusted_proxies=self.trusted_proxies,
            allowed_hosts=self.allowed_host,
            tracer=tracer,
        )

    def shown(self) -> dict[str, object]:
        """Returns the settings for `/confdump`, without the name of the key's file."""
        return {
            "resp": str(self.resp),
            "http": str(self.http),
            "flux": None if self.flux is None else str(self.flux),
            "flux_read_only": self.flux_read_only,
            "flux_ttl": self.flux_ttl,
            "tls": self.tls_cert is not None,
            "insecure": self.insecure,
            "processes": self.processes,
            "ui": not self.no_ui,
            "record": not self.no_record,
            "trace": self.trace,
            "trusted_proxies": list(self.trusted_proxies),
            "allowed_hosts": list(self.allowed_host),
            "bounds": msgspec.structs.asdict(self.limits),
        }

    def entries(self, origins: Mapping[str, Origin]) -> list[SettingEntry]:
        """Returns all settings with where each came from; of the key's file not even the name."""
        return [
            SettingEntry(
                name=name, value=_plain(getattr(self, name)), origin=origins.get(name, "default")
            )
            for name in self.__struct_fields__
            if name != "tls_key"
        ]


def _plain(value: Any) -> Any:
    """Returns the value of a setting in JSON types."""
    if isinstance(value, ClientLimits):
        return msgspec.structs.asdict(value)
    if isinstance(value, tuple) and not isinstance(value, Address):
        return list(value)
    return value if value is None or isinstance(value, bool | int | float) else str(value)


def _whole(number: float) -> int:
    """Returns a number of processes; 0, which is invalid, if it is not a whole number."""
    return int(number) if number == int(number) else 0


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.replace(",", " ").split())


_READERS: Final[dict[Any, Callable[[Any], Any]]] = {
    Address: Address.parse,
    SpaceAddress | None: lambda text: SpaceAddress.parse(text) if text else None,
    bool: bool,
    int: _whole,
    float: lambda number: int(number) if number == int(number) else number,
    Path | None: lambda text: Path(text) if text else None,
    tuple[str, ...]: _words,
    ClientLimits: ClientLimits.parse,
}


async def serve(
    store: Store,
    settings: ServerSettings,
    *,
    ready: Callable[..., None] = lambda *addresses: None,
    entries: Sequence[SettingEntry] = (),
    tracer: CallTracer | None = None,
) -> None:
    """Serves until SIGTERM or SIGINT, then finishes what is in flight; a second signal ends it.

    SIGHUP reloads the certificate and the users. Port 0 picks a free one; `ready` is called once
    all ports are open, with the addresses for RESP, for HTTP and, if it has one, for Flux's API.
    `entries` is what `admin.server` says of the settings; `tracer` follows all calls.
    """
    options = settings.for_dispatcher(tracer)
    bounds = fitted_to_open_files(options.bounds)
    dispatcher = make_dispatcher(store, msgspec.structs.replace(options, bounds=bounds))
    dispatcher.started_with.update(settings.shown())
    dispatcher.started_settings = list(entries) or settings.entries({})
    try:
        settings.check(is_open=dispatcher.authenticator.is_open)
        if settings.reaches_others and not settings.insecure:
            dispatcher.authenticator.require_login()  # even when the last user is removed later
        await _run(dispatcher, settings, ready)
    finally:
        await dispatcher.close()


async def _run(
    dispatcher: Dispatcher, settings: ServerSettings, ready: Callable[..., None]
) -> None:
    certificate = settings.certificate()
    tls = None if certificate is None else certificate.context
    http_socket, flux_socket = _listen(settings)
    resp_listener = RespServer(dispatcher)
    try:
        resp_server = await resp_listener.open(
            settings.resp.host, settings.resp.port, tls=tls, shared=settings.processes > 1
        )
    except OSError as error:
        http_socket.close()
        if flux_socket is not None:
            flux_socket.close()
        raise settings.resp.refusal(error) from None
    stopped = handle_signals(partial(_reload, dispatcher, certificate))
    http_servers = [HttpServer(HttpApi(dispatcher), tls)]
    await http_servers[0].open(http_socket)
    if settings.flux is not None and flux_socket is not None:
        http_servers.append(HttpServer(FluxApi(dispatcher, settings.flux.space), tls))
        await http_servers[1].open(flux_socket)
    sweeping = asyncio.create_task(sweep(dispatcher))
    recording = asyncio.create_task(dispatcher.recorder.run(dispatcher))
    resp_port = resp_server.sockets[0].getsockname()[1]
    http_port = http_socket.getsockname()[1]
    resp = Address(settings.resp.host, resp_port)
    dispatcher.resp_address = resp
    http = Address(settings.http.host, http_port)
    opened = [resp, http]
    if settings.flux is not None and flux_socket is not None:
        opened.append(Address(settings.flux.address.host, flux_socket.getsockname()[1]))
    ready(*opened)
    _warn(settings, *opened)

    await stopped.wait()
    _log.info("stopping: finishing requests in flight")
    dispatcher.stopping = True
    dispatcher.store.engine.shorten_waits()
    sweeping.cancel()
    recording.cancel()
    await asyncio.gather(resp_listener.close(), *(each.close() for each in http_servers))
    await asyncio.wait([sweeping, recording])


def _listen(settings: ServerSettings) -> tuple[socket.socket, socket.socket | None]:
    """Returns the sockets for HTTP and, if it has its own address, for Flux's API."""
    shared = settings.processes > 1
    http_socket = settings.http.listen(shared=shared)
    try:
        if settings.flux is None:
            return http_socket, None
        return http_socket, settings.flux.address.listen(shared=shared)
    except HoldfastError:
        http_socket.close()
        raise


def _warn(settings: ServerSettings, *ports: Address) -> None:
    """Logs what others on the network could do."""
    others = [str(port) for port in ports if not port.is_loopback]
    if others and settings.tls_cert is None:
        _log.warning(
            "%s can be reached from other machines in plain text: anyone on the network path can "
            "read passwords, tokens and data. Use --tls-cert and --tls-key, or a proxy with TLS",
            " and ".join(others),
        )
    if others and settings.insecure:
        _log.warning("--insecure: while the store has no users, every client is an admin")


def _reload(dispatcher: Dispatcher, certificate: Certificate | None) -> None:
    try:
        dispatcher.authenticator.reload()
        if certificate is not None:
            certificate.reload()
        _log.info("reloaded the users and the certificate")
    except HoldfastError as error:
        _log.error("%s; nothing was changed", error.message)
