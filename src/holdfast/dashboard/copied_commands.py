"""The commands of "Copy as": a page's calls for curl and for Python, and their results as JSON."""

import shlex
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

import msgspec

from holdfast.defaults import DEFAULT_SPACE
from holdfast.limits import MAX_COPIED_CALLS
from holdfast.server import payloads

if TYPE_CHECKING:
    from holdfast.dashboard.page_request import PageRequest, RecordedCall


class CopyableCalls(NamedTuple):
    """The calls of a page, as text to copy."""

    curl: str
    python: str
    json: str  # the address of their results


def commands(request: "PageRequest", calls: "list[RecordedCall]") -> CopyableCalls:
    """Returns the first `MAX_COPIED_CALLS` calls of a page as commands."""
    shown = calls[:MAX_COPIED_CALLS]
    return CopyableCalls(
        curl="\n".join(_curl(request, call) for call in shown),
        python="\n".join([_connect(request), *(_python(call) for call in shown)]),
        json=request.here(format="json"),
    )


def as_json(calls: "list[RecordedCall]") -> bytes:
    """Returns the calls of a page with their results, as the HTTP API would write them."""
    written = [
        {
            "operation": call.operation.full_name,
            "arguments": call.arguments,
            "result": msgspec.Raw(payloads.encoder(call.operation, is_json=True)(call.result)),
        }
        for call in calls
    ]
    return msgspec.json.encode({"calls": written})


def _curl(request: "PageRequest", call: "RecordedCall") -> str:
    base = f"{request.api.scheme_of(request.http)}://{_host(request)}{request.http.root}"
    space = quote(request.space, safe="", errors="surrogateescape")
    url = f"{base}/{space}/{call.operation.full_name.replace('.', '/')}"
    body = msgspec.json.encode(call.arguments).decode()
    login = "" if request.session.is_open else ' -H "Authorization: Bearer $TOKEN"'
    return f"curl {shlex.quote(url)} -d {shlex.quote(body)}{login}"


def _connect(request: "PageRequest") -> str:
    resp = request.api.dispatcher.resp_address
    where = "host:9977" if resp is None else str(resp.from_here)
    login = "" if request.session.is_open else f"{quote(request.identity.name)}:TOKEN@"
    space = "" if request.space == DEFAULT_SPACE else f".space({request.space!r})"
    return f'store = holdfast.connect("holdfast://{login}{where}"){space}'


def _python(call: "RecordedCall") -> str:
    operation = call.operation
    kinds = operation.arguments  # in JSON an argument may be called `from`
    names = dict(zip(kinds.__struct_encode_fields__, kinds.__struct_fields__, strict=True))
    arguments = [
        _argument(operation.star, names.get(name, name), value)
        for name, value in call.arguments.items()
    ]
    return f"store.{operation.layer}.{operation.name}({', '.join(arguments)})"


def _argument(star: str | None, name: str, value: Any) -> str:
    if name == star:
        return ", ".join(map(repr, value))
    return f"{name}={value!r}"


def _host(request: "PageRequest") -> str:
    return request.http.headers.get("host", "localhost")
