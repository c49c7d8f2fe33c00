"""Access to the dashboard: logins, and refusals of forged forms and other sites."""

import base64
import json
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from holdfast.dashboard.pages import ACTIONS, PAGES
from tests.dashboard.conftest import PASSWORD
from tests.dashboard.visitor import Visitor
from tests.server.serving import Server, run_command, serving


def test_a_browser_is_led_to_the_dashboard_and_a_program_gets_addresses(server: Server) -> None:
    led = server.request("GET", "/", headers={"Accept": "text/html,*/*"})
    told = server.get("/").json

    assert (led.status, led.headers["location"]) == (303, "/ui/")
    assert told["http"] == server.url
    assert told["resp"] == f"redis://127.0.0.1:{server.resp_port}"
    assert told["dashboard"] == f"{server.url}/ui/"


def test_without_the_dashboard_its_paths_are_those_of_a_space(tmp_path: Path) -> None:
    with serving(tmp_path, "--no-ui") as server:
        page = server.request("GET", "/", headers={"Accept": "text/html"})
        put = server.call("jobs.put", space="ui", queue="emails", id="one")

        assert (page.status, b"What you can call" in page.body) == (200, True)
        assert put.result == "one"
        assert server.get("/ui/").status == 404
        assert server.get("/").json["dashboard"] is None


def test_an_open_server_needs_no_login(visitor: Visitor) -> None:
    assert "<h1>Overview</h1>" in visitor.get("/ui/")


def test_every_answer_forbids_inline_scripts_and_frames(visitor: Visitor) -> None:
    page = visitor.read("/ui/")
    [script] = re.findall(r'src="([^"]*dashboard.js)"', page.body.decode())

    for reply in (page, visitor.request("GET", script), visitor.read("/ui/default/nothing")):
        policy = reply.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert reply.headers["x-content-type-options"] == "nosniff"
    assert not re.search(rb"<script(?![^>]* src=)|<style|\sstyle=|\son\w+=", page.body)


def test_static_files_are_kept_by_browsers_until_they_change(visitor: Visitor) -> None:
    [style] = re.findall(r'href="([^"]*style.css)"', visitor.get("/ui/"))

    kept = visitor.request("GET", style)
    other = visitor.request("GET", re.sub("[0-9a-f]{12}", "0" * 12, style))

    assert (kept.status, "immutable" in kept.headers["cache-control"]) == (200, True)
    assert other.status == 404
    assert visitor.request("GET", "/ui/-/static/x/..%2Froutes.py").status == 404


# --- logging in ----------------------------------------------------------------------------------


def test_a_stranger_sees_the_login_form_and_nothing_else(guarded: Server) -> None:
    reply = Visitor(guarded).read("/ui/default/")

    assert reply.status == 401
    assert b"<h1>Log in</h1>" in reply.body
    assert b"Queues" not in reply.body


def test_a_login_leads_back_to_the_page_that_was_asked_for(guarded: Server) -> None:
    visitor = Visitor(guarded)
    visitor.read("/ui/default/?a=b")

    reply = visitor.post("/ui/-/login", name="guest", secret=PASSWORD, to="/ui/default/?a=b")

    assert (reply.status, reply.headers["location"]) == (303, "/ui/default/?a=b")
    assert "guest" in visitor.get("/ui/default/")


@pytest.mark.parametrize("to", ["https://example.com/", "//example.com", "/ui/\\..", "/other"])
def test_a_login_leads_to_no_other_site(guarded: Server, to: str) -> None:
    visitor = Visitor(guarded)
    visitor.read("/ui/")

    reply = visitor.post("/ui/-/login", name="guest", secret=PASSWORD, to=to)

    assert reply.headers["location"] == "/ui/"


def test_the_cookie_of_a_session_is_kept_from_scripts_and_other_sites(guarded: Server) -> None:
    cookie = Visitor(guarded).log_in("guest", PASSWORD).headers["set-cookie"]

    assert "; HttpOnly; SameSite=Strict; Max-Age=43200" in cookie
    assert "Path=/ui" in cookie


