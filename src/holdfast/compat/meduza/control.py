"""Meduza's control paths over HTTP: deploy a schema, inspect, dump, load, drop.

The public paths are at the root, and again below `/entities`, where they are documented.
Errors are one line of plain text, as its clients expect.
"""

from collections.abc import Callable, Coroutine, Generator, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final, cast
from urllib.parse import unquote, urlsplit

import msgspec
import yaml

from holdfast.declarations import Role
from holdfast.entities import stats as figures
from holdfast.entities.schema_dump import dump_schema
from holdfast.entities.stats import TableStats
from holdfast.errors import BadInput, HoldfastError, MethodNotAllowed, NotFound
from holdfast.limits import MAX_SCHEMA_BYTES
from holdfast.server.call_tracing import ended_with
from holdfast.server.http import ANY_METHOD, HttpApi, route
from holdfast.server.http_exchange import JSON, HttpRequest, HttpResponse, error_headers
from holdfast.store import Space

Handler = Callable[[HttpApi, HttpRequest, dict[str, str]], Coroutine[Any, Any, HttpResponse]]

_FIRST_BUILD_STEPS: Final = 4  # index steps before the answer: enough for small tables
_YAML: Final = "text/yaml"
_PLAIN: Final = "text/plain; charset=utf-8"


def control(methods: str, path: str, role: Role) -> Callable[[Handler], Handler]:
    """Registers a control path at the root and below `/entities`, for users with the role."""

    def add(handler: Handler) -> Handler:
        async def guarded(
            api: HttpApi, request: HttpRequest, found: dict[str, str]
        ) -> HttpResponse:
            try:
                (await api.identify(request)).require(
                    role, space=_space(api).name, layer="entities"
                )
                call = api.traced(request, f"meduza.{handler.__name__}", _space(api).name)
                return await ended_with(call, handler(api, request, found))
            except Exception as error:
                return _refusal(api.dispatcher.as_known_error(error, request.ids))

        async def refuse(api: HttpApi, request: HttpRequest, found: dict[str, str]) -> HttpResponse:
            allowed = methods.split()
            message = f"{path} takes {', '.join(allowed)}, not {request.method}"
            return _refusal(MethodNotAllowed(message, allowed=allowed))

        for mounted in (path, f"/entities{path}"):
            route(methods, mounted)(guarded)
            route(ANY_METHOD, mounted)(refuse)
        return handler

    return add


def _space(api: HttpApi) -> Space:
    return api.dispatcher.store


def _line(text: str, status: int) -> HttpResponse:
    text = " ".join(text.splitlines())
    return HttpResponse(f"{text}\n".encode(errors="replace"), status=status, content_type=_PLAIN)


def _refusal(error: HoldfastError) -> HttpResponse:
    response = _line(error.message, error.status)
    response.headers.update(error_headers(error))
    return response


def _document(request: HttpRequest, content: Any) -> HttpResponse:
    """Returns YAML, or JSON if the client asks for it."""
    if request.accepts(JSON):
        return HttpResponse(msgspec.json.encode(content))
    return HttpResponse(yaml.safe_dump(content, sort_keys=False).encode(), content_type=_YAML)


@control("POST PUT", "/deploy", "admin")
async def deploy(api: HttpApi, request: HttpRequest, found: dict[str, str]) -> HttpResponse:
    body = await request.body(MAX_SCHEMA_BYTES + 1)
    uri = request.parameter("uri")
    if uri:
        try:
            body = await api.dispatcher.in_thread(partial(_read_uri, api.dispatcher.schemas, uri))
        except BadInput as error:
            return _line(f"Error deploying schema: {error.message}", 400)
    if not body:
        return _line("No data URI or raw data given", 400)
    space = _space(api)
    prune, force = (request.parameter(name) == "true" for name in ("prune", "force"))

    def deploy_and_build() -> None:
        space.entities.deploy(body, prune=prune, force=force, wait=False)
        space.entities.build(most=_FIRST_BUILD_STEPS)

    try:
        await api.dispatcher.in_thread(deploy_and_build)
    except HoldfastError as error:
        return _line(f"Error deploying schema: {error.message}", 400)
    api.dispatcher.note_written(space)  # the other steps run in the background
    return HttpResponse(b"OK", content_type=_PLAIN)


