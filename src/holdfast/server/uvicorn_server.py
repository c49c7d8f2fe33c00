"""uvicorn within our event loop: it starts and stops when we say so, and keeps our limits."""

import asyncio
import math
import re
import socket
from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from typing import Any, Final, NoReturn

import msgspec

from holdfast.errors import (
    BadInput,
    HeadTooLarge,
    HoldfastError,
    MissingDriver,
    ServerBusy,
    UrlTooLong,
)
from holdfast.limits import (
    KEEP_ALIVE_SECONDS,
    MAX_HEAD_BYTES,
    MAX_HEADERS,
    MAX_PIPELINED_REQUESTS,
    MAX_UNDELAYED_BYTES,
    MAX_URL_BYTES,
    SERVER_DRAIN_SECONDS,
    STALLED_EXCHANGE_SECONDS,
    STOPPING_STALLED_SECONDS,
)
from holdfast.server.direct_answers import DirectAnswers
from holdfast.server.dispatcher import Dispatcher
from holdfast.server.error_frames import forget_frames
from holdfast.server.http import HttpApi
from holdfast.server.http_exchange import HAS_ENDED, IS_WHOLE, JSON, error_headers
from holdfast.server.joined_writes import JoinedWrites
from holdfast.server.listening import listen
from holdfast.server.tls import CurrentContext

try:
    import uvicorn
    from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT, FlowControl
except ImportError as error:
    raise MissingDriver.of_server(error) from error

_PIECE_BYTES: Final = 4_096  # the parser gets at once: it can't stop in the middle
_HEAD: Final = b"HEAD "
_HEALTH_CHECK: Final = b"GET /livez "  # which must be answered in time
_ABSOLUTE_FORM: Final = re.compile(rb"https?://([^/?#@]+)([/?].*)?", re.IGNORECASE)
_TURN_BYTES: Final = 16_384  # parsed of one connection before the others get a turn


class _Flow(FlowControl):
    """uvicorn's flow control, which resumes reading only if the connection may take more."""

    def __init__(self, transport: asyncio.Transport, may_read: Callable[[], bool]) -> None:
        super().__init__(transport)
        self._may_read = may_read

    def resume_reading(self) -> None:
        if self.read_paused and self._may_read():
            super().resume_reading()

    def leave(self) -> None:
        """Drops the reference to the connection."""
        self._may_read = _never


