"""HTTP paths that are the same for every layer, and those about the server's health.

`POST /{space}/{layer}/{operation}` runs an operation: the body is an object of its arguments, the
answer `{"result": ...}`, in JSON or msgpack by content type. `POST /{space}/batch` runs several as
one transaction.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import msgspec

from holdfast.engine.contract import TooLong
from holdfast.errors import BadInput, ServerBusy, StoreFull, StoreUnusable, at_position
from holdfast.limits import (
    DECODED_ON_LOOP_BYTES,
    ENGINE_FIGURES_SECONDS,
    LARGE_PIECE_BYTES,
    MAX_BATCH_VALUES,
    MAX_SMALL_REQUEST_BYTES,
    READY_SECONDS,
)
from holdfast.metrics.exposition import exposition, exposition_without_store
from holdfast.metrics.prometheus import Family
from holdfast.operations import OPERATIONS, Operation, find, refuse_in_batch
from holdfast.server import payloads
from holdfast.server.auth import Identity
from holdfast.server.batch_limits import BatchMeter, check_steps
from holdfast.server.call_tracing import ended_with
from holdfast.server.client_address import address_events
from holdfast.server.dispatcher import Dispatcher
from holdfast.server.http import AtOnce, Found, HttpApi, route
from holdfast.server.http_exchange import (
    MSGPACK,
    HttpRequest,
    HttpResponse,
    answer_results,
    decode,
)
from holdfast.server.job_metrics import job_families
from holdfast.server.openapi import document
from holdfast.server.server_metrics import families
from holdfast.server.start_page import start_facts, start_page
from holdfast.store import Space, View
from holdfast.tables import EVERY_DOMAIN

_PLAIN: Final = "text/plain; charset=utf-8"
_PROMETHEUS: Final = "text/plain; version=0.0.4; charset=utf-8"
_OPENMETRICS: Final = "application/openmetrics-text"

_MSGPACK_RESULT: Final = msgspec.msgpack.encode({"result": None})[:-1]

_BATCH: Final = 'A batch is an array of {"operation": "jobs.put", "arguments": {"queue": ...}}.'


class BatchStep(msgspec.Struct, forbid_unknown_fields=True):
    """One operation of a batch."""

    operation: str  # "jobs.put"
    arguments: msgspec.Raw = msgspec.Raw()  # decoded once the operation is known


# --- health and metrics --------------------------------------------------------------------------


@route("GET HEAD", "/livez")
async def livez(api: HttpApi, request: HttpRequest, found: Found) -> HttpResponse:
    """Answers as long as the process runs."""
    return HttpResponse(b"ok\n", content_type=_PLAIN)


@route("GET HEAD", "/readyz")
async def readyz(api: HttpApi, request: HttpRequest, found: Found) -> HttpResponse:
    """Answers 200 if a read and an empty commit succeed and the store has space to write."""
    if api.dispatcher.stopping:
        raise ServerBusy("the server is stopping")
    try:
        await asyncio.wait_for(_try_store(api.dispatcher), READY_SECONDS)
    except StoreFull as error:
        raise StoreUnusable(error.message, hint=error.hint) from None
    except TimeoutError:
        message = f"the store did not answer within {READY_SECONDS:g} seconds"
        raise StoreUnusable(message, hint="Check the server of the engine, or the disk.") from None
    return HttpResponse(b"ok\n", content_type=_PLAIN)


async def _try_store(dispatcher: Dispatcher) -> None:
    await dispatcher.read(dispatcher.store, lambda view: view.raw.get(b"\0"))
    await dispatcher.write(dispatcher.store, lambda tx: None)
    space = dispatcher.store
    await dispatcher.reading(partial(space.engine.refuse_full, space=space.prefix))


@route("GET HEAD", "/metrics")
async def metrics(api: HttpApi, request: HttpRequest, found: Found) -> HttpResponse:
    """Returns the server's own metrics, and the queues and exposed metrics of the default space;
    without those of the store if its engine does not answer."""
    space = api.dispatcher.store
    who = await api.identify(request)
    who.require("read", space=space.name, layer="metrics")
    try:
        # In a thread: it flushes all commits, and reads the file.
        stats = api.dispatcher.read_in_thread(space.stats)
        figures = await asyncio.wait_for(stats, ENGINE_FIGURES_SECONDS)
        own = families({**figures, "engine_up": 1, **api.dispatcher.figures()})
        return await _exposed(api, request, who, space, own)
    except (TimeoutError, StoreUnusable):
        own = families({"engine_up": 0, **api.dispatcher.figures()})
        text = exposition_without_store(own, openmetrics=request.accepts(_OPENMETRICS))
        return _exposition_page(request, text)


@route("GET HEAD", "/{space}/metrics/prometheus")
async def space_metrics(api: HttpApi, request: HttpRequest, found: Found) -> HttpResponse:
    """Returns the queues of a space, and its metrics with `expose`."""
    who = await api.identify(request)
    who.require("read", space=found["space"], layer="metrics")
    return await _exposed(api, request, who, await api.dispatcher.space(found["space"]), [])


async def _exposed(
    api: HttpApi, request: HttpRequest, who: Identity, space: Space, own: list[Family]
) -> HttpResponse:
    """Returns `own` and the metrics of a space; also its queues, for clients that may read its
    jobs."""
    with_jobs = who.may("read", space=space.name, layer="jobs")
    openmetrics = request.accepts(_OPENMETRICS)

    def read(view: View) -> str:
        jobs = job_families(space.name, view.raw) if with_jobs else []
        return exposition(view.raw, view.raw.now, own=[*own, *jobs], openmetrics=openmetrics)

    return _exposition_page(request, await api.dispatcher.read(space, read, is_large=True))


def _exposition_page(request: HttpRequest, text: str) -> HttpResponse:
    openmetrics = request.accepts(_OPENMETRICS)
    kind = f"{_OPENMETRICS}; version=1.0.0; charset=utf-8" if openmetrics else _PROMETHEUS
    return HttpResponse(text.encode(errors="replace"), content_type=kind)


@route("GET HEAD", "/openapi.json")
async def openapi(api: HttpApi, request: HttpRequest, found: Found) -> HttpResponse:
    # In a thread: the first one takes a tenth of a second to make.
    return HttpResponse(await api.dispatcher.read_in_thread(document))


@route("GET HEAD", "/")
async def start(api: HttpApi, request: HttpRequest, found: Found) -> HttpResponse:
    """Redirects browsers to the dashboard, and tells programs the addresses of everything."""
    host, resp = request.headers.get("host", "localhost"), api.dispatcher.resp_address
    scheme = api.scheme_of(request)
    if not request.accepts("text/html"):
        has_ui = api.dispatcher.serves_ui
        return HttpResponse(start_facts(host, request.root, scheme=scheme, resp=resp, ui=has_ui))
    if api.dispatcher.serves_ui:
        return HttpResponse(status=303, headers={"location": f"{request.root}/ui/"})
    page = start_page(host, request.root, scheme=scheme, resp=resp)
    return HttpResponse(page, content_type="text/html; charset=utf-8")


# --- operations ----------------------------------------------------------------------------------


@route("POST", "/{space}/batch")
async def batch(api: HttpApi, request: HttpRequest, found: Found) -> HttpResponse:
    """Runs several operations as one transaction: all of them, or none."""
    identity = await api.identify(request)
    is_json = request.content_type != MSGPACK
    planned: list[tuple[Operation, Any]] = []
    steps = await api.decoded(
        await request.body(),
        partial(_steps, request),
        is_json=is_json,
        most_values=MAX_BATCH_VALUES,
    )
    check_steps(len(steps))
    for position, step in enumerate(steps):
        await api.dispatcher.turns.wait_for_time(request.peer)
        try:
            operation = find(*_split(step.operation))
            identity.require_operation(operation, found["space"])
            refuse_in_batch(operation)
            _refuse_every_domain(operation, found["space"])
            payload = bytes(step.arguments) or _no_arguments(is_json)
            given = await api.decoded(payload, _reading(request, operation), is_json=is_json)
            if operation.declaration.addressed:
                address_events(operation, given, api.address_of(request))
            planned.append((operation, given))
        except Exception as error:
            at_position(error, position)
            raise

    def work(tx: View) -> list[bytes]:
        results: list[bytes] = []
        meter = BatchMeter()
        for position, (operation, arguments) in enumerate(planned):
            try:
                result = operation.call(getattr(tx, operation.layer), arguments)
                # Encoded here, because a batch with too large an answer is refused.
                results.append(_encoder(request, operation)(result))
                meter.note_answer(len(results[-1]))
            except Exception as error:
                at_position(error, position)
                raise
        return results

    space, dispatcher = await api.dispatcher.space(found["space"]), api.dispatcher

    def respond(tx: View) -> HttpResponse:
        return answer_results(request, work(tx))

    call = api.traced(request, "batch", space.name)
    if all(operation.kind == "read" for operation, _ in planned):
        return await ended_with(call, dispatcher.read(space, respond, is_large=len(planned) > 1))
    run = respond if call is None else call.around(respond)
    return await ended_with(call, dispatcher.write(space, run))


def _steps(request: HttpRequest, body: bytes) -> list[BatchStep]:
    try:
        if len(body) > LARGE_PIECE_BYTES:  # counting first takes a fraction of the time
            check_steps(len(decode(request, body, list[msgspec.Raw])))
        steps: list[BatchStep] = decode(request, body, list[BatchStep])
    except msgspec.DecodeError as error:
        raise BadInput(str(error), hint=_BATCH) from None
    return steps


def _encoder(request: HttpRequest, operation: Operation) -> Callable[[Any], bytes]:
    """Returns the encoder of a result, in the format that the request names."""
    return payloads.encoder(
        operation,
        is_json=request.content_type != MSGPACK,
        integers_as_text=request.integers_as_text,
    )


def _reading(request: HttpRequest, operation: Operation) -> Callable[[bytes], Any]:
    """Returns the decoder of an operation's arguments, in the format that the request names."""
    return partial(
        payloads.read_arguments,
        operation,
        is_json=request.content_type != MSGPACK,
        integers_as_text=request.integers_as_text,
    )


