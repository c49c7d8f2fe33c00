"""Flux's HTTP API, below `/{space}/flux`: a Flux client works by changing its base URL.

`FluxApi` serves it at the root of its own address (`holdfast serve --flux`).

Every path and method that is not in `ROUTES` gets Flux's own 404. Each handler reads parameters,
calls one operation of the events layer, and writes the answer in Flux's form.
"""

import re
from collections.abc import Callable, Coroutine
from hashlib import sha1
from itertools import islice
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl
from uuid import uuid4

import msgspec

from holdfast.compat.flux.events import FluxError, FluxParameters, event_of, events_in
from holdfast.errors import (
    BadInput,
    CountersWithoutTimes,
    Forbidden,
    HoldfastError,
    NotFound,
    UnknownSchema,
    WrongKind,
)
from holdfast.events import MemberPage, SendManyReply, stored_results
from holdfast.events.deployment import StoredSchema, schema_of
from holdfast.events.reads import Reads
from holdfast.events.set_reads import Cursor, SetOperation
from holdfast.limits import EVENTS_PER_STREAM_STEP, MAX_PAGE_MEMBERS
from holdfast.server.call_tracing import TracedCall, ended_with
from holdfast.server.dispatcher import Dispatcher
from holdfast.server.http import ANY_METHOD, HttpApi, route
from holdfast.server.http_exchange import HttpRequest, HttpResponse, error_headers
from holdfast.server.large_reads import counts_many
from holdfast.store import Space, Tx, View

MAX_RESULTS: Final = 50
TOP_RESULTS: Final = 100
READ_ONLY: Final = "This Flux server is read-only"
OLD_SCHEMA: Final = "flux"  # the schema of events that are sent by GET
_ID: Final = re.compile(r"[0-9a-f]{8}")
_FORM: Final = "application/x-www-form-urlencoded"


class FluxRequest(NamedTuple):
    """One request to the API."""

    api: HttpApi
    request: HttpRequest
    space: Space
    parameters: FluxParameters
    path: list[str]
    traced: TracedCall | None = None

    async def read(self, work: Callable[[View], Any], *, is_large: bool = False) -> Any:
        kind = f"flux.{self.path[0]}"
        return await self.api.dispatcher.read(self.space, work, kind, is_large=is_large)

    async def write(self, work: Callable[[Tx], Any]) -> Any:
        run = work if self.traced is None else self.traced.around(work)
        return await self.api.dispatcher.write(self.space, run)


Handler = Callable[[FluxRequest], Coroutine[Any, Any, Any]]


def json_answer(content: Any, status: int = 200) -> HttpResponse:
    return HttpResponse(msgspec.json.encode(content), status=status)


async def serve(api: HttpApi, request: HttpRequest, found: dict[str, str]) -> HttpResponse:
    """Answers every path below the base."""
    return await _serve(api, request, found["space"], request.segments[2:])


class FluxApi(HttpApi):
    """An ASGI application that serves only Flux's API, for one space, at the root."""

    def __init__(self, dispatcher: Dispatcher, space: str) -> None:
        super().__init__(dispatcher)
        self._space = space

    async def _answer(self, request: HttpRequest) -> HttpResponse:
        try:
            self.refuse_browsers(request)
        except HoldfastError as error:
            return json_answer({"error": error.message}, error.status)
        return await _serve(self, request, self._space, request.segments)


async def _serve(api: HttpApi, request: HttpRequest, name: str, path: list[str]) -> HttpResponse:
    try:
        return await _answer(api, request, name, path)
    except FluxError as error:
        return json_answer({"error": error.message}, error.status)
    except Exception as error:
        known = api.dispatcher.as_known_error(error, request.ids)
        missing = isinstance(known, NotFound)
        message = "Not Found" if missing else known.message
        response = json_answer({"error": message}, known.status)
        response.headers.update(error_headers(known))
        return response


for _path in ("/{space}/flux", "/{space}/flux/{rest...}"):
    route(ANY_METHOD, _path)(serve)


