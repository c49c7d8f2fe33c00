"""The HTTP API: an ASGI application, on uvicorn or mounted in your own application.

This file has the routing, authentication and error responses; requests and responses are in
`http_exchange.py`, and what the paths mean in `routes.py`, `streams.py` and `compat/`.
"""

import asyncio
import base64
from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Coroutine,
    Generator,
    Iterator,
    Sequence,
)
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

from holdfast.error_text import nearest
from holdfast.errors import (
    ClientGone,
    LimitExceeded,
    MethodNotAllowed,
    NotAuthenticated,
    NotFound,
    ServerBusy,
)
from holdfast.limits import (
    DECODED_ON_LOOP_BYTES,
    MAX_REQUEST_VALUES,
    MAX_STREAMS,
    STREAM_PIECE_BYTES,
)
from holdfast.metrics.middleware import client_address, is_trusted
from holdfast.operations import OPERATIONS
from holdfast.server.auth import Identity, Recheck
from holdfast.server.browser_checks import refuse_foreign_page
from holdfast.server.call_tracing import TracedCall
from holdfast.server.decoding_limits import refuse_long_decoding
from holdfast.server.dispatcher import Dispatcher
from holdfast.server.http_exchange import (
    HttpRequest,
    HttpResponse,
    Receive,
    RequestIds,
    Scope,
    Send,
    answer,
    error_headers,
    send_response,
    sent_at_once,
)

T = TypeVar("T")
Found: TypeAlias = dict[str, str]  # the values of the names in a route
Handler: TypeAlias = Callable[["HttpApi", HttpRequest, Found], Awaitable[HttpResponse]]
# Answers a request and its body at once, or returns None to leave it to the route's handler.
AtOnce: TypeAlias = Callable[["HttpApi", HttpRequest, bytes], HttpResponse | None]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

ANY_METHOD: Final = "*"
_DASHBOARD: Final = "ui"  # the first segment of its paths


class Route(NamedTuple):
    """A route: `{name}` matches one segment, `{name...}` all that follow."""

    method: str
    segments: tuple[str, ...]
    handler: Handler
    at_once: Callable[[Found], AtOnce | None] | None = None

    def match(self, segments: Sequence[str]) -> Found | None:
        rest = self.segments and self.segments[-1].endswith("...}")
        if len(segments) < len(self.segments) if rest else len(segments) != len(self.segments):
            return None
        found = {}
        for expected, given in zip(self.segments, segments, strict=False):
            if expected[:1] == "{":
                found[expected.strip("{.}")] = given
            elif expected != given:
                return None
        return found


ROUTES: Final[list[Route]] = []
_words: Final[set[str]] = set()  # the plain segments of all routes
_LIVEZ: Final = b"/livez"
_OTHER: Final = "{}"  # replaces a segment that no route names
_SHAPE_SEGMENTS: Final = 16  # more than any route has: further ones make no difference
_SHAPES: Final = 512  # of paths that are cached; there are few, unless someone probes
_AT_ONCE_URL_BYTES: Final = 200  # longer URLs are not cached


def route(
    methods: str, path: str, *, at_once: Callable[[Found], AtOnce | None] | None = None
) -> Callable[[Handler], Handler]:
    """Serves a path: `@route("GET HEAD", "/livez")`. If several match, the most specific one wins.

    `at_once` returns a function that may answer a small request without a task, if the names in the
    path allow it.
    """

    segments = tuple(path.split("/")[1:])

    def add(handler: Handler) -> Handler:
        for method in methods.split():
            ROUTES.append(Route(method, segments, handler, at_once))
        ROUTES.sort(key=lambda each: [segment[:1] == "{" for segment in each.segments])
        _words.update(segment for segment in segments if segment[:1] != "{")
        _routes_for.cache_clear()
        _at_once_for.cache_clear()
        return handler

    return add


@lru_cache(_SHAPES)
def _routes_for(shape: tuple[str, ...]) -> list[Route]:
    """Returns the routes that match the shape of a path: its segments, reduced to the words that
    routes use.

    Trying every route for each request would cost more than most operations.
    """
    return [each for each in ROUTES if each.match(shape) is not None]


