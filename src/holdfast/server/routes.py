"""The paths of the HTTP door that are the same for every layer, and those that tell how it is.

`POST /{space}/{layer}/{operation}` runs an operation: the body is an object of its arguments, the
answer `{"result": ...}`, in JSON or msgpack by content type. `POST /{space}/batch` runs several as
one transaction.
"""

from typing import Any, Final

import msgspec

from holdfast.errors import BadInput, ServerBusy, StoreFull, StoreUnusable, at_position
from holdfast.metrics.prometheus import Family, exposition
from holdfast.operations import Operation, find, refuse_in_batch
from holdfast.server import payloads
from holdfast.server.batch_limits import Meter, check_steps
from holdfast.server.client_address import address_events
from holdfast.server.http import HttpDoor, route
from holdfast.server.http_exchange import MSGPACK, Request, Response, answer, decode
from holdfast.server.openapi import document
from holdfast.server.server_metrics import families
from holdfast.server.start_page import start_page
from holdfast.store import Space, View
from holdfast.tables import EVERY_DOMAIN

_PLAIN: Final = "text/plain; charset=utf-8"
_PROMETHEUS: Final = "text/plain; version=0.0.4; charset=utf-8"
_OPENMETRICS: Final = "application/openmetrics-text"

_BATCH: Final = 'A batch is an array of {"operation": "jobs.put", "arguments": {"queue": ...}}.'

Found = dict[str, str]


class BatchStep(msgspec.Struct, forbid_unknown_fields=True):
    """One operation of a batch."""

    operation: str  # "jobs.put"
    arguments: msgspec.Raw = msgspec.Raw()  # what they are is known when the operation is


# --- how it is -----------------------------------------------------------------------------------


@route("GET HEAD", "/livez")
async def livez(door: HttpDoor, request: Request, found: Found) -> Response:
    """The process runs."""
    return Response(b"ok\n", content_type=_PLAIN)


@route("GET HEAD", "/readyz")
async def readyz(door: HttpDoor, request: Request, found: Found) -> Response:
    """The store answers: a read and an empty commit succeed, and there is room to write."""
    if door.execution.stopping:
        raise ServerBusy("the server is stopping")
    execution = door.execution
    await execution.look(execution.store, lambda view: view.raw.get(b"\0"))
    await execution.write(execution.store, lambda tx: None)
    try:
        await execution.reading(execution.store.engine.refuse_full)
    except StoreFull as error:
        raise StoreUnusable(error.message, hint=error.hint) from None
    return Response(b"ok\n", content_type=_PLAIN)


@route("GET HEAD", "/metrics")
async def metrics(door: HttpDoor, request: Request, found: Found) -> Response:
    """The server's own figures, and the metrics of the default space that say `expose`."""
    space = door.execution.store
    (await door.who(request)).require("read", space=space.name, layer="metrics")
    figures = {**await door.execution.reading(space.stats), **door.execution.figures()}
    return await _exposed(door, request, space, families(figures))


@route("GET HEAD", "/{space}/metrics/prometheus")
async def space_metrics(door: HttpDoor, request: Request, found: Found) -> Response:
    """The metrics of a space that say `expose`."""
    (await door.who(request)).require("read", space=found["space"], layer="metrics")
    return await _exposed(door, request, await door.execution.space(found["space"]), [])


async def _exposed(door: HttpDoor, request: Request, space: Space, own: list[Family]) -> Response:
    openmetrics = request.accepts(_OPENMETRICS)

    def read(view: View) -> str:
        return exposition(view.raw, view.raw.now, own=own, openmetrics=openmetrics)

    exposed = await door.execution.look(space, read, is_large=True)
    kind = f"{_OPENMETRICS}; version=1.0.0; charset=utf-8" if openmetrics else _PROMETHEUS
    return Response(exposed.encode(errors="replace"), content_type=kind)


@route("GET HEAD", "/openapi.json")
async def openapi(door: HttpDoor, request: Request, found: Found) -> Response:
    return Response(document())


