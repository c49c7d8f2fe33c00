"""One request for a page: its user, its space, and the operations that the page calls.

A page reaches the store only through `PageRequest.call`, which checks roles and arguments as the
HTTP API does. Each call is recorded: "Copy as" shows them as commands, `?format=json` returns
their results.
"""

import csv
import io
import time
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, quote, urlencode

import msgspec

from holdfast.dashboard import copied_commands, templates
from holdfast.dashboard.menu import menu
from holdfast.dashboard.sessions import LoginSession
from holdfast.errors import BadInput
from holdfast.limits import (
    DECODED_ON_LOOP_BYTES,
    LARGE_PIECE_BYTES,
    MAX_FORM_BYTES,
    MAX_FORM_FIELDS,
)
from holdfast.operations import Operation, find
from holdfast.server import payloads
from holdfast.server.auth import Identity
from holdfast.server.http import HttpApi
from holdfast.server.http_exchange import HttpRequest, HttpResponse
from holdfast.users import EVERYTHING

_HTML = "text/html; charset=utf-8"
_MOST_DIGITS = 18  # below 2^63


class RecordedCall(NamedTuple):
    """An operation that was called for a page."""

    operation: Operation
    arguments: dict[str, Any]
    result: Any


class PageRequest:
    """A request for a page of the dashboard, by an identified user, in one space."""

    def __init__(
        self,
        api: HttpApi,
        http: HttpRequest,
        identity: Identity,
        session: LoginSession,
        space: str,
    ) -> None:
        self.api = api
        self.http = http
        self.identity = identity
        self.session = session
        self.space = space
        self.names: dict[str, str] = {}  # of the path: `{queue}` is `names["queue"]`
        self.menu = ""
        self.served: frozenset[str] = frozenset()  # the paths of all pages
        self.now = time.time()
        self.calls: list[RecordedCall] = []
        self.form: dict[str, str] = {}
        self.form_lists: dict[str, list[str]] = {}

    # --- the store -------------------------------------------------------------------------------

    async def call(self, name: str, /, **arguments: Any) -> Any:
        """Calls an operation as its user would over HTTP: `await request.call("jobs.queues")`.

        Arguments are JSON values; those that are None are left out. Raises `Forbidden` if the user
        may not call it.
        """
        operation = find(*name.split(".", 1))
        needed = _needed(operation.arguments)
        given = {
            key: value for key, value in arguments.items() if value is not None or key in needed
        }
        result = await self.call_in(self.space, name, **given)
        self.calls.append(RecordedCall(operation, given, result))
        return result

    async def call_in(
        self, space: str, name: str, /, *, is_large: bool = False, **arguments: Any
    ) -> Any:
        """Calls an operation in another space, such as that of the recorded figures.

        "Copy as" does not show it. A read that `is_large` runs in a thread.
        """
        operation = find(*name.split(".", 1))
        self.identity.require_operation(operation, space)
        read = payloads.convert_arguments(operation, arguments, is_json=True)
        opened = await self.api.dispatcher.space(space)
        return await self.api.dispatcher.run(opened, operation, read, is_large=is_large)

    def may(self, name: str, *, space: str | None = None) -> bool:
        """Returns whether the user may call an operation: a button is shown only then."""
        operation = find(*name.split(".", 1))
        where = self.space if space is None else space
        space = EVERYTHING if operation.declaration.scope == "store" else where
        role = operation.declaration.role
        return self.identity.may(role, space=space, layer=operation.layer)

    # --- the request -----------------------------------------------------------------------------

    def parameter(self, name: str, default: str = "") -> str:
        """Returns a parameter of the query: a filter, a tab, a cursor."""
        return self.http.parameters.get(name, default)

    def count(self, name: str) -> int:
        """Returns a parameter that is a whole number; 0 if it is anything else."""
        text = self.parameter(name)
        return int(text) if is_count(text) else 0

    async def read_form(self, most_bytes: int = MAX_FORM_BYTES) -> None:
        """Reads the fields of a form that was sent; a long one in a thread."""
        body = await self.http.body(most_bytes)

        def read() -> list[tuple[str, str]]:
            return parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=MAX_FORM_FIELDS)

        is_long = len(body) > DECODED_ON_LOOP_BYTES
        try:
            pairs = await self.api.dispatcher.decode_in_thread(read) if is_long else read()
        except ValueError:
            raise BadInput(
                f"a form must be UTF-8 and have at most {MAX_FORM_FIELDS} fields"
            ) from None
        for name, value in pairs:
            self.form[name] = value
            self.form_lists.setdefault(name, []).append(value)

    def form_json(self, name: str) -> Any:
        """Returns a field that holds JSON; None if it is empty."""
        text = self.form.get(name, "").strip()
        if not text:
            return None
        try:
            return msgspec.json.decode(text)
        except (msgspec.DecodeError, RecursionError) as error:
            raise BadInput(
                f"{name} is not JSON: {error}", hint='Write text in quotes: "like this".'
            ) from None

    def form_number(self, name: str) -> float | None:
        """Returns a field that holds a number; None if it is empty."""
        return number_of(name, self.form.get(name, ""))

    # --- addresses -------------------------------------------------------------------------------

    def link(self, *segments: str, **query: Any) -> str:
        """Returns the address of a page in this space: `link("queues", name, state="failed")`."""
        path = "/".join(quote(each, safe="", errors="surrogateescape") for each in segments)
        space = quote(self.space, safe="", errors="surrogateescape")
        given = {name: value for name, value in query.items() if value not in (None, "")}
        suffix = f"?{urlencode(given, errors='surrogateescape')}" if given else ""
        return f"{self.http.root}/ui/{space}/{path}{suffix}"

    def here(self, **changed: Any) -> str:
        """Returns the address of this page with some parameters changed; None removes one."""
        query = {**self.http.parameters, **changed}
        query = {name: value for name, value in query.items() if value not in (None, "")}
        path = self.http.root + self.http.raw_path.decode("latin-1")
        return f"{path}?{urlencode(query, errors='surrogateescape')}" if query else path

    def origin(self, default: str) -> str:
        """Returns the page that sent the form, if the form names one of this dashboard."""
        to = self.form.get("to", "")
        return to if is_page(self.http, to) else default

    # --- answers ---------------------------------------------------------------------------------

    async def render(
        self,
        template: str,
        *,
        title: str,
        rows: tuple[Sequence[str], Iterable[Sequence[Any]]] | None = None,
        **values: Any,
    ) -> HttpResponse:
        """Returns the page; with `?format=json` or, if it has `rows`, `?format=csv` its data."""
        wanted = self.parameter("format")
        if wanted == "json":
            calls = self.calls
            return HttpResponse(await self.encode(lambda: copied_commands.as_json(calls)))
        if wanted == "csv" and rows is not None:
            written = await self.encode(lambda: as_csv(*rows))
            return HttpResponse(written, content_type="text/csv; charset=utf-8")
        if wanted:
            raise BadInput(f"this page has no format {wanted!r:.40}", hint="It has json.")
        calls = list(self.calls)
        await templates.prepare(template)
        page = templates.render(
            template,
            request=self,
            title=title,
            spaces=await self._spaces(),
            totals=await self._totals(),
            copied=copied_commands.commands(self, calls),
            has_csv=rows is not None,
            sections=menu(self.served),
            **values,
        )
        return HttpResponse(page, content_type=_HTML)

    async def encode(self, encode: Callable[[], bytes]) -> bytes:
        """Encodes values in a thread: a page of them may have many megabytes."""
        return await self.api.dispatcher.read_in_thread(encode)

    def redirect(self, to: str, notice: str = "") -> HttpResponse:
        """Redirects to a page that shows `notice`, what was done; every action ends with this."""
        response = HttpResponse(b"", status=303, content_type=_HTML, headers={"location": to})
        if notice:
            response.cookies.append(self.session.notice_cookie(notice))
        return response

    async def _totals(self) -> Any:
        """Returns the numbers that the menu shows; None if the user may not read jobs."""
        if not self.may("jobs.totals"):
            return None
        return await self.call_in(self.space, "jobs.totals")

    async def _spaces(self) -> list[str]:
        """Returns the spaces to choose from, at most a page of them."""
        if self.may("admin.spaces"):
            known = (await self.call_in(self.space, "admin.spaces", limit=_MAX_CHOICES)).spaces
        else:
            grants = self.identity.grants
            known = [grant.space for grant in grants if grant.space != EVERYTHING]
        return sorted({self.space, *known})