def _shape(segments: Sequence[str]) -> tuple[str, ...]:
    return tuple([each if each in _words else _OTHER for each in segments[:_SHAPE_SEGMENTS]])


@lru_cache(_SHAPES)
def _at_once_for(path: bytes) -> AtOnce | None:
    """Returns the function that may answer a POST to this path at once."""
    segments = path.decode("latin-1").split("/")[1:]
    for candidate in _routes_for(_shape(segments)):
        if candidate.method in ("POST", ANY_METHOD):
            found = candidate.match(segments)
            return None if found is None or not candidate.at_once else candidate.at_once(found)
    return None


class HttpApi:
    """The ASGI application."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self.dispatcher = dispatcher
        self._request_ids = RequestIds()
        self.stopped = asyncio.Event()  # ends everything that waits for events
        # Uploads wait for their clients, so they have their own threads.
        self.uploads = ThreadPoolExecutor(MAX_STREAMS, thread_name_prefix="holdfast-upload")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        request = self._request(scope, receive)
        try:
            response = await self._answer(request)
        except Exception as error:
            response = self.failure(error, request)
        self._finish(request, response)
        await self._send(request, response, send)

    def whole_request(self, scope: Scope) -> HttpRequest:
        """Returns a request whose body has arrived, for `answer_at_once`."""
        return self._request(scope, _no_message)

    def request_like(self, request: HttpRequest) -> HttpRequest:
        """Returns another request with the same head."""
        return request.again(self._request_ids)

    def _request(self, scope: Scope, receive: Receive) -> HttpRequest:
        dispatcher = self.dispatcher
        return HttpRequest(
            scope,
            receive,
            dispatcher.memory_budget,
            dispatcher.bounds.request_bytes,
            self._request_ids,
        )

    async def _send(self, request: HttpRequest, response: HttpResponse, send: Send) -> None:
        if request.raw_path != _LIVEZ:  # a health check does not wait for its turn
            await self.dispatcher.turns.wait_for_time(request.peer)
        try:
            await send_response(request, response, send, self.dispatcher.turns)
        finally:
            request.close()

    def at_once(self, url: bytes) -> AtOnce | None:
        """Returns the function that may answer a small POST to this URL at once; None if it needs a
        task."""
        return _at_once_for(url) if len(url) <= _AT_ONCE_URL_BYTES else None

    def answer_at_once(
        self, at_once: AtOnce, request: HttpRequest, body: bytes, headers: bytes
    ) -> bytes | App | None:
        """Returns the response to a request that has arrived completely, encoded with the further
        headers; an application, if a task has to send it; None, if a task has to handle the
        request.

        Creating a task, and passing messages between it and the connection, costs more than most
        reads.
        """
        if self.dispatcher.turns.is_over():
            return None
        try:
            response = at_once(self, request, body)
        except Exception as error:
            response = self.failure(error, request)
        if response is None:
            return None
        self._finish(request, response)
        sent = sent_at_once(request, response, headers)
        return self._sending(request, response) if sent is None else sent

    def _sending(self, request: HttpRequest, response: HttpResponse) -> App:
        async def send_prepared(scope: Scope, receive: Receive, send: Send) -> None:
            await self._send(request, response, send)

        return send_prepared

    async def decoded(
        self,
        body: bytes,
        decode: Callable[[bytes], T],
        *,
        is_json: bool = True,
        most_values: int = MAX_REQUEST_VALUES,
    ) -> T:
        """Decodes a body with `decode`. A large one is refused if it has too many values or too
        much text, and is decoded in a thread."""
        if len(body) <= DECODED_ON_LOOP_BYTES:
            return decode(body)

        def decode_large() -> T:
            refuse_long_decoding(body, "json" if is_json else "msgpack", most_values)
            return decode(body)

        return await self.dispatcher.decode_in_thread(decode_large)

    def _finish(self, request: HttpRequest, response: HttpResponse) -> None:
        counted = self.dispatcher.recorder.protocols
        counted["http"] += 1
        if response.status >= 400:
            counted["http errors"] += 1
        response.headers.setdefault("x-request-id", request.id)

    async def _answer(self, request: HttpRequest) -> HttpResponse:
        segments = request.segments
        allowed = []
        for candidate in _routes_for(_shape(segments)):
            if candidate.segments[0] == _DASHBOARD and not self.dispatcher.serves_ui:
                continue
            if candidate.method == request.method or candidate.method == ANY_METHOD:
                found = candidate.match(segments)
                assert found is not None  # as the shape has matched
                self.refuse_browsers(request, candidate)
                if request.raw_path != _LIVEZ:  # which must be answered in time
                    await self.dispatcher.turns.wait_for_time(request.peer)
                return await candidate.handler(self, request, found)
            allowed.append(candidate.method)
        where = f"{request.raw_path.decode('latin-1'):.200}"
        if allowed:
            allowed = list(dict.fromkeys(allowed))
            message = f"{where} takes {', '.join(allowed)}, not {request.method}"
            raise MethodNotAllowed(
                message, allowed=allowed, hint=_BY_POST if "POST" in allowed else None
            )
        raise NotFound(f"there is nothing at {where}", hint=f"{_hint_for(where)}{_EVERYTHING}")

    def refuse_browsers(self, request: HttpRequest, route: Route | None = None) -> None:
        """Refuses requests that a page of another site sends; see browser_checks.py."""
        dispatcher, headers = self.dispatcher, request.headers
        if route is not None and route.segments[0] == "livez":
            return  # the answer reveals nothing, and health checks use any host name
        dispatcher.hosts.refuse_others(
            headers.get("host"), is_open=dispatcher.authenticator.is_open
        )
        if "origin" in headers or "sec-fetch-site" in headers:
            is_public = route is not None and route.segments[-1] == "pixel.gif"
            refuse_foreign_page(dispatcher.hosts, request.method, headers, is_public=is_public)

    async def identify(self, request: HttpRequest) -> Identity:
        """Returns the identity of the client: by bearer token, or by name and password."""
        identity = self.identify_at_once(request)
        if identity is None:
            name, _, password = _basic(request.headers["authorization"].partition(" ")[2])
            return await self.dispatcher.password_checks.check(
                self.address_of(request), name, password
            )
        return identity

    def identify_at_once(self, request: HttpRequest) -> Identity | None:
        """Returns the identity of the client; None if its name and password have to be checked."""
        authenticator = self.dispatcher.authenticator
        authorization = request.headers.get("authorization")
        if authorization:
            kind, _, credentials = authorization.partition(" ")
            if kind.lower() == "bearer":
                return authenticator.by_token(credentials.strip())
            if kind.lower() == "basic":
                return None
        identity = authenticator.anonymous()
        if identity is None:
            raise authenticator.refusal("this server requires credentials")
        return identity

    def address_of(self, request: HttpRequest) -> str:
        """Returns the address of the client."""
        proxies = self.dispatcher.trusted_proxies
        return client_address(request.peer, request.forwarded_for, proxies)

    def scheme_of(self, request: HttpRequest) -> str:
        """Returns the scheme of the client's URL; a trusted proxy may have ended its TLS."""
        stated = request.headers.get("x-forwarded-proto", "")
        if stated in ("http", "https") and is_trusted(
            request.peer, self.dispatcher.trusted_proxies
        ):
            return stated
        return request.scheme

    async def while_connected(self, request: HttpRequest, waiting: Coroutine[Any, Any, T]) -> T:
        """Waits for a result as long as the client stays connected and the server runs."""
        task = asyncio.ensure_future(waiting)
        gone = asyncio.ensure_future(request.ended())
        stopped = asyncio.ensure_future(self.stopped.wait())
        try:
            await asyncio.wait({task, gone, stopped}, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return task.result()
            if gone.done():
                raise ClientGone("the client did not wait for the answer")
            raise ServerBusy(
                "the server is stopping", hint="Try another server, or this one later."
            )
        finally:
            for each in (task, gone, stopped):
                each.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def upload(
        self, request: HttpRequest, take: Callable[[Iterator[bytes]], T], recheck: Recheck
    ) -> T:
        """Passes the body, piece by piece, to a function that runs in a thread; `recheck` is called
        before each piece."""
        loop = asyncio.get_running_loop()
        chunks = request.chunks()

        async def next_chunk() -> bytes | None:
            recheck()
            return await anext(chunks, None)

        def pieces() -> Iterator[bytes]:
            while True:
                piece = asyncio.run_coroutine_threadsafe(next_chunk(), loop).result()
                if piece is None:
                    return
                yield piece

        return await loop.run_in_executor(self.uploads, lambda: take(pieces()))

    async def download(self, parts: Generator[bytes, None, None]) -> AsyncGenerator[bytes]:
        """Returns the parts as a stream: produced in a thread, only as fast as the client reads
        them.

        The first ones are produced before this returns, so that a mistake is still an error
        response. However the stream ends, what the generator holds, such as a snapshot, is
        released.
        """
        first: bytes = await self.dispatcher.in_thread(lambda: _next_piece(parts))
        return self._pieces(first, parts)

    async def _pieces(
        self, first: bytes, parts: Generator[bytes, None, None]
    ) -> AsyncGenerator[bytes]:
        try:
            piece = first
            while piece:
                yield piece
                piece = await self.dispatcher.in_thread(lambda: _next_piece(parts))
        finally:
            parts.close()

    def close(self) -> None:
        """Ends everything that waits for events."""
        self.stopped.set()
        self.uploads.shutdown(wait=False)

    def traced(self, request: HttpRequest, operation: str, space: str) -> TracedCall | None:
        """Begins a call for the server's tracer, if there is one."""
        tracer = self.dispatcher.tracer
        if tracer is None:
            return None
        call = tracer.begin(operation, space, "http", request.headers)
        request.trace_ids = call.ids
        return call

    def failure(self, error: Exception, request: HttpRequest) -> HttpResponse:
        """Returns the response for an error, with the same message as over RESP."""
        known = self.dispatcher.as_known_error(error, request.ids)
        where = "".join(f" ({note})" for note in getattr(error, "__notes__", ()))
        body: dict[str, Any] = {
            "code": known.code,
            "message": _as_text(known.message + where),
            "hint": known.hint and _as_text(known.hint),
        }
        if isinstance(known, LimitExceeded):
            body |= {"retry_after": known.retry_after, "result": known.result}
        response = answer(request, {"error": body}, status=known.status)
        response.headers.update(error_headers(known))
        return response


_EVERYTHING: Final = "POST /{space}/{layer}/{operation}; /openapi.json lists all that is there."
_BY_POST: Final = "Arguments travel in the body: curl URL -d '{...}' sends one by POST."
_HEALTH: Final = "/livez says that the process runs, /readyz that the store answers. "
_COMMON_MISTAKES: Final = {
    **dict.fromkeys(("health", "healthz", "healthcheck", "ping", "alive", "live"), _HEALTH),
    **dict.fromkeys(("status", "ready", "readiness", "up", "_health", "_status"), _HEALTH),
    **dict.fromkeys(("docs", "api", "swagger", "swagger.json", "openapi", "redoc"), ""),
}


def _hint_for(path: str) -> str:
    """Returns a hint for a path that does not exist."""
    name = path.strip("/").lower()
    if name in _COMMON_MISTAKES:
        return _COMMON_MISTAKES[name]
    if name.replace("/", ".") in OPERATIONS:
        return f"A path begins with the space: did you mean /default/{name}? "
    plain = ["/".join(each.segments) for each in ROUTES if not any("{" in s for s in each.segments)]
    near = nearest(name, [each for each in plain if each])
    return "" if near is None else f"Did you mean /{near}? "


def _as_text(message: str) -> str:
    """Returns a message without what is not text, such as bytes of a path that are not UTF-8."""
    return message.encode(errors="replace").decode()


def _next_piece(parts: Iterator[bytes]) -> bytes:
    """Returns the next parts, about `STREAM_PIECE_BYTES` together."""
    taken: list[bytes] = []
    size = 0
    for part in parts:
        taken.append(part)
        size += len(part)
        if size >= STREAM_PIECE_BYTES:
            break
    return b"".join(taken)


async def _no_message() -> Scope:
    """Receives nothing: the request is complete."""
    return {"type": "http.disconnect"}


def _basic(credentials: str) -> tuple[str, str, str]:
    try:
        return base64.b64decode(credentials, validate=True).decode().partition(":")
    except ValueError:
        raise NotAuthenticated("the credentials are not base64 of name:password") from None
