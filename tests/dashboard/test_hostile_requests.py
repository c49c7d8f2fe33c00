"""Cookies and forms that are made to hold the server up, or to make it fail."""

import base64
import time
from urllib.parse import quote

import pytest

from holdfast.client.client import Client
from holdfast.dashboard.sessions import _cookies
from holdfast.limits import MAX_BYTES_BEFORE_LOGIN, MAX_HEAD_BYTES
from tests.dashboard.visitor import Visitor
from tests.server.serving import Server

CPU_SECONDS = 0.5  # a linear reader takes a few milliseconds, a quadratic one ten seconds


@pytest.mark.parametrize(
    "header",
    [
        'a="' + "\\" * MAX_HEAD_BYTES + '"',
        'a="' + '\\"' * (MAX_HEAD_BYTES // 2) + '"',
        'a="' + "\\012" * (MAX_HEAD_BYTES // 4) + '"',
        ";" * MAX_HEAD_BYTES,
        "a=b;" * (MAX_HEAD_BYTES // 4),
        "a" + " " * MAX_HEAD_BYTES + "b",
        "holdfast_" * (MAX_HEAD_BYTES // 9),
    ],
    ids=["backslashes", "quotes", "octal escapes", "semicolons", "many cookies", "blanks", "names"],
)
def test_cookies_are_read_in_a_time_that_grows_with_their_length(header: str) -> None:
    begin = time.thread_time()

    found = _cookies(header + "; holdfast_theme=dark")

    assert time.thread_time() - begin < CPU_SECONDS
    assert found == {"holdfast_theme": "dark"}


@pytest.mark.parametrize(
    ("header", "found"),
    [
        ("holdfast_theme=dark", {"holdfast_theme": "dark"}),
        ("a=b;holdfast_theme= dark ; c", {"holdfast_theme": "dark"}),
        ("a=holdfast_theme=dark", {}),
        ("a=b holdfast_theme=dark", {}),
        ("xholdfast_theme=dark; holdfast_themes=dark", {}),
        (";holdfast_theme=; holdfast_form=a=b", {"holdfast_theme": "", "holdfast_form": "a=b"}),
        ("holdfast_theme=x;" * 1_000 + "holdfast_theme=dark", {"holdfast_theme": "x"}),
    ],
)
def test_our_cookies_are_found_and_no_others(header: str, found: dict[str, str]) -> None:
    assert _cookies(header) == found


@pytest.mark.parametrize(
    "ticket", [b"\x91" * 30_000, b"\x94\xa1a\x00\xa1n" + b"\x91" * 30_000, b"\xc1", b"\x93\xff"]
)
def test_a_cookie_that_is_nested_or_no_ticket_is_no_session(guarded: Server, ticket: bytes) -> None:
    visitor = Visitor(guarded)
    visitor.cookies["holdfast_session"] = base64.urlsafe_b64encode(ticket).decode() + ".aaaa"

    assert visitor.read("/ui/default/").status == 401


@pytest.mark.parametrize("to", ["//[", "http://[", "/ui/[", "http://[::1]x/", "/ui//[x"])
def test_a_login_page_is_shown_whatever_page_it_should_lead_to(guarded: Server, to: str) -> None:
    assert Visitor(guarded).read(f"/ui/-/login?to={quote(to)}").status == 401


def test_a_stranger_sends_no_long_form_and_a_user_does(guarded: Server) -> None:
    stranger, guest = Visitor(guarded), Visitor(guarded)
    stranger.read("/ui/-/login")
    guest.log_in("guest", "correct horse battery staple")
    guest.read("/ui/default/")
    long = "%41" * MAX_BYTES_BEFORE_LOGIN

    refused = stranger.post("/ui/-/login", name="guest", secret=long)
    taken = guest.post("/ui/-/theme", theme="dark", to=long)

    assert refused.status == 413
    assert taken.status == 303
    assert guest.cookies["holdfast_theme"] == "dark"


@pytest.mark.parametrize("number", ["²", "9" * 5_000, "0" * 5_000, "-1", "nan"])
@pytest.mark.parametrize(
    "page", ["failures?offset=", "queues/q?day=", "entities/a.T?order=c&cursor="]
)
def test_a_page_takes_what_is_no_number_for_none(
    client: Client, visitor: Visitor, page: str, number: str
) -> None:
    assert visitor.read(f"/ui/hostile/{page}{quote(number)}").status in (200, 404)


@pytest.mark.parametrize(
    ("action", "field", "value"),
    [
        ("throttles/set", "maximum", "nan"),
        ("throttles/set", "maximum", "1e999"),
        ("entities/a.T/put", "version", "²"),
        ("entities/a.T/put", "version", "9" * 5_000),
    ],
)
def test_a_form_with_an_impossible_number_is_refused(
    visitor: Visitor, action: str, field: str, value: str
) -> None:
    visitor.get("/ui/default/")

    reply = visitor.post(f"/ui/default/{action}", name="t", properties="{}", **{field: value})

    assert reply.status == 400


@pytest.mark.parametrize(
    "to",
    [
        "//evil.example",
        "http://evil.example",
        "javascript:alert(1)",
        "/ui/\r\nX-Sent: yes",
        "/ui/é",
    ],
)
@pytest.mark.parametrize("action", ["queues/q/pause", "schedules/r/pause", "schedules/r/resume"])
def test_an_action_leads_to_no_other_site(visitor: Visitor, action: str, to: str) -> None:
    visitor.get("/ui/default/")
    assert visitor.server.call("jobs.recur", id="r", queue="q", interval=60).status == 200

    reply = visitor.post(f"/ui/default/{action}", to=to)

    assert reply.status == 303
    assert reply.headers["location"].startswith(f"/ui/default/{action.partition('/')[0]}")
    assert "x-sent" not in reply.headers


@pytest.mark.parametrize("body", [b"token=\xff", b"a=b&" * 400_000])
def test_a_form_that_is_no_text_or_has_too_many_fields_is_refused(
    server: Server, body: bytes
) -> None:
    headers = {"Content-Type": "application/x-www-form-urlencoded"}

    reply = server.request("POST", "/ui/-/theme", body, headers)

    assert reply.status == 400
    assert "a form must be UTF-8 and have at most" in reply.error["message"]