async def _answer(api: HttpApi, request: HttpRequest, name: str, path: list[str]) -> HttpResponse:
    method = "GET" if request.method == "HEAD" else request.method
    handler, role = _find(method, path)
    identity = await api.identify(request)
    sends = handler in (post_events, get_event)
    if sends and api.dispatcher.flux_read_only:
        raise FluxError(READ_ONLY, 501)
    try:
        identity.require(role, space=name, layer="events")  # type: ignore[arg-type]  # of ROUTES
    except Forbidden:
        if sends:
            raise FluxError(READ_ONLY, 501) from None
        raise
    parameters = list(request.all_parameters)
    if method == "POST" and path == ["distinct"] and request.content_type == _FORM:
        parameters += parse_qsl(
            (await request.body()).decode(errors="replace"), keep_blank_values=True
        )
    space = await api.dispatcher.space(name)
    traced = api.traced(request, f"flux.{handler.__name__}", name)
    call = FluxRequest(api, request, space, FluxParameters(parameters), path, traced)
    answer = await ended_with(traced, handler(call))
    return HttpResponse(b"") if answer is None else json_answer(answer)


# --- schemas and events -------------------------------------------------------------------------


async def post_schema(call: FluxRequest) -> Any:
    body = await call.request.body()
    id = sha1(body, usedforsecurity=False).hexdigest()[:8]
    try:
        await call.write(lambda tx: tx.events.deploy(body, id, "flux"))
    except BadInput as error:
        raise FluxError(error.message) from None
    return _schema(id)


async def get_schemas(call: FluxRequest) -> Any:
    dialects = await call.read(lambda view: view.events.dialects())
    return [_schema(name) for name, dialect in dialects.items() if _is_id(name, dialect)]


async def get_schema(call: FluxRequest) -> Any:
    id = call.path[1]
    return {"id": id, "schema": await call.read(lambda view: _posted(view, id).plain())}


async def post_events(call: FluxRequest) -> Any:
    """Sends events 1,000 at a time, in order; answers once all of them are committed."""
    id = call.path[1]
    await call.read(lambda view: _posted(view, id))
    address = call.api.address_of(call.request)
    body = await call.request.body()
    pairs = await call.api.decoded(body, lambda body: list(events_in(body)))
    remaining = iter([event_of(name, attributes, address) for name, attributes in pairs])
    accepted = 0
    errors: list[dict[str, Any]] = []
    while step := list(islice(remaining, EVENTS_PER_STREAM_STEP)):
        begin = accepted + len(errors)
        reply = await call.write(lambda tx, step=step: tx.events.send_many(step, id))  # type: ignore[misc]  # bound at once
        accepted += reply.accepted
        errors += _errors(reply, begin)
    return {"accepted": accepted, "errors": errors} if errors else None


async def get_event(call: FluxRequest) -> Any:
    """Sends one event of the older form, whose attributes are parameters."""
    address = call.api.address_of(call.request)
    name, attributes = "/".join(call.path[1:]), call.parameters.attributes()
    event = event_of(name, attributes, address, allows_zero=True)
    reply = await call.write(lambda tx: tx.events.send_many([event], OLD_SCHEMA))
    errors = _errors(reply, 0)
    return {"accepted": reply.accepted, "errors": errors} if errors else None


def _errors(reply: SendManyReply, begin: int) -> list[dict[str, Any]]:
    return [
        {"position": begin + error.position, "message": error.message} for error in reply.errors
    ]


def _posted(view: View, id: str) -> StoredSchema:
    """Returns a schema that was posted; raises `UnknownSchema` if none has that id."""
    found = schema_of(view.raw, id)
    if not _is_id(id, found.dialect):
        raise UnknownSchema(f"{id} is not the id of a schema")
    return found


def _is_id(name: str, dialect: str | None) -> bool:
    return dialect == "flux" and _ID.fullmatch(name) is not None


def _schema(id: str) -> dict[str, str]:
    return {"id": id, "uri": f"/schema/{id}"}


# --- reads --------------------------------------------------------------------------------------


async def get_query(call: FluxRequest) -> Any:
    parameters = call.parameters
    keys = parameters.keys()
    if not keys:
        return {"results": []}
    wanted = parameters.integer("max_results", "maxResults") or 0
    limit = wanted if 0 < wanted <= MAX_RESULTS else MAX_RESULTS
    cursor = parameters.text("cursor")
    since, until = parameters.since(), parameters.until()

    def read(view: View) -> MemberPage:
        try:
            return view.events.members(keys, limit, cursor, since, until)
        except WrongKind:  # a native leaderboard has no members
            sets = [key for key in keys if "set" in view.events.describe(key).kinds]
            if not sets:
                return MemberPage(members=[])
            return view.events.members(sets, limit, cursor, since, until)

    _check_cursor(cursor)
    try:
        page = await call.read(read)
    except BadInput as error:
        raise FluxError(error.message) from None
    answer: dict[str, Any] = {"results": [member.value for member in page.members]}
    return answer if page.next is None else {**answer, "next": page.next}


