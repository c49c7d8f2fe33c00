"""Pages that belong to no space: login, logout, and the choice between light and dark."""

from holdfast.dashboard import templates
from holdfast.dashboard.page_request import is_page
from holdfast.dashboard.sessions import THEMES, LoginSession
from holdfast.errors import HoldfastError, NotAuthenticated, TooManyLogins
from holdfast.server.auth import Identity
from holdfast.server.http import HttpApi
from holdfast.server.http_exchange import HttpRequest, HttpResponse, error_headers
from holdfast.server.password_checks import Failures, network_of

_HTML = "text/html; charset=utf-8"
_ANY_NAME = ""  # the login form counts failed logins of an address, whatever the names


def login_page(
    request: HttpRequest, session: LoginSession, *, to: str, error: HoldfastError | None = None
) -> HttpResponse:
    """Returns the form that asks for a name and a password, or for a token."""
    page = templates.render(
        "login.html", session=session, root=request.root, to=_inside(request, to), error=error
    )
    status = 401 if error is None else error.status
    headers = error_headers(error) if isinstance(error, TooManyLogins) else {}
    return HttpResponse(page, status=status, content_type=_HTML, headers=headers)


async def log_in(
    api: HttpApi, request: HttpRequest, session: LoginSession, form: dict[str, str]
) -> HttpResponse:
    """Begins a session, or shows the form again with the error."""
    to = _inside(request, form.get("to", ""))
    name, secret = form.get("name") or "default", form.get("secret", "")
    holder = api.dispatcher.authenticator.with_token(name, secret)
    if holder is not None:  # failed passwords do not delay tokens
        return _logged_in(api, session, to, holder)
    failures: Failures = api.dispatcher.password_checks.failures
    key = (f"dashboard {network_of(api.address_of(request))}", _ANY_NAME)
    wait = failures.wait_before(key)
    if wait > 0:
        return login_page(request, session, to=to, error=_too_many(wait))
    try:
        checks = api.dispatcher.password_checks
        identity = await checks.check(api.address_of(request), name, secret)
    except (NotAuthenticated, TooManyLogins) as error:
        failures.add(key)
        return login_page(request, session, to=to, error=error)
    failures.forget(key)
    return _logged_in(api, session, to, identity)


def _logged_in(api: HttpApi, session: LoginSession, to: str, identity: Identity) -> HttpResponse:
    return _redirect(to, session.login_cookie(api.dispatcher.authenticator, identity))


def log_out(request: HttpRequest, session: LoginSession) -> HttpResponse:
    """Ends the session."""
    return _redirect(f"{request.root}/ui/", session.logout_cookie())


def choose_theme(request: HttpRequest, session: LoginSession, form: dict[str, str]) -> HttpResponse:
    """Remembers the theme: light, dark, or that of the system."""
    theme = form.get("theme", "")
    cookie = session.theme_cookie(theme if theme in THEMES else "auto")
    return _redirect(_inside(request, form.get("to", "")), cookie)


def _redirect(to: str, cookie: str) -> HttpResponse:
    response = HttpResponse(b"", status=303, content_type=_HTML, headers={"location": to})
    response.cookies.append(cookie)
    return response


def _inside(request: HttpRequest, to: str) -> str:
    """Returns `to` if it is a page of this dashboard, otherwise its start page."""
    return to if is_page(request, to) else f"{request.root}/ui/"


def _too_many(wait: float) -> TooManyLogins:
    error = TooManyLogins(f"too many wrong logins came from this address; wait {wait:.0f} s")
    error.retry_after = wait
    return error
