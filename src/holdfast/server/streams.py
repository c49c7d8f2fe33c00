"""Paths whose request or response is a stream: incoming events, outgoing notices."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine
from functools import cached_property, partial
from typing import Any, Final, TypeVar
from weakref import WeakValueDictionary

import msgspec

from holdfast.engine.contract import Notice
from holdfast.errors import BadInput, NotFound, RequestTooLarge
from holdfast.limits import (
    EVENTS_PER_STREAM_STEP,
    MAX_QUEUED_STREAM_BYTES,
    MAX_QUEUED_STREAM_NOTICES,
    MAX_REPORTED_EVENTS,
    MAX_STREAM_LINE_BYTES,
    STREAM_KEEP_ALIVE_SECONDS,
    STREAM_STEP_BYTES,
)
from holdfast.server.auth import Identity
from holdfast.server.client_address import address_event
from holdfast.server.http import Found, HttpApi, route
from holdfast.server.http_exchange import (
    EVENT_STREAM,
    MSGPACK,
    HttpRequest,
    HttpResponse,
    answer,
    decode,
)
from holdfast.store import Space, Tx

_NDJSON: Final = ("application/x-ndjson", "application/ndjson", "application/jsonl")
_PIXEL: Final = bytes.fromhex(
    "47494638396101000100800000000000ffffff21f90401000000002c00000000010001000002024401003b"
)

T = TypeVar("T")


# --- events --------------------------------------------------------------------------------------


@route("POST", "/{space}/events")
async def events(api: HttpApi, request: HttpRequest, found: Found) -> HttpResponse:
    """Receives one event, an array of them, or a stream of lines, in bounded memory."""
    identity = await api.identify(request)
    identity.require("write", space=found["space"], layer="events")
    space = await api.dispatcher.space(found["space"])
    if request.content_type in _NDJSON:
        return await _ingest(api, request, identity, space, request.chunks())
    is_json = request.content_type != MSGPACK
    whole = await request.body()
    if is_json and _are_lines(whole):
        return await _ingest(api, request, identity, space, _one_chunk(whole))
    body = await api.decoded(whole, lambda body: decode(request, body, Any), is_json=is_json)
    address = api.address_of(request)
    if isinstance(body, list):
        events = [address_event(each, address) for each in body]
        reply = await api.dispatcher.write(space, partial(_send_many, events))
    else:
        event = address_event(body, address)
        reply = await api.dispatcher.write(space, lambda tx: tx.events.send(event))
    return answer(request, {"result": reply})


def _send_many(events: list[Any], tx: Tx) -> Any:
    return tx.events.send_many(events)


def _are_lines(body: bytes) -> bool:
    """Returns whether the body has one event per line, without a content type that says so: the
    first line is complete JSON."""
    # Copies only the beginning of a large body.
    begin = body[: MAX_STREAM_LINE_BYTES + 1].lstrip()
    first, _, rest = begin.partition(b"\n")
    if first is begin or not (rest.strip() or len(body) > MAX_STREAM_LINE_BYTES + 1):
        return False
    try:
        return isinstance(msgspec.json.decode(first), dict)
    except (ValueError, RecursionError):
        return False


async def _one_chunk(body: bytes) -> AsyncIterator[bytes]:
    yield body


async def _ingest(
    api: HttpApi,
    request: HttpRequest,
    identity: Identity,
    space: Space,
    chunks: AsyncIterator[bytes],
) -> HttpResponse:
    """Sends a stream step by step; a refused line fails alone, as in a batch. The stream may last
    for hours, so each step is refused if its user may no longer write."""
    accepted, refused = 0, 0
    errors: list[dict[str, Any]] = []
    begin = 0
    address = api.address_of(request)
    authenticator = api.dispatcher.authenticator
    async for lines in _steps(chunks):
        authenticator.recheck(identity).require("write", space=space.name, layer="events")
        positions, events, bad = _read_lines(begin, lines)
        events = [address_event(event, address) for event in events]
        if events:
            reply = await api.dispatcher.write(space, partial(_send_many, events))
            accepted += reply.accepted
            bad += [(positions[error.position], error.message) for error in reply.errors]
        refused += len(bad)
        left = MAX_REPORTED_EVENTS - len(errors)
        errors += [{"position": at, "message": message} for at, message in sorted(bad)[:left]]
        begin += len(lines)
    result: dict[str, Any] = {"accepted": accepted, "errors": errors}
    if refused > len(errors):
        result["refused"] = refused
    return HttpResponse(msgspec.json.encode({"result": result}))


def _read_lines(
    begin: int, lines: list[bytes]
) -> tuple[list[int], list[Any], list[tuple[int, str]]]:
    """Returns the events of the lines with their positions, and the lines that are not JSON."""
    positions, events, bad = [], [], []
    for position, line in enumerate(lines, begin):
        try:
            events.append(msgspec.json.decode(line))
            positions.append(position)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            bad.append((position, f"the line is not JSON: {error}"))
    return positions, events, bad


async def _steps(chunks: AsyncIterator[bytes]) -> AsyncIterator[list[bytes]]:
    """Yields the lines of a stream, without blank ones, some at a time."""
    rest, step, size = b"", [], 0
    async for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        if len(rest) > MAX_STREAM_LINE_BYTES:
            raise RequestTooLarge(
                f"a line has more than {MAX_STREAM_LINE_BYTES} bytes",
                hint="Send each event on a line of its own, with smaller attributes.",
            )
        for line in lines:
            if line.strip():
                step.append(line)
                size += len(line)
            if len(step) >= EVENTS_PER_STREAM_STEP or size >= STREAM_STEP_BYTES:
                yield step
                step, size = [], 0
    if rest.strip():
        step.append(rest)
    if step:
        yield step


@route("GET HEAD", "/{space}/events/pixel.gif")
async def pixel(api: HttpApi, request: HttpRequest, found: Found) -> HttpResponse:
    """Returns a one-pixel image that counts its views; off unless the server was started with it.

    Browsers send no credentials with an image, so it asks for none.
    """
    if not api.dispatcher.allows_pixel:
        raise NotFound("the pixel is off", hint="Start the server with --pixel.")
    if not await api.dispatcher.has_space(found["space"]):
        raise NotFound(
            f"there is no space {found['space']!r:.100}",
            hint="The pixel counts in spaces that exist: it is open to everyone.",
        )
    attributes: dict[str, list[str]] = {}
    for name, value in request.all_parameters:
        attributes.setdefault(name, []).append(value)
    name = attributes.pop("name", [""])[-1]
    event = {
        "name": name,
        "attributes": attributes,
        "ip": api.address_of(request) or None,
    }
    space = await api.dispatcher.space(found["space"])
    await api.dispatcher.write(space, lambda tx: tx.events.send(event))
    headers = {"cache-control": "no-store"}
    return HttpResponse(_PIXEL, content_type="image/gif", headers=headers)


# --- notices -------------------------------------------------------------------------------------


@route("GET HEAD", "/{space}/notices")
async def notices(api: HttpApi, request: HttpRequest, found: Found) -> HttpResponse:
    """Streams notices as server-sent events, from now on; `?topic=` names a prefix of their
    topics."""
    topic = request.parameter("topic")
    layer, divider, _ = topic.replace(":", ".").partition(".")
    layer = layer if divider else "*"
    identity = await api.identify(request)
    identity.require("read", space=found["space"], layer=layer)
    for name in request.parameters:
        if name != "topic":
            raise BadInput(f"unknown parameter {name!r}", hint="The only one is `topic`.")
    space = await api.dispatcher.space(found["space"])
    headers = {"cache-control": "no-store"}

    def may_receive() -> bool:
        now = api.dispatcher.authenticator.current_identity(identity)
        return now is not None and now.may("read", space=space.name, layer=layer)

    stream = _notices(api, space, topic, api.address_of(request), may_receive)
    return HttpResponse(stream, content_type=EVENT_STREAM, headers=headers)


async def _notices(
    api: HttpApi, space: Space, topic: str, address: str, may_receive: Callable[[], bool]
) -> AsyncGenerator[bytes]:
    """Yields the events until the server stops, the reader falls too far behind, or it loses its
    permission."""
    queue: deque[_NoticeEvent] = deque()
    queued_bytes = 0
    overrun = False
    news = _News()

    def on_notice(notice: Notice) -> None:
        nonlocal queued_bytes, overrun
        if len(queue) >= MAX_QUEUED_STREAM_NOTICES or queued_bytes > MAX_QUEUED_STREAM_BYTES:
            overrun = True
        else:
            queue.append(_event_of(notice))
            queued_bytes += len(notice.payload)
        news.tell()

    listen = api.dispatcher.notice_feed.listen
    end = api.dispatcher.listen(
        space, lambda prefix: listen(on_notice, space=prefix, topic_prefix=topic)
    )
    stopped = asyncio.ensure_future(api.stopped.wait())
    stopped.add_done_callback(lambda _: news.tell())
    try:
        yield b": listening\n\n"
        while not overrun:
            if not queue and not stopped.done():
                await news.wait(STREAM_KEEP_ALIVE_SECONDS)
            # A notice wakes all streams at once; together they would hold up everyone.
            await api.dispatcher.turns.wait_for_time(address)
            if not may_receive():
                return
            if queue:
                event = queue.popleft()
                queued_bytes -= len(event.notice.payload)
                yield event.encoded
                del event  # others may have sent it already: it is large, and not kept
                continue
            if stopped.done():
                return
            yield b": still here\n\n"
    finally:
        stopped.cancel()
        end()


class _News:
    """Wakes one stream, with a single future: tasks for each of thousands would take longer than
    all else that a notice costs."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._told: asyncio.Future[None] | None = None

    def tell(self) -> None:
        if self._told is not None and not self._told.done():
            self._told.set_result(None)

    async def wait(self, seconds: float) -> None:
        """Returns after the next `tell`, or when so many seconds have passed."""
        self._told = self._loop.create_future()
        timer = self._loop.call_later(seconds, self.tell)
        try:
            await self._told
        finally:
            timer.cancel()
            self._told = None