class BoundedProtocol(DirectAnswers):
    """The HTTP protocol with our limits.

    It accepts as many connections as allowed, and requests whose head has a sensible size and
    arrives in time. A client may have a few requests in progress, and the next one begins only when
    it has read enough of the earlier answers.
    """

    dispatcher: Dispatcher  # of the server that it belongs to
    flow: _Flow
    _is_admitted = False
    _first = b""  # the first bytes that arrived
    _unread = 0  # bytes since the last complete head or piece of a body
    _has_head = False  # whether the last data completed a head
    _patience: asyncio.TimerHandle | None = None
    _refusal: HoldfastError | None = None  # why the head that is being parsed is refused
    _head_bytes = 0
    _has_host = False
    _body_left = 0  # bytes of the body still to come, if its length is known
    _unfed = b""  # data that arrived, and is parsed later
    _parses_later = False  # in a later turn
    _waits_to_begin = False  # the next request waits until the client has read
    _active: Any = None  # the request that is being answered; `cycle` is the last one that arrived
    _came = 0  # bytes received in total
    _last_words: HoldfastError | None = None  # sent when the earlier requests are answered
    _has_ended = False  # the client has closed its side

    def connection_made(self, transport: Any) -> None:
        # Like uvicorn's, without creating a Python socket object for each connection.
        self.connections.add(self)
        self.transport = transport
        self.flow = _Flow(transport, self._may_read)
        self._joined = JoinedWrites(transport, self.loop)
        self.client = _address(transport.get_extra_info("peername"))
        self._peer = self.client[0] if self.client else ""
        self.server = _address(transport.get_extra_info("sockname"))
        self.scheme = "https" if transport.get_extra_info("sslcontext") else "http"
        refusal = self.dispatcher.admit(self._peer)
        self._is_admitted = refusal is None
        if refusal is None:
            self._expect_head()
        else:
            self._refuse(ServerBusy(refusal))

    def connection_lost(self, exc: Exception | None) -> None:
        self.dispatcher.turns.forget_soon(partial(self._forget, exc))

    def _forget(self, exc: Exception | None) -> None:
        self._head_is_complete()
        if self._is_admitted:
            self.dispatcher.connections.leave(self._peer)
        self.dispatcher.back_pressure.remove(self)
        self._unfed = b""
        self.pipeline.clear()
        super().connection_lost(exc)
        self._unset_keepalive_if_required()
        active = self._active
        if active is not None and active is not self.cycle and not active.response_complete:
            active.disconnected = True  # uvicorn marks only the last request
            active.message_event.set()
        self._release(active, self.cycle)

    def _release(self, *requests: Any) -> None:
        """Breaks all reference cycles. Otherwise every connection would be garbage that only the
        collector finds, and a flood of them would make everyone wait."""
        self.flow.leave()
        self._refusal = self._last_words = self._known_head = self._answered_now = None
        for each in requests:
            if each is not None:
                each.scope.pop(IS_WHOLE, None)
                each.scope.pop(HAS_ENDED, None)

    def eof_received(self) -> bool:  # type: ignore[override]  # uvicorn's never stays open
        """Answers what the client sent before it closed its side; waits are cancelled."""
        self._joined.flush()
        self._has_ended = True
        if self._is_answering():
            if self._active is not None:
                self._active.message_event.set()
            return True
        return self.dispatcher.turns.defer_close(self.transport.close)

    def _is_answering(self) -> bool:
        """Returns whether an answer is due, after the client has closed its side."""
        if self._unfed or self._last_words is not None:
            return True
        if not self.is_idle and self.cycle.more_body:  # the rest of its body will never come
            if not self.pipeline:
                return False
            self.pipeline.popleft()
            self.cycle = self.pipeline[0][0] if self.pipeline else self._active
        return not self.is_idle

    def _end_if_answered(self) -> None:
        if self._has_ended and not self.transport.is_closing() and not self._is_answering():
            self.transport.close()

    # --- what comes ------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing() or self._last_words is not None:
            return  # it was refused
        if not self._unfed and self.answer_known(data):
            return
        self._first = self._first or data[: len(_HEAD)]
        self._came += len(data)
        if self._unfed or not self._may_begin():
            self._unfed += data
            self.flow.pause_reading()
        elif self.dispatcher.turns.is_over() and not data.startswith(_HEALTH_CHECK):
            self._parse_later(data)
        elif len(data) <= _PIECE_BYTES:
            self._parse(data)
        else:
            self._parse_pieces(data)

    def _parse_pieces(self, data: bytes) -> None:
        """Parses data that may hold many requests, and stops when there are enough of them."""
        at, turn = 0, 0
        while at < len(data) and not self.transport.is_closing():
            if turn >= _TURN_BYTES or not self._may_begin():
                if turn >= _TURN_BYTES:
                    self._parse_later(data[at:])
                else:
                    self._unfed = data[at:]
                    self.flow.pause_reading()
                return
            size = max(_PIECE_BYTES, self._body_left)
            turn += 0 if self._body_left else size  # bytes of a body cost nothing
            self._parse(data[at : at + size])
            at += size

    def _parse_later(self, data: bytes) -> None:
        self._unfed = data
        if len(data) > MAX_UNDELAYED_BYTES:  # pausing for a small one takes longer than parsing it
            self.flow.pause_reading()
        if not self._parses_later:
            self._parses_later = True
            self.dispatcher.turns.put(self._take_turn, self._peer)

    def _take_turn(self) -> None:
        self._parses_later = False
        self._parse_on()

    def _parse_on(self) -> None:
        """Continues to parse what has waited."""
        if self._unfed and self._may_begin() and not self.transport.is_closing():
            data, self._unfed = self._unfed, b""
            self._parse_pieces(data)
        if not self._unfed and not self.transport.is_closing():
            self.flow.resume_reading()
        self._end_if_answered()

    def _may_begin(self) -> bool:
        """Returns whether the client may have another request in progress."""
        if self._last_words is not None:
            return False
        return len(self.pipeline) < MAX_PIPELINED_REQUESTS and not self.flow.write_paused

    def _may_read(self) -> bool:
        # The body of a waiting request is read when its turn has come.
        fits = not self.pipeline or len(self.cycle.body) <= HIGH_WATER_LIMIT
        return not self._unfed and fits and self._may_begin()

    def _parse(self, data: bytes) -> None:
        self._unread += len(data)
        begins = self.is_idle
        self._has_head = False
        self.parse(data)
        if self.transport.is_closing():
            return
        if self._unread > MAX_HEAD_BYTES + _PIECE_BYTES:
            self._refuse_in_turn(_head_too_large())
        elif begins and not self._has_head:  # usually it arrives at once, and needs no timer
            self._expect_head()

    @property
    def has_part_of_a_head(self) -> bool:
        return self._unread > 0

    # --- what the parser finds -------------------------------------------------------------------

    def on_message_begin(self) -> None:
        self._head_bytes = 0
        self._has_host = False
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        self._head_bytes += len(url)
        if self._head_bytes > MAX_URL_BYTES:
            self._stop_parsing(UrlTooLong(f"a URL may have {MAX_URL_BYTES} bytes"))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._head_bytes += len(name) + len(value) + 4
        if self._head_bytes > MAX_HEAD_BYTES:
            self._stop_parsing(_head_too_large())
        if len(self.headers) >= MAX_HEADERS:
            self._stop_parsing(HeadTooLarge(f"a request may have {MAX_HEADERS} headers"))
        self._refuse_doubtful(name.lower(), value)
        super().on_header(name, value)

    def _refuse_doubtful(self, name: bytes, value: bytes) -> None:
        """Refuses a head that a proxy in front of the server may read differently: one of the two
        might take a body for a request. The parser refuses heads with several lengths, or with a
        length and chunks."""
        if name == b"content-length" and value.isdigit():
            self._body_left = int(value[:20])
        elif name == b"transfer-encoding":
            if value.strip().lower() != b"chunked" or self.parser.get_http_version() != "1.1":
                self._stop_parsing(BadInput("a body has a length, or comes in chunks of HTTP/1.1"))
        elif name == b"host":
            if self._has_host:
                self._stop_parsing(BadInput("a request names one host"))
            self._has_host = True

    def on_headers_complete(self) -> None:
        self._unread = 0
        self._has_head = True
        self._head_is_complete()
        if self.parser.get_method() == b"CONNECT":
            self._stop_parsing(BadInput("this server is not a proxy, and takes no CONNECT"))
        if not self.url.startswith(b"/"):
            self._take_host_of_url()
        super().on_headers_complete()

    def _take_host_of_url(self) -> None:
        """Replaces the Host header by the host that a whole URL names, as RFC 9112 requires: it
        has to pass the same checks."""
        found = _ABSOLUTE_FORM.fullmatch(self.url)
        if found is None:
            self._stop_parsing(BadInput("a request names a path, or a URL of http or https"))
        host, rest = found.groups(b"/")
        self.url = rest if rest.startswith(b"/") else b"/" + rest
        self.headers[:] = [each for each in self.headers if each[0] != b"host"]
        self.headers.append((b"host", host))

    def on_body(self, body: bytes) -> None:
        self._unread = 0
        self._body_left = max(0, self._body_left - len(body))
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._unread = 0
        self._body_left = 0
        super().on_message_complete()

    def _stop_parsing(self, error: HoldfastError) -> NoReturn:
        self._refusal = error
        raise error  # the parser raises it as its own error

    # --- answers ---------------------------------------------------------------------------------

    def _start_asgi_task(self, cycle: Any, app: Any) -> None:
        self._active = cycle
        cycle.transport = self._joined
        cycle.scope[IS_WHOLE] = self._is_whole
        cycle.scope[HAS_ENDED] = lambda: self._has_ended
        super()._start_asgi_task(cycle, app)

    def _is_whole(self) -> bool:
        """Returns whether the body of the request that is being answered has arrived."""
        return not self._active.more_body

    def on_response_complete(self) -> None:
        self._joined.flush()
        if self.flow.write_paused and not self.transport.is_closing():
            self._waits_to_begin = True  # the client has to read first
            return
        if self._last_words is not None and not self.pipeline:
            self._refuse(self._last_words)
            return
        super().on_response_complete()
        if self._unfed:
            self._parse_on()
        else:
            self._end_if_answered()

    def pause_writing(self) -> None:
        super().pause_writing()
        self.flow.pause_reading()
        self.dispatcher.back_pressure.add(self)

    def resume_writing(self) -> None:
        super().resume_writing()
        self.dispatcher.back_pressure.remove(self)
        if self.transport.is_closing():
            return
        if self._waits_to_begin:
            self._waits_to_begin = False
            self.on_response_complete()
        self._parse_on()

    def unsent_bytes(self) -> int:
        return self.transport.get_write_buffer_size()

    def drop(self) -> None:
        self.transport.abort()

    def shutdown(self) -> None:
        """Ends the connection as soon as the current request is answered."""
        self._unfed = b""
        super().shutdown()
        self.dispatcher.back_pressure.add(self)
        self.loop.call_later(STOPPING_STALLED_SECONDS, self._end_if_silent, self._came)

    def _end_if_silent(self, came: int) -> None:
        """Ends a request whose body does not arrive, so that it does not delay the shutdown."""
        active = self._active
        if active is None or active.response_complete or self.transport.is_closing():
            return
        if active.more_body and self._came == came:
            self.transport.abort()
        else:
            self.loop.call_later(STOPPING_STALLED_SECONDS, self._end_if_silent, self._came)

    # --- refusals --------------------------------------------------------------------------------

    def send_400_response(self, msg: str) -> None:
        """Answers a request that uvicorn can't parse, in the usual error format."""
        other = {b"\x16": "TLS", b"*": "RESP"}.get(self._first[:1])
        if self._refusal is not None:
            forget_frames(self._refusal)  # which hold this connection
            self._refuse_in_turn(self._refusal)
        elif other is not None:
            error = BadInput(f"this looks like {other}, but this port speaks plain HTTP")
            self._refuse_in_turn(error)
        else:
            self._refuse_in_turn(BadInput("this is not a request of HTTP/1.1"))

    def _refuse_in_turn(self, error: HoldfastError) -> None:
        """Refuses the last data, once everything before it is answered."""
        active, last = self._active, self.cycle
        if active is None or (active is last and (active.response_complete or active.more_body)):
            self._refuse(error)
            return
        if last.more_body:  # the refused request has a head, and waits for its turn
            self.pipeline.popleft()
        self._last_words, self._unfed = error, b""
        self.flow.pause_reading()

    def _refuse(self, error: HoldfastError) -> None:
        """Answers without a request, and closes the connection."""
        said = {"code": error.code, "message": error.message, "hint": error.hint}
        body = msgspec.json.encode({"error": said})
        head = f"HTTP/1.1 {error.status} {HTTPStatus(error.status).phrase}"
        headers = error_headers(error) | {"connection": "close", "content-type": JSON}
        headers["content-length"] = str(len(body))
        lines = [head, *(f"{name}: {value}" for name, value in headers.items())]
        if self.cycle is None and self._first == _HEAD:
            body = b""
        self.transport.write("\r\n".join([*lines, "", ""]).encode() + body)
        self.transport.close()

    def _expect_head(self) -> None:
        if self._patience is None:
            self._patience = self.loop.call_later(STALLED_EXCHANGE_SECONDS, self._drop_slow_head)

    def _head_is_complete(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def _drop_slow_head(self) -> None:
        self._patience = None
        if not self.transport.is_closing():
            self.transport.close()


def _never() -> bool:
    return False


def _address(name: Any) -> tuple[str, int] | None:
    """Returns the host and port of a socket's name; None for other kinds of sockets."""
    return (str(name[0]), int(name[1])) if isinstance(name, tuple) else None


def _head_too_large() -> HeadTooLarge:
    return HeadTooLarge(f"the head of a request may have {MAX_HEAD_BYTES} bytes")


class HttpServer:
    """Listens for HTTP with uvicorn."""

    def __init__(self, api: HttpApi, tls: CurrentContext | None = None) -> None:
        self._api = api
        self._tls = tls
        bounds = api.dispatcher.bounds
        of_server = {"api": api, "dispatcher": api.dispatcher}
        config = uvicorn.Config(
            api,
            http=type("Protocol", (BoundedProtocol,), of_server),
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,  # we decide which proxies to trust: see client_address.py
            timeout_keep_alive=min(KEEP_ALIVE_SECONDS, math.ceil(bounds.idle_seconds)),
            timeout_graceful_shutdown=SERVER_DRAIN_SECONDS,
        )
        config.load()
        self._server = uvicorn.Server(config)
        self._server.lifespan = config.lifespan_class(config)

    async def open(self, listening: socket.socket) -> None:
        """Like uvicorn's `startup`, but with our own way to accept connections."""
        config, server = self._server.config, self._server

        def protocol() -> asyncio.Protocol:
            made: asyncio.Protocol = config.http_protocol_class(  # type: ignore[call-arg]  # as uvicorn calls it
                config=config, server_state=server.server_state, app_state={}
            )
            return made

        dispatcher = self._api.dispatcher
        server.servers = await listen([listening], protocol, self._tls, dispatcher)  # type: ignore[assignment]  # closed alike
        server.started = True
        self._ticking = asyncio.create_task(server.main_loop())

    async def close(self) -> None:
        """Accepts no more connections, and lets each running request finish."""
        self._server.should_exit = True
        await self._ticking
        self._api.close()
        self._api.dispatcher.back_pressure.shorten_time_limit()
        await self._server.shutdown()
