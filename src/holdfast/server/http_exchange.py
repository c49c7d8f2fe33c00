"""One HTTP exchange: the request as it arrived, and the response on its way to the client.

Nothing here knows about paths. The size of a body is limited, and so is that of all bodies of a
server together; a response is whole, or a stream whose pieces are made while the client reads them.
"""

import asyncio
import gzip
import itertools
import math
import re
import time
import uuid
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Mapping,
    MutableMapping,
)
from functools import cached_property
from http import HTTPStatus
from typing import Any, Final, TypeAlias
from urllib.parse import parse_qsl, quote, unquote_to_bytes

import msgspec

from holdfast.errors import (
    BadInput,
    ClientGone,
    HoldfastError,
    LimitExceeded,
    MethodNotAllowed,
    NotAuthenticated,
    RequestTooLarge,
    ServerBusy,
    TooManyLogins,
    UnsupportedContent,
    UrlTooLong,
)
from holdfast.limits import (
    JOINED_ON_LOOP_BYTES,
    LARGE_PIECE_BYTES,
    MAX_DISCARDED_BYTES,
    MAX_QUERY_PARAMETERS,
    MAX_REQUEST_BYTES,
    MIN_GZIP_BYTES,
    MIN_GZIP_THREAD_BYTES,
    MIN_REQUEST_BYTES_PER_SECOND,
    STALLED_EXCHANGE_SECONDS,
    STREAMED_AT_ONCE_BYTES,
)
from holdfast.server import bigints
from holdfast.server.client_limits import MemoryBudget
from holdfast.server.compound_keys import refuse_compound_keys
from holdfast.server.loop_turns import LoopTurns
from holdfast.server.piecewise_encoding import encode_around

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]

JSON: Final = "application/json"
MSGPACK: Final = "application/msgpack"
_FORWARDED_FOR: Final = b"x-forwarded-for"
_MSGPACK_TOO: Final = ("application/x-msgpack", "application/vnd.msgpack")
_ID: Final = re.compile(r"[!-~]{1,128}")
_STATUS_LINES: Final = {
    status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus
}
# In the scope of a request: its body has arrived completely; see uvicorn_server.py.
IS_WHOLE: Final = "holdfast.is_whole"
# In the scope, too: the client has closed its side of the connection.
HAS_ENDED: Final = "holdfast.has_ended"
EVENT_STREAM: Final = "text/event-stream"


class RequestIds:
    """Makes ids for requests without one: a random UUID whose last part is a counter."""

    def __init__(self) -> None:
        self._begin = str(uuid.uuid4())[:24]
        self._numbers = itertools.count(1)

    def next(self) -> str:
        return f"{self._begin}{next(self._numbers) % 2**48:012x}"