@route("GET HEAD", "/")
async def start(door: HttpDoor, request: Request, found: Found) -> Response:
    host = request.headers.get("host", "localhost")
    resp = door.execution.resp_address
    page = start_page(host, request.root, scheme=door.scheme_of(request), resp=resp)
    return Response(page, content_type="text/html; charset=utf-8")


# --- operations ----------------------------------------------------------------------------------


@route("POST", "/{space}/batch")
async def batch(door: HttpDoor, request: Request, found: Found) -> Response:
    """Several operations as one transaction: all of it, or none."""
    identity = await door.who(request)
    is_json = request.content_type != MSGPACK
    planned: list[tuple[Operation, Any]] = []
    steps = _steps(request, await request.body())
    check_steps(len(steps))
    for position, step in enumerate(steps):
        try:
            operation = find(*_split(step.operation))
            identity.require_operation(operation, found["space"])
            refuse_in_batch(operation)
            _refuse_every_domain(operation, found["space"])
            payload = bytes(step.arguments) or _no_arguments(is_json)
            given = payloads.read_arguments(
                operation, payload, is_json=is_json, integers_as_text=request.integers_as_text
            )
            if operation.declaration.addressed:
                address_events(operation, given, door.address_of(request))
            planned.append((operation, given))
        except Exception as error:
            at_position(error, position)
            raise

    def work(tx: View) -> list[Any]:
        results = []
        meter = Meter()
        for position, (operation, arguments) in enumerate(planned):
            try:
                result = operation.call(getattr(tx, operation.layer), arguments)
                results.append(msgspec.Raw(_encode(request, operation, result)))
                meter.took(len(results[-1]))
            except Exception as error:
                at_position(error, position)
                raise
        return results

    space, execution = await door.execution.space(found["space"]), door.execution
    only_reads = all(operation.kind == "read" for operation, _ in planned)
    if not only_reads:
        run = execution.write(space, work)
    else:
        run = execution.look(space, work, is_large=len(planned) > 1)
    return answer(request, {"result": await run}, is_written=True)


def _steps(request: Request, body: bytes) -> list[BatchStep]:
    try:
        steps: list[BatchStep] = decode(request, body, list[BatchStep])
    except msgspec.DecodeError as error:
        raise BadInput(str(error), hint=_BATCH) from None
    return steps


def _encode(request: Request, operation: Operation, result: Any) -> bytes:
    """A result as it is sent: its bytes count while the batch can still be refused."""
    encode = payloads.encoder(
        operation,
        is_json=request.content_type != MSGPACK,
        integers_as_text=request.integers_as_text,
    )
    return encode(result)


def _no_arguments(is_json: bool) -> bytes:
    return b"{}" if is_json else b"\x80"


def _split(name: str) -> tuple[str, str]:
    layer, _, operation = name.partition(".")
    return layer, operation


def _refuse_every_domain(operation: Operation, space: str) -> None:
    if operation.layer == "tables" and space == EVERY_DOMAIN:
        raise BadInput(f"{operation.full_name} in the space * is more than one transaction")


@route("POST", "/{space}/{layer}/{operation}")
async def operation(door: HttpDoor, request: Request, found: Found) -> Response:
    """One operation, by the names of `operations.py`."""
    operation = find(found["layer"], found["operation"])
    (await door.who(request)).require_operation(operation, found["space"])
    is_json = request.content_type != MSGPACK
    payload = await request.body() or _no_arguments(is_json)
    arguments = payloads.read_arguments(
        operation, payload, is_json=is_json, integers_as_text=request.integers_as_text
    )
    if operation.declaration.addressed:
        address_events(operation, arguments, door.address_of(request))
    space = await door.execution.space(found["space"])
    result = await _run(door, request, space, operation, arguments)
    return answer(request, {"result": payloads.travelling(operation, result, is_json=is_json)})


async def _run(
    door: HttpDoor, request: Request, space: Space, operation: Operation, arguments: Any
) -> Any:
    running = door.execution.run(space, operation, arguments)
    return await (door.until_gone(request, running) if operation.kind == "wait" else running)