_MAX_CHOICES = 100


@cache
def _needed(arguments: type[msgspec.Struct]) -> frozenset[str]:
    """Returns the required arguments of an operation."""
    fields = msgspec.structs.fields(arguments)
    return frozenset(field.encode_name for field in fields if field.required)


def is_page(request: HttpRequest, to: str) -> bool:
    """Returns whether `to` is a page of this dashboard; a form leads nowhere else."""
    is_plain = to.isprintable() and to.isascii() and "\\" not in to
    return is_plain and to.startswith(f"{request.root}/ui/")


def is_count(text: str) -> bool:
    """Returns whether a text is a whole number of a sensible length.

    >>> is_count("10"), is_count("-1"), is_count("²"), is_count("9" * 5_000)
    (True, False, False, False)
    """
    return text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS


def number_of(name: str, text: str) -> float | None:
    """Returns the number that was typed; None for an empty text."""
    if not text.strip():
        return None
    try:
        return float(text)
    except ValueError:
        raise BadInput(f"{name} must be a number, not {text!r:.40}") from None


def as_csv(header: Sequence[str] | None, rows: Iterable[Sequence[Any]]) -> bytes:
    """Returns rows as CSV; without a header, they continue earlier ones."""
    parts: list[bytes] = []
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\r\n")
    if header is not None:
        writer.writerow(header)
    for row in rows:
        cells = [_cell(value) for value in row]
        is_large = any(isinstance(cell, str) and len(cell) > LARGE_PIECE_BYTES for cell in cells)
        if not is_large:
            writer.writerow(cells)
        # In pieces: encoding holds the interpreter lock, even in a thread.
        if is_large or written.tell() > LARGE_PIECE_BYTES:
            parts.append(written.getvalue().encode(errors="replace"))
            written.seek(0)
            written.truncate()
        if is_large:
            parts.append(",".join(map(_quoted, cells)).encode(errors="replace") + b"\r\n")
    parts.append(written.getvalue().encode(errors="replace"))
    return b"".join(parts)


def _quoted(cell: Any) -> str:
    """Returns a cell as `csv` writes it, without its loop over every character of a long text."""
    text = "" if cell is None else str(cell)
    if any(character in text for character in ',"\r\n'):
        return '"' + text.replace('"', '""') + '"'
    return text


def _cell(value: Any) -> Any:
    """Returns a CSV cell: text that no spreadsheet runs as a formula, other values as JSON."""
    if isinstance(value, str):
        return f"'{value}" if value[:1] in ("=", "+", "-", "@", "\t", "\r") else value
    if value is None or isinstance(value, int | float):
        return value
    return msgspec.json.encode(value).decode()