def test_a_changed_cookie_is_no_session(guarded: Server) -> None:
    visitor = Visitor(guarded)
    visitor.log_in("guest", PASSWORD)
    cookie = visitor.cookies["holdfast_session"]
    other = Visitor(guarded)
    other.log_in("root", PASSWORD)
    payload = other.cookies["holdfast_session"].partition(".")[0]

    for forged in (cookie[:-3] + "AAA", f"{payload}.{cookie.partition('.')[2]}", "x", "a.b", "."):
        visitor.cookies["holdfast_session"] = forged
        assert visitor.read("/ui/default/").status == 401


def test_logging_out_ends_the_session_and_not_only_its_cookie(guarded: Server) -> None:
    visitor = Visitor(guarded)
    visitor.log_in("guest", PASSWORD)
    visitor.get("/ui/default/")
    cookie = visitor.cookies["holdfast_session"]

    visitor.post("/ui/-/logout")
    visitor.cookies["holdfast_session"] = cookie

    assert visitor.read("/ui/default/").status == 401


def test_a_new_password_ends_the_sessions_of_its_user(guarded: Server) -> None:
    admin, person = Visitor(guarded), Visitor(guarded)
    admin.log_in("root", PASSWORD)
    sent = {"Authorization": _basic("root", PASSWORD)}
    secret = "first password of brief"
    add = {"name": "brief", "grants": ["read"], "password": secret}
    assert _call(guarded, "admin/add_user", add, sent) == 200
    person.log_in("brief", secret)
    assert person.read("/ui/default/").status == 200

    change = {**add, "password": "another password of brief", "replace": True}
    assert _call(guarded, "admin/add_user", change, sent) == 200

    assert person.read("/ui/default/").status == 401


def test_who_guesses_passwords_has_to_wait(tmp_path: Path) -> None:
    words = ("user", "add", "--data", str(tmp_path), "ann", "--grant", "admin", "--password")
    assert run_command(*words, stdin=f"{PASSWORD}\n{PASSWORD}\n").exit_code == 0
    added = run_command("user", "add", "--data", str(tmp_path), "tool", "--grant", "read")
    token = added.stdout.strip()
    with serving(tmp_path) as server:
        visitor = Visitor(server)
        found = [visitor.log_in(f"user{number}", "wrong").status for number in range(8)]

        assert found[0] == 401
        assert found[-1] == 429
        assert visitor.log_in("ann", PASSWORD).status == 429
        assert visitor.log_in("", token).status == 303


# --- forms ---------------------------------------------------------------------------------------


def test_a_form_without_its_token_is_refused(server: Server) -> None:
    visitor = Visitor(server)
    visitor.get("/ui/default/")
    other_end = "y" if visitor.token.endswith("x") else "x"

    for token in ("", "forged", visitor.token[:-1] + other_end):
        visitor.token = token
        assert visitor.post("/ui/-/theme", theme="dark").status == 403


def test_a_token_of_another_session_is_refused(guarded: Server) -> None:
    one, other = Visitor(guarded), Visitor(guarded)
    for each in (one, other):
        each.log_in("clerk", PASSWORD)
        each.get("/ui/default/")

    one.token = other.token

    assert one.post("/ui/-/theme", theme="dark").status == 403


def test_a_page_of_another_site_can_send_no_form(server: Server) -> None:
    visitor = Visitor(server)
    visitor.get("/ui/default/")
    body = f"token={visitor.token}&theme=dark"

    foreign = visitor.request("POST", "/ui/-/theme", body, Origin="https://example.com")
    rebound = visitor.request("GET", "/ui/", Host="attacker.example.com")

    assert (foreign.status, rebound.status) == (403, 403)


def test_actions_are_reached_by_no_link(server: Server) -> None:
    read = {entry.segments for entry in PAGES}  # a form may lead back to the page that has it
    for entry in ACTIONS:
        if entry.segments in read:
            continue
        path = "/".join(segment.strip("{}") for segment in entry.segments)
        assert server.get(f"/ui/default/{path}").status in (404, 405), path


def test_light_and_dark_are_remembered(visitor: Visitor) -> None:
    assert 'data-theme="auto"' in visitor.get("/ui/default/")

    assert 'data-theme="dark"' in visitor.do("/ui/-/theme", theme="dark", to="/ui/default/")


def _basic(name: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()


def _call(server: Server, path: str, body: Mapping[str, object], headers: dict[str, str]) -> int:
    return server.request("POST", f"/default/{path}", json.dumps(body), headers).status