def _no_arguments(is_json: bool) -> bytes:
    return b"{}" if is_json else b"\x80"


def _split(name: str) -> tuple[str, str]:
    layer, _, operation = name.partition(".")
    return layer, operation


def _refuse_every_domain(operation: Operation, space: str) -> None:
    if operation.layer == "tables" and space == EVERY_DOMAIN:
        raise BadInput(f"{operation.full_name} in the space * is more than one transaction")


def read_at_once(found: Found) -> AtOnce | None:
    """Returns the function that answers a small call of a reading operation, with all checks of
    `operation`."""
    name, space_name = f"{found['layer']}.{found['operation']}", found["space"]
    operation = OPERATIONS.get(name)
    if operation is None or operation.kind != "read" or operation.declaration.addressed:
        return None

    def answer(api: HttpApi, request: HttpRequest, body: bytes) -> HttpResponse | None:
        dispatcher, headers = api.dispatcher, request.headers
        space = dispatcher.known_space(space_name)
        if space is None or dispatcher.reads_in_threads or dispatcher.tracer is not None:
            return None
        if len(body) > dispatcher.bounds.request_bytes or "content-encoding" in headers:
            return None
        api.refuse_browsers(request)
        identity = api.identify_at_once(request)
        if identity is None:
            return None
        identity.require_operation(operation, space_name)
        request.refuse_if_memory_is_short(len(body))
        is_json = request.content_type != MSGPACK
        arguments = payloads.read_arguments(
            operation,
            body or _no_arguments(is_json),
            is_json=is_json,
            integers_as_text=request.integers_as_text,
        )
        if dispatcher.is_for_all_domains(space, operation) or dispatcher.large_reads.expects(
            name, arguments
        ):
            return None
        try:
            return dispatcher.read_on_loop(space, _read(api, request, operation, arguments), name)
        except TooLong:
            return None

    return answer


