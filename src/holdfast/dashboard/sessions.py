"""Sessions of the dashboard: a signed cookie with an end, and the token of its forms.

The cookie is signed with a key that is derived from the stored digests of the user's password and
token. So nothing is stored for a session, every server of a store accepts it, and a new password or
token ends all sessions of its user at once. After a logout, this process refuses the session until
it would have ended.

A visitor who needs no login has a cookie with a random token, which every form repeats: a page of
another site can read neither.
"""

import base64
import hmac
import re
import secrets
import time
from itertools import islice
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, unquote

import msgspec

from holdfast.limits import (
    CLOCK_AHEAD_SECONDS,
    MAX_ENDED_SESSIONS,
    MAX_NOTICE_CHARS,
    SESSION_SECONDS,
)
from holdfast.server.auth import Authenticator, Identity

if TYPE_CHECKING:
    from holdfast.server.http import HttpApi
    from holdfast.server.http_exchange import HttpRequest

SESSION: Final = "holdfast_session"
FORM: Final = "holdfast_form"
NOTICE: Final = "holdfast_notice"
THEME: Final = "holdfast_theme"
THEMES: Final = ("auto", "light", "dark")
_COOKIE: Final = re.compile(r"(holdfast_(?:session|form|notice|theme))=([^;]*)")
_MAX_COOKIES: Final = 16  # of one request: each name may come for several paths
_YEAR: Final = 365 * 86400


class Ticket(msgspec.Struct, frozen=True, array_like=True):
    """The signed part of a session's cookie."""

    name: str
    ends: int
    nonce: str


class LoginSession:
    """The values of the cookies of one request."""

    def __init__(self, api: "HttpApi", request: "HttpRequest") -> None:
        cookies = _cookies(request.headers.get("cookie", ""))
        authenticator = api.dispatcher.authenticator
        self.is_open = authenticator.is_open
        self.ticket = _read_ticket(authenticator, cookies.get(SESSION, ""))
        self.theme = cookies.get(THEME, "auto") if cookies.get(THEME) in THEMES else "auto"
        self.notice = unquote(cookies.get(NOTICE, ""))[:MAX_NOTICE_CHARS]
        self._form_secret = cookies.get(FORM, "")
        self._is_new_secret = len(self._form_secret) < 22
        if self._is_new_secret:
            self._form_secret = secrets.token_urlsafe(24)
        self._key = b""
        if self.ticket is not None:
            self._key = authenticator.session_key(self.ticket.name) or b""
        self._is_secure = api.scheme_of(request) == "https"
        self._path = f"{request.root}/ui"

    def identity(self, authenticator: Authenticator) -> Identity | None:
        """Returns the identity of the session's user; None if a login is needed."""
        if authenticator.is_open or self.ticket is None:
            return authenticator.anonymous()
        return authenticator.current_identity(Identity(self.ticket.name, ()))

    @property
    def form_token(self) -> str:
        """The token that every form of this session repeats (against CSRF)."""
        if self.ticket is None or self.is_open:
            return self._form_secret
        return hmac.digest(self._key, b"form " + self.ticket.nonce.encode(), "sha256").hex()

    def has_form_token(self, given: str) -> bool:
        """Returns whether a form was made for this session."""
        if (self.ticket is None or self.is_open) and self._is_new_secret:
            return False  # without its cookie, the browser can't have a form of ours
        return hmac.compare_digest(given.encode(errors="replace"), self.form_token.encode())

    # --- cookies ---------------------------------------------------------------------------------

    def new_cookies(self) -> list[str]:
        """Returns the cookies that a page sets."""
        cookies = [self._cookie(FORM, self._form_secret)] if self._is_new_secret else []
        if self.notice:
            cookies.append(self._cookie(NOTICE, "", seconds=0))
        return cookies

    def notice_cookie(self, notice: str) -> str:
        return self._cookie(NOTICE, quote(notice[:MAX_NOTICE_CHARS], errors="replace"), seconds=60)

    def theme_cookie(self, theme: str) -> str:
        return self._cookie(THEME, theme, seconds=_YEAR)

    def login_cookie(self, authenticator: Authenticator, identity: Identity) -> str:
        """Returns the cookie of a new session."""
        ticket = Ticket(
            identity.name, int(time.time()) + SESSION_SECONDS, secrets.token_urlsafe(16)
        )
        key = authenticator.session_key(identity.name) or secrets.token_bytes(32)
        return self._cookie(SESSION, _signed(ticket, key), seconds=SESSION_SECONDS)

    def logout_cookie(self) -> str:
        """Ends the session, for this server at once."""
        if self.ticket is not None:
            _end(self.ticket)
        return self._cookie(SESSION, "", seconds=0)

    def _cookie(self, name: str, value: str, *, seconds: int | None = None) -> str:
        age = "" if seconds is None else f"; Max-Age={seconds}"
        secure = "; Secure" if self._is_secure else ""
        return f"{name}={value}; Path={self._path}; HttpOnly; SameSite=Strict{age}{secure}"


# Sessions that were logged out, with their ends; beyond the limit, the oldest are dropped.
_ended: Final[dict[str, int]] = {}


def _end(ticket: Ticket) -> None:
    while len(_ended) >= MAX_ENDED_SESSIONS:
        _ended.pop(next(iter(_ended)))
    _ended[ticket.nonce] = ticket.ends


def _signed(ticket: Ticket, key: bytes) -> str:
    payload = msgspec.msgpack.encode(ticket)
    return _text(payload) + "." + _text(hmac.digest(key, payload, "sha256"))


def _read_ticket(authenticator: Authenticator, cookie: str) -> Ticket | None:
    """Returns the ticket of a cookie that a server of this store has signed, until it ends."""
    try:
        payload, signature = (
            base64.b64decode(part + "===", b"-_", validate=False) for part in cookie.split(".")
        )
        ticket = msgspec.msgpack.decode(payload, type=Ticket)
    except (ValueError, RecursionError, msgspec.DecodeError):
        return None
    key = authenticator.session_key(ticket.name)
    if key is None or not hmac.compare_digest(hmac.digest(key, payload, "sha256"), signature):
        return None
    left = ticket.ends - time.time()
    # A longer life means that the clock of the server that signed it was ahead.
    is_over = not 0 <= left <= SESSION_SECONDS + CLOCK_AHEAD_SECONDS or ticket.nonce in _ended
    return None if is_over else ticket


def _text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def _cookies(header: str) -> dict[str, str]:
    """Returns our cookies, which have neither quotes nor escapes, and ignores all others.

    `http.cookies` takes quadratic time: 60 KB of backslashes or semicolons would block the server
    for about ten seconds. Splitting such a header takes 5 ms, finding our names 5 µs.

    >>> _cookies('other="a;b"; holdfast_theme=dark')
    {'holdfast_theme': 'dark'}
    """
    found = {}
    for match in islice(_COOKIE.finditer(header), _MAX_COOKIES):
        before = header[max(0, match.start() - 2) : match.start()]
        if not before or before == "; " or before[-1] == ";":
            found[match[1]] = match[2].strip()
    return found