def _read_uri(folder: Path | None, uri: str) -> bytes:
    """Returns the content of a local file, if it is in the folder that clients may read."""
    if folder is None:
        raise BadInput("this server reads no files on request")
    try:
        parts = urlsplit(uri)
        if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
            raise BadInput(f"a URI must be file:///..., not {uri:.200}")
        file = Path(unquote(parts.path)).resolve()
        if file.is_relative_to(folder.resolve()) and file.is_file():
            with file.open("rb") as opened:
                return opened.read(MAX_SCHEMA_BYTES + 1)
    except (OSError, RuntimeError, ValueError):
        pass  # an impossible path, a loop of links, or a file that may not be read
    raise BadInput(f"there is no {uri:.200} among the files that may be read")


@control("GET HEAD", "/status", "read")
async def status(api: HttpApi, request: HttpRequest, found: dict[str, str]) -> HttpResponse:
    await api.dispatcher.read(_space(api), lambda view: view.entities.schemas())
    return HttpResponse(b"OK\r\n", content_type=_PLAIN)


@control("GET HEAD", "/schemadump", "read")
async def schemadump(api: HttpApi, request: HttpRequest, found: dict[str, str]) -> HttpResponse:
    name = request.parameter("schema")
    schema = await api.dispatcher.read(_space(api), lambda view: view.entities.schema(name))
    if schema is None:
        return _line(f"Could not find schema {name}", 404)
    text = dump_schema(schema)
    if request.accepts(JSON):
        return HttpResponse(msgspec.json.encode(yaml.safe_load(text)))
    return HttpResponse(text.encode(), content_type=_YAML)


@control("GET HEAD", "/confdump", "admin")
async def confdump(api: HttpApi, request: HttpRequest, found: dict[str, str]) -> HttpResponse:
    return _document(request, api.dispatcher.settings())


@control("GET HEAD", "/stats", "read")
async def stats(api: HttpApi, request: HttpRequest, found: dict[str, str]) -> HttpResponse:
    tables = await api.dispatcher.read(_space(api), lambda view: view.entities.stats())
    if request.accepts(JSON):
        return HttpResponse(msgspec.json.encode({"tables": tables}))
    lines = [line for name, table in tables.items() for line in _quoted_figures(name, table)]
    return HttpResponse(
        "\n".join(["tables:" if lines else "tables: {}", *lines, ""]).encode(), content_type=_YAML
    )


def _quoted_figures(name: str, table: TableStats) -> Iterator[str]:
    """Yields the figures of a table, in quotes: some YAML parsers read `1,234` as a number."""
    yield f"  {name}:"
    for figure, words in figures.in_words(table).items():
        yield f'    {figure}: "{words}"'


@control("GET HEAD", "/dump", "read")
async def dump(api: HttpApi, request: HttpRequest, found: dict[str, str]) -> HttpResponse:
    table, format = _table(request), request.parameter("format", "bson")
    if format not in ("bson", "jsonl"):
        return _line(f"The format must be bson or jsonl, not {format}", 400)
    documents = _space(api).entities.dump(table, format="jsonl" if format == "jsonl" else "bson")
    stream = await api.download(cast(Generator[bytes, None, None], documents))
    return HttpResponse(stream, content_type="application/octet-stream")


@control("POST", "/load", "write")
async def load(api: HttpApi, request: HttpRequest, found: dict[str, str]) -> HttpResponse:
    table, space, identity = _table(request), _space(api), await api.identify(request)

    def recheck() -> None:
        now = api.dispatcher.authenticator.recheck(identity)
        now.require("write", space=space.name, layer="entities")

    try:
        await api.upload(request, lambda pieces: space.entities.load(table, pieces), recheck)
    except NotFound:
        raise
    except BadInput as error:
        return _line(f"Error decoding entity: {error.message}", 400)
    return HttpResponse(b"OK\n", content_type=_PLAIN)


@control("POST DELETE", "/drop", "admin")
async def drop(api: HttpApi, request: HttpRequest, found: dict[str, str]) -> HttpResponse:
    table = _table(request)
    number = await api.dispatcher.write(_space(api), lambda tx: tx.entities.drop(table))
    return HttpResponse(f"Deleted {number} records".encode(), content_type=_PLAIN)


@control("POST", "/repair", "admin")
async def repair(api: HttpApi, request: HttpRequest, found: dict[str, str]) -> HttpResponse:
    table, space = _table(request), _space(api)
    done = await api.dispatcher.in_thread(lambda: space.entities.repair(table))
    return _document(request, msgspec.to_builtins(done))


def _table(request: HttpRequest) -> str:
    return f"{request.parameter('schema')}.{request.parameter('table')}"