class HttpRequest:
    """One request; its path is still as it was sent."""

    def __init__(
        self,
        scope: Scope,
        receive: Receive,
        budget: MemoryBudget | None = None,
        max_bytes: int = MAX_REQUEST_BYTES,
        ids: RequestIds | None = None,
    ) -> None:
        self.method: str = scope["method"]
        root = scope.get("root_path", "")
        self.root = quote(root).rstrip("/") if root else ""
        raw_path = scope.get("raw_path") or quote(scope["path"]).encode()
        self.raw_path: bytes = raw_path.removeprefix(self.root.encode()) if root else raw_path
        self.query: bytes = scope["query_string"]
        self.headers: dict[str, str] = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]
        }
        self.peer: str = (scope.get("client") or ("", 0))[0]
        self.scheme: str = scope.get("scheme", "http")
        self._scope = scope
        given = self.headers.get("x-request-id")
        self.trace_ids: Mapping[str, str] = {}  # of the call that it makes, if it is traced
        self.id = given if given and _ID.fullmatch(given) else (ids or RequestIds()).next()
        self._receive = receive
        self._budget = budget or MemoryBudget()
        self._max_bytes = max_bytes  # of its body
        self._held = 0
        self._ended = False

    @property
    def ids(self) -> dict[str, str | int]:
        """Returns the ids by which log and client identify the same request."""
        return {"request_id": self.id, **self.trace_ids}

    @property
    def segments(self) -> list[str]:
        """The parts of the path, each decoded by itself: an encoded slash separates nothing.

        Bytes that are not UTF-8 become characters that no name can have, so that each path refuses
        them in its own way.
        """
        if b"%" not in self.raw_path:
            return self.raw_path.decode(errors="surrogateescape").split("/")[1:]
        parts = self.raw_path.split(b"/")[1:]
        return [unquote_to_bytes(part).decode(errors="surrogateescape") for part in parts]

    @property
    def forwarded_for(self) -> str:
        """Returns what proxies say about the origin of the request."""
        return ", ".join(
            value.decode("latin-1")
            for name, value in self._scope["headers"]
            if name == _FORWARDED_FOR
        )

    def again(self, ids: RequestIds) -> "HttpRequest":
        """Returns another request with the same head, and with everything derived from it."""
        request = HttpRequest.__new__(HttpRequest)
        request.__dict__.update(self.__dict__)
        if self.headers.get("x-request-id") != self.id:
            request.id = ids.next()
        return request

    @cached_property
    def content_type(self) -> str:
        given = self.headers.get("content-type", JSON)
        if given == JSON:
            return JSON
        name = given.partition(";")[0].strip().lower()
        return MSGPACK if name in _MSGPACK_TOO else name

    def parameter(self, name: str, default: str = "") -> str:
        """Returns a parameter of the query."""
        return self.parameters.get(name, default)

    @cached_property
    def parameters(self) -> dict[str, str]:
        return dict(self.all_parameters)

    @cached_property
    def all_parameters(self) -> list[tuple[str, str]]:
        """Returns all query parameters, including repeated ones."""
        text = self.query.decode("latin-1")
        if self.query.count(b"&") >= MAX_QUERY_PARAMETERS:
            raise UrlTooLong(f"a URL may have {MAX_QUERY_PARAMETERS} parameters")
        return parse_qsl(text, keep_blank_values=True)

    @cached_property
    def integers_as_text(self) -> bool:
        """Returns whether the client wants integers that JavaScript can't represent as strings."""
        return bigints.is_asked_for(self.headers.get("accept", ""))

    def accepts(self, content_type: str) -> bool:
        return content_type in self.headers.get("accept", "")

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yields the body in pieces as they arrive."""
        while (part := await self._next_chunk(STALLED_EXCHANGE_SECONDS)) is not None:
            yield part

    async def _next_chunk(self, seconds: float) -> bytes | None:
        """Returns the next piece of the body that is not empty, if it arrives in time; None at the
        end of the body."""
        if self.headers.get("content-encoding", "identity").lower() != "identity":
            raise UnsupportedContent(
                "compressed bodies are not accepted",
                hint="Send the body as it is, without the header `Content-Encoding`.",
            )
        end = time.monotonic() + seconds  # empty pieces do not extend the time
        is_whole = self._scope.get(IS_WHOLE)
        while not self._ended:
            if is_whole is not None and is_whole():
                message = await self._receive()  # at once
            else:
                message = await self._receive_within(end - time.monotonic())
            if message["type"] == "http.disconnect":
                raise ClientGone("the request ended before its body did")
            self._ended = not message.get("more_body", False)
            if message.get("body"):
                body: bytes = message["body"]
                return body
        return None

    async def _receive_within(self, seconds: float) -> MutableMapping[str, Any]:
        try:
            async with asyncio.timeout(seconds):
                return await self._receive()
        except TimeoutError:
            raise ClientGone("the rest of the body did not arrive") from None

    async def disconnected(self) -> None:
        """Returns once the client has disconnected."""
        while (await self._receive())["type"] != "http.disconnect":
            pass

    async def ended(self) -> None:
        """Returns once the client has disconnected, or closed its side of the connection: then it
        still reads an answer, perhaps, but nothing shows whether it waits for one."""
        has_ended = self._scope.get(HAS_ENDED)
        while not (has_ended is not None and has_ended()):
            if (await self._receive())["type"] == "http.disconnect":
                return

    async def body(self, limit: int | None = None) -> bytes:
        """Returns the whole body, or raises `RequestTooLarge`."""
        limit = self._max_bytes if limit is None else min(limit, self._max_bytes)
        stated = self.headers.get("content-length", "")
        # A client that sends "Expect: 100-continue" gets its answer before it sends the body.
        most = limit if "expect" in self.headers else max(limit, MAX_DISCARDED_BYTES)
        if stated.isdigit() and int(stated) > most:
            raise RequestTooLarge(f"the body has {stated} bytes, at most {limit} are accepted")
        parts: list[bytes] = []
        size, began = 0, time.monotonic()
        while (part := await self._next_chunk(seconds_left(began, size))) is not None:
            size += len(part)
            if size <= limit:
                self._budget.take(len(part))
                self._held += len(part)
                parts.append(part)
                continue
            # Most clients read no answer before they have sent everything, so the rest is
            # received and discarded, up to a point.
            parts.clear()
            if size > MAX_DISCARDED_BYTES:
                break
        if size > limit:
            raise RequestTooLarge(f"the body has more than {limit} bytes")
        if size <= JOINED_ON_LOOP_BYTES:
            return parts[0] if len(parts) == 1 else b"".join(parts)
        return await asyncio.to_thread(b"".join, parts)  # without the interpreter's lock

    def refuse_if_memory_is_short(self, size: int) -> None:
        """Raises if a body of that size would not fit next to those of all other clients."""
        self._budget.take(size)
        self._budget.give_back(size)

    def close(self) -> None:
        """Releases the body, which is no longer needed."""
        self._budget.give_back(self._held)
        self._held = 0


def seconds_left(began: float, size: int) -> float:
    """Returns how long to wait for more of a body of which `size` bytes have arrived: nobody can
    hold a connection for ever with a byte now and then."""
    most = STALLED_EXCHANGE_SECONDS + size / MIN_REQUEST_BYTES_PER_SECOND
    return max(0.0, min(STALLED_EXCHANGE_SECONDS, began + most - time.monotonic()))


class HttpResponse:
    """One response: whole, or in pieces that are sent as they are made."""

    def __init__(
        self,
        body: bytes | AsyncGenerator[bytes] = b"",
        *,
        status: int = 200,
        content_type: str = JSON,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.body = body
        self.status = status
        self.headers = {"content-type": content_type, **(headers or {})}
        self.cookies: list[str] = []  # each is its own header


def decode(request: HttpRequest, body: bytes, expected: Any) -> Any:
    """Returns the body as an object, in the encoding that its content type names."""
    try:
        if request.content_type == MSGPACK:
            refuse_compound_keys(body)
            return msgspec.msgpack.decode(body or b"\x80", type=expected)
        return msgspec.json.decode(body or b"{}", type=expected)
    except RecursionError:
        raise BadInput("the body is nested too deeply") from None
    except UnicodeDecodeError:
        raise BadInput("a text of the body is not UTF-8") from None


def answer(request: HttpRequest, content: Any, *, status: int = 200) -> HttpResponse:
    """Returns an object as the response, in the encoding of the request."""
    if request.content_type == MSGPACK:
        return HttpResponse(msgspec.msgpack.encode(content), status=status, content_type=MSGPACK)
    encode = bigints.encode if request.integers_as_text else msgspec.json.encode
    return HttpResponse(encode(content), status=status)


def answer_results(request: HttpRequest, results: list[bytes]) -> HttpResponse:
    """Returns results that are encoded already, in the encoding of the request, as a list."""
    is_msgpack = request.content_type == MSGPACK
    encode = msgspec.msgpack.encode if is_msgpack else msgspec.json.encode
    body = encode_around(results, lambda marks: {"result": marks}, encode)
    return HttpResponse(body, content_type=MSGPACK if is_msgpack else JSON)


# --- sending -------------------------------------------------------------------------------------


async def send_response(
    request: HttpRequest, response: HttpResponse, send: Send, turns: LoopTurns
) -> None:
    """Sends a response. A stream that fails in the middle raises, which breaks the connection."""
    body = response.body
    if isinstance(body, bytes):
        body = await _compress(request, response, body)
        if response.status not in (204, 304):
            response.headers["content-length"] = str(len(body))
        await _begin(response, send)
        if len(body) > LARGE_PIECE_BYTES:
            await turns.wait_for_time(request.peer)
            turns.note_sent(len(body))
        await send({"type": "http.response.body", "body": b"" if _is_bare(request) else body})
    elif _is_bare(request):
        await body.aclose()
        await _begin(response, send)
        await send({"type": "http.response.body", "body": b""})
    else:
        await _begin(response, send)
        await _send_stream(request, response, body, send, turns)


def _is_bare(request: HttpRequest) -> bool:
    return request.method == "HEAD"


async def _begin(response: HttpResponse, send: Send) -> None:
    headers = [
        (name.encode("latin-1"), value.encode("latin-1"))
        for name, value in response.headers.items()
    ]
    headers += [(b"set-cookie", cookie.encode("latin-1")) for cookie in response.cookies]
    await send({"type": "http.response.start", "status": response.status, "headers": headers})


async def _send_stream(
    request: HttpRequest,
    response: HttpResponse,
    body: AsyncGenerator[bytes],
    send: Send,
    turns: LoopTurns,
) -> None:
    """Sends pieces until there are no more, or the client has disconnected or stopped reading."""
    is_endless = response.headers.get("content-type", "").startswith(EVENT_STREAM)
    gone = asyncio.ensure_future(request.ended() if is_endless else request.disconnected())
    try:
        while (part := await _next_part(body, gone)) is not None:
            # The chunks are copied, and one of many megabytes would take too long.
            for begin in range(0, len(part), STREAMED_AT_ONCE_BYTES):
                piece = part[begin : begin + STREAMED_AT_ONCE_BYTES]
                message = {"type": "http.response.body", "body": piece, "more_body": True}
                if len(piece) > LARGE_PIECE_BYTES:
                    await turns.wait_for_time(request.peer)
                    turns.note_sent(len(piece))
                await asyncio.wait_for(send(message), STALLED_EXCHANGE_SECONDS)
                if gone.done():
                    break
        if not gone.done():
            await send({"type": "http.response.body", "body": b""})
    finally:
        gone.cancel()
        await body.aclose()


async def _next_part(body: AsyncGenerator[bytes], gone: asyncio.Future[None]) -> bytes | None:
    """Returns the next piece, or None at the end or when the client has disconnected."""
    step: asyncio.Future[bytes | None] = asyncio.ensure_future(_step(body))
    try:
        both: set[asyncio.Future[Any]] = {step, gone}
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
    finally:
        if not step.done():
            step.cancel()
            await asyncio.wait({step})
    return None if step.cancelled() or gone.done() else step.result()


async def _step(body: AsyncGenerator[bytes]) -> bytes | None:
    return await anext(body, None)


def sent_at_once(request: HttpRequest, response: HttpResponse, headers: bytes) -> bytes | None:
    """Returns a whole response as bytes, with further headers; None if it is large and has to wait
    for its turn, or ends the connection."""
    body = response.body
    if not isinstance(body, bytes) or len(body) >= LARGE_PIECE_BYTES:
        return None
    if "connection" in response.headers:
        return None
    if _should_compress(request, response, body):
        body = _gzip(body)
    lines = [f"{name}: {value}\r\n" for name, value in response.headers.items()]
    lines.append(f"content-length: {len(body)}\r\n\r\n")
    return _STATUS_LINES[response.status] + headers + "".join(lines).encode("latin-1") + body


async def _compress(request: HttpRequest, response: HttpResponse, body: bytes) -> bytes:
    """Compresses a body if that is worthwhile and the client accepts it."""
    if not _should_compress(request, response, body):
        return body
    if len(body) < MIN_GZIP_THREAD_BYTES:
        return _gzip(body)
    return await asyncio.to_thread(_gzip, body)


def _should_compress(request: HttpRequest, response: HttpResponse, body: bytes) -> bool:
    """Returns whether to compress a body: it is worthwhile and the client accepts it. Then sets the
    headers."""
    if len(body) < MIN_GZIP_BYTES or not _takes_gzip(request.headers.get("accept-encoding", "")):
        return False
    response.headers["content-encoding"] = "gzip"
    response.headers["vary"] = "accept-encoding"
    return True


def _gzip(body: bytes) -> bytes:
    return gzip.compress(body, compresslevel=5, mtime=0)


def _takes_gzip(accepted: str) -> bool:
    """
    >>> _takes_gzip("br, gzip;q=0.5"), _takes_gzip("gzip;q=0"), _takes_gzip("br")
    (True, False, False)
    """
    for each in accepted.split(","):
        name, _, quality = each.partition(";")
        if name.strip().lower() == "gzip":
            return quality.strip().lower() not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False


def error_headers(error: HoldfastError) -> dict[str, str]:
    """Returns the headers that HTTP requires with an error."""
    headers = {}
    if isinstance(error, NotAuthenticated):
        headers["www-authenticate"] = "Bearer"
    if isinstance(error, MethodNotAllowed):
        headers["allow"] = ", ".join(error.allowed)
    if isinstance(error, RequestTooLarge | ClientGone):
        headers["connection"] = "close"  # do not wait for the rest of the body
    if isinstance(error, ServerBusy):
        headers["retry-after"] = "1"
    if isinstance(error, LimitExceeded | TooManyLogins) and error.retry_after is not None:
        headers["retry-after"] = str(max(1, math.ceil(error.retry_after)))
    return headers
