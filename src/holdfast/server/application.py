"""The HTTP API inside your own ASGI application: `app.mount("/store", Application(store))`."""

import asyncio
from collections.abc import Iterable

from holdfast import dashboard  # noqa: F401  # registers /ui/
from holdfast.compat.flux import http as flux  # noqa: F401  # registers routes
from holdfast.compat.meduza import control  # noqa: F401  # registers routes
from holdfast.compat.restbase import http as restbase  # noqa: F401  # registers routes
from holdfast.server import routes, streams  # noqa: F401  # register routes
from holdfast.server.background import sweep
from holdfast.server.blocking_calls import WAITS
from holdfast.server.call_tracing import CallTracer
from holdfast.server.dispatcher import Dispatcher
from holdfast.server.http import HttpApi
from holdfast.server.http_exchange import Receive, Scope, Send
from holdfast.server.options import DEFAULT_OPTIONS, DispatcherOptions
from holdfast.store import Store


class Application:
    """An ASGI application that serves a store.

    It starts with the first request, on the loop of that request, and removes what expires. `await
    application.close()` ends it; if a server runs it as its application, the server's shutdown ends
    it. The store stays open. The dashboard is below `ui/`, unless `ui=False`. The application
    around it decides which host names are answered, unless `allowed_hosts` lists them; see
    browser_checks.py. `tracer` follows all calls; see `holdfast.contrib.opentelemetry`.
    """

    def __init__(
        self,
        store: Store,
        *,
        pixel: bool = False,
        ui: bool = True,
        trusted_proxies: Iterable[str] = (),
        allowed_hosts: Iterable[str] | None = None,
        tracer: CallTracer | None = None,
    ) -> None:
        self._store = store
        self._options = DispatcherOptions(
            pixel=pixel,
            ui=ui,
            trusted_proxies=tuple(trusted_proxies),
            allowed_hosts=None if allowed_hosts is None else tuple(allowed_hosts),
            tracer=tracer,
        )
        self._api: HttpApi | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        else:
            await self._begin()(scope, receive, send)

    async def close(self) -> None:
        """Finishes what was started, and stops."""
        api, self._api = self._api, None
        if api is not None:
            self._sweeping.cancel()
            api.close()
            await asyncio.wait([self._sweeping])
            await api.dispatcher.close()

    def _begin(self) -> HttpApi:
        if self._api is None:
            dispatcher = make_dispatcher(self._store, self._options)
            self._api = HttpApi(dispatcher)
            self._sweeping = asyncio.ensure_future(sweep(dispatcher))
        return self._api

    async def _live(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.shutdown":
                await self.close()
            await send({"type": f"{message['type']}.complete"})
            if message["type"] == "lifespan.shutdown":
                return


def make_dispatcher(store: Store, options: DispatcherOptions = DEFAULT_OPTIONS) -> Dispatcher:
    """Returns the dispatcher that RESP and HTTP share."""
    dispatcher = Dispatcher(store, options)
    dispatcher.waits.update(WAITS)
    return dispatcher