@route("POST", "/{space}/{layer}/{operation}", at_once=read_at_once)
async def operation(api: HttpApi, request: HttpRequest, found: Found) -> HttpResponse:
    """Calls one operation, by its name in `operations.py`."""
    operation = find(found["layer"], found["operation"])
    identity = await api.identify(request)
    identity.require_operation(operation, found["space"])
    is_json = request.content_type != MSGPACK
    payload = await request.body() or _no_arguments(is_json)
    arguments = await api.decoded(payload, _reading(request, operation), is_json=is_json)
    if operation.declaration.addressed:
        address_events(operation, arguments, api.address_of(request))
    space = await api.dispatcher.space(found["space"])
    if operation.kind == "read" and not api.dispatcher.is_for_all_domains(space, operation):
        is_large = len(payload) > DECODED_ON_LOOP_BYTES
        return await _read_result(api, request, space, operation, arguments, is_large=is_large)
    is_small = len(payload) <= MAX_SMALL_REQUEST_BYTES
    return await _run(api, request, identity, space, operation, arguments, is_small)


async def _read_result(
    api: HttpApi,
    request: HttpRequest,
    space: Space,
    operation: Operation,
    arguments: Any,
    *,
    is_large: bool,
) -> HttpResponse:
    """Runs a read. Its answer is encoded where it runs, because encoding a large one takes time,
    too."""
    read = _read(api, request, operation, arguments)
    call = api.traced(request, operation.full_name, space.name)
    looking = api.dispatcher.read(space, read, operation.full_name, arguments, is_large=is_large)
    return await ended_with(call, looking)


def _read(
    api: HttpApi, request: HttpRequest, operation: Operation, arguments: Any
) -> Callable[[View], HttpResponse]:
    """Returns the work of a read, with the response as its result."""
    work, encode = (
        api.dispatcher.recorder.work_of(operation, arguments),
        _encoder(request, operation),
    )

    def read(view: View) -> HttpResponse:
        written = encode(work(view))
        api.dispatcher.large_reads.answered(operation.full_name, len(written))
        return _respond(written, request.content_type == MSGPACK)

    return read


def _respond(written: bytes, is_msgpack: bool) -> HttpResponse:
    """Returns an encoded result as the response."""
    if is_msgpack:
        return HttpResponse(b"".join((_MSGPACK_RESULT, written)), content_type=MSGPACK)
    return HttpResponse(b"".join((b'{"result":', written, b"}")))


async def _run(
    api: HttpApi,
    request: HttpRequest,
    identity: Identity,
    space: Space,
    operation: Operation,
    arguments: Any,
    is_small: bool,
) -> HttpResponse:
    encode, is_msgpack = _encoder(request, operation), request.content_type == MSGPACK
    call = api.traced(request, operation.full_name, space.name)

    def recheck() -> None:
        api.dispatcher.authenticator.recheck(identity).require_operation(operation, space.name)

    running = api.dispatcher.run(
        space,
        operation,
        arguments,
        is_small=is_small,
        traced=call,
        encode=lambda result: _respond(encode(result), is_msgpack),
        recheck=recheck,
    )
    if operation.kind == "wait":
        running = api.while_connected(request, running)
    return await (running if call is None else ended_with(call, running))
