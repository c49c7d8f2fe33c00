"""Routes `/ui/`: finds the page or the action of a path, and protects all of them.

Every answer forbids inline scripts and frames. A visitor who is not logged in gets the login form.
An action is refused before anything else if its form lacks the session's token. Hosts and origins
are checked before, as for all paths (server/browser_checks.py).
"""

from typing import Final

from holdfast.dashboard import login, pages, static_files, templates
from holdfast.dashboard.live import live
from holdfast.dashboard.page_request import PageRequest
from holdfast.dashboard.sessions import LoginSession
from holdfast.errors import (
    Forbidden,
    MethodNotAllowed,
    NotAuthenticated,
    NotFound,
    UnsupportedContent,
)
from holdfast.limits import MAX_BYTES_BEFORE_LOGIN, MAX_FORM_BYTES
from holdfast.server.auth import Identity
from holdfast.server.http import HttpApi, route
from holdfast.server.http_exchange import HttpRequest, HttpResponse, error_headers

_HTML: Final = "text/html; charset=utf-8"
_FORM: Final = "application/x-www-form-urlencoded"
_RESERVED: Final = "-"  # a segment of paths that are not pages
_ANONYMOUS: Final = Identity("", ())  # of a client that is logging in
_COMMON_TEMPLATES: Final = (
    "base.html",
    "parts.html",
    "bare.html",
    "error.html",
)  # every page uses them
_HEADERS: Final = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


@route("GET HEAD POST", "/ui")
@route("GET HEAD POST", "/ui/{path...}")
async def dashboard(api: HttpApi, request: HttpRequest, found: dict[str, str]) -> HttpResponse:
    """Answers all requests of the dashboard."""
    segments = request.segments[1:]
    if segments[:2] == [_RESERVED, "static"] and len(segments) == 4:
        response = static_files.answer(segments[2], segments[3])
        response.headers.update(_HEADERS)
        return response
    await templates.prepare(*_COMMON_TEMPLATES)
    session = LoginSession(api, request)
    try:
        response = await _answer(api, request, session, segments)
    except Exception as error:
        response = _failure(api, request, session, error)
    response.headers = {"cache-control": "no-store", **_HEADERS, **response.headers}
    _add_cookies(session, response)
    return response


async def _answer(
    api: HttpApi, request: HttpRequest, session: LoginSession, segments: list[str]
) -> HttpResponse:
    if request.method == "POST":
        return await _post(api, request, session, segments)
    if segments == [_RESERVED, "login"]:
        return login.login_page(request, session, to=request.parameter("to"))
    identity = await _identify(api, request, session)
    page_request = PageRequest(api, request, identity, session, segments[0] if segments else "")
    if not page_request.space:
        page_request.space = request.parameter("space") or api.dispatcher.store.name
    if len(segments) < 2:
        return page_request.redirect(page_request.link())
    rest = segments[1:-1] if segments[-1] == "" else segments[1:]
    if rest == [_RESERVED, "live"]:
        return live(page_request)
    entry = pages.find(pages.PAGES, rest)
    if entry is None:
        raise NotFound(f"the dashboard has no page {'/'.join(rest)!r:.200}")
    page_request.menu, page_request.names, page_request.served = (
        entry[0].menu,
        entry[1],
        pages.served(),
    )
    return await entry[0].show(page_request)


async def _post(
    api: HttpApi, request: HttpRequest, session: LoginSession, segments: list[str]
) -> HttpResponse:
    if request.content_type != _FORM:
        raise UnsupportedContent(
            "the dashboard accepts only forms",
            hint="A program calls operations: POST /{space}/{layer}/{operation}.",
        )
    identity = session.identity(api.dispatcher.authenticator)
    if identity is None and segments != [_RESERVED, "login"]:
        raise NotAuthenticated("the session has ended")
    page_request = PageRequest(
        api, request, identity or _ANONYMOUS, session, segments[0] if segments else ""
    )
    await page_request.read_form(MAX_BYTES_BEFORE_LOGIN if identity is None else MAX_FORM_BYTES)
    if not session.has_form_token(page_request.form.get("token", "")):
        raise Forbidden("the form does not belong to this session", hint="Load the page again.")
    if segments == [_RESERVED, "login"]:
        return await login.log_in(api, request, session, page_request.form)
    if segments == [_RESERVED, "logout"]:
        return login.log_out(request, session)
    if segments == [_RESERVED, "theme"]:
        return login.choose_theme(request, session, page_request.form)
    entry = pages.find(pages.ACTIONS, segments[1:])
    if entry is None and pages.find(pages.PAGES, segments[1:]):
        raise MethodNotAllowed("this page is read-only", allowed=["GET", "HEAD"])
    if entry is None:
        raise NotFound(f"the dashboard has no action {'/'.join(segments[1:])!r:.200}")
    page_request.names = entry[1]
    return await entry[0].show(page_request)


async def _identify(api: HttpApi, request: HttpRequest, session: LoginSession) -> Identity:
    """Returns the user: by session, or by the token that a program sends with its request."""
    identity = session.identity(api.dispatcher.authenticator)
    if identity is None or "authorization" in request.headers:
        return await api.identify(request)
    return identity


def _failure(
    api: HttpApi, request: HttpRequest, session: LoginSession, error: Exception
) -> HttpResponse:
    """Returns an error as a page, or for a program in the form of the API."""
    known = api.dispatcher.as_known_error(error, request.ids)
    if not request.accepts("text/html"):
        return api.failure(error, request)
    here = request.root + request.raw_path.decode("latin-1")
    if isinstance(known, NotAuthenticated):
        to = f"{here}?{request.query.decode('latin-1')}" if request.query else here
        return login.login_page(request, session, to=to if request.method == "GET" else "")
    page = templates.render("error.html", session=session, root=request.root, error=known)
    response = HttpResponse(page, status=known.status, content_type=_HTML)
    response.headers.update(error_headers(known))
    return response


def _add_cookies(session: LoginSession, response: HttpResponse) -> None:
    """Adds the cookies of a page; an action sets its own."""
    if response.headers.get("content-type") == _HTML and response.status != 303:
        response.cookies += session.new_cookies()
