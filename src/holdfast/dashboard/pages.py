"""The registry of all pages and actions; the module of a page adds its own.

A page answers GET and never changes anything. An action answers POST, changes something through an
operation, and redirects to a page. Both are found by their path below `/ui/{space}`.
"""

from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple, TypeAlias

from holdfast.dashboard.page_request import PageRequest
from holdfast.server.http_exchange import HttpResponse

Show: TypeAlias = Callable[[PageRequest], Awaitable[HttpResponse]]


class PageRoute(NamedTuple):
    """A page or an action: `{name}` in its path matches one segment."""

    segments: tuple[str, ...]
    show: Show
    menu: str = ""  # the entry of the menu that is marked while it is shown

    def match(self, segments: list[str]) -> dict[str, str] | None:
        if len(segments) != len(self.segments):
            return None
        found = {}
        for expected, given in zip(self.segments, segments, strict=True):
            if expected[:1] == "{":
                found[expected[1:-1]] = given
            elif expected != given:
                return None
        return found


PAGES: Final[list[PageRoute]] = []
ACTIONS: Final[list[PageRoute]] = []


def page(path: str, *, menu: str = "") -> Callable[[Show], Show]:
    """Serves a page: `@page("queues/{queue}", menu="queues")`. The most literal path wins."""
    return _adder(PAGES, path, menu)


def action(path: str) -> Callable[[Show], Show]:
    """Serves an action: `@action("queues/{queue}/pause")`. Its form has been checked."""
    return _adder(ACTIONS, path, "")


def _adder(entries: list[PageRoute], path: str, menu: str) -> Callable[[Show], Show]:
    segments = tuple(path.split("/")) if path else ()

    def add(show: Show) -> Show:
        entries.append(PageRoute(segments, show, menu))
        entries.sort(key=lambda each: [segment[:1] == "{" for segment in each.segments])
        return show

    return add


def find(entries: list[PageRoute], segments: list[str]) -> tuple[PageRoute, dict[str, str]] | None:
    """Returns the entry of a path and the names in it; None if there is no such entry."""
    for entry in entries:
        found = entry.match(segments)
        if found is not None:
            return entry, found
    return None


def served() -> frozenset[str]:
    """Returns the paths of all pages."""
    return frozenset("/".join(entry.segments) for entry in PAGES)
