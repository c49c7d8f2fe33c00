"""A whole server: both doors on one store, its background work, and an orderly end."""

import asyncio
import logging
import signal
from collections.abc import Callable
from pathlib import Path

import msgspec

from holdfast.errors import CannotServe, HoldfastError
from holdfast.limits import SECOND_SIGNAL_SECONDS
from holdfast.server.addresses import Address
from holdfast.server.application import make_dispatcher
from holdfast.server.background import sweep
from holdfast.server.bounds import Bounds
from holdfast.server.dispatcher import Dispatcher
from holdfast.server.http import HttpApi
from holdfast.server.resp import RespServer
from holdfast.server.tls import Certificate
from holdfast.server.uvicorn_server import HttpServer
from holdfast.store import Store

_log = logging.getLogger(__name__)


class ServerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How a server is to be run."""

    resp: Address
    http: Address
    tls_cert: Path | None = None
    tls_key: Path | None = None
    insecure: bool = False  # listen everywhere, though everyone may come in
    allow_flush: bool = False
    pixel: bool = False
    backups: Path | None = None  # the folder for backups that clients ask for
    schemas: Path | None = None  # the folder whose schema files clients may name
    trusted_proxies: tuple[str, ...] = ()  # networks whose X-Forwarded-For is believed
    allowed_hosts: tuple[str, ...] = ()  # names that HTTP answers to, beside addresses
    bounds: Bounds = Bounds()

    def check(self, *, is_open: bool) -> None:
        """Refuses what would let strangers in."""
        if (self.tls_cert is None) != (self.tls_key is None):
            raise CannotServe("--tls-cert and --tls-key belong together")
        for door in (self.resp, self.http):
            if is_open and not self.insecure and not door.is_loopback:
                raise CannotServe(
                    f"{door} can be reached from other machines, and the store has no users",
                    hint="Add one with `holdfast user add NAME --grant ROLE`, listen on "
                    "127.0.0.1, or let everyone in with --insecure.",
                )

    @property
    def reaches_others(self) -> bool:
        """Whether other machines can connect to one of the ports."""
        return not (self.resp.is_loopback and self.http.is_loopback)

    def certificate(self) -> Certificate | None:
        if self.tls_cert is None or self.tls_key is None:
            return None
        return Certificate(self.tls_cert, self.tls_key)

    def shown(self) -> dict[str, object]:
        """For `/confdump`; the key is a file's name, and even that is nobody's business."""
        return {
            "resp": str(self.resp),
            "http": str(self.http),
            "tls": self.tls_cert is not None,
            "insecure": self.insecure,
            "trusted_proxies": list(self.trusted_proxies),
            "allowed_hosts": list(self.allowed_hosts),
            "bounds": msgspec.structs.asdict(self.bounds),
        }


async def serve(
    store: Store,
    settings: ServerSettings,
    *,
    ready: Callable[[Address, Address], None] = lambda resp, http: None,
) -> None:
    """Serves until SIGTERM or SIGINT, then finishes what is in flight; a second signal ends it.

    SIGHUP reads the certificate and the users anew. Port 0 takes a free one; `ready` is told the
    addresses once both doors are open.
    """
    dispatcher = make_dispatcher(
        store,
        flush=settings.allow_flush,
        pixel=settings.pixel,
        bounds=settings.bounds,
        backups=settings.backups,
        schemas=settings.schemas,
        trusted_proxies=settings.trusted_proxies,
        allowed_hosts=settings.allowed_hosts,
    )
    dispatcher.started_with.update(settings.shown())
    try:
        settings.check(is_open=dispatcher.authenticator.is_open)
        if settings.reaches_others and not settings.insecure:
            dispatcher.authenticator.never_open()  # also not when the last user is removed later
        await _run(dispatcher, settings, ready)
    finally:
        await dispatcher.close()


async def _run(
    dispatcher: Dispatcher, settings: ServerSettings, ready: Callable[[Address, Address], None]
) -> None:
    certificate = settings.certificate()
    tls = None if certificate is None else certificate.context
    http_socket = settings.http.listen()
    resp_door = RespServer(dispatcher)
    try:
        resp_server = await resp_door.open(settings.resp.host, settings.resp.port, tls=tls)
    except OSError as error:
        http_socket.close()
        raise settings.resp.refusal(error) from None
    stopped = _hear_signals(dispatcher, certificate)
    http_server = HttpServer(HttpApi(dispatcher), tls)
    await http_server.open(http_socket)
    sweeping = asyncio.create_task(sweep(dispatcher))
    resp_port = resp_server.sockets[0].getsockname()[1]
    http_port = http_socket.getsockname()[1]
    resp = Address(settings.resp.host, resp_port)
    dispatcher.resp_address = resp
    http = Address(settings.http.host, http_port)
    ready(resp, http)
    _warn(settings, resp, http)

    await stopped.wait()
    _log.info("stopping: what is in flight is finished first")
    dispatcher.stopping = True
    sweeping.cancel()
    await asyncio.gather(resp_door.close(), http_server.close())


def _warn(settings: ServerSettings, *ports: Address) -> None:
    """Says in the log what people in the network could do."""
    others = [str(port) for port in ports if not port.is_loopback]
    if others and settings.tls_cert is None:
        _log.warning(
            "%s can be reached from other machines in plain text: whoever is on the way reads "
            "passwords, tokens and data. Use --tls-cert and --tls-key, or a proxy with TLS",
            " and ".join(others),
        )
    if others and settings.insecure:
        _log.warning("--insecure: while the store has no users, every client is an admin")


def _hear_signals(dispatcher: Dispatcher, certificate: Certificate | None) -> asyncio.Event:
    loop = asyncio.get_running_loop()
    stopped = asyncio.Event()
    first = loop.time()

    def stop() -> None:
        nonlocal first
        if not stopped.is_set():
            first = loop.time()
        elif loop.time() - first > SECOND_SIGNAL_SECONDS:
            signal.raise_signal(signal.SIGKILL)
        stopped.set()

    def reload() -> None:
        try:
            dispatcher.authenticator.reload()
            if certificate is not None:
                certificate.reload()
            _log.info("read the users and the certificate anew")
        except HoldfastError as error:
            _log.error("%s; all stays as it was", error.message)

    loop.add_signal_handler(signal.SIGTERM, stop)
    loop.add_signal_handler(signal.SIGINT, stop)
    loop.add_signal_handler(signal.SIGHUP, reload)
    return stopped