async def next_or_none(
    event: Coroutine[Any, Any, T], stopped: asyncio.Future[Any], *, seconds: float
) -> T | None:
    """Returns the result of `event`; None if the server stops, or after `seconds`.

    A stream whose client has gone is cancelled while it waits here. The task of the event is then
    cancelled too: it would never end, and only the collector would find it.
    """
    task = asyncio.ensure_future(event)
    try:
        await asyncio.wait({task, stopped}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        return task.result() if task.done() else None
    finally:
        task.cancel()


class _NoticeEvent:
    """A notice as a server-sent event, encoded once for all streams that are to send it."""

    def __init__(self, notice: Notice) -> None:
        self.notice: Final = notice

    @cached_property
    def encoded(self) -> bytes:
        topic = " ".join(self.notice.topic.splitlines()).encode(errors="replace")
        data = b"".join(b"data: %b\n" % line.encode() for line in _lines(self.notice.payload))
        return b"event: %b\n%b\n" % (topic, data)


# By the notice's address, which no other object gets as long as the event holds the notice.
_events: Final[WeakValueDictionary[int, _NoticeEvent]] = WeakValueDictionary()


def _event_of(notice: Notice) -> _NoticeEvent:
    """Returns one event object for all streams that still have to send the notice."""
    event = _events.get(id(notice))
    if event is None:
        event = _events[id(notice)] = _NoticeEvent(notice)
    return event


def _lines(payload: bytes) -> list[str]:
    """Returns text as it is, msgpack of the layers as JSON, and other bytes as base64 in JSON."""
    try:
        # Only these end a line of an event; a text may hold other breaks, such as U+2028.
        return payload.decode().replace("\r\n", "\n").replace("\r", "\n").split("\n")
    except UnicodeDecodeError:
        pass
    try:
        decoded = _as_text(msgspec.msgpack.decode(payload))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        decoded = {"base64": payload}
    return [msgspec.json.encode(decoded).decode()]


def _as_text(decoded: Any) -> Any:
    """Returns bytes, such as keys, as text if they are UTF-8."""
    if isinstance(decoded, list):
        return [_as_text(each) for each in decoded]
    return decoded.decode() if isinstance(decoded, bytes) else decoded
