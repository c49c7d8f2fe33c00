"""The style sheet, the scripts and their licences; each has a digest in its address."""

import hashlib
from functools import cache
from importlib.resources import files
from typing import Final, NamedTuple

from holdfast.errors import NotFound
from holdfast.server.http_exchange import HttpResponse

_TYPES: Final = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
    "txt": "text/plain; charset=utf-8",
}


class StaticFile(NamedTuple):
    """A file that every page may load."""

    body: bytes
    digest: str
    content_type: str


@cache
def load() -> dict[str, StaticFile]:
    """Returns all files by name. The first call reads them."""
    found = {}
    for each in files("holdfast.dashboard").joinpath("static").iterdir():
        kind = _TYPES.get(each.name.rpartition(".")[2])
        if kind is not None:
            body = each.read_bytes()
            found[each.name] = StaticFile(body, hashlib.sha256(body).hexdigest()[:12], kind)
    return found


def address(name: str) -> str:
    """Returns the address of a file below `/ui/`; it changes with the file's contents."""
    return f"-/static/{load()[name].digest}/{name}"


def answer(digest: str, name: str) -> HttpResponse:
    """Returns a file that browsers may cache forever."""
    found = load().get(name)
    if found is None or found.digest != digest:
        raise NotFound(f"the dashboard has no file {name!r:.100}")
    headers = {"cache-control": "public, max-age=31536000, immutable"}
    return HttpResponse(found.body, content_type=found.content_type, headers=headers)