def _check_cursor(cursor: str | None) -> None:
    try:
        if cursor:
            Cursor.read(cursor)
    except BadInput:
        raise FluxError("invalid cursor") from None


async def get_distinct(call: FluxRequest) -> Any:
    keys = _counted_keys(call)
    asked = call.parameters.text("op")
    op: SetOperation = "intersection" if asked == "intersection" else "union"
    since = call.parameters.since()

    def read(view: View) -> Any:
        return view.events.distinct(keys, op, since)

    try:
        found = await call.read(read, is_large=counts_many(keys, op))
    except CountersWithoutTimes:
        return {"count": await _count_members(call, keys, op, since)}
    return {"count": found.count}


async def _count_members(
    call: FluxRequest, keys: list[str], op: SetOperation, since: int | None
) -> int:
    """Returns the number of existing members of keys whose counters store no times. Counts a page
    at a time, so that other large reads get their turn."""
    count, after = 0, None

    def read(view: View) -> MemberPage:
        return view.events.members(keys, MAX_PAGE_MEMBERS, after, since, op=op)

    while True:
        page: MemberPage = await call.read(read, is_large=True)
        count += len(page.members)
        after = page.next
        if after is None:
            return count


async def post_distinct(call: FluxRequest) -> Any:
    keys = _counted_keys(call)
    _refuse_intersection(call)
    since = call.parameters.since()
    ttl = call.api.dispatcher.flux_ttl
    if not await call.api.dispatcher.reading(call.space.exists):
        # The role read suffices for this request, and may not create a space. An unknown key counts
        # as 0, like the stored union of no members.
        return {"key": str(uuid4()), "ttl": ttl}
    kept = await call.write(
        lambda tx: stored_results.keep_distinct(
            tx.raw, Reads(tx.raw), keys, since, ttl, counts_members=True
        )
    )
    return {"key": kept.key, "ttl": kept.ttl}


async def get_gross(call: FluxRequest) -> Any:
    keys = _counted_keys(call)
    _refuse_intersection(call)
    since = call.parameters.since()

    def read(view: View) -> Any:
        return view.events.gross(keys, since)

    try:
        return {"count": await call.read(read, is_large=counts_many(keys, "union"))}
    except CountersWithoutTimes:
        return {"count": await _count_members(call, keys, "union", since)}


async def get_top(call: FluxRequest) -> Any:
    key = call.parameters.text("key")
    wanted = call.parameters.integer("max_results") or 0
    if key is None:
        return []

    most = wanted if wanted > 0 else TOP_RESULTS
    try:
        found = await call.read(
            lambda view: Reads(view.raw).top_descending(key, most), is_large=True
        )
    except WrongKind:
        return []
    return [[entry.value, float(entry.count)] for entry in found]


async def get_up(call: FluxRequest) -> Any:
    """Reports whether the store accepts a commit."""
    try:
        await call.write(lambda tx: None)
    except HoldfastError:
        return {"redis": False}
    return {"redis": True}


def _counted_keys(call: FluxRequest) -> list[str]:
    if call.parameters.has("max_score"):
        raise FluxError("max_score not supported")
    keys = call.parameters.keys()
    if not keys:
        raise FluxError("keys[] is required")
    return keys


def _refuse_intersection(call: FluxRequest) -> None:
    if call.parameters.text("op") == "intersection":
        raise FluxError("intersection not supported")


ROUTES: Final[dict[tuple[str, str], tuple[Handler, str]]] = {
    ("POST", "schema"): (post_schema, "write"),
    ("GET", "schemas"): (get_schemas, "read"),
    ("GET", "schema/{id}"): (get_schema, "read"),
    ("POST", "schema/{id}/events"): (post_events, "write"),
    ("GET", "query"): (get_query, "read"),
    ("GET", "distinct"): (get_distinct, "read"),
    ("POST", "distinct"): (post_distinct, "read"),
    ("GET", "gross"): (get_gross, "read"),
    ("GET", "top"): (get_top, "read"),
    ("GET", "up"): (get_up, "read"),
    ("GET", "event/{name}"): (get_event, "write"),
}


def _find(method: str, path: list[str]) -> tuple[Handler, str]:
    """Returns the handler of a path, and the role that it needs."""
    shape = list(path)
    if len(path) > 1 and path[0] == "schema":
        shape[1] = "{id}"
    elif len(path) > 1 and path[0] == "event" and all(path):
        shape = ["event", "{name}"]
    found = ROUTES.get((method, "/".join(shape)))
    if found is None:
        raise FluxError("Not Found", 404)
    return found
